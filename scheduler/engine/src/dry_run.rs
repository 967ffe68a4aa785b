//! Dry runs: what the next full plan would say of a job if it were submitted now.

use berth_model::event::{Event, JobSnapshot};
use berth_model::verdict::JobVerdict;
use jiff::Timestamp;

use crate::engine::Engine;
use crate::plan::Start;

/// What a plan says of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// It, or these tasks of it, would start now on these nodes.
    pub starts: Vec<Start>,
    /// Unless all of it would start now: its planned start, or why it has none, its rank and its priority.
    pub verdict: Option<JobVerdict>,
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
        let id = job.id;
        let mut fork = self.fork();
        fork.apply(Event::Job(Box::new(job)));
        let plan = fork.plan(at);
        DryRun {
            starts: plan.starts.into_iter().filter(|start| start.job == id).collect(),
            verdict: plan.verdicts.into_iter().find(|verdict| verdict.job == id),
        }
    }
}
