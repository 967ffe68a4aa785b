//! GPUs that several jobs share, as shards or by MPS.
//!
//! Whoever is the first on a GPU opens it: from then until the last of its sharers has left, it is taken whole from all who do not share it
//! in the same way. So the lines of the profile, which count whole GPUs, are right for all others, and what is opened for a job alone could
//! be so by any job. Later sharers join while there are shares for them at every instant; then only the time by which they lengthen the
//! GPU's being open is taken. What is planned is opened and joined as what runs is, and gets its device when the first of it starts.
//!
//! A job joins the GPU that is the fullest and still holds it, and opens one only if none does, so that whole GPUs stay free. All nodes of the
//! job are looked at, each time: that costs those who ask for it, and nobody else. On nodes that a reservation keeps something of, and
//! where a job shares nodes with none but its own kind, each has a GPU of its own.
//!
//! Example: a GPU of eight shards; A has four until 13:00. B asks for four for two hours at noon: it joins A if the GPU is in nobody's plan from
//! 13:00 to 14:00. From then on, at noon nobody fits; at 13:00 four more do.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use berth_model::gres::{ShareKind, SharedGpu};
use berth_model::resources::{Inventory, NodeAllocation};

use crate::amount::{Amount, Micros, NEVER, SLOTS};
use crate::fit::{Fit, Variant, spread};
use crate::fleet::{Fleet, Holding, NodeIdx};
use crate::keys::KeyId;
use crate::pass::{Found, Pass};
use crate::place;
use crate::profile::{Booking, Profile};
use crate::shape::even_share;
use crate::timeline::{Held, Timeline};

/// A share that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldShare {
    pub of: ShareKind,
    pub count: u32,
    /// It is the one who leaves last, so the GPU counts as its own.
    pub carries: bool,
}

/// An opened GPU of a node: by its index, or one that is only planned yet. By an index it may also be called when those who ran there have
/// gone and those who would join them are left; then it is any GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opened {
    Device(u32),
    Planned(u32),
}

/// A planned share of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    of: ShareKind,
    count: u32,
    slot: usize,
    pub gpu: Opened,
}

/// Into how many shares each GPU of a slot can be divided: of GPUs that differ the fewest, since plans do not tell GPUs of one type apart.
pub fn capacities(inventory: &Inventory, kinds: &[String], of: ShareKind) -> [u32; SLOTS] {
    let mut all = [0; SLOTS];
    for (slot, kind) in kinds.iter().enumerate() {
        let gpus = inventory.gpus.iter().filter(|gpu| gpu.kind == *kind && gpu.fault.is_none());
        all[slot] = gpus.map(|gpu| inventory.shares_of(of, gpu.index)).min().unwrap_or(0);
    }
    all
}

/// Places of those who share a GPU, each with whether it is the last to leave.
pub fn last_sharers(holdings: &[Holding]) -> Vec<(usize, bool)> {
    let sharers = || holdings.iter().enumerate().filter(|(_, holding)| holding.share.is_some());
    let mut last: BTreeMap<Option<u32>, (Micros, usize)> = BTreeMap::new();
    for (i, holding) in sharers() {
        let most = last.entry(holding.gpus.first().copied()).or_insert((holding.end, i));
        *most = (*most).max((holding.end, i));
    }
    sharers().map(|(i, holding)| (i, last[&holding.gpus.first().copied()].1 == i)).collect()
}

/// One GPU of a slot.
fn one(slot: usize) -> Amount {
    let mut gpus = [0; SLOTS];
    gpus[slot] = 1;
    Amount { gpus, ..Amount::default() }
}

fn sharers_on(fleet: &Fleet, at: NodeIdx, gpu: u32) -> impl Iterator<Item = &Holding> {
    fleet.holdings(at).iter().filter(move |holding| holding.share.is_some() && holding.gpus.first() == Some(&gpu))
}

/// The time for which planned sharers take GPUs, beyond that of those who run there.
pub fn planned(fleet: &Fleet, bookings: &[Booking], at: NodeIdx, now: Micros) -> Vec<Held> {
    let mut opened: BTreeMap<Opened, Held> = BTreeMap::new();
    for (held, part) in bookings.iter().filter_map(|booking| Some((booking.held, booking.part?))) {
        let gpu = opened.entry(part.gpu).or_insert(Held { amount: one(part.slot), ..held });
        (gpu.from, gpu.to) = (gpu.from.min(held.from), gpu.to.max(held.to));
    }
    for (gpu, held) in &mut opened {
        if let Opened::Device(index) = gpu
            && let Some(end) = sharers_on(fleet, at, *index).map(|holding| holding.ends(now)).max()
        {
            held.from = end;
        }
    }
    opened.into_values().filter(|held| held.from < held.to).collect()
}

/// Of GPUs whose last sharer goes: what keeps them taken all the same, others that are `left` there or are planned to join.
pub fn kept(fleet: &Fleet, bookings: &[Booking], at: NodeIdx, left: &[&Holding]) -> Vec<(Micros, Amount, Option<u32>)> {
    let is_left = |holding: &Holding| left.iter().any(|other| std::ptr::eq(*other, holding));
    let carriers = fleet.holdings(at).iter().filter(|holding| holding.share.is_some_and(|share| share.carries) && !is_left(holding));
    let keep = |carrier: &Holding| {
        let gpu = *carrier.gpus.first()?;
        let is_awaited = bookings.iter().any(|booking| booking.part.is_some_and(|part| part.gpu == Opened::Device(gpu)));
        let others = sharers_on(fleet, at, gpu).filter(|holding| is_left(holding)).map(|holding| holding.end);
        let end = others.chain(is_awaited.then_some(carrier.end)).max()?;
        Some((end, one(fleet.slot_of(fleet.real(at), gpu)?), carrier.via))
    };
    carriers.filter_map(keep).collect()
}

/// An opened GPU, with those who share it: from when until when, and how many shares.
struct Gpu {
    name: Opened,
    from: Micros,
    to: Micros,
    sharers: Vec<(Micros, Micros, u32)>,
}

impl Gpu {
    /// The most that is taken at an instant of `from..to`.
    fn peak(&self, from: Micros, to: Micros) -> u32 {
        let inside = self.sharers.iter().map(|(begin, ..)| (*begin).max(from)).filter(|begin| *begin < to);
        let taken = |at: Micros| self.sharers.iter().filter(|(begin, end, _)| *begin <= at && at < *end).map(|(.., count)| count).sum();
        inside.chain([from]).map(taken).max().unwrap_or(0)
    }
}

/// A node as a job sees it that asks for a share.
struct Sight<'a> {
    node: NodeIdx,
    line: &'a Timeline,
    /// What it takes besides the GPU, and with one that it opens.
    beside: Amount,
    opening: Amount,
    slot: usize,
    count: u32,
    capacity: u32,
    gpus: Vec<Gpu>,
}

impl<'a> Sight<'a> {
    /// `need`: with a GPU of its own.
    fn of(fleet: &Fleet, profile: &'a Profile, node: NodeIdx, asked: &SharedGpu, need: &Amount, now: Micros) -> Option<Sight<'a>> {
        let slot = need.gpus.iter().position(|count| *count > 0)?;
        let gpus = if fleet.is_reserved(node) { Vec::new() } else { opened(fleet, profile, node, (asked.of, slot), now) };
        Some(Sight {
            node,
            line: &profile.lines[node as usize],
            beside: Amount { gpus: [0; SLOTS], ..*need },
            opening: *need,
            slot,
            count: asked.count,
            capacity: fleet.class(node).shares[asked.of as usize][slot],
            gpus,
        })
    }

    /// The fullest GPU that can be joined over `from..to`, and how much of it is taken.
    fn join(&self, from: Micros, to: Micros) -> Option<(u32, Opened)> {
        let one = one(self.slot);
        let fits = |from: Micros, to: Micros| from >= to || self.line.fits(&one, from, to);
        let can = |gpu: &&Gpu| {
            let meets = from < gpu.to && gpu.from < to;
            // What it is open longer for is taken as a whole GPU.
            meets && gpu.peak(from, to) + self.count <= self.capacity && fits(from, gpu.from) && fits(gpu.to, to)
        };
        let fullness = |gpu: &Gpu| (gpu.peak(from, to), Reverse(gpu.name));
        self.gpus.iter().filter(can).map(fullness).max().map(|(peak, Reverse(name))| (peak, name))
    }

    fn fits(&self, from: Micros, length: Micros) -> bool {
        let to = from.saturating_add(length);
        self.line.fits(&self.beside, from, to) && (self.line.fits(&self.opening, from, to) || self.join(from, to).is_some())
    }

    /// The first instant, not before `from`, at which the share can begin; [`NEVER`] if there is none.
    fn next_fit(&self, from: Micros, length: Micros) -> Micros {
        if self.fits(from, length) {
            return from;
        }
        // A GPU can be joined from when it is open, and where others leave it.
        let of_sharers = self.gpus.iter().flat_map(|gpu| &gpu.sharers).flat_map(|(begin, end, _)| [*begin, *end]).filter(|at| *at > from);
        let mut instants: Vec<Micros> = self.line.steps_after(from).chain(of_sharers).filter(|at| *at < NEVER).collect();
        instants.sort_unstable();
        instants.dedup();
        instants.into_iter().find(|at| self.fits(*at, length)).unwrap_or(NEVER)
    }

    /// What is free over `from..to`, and a GPU where one can be joined.
    fn free(&self, from: Micros, to: Micros) -> Amount {
        let mut free = self.line.least_free(from, to);
        if free.gpus[self.slot] == 0 && self.join(from, to).is_some() {
            free.gpus[self.slot] = 1;
        }
        free
    }
}

/// The GPUs of a slot that are open for this way of sharing, or will be.
fn opened(fleet: &Fleet, profile: &Profile, node: NodeIdx, (of, slot): (ShareKind, usize), now: Micros) -> Vec<Gpu> {
    let mut gpus: BTreeMap<Opened, Vec<(Micros, Micros, u32)>> = BTreeMap::new();
    // One at fault takes nobody more.
    let mut closed: Vec<Opened> = Vec::new();
    for holding in fleet.holdings(node) {
        let (Some(share), Some(gpu)) = (holding.share, holding.gpus.first()) else { continue };
        let name = Opened::Device(*gpu);
        if share.of == of && fleet.slot_of(node, *gpu) == Some(slot) && holding.sharer.is_none() {
            gpus.entry(name).or_default().push((Micros::MIN, holding.ends(now), share.count));
        } else {
            closed.push(name);
        }
    }
    for (held, part) in profile.bookings(node).iter().filter_map(|booking| Some((booking.held, booking.part?))) {
        if part.of == of && part.slot == slot {
            gpus.entry(part.gpu).or_default().push((held.from, held.to, part.count));
        }
    }
    let gpu = |(name, sharers): (Opened, Vec<(Micros, Micros, u32)>)| Gpu {
        name,
        from: sharers.iter().map(|(from, ..)| *from).min().unwrap_or(NEVER),
        to: sharers.iter().map(|(_, to, _)| *to).max().unwrap_or(NEVER),
        sharers,
    };
    gpus.into_iter().filter(|(name, _)| !closed.contains(name)).map(gpu).collect()
}

/// The order in which nodes are taken: required ones, those with the fullest GPU that can be joined, then as others fill them.
type Rank = (bool, Reverse<Option<u32>>, u32, u32, u32, NodeIdx);

impl Pass<'_> {
    /// The earliest start in `from..=latest` of a job that asks for shares. Of equal instants, the fewest nodes.
    pub fn find_on_shared_gpus(
        &mut self,
        key: KeyId,
        fit: &std::sync::Arc<Fit>,
        length: Micros,
        from: Micros,
        latest: Micros,
    ) -> Option<Found> {
        let mut best: Option<Found> = None;
        for (i, variant) in fit.variants.iter().enumerate() {
            let latest = best.as_ref().map_or(latest, |best| best.at.saturating_sub(1));
            // What is learned of those who want whole GPUs does not bind those who may join.
            let floor = self.floors.own(key, i, length, self.now).max(from);
            if floor > latest {
                continue;
            }
            let found = self.find_even_on_shared(key, fit, variant, length, floor, latest);
            let not_before = match &found {
                Ok(found) => found.at,
                Err(not_before) => *not_before,
            };
            if from == self.now {
                self.floors.raise(key, fit, i, length, not_before);
            }
            best = found.ok().or(best);
        }
        if !fit.is_loose || best.as_ref().is_some_and(|best| best.at == from) {
            return best;
        }
        if !fit.variants.is_empty() {
            return self.uneven_on_shared(key, fit, length, from).or(best);
        }
        let lines = fit.candidates.usable.iter().map(|at| &self.profile.lines[*at as usize]);
        let mut instants: Vec<Micros> = lines.flat_map(|line| line.steps_after(from)).chain([from]).collect();
        instants.sort_unstable();
        instants.dedup();
        instants.into_iter().take_while(|at| *at <= latest).find_map(|at| self.uneven_on_shared(key, fit, length, at))
    }

    /// `Err`: not before that instant.
    fn find_even_on_shared(
        &self,
        key: KeyId,
        fit: &Fit,
        variant: &Variant,
        length: Micros,
        from: Micros,
        latest: Micros,
    ) -> Result<Found, Micros> {
        let shape = &self.keys.entries[key as usize].key.shape;
        let (Some(asked), Some(required)) = (shape.gpu_share(), fit.candidates.required.as_deref()) else { return Err(NEVER) };
        let need = |at: NodeIdx| variant.needs[self.fleet.nodes[at as usize].class as usize];
        let sight = |at: &NodeIdx| Sight::of(self.fleet, self.profile, *at, asked, &need(*at)?, self.now);
        let sights: Vec<Sight<'_>> = fit.candidates.usable.iter().filter_map(sight).collect();
        let gang = variant.nodes as usize;
        let mut at = from;
        while at <= latest && at < NEVER {
            let next: Vec<(Micros, &Sight<'_>)> = sights.iter().map(|sight| (sight.next_fit(at, length), sight)).collect();
            let of_required = next.iter().filter(|(_, sight)| required.binary_search(&sight.node).is_ok()).map(|(next, _)| *next);
            let mut firsts: Vec<Micros> = next.iter().map(|(next, _)| *next).collect();
            firsts.sort_unstable();
            // So many nodes at once there are no sooner.
            let soonest = firsts.get(gang - 1).copied().unwrap_or(NEVER).max(of_required.max().unwrap_or(at));
            if soonest > at {
                at = soonest;
                continue;
            }
            let ready = next.iter().filter(|(next, _)| *next == at).map(|(_, sight)| self.rank(sight, required, at, length)).collect();
            match self.choose_ranked(fit, gang, required, ready) {
                Some(mut nodes) => {
                    nodes.sort_unstable();
                    let parts = nodes.into_iter().zip(0..).map(|(node, i)| (node, even_share(shape, variant.nodes, i))).collect();
                    return Ok(Found { key, at, parts });
                }
                // More kinds of nodes are needed than are ready.
                None => at = firsts.into_iter().find(|next| *next > at).unwrap_or(NEVER),
            }
        }
        Err(at)
    }

    fn rank(&self, sight: &Sight<'_>, required: &[NodeIdx], at: Micros, length: Micros) -> Rank {
        let free = &self.profile.filling.free[sight.node as usize];
        let peak = sight.join(at, at.saturating_add(length)).map(|(peak, _)| peak);
        let is_optional = required.binary_search(&sight.node).is_err();
        (is_optional, Reverse(peak), self.fleet.class(sight.node).weight, free.gpu_count(), free.cpus, sight.node)
    }

    fn choose_ranked(&self, fit: &Fit, gang: usize, required: &[NodeIdx], mut ready: Vec<Rank>) -> Option<Vec<NodeIdx>> {
        ready.sort_unstable();
        if ready.iter().take_while(|(is_optional, ..)| !is_optional).count() < required.len() {
            return None;
        }
        let nodes = ready.into_iter().map(|(.., node)| node);
        if fit.candidates.counted.is_empty() {
            return Some(nodes.take(gang).collect());
        }
        fit.candidates.counted.choose(gang, required.len(), nodes.map(|node| (node, self.fleet.nodes[node as usize].class)))
    }

    fn uneven_on_shared(&self, key: KeyId, fit: &Fit, length: Micros, at: Micros) -> Option<Found> {
        let shape = &self.keys.entries[key as usize].key.shape;
        let asked = shape.gpu_share()?;
        let free = |node: NodeIdx| {
            // The least that any part of the job takes: only the GPU's slot is read of it.
            let need = crate::shape::node_need(shape, self.fleet.class(node), fit.limits, crate::shape::Share { tasks: 1, gpus: 0 })?;
            Some(Sight::of(self.fleet, self.profile, node, asked, &need, self.now)?.free(at, at.saturating_add(length)))
        };
        let parts = spread(self.fleet, shape, fit.limits, &fit.candidates.usable, fit.candidates.required.as_deref()?, free)?;
        Some(Found { key, at, parts })
    }

    /// The GPU that a share is planned on; nothing if the job has one of its own. `need`: with a GPU of its own.
    pub fn join(&self, key: KeyId, node: NodeIdx, need: &Amount, from: Micros, length: Micros) -> Option<Part> {
        let key = &self.keys.entries[key as usize].key;
        let asked = key.shape.gpu_share().filter(|_| key.sharer.is_none() && !self.fleet.is_reserved(node))?;
        let sight = Sight::of(self.fleet, self.profile, node, asked, need, self.now)?;
        let known = sight.join(from, from.saturating_add(length)).map(|(_, gpu)| gpu);
        let gpu = known.unwrap_or_else(|| fresh(self.profile.bookings(node)));
        Some(Part { of: asked.of, count: asked.count, slot: sight.slot, gpu })
    }

    /// Gives a job that starts its share: of the GPU that it joins, or of one that it opens. `own`: with a GPU if it is to have one of its own.
    pub fn allocate_share(
        &mut self,
        key: KeyId,
        at: NodeIdx,
        own: Amount,
        part: Option<Part>,
        asked: SharedGpu,
        tasks: u32,
    ) -> NodeAllocation {
        let cores = self.core_use(key, at);
        let joined = match part.map(|part| part.gpu) {
            Some(Opened::Device(gpu)) if sharers_on(self.fleet, at, gpu).next().is_some() => Some(gpu),
            _ => None,
        };
        if let Some(gpu) = joined {
            let need = Amount { gpus: [0; SLOTS], ..own };
            return NodeAllocation { gpus: vec![gpu], share: Some(asked), ..place::allocate(self.fleet, at, &need, cores, tasks) };
        }
        let need = part.map_or(own, |part| Amount { gpus: one(part.slot).gpus, ..own });
        let given = place::allocate(self.fleet, at, &need, cores, tasks);
        if let (Some(part), Some(gpu)) = (part, given.gpus.first()) {
            // Those who are left of others that once ran there have any other GPU.
            if part.gpu != Opened::Device(*gpu) {
                let other = fresh(self.profile.bookings(at));
                self.profile.rename(at, Opened::Device(*gpu), other);
                self.profile.rename(at, part.gpu, Opened::Device(*gpu));
            }
        }
        NodeAllocation { share: Some(asked), ..given }
    }
}

/// A GPU that nothing is planned on.
fn fresh(bookings: &[Booking]) -> Opened {
    let last = bookings.iter().filter_map(|booking| booking.part).map(|part| match part.gpu {
        Opened::Planned(number) => number + 1,
        Opened::Device(_) => 0,
    });
    Opened::Planned(last.max().unwrap_or(0))
}
