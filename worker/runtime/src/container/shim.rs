//! The shim of a container: creates it, waits for the go, starts it, waits for its end, reads what it used, and removes it.
//!
//! Files in the step's folder beside those of a plain step: `bundle/` (root and `config.json`, not with an engine), `io/` (what the
//! container sees), `runtime.json` (who runs it), `created` (ready for the go; process 1 on the host), `group` (the container's), `go` (a
//! pipe that gets one byte), `started`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::init::InitResult;
use super::{BUNDLE, IO};
use crate::cgroup::{Group, Layout};
#[cfg(feature = "drivers")]
use crate::engine::EngineContainer;
use crate::shim::{Everything, group_name, watch_lease};
use crate::tasks::fault;
use crate::{LaunchCause, LaunchError, LaunchSpec, StepExit, TaskExit, Usage};

/// One container, by whoever runs it. Kept as `runtime.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    Oci(RuntimeCommand),
    /// The engine's API is too much for the small helper: `berth shim` looks after these.
    #[cfg(feature = "drivers")]
    Engine(EngineContainer),
}

/// A container whose process 1 waits for the go.
pub struct Created {
    /// Process 1 on the host.
    pub pid: i32,
    /// The container's own group.
    pub group: Group,
}

impl Container {
    /// Makes it.
    fn create(&self, dir: &Path, spec: &LaunchSpec, layout: &Layout) -> Result<Created, LaunchError> {
        match self {
            Container::Oci(runtime) => Ok(Created { pid: create(dir, runtime)?, group: Group::new(layout, &group_name(spec)) }),
            #[cfg(feature = "drivers")]
            Container::Engine(container) => container.create(layout),
        }
    }

    /// Lets its tasks start.
    fn start(&self) -> Result<(), LaunchError> {
        match self {
            Container::Oci(runtime) => runtime.start(),
            #[cfg(feature = "drivers")]
            Container::Engine(container) => container.go(),
        }
    }

    /// Waits until its tasks are over and their ends written down, or until it has ended otherwise. Gives its raw status.
    fn wait(&self, pid: i32) -> i32 {
        match self {
            Container::Oci(_) => wait_for_child(pid),
            #[cfg(feature = "drivers")]
            Container::Engine(container) => container.wait(),
        }
    }

    fn is_oom_killed(&self) -> bool {
        match self {
            Container::Oci(_) => false,
            #[cfg(feature = "drivers")]
            Container::Engine(container) => container.is_oom_killed(),
        }
    }

    fn delete(&self) {
        match self {
            Container::Oci(runtime) => runtime.delete(),
            #[cfg(feature = "drivers")]
            Container::Engine(container) => container.delete(),
        }
    }
}

/// How crun or runc is called for a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuntimeCommand {
    /// crun or runc.
    pub program: PathBuf,
    /// Where it keeps its state.
    pub root: PathBuf,
    /// The container's id.
    pub id: String,
}

impl RuntimeCommand {
    pub fn call(&self, args: &[&str]) -> io::Result<std::process::Output> {
        Command::new(&self.program).arg("--root").arg(&self.root).args(args).stdin(Stdio::null()).output()
    }

    fn start(&self) -> Result<(), LaunchError> {
        let output =
            self.call(&["start", &self.id]).map_err(|e| fault(LaunchCause::NodeError, format!("{}: {e}", self.program.display())))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(fault(LaunchCause::NodeError, format!("the container did not start: {}", last_line(&output.stderr))))
        }
    }

    /// Removes the container, if it is there.
    pub fn delete(&self) {
        let _ = self.call(&["delete", "--force", &self.id]);
    }
}

/// Looks after the container in `dir` to its end.
pub fn run(dir: &Path) -> io::Result<()> {
    // The container's process 1 becomes our child, so that its end is ours to read. Safety: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let spec: LaunchSpec = serde_json::from_slice(&fs::read(dir.join("spec.json"))?)?;
    let container: Arc<Container> = Arc::new(serde_json::from_slice(&fs::read(dir.join("runtime.json"))?)?);
    let layout = Layout::detect_quick(dir);
    // The step's group, which an engine makes the container's in, keeps counting what happened in that.
    let step = Group::new(&layout, &group_name(&spec));
    let mut group = step.clone();
    let mut exit = StepExit::default();
    if let Err(failure) = live(dir, &spec, &layout, &container, &mut group, &mut exit) {
        exit.failure = Some(failure);
    }
    // An engine removes the group with the container.
    exit.oom_killed = group.is_oom_killed() || step.is_oom_killed() || container.is_oom_killed();
    let (usage, whole) = (group.usage(), step.usage());
    exit.usage =
        Usage { cpu_usec: usage.cpu_usec.max(whole.cpu_usec), memory_peak_bytes: usage.memory_peak_bytes.max(whole.memory_peak_bytes) };
    group.kill();
    container.delete();
    let draft = dir.join("exit.json.new");
    fs::write(&draft, serde_json::to_vec(&exit)?)?;
    fs::rename(draft, dir.join("exit.json"))
}

fn live(
    dir: &Path,
    spec: &LaunchSpec,
    layout: &Layout,
    container: &Arc<Container>,
    group: &mut Group,
    exit: &mut StepExit,
) -> Result<(), LaunchError> {
    let node_error = |e: io::Error| fault(LaunchCause::NodeError, e.to_string());
    let created = container.create(dir, spec, layout)?;
    let pid = created.pid;
    *group = created.group;
    let all = Everything { group: group.clone(), leaders: vec![pid] };
    let watch = spec.lease.clone().map(|lease| watch_lease(lease, all.clone()));
    let mut go = open_go(dir).map_err(|e| fault(LaunchCause::NodeError, format!("the go cannot be waited for: {e}")))?;
    fs::write(dir.join("group"), group.name()).map_err(node_error)?;
    fs::write(dir.join("created.new"), pid.to_string()).map_err(node_error)?;
    fs::rename(dir.join("created.new"), dir.join("created")).map_err(node_error)?;
    // A container that is killed while it waits ends the wait too.
    let ended = wait_in_thread(container.clone(), pid, dir.join("go"));
    let mut byte = [0];
    let _ = go.read(&mut byte);
    if byte[0] == b'g' {
        let started = Instant::now();
        if let Err(error) = container.start() {
            all.kill();
            return Err(error);
        }
        let _ = fs::write(dir.join("started"), b"");
        let status = ended.join().unwrap_or(0);
        exit.elapsed_ms = started.elapsed().as_millis() as u64;
        take_result(dir, spec, status, exit);
    }
    if watch.is_some_and(|cut_off| cut_off.load(std::sync::atomic::Ordering::SeqCst)) {
        exit.failure = Some(fault(LaunchCause::CutOff, "the node could not reach the service for longer than node_timeout"));
    }
    Ok(())
}

/// Creates the container; its process 1 waits to be started. Gives its process id on the host.
fn create(dir: &Path, runtime: &RuntimeCommand) -> Result<i32, LaunchError> {
    let (bundle, pid_file, log) = (dir.join(BUNDLE), dir.join("pid"), dir.join("create.log"));
    let node_error = |e: io::Error| fault(LaunchCause::NodeError, format!("{}: {e}", runtime.program.display()));
    let output = File::create(&log).map_err(node_error)?;
    let status = Command::new(&runtime.program)
        .arg("--root")
        .arg(&runtime.root)
        .args(["create", "--bundle"])
        .arg(&bundle)
        .arg("--pid-file")
        .arg(&pid_file)
        .arg(&runtime.id)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(node_error)?)
        .stderr(output)
        .status()
        .map_err(node_error)?;
    if !status.success() {
        let said = fs::read(&log).unwrap_or_default();
        return Err(creation_failure(&last_line(&said)));
    }
    fs::read_to_string(&pid_file)
        .ok()
        .and_then(|p| p.trim().parse().ok())
        .ok_or_else(|| fault(LaunchCause::NodeError, "the runtime told no process id"))
}

/// A mount that is not there is the job's fault; the rest is the node's.
fn creation_failure(said: &str) -> LaunchError {
    let is_mount = said.contains("mount") && (said.contains("no such file") || said.contains("No such file"));
    let cause = if is_mount { LaunchCause::BadSpec } else { LaunchCause::NodeError };
    fault(cause, format!("the container cannot be created: {said}"))
}

fn last_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it did not say why").to_owned()
}

/// The pipe by which the go comes. Opened for both ways, so that reading waits instead of finding the end.
fn open_go(dir: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(dir.join("go"))
}

/// Waits for the end; gives the raw status. A byte `e` on the pipe then ends a wait for the go.
fn wait_in_thread(container: Arc<Container>, pid: i32, go: PathBuf) -> std::thread::JoinHandle<i32> {
    std::thread::spawn(move || {
        let status = container.wait(pid);
        if let Ok(mut pipe) = OpenOptions::new().write(true).open(go) {
            let _ = io::Write::write_all(&mut pipe, b"e");
        }
        status
    })
}

fn wait_for_child(pid: i32) -> i32 {
    let mut status = 0;
    // Safety: the pointer is to our own value.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    status
}

/// What the init wrote down; if it was killed before it could, all its tasks were killed with it.
fn take_result(dir: &Path, spec: &LaunchSpec, status: i32, exit: &mut StepExit) {
    match read_result(dir) {
        Some(result) => {
            exit.tasks = result.tasks;
            exit.failure = result.failure;
        }
        None => {
            let signal = if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { libc::SIGKILL };
            exit.tasks = spec.tasks.iter().map(|t| TaskExit { rank: t.rank, code: None, signal: Some(signal) }).collect();
        }
    }
}

/// The folder is the container's too: what lies there may be no plain file.
fn read_result(dir: &Path) -> Option<InitResult> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(dir.join(IO).join("result.json")).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    serde_json::from_reader(io::BufReader::new(file)).ok()
}
