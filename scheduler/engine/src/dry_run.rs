//! Dry runs: what the next full plan would say of a job if it were submitted now.

use std::collections::BTreeSet;

use berth_model::event::{Event, JobSnapshot};
use berth_model::verdict::{JobVerdict, PlannedStart};
use berth_model::{JobId, hostlist};
use jiff::Timestamp;

use crate::amount::micros;
use crate::engine::Engine;
use crate::plan::Start;
use crate::priority::Scale;
use crate::queue;

/// What a plan says of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// It, or these tasks of it, would start now on these nodes.
    pub starts: Vec<Start>,
    /// Its place among those that wait before the plan; 1 is first.
    pub rank: u32,
    /// Unless all of it would start now: its planned start, or why it has none, its rank and its priority.
    pub verdict: Option<JobVerdict>,
}

impl DryRun {
    /// When and where it would start, of an array its first task; `now` is when the plan was made. `None`: nothing tells when.
    pub fn planned_start(&self, now: Timestamp) -> Option<PlannedStart> {
        match self.starts.first() {
            Some(first) => {
                // Components start together; of an array the first task is told.
                let together = self.starts.iter().filter(|start| start.job != first.job || start.array_index == first.array_index);
                let nodes: BTreeSet<_> = together.flat_map(|start| &start.nodes).map(|allocation| &allocation.node).collect();
                Some(PlannedStart { at: now, nodes: hostlist::fold(nodes) })
            }
            None => self.verdict.as_ref().and_then(|verdict| verdict.planned_start.clone()),
        }
    }
}

impl Engine {
    /// What [`Engine::plan`] at `at` would say of `job` if it were submitted now; nothing is changed by asking. A job with the id of a
    /// known one is taken for a change of that one.
    ///
    /// The answer holds as long as nothing else happens: a full plan at the same instant, after [`Event::Job`] with this job, says the
    /// same. Ties go by submit time and id, so give the job the present time and an id greater than all others.
    ///
    /// `job` must be as the feed would give it: pending, with defaults filled in, its shape validated. Meant for
    /// `POST /v1/jobs:dryRun`. It costs a copy of the state and a full plan: a caller that serves many asks seldom, or limits the rate.
    pub fn dry_run(&self, job: JobSnapshot, at: Timestamp) -> DryRun {
        self.dry_run_together(vec![job], at)
    }

    /// The same for the components of a heterogeneous job, the leader first: verdict and rank are the leader's.
    pub fn dry_run_together(&self, jobs: Vec<JobSnapshot>, at: Timestamp) -> DryRun {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let id = ids.first().copied().unwrap_or(JobId(0));
        let mut fork = self.fork();
        jobs.into_iter().for_each(|job| fork.apply(Event::Job(Box::new(job))));
        fork.refresh_fleet();
        let rank = fork.rank_of(id, at);
        let plan = fork.plan(at);
        DryRun {
            rank,
            starts: plan.starts.into_iter().filter(|start| ids.contains(&start.job)).collect(),
            verdict: plan.verdicts.into_iter().find(|verdict| verdict.job == id),
        }
    }

    /// A pending job's place in the queue.
    fn rank_of(&mut self, id: JobId, at: Timestamp) -> u32 {
        let now = micros(at);
        self.accounts.settle(&self.world, now);
        let scale = Scale::new(&self.world, &self.accounts, &self.fleet, now).ordered(self.settings.order, &self.fleet);
        let Some(own) = self.world.jobs.get(&id).map(|entry| queue::ranked(entry, &scale).place) else { return 0 };
        let waiting = self.world.jobs.values().filter(|e| queue::is_waiting(&e.job, &self.world.unconfirmed));
        1 + waiting.filter(|entry| queue::ranked(entry, &scale).place < own).count() as u32
    }
}
