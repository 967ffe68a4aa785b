//! Policy objects that administrators write: partitions, QOS and the cluster's weights.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::array::MAX_ARRAY_TASKS;
use crate::association::Limits;
use crate::preemption::{PreemptBy, PreemptMode};
use crate::quota::Reclaim;
use crate::state::PartitionState;
use crate::tres::{Tres, TresCounts, Weight};
use crate::{Bytes, Name, Seconds};

/// A set of nodes with limits and a priority of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The partition's own QOS: its limits bind all jobs of the partition and win over those of the jobs' QOS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Name>,
    /// What a job is billed for each unit it holds (`{"cpu": 1, "mem": "0.25G", "gres/gpu": 16}`); empty: its CPUs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Weight>))]
    pub billing_weights: BTreeMap<Tres, Weight>,
    /// What becomes of its jobs when they are preempted; absent: what the policy says. Their QOS wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_mode: Option<PreemptMode>,
    /// Time between SIGTERM and SIGKILL of a preempted job; absent: the policy's `kill_wait_seconds`. The job's QOS wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<Seconds>,
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
            qos: None,
            billing_weights: BTreeMap::new(),
            preempt_mode: None,
            grace_seconds: None,
        }
    }

    /// The time limit of a job that names none.
    pub fn default_time(&self) -> Seconds {
        self.default_time_seconds.or(self.max_time_seconds).unwrap_or(3600)
    }
}

/// Quality of service: a priority and limits that jobs choose by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Its jobs' use counts so many times; 0 is free.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub usage_factor: f64,
    /// Multiplies the resource limits of associations for its jobs.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub limit_factor: f64,
    /// Its limits win over those of the partition's QOS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_partition_qos: bool,
    /// A job that breaks one of its limits by itself is refused, whatever the policy says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deny_on_limit: bool,
    /// Limits of all its jobs, and of each.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs_per_user: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs_per_account: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_submit_jobs_per_user: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_submit_jobs_per_account: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub max_tres_per_user: TresCounts,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub max_tres_per_account: TresCounts,
    /// What a user's running jobs may still use until their time limits, in resource-minutes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub max_tres_run_minutes_per_user: TresCounts,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub max_tres_run_minutes_per_account: TresCounts,
    /// The least that a job must ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub min_tres_per_job: TresCounts,
    /// QOS whose jobs its jobs may preempt, if the policy says `preempt_by: qos`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub preempts: BTreeSet<Name>,
    /// What becomes of its jobs when they are preempted; absent: what their partition says, else the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_mode: Option<PreemptMode>,
    /// Time between SIGTERM and SIGKILL of a preempted job; absent: its partition's, else the policy's `kill_wait_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<Seconds>,
    /// Its jobs are safe for so long after they started; absent: what the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_exempt_seconds: Option<Seconds>,
}

fn whole() -> f64 {
    1.0
}
fn is_whole(factor: &f64) -> bool {
    *factor == 1.0
}

impl Qos {
    /// A QOS of no priority and no limits.
    pub fn named(name: Name) -> Self {
        Qos {
            name,
            priority: 0,
            max_time_seconds: None,
            allow_tenants: BTreeSet::new(),
            description: None,
            usage_factor: 1.0,
            limit_factor: 1.0,
            over_partition_qos: false,
            deny_on_limit: false,
            limits: Limits::default(),
            max_jobs_per_user: None,
            max_jobs_per_account: None,
            max_submit_jobs_per_user: None,
            max_submit_jobs_per_account: None,
            max_tres_per_user: TresCounts::new(),
            max_tres_per_account: TresCounts::new(),
            max_tres_run_minutes_per_user: TresCounts::new(),
            max_tres_run_minutes_per_account: TresCounts::new(),
            min_tres_per_job: TresCounts::new(),
            preempts: BTreeSet::new(),
            preempt_mode: None,
            grace_seconds: None,
            preempt_exempt_seconds: None,
        }
    }

    /// Something binds its jobs.
    pub fn has_limits(&self) -> bool {
        let counts = [self.max_jobs_per_user, self.max_jobs_per_account, self.max_submit_jobs_per_user, self.max_submit_jobs_per_account];
        let maps = [
            &self.max_tres_per_user,
            &self.max_tres_per_account,
            &self.max_tres_run_minutes_per_user,
            &self.max_tres_run_minutes_per_account,
            &self.min_tres_per_job,
        ];
        let is_bound = counts.iter().any(Option::is_some) || maps.iter().any(|map| !map.is_empty());
        is_bound || !self.limits.is_empty() || self.max_time_seconds.is_some()
    }

    /// The longest time limit of its jobs.
    pub fn max_time(&self) -> Option<Seconds> {
        self.max_time_seconds.into_iter().chain(self.limits.max_wall_seconds).min()
    }
}

/// How a partition's billing weights make one number of a job's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    /// All weighted counts together.
    #[default]
    Sum,
    /// The greatest of what is bound to nodes, and all the rest.
    MaxTres,
    /// All GRES, the greatest of CPUs, memory and nodes, and all the rest.
    MaxTresGres,
}

/// How usage becomes the fair-share factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FairShareRule {
    /// Users ranked by a walk of the tree: a user never falls behind one of a worse-off account.
    #[default]
    FairTree,
    /// 2^(−U/S): 0.5 is exactly on share.
    Classic,
}

/// When all usage is set to nothing, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageReset {
    #[default]
    None,
    Daily,
    /// Sunday, 00:00.
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
}

/// What becomes of a submission that breaks a limit by itself, so that it could never start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImpossibleLimit {
    #[default]
    Refuse,
    /// It waits, with a verdict, until the limit is raised.
    Wait,
}

/// The cluster's weights and rules. A job's priority is Σ weight × factor, each factor in 0..=1 (Slurm's multifactor plugin).
///
/// By default a QOS weighs more than fair share, and fair share more than age or the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    pub weight_age: u32,
    pub weight_fairshare: u32,
    pub weight_job_size: u32,
    pub weight_association: u32,
    pub weight_partition: u32,
    pub weight_qos: u32,
    /// For each resource its part of the partition's total; `{"gres/gpu": 3000}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Weight>))]
    pub weight_tres: BTreeMap<Tres, Weight>,
    /// Small jobs get the size factor instead of large ones.
    pub favor_small: bool,
    /// The size factor is the job's CPUs over its time limit in minutes.
    pub small_relative_to_time: bool,
    /// Waiting longer than this adds nothing more.
    pub max_age_seconds: Seconds,
    /// Use counts half after so long; 0: it never fades.
    pub half_life_seconds: Seconds,
    pub usage_reset: UsageReset,
    pub fair_share_rule: FairShareRule,
    pub billing: Billing,
    /// Limits in resource-minutes and wall time count what a job may use up to its time limit, not only what has been used.
    pub safe_limits: bool,
    pub impossible_limit: ImpossibleLimit,
    /// Silence of a node after which it kills what it runs, and the scheduler, a little later, places that elsewhere.
    pub node_timeout_seconds: Seconds,
    /// Time between SIGTERM and SIGKILL.
    pub kill_wait_seconds: Seconds,
    /// Wait before a requeued job may start again.
    pub requeue_delay_seconds: Seconds,
    /// How long the record of decisions is kept; 0: none is made.
    pub decision_keep_seconds: Seconds,
    /// By what jobs may preempt others.
    pub preempt_by: PreemptBy,
    /// Whether what a tenant has lent to its cohort is taken back by preemption.
    pub reclaim: Reclaim,
    /// What becomes of preempted jobs, where neither QOS nor partition say.
    pub preempt_mode: PreemptMode,
    /// A job is safe for so long after it started.
    pub preempt_exempt_seconds: Seconds,
    /// Jobs that run on when their reservation has ended are stopped so long after its end (ResvOverRun); absent: they may go on up to their
    /// time limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_overrun_seconds: Option<Seconds>,
    /// One more than the highest index of an array, and so the most tasks of one (MaxArraySize).
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub max_array_size: u32,
    /// Whose priority the components of a heterogeneous job have in the queue (bf_hetjob_prio).
    pub hetjob_priority: HetjobPriority,
    /// How the queue is walked; absent: equal priorities by submission, and a planned start for every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePolicy>,
    /// Idle nodes are powered down, and up again when jobs need them; absent: only as operators ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerPolicy>,
    /// A node that is powered up and has not registered after so long is down.
    pub resume_timeout_seconds: Seconds,
    /// A node that is powered down may be powered up again after so long.
    pub suspend_timeout_seconds: Seconds,
    /// A node that was told to reboot and has not come back after so long is down.
    pub reboot_timeout_seconds: Seconds,
}

/// Whose priority and tier the components of a heterogeneous job share: they are tried as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HetjobPriority {
    /// The first component's.
    #[default]
    Leader,
    /// The lowest of all.
    Min,
    /// The mean of all, rounded down.
    Avg,
    /// The highest of all.
    Max,
}

/// Which idle nodes are powered down, and when (Slurm's power saving).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PowerPolicy {
    /// A node is powered down when it has been idle for so long.
    pub idle_seconds: Seconds,
    /// Nodes that are never powered down, in host-list form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_nodes: Option<String>,
    /// Nodes of these partitions are never powered down.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub exclude_partitions: BTreeSet<Name>,
    /// So many idle nodes stay up.
    pub keep_idle: u32,
    /// Nodes powered down in a minute, at most.
    pub suspend_per_minute: u32,
    /// Nodes powered up in a minute, at most.
    pub resume_per_minute: u32,
}

impl Default for PowerPolicy {
    fn default() -> Self {
        PowerPolicy {
            idle_seconds: 600,
            exclude_nodes: None,
            exclude_partitions: BTreeSet::new(),
            keep_idle: 0,
            suspend_per_minute: 60,
            resume_per_minute: 300,
        }
    }
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
            weight_fairshare: 5000,
            weight_job_size: 0,
            weight_association: 0,
            weight_partition: 1000,
            weight_qos: 10_000,
            weight_tres: BTreeMap::new(),
            favor_small: false,
            small_relative_to_time: false,
            max_age_seconds: 7 * 86_400,
            half_life_seconds: 7 * 86_400,
            usage_reset: UsageReset::None,
            fair_share_rule: FairShareRule::FairTree,
            billing: Billing::Sum,
            safe_limits: true,
            impossible_limit: ImpossibleLimit::Refuse,
            node_timeout_seconds: 60,
            kill_wait_seconds: 30,
            requeue_delay_seconds: 5,
            decision_keep_seconds: 2 * 86_400,
            preempt_by: PreemptBy::Off,
            reclaim: Reclaim::Any,
            preempt_mode: PreemptMode::Requeue,
            preempt_exempt_seconds: 0,
            reservation_overrun_seconds: None,
            max_array_size: MAX_ARRAY_TASKS,
            hetjob_priority: HetjobPriority::Leader,
            queue: None,
            power: None,
            resume_timeout_seconds: 300,
            suspend_timeout_seconds: 30,
            reboot_timeout_seconds: 900,
        }
    }
}
