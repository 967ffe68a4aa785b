//! How a node runs one step: cgroups, plain processes, containers, the shim.
//!
//! The node agent decides *what* must run; this crate knows *how*. Drivers stand behind one trait: `oci` (containers by crun or runc),
//! `engine` (containers by Docker or podman), `process` (cgroup and exec) and `sim` (nothing runs). A real step is looked after by a shim
//! process that outlives the agent, so an agent that restarts finds its steps again through [`Runtime::list`].
//!
//! Without the feature `drivers` only what the small helper runs is left: [`shim`], [`tasks`] and [`container::init`].

pub mod cgroup;
pub mod container;
#[cfg(feature = "drivers")]
pub mod engine;
pub mod fence;
pub mod files;
#[cfg(feature = "drivers")]
pub mod process;
pub mod shim;
#[cfg(feature = "drivers")]
pub mod sim;
mod spec;
pub mod tasks;

#[cfg(feature = "drivers")]
use async_trait::async_trait;

pub use spec::*;

/// A driver. All calls are idempotent where that makes sense: `prepare` of a prepared step and `start` of a started one succeed.
#[cfg(feature = "drivers")]
#[async_trait]
pub trait Runtime: Send + Sync {
    /// The driver's name: `oci`, `process`, `engine` or `sim`.
    fn name(&self) -> &'static str;
    /// Pulls the image, builds the root, writes the bundle, makes the cgroup, starts the shim and creates the container or the
    /// held-back processes: all but the go. After it, `start` takes a few milliseconds.
    async fn prepare(&self, spec: &LaunchSpec) -> Result<(), LaunchError>;
    /// Lets a prepared step go.
    async fn start(&self, key: &StepKey) -> Result<(), LaunchError>;
    /// Sends `signal` to every task (and, for a batch script with `all`, to all processes of the step).
    async fn signal(&self, key: &StepKey, signal: i32, all: bool) -> Result<(), LaunchError>;
    /// Freezes all of the step, or lets it go on. A frozen one is still killed at once.
    async fn suspend(&self, key: &StepKey, is_suspended: bool) -> Result<(), LaunchError>;
    /// Binds the step to other CPUs from now on.
    async fn bind(&self, key: &StepKey, cores: &[u32]) -> Result<(), LaunchError>;
    /// SIGKILL for everything in the step, at once and for certain.
    async fn kill(&self, key: &StepKey) -> Result<(), LaunchError>;
    /// Waits for the end of the step on this node. May be called by a restarted agent for a step it did not start.
    async fn wait(&self, key: &StepKey) -> Result<StepExit, LaunchError>;
    /// What the running step uses now.
    async fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError>;
    /// Removes what the step left (bundle, mounts, cgroup, journal), killing it first if need be. The spool files stay.
    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError>;
    /// Every step this driver knows on the node, found on disk: recovery after a restart.
    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError>;
}
