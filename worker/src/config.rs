//! What a worker is told at its start.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use berth_model::gres::DeclaredShares;
use berth_model::{Bytes, NodeName};
use berth_runtime::UserIds;

use crate::metrics::WorkerMetrics;

/// Configuration of one worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Base URLs of the service; the next is tried when one cannot be reached.
    pub servers: Vec<String>,
    pub node: NodeName,
    /// Lets the node in the first time. Afterwards its own token does.
    pub join_token: Option<String>,
    /// Journals, sockets, images and output that is not uploaded yet. One worker each.
    pub state_dir: PathBuf,
    /// Host name or address by which other nodes' tasks reach this node.
    pub address: String,
    pub features: BTreeSet<String>,
    /// Overrides what was discovered.
    pub declared: Declared,
    /// Command to which a step's folder is added, for steps that a container engine runs: `berth shim`.
    pub engine_shim: Vec<String>,
    /// Driver of jobs without a container image: `process` or `sim`.
    pub driver: String,
    pub containers: Containers,
    /// NVIDIA's management library; `None`: where the loader finds it.
    pub nvml_library: Option<PathBuf>,
    pub hooks: Hooks,
    /// Whom jobs run as; `None`: the worker's own user.
    pub run_as: Option<UserIds>,
    /// Seconds of the longest wait for a change. The service caps it at 30.
    pub poll_wait_seconds: u64,
    /// File that tells one boot of the machine from the next: the kernel's, but for tests.
    pub machine_boot: PathBuf,
    /// Processes and threads that a step may have on this node.
    pub pids_limit: u64,
    pub metrics: Arc<WorkerMetrics>,
}

/// An inventory by declaration, for tests, simulations and nodes whose devices cannot be discovered.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// Number of CPUs; more than the machine has are taken at their word, and steps are then not bound to CPUs.
    pub cpus: Option<u32>,
    pub memory: Option<Bytes>,
    /// Threads of each core: jobs get whole cores. 1: they get CPUs one by one.
    pub threads_per_core: Option<u32>,
    /// `type:count`, as in `h100:8`.
    pub gpus: Option<berth_model::resources::Gpus>,
    /// How GPUs, declared or found, may be shared.
    pub shares: Vec<DeclaredShares>,
}

/// Programs of the operator.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Runs before the first step of an attempt; another end than 0 drains the node.
    pub prolog: Option<PathBuf>,
    /// Runs after the last; another end than 0 drains the node.
    pub epilog: Option<PathBuf>,
    /// Runs now and then; another end than 0 drains the node with the first line it prints as the reason, and 0 clears that.
    pub health_check: Option<PathBuf>,
    pub health_interval: Duration,
    /// Reboots the machine, when an operator asks for that.
    pub reboot: Option<PathBuf>,
}

/// How jobs' containers are run.
#[derive(Clone, Debug, Default)]
pub struct Containers {
    /// `oci` or `engine`.
    pub driver: String,
    /// The engine's socket; `None`: Docker's, or else podman's usual one.
    pub engine_socket: Option<PathBuf>,
    /// crun, runc or a path; `None`: the first of them that works.
    pub runtime: Option<String>,
    /// Registries without TLS, beside those on loopback.
    pub insecure_registries: Vec<String>,
    /// Logins to registries, a file as `docker login` writes it.
    pub registry_auth: Option<PathBuf>,
    /// Folders of CDI specs.
    pub cdi_dirs: Vec<String>,
    /// Host folders below which jobs may mount.
    pub mounts: Vec<PathBuf>,
}
