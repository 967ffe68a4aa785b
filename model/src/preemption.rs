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
