//! The index of gaps: for all usable nodes of one class, where in time a tier's amount begins to be free, and until when.
//!
//! Entries are sorted by (instant, node). They lie in blocks of up to [`BLOCK`], and for each block and tier the index keeps the latest end
//! and the longest gap, so that a search passes over whole blocks in which nothing is long enough. Within a block each tier's ends
//! lie side by side, for the same reason.
//!
//! Ends are whole seconds since the index's origin, rounded up: an upper bound. Whoever finds an entry asks the node's timeline.

use crate::amount::{Micros, NEVER, SECOND};
use crate::fleet::NodeIdx;
use crate::tiers::{MOST, TierSet, members};

const BLOCK: usize = 64;

/// No gap of this tier begins here.
const NONE: i32 = i32::MIN;
/// The gap has no end.
const OPEN: i32 = i32::MAX;

type Ends = [i32; MOST];

/// Where a search stands: the next entry to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    block: usize,
    entry: usize,
}

#[derive(Debug)]
struct Block {
    len: usize,
    from: [Micros; BLOCK],
    node: [NodeIdx; BLOCK],
    /// `from` in whole seconds, rounded down.
    second: [i32; BLOCK],
    ends: [[i32; BLOCK]; MOST],
}

impl Block {
    fn new() -> Box<Block> {
        Box::new(Block { len: 0, from: [0; BLOCK], node: [0; BLOCK], second: [0; BLOCK], ends: [[NONE; BLOCK]; MOST] })
    }

    fn key(&self, i: usize) -> (Micros, NodeIdx) {
        (self.from[i], self.node[i])
    }

    /// The first entry not before `key`.
    fn find(&self, key: (Micros, NodeIdx)) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn insert(&mut self, i: usize, key: (Micros, NodeIdx), second: i32, tiers: usize) {
        let len = self.len;
        self.from.copy_within(i..len, i + 1);
        self.node.copy_within(i..len, i + 1);
        self.second.copy_within(i..len, i + 1);
        (self.from[i], self.node[i], self.second[i]) = (key.0, key.1, second);
        for ends in &mut self.ends[..tiers] {
            ends.copy_within(i..len, i + 1);
            ends[i] = NONE;
        }
        self.len += 1;
    }

    fn remove(&mut self, i: usize, tiers: usize) {
        let len = self.len;
        self.from.copy_within(i + 1..len, i);
        self.node.copy_within(i + 1..len, i);
        self.second.copy_within(i + 1..len, i);
        for ends in &mut self.ends[..tiers] {
            ends.copy_within(i + 1..len, i);
        }
        self.len -= 1;
    }

    /// Moves the upper half to a block of its own.
    fn split(&mut self) -> Box<Block> {
        let mut upper = Block::new();
        let (half, len) = (self.len / 2, self.len);
        upper.len = len - half;
        upper.from[..len - half].copy_from_slice(&self.from[half..len]);
        upper.node[..len - half].copy_from_slice(&self.node[half..len]);
        upper.second[..len - half].copy_from_slice(&self.second[half..len]);
        for (theirs, ours) in upper.ends.iter_mut().zip(&self.ends) {
            theirs[..len - half].copy_from_slice(&ours[half..len]);
        }
        self.len = half;
        upper
    }

    /// The latest end and the longest gap of a tier.
    fn extremes(&self, tier: usize) -> (i32, i32) {
        let ends = &self.ends[tier][..self.len];
        let latest = ends.iter().fold(NONE, |most, end| most.max(*end));
        let longest = ends.iter().zip(&self.second).fold(NONE, |most, (end, second)| most.max(end.saturating_sub(*second)));
        (latest, longest)
    }
}

#[derive(Debug, Default)]
pub struct Gaps {
    /// Second 0, in microseconds.
    origin: Micros,
    tiers: usize,
    blocks: Vec<Box<Block>>,
    /// The first key of each block.
    firsts: Vec<(Micros, NodeIdx)>,
    /// For each tier, by block.
    latest: Vec<Vec<i32>>,
    longest: Vec<Vec<i32>>,
}

impl Gaps {
    /// Takes entries in the order of their keys.
    pub fn build(&mut self, origin: Micros, tiers: usize, entries: &[(Micros, NodeIdx, Ends)]) {
        *self = Gaps { origin, tiers, latest: vec![Vec::new(); tiers], longest: vec![Vec::new(); tiers], ..Gaps::default() };
        // Three quarters full: the next entries go between these.
        for chunk in entries.chunks(BLOCK * 3 / 4) {
            let mut block = Block::new();
            block.len = chunk.len();
            for (i, (from, node, ends)) in chunk.iter().enumerate() {
                (block.from[i], block.node[i], block.second[i]) = (*from, *node, self.second(*from));
                for (tier, end) in ends[..tiers].iter().enumerate() {
                    block.ends[tier][i] = *end;
                }
            }
            self.push_block(self.blocks.len(), block);
        }
    }

    fn push_block(&mut self, at: usize, block: Box<Block>) {
        self.firsts.insert(at, block.key(0));
        for tier in 0..self.tiers {
            let (latest, longest) = block.extremes(tier);
            self.latest[tier].insert(at, latest);
            self.longest[tier].insert(at, longest);
        }
        self.blocks.insert(at, block);
    }

    fn second(&self, at: Micros) -> i32 {
        at.saturating_sub(self.origin).div_euclid(SECOND).clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX) - 1) as i32
    }

    /// An end as the index keeps it: rounded up.
    pub fn end(origin: Micros, at: Micros) -> i32 {
        if at == NEVER {
            return OPEN;
        }
        let seconds = at.saturating_sub(origin).saturating_add(SECOND - 1).div_euclid(SECOND);
        seconds.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX) - 1) as i32
    }

    pub const NO_ENDS: Ends = [NONE; MOST];

    /// Says anew where the gaps of `tiers` end that begin at this instant on this node: those of `begun` at `ends`, the others begin
    /// elsewhere.
    pub fn set(&mut self, key: (Micros, NodeIdx), tiers: TierSet, begun: TierSet, ends: &Ends) {
        let b = self.firsts.partition_point(|first| *first <= key).saturating_sub(1);
        let i = self.blocks.get(b).map_or(0, |block| block.find(key));
        let is_known = self.blocks.get(b).is_some_and(|block| i < block.len && block.key(i) == key);
        if !is_known {
            if begun != 0 {
                self.insert(b, i, key, begun, ends);
            }
            return;
        }
        let block = &mut self.blocks[b];
        for tier in members(tiers) {
            let end = if begun & 1 << tier != 0 { ends[tier] } else { NONE };
            let old = std::mem::replace(&mut block.ends[tier][i], end);
            let length = |end: i32| end.saturating_sub(block.second[i]);
            let (latest, longest) = (&mut self.latest[tier][b], &mut self.longest[tier][b]);
            if end < old && (old == *latest || length(old) == *longest) {
                (*latest, *longest) = block.extremes(tier);
            } else {
                (*latest, *longest) = ((*latest).max(end), (*longest).max(length(end)));
            }
        }
        if (0..self.tiers).all(|tier| block.ends[tier][i] == NONE) {
            block.remove(i, self.tiers);
            if block.len == 0 {
                self.drop_block(b);
            } else {
                self.firsts[b] = block.key(0);
            }
        }
    }

    fn insert(&mut self, mut b: usize, mut i: usize, key: (Micros, NodeIdx), begun: TierSet, ends: &Ends) {
        let second = self.second(key.0);
        if self.blocks.is_empty() {
            let mut block = Block::new();
            block.insert(0, key, second, self.tiers);
            self.push_block(0, block);
        } else {
            if self.blocks[b].len == BLOCK {
                let upper = self.blocks[b].split();
                let half = self.blocks[b].len;
                self.push_block(b + 1, upper);
                for tier in 0..self.tiers {
                    (self.latest[tier][b], self.longest[tier][b]) = self.blocks[b].extremes(tier);
                }
                if i > half {
                    (b, i) = (b + 1, i - half);
                }
            }
            self.blocks[b].insert(i, key, second, self.tiers);
        }
        let block = &mut self.blocks[b];
        self.firsts[b] = block.key(0);
        for tier in members(begun) {
            block.ends[tier][i] = ends[tier];
            self.latest[tier][b] = self.latest[tier][b].max(ends[tier]);
            self.longest[tier][b] = self.longest[tier][b].max(ends[tier].saturating_sub(second));
        }
    }

    fn drop_block(&mut self, b: usize) {
        self.blocks.remove(b);
        self.firsts.remove(b);
        for tier in 0..self.tiers {
            self.latest[tier].remove(b);
            self.longest[tier].remove(b);
        }
    }

    /// The next gap of a tier, from `place` on, that is at least `length` long and ends at `until` or later. Moves `place` behind it.
    #[inline]
    pub fn next(&self, place: &mut Place, tier: usize, length: Micros, until: Micros) -> Option<(Micros, NodeIdx)> {
        // Rounded down: lengths and instants compare with ends that were rounded up.
        let length = (length / SECOND).min(i64::from(i32::MAX) - 1) as i32;
        let until = self.second(until);
        let (latest, longest) = (&self.latest[tier], &self.longest[tier]);
        while place.block < self.blocks.len() {
            let b = place.block;
            if latest[b] >= until && longest[b] >= length {
                let block = &self.blocks[b];
                let (ends, seconds) = (&block.ends[tier][..block.len], &block.second[..block.len]);
                for i in place.entry..block.len {
                    if ends[i] >= until && ends[i].saturating_sub(seconds[i]) >= length {
                        place.entry = i + 1;
                        return Some(block.key(i));
                    }
                }
            }
            *place = Place { block: b + 1, entry: 0 };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What is in the index, by asking for everything.
    fn walk(gaps: &Gaps, tier: usize, length: Micros, until: Micros) -> Vec<(Micros, NodeIdx)> {
        let mut place = Place::default();
        std::iter::from_fn(|| gaps.next(&mut place, tier, length, until)).collect()
    }

    #[test]
    fn it_finds_what_a_plain_map_holds() {
        let mut gaps = Gaps::default();
        gaps.build(0, 2, &[]);
        let mut plain: BTreeMap<(Micros, NodeIdx), Ends> = BTreeMap::new();
        let mut seed = 7u64;
        let mut roll = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for _ in 0..20_000 {
            let key = ((roll(40) as Micros) * SECOND, roll(30) as NodeIdx);
            let (tiers, begun) = (0b11, roll(4) as TierSet);
            let mut ends = Gaps::NO_ENDS;
            members(begun).for_each(|tier| ends[tier] = Gaps::end(0, key.0 + (1 + roll(50) as Micros) * SECOND));
            gaps.set(key, tiers, begun, &ends);
            if begun == 0 {
                plain.remove(&key)
            } else {
                plain.insert(key, ends)
            };
        }
        for (tier, length, until) in [(0, 0, 0), (1, 20, 0), (0, 45, 30), (1, 5, 70)] {
            let long = |(key, ends): (&(Micros, NodeIdx), &Ends)| {
                let end = i64::from(ends[tier]) * SECOND;
                (ends[tier] != NONE && end >= until * SECOND && end - key.0 >= length * SECOND).then_some(*key)
            };
            assert_eq!(walk(&gaps, tier, length * SECOND, until * SECOND), plain.iter().filter_map(long).collect::<Vec<_>>());
        }
    }
}
