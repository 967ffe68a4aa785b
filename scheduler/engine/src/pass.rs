//! One pass over the queue: where the next job of a key fits, and what each start and planned start takes away.
//!
//! All memory of a pass rests on one fact: within it resources are only taken. What failed for a key fails for later jobs of the
//! key that run as long or longer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_model::policy::Partition;
use berth_model::resources::NodeAllocation;
use berth_model::{JobId, Name};

use crate::amount::{Micros, NEVER};
use crate::fit::{Candidates, Fit, free_over, spread, work_out};
use crate::fleet::{Fleet, Holding, NodeIdx};
use crate::keys::{Ground, KeyId, Keys};
use crate::place;
use crate::profile::Profile;
use crate::search::{Search, Wanted};
use crate::shape::{Share, even_share, node_need};

/// Node bounds remembered in a pass at the most, about 400 MB.
const MOST_BOUNDS: usize = 32 << 20;

/// A gang's instant and nodes, ascending.
#[derive(Clone, Debug)]
pub struct Found {
    pub at: Micros,
    pub parts: Vec<(NodeIdx, Share)>,
}

pub struct Pass<'a> {
    pub now: Micros,
    pub fleet: &'a mut Fleet,
    pub profile: &'a mut Profile,
    keys: &'a mut Keys,
    partitions: &'a BTreeMap<Name, Partition>,
    epoch: u64,
    grounds: BTreeMap<Ground, Arc<Candidates>>,
    // Maps that are looked up, never walked in an order that shows.
    searches: HashMap<(KeyId, Micros), Vec<Search>>,
    bounds: usize,
    /// The shortest length for which an uneven gang of the key did not fit now.
    uneven_failed: HashMap<KeyId, Micros>,
    /// Whether the key had room now, after so many starts.
    room_now: HashMap<KeyId, (u32, bool)>,
    starts: u32,
}

impl<'a> Pass<'a> {
    pub fn new(
        now: Micros,
        fleet: &'a mut Fleet,
        profile: &'a mut Profile,
        keys: &'a mut Keys,
        partitions: &'a BTreeMap<Name, Partition>,
        epoch: u64,
    ) -> Self {
        Pass {
            now,
            fleet,
            profile,
            keys,
            partitions,
            epoch,
            grounds: BTreeMap::new(),
            searches: HashMap::new(),
            bounds: 0,
            uneven_failed: HashMap::new(),
            room_now: HashMap::new(),
            starts: 0,
        }
    }

    /// What is worked out for a key, once a fleet.
    pub fn fit(&mut self, key: KeyId) -> Arc<Fit> {
        let entry = &mut self.keys.entries[key as usize];
        match &entry.fit {
            Some((epoch, fit)) if *epoch == self.epoch => fit.clone(),
            _ => {
                let fit = Arc::new(work_out(self.fleet, self.partitions, &entry.key, &mut self.grounds));
                entry.fit = Some((self.epoch, fit.clone()));
                fit
            }
        }
    }

    /// The earliest start up to `latest` of a job of the key that may run for `length`. Of equal instants, the fewest nodes.
    pub fn find(&mut self, key: KeyId, fit: &Fit, length: Micros, latest: Micros) -> Option<Found> {
        let required = fit.candidates.required.as_deref()?;
        self.make_room_for_bounds();
        let shape = &self.keys.entries[key as usize].key.shape;
        let count = fit.variants.len().max(1);
        let searches = self.searches.entry((key, length)).or_insert_with(|| (0..count).map(|_| Search::from(self.now)).collect());
        let mut best: Option<Found> = None;
        for (variant, search) in fit.variants.iter().zip(searches.iter_mut()) {
            let wanted = Wanted { nodes: variant.nodes, length, needs: &variant.needs, candidates: &fit.candidates.usable, required };
            let latest = best.as_ref().map_or(latest, |best| best.at.saturating_sub(1));
            let before = search.size();
            let found = search.earliest(self.fleet, self.profile, &wanted, self.now, latest);
            self.bounds += search.size() - before;
            if let Some((at, nodes)) = found {
                let parts = nodes.into_iter().zip(0..).map(|(node, i)| (node, even_share(shape, variant.nodes, i))).collect();
                best = Some(Found { at, parts });
            }
        }
        if !fit.is_loose || best.as_ref().is_some_and(|best| best.at == self.now) {
            return best;
        }
        if fit.variants.is_empty() {
            return self.find_uneven(key, fit, length, latest);
        }
        self.uneven_now(key, fit, length).or(best)
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
        Some(Found { at, parts })
    }

    /// For gangs that no even split can carry: every instant at which something is released.
    fn find_uneven(&mut self, key: KeyId, fit: &Fit, length: Micros, latest: Micros) -> Option<Found> {
        let floor = self.searches.get(&(key, length)).map_or(self.now, |s| s[0].not_before);
        let lines = fit.candidates.usable.iter().map(|at| &self.profile.lines[*at as usize]);
        let mut instants: Vec<Micros> = lines.flat_map(|line| line.steps_after(floor)).collect();
        instants.push(floor);
        instants.sort_unstable();
        instants.dedup();
        let found = instants.into_iter().take_while(|at| *at <= latest).find_map(|at| self.uneven_at(key, fit, length, at));
        let not_before = found.as_ref().map_or(if latest == NEVER { NEVER } else { latest.saturating_add(1) }, |found| found.at);
        if let Some(searches) = self.searches.get_mut(&(key, length)) {
            searches[0].not_before = searches[0].not_before.max(not_before);
        }
        found
    }

    /// Whether the job could start now if no planned start were in its way.
    pub fn has_room_now(&mut self, key: KeyId, fit: &Fit) -> bool {
        if let Some((starts, has_room)) = self.room_now.get(&key)
            && (!has_room || *starts == self.starts)
        {
            return *has_room;
        }
        let has_room = fit.variants.iter().any(|variant| {
            let carries = |at: &&NodeIdx| {
                let need = &variant.needs[self.fleet.nodes[**at as usize].class as usize];
                need.as_ref().is_some_and(|need| self.profile.free_now[**at as usize].covers(need))
            };
            let required = fit.candidates.required.as_deref().unwrap_or_default();
            let wanted = variant.nodes as usize;
            fit.candidates.usable.iter().filter(carries).take(wanted).count() >= wanted && required.iter().all(|at| carries(&at))
        });
        self.room_now.insert(key, (self.starts, has_room));
        has_room
    }

    /// Takes a planned start off the profile.
    pub fn reserve(&mut self, key: KeyId, fit: &Fit, found: &Found, length: Micros) {
        self.take(key, fit, found, length, false);
    }

    /// Starts a job: chooses the devices and holds them.
    pub fn start(
        &mut self,
        job: JobId,
        array_index: Option<u32>,
        key: KeyId,
        fit: &Fit,
        found: &Found,
        length: Micros,
    ) -> Vec<NodeAllocation> {
        let allocations = self.take(key, fit, found, length, true);
        for ((at, _), allocation) in found.parts.iter().zip(&allocations) {
            let end = self.now.saturating_add(length);
            self.fleet.nodes[*at as usize].holdings.push(Holding::of(job, array_index, true, end, allocation));
        }
        self.starts += 1;
        allocations
    }

    fn take(&mut self, key: KeyId, fit: &Fit, found: &Found, length: Micros, is_start: bool) -> Vec<NodeAllocation> {
        let shape = &self.keys.entries[key as usize].key.shape;
        let end = found.at.saturating_add(length);
        let mut allocations = Vec::new();
        for (at, share) in &found.parts {
            let need = node_need(shape, self.fleet.class(*at), fit.limits, *share).expect("a share that was found to fit has a need");
            if is_start {
                allocations.push(place::allocate(self.fleet, *at, &need, share.tasks));
            }
            self.profile.take(self.fleet, *at, found.at, end, &need, is_start);
        }
        allocations
    }

    /// Keeps memory bounded: gangs' bounds stay, nodes' bounds are found again.
    fn make_room_for_bounds(&mut self) {
        if self.bounds > MOST_BOUNDS {
            self.searches.values_mut().flatten().for_each(Search::forget_nodes);
            self.bounds = 0;
        }
    }
}
