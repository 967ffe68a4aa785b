//! The order of filling now: of nodes that can carry a job at this instant, which one gets it.
//!
//! Lowest weight first, then what has the least GPUs, then the least CPUs free, then the lowest number. So small jobs go where
//! little is left, and whole nodes stay whole.

use std::collections::BTreeSet;

use crate::amount::Amount;
use crate::fleet::{Fleet, NodeIdx};

/// A node's rank among those of its class: free GPUs, free CPUs, number.
pub type Rank = (u32, u32, NodeIdx);

#[derive(Debug, Default)]
pub struct Filling {
    /// Free now if nobody had planned starts, by node.
    pub free: Vec<Amount>,
    /// Usable nodes by class.
    by_class: Vec<BTreeSet<Rank>>,
}

impl Filling {
    /// Begins anew with what is free on each node.
    pub fn build(&mut self, fleet: &Fleet, free: Vec<Amount>) {
        let mut ranks: Vec<Vec<Rank>> = vec![Vec::new(); fleet.classes.len()];
        for (at, free) in (0..).zip(&free) {
            let entry = &fleet.nodes[at as usize];
            if entry.is_usable {
                ranks[entry.class as usize].push(rank(free, at));
            }
        }
        self.by_class = ranks.into_iter().map(BTreeSet::from_iter).collect();
        self.free = free;
    }

    pub fn set(&mut self, fleet: &Fleet, at: NodeIdx, free: Amount) {
        let old = std::mem::replace(&mut self.free[at as usize], free);
        let entry = &fleet.nodes[at as usize];
        if old != free && entry.is_usable {
            let ranks = &mut self.by_class[entry.class as usize];
            ranks.remove(&rank(&old, at));
            ranks.insert(rank(&free, at));
        }
    }

    /// Nodes of a class that have `need` free now, in the order of filling.
    pub fn with_room<'a>(&'a self, class: u32, need: &'a Amount) -> impl Iterator<Item = Rank> + 'a {
        let ranks = &self.by_class[class as usize];
        let mut list = ranks.range((need.gpu_count(), need.cpus, 0)..);
        std::iter::from_fn(move || {
            loop {
                let rank = *list.next()?;
                if rank.1 < need.cpus {
                    // Of those with as many GPUs, on to the first with the CPUs.
                    list = ranks.range((rank.0, need.cpus, 0)..);
                } else if self.free[rank.2 as usize].covers(need) {
                    return Some(rank);
                }
            }
        })
    }
}

pub fn rank(free: &Amount, at: NodeIdx) -> Rank {
    (free.gpu_count(), free.cpus, at)
}
