//! The worker protocol: registration, desired state, reports, logs. Workers pull; nothing is pushed to a node.
//!
//! The desired state is a level, not an edge: it lists all that should be on the node, and what it does not list must not run.
//! Reports are numbered within a boot of the worker and applied at most once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::job::JobSpec;
use crate::resources::{Inventory, NodeAllocation};
use crate::state::LogStream;
use crate::step::{NodeStep, StepResult, StepSpec, StopReason};
use crate::{Bytes, JobId, NodeName, RunId, Seconds, StepId};

/// `POST /v1/worker/register`, authorised by a join token or by the node's own token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Register {
    pub node: NodeName,
    /// New at each start of the worker process; numbers its reports.
    pub boot_id: String,
    /// New at each boot of the machine.
    #[serde(default)]
    pub machine_boot: String,
    pub inventory: Inventory,
    #[serde(default)]
    pub features: BTreeSet<String>,
    /// Host name or IP address by which the tasks of other nodes reach this one (`MASTER_ADDR`).
    pub address: String,
    /// Drivers that passed their probe, the default first.
    pub drivers: Vec<String>,
    pub version: String,
    /// The worker's clock, for the skew shown to operators.
    pub clock: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Registered {
    /// The node's token, an hour long; `POST /v1/worker/token` renews it.
    pub token: String,
    pub expires_at: Timestamp,
    pub settings: WorkerSettings,
}

/// `POST /v1/worker/token`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeToken {
    pub token: String,
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerSettings {
    pub heartbeat_seconds: Seconds,
    /// A worker that has had no answer for so long kills what it runs.
    pub node_timeout_seconds: Seconds,
    pub kill_wait_seconds: Seconds,
}

/// `GET /v1/worker/assignments?cursor=…&wait_seconds=…`: all that should be on the node. 204 when nothing changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DesiredState {
    pub cursor: String,
    pub settings: WorkerSettings,
    /// The node is drained: finish what runs, start no prolog for anything new.
    pub is_draining: bool,
    /// The machine is to be rebooted now; nothing runs here.
    #[serde(default)]
    pub reboot: bool,
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub assignments: Vec<Assignment>,
}

/// What an attempt should be doing on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Pull, create, hold back.
    Prepare,
    /// Run. (A gang of one is sent here at once: it prepares and goes.)
    Go,
    /// End what runs, clean up, report `finished`.
    Stop,
}

/// One attempt's part on this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub job_id: JobId,
    pub attempt: u32,
    pub run_id: RunId,
    pub phase: Phase,
    /// With `phase: stop`.
    pub stop: Option<StopOrder>,
    pub context: JobContext,
    /// This node's share.
    pub allocation: NodeAllocation,
    /// This node's place in the allocation, from 0; the batch script runs on 0.
    pub node_index: u32,
    /// Authorises `srun` inside the job.
    pub job_token: String,
    /// Steps to run here, the deciding one first.
    pub steps: Vec<StepAssignment>,
    /// Signals asked for by users, each delivered once.
    pub signals: Vec<SignalOrder>,
    /// Number of the suspension: all that runs is to be frozen; absent: it is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub reason: StopReason,
    /// Seconds between SIGTERM and SIGKILL; 0 kills at once.
    pub grace_seconds: Seconds,
}

/// A signal to deliver. Ids grow within an attempt; a worker skips those it has delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalOrder {
    pub id: u64,
    pub signal: i32,
    /// Only this step; absent: all steps but the batch shell (Slurm's `scancel --signal`).
    pub step: Option<StepId>,
    /// The batch shell and its children too (`--full`).
    pub is_full: bool,
}

/// What is the same on all nodes of the attempt, from which environments are built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobContext {
    pub tenant: String,
    pub account: String,
    pub user: String,
    pub partition: String,
    pub qos: String,
    /// The spec as submitted, defaults filled in.
    pub spec: JobSpec,
    pub submit_time: Timestamp,
    pub time_limit_seconds: Seconds,
    /// Times this job was requeued.
    pub restarts: u32,
    pub array: Option<ArrayContext>,
    /// All nodes of the attempt in order.
    pub nodes: Vec<NodeContext>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayContext {
    pub job_id: JobId,
    pub task_id: u32,
    pub task_count: u32,
    pub task_min: u32,
    pub task_max: u32,
    pub task_step: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeContext {
    pub name: NodeName,
    pub address: String,
    pub cpus: u32,
    pub tasks: u32,
    pub gpus: u32,
}

/// A step's part on this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepAssignment {
    pub step: StepId,
    pub phase: Phase,
    /// Absent for the batch script and for the job's own command: then the job's spec says what runs.
    pub spec: Option<StepSpec>,
    /// Tasks of the step on all nodes together.
    pub task_count: u32,
    /// Nodes of the step, in order, with their number of tasks.
    pub nodes: Vec<(NodeName, u32)>,
    pub here: NodeStep,
    /// `MASTER_PORT` of the step's tasks, the same on all its nodes.
    pub master_port: u16,
}

/// `POST /v1/worker/reports`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportBatch {
    pub boot_id: String,
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub reports: Vec<Report>,
}

/// A numbered fact. Numbers grow by one within a boot; one at or below the last applied is a repeat and is skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub seq: u64,
    #[serde(flatten)]
    pub fact: Fact,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fact")]
pub enum Fact {
    /// The first step of the attempt is prepared; waits for the go.
    Prepared {
        job_id: JobId,
        attempt: u32,
    },
    /// This node's part of the attempt cannot start. `finished` follows after cleaning up.
    PrepareFailed {
        job_id: JobId,
        attempt: u32,
        cause: String,
        detail: String,
        is_nodes_fault: bool,
    },
    /// A step's tasks run here.
    StepStarted {
        job_id: JobId,
        attempt: u32,
        step: StepId,
    },
    StepEnded {
        job_id: JobId,
        attempt: u32,
        step: StepId,
        result: StepResult,
    },
    /// All that runs of the attempt here is frozen.
    Suspended {
        job_id: JobId,
        attempt: u32,
        suspension: u32,
    },
    /// Nothing of the attempt is left on the node; its resources are free. `epilog_failed` drains the node.
    Finished {
        job_id: JobId,
        attempt: u32,
        epilog_failed: Option<String>,
    },
    InventoryChanged {
        inventory: Inventory,
    },
    /// The node is sick and should be drained with this reason.
    Unhealthy {
        reason: String,
    },
    /// The cause of an earlier `unhealthy` is gone.
    Healthy,
    /// A step's use so far.
    Sample {
        job_id: JobId,
        attempt: u32,
        step: StepId,
        cpu_usec: u64,
        memory_bytes: Bytes,
        gpu_utilization_percent: Option<u32>,
    },
}

/// Answer to reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportsApplied {
    /// The highest number applied; the worker may forget up to it.
    pub applied: u64,
    /// Numbers of reports about attempts that are over: recorded, without effect.
    pub stale: Vec<u64>,
}

/// `POST /v1/worker/logs`: pieces of output, each at its offset, so that a repeat overwrites itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogChunks {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChunk {
    pub job_id: JobId,
    pub attempt: u32,
    pub step: StepId,
    /// The task's rank in the step.
    pub task: u32,
    pub stream: LogStream,
    /// Bytes of this stream before this piece.
    pub offset: u64,
    /// Base64 of the bytes.
    pub bytes: String,
}
