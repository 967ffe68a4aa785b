//! What a plan says.

use berth_model::preemption::{Claim, PreemptMode};
use berth_model::resources::NodeAllocation;
use berth_model::tres::Charge;
use berth_model::verdict::JobVerdict;
use berth_model::{JobId, Name, NodeName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The engine's decisions at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub now: Timestamp,
    /// What starts now, in the order in which it was tried: that of the queue, or as [`Rest`](crate::Rest) says.
    pub starts: Vec<Start>,
    /// Who is to stop so that others can start, by those others in the order of the queue, then by what is lost, the least first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preemptions: Vec<Preemption>,
    /// What those others get: held for them until they start or are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<NewClaim>,
    /// Suspended jobs that get CPUs again and go on, in the order in which they were suspended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumes: Vec<Resume>,
    /// Every pending job was considered. Else the plan answers events alone, and speaks only of jobs whose answer it changed.
    pub is_full: bool,
    /// A full plan: one for every job that stays pending, in queue order. The loop writes those that changed.
    pub verdicts: Vec<JobVerdict>,
    /// Pending jobs past their deadline, by id.
    pub expired: Vec<JobId>,
    /// Jobs that run past their time limit and its grace: their workers are lost or stuck. By id.
    pub overdue: Vec<JobId>,
    /// The next instant at which the plan could change by time alone. The slow drift of ages is not counted.
    pub wake_at: Option<Timestamp>,
}

/// A job, or one task of an array, that gets nodes now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub job: JobId,
    pub array_index: Option<u32>,
    pub nodes: Vec<NodeAllocation>,
    /// What usage and limits count of it from now on.
    pub charge: Charge,
    /// In which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Name>,
}

/// A running job that must make room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemption {
    pub victim: JobId,
    /// The attempt that is meant; a later one is no victim.
    pub attempt: u32,
    /// `cancel`, `requeue` or `suspend`.
    pub mode: PreemptMode,
    pub for_job: JobId,
    /// Those of its nodes that the other job gets.
    pub nodes: Vec<NodeName>,
    /// End of its grace; of one that is suspended, when its CPUs are free.
    pub at: Timestamp,
    /// The other job's tenant takes back what it has lent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reclaimed: bool,
}

/// A suspended job that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    pub job: JobId,
    /// The attempt and the suspension that are meant.
    pub attempt: u32,
    pub suspension: u32,
    /// As before but for the CPUs, which may be others.
    pub nodes: Vec<NodeAllocation>,
}

/// Nodes that a pending job has got by preemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewClaim {
    pub job: JobId,
    pub claim: Claim,
}

impl Plan {
    pub(crate) fn at(now: Timestamp) -> Self {
        Plan {
            now,
            is_full: true,
            starts: Vec::new(),
            preemptions: Vec::new(),
            claims: Vec::new(),
            resumes: Vec::new(),
            verdicts: Vec::new(),
            expired: Vec::new(),
            overdue: Vec::new(),
            wake_at: None,
        }
    }

    /// Wakes the loop no later than `at`.
    pub(crate) fn wake_by(&mut self, at: Timestamp) {
        if at > self.now && self.wake_at.is_none_or(|earlier| at < earlier) {
            self.wake_at = Some(at);
        }
    }
}
