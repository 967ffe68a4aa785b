//! Planned starts by job: what a job has on the profile, so that it can be taken off again, and which planned start is next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use berth_model::JobId;

use crate::amount::Micros;
use crate::fleet::NodeIdx;

#[derive(Debug, Default)]
pub struct Bookings {
    /// The first planned start of a job, and all nodes that it and the job's further ones are booked on. Looked up, never walked.
    by_job: HashMap<JobId, (Micros, Vec<NodeIdx>)>,
    /// By instant. May hold planned starts that were taken off.
    next: BinaryHeap<Reverse<(Micros, JobId)>>,
}

impl Bookings {
    pub fn clear(&mut self) {
        self.by_job.clear();
        self.next.clear();
    }

    pub fn add(&mut self, job: JobId, at: Micros, nodes: impl Iterator<Item = NodeIdx>) {
        let (first, booked) = self.by_job.entry(job).or_insert_with(|| (at, Vec::new()));
        booked.extend(nodes);
        if *first >= at {
            *first = at;
            self.next.push(Reverse((at, job)));
        }
    }

    /// Takes a job's planned starts off; returns the nodes.
    pub fn remove(&mut self, job: JobId) -> Vec<NodeIdx> {
        let nodes = self.nodes(job);
        self.by_job.remove(&job);
        nodes
    }

    /// The nodes of a job's planned starts, ascending.
    pub fn nodes(&self, job: JobId) -> Vec<NodeIdx> {
        let mut nodes = self.by_job.get(&job).map(|(_, nodes)| nodes.clone()).unwrap_or_default();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    pub fn first(&self, job: JobId) -> Option<Micros> {
        self.by_job.get(&job).map(|(first, _)| *first)
    }

    /// Jobs whose planned starts have come, each once.
    pub fn due(&mut self, now: Micros) -> Vec<JobId> {
        let mut due = Vec::new();
        while self.next_at().is_some_and(|at| at <= now) {
            due.extend(self.next.pop().map(|Reverse((_, job))| job));
        }
        due.sort_unstable();
        due.dedup();
        due
    }

    /// The next planned start of all.
    pub fn next_at(&mut self) -> Option<Micros> {
        while let Some(Reverse((at, job))) = self.next.peek() {
            if self.first(*job) == Some(*at) {
                return Some(*at);
            }
            self.next.pop();
        }
        None
    }
}
