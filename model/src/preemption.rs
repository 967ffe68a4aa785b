//! Preemption: who may stop whom so that a job can start, and what is known of it once it has happened.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::state::text_enum;
use crate::{JobId, NodeName};

text_enum! {
    /// By what a job may preempt others (Slurm's PreemptType).
    PreemptBy {
        /// Nobody preempts.
        Off = "off",
        /// A job preempts those whose QOS its own QOS lists in `preempts`.
        Qos = "qos",
        /// A job preempts those in partitions of a lower `priority_tier`, on nodes of its own partition.
        PartitionTier = "partition_tier",
    }
}

text_enum! {
    /// What becomes of a preempted job (Slurm's PreemptMode).
    PreemptMode {
        /// It is not preempted.
        Off = "off",
        /// It ends as `preempted`.
        Cancel = "cancel",
        /// It goes back to the queue, with its age and submit time. A job that may not be requeued ends as with `cancel`.
        Requeue = "requeue",
        /// It is frozen, keeps its memory, GPUs and licences, and goes on when there are CPUs for it again.
        Suspend = "suspend",
    }
}

/// That an attempt was preempted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preempted {
    /// The job that it makes room for.
    pub for_job: JobId,
    pub mode: PreemptMode,
    /// When it was told to stop.
    pub at: Timestamp,
    /// End of its grace: it is killed then.
    pub kill_at: Timestamp,
    /// The other job's tenant took back what it had lent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reclaimed: bool,
}

/// That an attempt was told to stand still: its processes are frozen, its CPUs are for others, all else it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Suspension {
    /// Counts the attempt's suspensions from 1.
    pub number: u32,
    /// When it was told.
    pub at: Timestamp,
    /// Since when it stands still on all its nodes; absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The job that it makes room for; absent: a person suspended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_job: Option<JobId>,
    /// It goes on only when a person says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
}

/// Seconds between SIGTSTP, by which a job hears that it is to be suspended, and the freeze (Slurm's suspend_grace_time).
pub const SUSPEND_GRACE_SECONDS: u64 = 2;

/// Nodes held for a pending job that preempted others, until it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claim {
    /// All the nodes that it will start on.
    pub nodes: Vec<NodeName>,
    pub victims: Vec<JobId>,
    /// When the last victim is killed.
    pub ready_at: Timestamp,
}
