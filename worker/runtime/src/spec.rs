//! What a driver is given and what it gives back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Names one node's part of one step: all tasks of `step` that run on this node under `attempt` of `job`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepKey {
    pub job: u64,
    pub attempt: u32,
    /// `batch`, or the step's number (`0`, `1`, …).
    pub step: String,
}

/// All that a driver needs to run one node's part of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub key: StepKey,
    /// Name shown to the tasks as their host name in containers with a private UTS namespace.
    pub hostname: Option<String>,
    /// What each task runs. `argv[0]` is looked up on the task's PATH.
    pub argv: Vec<String>,
    /// A batch script: written to a file (mode 0755) inside the job's view and run as `argv = [that file, args…]`; `argv`
    /// then holds only the script's arguments.
    pub script: Option<String>,
    /// Environment common to all tasks. Nothing of the agent's own environment is inherited.
    pub env: BTreeMap<String, String>,
    /// One entry for each task that this node runs (at least one).
    pub tasks: Vec<TaskSpec>,
    /// Working directory inside the job's view; created for containers if absent, `/` or the job's scratch directory if `None`.
    pub cwd: Option<PathBuf>,
    /// Numeric user and group; `None` runs as the agent's own user (the development default).
    pub user: Option<UserIds>,
    /// The container's image and mounts; `None` runs on the host's root (driver `process`).
    pub image: Option<String>,
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    /// Walls around all steps of the attempt on this node together; the memory alone is looked at.
    pub job_limits: Limits,
    /// GPUs granted, by UUID, with the device nodes to expose when no CDI spec names them.
    pub gpus: Vec<GpuDevice>,
    /// `true` gives the container no network but loopback; otherwise the host's network.
    pub no_network: bool,
    /// Host directory of job-private tools, put first on PATH (holds `srun`), visible read-only at the same path in containers.
    pub tools_dir: Option<PathBuf>,
    /// Host unix socket of the agent for this job, visible at the same path in containers.
    pub agent_socket: Option<PathBuf>,
    /// A per-attempt scratch directory on the host, bind-mounted writable at the same path in containers; `TMPDIR` is set by the agent.
    pub scratch_dir: Option<PathBuf>,
    /// A read-only root file system for the container.
    pub read_only_root: bool,
    /// Group under which the step's own is made: `berth/<node>`. Two agents on one machine differ in it.
    pub cgroup_parent: String,
    /// The agent's lease, see [`crate::fence`]: the shim ends the step when it has run out. `None`: no lease.
    pub lease: Option<PathBuf>,
    /// The first task that ends with another code than 0 takes the others on this node with it.
    pub kill_on_bad_exit: bool,
}

/// One task's own part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The task's rank in the step (`SLURM_PROCID`).
    pub rank: u32,
    /// Variables of this task alone; they win over [`LaunchSpec::env`].
    pub env: BTreeMap<String, String>,
    /// CPU ids this task is bound to; empty means all of the step's.
    pub cores: Vec<u32>,
    /// GPUs of the step that this task sees, by UUID.
    pub gpus: Vec<String>,
    /// Spool files on the host, created by the driver, append mode: what the agent uploads as the task's log.
    pub stdout: PathBuf,
    pub stderr: PathBuf,
    /// Copies of the output that the user asked for (`--output`, `--error`): opened inside the job's view with the job's own user,
    /// relative to `cwd`. `None` means spool only. Both may name the same file.
    pub tee_stdout: Option<PathBuf>,
    pub tee_stderr: Option<PathBuf>,
    /// Truncate the copies instead of appending to them.
    pub tee_truncate: bool,
    /// A file in the job's view to read standard input from; `/dev/null` if `None`.
    pub stdin: Option<PathBuf>,
    /// A spool file that standard input is read from as it grows, until there is one beside it with the extension `end`. `stdin` wins.
    #[serde(default)]
    pub stdin_spool: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIds {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

/// Walls around the step, for all its tasks on this node together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU ids the step may run on; empty leaves the set alone.
    pub cores: Vec<u32>,
    /// CPU quota in thousandths of a CPU; `None` means the cpuset alone limits.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory; beyond it the kernel's OOM killer ends the step.
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
}

/// A granted GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDevice {
    pub uuid: String,
    /// Index on the node, as the vendor's tools count.
    pub index: u32,
    /// CDI device name (`nvidia.com/gpu=GPU-…`) if the node has a CDI spec for it.
    pub cdi: Option<String>,
    /// Device nodes on the host to expose when there is no CDI name.
    pub device_nodes: Vec<PathBuf>,
    /// It was declared, not found: nothing needs to be exposed for it.
    pub is_declared: bool,
}

/// How one task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskExit {
    pub rank: u32,
    /// Exit code 0–255 when the task exited by itself.
    pub code: Option<i32>,
    /// Signal number when a signal ended it.
    pub signal: Option<i32>,
}

/// What the step used, read from its cgroup after its end and before its removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub cpu_usec: u64,
    pub memory_peak_bytes: u64,
}

/// How this node's part of a step ended. Written by the shim as `exit.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepExit {
    pub tasks: Vec<TaskExit>,
    /// The kernel's OOM killer ended something in the step.
    pub oom_killed: bool,
    pub usage: Usage,
    /// Wall time between start and the last task's end, from the monotonic clock.
    pub elapsed_ms: u64,
    /// Set when the step did not end by itself or by a signal but the driver lost it or could not start it.
    pub failure: Option<LaunchError>,
}

/// Why a step could not be prepared or started, by whose fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{cause:?}: {detail}")]
pub struct LaunchError {
    pub cause: LaunchCause,
    pub detail: String,
}

/// The stable causes of a failed launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchCause {
    /// The image does not exist or may not be pulled: the job's fault.
    ImageUnavailable,
    /// The program is not on PATH or cannot be executed: the job's fault, exit code 127 or 126.
    ExecNotFound,
    /// The spec asks for what cannot be (a mount source that is not there, a working directory that is a file): the job's fault.
    BadSpec,
    /// The registry could not be reached or answered nonsense: nobody's fault yet.
    RegistryError,
    /// A file named for input or output cannot be opened: the job's fault, which fails as if its program had said so.
    FileError,
    /// A device could not be given: the node's fault.
    DeviceError,
    /// The runtime, the disk or the kernel refused: the node's fault.
    NodeError,
    /// The shim died and the step's end is unknown: the node's fault.
    Lost,
    /// The node could not reach the service for so long that the step had to be ended: it may run elsewhere by now.
    CutOff,
}

/// A step that the driver knows, as [`Runtime::list`] finds it after a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundStep {
    pub key: StepKey,
    pub phase: StepPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPhase {
    /// Prepared and created, waiting for `start`.
    Created,
    Running,
    /// Ended; `wait` returns at once.
    Exited,
}
