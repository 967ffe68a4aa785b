//! The `process` driver: tasks are plain processes on the host's root, in a cgroup of their step, looked after by a shim.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::cgroup::{Group, Layout};
use crate::shim::{SavedLayout, group_name, job_group_name};
use crate::tasks::fault;
use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, Runtime, StepExit, StepKey, StepPhase, Usage};

/// The driver. Its state is on disk alone.
#[derive(Clone, Debug)]
pub struct Process {
    steps: StepDirs,
    layout: Layout,
}

/// The command to which a step's folder is added, as in `berth shim`.
#[derive(Clone, Debug)]
pub struct ShimCommand(pub Vec<String>);

/// Steps' folders and their shims: what the drivers of real steps have in common.
#[derive(Clone, Debug)]
pub struct StepDirs {
    state: PathBuf,
    shim: ShimCommand,
}

impl StepDirs {
    pub fn open(state: &Path, shim: ShimCommand) -> io::Result<StepDirs> {
        fs::create_dir_all(state)?;
        Ok(StepDirs { state: state.canonicalize()?, shim })
    }

    pub fn dir(&self, key: &StepKey) -> PathBuf {
        self.state.join(format!("{}-{}-{}", key.job, key.attempt, key.step))
    }

    pub fn spec(&self, key: &StepKey) -> Result<LaunchSpec, LaunchError> {
        let bytes = fs::read(self.dir(key).join("spec.json")).map_err(|e| node_error(format!("the step is not prepared: {e}")))?;
        serde_json::from_slice(&bytes).map_err(|e| node_error(e.to_string()))
    }

    /// A shim looks after this folder, or did.
    pub fn has_shim(&self, dir: &Path) -> bool {
        dir.join("shim.lock").exists()
    }

    /// Starts the shim, unless one holds the lock. The lock is handed over as its standard input: with nothing to do between fork and
    /// exec, the standard library can use `posix_spawn`, which copies no page tables of the agent.
    pub fn start_shim(&self, dir: &Path) -> Result<(), LaunchError> {
        let Some(lock) = lock(dir).map_err(|e| node_error(e.to_string()))? else { return Ok(()) };
        let [program, args @ ..] = self.shim.0.as_slice() else { return Err(node_error("there is no shim to start")) };
        let mut command = Command::new(program);
        command.args(args).arg(dir).env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        // A group of its own: no signal to the agent's group reaches it.
        command.process_group(0).stdin(Stdio::from(lock)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| node_error(format!("the shim did not start: {e}")))?;
        // Reaped when it ends; after a restart of the agent that is init's business.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// Waits for the shim to be gone. `None`: it left no word of how the step ended.
    pub async fn wait(&self, key: &StepKey) -> Result<Option<StepExit>, LaunchError> {
        let dir = self.dir(key);
        let file =
            OpenOptions::new().read(true).open(dir.join("shim.lock")).map_err(|e| node_error(format!("the step did not start: {e}")))?;
        // The lock is free when the shim is gone.
        let waited = tokio::task::spawn_blocking(move || unsafe {
            // Safety: a plain system call on our own descriptor, repeated when a signal interrupts it.
            while libc::flock(file.as_raw_fd(), libc::LOCK_SH) != 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
        });
        waited.await.map_err(|e| node_error(e.to_string()))?;
        match fs::read(dir.join("exit.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| node_error(e.to_string())),
            Err(_) => Ok(None),
        }
    }

    /// The steps on disk; a preparation that was cut off is removed, after `clear` has undone what is beside its files.
    pub fn list(&self, phase: impl Fn(&Path) -> StepPhase, clear: impl Fn(&Path)) -> Result<Vec<FoundStep>, LaunchError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.state).map_err(|e| node_error(e.to_string()))?.flatten() {
            let dir = entry.path();
            if let Ok(bytes) = fs::read(dir.join("spec.json"))
                && let Ok(spec) = serde_json::from_slice::<LaunchSpec>(&bytes)
            {
                found.push(FoundStep { key: spec.key, phase: phase(&dir) });
            } else {
                clear(&dir);
                let _ = fs::remove_dir_all(&dir);
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }
}

impl Process {
    /// Keeps its steps below `state`; `shim` is the command to which a step's folder is added, as in `berth shim`.
    pub fn open(state: &Path, shim: Vec<String>) -> io::Result<Process> {
        Ok(Process { steps: StepDirs::open(state, ShimCommand(shim))?, layout: Layout::detect() })
    }

    fn group(&self, key: &StepKey) -> Result<Group, LaunchError> {
        Ok(Group::new(&self.layout, &group_name(&self.steps.spec(key)?)))
    }

    fn phase(&self, dir: &Path) -> StepPhase {
        if dir.join("exit.json").exists() {
            StepPhase::Exited
        } else if self.steps.has_shim(dir) {
            StepPhase::Running
        } else {
            StepPhase::Created
        }
    }
}

/// Sends a signal to the tasks that the shim has listed.
fn send(dir: &Path, signal: i32, all: bool) {
    for task in fs::read_to_string(dir.join("pids")).unwrap_or_default().lines().filter_map(|line| line.parse::<i32>().ok()) {
        // Each task leads a process group of its own, in which its children are. Safety: a plain system call; the groups are those of
        // the step's tasks.
        unsafe { libc::kill(if all { -task } else { task }, signal) };
    }
}

/// Looks until `holds`, for a few seconds at most: what a shim that was just started does takes milliseconds.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Freezes a step's group, or lets it go on.
pub(crate) async fn freeze(group: Group, is_frozen: bool) -> Result<(), LaunchError> {
    let frozen = tokio::task::spawn_blocking(move || group.freeze(is_frozen)).await.map_err(|e| node_error(e.to_string()))?;
    let what = if is_frozen { "suspended" } else { "resumed" };
    frozen.map_err(|e| node_error(format!("the step could not be {what}: {e}")))
}

pub(crate) fn node_error(detail: impl Into<String>) -> LaunchError {
    fault(LaunchCause::NodeError, detail)
}

/// An exclusive lock on the step's `shim.lock`, to be inherited by the shim; the kernel frees it when the shim is gone, however it went.
fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).write(true).truncate(false).open(dir.join("shim.lock"))?;
    // Safety: a plain system call on our own descriptor.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
    Ok(locked.then_some(file))
}

#[async_trait]
impl Runtime for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    async fn prepare(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        if spec.image.is_some() {
            return Err(LaunchError { cause: LaunchCause::BadSpec, detail: "the process driver runs no containers".to_owned() });
        }
        let dir = self.steps.dir(&spec.key);
        if dir.join("spec.json").exists() {
            return Ok(());
        }
        let write = || -> io::Result<()> {
            fs::create_dir_all(&dir)?;
            for task in &spec.tasks {
                for file in [&task.stdout, &task.stderr] {
                    if let Some(parent) = file.parent() {
                        fs::create_dir_all(parent)?;
                    }
                }
            }
            fs::write(dir.join("cgroup.json"), serde_json::to_vec(&SavedLayout::of(&self.layout))?)?;
            Group::new(&self.layout, &job_group_name(spec)).create(&spec.job_limits)?;
            Group::new(&self.layout, &group_name(spec)).create(&spec.limits)?;
            fs::write(dir.join("spec.json.new"), serde_json::to_vec(spec)?)?;
            fs::rename(dir.join("spec.json.new"), dir.join("spec.json"))
        };
        write().map_err(|e| node_error(format!("the step could not be prepared: {e}")))
    }

    async fn start(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        if self.phase(&dir) == StepPhase::Created { self.steps.start_shim(&dir) } else { Ok(()) }
    }

    async fn signal(&self, key: &StepKey, signal: i32, all: bool) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        // The shim may be starting them just now: a signal must not miss them.
        until(|| dir.join("pids").exists() || self.phase(&dir) != StepPhase::Running).await;
        send(&dir, signal, all);
        Ok(())
    }

    async fn suspend(&self, key: &StepKey, is_suspended: bool) -> Result<(), LaunchError> {
        if self.layout == Layout::None {
            let signal = if is_suspended { libc::SIGSTOP } else { libc::SIGCONT };
            return self.signal(key, signal, true).await;
        }
        freeze(self.group(key)?, is_suspended).await
    }

    async fn bind(&self, key: &StepKey, cores: &[u32]) -> Result<(), LaunchError> {
        self.group(key)?.bind(cores).map_err(|e| node_error(format!("the step could not be bound to other CPUs: {e}")))
    }

    async fn kill(&self, key: &StepKey) -> Result<(), LaunchError> {
        send(&self.steps.dir(key), libc::SIGKILL, true);
        let group = self.group(key)?;
        tokio::task::spawn_blocking(move || group.kill()).await.map_err(|e| node_error(e.to_string()))
    }

    async fn wait(&self, key: &StepKey) -> Result<StepExit, LaunchError> {
        match self.steps.wait(key).await? {
            Some(exit) => Ok(exit),
            None => {
                self.kill(key).await?;
                let failure = LaunchError { cause: LaunchCause::Lost, detail: "the step's shim died".to_owned() };
                Ok(StepExit { failure: Some(failure), usage: self.usage(key).await?, ..StepExit::default() })
            }
        }
    }

    async fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError> {
        Ok(self.group(key)?.usage())
    }

    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        if !dir.exists() {
            return Ok(());
        }
        if self.phase(&dir) == StepPhase::Running {
            self.kill(key).await?;
            let _ = self.wait(key).await;
        }
        if let Ok(group) = self.group(key) {
            let _ = tokio::task::spawn_blocking(move || group.remove()).await;
        }
        fs::remove_dir_all(&dir).map_err(|e| node_error(e.to_string()))
    }

    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError> {
        self.steps.list(|dir| self.phase(dir), |_| {})
    }
}
