//! One pass over jobs: where the next job of a key fits, and what each start and planned start takes away.
//!
//! All memory of a pass rests on one fact: within it resources are only taken. What failed for a key fails for later jobs of the
//! key that run as long or longer. [`floors`](crate::floors) holds these bounds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_model::cores::CoreUse;
use berth_model::policy::Partition;
use berth_model::{JobId, Name, NodeName};

use crate::accounts::Accounts;
use crate::amount::{Amount, Micros, NEVER, SLOTS};
use crate::backfill::Queued;
use crate::bookings::Bookings;
use crate::claims::Preempting;
use crate::fit::{Fit, Fitness, free_over, spread};
use crate::fleet::{Fleet, Holding, NodeIdx};
use crate::floors::Floors;
use crate::keys::{KeyId, Keys};
use crate::licenses::Licenses;
use crate::limits::{Causes, Memo};
use crate::place;
use crate::plan::{Resume, Start};
use crate::profile::{Booking, Profile};
use crate::search::{Answer, Wanted, choose_now, earliest};
use crate::shape::{Share, core_use, even_share, node_need};
use crate::singles::Trails;
use crate::suspended::Returning;
use crate::timeline::Held;

/// A gang's instant and nodes, ascending.
#[derive(Clone, Debug)]
pub struct Found {
    /// The way it goes.
    pub key: KeyId,
    pub at: Micros,
    pub parts: Vec<(NodeIdx, Share)>,
}

pub struct Pass<'a> {
    pub now: Micros,
    pub fleet: &'a mut Fleet,
    pub profile: &'a mut Profile,
    pub bookings: &'a mut Bookings,
    pub keys: &'a mut Keys,
    pub accounts: &'a mut Accounts,
    pub licenses: &'a mut Licenses,
    partitions: &'a BTreeMap<Name, Partition>,
    /// Tasks started in this pass, by arrays that have a throttle.
    tasks_started: HashMap<JobId, u32>,
    /// Only a full plan preempts.
    pub preempting: Option<Preempting<'a>>,
    /// Suspended jobs that have not been looked at yet, and those that go on.
    pub returning: Vec<Returning>,
    pub resumes: Vec<Resume>,
    pub floors: Floors,
    trails: Trails,
    // Maps that are looked up, never walked in an order that shows.
    pub memo: Memo,
    /// No uneven gang of the key and length starts before.
    uneven_floors: HashMap<(KeyId, Micros), Micros>,
    /// The shortest length for which an uneven gang of the key did not fit now.
    uneven_failed: HashMap<KeyId, Micros>,
}

/// What is worked out for the ways of a job.
pub struct Ways {
    pub first: (KeyId, Arc<Fit>),
    others: Vec<(KeyId, Arc<Fit>)>,
}

impl Ways {
    pub fn all(&self) -> impl Iterator<Item = (KeyId, &Arc<Fit>)> {
        std::iter::once(&self.first).chain(&self.others).map(|(key, fit)| (*key, fit))
    }

    /// By no way nodes can ever carry it: the one that is nearest to it.
    pub fn unfit(&self) -> Option<(KeyId, Fitness)> {
        let nearest = self.all().map(|(key, fit)| (key, fit.fitness)).min_by_key(|(_, fitness)| *fitness)?;
        (nearest.1 != Fitness::Fits).then_some(nearest)
    }

    /// That of a way.
    pub fn fit(&self, key: KeyId) -> &Arc<Fit> {
        self.all().find(|(way, _)| *way == key).map_or(&self.first.1, |(_, fit)| fit)
    }
}

impl<'a> Pass<'a> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        now: Micros,
        fleet: &'a mut Fleet,
        profile: &'a mut Profile,
        bookings: &'a mut Bookings,
        keys: &'a mut Keys,
        accounts: &'a mut Accounts,
        licenses: &'a mut Licenses,
        partitions: &'a BTreeMap<Name, Partition>,
    ) -> Self {
        let floors = Floors::default();
        Pass {
            now,
            fleet,
            profile,
            bookings,
            keys,
            accounts,
            licenses,
            partitions,
            tasks_started: HashMap::new(),
            preempting: None,
            returning: Vec::new(),
            resumes: Vec::new(),
            memo: Memo::default(),
            floors,
            trails: Trails::default(),
            uneven_floors: HashMap::new(),
            uneven_failed: HashMap::new(),
        }
    }

    /// As many tasks of its array as may hold nodes do.
    pub fn is_throttled(&self, queued: &Queued) -> bool {
        queued.throttle.is_some_and(|throttle| self.tasks_started.get(&throttle.array).copied().unwrap_or(0) >= throttle.left())
    }

    /// What is worked out for a key, once a fleet.
    pub fn fit(&mut self, key: KeyId) -> Arc<Fit> {
        self.keys.fit(key, self.fleet, self.partitions)
    }

    /// The same for all its ways.
    pub fn ways(&mut self, queued: &Queued) -> Ways {
        let first = (queued.key, self.fit(queued.key));
        Ways { first, others: queued.others.iter().map(|key| (*key, self.fit(*key))).collect() }
    }

    /// Takes a job's planned starts off the profile. Then no bound holds any more.
    pub fn unbook(&mut self, job: JobId) {
        let nodes = self.bookings.remove(job);
        if !nodes.is_empty() {
            nodes.into_iter().for_each(|at| self.profile.unbook(self.fleet, at, job, self.now));
            self.licenses.unbook(job);
            self.forget_bounds();
        }
    }

    pub fn forget_bounds(&mut self) {
        self.floors = Floors::default();
        self.trails.clear();
        self.uneven_floors.clear();
        self.uneven_failed.clear();
    }

    /// What a job holds on these nodes ends by `end`. Then no bound holds any more.
    pub fn shorten(&mut self, job: JobId, nodes: &[NodeName], end: Micros) {
        for at in nodes.iter().filter_map(|name| self.fleet.find(name)).collect::<Vec<_>>() {
            self.fleet.shorten(at, job, end);
            self.profile.redraw(self.fleet, at, self.now);
        }
        self.licenses.shorten(job, end);
        self.forget_bounds();
    }

    /// Takes a planned start off the profile, and says when its nodes are free of their holders: now, or later.
    pub fn claim(&mut self, job: JobId, key: KeyId) -> Found {
        let booked = self.bookings.nodes(job);
        let shape = &self.keys.entries[key as usize].key.shape;
        let count = booked.len() as u32;
        let free = |at: &NodeIdx| {
            let need = self.profile.bookings(*at).iter().find(|booking| booking.job == job)?.held.amount;
            Some(self.profile.free_of_holders(self.fleet, *at, &need, self.now))
        };
        let at = booked.iter().filter_map(free).max().unwrap_or(self.now);
        let parts = booked.iter().zip(0..).map(|(node, i)| (*node, even_share(shape, count, i))).collect();
        self.unbook(job);
        Found { key, at, parts }
    }

    /// The earliest start of a job up to `latest`, by the way that allows it; of equal ones by the first.
    pub fn find_way(&mut self, queued: &Queued, fits: &Ways, latest: Micros) -> Option<Found> {
        self.find_way_from(queued, fits, self.now, latest)
    }

    /// The same, not before `from`.
    pub fn find_way_from(&mut self, queued: &Queued, fits: &Ways, from: Micros, latest: Micros) -> Option<Found> {
        let mut best: Option<Found> = None;
        for (key, fit) in fits.all() {
            let latest = best.as_ref().map_or(latest, |best| best.at.saturating_sub(1));
            if fit.fitness == Fitness::Fits && latest >= from && self.may_have_licenses(key) {
                best = self.find_from(key, fit, queued.length, from, latest).filter(|found| found.at <= latest).or(best);
            }
        }
        best
    }

    /// The cluster has as many licences as jobs of the key hold.
    pub fn may_have_licenses(&self, key: KeyId) -> bool {
        self.licenses.are_enough(&self.keys.entries[key as usize].key.licenses)
    }

    /// The earliest start up to `latest` of a job of the key that may run for `length`. Of equal instants, the fewest nodes.
    pub fn find(&mut self, key: KeyId, fit: &Arc<Fit>, length: Micros, latest: Micros) -> Option<Found> {
        self.find_from(key, fit, length, self.now, latest)
    }

    fn find_from(&mut self, key: KeyId, fit: &Arc<Fit>, length: Micros, from: Micros, latest: Micros) -> Option<Found> {
        let entry = self.keys.entries[key as usize].key.clone();
        if entry.licenses.is_empty() {
            return self.find_nodes(key, fit, length, from, latest);
        }
        // Nodes and licences take turns: each names the first instant from the other's on, until both name the same.
        let mut from = self.licenses.next_fit(&entry.licenses, from, length);
        while from <= latest && from < NEVER {
            let found = self.find_nodes(key, fit, length, from, latest)?;
            from = self.licenses.next_fit(&entry.licenses, found.at, length);
            if from == found.at {
                return Some(found);
            }
        }
        None
    }

    /// The earliest instant in `from..=latest` at which there are nodes.
    fn find_nodes(&mut self, key: KeyId, fit: &Arc<Fit>, length: Micros, from: Micros, latest: Micros) -> Option<Found> {
        if let Some(sharer) = self.keys.entries[key as usize].key.sharer.clone() {
            return self.find_shared(key, fit, &sharer, length, from, latest);
        }
        if self.keys.entries[key as usize].key.shape.gpu_share().is_some() {
            return self.find_on_shared_gpus(key, fit, length, from, latest);
        }
        let required = fit.candidates.required.as_deref()?;
        let mut best: Option<Found> = None;
        for (i, variant) in fit.variants.iter().enumerate() {
            let wanted = Wanted { nodes: variant.nodes, length, needs: &variant.needs, candidates: &fit.candidates, required };
            let latest = best.as_ref().map_or(latest, |best| best.at.saturating_sub(1));
            let floor = self.floors.get(key, fit, i, length, self.now).max(from);
            if floor > latest {
                continue;
            }
            let answer = if variant.nodes == 1 && required.is_empty() && from == self.now && fit.candidates.counted.is_empty() {
                self.single((key, i), &wanted, latest)
            } else {
                earliest(self.fleet, self.profile, &wanted, self.now, floor, latest)
            };
            let not_before = match answer {
                Answer::At(at, nodes) => {
                    let shape = &self.keys.entries[key as usize].key.shape;
                    let parts = nodes.into_iter().zip(0..).map(|(node, i)| (node, even_share(shape, variant.nodes, i))).collect();
                    best = Some(Found { key, at, parts });
                    at
                }
                Answer::NotBefore(at) => at,
            };
            // What was not looked for before `from` is no bound.
            if from == self.now {
                self.floors.raise(key, fit, i, length, not_before);
            }
        }
        if !fit.is_loose || best.as_ref().is_some_and(|best| best.at == from) {
            return best;
        }
        if fit.variants.is_empty() {
            return self.find_uneven(key, fit, length, from, latest);
        }
        if from > self.now { self.uneven_at(key, fit, length, from).or(best) } else { self.uneven_now(key, fit, length).or(best) }
    }

    fn single(&mut self, key: (KeyId, usize), wanted: &Wanted<'_>, latest: Micros) -> Answer {
        match self.trails.earliest(self.fleet, self.profile, key, wanted, self.now, latest) {
            Ok((at, _)) if at == self.now => Answer::At(
                at,
                choose_now(self.fleet, self.profile, wanted, at).expect("a node that can begin now is in the order of filling"),
            ),
            Ok((at, node)) => Answer::At(at, vec![node]),
            Err(not_before) => Answer::NotBefore(not_before),
        }
    }

    fn uneven_now(&mut self, key: KeyId, fit: &Fit, length: Micros) -> Option<Found> {
        if self.uneven_failed.get(&key).is_some_and(|failed| *failed <= length) {
            return None;
        }
        let found = self.uneven_at(key, fit, length, self.now);
        if found.is_none() {
            self.uneven_failed.insert(key, length);
        }
        found
    }

    fn uneven_at(&self, key: KeyId, fit: &Fit, length: Micros, at: Micros) -> Option<Found> {
        let shape = &self.keys.entries[key as usize].key.shape;
        let free = free_over(self.profile, at, at.saturating_add(length));
        let parts = spread(self.fleet, shape, fit.limits, &fit.candidates.usable, fit.candidates.required.as_deref()?, free)?;
        Some(Found { key, at, parts })
    }

    /// For gangs that no even split can carry: every instant from `from` on at which something is released.
    fn find_uneven(&mut self, key: KeyId, fit: &Fit, length: Micros, from: Micros, latest: Micros) -> Option<Found> {
        let floor = self.uneven_floors.get(&(key, length)).copied().unwrap_or(self.now).max(from);
        let lines = fit.candidates.usable.iter().map(|at| &self.profile.lines[*at as usize]);
        let mut instants: Vec<Micros> = lines.flat_map(|line| line.steps_after(floor)).collect();
        instants.push(floor);
        instants.sort_unstable();
        instants.dedup();
        let found = instants.into_iter().take_while(|at| *at <= latest).find_map(|at| self.uneven_at(key, fit, length, at));
        let not_before = found.as_ref().map_or(if latest == NEVER { NEVER } else { latest.saturating_add(1) }, |found| found.at);
        if from == self.now {
            self.uneven_floors.insert((key, length), floor.max(not_before));
        }
        found
    }

    /// Takes a planned start off the profile.
    pub fn reserve(&mut self, job: JobId, fit: &Fit, found: &Found, length: Micros) {
        for (at, share) in &found.parts {
            let booking = self.booking(job, found.key, fit, found.at, *at, *share, length);
            self.profile.book(self.fleet, *at, booking);
        }
        self.bookings.add(job, found.at, found.parts.iter().map(|(at, _)| *at));
        self.book_licenses(job, found, found.at, length);
    }

    /// From `from` until the job's end.
    pub fn book_licenses(&mut self, job: JobId, found: &Found, from: Micros, length: Micros) {
        let licenses = &self.keys.entries[found.key as usize].key.licenses;
        self.licenses.book(job, licenses, from, found.at.saturating_add(length));
    }

    /// Starts a job, or one task of it: chooses the devices and holds them. `Err`: limits do not let it start there.
    pub fn start(&mut self, queued: &Queued, array_index: Option<u32>, fit: &Fit, found: &Found) -> Result<Start, Causes> {
        let charge = self.charge(queued, fit, found)?;
        let mut nodes = Vec::with_capacity(found.parts.len());
        // Views are numbered behind all nodes; a gang's nodes go in their natural order.
        let mut parts = found.parts.clone();
        parts.sort_by_key(|(at, _)| self.fleet.real(*at));
        for (at, share) in &parts {
            let Booking { held, shared, part, .. } = self.booking(queued.job, found.key, fit, found.at, *at, *share, queued.length);
            let own = shared.as_ref().map_or(held.amount, |(_, own)| *own);
            let allocation = match self.keys.entries[found.key as usize].key.shape.gpu_share() {
                None => place::allocate(self.fleet, *at, &own, self.core_use(found.key, *at), share.tasks),
                Some(asked) => self.allocate_share(found.key, *at, own, part, asked.clone(), share.tasks),
            };
            let sharer = shared.map(|(sharer, _)| sharer);
            self.fleet.hold(*at, Holding::of(queued.job, array_index, true, held.to, &allocation).shared_by(sharer));
            self.profile.start(self.fleet, *at, held);
            nodes.push(allocation);
        }
        if let Some(throttle) = queued.throttle {
            *self.tasks_started.entry(throttle.array).or_default() += 1;
        }
        self.accounts.start(queued.party, (queued.job, array_index), &charge, &nodes, self.now, queued.length);
        let key = self.keys.entries[found.key as usize].key.clone();
        self.licenses.hold((queued.job, array_index, true), key.licenses.clone(), self.now.saturating_add(queued.length));
        let reservation = key.ground.reservation.clone();
        Ok(Start { job: queued.job, array_index, nodes, charge, reservation })
    }

    /// Counts what a job would take at its place, as a start does. `Err`: limits do not let it start there.
    pub fn count(&mut self, queued: &Queued, fit: &Fit, found: &Found) -> Result<(), Causes> {
        let charge = self.charge(queued, fit, found)?;
        let nodes: Vec<NodeName> = found.parts.iter().map(|(at, _)| self.fleet.nodes[*at as usize].node.name.clone()).collect();
        self.accounts.count_start(queued.party, (queued.job, None), &charge, nodes, self.now, queued.length);
        Ok(())
    }

    /// What a start or a planned start takes of a node.
    #[allow(clippy::too_many_arguments)]
    pub fn booking(&self, job: JobId, key: KeyId, fit: &Fit, from: Micros, node: NodeIdx, share: Share, length: Micros) -> Booking {
        let own = self.own(key, fit, node, share);
        let sharer = self.keys.entries[key as usize].key.sharer.clone();
        let part = self.join(key, node, &own, from, length);
        let amount = match part {
            _ if sharer.is_some() => self.fleet.class(node).total,
            // The GPU is counted once for all who share it.
            Some(_) => Amount { gpus: [0; SLOTS], ..own },
            None => own,
        };
        let held = Held { from, to: from.saturating_add(length), amount };
        Booking { job, held, shared: sharer.map(|sharer| (sharer, own)), part }
    }

    /// How a job of the key uses a node's cores.
    pub fn core_use(&self, key: KeyId, node: NodeIdx) -> CoreUse {
        core_use(&self.keys.entries[key as usize].key.shape, self.fleet.class(node)).expect("a share that was found to fit has cores")
    }

    /// What a job of the key is given by a node.
    pub fn own(&self, key: KeyId, fit: &Fit, node: NodeIdx, share: Share) -> Amount {
        let shape = &self.keys.entries[key as usize].key.shape;
        node_need(shape, self.fleet.class(node), fit.limits, share).expect("a share that was found to fit has a need")
    }
}
