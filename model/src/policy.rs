//! Policy objects that administrators write: partitions, QOS and the cluster's weights.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::state::PartitionState;
use crate::{Bytes, Name, Seconds};

/// A set of nodes with limits and a priority of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Partition {
    pub name: Name,
    /// Host-list of its nodes (`n[1-40]`), or `ALL`.
    #[serde(default = "all_nodes")]
    pub nodes: String,
    /// Nodes with all these features belong to it too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub node_features: BTreeSet<String>,
    #[serde(default = "up")]
    pub state: PartitionState,
    /// Jobs that name no partition go here.
    #[serde(default)]
    pub is_default: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_seconds: Option<Seconds>,
    /// Time limit of jobs that name none; absent: `max_time_seconds`, else one hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time_seconds: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_nodes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cpus_per_node: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_per_node_bytes: Option<Bytes>,
    /// Memory of jobs that ask for none, for each CPU; absent: the whole node's memory divided by its CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_memory_per_cpu_bytes: Option<Bytes>,
    /// Partitions of a higher tier are planned first.
    #[serde(default = "one")]
    pub priority_tier: u32,
    /// The partition's part in a job's priority, 0 to 65535.
    #[serde(default = "one")]
    pub priority_job_factor: u32,
    /// Tenants that may use it; empty: all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_tenants: BTreeSet<Name>,
    /// Accounts that may use it; empty: all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_accounts: BTreeSet<Name>,
    /// QOS that may be used in it; empty: all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_qos: BTreeSet<Name>,
}

fn all_nodes() -> String {
    "ALL".to_owned()
}
fn up() -> PartitionState {
    PartitionState::Up
}
fn one() -> u32 {
    1
}

impl Partition {
    /// A partition of all nodes with no limits.
    pub fn of_all_nodes(name: Name) -> Self {
        Partition {
            name,
            nodes: all_nodes(),
            node_features: BTreeSet::new(),
            state: PartitionState::Up,
            is_default: false,
            max_time_seconds: None,
            default_time_seconds: None,
            min_nodes: None,
            max_nodes: None,
            max_cpus_per_node: None,
            max_memory_per_node_bytes: None,
            default_memory_per_cpu_bytes: None,
            priority_tier: 1,
            priority_job_factor: 1,
            allow_tenants: BTreeSet::new(),
            allow_accounts: BTreeSet::new(),
            allow_qos: BTreeSet::new(),
        }
    }

    /// The time limit of a job that names none.
    pub fn default_time(&self) -> Seconds {
        self.default_time_seconds.or(self.max_time_seconds).unwrap_or(3600)
    }
}

/// Quality of service: a priority and limits that jobs choose by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Qos {
    pub name: Name,
    /// Relative priority; the highest of all QOS counts as 1.0.
    #[serde(default)]
    pub priority: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_seconds: Option<Seconds>,
    /// Tenants that may use it; empty: all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_tenants: BTreeSet<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The cluster's weights. A job's priority is Σ weight × factor, each factor in 0..=1 (Slurm's multifactor plugin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    pub weight_age: u32,
    pub weight_partition: u32,
    pub weight_qos: u32,
    /// Waiting longer than this adds nothing more.
    pub max_age_seconds: Seconds,
    /// Silence of a node after which it kills what it runs, and the scheduler, a little later, places that elsewhere.
    pub node_timeout_seconds: Seconds,
    /// Time between SIGTERM and SIGKILL.
    pub kill_wait_seconds: Seconds,
    /// Wait before a requeued job may start again.
    pub requeue_delay_seconds: Seconds,
    /// How long the record of decisions is kept; 0: none is made.
    pub decision_keep_seconds: Seconds,
    /// How the queue is walked; absent: equal priorities by submission, and a planned start for every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePolicy>,
}

/// How the queue is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct QueuePolicy {
    pub order: QueueOrder,
    /// With `urgency`: who has waited as long goes ahead of all that have not.
    pub patience_seconds: Seconds,
    /// Jobs, from the head of the queue on, that hold a planned start which nobody may delay; the others start where they delay none.
    /// Absent: all. 1 is EASY backfill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// Who goes first among jobs of equal priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueOrder {
    /// The first that was submitted.
    #[default]
    Submission,
    /// The most urgent: wait³ × share of the cluster⁴ ÷ time limit². Ages must not make priorities differ: `weight_age` is 0.
    Urgency,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        QueuePolicy { order: QueueOrder::Submission, patience_seconds: 30 * 86_400, depth: None }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            weight_age: 1000,
            weight_partition: 1000,
            weight_qos: 10_000,
            max_age_seconds: 7 * 86_400,
            node_timeout_seconds: 60,
            kill_wait_seconds: 30,
            requeue_delay_seconds: 5,
            decision_keep_seconds: 2 * 86_400,
            queue: None,
        }
    }
}
