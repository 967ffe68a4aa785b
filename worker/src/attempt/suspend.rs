//! Standing still: an attempt's steps are frozen when the service says so, and go on when it says so.
//!
//! They hear SIGTSTP first and have two seconds, as with Slurm; then all their processes are frozen, whatever they do with the signal. Time
//! in which they stand still counts against no limit. Steps that come meanwhile are prepared and wait.

use std::time::Duration;

use berth_model::preemption::SUSPEND_GRACE_SECONDS;
use berth_model::worker::{Assignment, Fact};
use berth_runtime::fence::since_boot;
use tokio::time::Instant;

use super::Attempt;

/// After a freeze that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// Where an attempt stands between running and standing still.
#[derive(Default)]
pub struct Standing {
    /// Told by SIGTSTP: the order's number, and when the steps are frozen.
    due: Option<(u32, Instant)>,
    /// The order that the service was told of by this process.
    told: Option<u32>,
}

impl Attempt {
    /// Follows the order to stand still or to go on. `is_stopping`: whatever the order, it must be able to end.
    pub(super) async fn follow_suspension(&mut self, assignment: &Assignment, is_stopping: bool) {
        let wanted = assignment.suspend.filter(|_| !is_stopping);
        match (wanted, self.journal.data.suspended) {
            (Some(order), Some(frozen)) => {
                if order != frozen {
                    self.journal.update(|j| j.suspended = Some(order));
                }
                self.tell_suspended(order);
            }
            (Some(order), None) => self.stand_still(order).await,
            (None, Some(_)) => self.go_on(assignment).await,
            (None, None) => {
                if self.standing.due.take().is_some() {
                    self.signal(libc::SIGCONT, None, true).await;
                }
            }
        }
    }

    async fn stand_still(&mut self, order: u32) {
        let Some((_, due)) = self.standing.due else {
            self.signal(libc::SIGTSTP, None, true).await;
            self.standing.due = Some((order, Instant::now() + Duration::from_secs(SUSPEND_GRACE_SECONDS)));
            return;
        };
        if Instant::now() < due {
            return;
        }
        for (step, running) in &self.steps {
            if let Err(error) = running.runtime.suspend(&running.key, true).await {
                // It may have ended just now; else it is tried again, and the service waits.
                tracing::warn!(job = %self.job, %step, %error, "the step does not stand still yet");
                self.standing.due = Some((order, Instant::now() + AGAIN));
                return;
            }
        }
        self.standing.due = None;
        let now = since_boot().as_millis() as u64;
        self.journal.update(|j| (j.suspended, j.suspended_since_ms) = (Some(order), now));
        self.order_all(|orders| orders.is_still = true);
        self.tell_suspended(order);
    }

    /// Once in the life of this process: what an earlier one said may be lost.
    fn tell_suspended(&mut self, order: u32) {
        if self.standing.told.replace(order) != Some(order) {
            self.shared.outbox.push(Fact::Suspended { job_id: self.job, attempt: self.attempt, suspension: order });
        }
    }

    async fn go_on(&mut self, assignment: &Assignment) {
        for (step, running) in &self.steps {
            let here = assignment.steps.iter().find(|s| s.step == *step).map(|s| s.here.cpus.as_slice()).unwrap_or_default();
            if self.shared.node.can_bind
                && !here.is_empty()
                && let Err(error) = running.runtime.bind(&running.key, here).await
            {
                tracing::warn!(job = %self.job, %step, %error, "the step keeps its old CPUs");
            }
            if let Err(error) = running.runtime.suspend(&running.key, false).await {
                tracing::warn!(job = %self.job, %step, %error, "the step could not be resumed");
            }
            // What SIGTSTP has stopped goes on too, also of a step that this process of the worker has not taken up yet.
            let _ = running.runtime.signal(&running.key, libc::SIGCONT, true).await;
        }
        self.journal.update(|j| {
            j.suspended_ms += (since_boot().as_millis() as u64).saturating_sub(j.suspended_since_ms);
            j.suspended = None;
        });
        self.standing.told = None;
        self.order_all(|orders| orders.is_still = false);
    }

    /// For how long it has stood still up to now.
    pub(super) fn stood_still(&self) -> Duration {
        let data = &self.journal.data;
        let now = since_boot().as_millis() as u64;
        let open = data.suspended.map_or(0, |_| now.saturating_sub(data.suspended_since_ms));
        Duration::from_millis(data.suspended_ms + open)
    }

    /// Until the steps are to be frozen.
    pub(super) fn until_frozen(&self) -> Option<Duration> {
        self.standing.due.map(|(_, due)| due.saturating_duration_since(Instant::now()))
    }
}
