//! The earliest instant at which an even gang fits, and the nodes it then gets.
//!
//! Gaps come in the order of the instants at which they begin, so a search sweeps over time: it counts the nodes whose gaps are
//! open and last long enough, and stops when there are as many as the gang needs. It begins at a lower bound that it is told.
//!
//! Which nodes: now, those that come first in the order of [filling](crate::filling). Later, those whose gaps begin first, then the
//! lowest weight, then the lowest number. Required nodes go before all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::amount::{Amount, Micros, NEVER};
use crate::counted::ByMask;
use crate::filling::Rank;
use crate::fit::Candidates;
use crate::fleet::{Fleet, NodeIdx};
use crate::profile::{Profile, Walk};

/// What is looked for.
pub struct Wanted<'a> {
    pub nodes: u32,
    pub length: Micros,
    /// By class; `None`: this class cannot carry a share.
    pub needs: &'a [Option<Amount>],
    pub candidates: &'a Candidates,
    /// Ascending, all in service.
    pub required: &'a [NodeIdx],
}

#[derive(Debug)]
pub enum Answer {
    /// The earliest start, and its nodes ascending.
    At(Micros, Vec<NodeIdx>),
    /// Not up to the latest instant asked for, nor before this one.
    NotBefore(Micros),
}

/// Nodes with room now that turn out to be booked too soon, after which those that are not are gathered instead.
const MOST_MISSES: usize = 256;

/// A node that can begin `from` some instant. Ascending: the order in which nodes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    from: Micros,
    weight: u32,
    node: NodeIdx,
    /// The walk that found it; a gap that has not been looked into yet is `raw`.
    walk: usize,
    is_raw: bool,
}

struct Sweep<'a> {
    fleet: &'a Fleet,
    profile: &'a mut Profile,
    wanted: &'a Wanted<'a>,
    now: Micros,
    walks: Vec<Walk>,
    /// What comes next: a gap of each walk, and windows that begin later than their gaps.
    coming: BinaryHeap<Reverse<Ready>>,
    /// Nodes that can begin now in the sweep, by the last instant at which they surely can.
    open: BinaryHeap<Reverse<(Micros, Ready)>>,
    required_open: usize,
    /// Of the open ones, where some are counted by their features.
    open_by_mask: ByMask,
}

/// The earliest start from `floor` (a lower bound, not before `now`) up to `latest`.
pub fn earliest(fleet: &Fleet, profile: &mut Profile, wanted: &Wanted<'_>, now: Micros, floor: Micros, latest: Micros) -> Answer {
    let floor = floor.max(required_floor(fleet, profile, wanted, floor));
    if floor > latest || floor == NEVER {
        return Answer::NotBefore(floor);
    }
    let mut sweep = Sweep::new(fleet, profile, wanted, now, floor);
    let found = sweep.run(floor, latest);
    match found {
        Ok(at) if at == now => match choose_now(fleet, profile, wanted, now) {
            Some(nodes) => Answer::At(at, nodes),
            None => unreachable!("nodes that can begin now are in the order of filling"),
        },
        Ok(at) => Answer::At(at, sweep.chosen()),
        Err(not_before) => Answer::NotBefore(not_before),
    }
}

/// No gang begins before each of its required nodes can.
fn required_floor(fleet: &Fleet, profile: &Profile, wanted: &Wanted<'_>, floor: Micros) -> Micros {
    let mut floor = floor;
    loop {
        let next = |at: &NodeIdx| match &wanted.needs[fleet.nodes[*at as usize].class as usize] {
            Some(need) => profile.next_fit(*at, need, floor, wanted.length),
            None => NEVER,
        };
        let latest = wanted.required.iter().map(next).max().unwrap_or(floor);
        if latest == floor {
            return floor;
        }
        floor = latest;
    }
}

impl<'a> Sweep<'a> {
    fn new(fleet: &'a Fleet, profile: &'a mut Profile, wanted: &'a Wanted<'a>, now: Micros, floor: Micros) -> Self {
        let walks = wanted.candidates.classes.iter().filter_map(|class| {
            let need = wanted.needs[*class as usize]?;
            Some(profile.walk(*class, need, wanted.length))
        });
        let walks: Vec<Walk> = walks.collect();
        let coming = BinaryHeap::with_capacity(walks.len() + 1);
        let mut sweep =
            Sweep { fleet, profile, wanted, now, walks, coming, open: BinaryHeap::new(), required_open: 0, open_by_mask: ByMask::new() };
        (0..sweep.walks.len()).for_each(|walk| sweep.advance(walk, floor));
        sweep
    }

    /// Sweeps on until the gang fits; else says before which instant it does not.
    fn run(&mut self, floor: Micros, latest: Micros) -> Result<Micros, Micros> {
        let mut at = floor;
        while let Some(Reverse(next)) = self.coming.pop() {
            if next.from > at {
                if next.from > latest {
                    return Err(next.from);
                }
                at = next.from;
                self.close(at);
            }
            if next.is_raw {
                self.advance(next.walk, at);
            }
            self.look(next, at);
            let are_enough = self.open.len() >= self.wanted.nodes as usize && self.required_open == self.wanted.required.len();
            if are_enough && self.wanted.candidates.counted.are_met(&self.open_by_mask) {
                return Ok(at);
            }
        }
        Err(NEVER)
    }

    /// Puts the walk's next gap among those that come.
    fn advance(&mut self, walk: usize, floor: Micros) {
        if let Some((from, node)) = self.profile.next_gap(&mut self.walks[walk], floor) {
            let weight = self.fleet.class(node).weight;
            self.coming.push(Reverse(Ready { from: from.max(self.now), weight, node, walk, is_raw: true }));
        }
    }

    /// Opens the node if it can begin from that instant on; if from a later one in the same gap, it comes again in that order.
    fn look(&mut self, next: Ready, at: Micros) {
        if !self.wanted.candidates.allows(next.node) {
            return;
        }
        let Some(window) = self.profile.window(&self.walks[next.walk], next.node, next.from, at) else { return };
        let ready = Ready { from: window.first, is_raw: false, ..next };
        if window.first > next.from {
            self.coming.push(Reverse(ready));
        } else {
            self.required_open += usize::from(self.is_required(next.node));
            self.count(next.node, 1);
            self.open.push(Reverse((window.last, ready)));
        }
    }

    /// Closes what cannot begin at `at` any more.
    fn close(&mut self, at: Micros) {
        while let Some(Reverse((_, ready))) = self.open.peek().copied().filter(|Reverse((last, _))| *last < at) {
            self.open.pop();
            self.required_open -= usize::from(self.is_required(ready.node));
            self.count(ready.node, -1);
            self.look(ready, at);
        }
    }

    fn count(&mut self, node: NodeIdx, by: i32) {
        let counted = &self.wanted.candidates.counted;
        if !counted.is_empty() {
            let open = self.open_by_mask.entry(counted.mask(self.fleet.nodes[node as usize].class)).or_insert(0);
            *open = open.saturating_add_signed(by);
        }
    }

    fn is_required(&self, node: NodeIdx) -> bool {
        self.wanted.required.binary_search(&node).is_ok()
    }

    fn chosen(self) -> Vec<NodeIdx> {
        let is_optional = |ready: &Ready| self.wanted.required.binary_search(&ready.node).is_err();
        let mut ready: Vec<Ready> = self.open.iter().map(|Reverse((_, ready))| *ready).collect();
        ready.sort_unstable_by_key(|ready| (is_optional(ready), *ready));
        let mut nodes: Vec<NodeIdx> = if self.wanted.candidates.counted.is_empty() {
            ready.iter().take(self.wanted.nodes as usize).map(|ready| ready.node).collect()
        } else {
            let chosen = choose_counted(self.fleet, self.wanted, ready.iter().map(|ready| ready.node));
            chosen.expect("open nodes that are enough have a gang among them")
        };
        nodes.sort_unstable();
        nodes
    }
}

/// The first nodes, required ones at their head, that are a gang with what is counted.
fn choose_counted(fleet: &Fleet, wanted: &Wanted<'_>, nodes: impl Iterator<Item = NodeIdx>) -> Option<Vec<NodeIdx>> {
    let nodes = nodes.map(|node| (node, fleet.nodes[node as usize].class));
    wanted.candidates.counted.choose(wanted.nodes as usize, wanted.required.len(), nodes)
}

/// The nodes of a gang that fits now: the required ones, then the first in the order of filling.
pub fn choose_now(fleet: &Fleet, profile: &mut Profile, wanted: &Wanted<'_>, now: Micros) -> Option<Vec<NodeIdx>> {
    let fits = |node: NodeIdx, need: &Amount| {
        wanted.candidates.allows(node) && wanted.required.binary_search(&node).is_err() && profile.fits(node, need, now, wanted.length)
    };
    if !wanted.candidates.counted.is_empty() {
        return gather_now(fleet, profile, wanted, now);
    }
    let mut nodes = wanted.required.to_vec();
    let mut classes: Vec<_> =
        wanted.candidates.classes.iter().filter_map(|class| wanted.needs[*class as usize].as_ref().map(|n| (*class, n))).collect();
    classes.sort_unstable_by_key(|(class, _)| (fleet.classes[*class as usize].weight, *class));
    let mut misses = 0;
    for equals in classes.chunk_by(|a, b| fleet.classes[a.0 as usize].weight == fleet.classes[b.0 as usize].weight) {
        let mut lists: Vec<_> = equals.iter().map(|(class, need)| (profile.filling.with_room(*class, need), *need)).collect();
        let mut heads: BinaryHeap<Reverse<(Rank, usize)>> = BinaryHeap::new();
        heads.extend(lists.iter_mut().enumerate().filter_map(|(i, (list, _))| list.next().map(|rank| Reverse((rank, i)))));
        while nodes.len() < wanted.nodes as usize
            && let Some(Reverse((rank, i))) = heads.pop()
        {
            let (list, need) = &mut lists[i];
            if fits(rank.2, need) {
                nodes.push(rank.2);
            } else {
                misses += 1;
            }
            if misses > MOST_MISSES {
                break;
            }
            heads.extend(list.next().map(|rank| Reverse((rank, i))));
        }
    }
    if misses > MOST_MISSES {
        return gather_now(fleet, profile, wanted, now);
    }
    nodes.sort_unstable();
    (nodes.len() == wanted.nodes as usize).then_some(nodes)
}

/// The same nodes by another way: all that can begin now, then the first of them.
fn gather_now(fleet: &Fleet, profile: &mut Profile, wanted: &Wanted<'_>, now: Micros) -> Option<Vec<NodeIdx>> {
    let mut ranked: Vec<(bool, u32, Rank)> = Vec::new();
    for class in &wanted.candidates.classes {
        let Some(need) = wanted.needs[*class as usize] else { continue };
        let mut walk = profile.walk(*class, need, wanted.length);
        while let Some((from, node)) = profile.next_gap(&mut walk, now) {
            if from > now {
                break;
            }
            if wanted.candidates.allows(node) && profile.fits(node, &need, now, wanted.length) {
                let rank = crate::filling::rank(&profile.filling.free[node as usize], node);
                ranked.push((wanted.required.binary_search(&node).is_err(), fleet.class(node).weight, rank));
            }
        }
    }
    let count = wanted.nodes as usize;
    if !wanted.candidates.counted.is_empty() {
        ranked.sort_unstable();
        let mut nodes = choose_counted(fleet, wanted, ranked.into_iter().map(|(_, _, (_, _, node))| node))?;
        nodes.sort_unstable();
        return Some(nodes);
    }
    if count < ranked.len() {
        ranked.select_nth_unstable(count);
        ranked.truncate(count);
    }
    let mut nodes: Vec<NodeIdx> = ranked.into_iter().map(|(_, _, (_, _, node))| node).collect();
    nodes.sort_unstable();
    (nodes.len() == count).then_some(nodes)
}
