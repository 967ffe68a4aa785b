//! The shim of a container: creates it, waits for the go, starts it, waits for its end, reads what it used, and removes it.
//!
//! Files in the step's folder beside those of a plain step: `bundle/` (root and `config.json`), `io/` (what the container sees),
//! `runtime.json` (which runtime), `created` (ready for the go), `go` (a pipe that gets one byte), `started`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::init::InitResult;
use super::{BUNDLE, IO};
use crate::cgroup::{Group, Layout};
use crate::shim::{Everything, group_name, watch_lease};
use crate::tasks::fault;
use crate::{LaunchCause, LaunchError, LaunchSpec, StepExit, TaskExit};

/// How the container is driven.
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
}

/// Looks after the container in `dir` to its end.
pub fn run(dir: &Path) -> io::Result<()> {
    // The container's process 1 becomes our child, so that its end is ours to read. Safety: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let spec: LaunchSpec = serde_json::from_slice(&fs::read(dir.join("spec.json"))?)?;
    let runtime: RuntimeCommand = serde_json::from_slice(&fs::read(dir.join("runtime.json"))?)?;
    let group = Group::new(&Layout::detect_quick(dir), &group_name(&spec));
    let mut exit = StepExit::default();
    if let Err(failure) = live(dir, &spec, &runtime, &group, &mut exit) {
        exit.failure = Some(failure);
    }
    group.kill();
    exit.oom_killed = group.is_oom_killed();
    exit.usage = group.usage();
    let _ = runtime.call(&["delete", "--force", &runtime.id]);
    let draft = dir.join("exit.json.new");
    fs::write(&draft, serde_json::to_vec(&exit)?)?;
    fs::rename(draft, dir.join("exit.json"))
}

fn live(dir: &Path, spec: &LaunchSpec, runtime: &RuntimeCommand, group: &Group, exit: &mut StepExit) -> Result<(), LaunchError> {
    let pid = create(dir, runtime)?;
    let all = Everything { group: group.clone(), leaders: vec![pid] };
    let watch = spec.lease.clone().map(|lease| watch_lease(lease, all.clone()));
    let mut go = open_go(dir).map_err(|e| fault(LaunchCause::NodeError, format!("the go cannot be waited for: {e}")))?;
    fs::write(dir.join("created"), pid.to_string()).map_err(|e| fault(LaunchCause::NodeError, e.to_string()))?;
    // A container that is killed while it waits ends the wait too.
    let ended = wait_in_thread(pid, dir.join("go"));
    let mut byte = [0];
    let _ = go.read(&mut byte);
    if byte[0] == b'g' {
        let started = Instant::now();
        let output = runtime
            .call(&["start", &runtime.id])
            .map_err(|e| fault(LaunchCause::NodeError, format!("{}: {e}", runtime.program.display())))?;
        if !output.status.success() {
            all.kill();
            return Err(fault(LaunchCause::NodeError, format!("the container did not start: {}", last_line(&output.stderr))));
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

/// Waits for process 1; gives its raw status. A byte `e` on the pipe then ends a wait for the go.
fn wait_in_thread(pid: i32, go: PathBuf) -> std::thread::JoinHandle<i32> {
    std::thread::spawn(move || {
        let mut status = 0;
        // Safety: the pointer is to our own value.
        while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Ok(mut pipe) = OpenOptions::new().write(true).open(go) {
            let _ = io::Write::write_all(&mut pipe, b"e");
        }
        status
    })
}

/// What the init wrote down; if it was killed before it could, all its tasks were killed with it.
fn take_result(dir: &Path, spec: &LaunchSpec, status: i32, exit: &mut StepExit) {
    match fs::read(dir.join(IO).join("result.json")).ok().and_then(|b| serde_json::from_slice::<InitResult>(&b).ok()) {
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
