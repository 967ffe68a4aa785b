//! What a full plan leaves behind for the quick plans after it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

use berth_model::{JobId, Name};

use crate::accounts::{Accounts, PartyId};
use crate::amount::{Amount, Micros, SLOTS};
use crate::backfill::Queued;
use crate::fit::Fit;
use crate::full::MOST_AHEAD;
use crate::keys::{KeyId, Keys};
use crate::ledger::ScopeId;
use crate::limits::Causes;
use crate::priority::Place;
use crate::verdicts::Grounds;

/// Something that time alone brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A job's begin time.
    Begin(JobId),
    /// A running job's limit and grace.
    Limit(JobId),
}

/// Jobs of one key and time limit, and of one party if limits bind it, first to last.
#[derive(Debug)]
pub struct Group {
    /// The least that any class's node must give to it.
    pub least: Amount,
    pub key: KeyId,
    pub length: Micros,
    /// The first that waited when this was last looked at; a look at the job itself would cost more.
    pub first: Place,
    pub jobs: VecDeque<Place>,
}

#[derive(Debug, Default)]
pub struct Standing {
    pub grounds: Grounds,
    pub groups: Vec<Group>,
    /// When a reservation begins or ends next: then all is planned anew.
    pub boundary: Option<Micros>,
    pub alarms: BinaryHeap<Reverse<(Micros, Alarm)>>,
    /// All that waited, by partition, first to last.
    places: BTreeMap<Name, Vec<Place>>,
    /// Jobs that limits hold, by who counts.
    limited: HashMap<ScopeId, VecDeque<Place>>,
    /// Jobs that need licences, by each of these, first to last.
    licensed: BTreeMap<Name, Vec<Place>>,
}

impl Standing {
    pub fn add_place(&mut self, partition: &Name, place: Place) {
        match self.places.get_mut(partition) {
            Some(places) => places.push(place),
            None => _ = self.places.insert(partition.clone(), vec![place]),
        }
    }

    /// Groups the jobs of the queue, which come in its order.
    pub fn group<'a>(&mut self, queue: impl Iterator<Item = (&'a Queued, Place)>, keys: &Keys, accounts: &Accounts) {
        let mut index: HashMap<(KeyId, Micros, Option<PartyId>), usize> = HashMap::new();
        for (queued, place) in queue {
            let licenses: BTreeSet<&Name> = queued.keys().flat_map(|key| keys.entries[key as usize].key.licenses.keys()).collect();
            for name in licenses {
                self.licensed.entry(name.clone()).or_default().push(place);
            }
            let party = Some(queued.party).filter(|party| !accounts.party(*party).rules.is_empty());
            for key in queued.keys() {
                let group = *index.entry((key, queued.length, party)).or_insert_with(|| {
                    let least = keys.entries[key as usize].fit.as_deref().and_then(least_need);
                    let Some(mut least) = least else { return usize::MAX };
                    if keys.entries[key as usize].key.shape.gpu_share().is_some() {
                        // It may join those who have a GPU already.
                        least.gpus = [0; SLOTS];
                    }
                    self.groups.push(Group { least, key, length: queued.length, first: place, jobs: VecDeque::new() });
                    self.groups.len() - 1
                });
                if let Some(group) = self.groups.get_mut(group) {
                    group.jobs.push_back(place);
                }
            }
        }
    }

    /// Limits hold this job.
    pub fn add_limited(&mut self, place: Place, causes: &Causes) {
        for (scope, _) in &**causes {
            self.limited.entry(*scope).or_default().push_back(place);
        }
    }

    /// The first `most` of those that need a licence and still wait.
    pub fn licensed(&mut self, license: &Name, most: usize, is_waiting: impl Fn(&Place) -> bool) -> Vec<Place> {
        let Some(places) = self.licensed.get_mut(license) else { return Vec::new() };
        let mut found = Vec::new();
        places.retain(|place| {
            let is_kept = found.len() == most || is_waiting(place);
            if is_kept && found.len() < most {
                found.push(*place);
            }
            is_kept
        });
        found
    }

    /// The first `most` that a limit held, which may let them go now.
    pub fn relieved(&mut self, scope: ScopeId, most: usize) -> Vec<Place> {
        let Some(held) = self.limited.get_mut(&scope) else { return Vec::new() };
        held.drain(..most.min(held.len())).collect()
    }

    /// A job's rank among all that waited, and the nearest ahead of it in its partition.
    pub fn around(&self, partition: &Name, place: Place) -> (u32, Vec<JobId>) {
        let before = |places: &Vec<Place>| places.partition_point(|other| *other < place);
        let rank = self.places.values().map(before).sum::<usize>() as u32 + 1;
        let ahead = self.places.get(partition).map(|places| &places[before(places).saturating_sub(MOST_AHEAD)..before(places)]);
        (rank, ahead.unwrap_or_default().iter().map(|place| place.job).collect())
    }

    /// What time has brought by `now`.
    pub fn due(&mut self, now: Micros) -> Vec<Alarm> {
        let mut due = Vec::new();
        while self.alarms.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            due.extend(self.alarms.pop().map(|Reverse((_, alarm))| alarm));
        }
        due
    }
}

/// Of all gangs and classes, the least of each resource that a node must give. Nothing for what can only be uneven.
fn least_need(fit: &Fit) -> Option<Amount> {
    fit.variants.iter().flat_map(|variant| variant.needs.iter().flatten().copied()).reduce(|least, need| least.least(&need))
}
