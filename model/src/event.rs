//! What the engine is told. Each event carries the whole present state of one object, so repeating one changes nothing and
//! missing one is repaired by the next.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::association::{Association, UsageRow};
use crate::component::ComponentOf;
use crate::dependency::DependencyStatus;
use crate::license::{License, LicenseCounts};
use crate::node::Node;
use crate::policy::{Partition, Policy, Qos};
use crate::preemption::{Claim, Preempted, Suspension};
use crate::reservation::Reservation;
use crate::resize::PastCharge;
use crate::resources::{NodeAllocation, Shape};
use crate::state::{Hold, JobState};
use crate::tres::Charge;
use crate::validate::Choice;
use crate::{Indices, JobId, Name, NodeName, Seconds};

/// A change of the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "value")]
pub enum Event {
    Policy(Policy),
    Partition(Partition),
    PartitionRemoved(Name),
    Qos(Qos),
    QosRemoved(Name),
    /// All of a tenant's places in the tree of shares; none, if the tenant is gone.
    Associations {
        tenant: Name,
        places: Vec<Association>,
    },
    /// All use that has ended, and the ends that went into it since the last such event.
    Usage {
        rows: Vec<UsageRow>,
        counted: Vec<(JobId, u32)>,
    },
    Node(Box<Node>),
    NodeRemoved(NodeName),
    /// A job that is pending or holds nodes.
    Job(Box<JobSnapshot>),
    /// A job that ended or vanished: it holds nothing any more.
    JobGone(JobId),
    RecentRuns(RecentRuns),
    /// All reservations there are; those not among them are gone.
    Reservations(Vec<Reservation>),
    /// All licences there are; those not among them are gone.
    Licenses(Vec<License>),
}

/// How long a user's last jobs ran, whatever ended them: what run times are predicted from. Where none is told, a job is taken to run up to its time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentRuns {
    pub tenant: Name,
    pub user: Name,
    /// Of at most [`RecentRuns::KEPT`] jobs, the last to end first.
    pub seconds: Vec<Seconds>,
}

impl RecentRuns {
    /// More are not looked at.
    pub const KEPT: usize = 2;
}

/// Whose task a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOf {
    pub array: JobId,
    pub index: u32,
    /// Tasks of the array that may hold nodes at once.
    pub throttle: Option<u32>,
}

/// A live job with all that planning needs. The strings of users have been parsed at the edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    pub id: JobId,
    pub tenant: Name,
    pub account: Name,
    pub user: Name,
    pub partition: Name,
    pub qos: Name,
    pub name: String,
    pub state: JobState,
    pub hold: Option<Hold>,
    pub shape: Shape,
    /// Seconds the job may run.
    pub time_limit: Seconds,
    pub submit_time: Timestamp,
    /// Since when the job's age counts: since it was eligible. Nothing while it is held or depends on others.
    pub accrues_since: Option<Timestamp>,
    /// Earliest start: the user's `begin` or the end of a requeue's delay, whichever is later.
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub nice: i32,
    /// An operator's own part of the priority.
    pub site_factor: i32,
    /// Feature expression of `constraint`, where that is about each node by itself: any of these sets of features.
    pub constraint: Option<Vec<BTreeSet<String>>>,
    /// Otherwise: it gets one of these, of equal starts the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// All of these must be among the chosen.
    pub required_nodes: BTreeSet<NodeName>,
    /// The user's `exclude`, and nodes that failed this job.
    pub excluded_nodes: BTreeSet<NodeName>,
    /// A requeue after a node failure that goes ahead of everything.
    pub is_expedited: bool,
    /// Requeues so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    pub dependencies: Vec<DependencyStatus>,
    /// One dependency suffices instead of all.
    pub dependency_any: bool,
    /// Waits for all earlier jobs of the same user and name (`singleton`).
    pub is_singleton: bool,
    pub array: Option<ArrayProgress>,
    /// Of an array's task that has a number of its own: it has run, or was changed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_of: Option<TaskOf>,
    /// Of a component of a heterogeneous job: it starts with all the others or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_of: Option<ComponentOf>,
    /// What the job holds, in the states that hold nodes.
    pub attempt: Option<RunningAttempt>,
    /// What others were preempted for, while the job is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Reservations that it names: it starts in one of them, the first of equals in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Name>,
    /// Licences that it holds while it runs: any one of these sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licenses: Vec<LicenseCounts>,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

/// An array whose tasks have not all started: the row stands for the tasks in `pending`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayProgress {
    /// Indices not started yet.
    pub pending: Indices,
    /// Tasks that run now.
    pub running: u32,
    /// `%n`: most tasks at once.
    pub throttle: Option<u32>,
}

/// An attempt that holds nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningAttempt {
    pub number: u32,
    /// When the nodes were given, and the clock of the time limit from `started_at` on.
    pub allocated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    /// Since the last of `past` ended, or since the start.
    pub charge: Charge,
    /// What it was charged for before it gave nodes back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastCharge>,
    /// Nodes still held; one that has cleaned up is no longer listed.
    pub nodes: Vec<NodeAllocation>,
    /// Its last checkpoint: what it did before is not lost if it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_at: Option<Timestamp>,
    /// Stopped by preemption, it may run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_requeueable: bool,
    /// It was told to stop, to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted: Option<Preempted>,
    /// In which it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Name>,
    /// It is suspended, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Milliseconds for which it was suspended before: they do not count against its time limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended_ms: u64,
}
