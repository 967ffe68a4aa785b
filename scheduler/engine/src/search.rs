//! The earliest instant at which an even gang fits, and the nodes that then suit best.
//!
//! Within a pass resources are only taken, never given back. So what was once found for a key and a length — "not before T" for
//! the gang, "not before t" for each node — stays a lower bound for later jobs alike, and each search goes on where the last ended.

use crate::amount::{Amount, Micros, NEVER};
use crate::fleet::{Fleet, NodeIdx};
use crate::profile::{Profile, fill_rank};

/// Lower bounds for one key, length and gang size.
#[derive(Debug)]
pub struct Search {
    /// The gang cannot start before.
    pub not_before: Micros,
    /// For each candidate: it cannot carry its share before.
    bounds: Vec<Micros>,
    /// The version of the node's line for which the bound is exact.
    seen: Vec<u32>,
}

/// What is looked for.
pub struct Wanted<'a> {
    pub nodes: u32,
    pub length: Micros,
    pub needs: &'a [Option<Amount>],
    pub candidates: &'a [NodeIdx],
    /// Ascending.
    pub required: &'a [NodeIdx],
}

impl Search {
    pub fn from(now: Micros) -> Self {
        Search { not_before: now, bounds: Vec::new(), seen: Vec::new() }
    }

    /// Candidates remembered, as a measure of memory.
    pub fn size(&self) -> usize {
        self.bounds.len()
    }

    /// Drops all but the bound of the gang.
    pub fn forget_nodes(&mut self) {
        self.bounds = Vec::new();
        self.seen = Vec::new();
    }

    fn prepare(&mut self, fleet: &Fleet, profile: &Profile, wanted: &Wanted<'_>) {
        if self.bounds.len() == wanted.candidates.len() {
            return;
        }
        let bound = |at: &NodeIdx| match wanted.needs[fleet.nodes[*at as usize].class as usize] {
            Some(_) => Micros::MIN,
            None => NEVER,
        };
        self.bounds = wanted.candidates.iter().map(bound).collect();
        self.seen = wanted.candidates.iter().map(|at| !profile.version[*at as usize]).collect();
    }

    /// The earliest start up to `latest`, with its nodes ascending. Nothing if there is none; then `not_before` says from when on.
    pub fn earliest(
        &mut self,
        fleet: &Fleet,
        profile: &Profile,
        wanted: &Wanted<'_>,
        now: Micros,
        latest: Micros,
    ) -> Option<(Micros, Vec<NodeIdx>)> {
        if self.not_before > latest {
            return None;
        }
        self.prepare(fleet, profile, wanted);
        let mut ready = Vec::new();
        let mut later = Vec::new();
        while self.not_before <= latest && self.not_before < NEVER {
            self.sort_out(fleet, profile, wanted, &mut ready, &mut later);
            let missing = wanted.required.iter().filter(|at| ready.binary_search(at).is_err()).count();
            if ready.len() >= wanted.nodes as usize && missing == 0 {
                let at = self.not_before;
                return Some((at, choose(fleet, profile, wanted, ready, at, now)));
            }
            self.not_before = self.next_instant(wanted, &mut later, ready.len(), missing > 0);
        }
        None
    }

    /// Brings the bounds up to `not_before`; splits into those ready then and the bounds of the others.
    fn sort_out(&mut self, fleet: &Fleet, profile: &Profile, wanted: &Wanted<'_>, ready: &mut Vec<NodeIdx>, later: &mut Vec<Micros>) {
        let at = self.not_before;
        ready.clear();
        later.clear();
        for (i, &node) in wanted.candidates.iter().enumerate() {
            let mut bound = self.bounds[i];
            let is_stale = bound < at || (bound == at && self.seen[i] != profile.version[node as usize]);
            if is_stale && let Some(need) = &wanted.needs[fleet.nodes[node as usize].class as usize] {
                bound = profile.lines[node as usize].next_fit(need, at, wanted.length);
                self.bounds[i] = bound;
                self.seen[i] = profile.version[node as usize];
            }
            if bound == at {
                ready.push(node);
            } else if bound < NEVER {
                later.push(bound);
            }
        }
    }

    /// With k nodes missing, nothing changes before the k-th next of the others is ready; a missing required node must be ready too.
    fn next_instant(&self, wanted: &Wanted<'_>, later: &mut [Micros], ready: usize, is_required_missing: bool) -> Micros {
        let missing = (wanted.nodes as usize).saturating_sub(ready).max(1);
        if later.len() < missing {
            return NEVER;
        }
        let mut next = *later.select_nth_unstable(missing - 1).1;
        if is_required_missing {
            let bound = |at: &NodeIdx| wanted.candidates.binary_search(at).map_or(NEVER, |i| self.bounds[i]);
            next = next.max(wanted.required.iter().map(bound).max().unwrap_or(next));
        }
        next
    }
}

/// The required ones, then those filled first: lowest weight, least left over, lowest number.
fn choose(fleet: &Fleet, profile: &Profile, wanted: &Wanted<'_>, ready: Vec<NodeIdx>, at: Micros, now: Micros) -> Vec<NodeIdx> {
    let count = wanted.nodes as usize;
    if ready.len() == count {
        return ready;
    }
    let rank = |node: NodeIdx| {
        if at == now {
            return profile.rank_now[node as usize];
        }
        fill_rank(fleet.class(node).weight, profile.lines[node as usize].free_at(at))
    };
    let mut ranked: Vec<(bool, u64, NodeIdx)> =
        ready.into_iter().map(|node| (wanted.required.binary_search(&node).is_err(), rank(node), node)).collect();
    if count < ranked.len() {
        ranked.select_nth_unstable(count);
    }
    ranked.truncate(count);
    let mut chosen: Vec<NodeIdx> = ranked.into_iter().map(|(_, _, node)| node).collect();
    chosen.sort_unstable();
    chosen
}
