//! Jobs that share nodes with none but their own kind: `--exclusive=user`.
//!
//! To everybody else such a job takes the whole of its nodes, so all that plans for others keeps off them and is told nothing new. To a
//! job of the same user that asks for the same it takes what it was given. And to it whoever else is on a node takes the whole.
//!
//! So the lines of the profile are right for all others, and where none of its own is they are right for such a job too: it begins where
//! the whole node is free. Where some of its own are, the node is drawn for it anew. All its nodes are looked at, each time: that costs
//! those who ask for it, and nobody else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use berth_model::Name;
use berth_model::event::JobSnapshot;

use crate::amount::{Amount, Micros, NEVER};
use crate::fit::{Fit, Variant, spread};
use crate::fleet::{Fleet, NodeIdx};
use crate::keys::KeyId;
use crate::pass::{Found, Pass};
use crate::profile::Profile;
use crate::shape::{Share, even_share, node_need};
use crate::views::{self, Taken};

/// Whose jobs share with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sharer {
    tenant: Name,
    user: Name,
}

impl Sharer {
    /// Of a job that shares nodes with none but its own kind.
    pub fn of(job: &JobSnapshot) -> Option<Arc<Sharer>> {
        job.shape.exclusive_user.then(|| Arc::new(Sharer { tenant: job.tenant.clone(), user: job.user.clone() }))
    }
}

/// A node as a sharer's jobs see it: what is free from each instant on; the first reaches back for ever.
struct Sight {
    node: NodeIdx,
    /// Some of the sharer's own are there.
    is_shared: bool,
    steps: Vec<(Micros, Amount)>,
}

impl Sight {
    fn of(fleet: &Fleet, profile: &Profile, node: NodeIdx, sharer: &Sharer, now: Micros) -> Sight {
        let total = fleet.class(node).total;
        let taken = taken(fleet, profile, node, sharer, now);
        let is_shared = taken.is_some();
        let steps = match taken {
            Some(taken) => views::steps(fleet, node, &taken),
            None => {
                let free = |free: &Amount| if free.covers(&total) { total } else { Amount::default() };
                profile.lines[node as usize].steps().map(|(from, there)| (from, free(there))).collect()
            }
        };
        Sight { node, is_shared, steps }
    }

    /// The least that is free over `from..to`; nothing where it sees nothing free.
    fn least_free(&self, from: Micros, to: Micros) -> Option<Amount> {
        let first = self.steps.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let there = self.steps[first..].iter().enumerate().take_while(|(i, (at, _))| *i == 0 || *at < to);
        there.map(|(_, (_, free))| *free).reduce(|least, free| least.least(&free)).filter(|free| free.cpus > 0)
    }

    /// From when until when a need may begin that lasts for `length`: first and last instants, none before `from`.
    fn windows(&self, need: &Amount, from: Micros, length: Micros) -> Vec<(Micros, Micros)> {
        let mut windows = Vec::new();
        let mut begun: Option<Micros> = None;
        for (i, (at, free)) in self.steps.iter().enumerate() {
            let end = self.steps.get(i + 1).map_or(NEVER, |(next, _)| *next);
            if !free.covers(need) {
                begun = None;
                continue;
            }
            let first = (*begun.get_or_insert(*at)).max(from);
            let goes_on = self.steps.get(i + 1).is_some_and(|(_, next)| next.covers(need));
            let last = if end == NEVER { NEVER } else { end.saturating_sub(length) };
            if !goes_on && last >= first {
                windows.push((first, last));
            }
        }
        windows
    }
}

/// What is held and planned on a node in the sharer's eyes; nothing if none of it is its own.
fn taken(fleet: &Fleet, profile: &Profile, node: NodeIdx, sharer: &Sharer, now: Micros) -> Option<Vec<Taken>> {
    let bookings = || fleet.faces(node).flat_map(|face| profile.bookings(face).iter().map(move |booking| (face, booking)));
    let held_own = |holding: &crate::fleet::Holding| holding.sharer.as_deref() == Some(sharer);
    let is_own = fleet.holdings(node).iter().any(held_own)
        || bookings().any(|(_, booking)| booking.shared.as_ref().is_some_and(|(whose, _)| **whose == *sharer));
    if !is_own {
        return None;
    }
    let whole = fleet.class(fleet.real(node)).total;
    let held = fleet.holdings(node).iter().map(|holding| {
        let to = holding.ends(now);
        let amount = if held_own(holding) { holding.own } else { whole };
        Taken { from: Micros::MIN, to, amount, via: holding.via }
    });
    let planned = bookings().map(|(face, booking)| {
        let amount = match &booking.shared {
            Some((whose, own)) if **whose == *sharer => *own,
            _ => whole,
        };
        Taken { from: booking.held.from, to: booking.held.to, amount, via: fleet.nodes[face as usize].via }
    });
    Some(held.chain(planned).collect())
}

/// The order in which nodes are taken: required ones, those that its own are on already, then as others fill them.
type Rank = (bool, bool, u32, u32, u32, NodeIdx);

impl Pass<'_> {
    /// The earliest start in `from..=latest` of a sharer's job. Of equal instants, the fewest nodes.
    pub fn find_shared(&self, key: KeyId, fit: &Fit, sharer: &Sharer, length: Micros, from: Micros, latest: Micros) -> Option<Found> {
        let required = fit.candidates.required.as_deref()?;
        let sights: Vec<Sight> =
            fit.candidates.usable.iter().map(|at| Sight::of(self.fleet, self.profile, *at, sharer, self.now)).collect();
        let mut best: Option<Found> = None;
        for variant in &fit.variants {
            let latest = best.as_ref().map_or(latest, |best| best.at.saturating_sub(1));
            best = self.find_even(key, fit, variant, &sights, length, from, latest).or(best);
        }
        if !fit.is_loose || best.as_ref().is_some_and(|best| best.at == from) {
            return best;
        }
        let shape = &self.keys.entries[key as usize].key.shape;
        let uneven = |at: Micros| {
            let free = |node: NodeIdx| {
                let sight = sights.binary_search_by_key(&node, |sight| sight.node).ok()?;
                sights[sight].least_free(at, at.saturating_add(length))
            };
            let parts = spread(self.fleet, shape, fit.limits, &fit.candidates.usable, required, free)?;
            Some(Found { key, at, parts })
        };
        if !fit.variants.is_empty() {
            return uneven(from).or(best);
        }
        let mut instants: Vec<Micros> = sights.iter().flat_map(|sight| &sight.steps).map(|(at, _)| (*at).max(from)).collect();
        instants.push(from);
        instants.sort_unstable();
        instants.dedup();
        instants.into_iter().take_while(|at| *at <= latest).find_map(uneven)
    }

    #[allow(clippy::too_many_arguments)]
    fn find_even(
        &self,
        key: KeyId,
        fit: &Fit,
        variant: &Variant,
        sights: &[Sight],
        length: Micros,
        from: Micros,
        latest: Micros,
    ) -> Option<Found> {
        let shape = &self.keys.entries[key as usize].key.shape;
        let required = fit.candidates.required.as_deref()?;
        let share = even_share(shape, variant.nodes, 0);
        let mut coming: Vec<(Micros, Micros, Rank)> = Vec::new();
        for sight in sights {
            let class = self.fleet.class(sight.node);
            let Some(need) = node_need(shape, class, fit.limits, share) else { continue };
            let free = &self.profile.filling.free[sight.node as usize];
            let is_optional = required.binary_search(&sight.node).is_err();
            let rank = (is_optional, !sight.is_shared, class.weight, free.gpu_count(), free.cpus, sight.node);
            coming.extend(sight.windows(&need, from, length).into_iter().map(|(first, last)| (first, last, rank)));
        }
        coming.sort_unstable();
        let mut open: BinaryHeap<Reverse<(Micros, Rank)>> = BinaryHeap::new();
        let mut coming = coming.into_iter().peekable();
        while let Some((at, ..)) = coming.peek().copied().filter(|(at, ..)| *at <= latest) {
            while let Some((_, last, rank)) = coming.next_if(|(first, ..)| *first == at) {
                open.push(Reverse((last, rank)));
            }
            while open.peek().is_some_and(|Reverse((last, _))| *last < at) {
                open.pop();
            }
            if open.len() < variant.nodes as usize {
                continue;
            }
            if let Some(mut nodes) = self.choose(fit, variant, required, open.iter().map(|Reverse((_, rank))| *rank).collect()) {
                nodes.sort_unstable();
                let part = |(node, i): (NodeIdx, u32)| -> (NodeIdx, Share) { (node, even_share(shape, variant.nodes, i)) };
                return Some(Found { key, at, parts: nodes.into_iter().zip(0..).map(part).collect() });
            }
        }
        None
    }

    /// A gang of nodes that are open at the same time.
    fn choose(&self, fit: &Fit, variant: &Variant, required: &[NodeIdx], mut open: Vec<Rank>) -> Option<Vec<NodeIdx>> {
        open.sort_unstable();
        if open.iter().take_while(|(is_optional, ..)| !is_optional).count() < required.len() {
            return None;
        }
        let nodes = open.into_iter().map(|(.., node)| node);
        let gang = variant.nodes as usize;
        if fit.candidates.counted.is_empty() {
            return Some(nodes.take(gang).collect());
        }
        fit.candidates.counted.choose(gang, required.len(), nodes.map(|node| (node, self.fleet.nodes[node as usize].class)))
    }
}
