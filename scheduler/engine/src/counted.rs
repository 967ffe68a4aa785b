//! Nodes counted by their features: a gang of which so many are of one kind, so many of another, each node standing for one at most.
//!
//! Whether some nodes do is told by their classes alone: for every set of kinds there must be as many nodes of any of them as the set asks
//! for together (Hall's theorem). Which nodes are taken: in a given order each that still has a place, where others may move over to make
//! it; that gives the first nodes of the order that do (the kinds' places are a matroid).
//!
//! Example: 2 of `a` and 1 of `b`, and nodes n1 (a), n2 (a and b), n3 (a). Taken in this order n1 and n2 stand for `a`; with n3, n2 moves
//! over to `b`.

use std::collections::BTreeMap;

use berth_model::validate::NodeCount;

use crate::fleet::{Class, NodeIdx};

/// The kinds that a node is of, one bit each.
type Mask = u8;

/// Numbers of nodes by the kinds they are of.
pub type ByMask = BTreeMap<Mask, u32>;

#[derive(Debug, Default)]
pub struct Counted {
    /// Of each kind.
    counts: Vec<u32>,
    /// By class.
    masks: Vec<Mask>,
}

impl Counted {
    pub fn new(counts: &[NodeCount], classes: &[Class]) -> Counted {
        let is_of = |class: &Class, kind: &NodeCount| kind.any_of.iter().any(|all| all.is_subset(&class.features));
        let mask = |class: &Class| (0..).zip(counts).filter(|(_, kind)| is_of(class, kind)).fold(0, |mask: Mask, (i, _)| mask | 1 << i);
        Counted { counts: counts.iter().map(|kind| kind.count).collect(), masks: classes.iter().map(mask).collect() }
    }

    /// Nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub fn mask(&self, class: u32) -> Mask {
        self.masks[class as usize]
    }

    /// All that is counted, together.
    fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// As many nodes of each class do for a gang of so many.
    pub fn do_for(&self, gang: u32, by_class: impl Iterator<Item = (u32, u32)>) -> bool {
        let mut nodes = ByMask::new();
        by_class.for_each(|(class, count)| *nodes.entry(self.mask(class)).or_insert(0) += count);
        self.total() <= u64::from(gang) && self.are_met(&nodes)
    }

    /// There are enough nodes of all kinds.
    pub fn are_met(&self, nodes: &ByMask) -> bool {
        (1..1u32 << self.counts.len()).all(|kinds| {
            let kinds = kinds as Mask;
            let asked: u64 = (0..).zip(&self.counts).filter(|(i, _)| kinds & 1 << i != 0).map(|(_, count)| u64::from(*count)).sum();
            let there: u64 = nodes.iter().filter(|(mask, _)| *mask & kinds != 0).map(|(_, count)| u64::from(*count)).sum();
            there >= asked
        })
    }

    /// A gang of the first nodes that do, in their order; all of the first `required` are among them. Nothing if there is none.
    pub fn choose(&self, gang: usize, required: usize, nodes: impl Iterator<Item = (NodeIdx, u32)>) -> Option<Vec<NodeIdx>> {
        let others = gang.checked_sub(usize::try_from(self.total()).ok()?)?;
        let mut places = Places { counted: self, taken: vec![BTreeMap::new(); self.counts.len()], left: self.total() };
        let (mut chosen, mut rest) = (Vec::with_capacity(gang), Vec::new());
        for (i, (node, class)) in nodes.enumerate() {
            if places.left > 0 && places.take(self.mask(class)) {
                chosen.push(node);
            } else if rest.len() < others {
                rest.push(node);
            } else if i < required {
                return None;
            }
            if places.left == 0 && rest.len() == others {
                break;
            }
        }
        chosen.append(&mut rest);
        (places.left == 0 && chosen.len() == gang && required <= gang).then_some(chosen)
    }
}

/// Who stands for what.
struct Places<'a> {
    counted: &'a Counted,
    /// By kind: how many nodes of which kinds stand for it.
    taken: Vec<ByMask>,
    left: u64,
}

impl Places<'_> {
    /// Gives a node of these kinds a place, if there is one.
    fn take(&mut self, mask: Mask) -> bool {
        let kinds = self.counted.counts.len();
        // Breadth first over kinds: from each, nodes that stand for it may move to others that they are of.
        let mut from: Vec<Option<(usize, Mask)>> = vec![None; kinds];
        let mut queue: Vec<usize> = (0..kinds).filter(|kind| mask & 1 << kind != 0).collect();
        let mut seen: Mask = mask;
        let mut at = 0;
        while let Some(kind) = queue.get(at).copied() {
            at += 1;
            let used: u32 = self.taken[kind].values().sum();
            if used < self.counted.counts[kind] {
                self.shift(kind, mask, &from);
                return true;
            }
            for mover in self.taken[kind].keys().copied().collect::<Vec<Mask>>() {
                for next in (0..kinds).filter(|next| mover & 1 << next != 0 && seen & 1 << next == 0).collect::<Vec<_>>() {
                    seen |= 1 << next;
                    from[next] = Some((kind, mover));
                    queue.push(next);
                }
            }
        }
        false
    }

    /// Moves nodes along the way that was found to a free place, and takes the one that this leaves.
    fn shift(&mut self, free: usize, mask: Mask, from: &[Option<(usize, Mask)>]) {
        let mut kind = free;
        while let Some((before, mover)) = from[kind] {
            let there = self.taken[before].get_mut(&mover).expect("who moves stands there");
            *there -= 1;
            if *there == 0 {
                self.taken[before].remove(&mover);
            }
            *self.taken[kind].entry(mover).or_insert(0) += 1;
            kind = before;
        }
        *self.taken[kind].entry(mask).or_insert(0) += 1;
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Classes are masks here.
    fn of(counts: &[u32]) -> Counted {
        Counted { counts: counts.to_vec(), masks: (0..8).collect() }
    }

    fn choose(counts: &[u32], gang: usize, required: usize, masks: &[u32]) -> Option<Vec<NodeIdx>> {
        of(counts).choose(gang, required, (0..).zip(masks.iter().copied()))
    }

    #[test]
    fn nodes_move_over_to_make_place() {
        assert_eq!(choose(&[2, 1], 3, 0, &[1, 3, 1]), Some(vec![0, 1, 2]));
        assert_eq!(choose(&[2, 1], 3, 0, &[1, 1, 1, 1, 2]), Some(vec![0, 1, 4]));
        assert_eq!(choose(&[2, 1], 3, 0, &[1, 1, 1]), None);
        assert_eq!(choose(&[1], 3, 0, &[0, 0, 0, 1]), Some(vec![3, 0, 1]), "the rest in their order");
        assert_eq!(choose(&[1], 2, 2, &[0, 0, 1]), None, "those required leave no room for it");
        assert_eq!(choose(&[2], 1, 0, &[1, 1]), None, "more are counted than there are nodes");
    }

    proptest! {
        /// What Hall's theorem tells is what is chosen, and the first nodes that do are chosen: none could be left for an earlier one.
        #[test]
        fn a_gang_is_found_exactly_if_there_is_one(counts in prop::collection::vec(1u32..4, 1..4), more in 0usize..3, masks in prop::collection::vec(0u32..8, 0..12)) {
            let kinds = (1u32 << counts.len()) - 1;
            let masks: Vec<u32> = masks.into_iter().map(|mask| mask & kinds).collect();
            let gang = counts.iter().sum::<u32>() as usize + more;
            let counted = of(&counts);
            let can = masks.len() >= gang && counted.do_for(gang as u32, masks.iter().map(|mask| (*mask, 1)));
            let chosen = choose(&counts, gang, 0, &masks);
            prop_assert_eq!(chosen.is_some(), can);
            if let Some(chosen) = chosen {
                let mut distinct = chosen.clone();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(distinct.len(), gang);
                prop_assert!(counted.do_for(gang as u32, chosen.iter().map(|node| (masks[*node as usize], 1))));
            }
        }
    }
}
