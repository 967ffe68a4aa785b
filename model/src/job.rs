//! The job as a user writes it. One body serves JSON and batch scripts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::component::ComponentSpec;
use crate::resources::ResourceRequest;
use crate::{Name, Seconds};

/// A job to submit. It has either a `script`, run once on the first node (its `srun` lines open parallel steps), or a
/// `command`, run once for each task on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct JobSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<Name>,
    /// Text of a batch script, beginning with `#!`. At most 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Arguments of the script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub script_args: Vec<String>,
    /// Program and arguments of a job without a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerSpec>,
    pub resources: ResourceRequest,
    /// Seconds the job may run; absent: the partition's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<Seconds>,
    /// The least time limit the job would accept to start sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_min_seconds: Option<Seconds>,
    /// Not before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The job must have ended by this instant, or it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Features of its nodes: of each `a&b`, `a|b`; the same of all nodes `[a|b]`; of so many `[a*2&b*4]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Features that its nodes should have besides if that costs no time, in the same form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// Nodes to use, all of them, in host-list form `n[1-4,7]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelist: Option<String>,
    /// Nodes to avoid, in host-list form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    pub environment: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    /// Further components of a heterogeneous job, each with resources of its own; the job itself is component 0 and runs the script. All
    /// start together. At most 127.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentSpec>,
    /// Array indices in Slurm's form: `0-15:4,20%2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// Slurm's form, one condition each: `afterok:1201`. All must hold; with `dependency_any` one suffices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    pub dependency_any: bool,
    pub requeue: RequeueSpec,
    /// A signal before the time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalSpec>,
    /// Submit held: nothing starts until released.
    pub hold: bool,
    /// Lowers the priority; negative values need an operator's role.
    pub nice: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wckey: Option<String>,
    /// Licences to hold while it runs: all of `matlab:2,ansys`, or any one of `matlab:2|comsol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// File in the job's view that gets a copy of the output, with Slurm's patterns (`%j`, `%A_%a`, `%x`, `%N`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Standard input comes in pieces to `/v1/jobs/{job_id}/stdin`; each task reads all of it.
    pub stream_stdin: bool,
    /// Truncate or append to the output files.
    pub open_mode: OpenMode,
    /// What runs the job: `batch` here; `external` leaves the launch to another system.
    pub kind: JobKind,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ContainerSpec {
    /// Image reference: `registry.example/torch:2.9`, by tag or digest, or `oci:/path/to/layout:tag` on the node.
    pub image: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountSpec>,
    #[serde(default)]
    pub read_only_root: bool,
    /// `host` (default: what NCCL and InfiniBand want) or `none`.
    #[serde(default)]
    pub network: Network,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    Host,
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MountSpec {
    /// Path on the node; the worker's configuration says which may be mounted.
    pub source: String,
    pub target: String,
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OpenMode {
    #[default]
    Truncate,
    Append,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    #[default]
    Batch,
    External,
    /// A further component of a heterogeneous job: it holds nodes for the steps of the leader's script. Never submitted by itself.
    Component,
}

/// Whether the job runs again after a failure that is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RequeueSpec {
    pub mode: RequeueMode,
    /// Requeues allowed in all.
    pub max_restarts: u32,
}

impl Default for RequeueSpec {
    fn default() -> Self {
        RequeueSpec { mode: RequeueMode::Requeue, max_restarts: 5 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequeueMode {
    Never,
    #[default]
    Requeue,
    /// Ahead of everything, at once, when a node failed.
    Expedite,
}

/// Slurm's `--signal=[B:]sig[@seconds]`: sent `seconds_before` the time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignalSpec {
    /// Name (`SIGUSR1`, `USR1`) or number.
    pub signal: String,
    #[serde(default = "default_signal_lead")]
    pub seconds_before: Seconds,
    /// Only the batch shell gets it; otherwise all steps but the batch shell.
    #[serde(default)]
    pub batch_only: bool,
}

fn default_signal_lead() -> Seconds {
    60
}

/// Number of a signal given by name or number; 1 to 64.
pub fn signal_number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    // Linux's numbers on x86-64 and arm64.
    Some(match name {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ABRT" => 6,
        "KILL" => 9,
        "USR1" => 10,
        "SEGV" => 11,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        "CONT" => 18,
        "STOP" => 19,
        "TSTP" => 20,
        "TTIN" => 21,
        "TTOU" => 22,
        "URG" => 23,
        "XCPU" => 24,
        "WINCH" => 28,
        _ => return None,
    })
}
