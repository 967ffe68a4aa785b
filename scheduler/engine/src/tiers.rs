//! Tiers: up to sixteen amounts of one class's nodes by which its gaps are sorted.
//!
//! The index of gaps cannot hold a list for each of thousands of needs. It holds one for each tier, and a need is looked up in
//! the tightest tier that it covers: every node that can carry the need is in that list, and few that cannot. Which amounts are
//! tiers decides only how long a search takes, never what it finds.

use std::collections::BTreeMap;

use crate::amount::{Amount, SLOTS};

/// Tiers of a class at the most.
pub const MOST: usize = 16;

/// A set of tiers, one bit each.
pub type TierSet = u32;

/// Bits of a set, ascending.
pub fn members(mut set: TierSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let tier = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (tier < MOST).then_some(tier)
    })
}

#[derive(Debug, Default)]
pub struct Tiers {
    /// The first is nothing at all: it covers every need.
    floors: Vec<Amount>,
}

impl Tiers {
    /// Tiers for `needs`, each with the number of jobs that have it. With few needs each is a tier of its own.
    pub fn of(needs: &BTreeMap<Amount, u32>) -> Self {
        let mut bands = bands(needs);
        while bands.len() < MOST - 1 {
            let Some(widest) = (0..bands.len()).max_by_key(|i| (bands[*i].slack(), *i)).filter(|i| bands[*i].slack() > 0) else { break };
            let upper = bands[widest].split();
            bands.push(upper);
        }
        let mut floors: Vec<Amount> = bands.iter().map(Band::floor).collect();
        floors.push(Amount::default());
        floors.sort_unstable_by_key(height);
        floors.dedup();
        Tiers { floors }
    }

    pub fn len(&self) -> usize {
        self.floors.len()
    }

    /// The tiers of `among` that `free` covers.
    #[inline]
    pub fn covered(&self, free: &Amount, among: TierSet) -> TierSet {
        members(among).filter(|tier| free.covers(&self.floors[*tier])).fold(0, |set, tier| set | 1 << tier)
    }

    pub fn all(&self) -> TierSet {
        ((1u64 << self.floors.len()) - 1) as TierSet
    }

    /// The tightest tier that `need` covers.
    pub fn of_need(&self, need: &Amount) -> usize {
        (0..self.floors.len()).rev().find(|tier| need.covers(&self.floors[*tier])).unwrap_or(0)
    }
}

/// GPUs bind first, then CPUs, then memory.
fn height(floor: &Amount) -> (u32, u32, u64, [u16; SLOTS]) {
    (floor.gpu_count(), floor.cpus, floor.memory, floor.gpus)
}

/// Needs with the same GPUs that share a tier.
struct Band {
    needs: Vec<(Amount, u32)>,
}

/// One band for each number of GPUs; if there are too many, the bands that most jobs are in.
fn bands(needs: &BTreeMap<Amount, u32>) -> Vec<Band> {
    let mut by_gpus: BTreeMap<[u16; SLOTS], Band> = BTreeMap::new();
    for (need, jobs) in needs {
        by_gpus.entry(need.gpus).or_insert_with(|| Band { needs: Vec::new() }).needs.push((*need, *jobs));
    }
    let mut bands: Vec<Band> = by_gpus.into_values().collect();
    // Stable: of equally many jobs, the fewer GPUs.
    bands.sort_by_key(|band| std::cmp::Reverse(band.needs.iter().map(|(_, jobs)| u64::from(*jobs)).sum::<u64>()));
    bands.truncate(MOST - 1);
    bands
}

impl Band {
    fn floor(&self) -> Amount {
        self.needs.iter().map(|(need, _)| *need).reduce(|least, need| least.least(&need)).unwrap_or_default()
    }

    /// How far its needs lie above its floor, in 1024ths of its largest need, times jobs: by CPUs and by memory.
    fn slacks(&self) -> (u64, u64) {
        let floor = self.floor();
        let most_cpus = self.needs.iter().map(|(need, _)| need.cpus).max().unwrap_or(0).max(1);
        let most_memory = self.needs.iter().map(|(need, _)| need.memory >> 10).max().unwrap_or(0).max(1);
        self.needs.iter().fold((0, 0), |(cpus, memory), (need, jobs)| {
            let jobs = u64::from(*jobs);
            let by_cpus = u64::from(need.cpus - floor.cpus) * 1024 / u64::from(most_cpus);
            (cpus + jobs * by_cpus, memory + jobs * ((need.memory - floor.memory) / most_memory))
        })
    }

    fn slack(&self) -> u64 {
        let (cpus, memory) = self.slacks();
        cpus.max(memory)
    }

    /// Takes away and returns the upper half of the needs by what is spread widest. There is slack, so neither half is empty.
    fn split(&mut self) -> Band {
        let (cpus, memory) = self.slacks();
        let size = |need: &Amount| if cpus >= memory { u64::from(need.cpus) } else { need.memory };
        let jobs = |needs: &[(Amount, u32)]| needs.iter().map(|(_, jobs)| u64::from(*jobs)).sum::<u64>();
        let weighted: u128 = self.needs.iter().map(|(need, jobs)| u128::from(size(need)) * u128::from(*jobs)).sum();
        let mean = (weighted / u128::from(jobs(&self.needs).max(1))) as u64;
        let (upper, lower) = self.needs.iter().partition(|(need, _)| size(need) > mean);
        self.needs = lower;
        Band { needs: upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(gpus: u16, cpus: u32) -> Amount {
        Amount { cpus, gpus: [gpus, 0, 0, 0], memory: 0 }
    }

    #[test]
    fn few_needs_are_tiers_of_their_own() {
        let tiers = Tiers::of(&BTreeMap::from([(need(1, 4), 10), (need(8, 96), 1), (need(1, 8), 3)]));
        assert_eq!(tiers.floors, [need(0, 0), need(1, 4), need(1, 8), need(8, 96)]);
        assert_eq!(tiers.of_need(&need(1, 7)), 1);
        assert_eq!(tiers.covered(&need(2, 6), tiers.all()), 0b0011);
    }

    #[test]
    fn many_needs_share_tiers_that_none_falls_short_of() {
        let needs: BTreeMap<Amount, u32> = (0..9).flat_map(|gpus| (1..40).map(move |cpus| (need(gpus, cpus * 2), 1 + cpus))).collect();
        let tiers = Tiers::of(&needs);
        assert_eq!(tiers.len(), MOST);
        for need in needs.keys() {
            let floor = tiers.floors[tiers.of_need(need)];
            assert!(need.covers(&floor) && floor.gpus == need.gpus, "{need:?} in {floor:?}");
        }
    }
}
