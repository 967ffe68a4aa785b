//! Keys: jobs that placement cannot tell apart share one, and with it all that has been worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::event::JobSnapshot;
use berth_model::license::LicenseCounts;
use berth_model::policy::Partition;
use berth_model::resources::Shape;
use berth_model::validate::NodeCount;
use berth_model::{Name, NodeName};

use crate::fit::{Candidates, Fit, candidates, work_out};
use crate::fleet::Fleet;
use crate::sharing::Sharer;

pub type KeyId = u32;

/// All of a job that decides where it may run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub shape: Shape,
    pub ground: Ground,
    /// What it holds besides nodes.
    pub licenses: LicenseCounts,
    /// Whose it is, if it shares nodes with none but its own kind.
    pub sharer: Option<Arc<Sharer>>,
}

/// The nodes a job may use, whatever its shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ground {
    pub partition: Name,
    pub constraint: Option<Vec<BTreeSet<String>>>,
    /// So many of its nodes, each for one of these at most, have other features besides.
    pub counts: Vec<NodeCount>,
    pub required: BTreeSet<NodeName>,
    pub excluded: BTreeSet<NodeName>,
    /// In which it would run.
    pub reservation: Option<Name>,
    /// Floating reservations that it would run into, wherever and whenever it starts on their nodes.
    pub fences: BTreeSet<Name>,
}

impl Key {
    pub fn of(job: &JobSnapshot) -> Self {
        Key {
            shape: job.shape.clone(),
            ground: Ground {
                partition: job.partition.clone(),
                constraint: job.constraint.clone(),
                counts: Vec::new(),
                required: job.required_nodes.clone(),
                excluded: job.excluded_nodes.clone(),
                reservation: None,
                fences: BTreeSet::new(),
            },
            licenses: job.licenses.first().cloned().unwrap_or_default(),
            sharer: Sharer::of(job),
        }
    }
}

#[derive(Clone, Debug)]
pub struct KeyEntry {
    pub key: Arc<Key>,
    uses: u32,
    /// Worked out for the present fleet.
    pub fit: Option<Arc<Fit>>,
}

/// Keys in use. Ids are reused and never decide anything.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub entries: Vec<KeyEntry>,
    ids: BTreeMap<Arc<Key>, KeyId>,
    free: Vec<KeyId>,
    /// Candidates found for the present fleet.
    grounds: BTreeMap<Ground, Arc<Candidates>>,
}

impl Keys {
    /// The fleet or the partitions have changed: all that was worked out is void.
    pub fn forget_fits(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.fit = None);
        self.grounds.clear();
    }

    /// What is worked out for a key, once a fleet.
    pub fn fit(&mut self, id: KeyId, fleet: &Fleet, partitions: &BTreeMap<Name, Partition>) -> Arc<Fit> {
        let entry = &mut self.entries[id as usize];
        if let Some(fit) = &entry.fit {
            return fit.clone();
        }
        let key = &entry.key;
        let candidates = match self.grounds.get(&key.ground) {
            Some(known) => known.clone(),
            None => {
                let found = Arc::new(candidates(fleet, &key.ground));
                self.grounds.insert(key.ground.clone(), found.clone());
                found
            }
        };
        let fit = Arc::new(work_out(fleet, partitions, key, candidates));
        entry.fit = Some(fit.clone());
        fit
    }

    pub fn acquire(&mut self, key: Key) -> KeyId {
        if let Some(id) = self.ids.get(&key) {
            self.entries[*id as usize].uses += 1;
            return *id;
        }
        let key = Arc::new(key);
        let entry = KeyEntry { key: key.clone(), uses: 1, fit: None };
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as KeyId - 1
            }
        };
        self.ids.insert(key, id);
        id
    }

    pub fn release(&mut self, id: KeyId) {
        let entry = &mut self.entries[id as usize];
        entry.uses -= 1;
        if entry.uses == 0 {
            entry.fit = None;
            self.ids.remove(&entry.key);
            self.free.push(id);
        }
    }
}
