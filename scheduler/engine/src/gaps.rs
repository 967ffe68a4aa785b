//! The index of gaps: for all usable nodes of one class, where in time a tier's amount begins to be free, and until when.
//!
//! Entries are sorted by (instant, node). They lie in blocks of up to [`BLOCK`], these in shelves of up to [`SHELF`], and for each block
//! and shelf the index keeps every tier's latest end and longest gap, so that a search passes over what holds nothing long enough.
//! These are upper bounds: when gaps shrink they are left as they are, until a search has looked in vain and corrects them.
//! Within a block each tier's ends lie side by side, for the same reason.
//!
//! Ends are whole seconds since the index's origin, rounded up: an upper bound. Whoever finds an entry asks the node's timeline.

use crate::amount::{Micros, NEVER, SECOND};
use crate::fleet::NodeIdx;
use crate::tiers::{MOST, TierSet, members};

const BLOCK: usize = 64;
const SHELF: usize = 64;

/// No gap of this tier begins here.
const NONE: i32 = i32::MIN;
/// The gap has no end.
const OPEN: i32 = i32::MAX;

pub type Ends = [i32; MOST];
/// An instant and a node.
type Key = (Micros, NodeIdx);

/// Where a search stands: the next entry to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    shelf: usize,
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

    fn key(&self, i: usize) -> Key {
        (self.from[i], self.node[i])
    }

    /// The first entry not before `key`.
    fn find(&self, key: Key) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn insert(&mut self, i: usize, key: Key, second: i32, tiers: usize) {
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

/// What a list of parts holds, by part: the first key, and for each tier the latest end and the longest gap.
#[derive(Debug, Default)]
struct Summary {
    firsts: Vec<Key>,
    latest: Vec<Vec<i32>>,
    longest: Vec<Vec<i32>>,
}

impl Summary {
    fn new(tiers: usize) -> Self {
        Summary { firsts: Vec::new(), latest: vec![Vec::new(); tiers], longest: vec![Vec::new(); tiers] }
    }

    /// The part that holds `key`, or would.
    fn find(&self, key: Key) -> usize {
        self.firsts.partition_point(|first| *first <= key).saturating_sub(1)
    }

    fn insert(&mut self, at: usize, first: Key, extremes: impl Fn(usize) -> (i32, i32)) {
        self.firsts.insert(at, first);
        for (tier, (latest, longest)) in self.latest.iter_mut().zip(&mut self.longest).enumerate() {
            let most = extremes(tier);
            latest.insert(at, most.0);
            longest.insert(at, most.1);
        }
    }

    fn remove(&mut self, at: usize) {
        self.firsts.remove(at);
        self.latest.iter_mut().chain(&mut self.longest).for_each(|list| _ = list.remove(at));
    }

    fn split_off(&mut self, at: usize) -> Self {
        let upper = |lists: &mut Vec<Vec<i32>>| lists.iter_mut().map(|list| list.split_off(at)).collect();
        Summary { latest: upper(&mut self.latest), longest: upper(&mut self.longest), firsts: self.firsts.split_off(at) }
    }

    fn raise(&mut self, at: usize, tier: usize, end: i32, length: i32) {
        let (latest, longest) = (&mut self.latest[tier][at], &mut self.longest[tier][at]);
        (*latest, *longest) = ((*latest).max(end), (*longest).max(length));
    }

    fn put(&mut self, at: usize, tier: usize, most: (i32, i32)) {
        (self.latest[tier][at], self.longest[tier][at]) = most;
    }

    /// Over all parts.
    fn extremes(&self, tier: usize) -> (i32, i32) {
        let most = |list: &[i32]| list.iter().fold(NONE, |most, value| most.max(*value));
        (most(&self.latest[tier]), most(&self.longest[tier]))
    }

    /// The first part from `at` on that may hold a gap that ends at `until` or later and is at least `length` long.
    #[inline]
    fn next(&self, at: usize, tier: usize, length: i32, until: i32) -> Option<usize> {
        let most = self.latest[tier].iter().zip(&self.longest[tier]).skip(at);
        most.enumerate().find(|(_, (latest, longest))| **latest >= until && **longest >= length).map(|(i, _)| at + i)
    }
}

#[derive(Debug, Default)]
struct Shelf {
    blocks: Vec<Box<Block>>,
    summary: Summary,
}

impl Shelf {
    fn new(tiers: usize) -> Self {
        Shelf { blocks: Vec::with_capacity(SHELF), summary: Summary::new(tiers) }
    }

    fn insert(&mut self, at: usize, block: Box<Block>) {
        self.summary.insert(at, block.key(0), |tier| block.extremes(tier));
        self.blocks.insert(at, block);
    }

    fn next(&mut self, place: &mut Place, tier: usize, length: i32, until: i32) -> Option<Key> {
        while let Some(b) = self.summary.next(place.block, tier, length, until) {
            if b > place.block {
                (place.block, place.entry) = (b, 0);
            }
            let block = &self.blocks[b];
            let (ends, seconds) = (&block.ends[tier][..block.len], &block.second[..block.len]);
            for i in place.entry..block.len {
                if ends[i] >= until && ends[i].saturating_sub(seconds[i]) >= length {
                    place.entry = i + 1;
                    return Some(block.key(i));
                }
            }
            if place.entry == 0 {
                self.summary.put(b, tier, block.extremes(tier));
            }
            (place.block, place.entry) = (b + 1, 0);
        }
        None
    }

    fn split(&mut self) -> Shelf {
        let half = self.blocks.len() / 2;
        Shelf { blocks: self.blocks.split_off(half), summary: self.summary.split_off(half) }
    }
}

#[derive(Debug, Default)]
pub struct Gaps {
    /// Second 0, in microseconds.
    origin: Micros,
    tiers: usize,
    shelves: Vec<Shelf>,
    summary: Summary,
}

impl Gaps {
    pub const NO_ENDS: Ends = [NONE; MOST];

    /// Takes entries in the order of their keys.
    pub fn build(&mut self, origin: Micros, tiers: usize, entries: &[(Micros, NodeIdx, Ends)]) {
        *self = Gaps { origin, tiers, shelves: Vec::new(), summary: Summary::new(tiers) };
        // Three quarters and half full: the next entries go between these.
        let mut blocks = entries.chunks(BLOCK * 3 / 4).map(|chunk| {
            let mut block = Block::new();
            block.len = chunk.len();
            for (i, (from, node, ends)) in chunk.iter().enumerate() {
                (block.from[i], block.node[i], block.second[i]) = (*from, *node, second(origin, *from));
                for (tier, end) in ends[..tiers].iter().enumerate() {
                    block.ends[tier][i] = *end;
                }
            }
            block
        });
        while let Some(first) = blocks.next() {
            let mut shelf = Shelf::new(tiers);
            for block in std::iter::once(first).chain(blocks.by_ref().take(SHELF / 2 - 1)) {
                shelf.insert(shelf.blocks.len(), block);
            }
            self.insert_shelf(self.shelves.len(), shelf);
        }
    }

    fn insert_shelf(&mut self, at: usize, shelf: Shelf) {
        self.summary.insert(at, shelf.summary.firsts[0], |tier| shelf.summary.extremes(tier));
        self.shelves.insert(at, shelf);
    }

    /// An end as the index keeps it: rounded up.
    pub fn end(origin: Micros, at: Micros) -> i32 {
        if at == NEVER { OPEN } else { second(origin, at.saturating_add(SECOND - 1)) }
    }

    /// Says anew where the gaps of `tiers` end that begin at this instant on this node: those of `begun` at `ends`, the others begin
    /// elsewhere.
    pub fn set(&mut self, key: Key, tiers: TierSet, begun: TierSet, ends: &Ends) {
        let s = self.summary.find(key);
        let b = self.shelves.get(s).map_or(0, |shelf| shelf.summary.find(key));
        let block = self.shelves.get(s).map(|shelf| &shelf.blocks[b]);
        let i = block.map_or(0, |block| block.find(key));
        if block.is_some_and(|block| i < block.len && block.key(i) == key) {
            self.change((s, b, i), tiers, begun, ends);
        } else if begun != 0 {
            self.insert((s, b, i), key, begun, ends);
        }
    }

    fn change(&mut self, (s, b, i): (usize, usize, usize), tiers: TierSet, begun: TierSet, ends: &Ends) {
        let shelf = &mut self.shelves[s];
        let block = &mut shelf.blocks[b];
        for tier in members(tiers) {
            let end = if begun & 1 << tier != 0 { ends[tier] } else { NONE };
            let old = std::mem::replace(&mut block.ends[tier][i], end);
            if end > old {
                let length = end.saturating_sub(block.second[i]);
                shelf.summary.raise(b, tier, end, length);
                self.summary.raise(s, tier, end, length);
            }
        }
        if block.ends[..self.tiers].iter().all(|ends| ends[i] == NONE) {
            block.remove(i, self.tiers);
            if block.len > 0 {
                shelf.summary.firsts[b] = block.key(0);
            } else {
                shelf.blocks.remove(b);
                shelf.summary.remove(b);
            }
            match shelf.summary.firsts.first() {
                Some(first) => self.summary.firsts[s] = *first,
                None => {
                    self.shelves.remove(s);
                    self.summary.remove(s);
                }
            }
        }
    }

    fn insert(&mut self, (mut s, mut b, mut i): (usize, usize, usize), key: Key, begun: TierSet, ends: &Ends) {
        if self.shelves.is_empty() {
            let mut block = Block::new();
            block.insert(0, key, second(self.origin, key.0), self.tiers);
            let mut shelf = Shelf::new(self.tiers);
            shelf.insert(0, block);
            self.insert_shelf(0, shelf);
        } else {
            (s, b, i) = self.make_room((s, b, i));
            self.shelves[s].blocks[b].insert(i, key, second(self.origin, key.0), self.tiers);
        }
        let shelf = &mut self.shelves[s];
        let block = &mut shelf.blocks[b];
        shelf.summary.firsts[b] = block.key(0);
        self.summary.firsts[s] = shelf.summary.firsts[0];
        for tier in members(begun) {
            block.ends[tier][i] = ends[tier];
            let length = ends[tier].saturating_sub(block.second[i]);
            shelf.summary.raise(b, tier, ends[tier], length);
            self.summary.raise(s, tier, ends[tier], length);
        }
    }

    /// Splits what is full; returns where the new entry goes then.
    fn make_room(&mut self, (mut s, mut b, mut i): (usize, usize, usize)) -> (usize, usize, usize) {
        if self.shelves[s].blocks[b].len < BLOCK {
            return (s, b, i);
        }
        if self.shelves[s].blocks.len() == SHELF {
            let upper = self.shelves[s].split();
            let half = self.shelves[s].blocks.len();
            self.insert_shelf(s + 1, upper);
            (0..self.tiers).for_each(|tier| self.summary.put(s, tier, self.shelves[s].summary.extremes(tier)));
            if b >= half {
                (s, b) = (s + 1, b - half);
            }
        }
        let shelf = &mut self.shelves[s];
        let upper = shelf.blocks[b].split();
        shelf.insert(b + 1, upper);
        (0..self.tiers).for_each(|tier| shelf.summary.put(b, tier, shelf.blocks[b].extremes(tier)));
        let half = shelf.blocks[b].len;
        if i > half {
            (b, i) = (b + 1, i - half);
        }
        (s, b, i)
    }

    /// The place of the first entry behind `key`.
    pub fn behind(&self, (from, node): Key) -> Place {
        let key = (from, node + 1);
        let shelf = self.summary.find(key);
        let block = self.shelves.get(shelf).map_or(0, |shelf| shelf.summary.find(key));
        let entry = self.shelves.get(shelf).map_or(0, |shelf| shelf.blocks[block].find(key));
        Place { shelf, block, entry }
    }

    /// The next gap of a tier, from `place` on, that is at least `length` long and ends at `until` or later. Moves `place` behind it.
    pub fn next(&mut self, place: &mut Place, tier: usize, length: Micros, until: Micros) -> Option<Key> {
        // Rounded down: lengths and instants compare with ends that were rounded up.
        let length = (length / SECOND).min(i64::from(i32::MAX) - 1) as i32;
        let until = second(self.origin, until);
        while place.shelf < self.shelves.len() {
            let shelf = &mut self.shelves[place.shelf];
            let is_whole = (place.block, place.entry) == (0, 0);
            if let Some(found) = shelf.next(place, tier, length, until) {
                return Some(found);
            }
            if is_whole {
                self.summary.put(place.shelf, tier, shelf.summary.extremes(tier));
            }
            let next = self.summary.next(place.shelf + 1, tier, length, until).unwrap_or(self.shelves.len());
            *place = Place { shelf: next, block: 0, entry: 0 };
        }
        None
    }
}

/// Whole seconds since `origin`, rounded down.
fn second(origin: Micros, at: Micros) -> i32 {
    at.saturating_sub(origin).div_euclid(SECOND).clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX) - 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What is in the index, by asking for everything.
    fn walk(gaps: &mut Gaps, tier: usize, length: Micros, until: Micros) -> Vec<(Micros, NodeIdx)> {
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
        for _ in 0..200_000 {
            let key = ((roll(400) as Micros) * SECOND, roll(100) as NodeIdx);
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
            assert_eq!(walk(&mut gaps, tier, length * SECOND, until * SECOND), plain.iter().filter_map(long).collect::<Vec<_>>());
        }
    }
}
