//! Victims: who may preempt whom, who is safe, what becomes of a victim, and what is lost with it.
//!
//! Mode: a victim's QOS says it before its partition, that before the policy. Grace likewise; where nobody says, it is the policy's
//! `kill_wait_seconds`. Exempt time: the partition's QOS, else the job's (the other way round with `over_partition_qos`), else the
//! policy. A job that is suspended has two seconds and loses nothing. What is lost otherwise is the work since the attempt's last
//! checkpoint, in billing-seconds, so that a GPU weighs what the site says.
//!
//! Example: a job that bills 8 a second and ran for an hour, with a checkpoint ten minutes ago, loses 8 × 600 = 4800.

use std::cmp::Reverse;

use berth_model::JobId;
use berth_model::event::{JobSnapshot, RunningAttempt};
use berth_model::policy::Qos;
use berth_model::preemption::{PreemptBy, PreemptMode, SUSPEND_GRACE_SECONDS};
use berth_model::quota::Reclaim;
use berth_model::state::JobState;

use crate::amount::{Micros, micros, span};
use crate::engine::World;

/// What is lost with a victim. Ascending: whom to take first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Thousandths of billing-microseconds.
    pub lost: u128,
    nodes: usize,
    /// The youngest first.
    begun: Reverse<Micros>,
    job: JobId,
}

#[derive(Clone, Debug)]
pub struct Victim {
    pub job: JobId,
    pub attempt: u32,
    pub mode: PreemptMode,
    pub kill_at: Micros,
    pub cost: Cost,
    /// It goes since its tenant has borrowed, not since it is of lower standing.
    pub is_reclaimed: bool,
}

/// The rules of preemption at an instant.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    pub world: &'a World,
    pub now: Micros,
}

impl<'a> Rules<'a> {
    /// `None`: nobody preempts. `is_lent`: tenants lend to each other what they may reclaim.
    pub fn new(world: &'a World, now: Micros, is_lent: bool) -> Option<Self> {
        let reclaims = is_lent && world.policy.reclaim != Reclaim::Off;
        (world.policy.preempt_by != PreemptBy::Off || reclaims).then_some(Rules { world, now })
    }

    /// What tenants have lent is reclaimed.
    pub fn reclaims(&self) -> bool {
        self.world.policy.reclaim != Reclaim::Off
    }

    fn qos(&self, job: &JobSnapshot) -> Option<&'a Qos> {
        self.world.qos.get(&job.qos)
    }

    fn tier(&self, job: &JobSnapshot) -> u32 {
        self.world.partitions.get(&job.partition).map_or(0, |partition| partition.priority_tier)
    }

    /// There may be somebody that the job may preempt.
    pub fn may_preempt(&self, job: &JobSnapshot) -> bool {
        match self.world.policy.preempt_by {
            PreemptBy::Off => false,
            PreemptBy::Qos => self.qos(job).is_some_and(|qos| !qos.preempts.is_empty()),
            PreemptBy::PartitionTier => {
                let tier = self.tier(job);
                self.world.partitions.values().any(|partition| partition.priority_tier < tier)
            }
        }
    }

    /// The job is of higher standing. Two QOS that list each other are of the same.
    pub fn outranks(&self, job: &JobSnapshot, other: &JobSnapshot) -> bool {
        match self.world.policy.preempt_by {
            PreemptBy::Off => false,
            PreemptBy::Qos => {
                let lists = |a: &JobSnapshot, b: &JobSnapshot| self.qos(a).is_some_and(|qos| qos.preempts.contains(&b.qos));
                job.qos != other.qos && lists(job, other) && !lists(other, job)
            }
            PreemptBy::PartitionTier => self.tier(job) > self.tier(other),
        }
    }

    /// What becomes of a job if it is preempted now; `None`: it is safe.
    pub fn victim(&self, job: &JobSnapshot) -> Option<Victim> {
        let attempt = job.attempt.as_ref().filter(|attempt| attempt.preempted.is_none())?;
        // A component goes with all others, and what that would free and cost is not looked at.
        if job.component_of.is_some() || (job.state == JobState::Running && attempt.suspension.is_some()) {
            return None;
        }
        if !matches!(job.state, JobState::Allocated | JobState::Running | JobState::Suspended) {
            return None;
        }
        let ran = attempt.started_at.map_or(0, |started| self.now.saturating_sub(micros(started)).max(0));
        if ran < self.exempt(job) {
            return None;
        }
        let mode = match self.mode(job) {
            PreemptMode::Off => return None,
            // Who shares a GPU keeps it for others as well; only what has it alone is frozen.
            PreemptMode::Suspend if attempt.nodes.iter().any(|node| node.share.is_some()) => return None,
            // What stands still already has no CPUs to give, and what has not begun cannot stand still.
            PreemptMode::Suspend if job.state != JobState::Running || attempt.started_at.is_none() => return None,
            PreemptMode::Suspend => PreemptMode::Suspend,
            PreemptMode::Requeue if attempt.is_requeueable => PreemptMode::Requeue,
            PreemptMode::Requeue | PreemptMode::Cancel => PreemptMode::Cancel,
        };
        let mut cost = self.cost(job, attempt);
        let mut grace = self.grace(job);
        if mode == PreemptMode::Suspend {
            (cost.lost, grace) = (0, span(SUSPEND_GRACE_SECONDS));
        }
        Some(Victim { job: job.id, attempt: attempt.number, mode, kill_at: self.now.saturating_add(grace), cost, is_reclaimed: false })
    }

    fn mode(&self, job: &JobSnapshot) -> PreemptMode {
        let of_partition = self.world.partitions.get(&job.partition).and_then(|partition| partition.preempt_mode);
        self.qos(job).and_then(|qos| qos.preempt_mode).or(of_partition).unwrap_or(self.world.policy.preempt_mode)
    }

    fn grace(&self, job: &JobSnapshot) -> Micros {
        let of_partition = self.world.partitions.get(&job.partition).and_then(|partition| partition.grace_seconds);
        span(self.qos(job).and_then(|qos| qos.grace_seconds).or(of_partition).unwrap_or(self.world.policy.kill_wait_seconds))
    }

    fn exempt(&self, job: &JobSnapshot) -> Micros {
        let of_job = self.qos(job);
        let partition = self.world.partitions.get(&job.partition);
        let of_partition = partition.and_then(|partition| self.world.qos.get(partition.qos.as_ref()?));
        let says = |qos: Option<&Qos>| qos.and_then(|qos| qos.preempt_exempt_seconds);
        let first = if of_job.is_some_and(|qos| qos.over_partition_qos) { [of_job, of_partition] } else { [of_partition, of_job] };
        span(first.into_iter().find_map(says).unwrap_or(self.world.policy.preempt_exempt_seconds))
    }

    fn cost(&self, job: &JobSnapshot, attempt: &RunningAttempt) -> Cost {
        let begun = attempt.started_at.map_or(self.now, micros);
        let kept = attempt.checkpoint_at.map_or(begun, micros).max(begun);
        let billing = (attempt.charge.billing.clamp(0.0, 1e15) * 1000.0) as u128;
        let lost = self.now.saturating_sub(kept).max(0).unsigned_abs();
        Cost { lost: u128::from(lost) * billing, nodes: attempt.nodes.len(), begun: Reverse(begun), job: job.id }
    }
}
