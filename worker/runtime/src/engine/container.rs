//! The container of a step as its shim sees it: started through the engine, watched by the kernel. Once it runs nothing depends on the
//! engine being there.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::api;
use crate::cgroup::{Group, Layout};
use crate::container::init::{DONE, GO};
use crate::container::shim::Created;
use crate::tasks::fault;
use crate::{LaunchCause, LaunchError};

/// A container that the driver has made.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineContainer {
    pub socket: PathBuf,
    pub name: String,
    /// The step's folder that it sees.
    pub io: PathBuf,
    /// Device nodes that must be in it.
    pub devices: Vec<PathBuf>,
    #[serde(skip)]
    live: OnceLock<Live>,
}

/// What the shim holds of a running container. All is opened before the tasks start: afterwards its names are the container's to change.
#[derive(Debug)]
struct Live {
    process: OwnedFd,
    go: File,
    done: File,
}

/// Longest wait for a killed container to be gone.
const END_PATIENCE: Duration = Duration::from_secs(10);

impl EngineContainer {
    pub fn new(socket: &Path, name: String, io: PathBuf, devices: Vec<PathBuf>) -> EngineContainer {
        EngineContainer { socket: socket.to_owned(), name, io, devices, live: OnceLock::new() }
    }

    /// Starts it; its init waits for the go.
    pub(crate) fn create(&self, layout: &Layout) -> Result<Created, LaunchError> {
        let node_error = |what: &str, e: io::Error| fault(LaunchCause::NodeError, format!("{what}: {e}"));
        let both_ways = |name: &str| OpenOptions::new().read(true).write(true).open(self.io.join(name));
        let (go, done) = both_ways(GO).and_then(|go| Ok((go, both_ways(DONE)?))).map_err(|e| node_error("the step's pipes", e))?;
        let pid = self.block_on(async {
            let docker = api::connect(&self.socket)?;
            docker.start_container(&self.name, None).await.map_err(api::creation_error)?;
            let state = docker.inspect_container(&self.name, None).await.map_err(api::node_error)?.state.unwrap_or_default();
            match state.pid {
                Some(pid) if pid > 0 => Ok(pid as i32),
                _ => Err(fault(LaunchCause::NodeError, format!("the container ended at once: {}", state.error.unwrap_or_default()))),
            }
        })?;
        let process = open_process(pid).map_err(|e| node_error("the container's process 1", e))?;
        let _ = self.live.set(Live { process, go, done });
        if let Some(lost) = self.devices.iter().find(|device| !is_inside(pid, device)) {
            return Err(fault(LaunchCause::DeviceError, format!("the engine started the container without {}", lost.display())));
        }
        // Without writable cgroups there is no group, and limits are the engine's alone.
        let group = Group::of_process(layout, pid).unwrap_or_else(|| Group::new(&Layout::None, ""));
        Ok(Created { pid, group })
    }

    pub(crate) fn go(&self) -> Result<(), LaunchError> {
        let Some(live) = self.live.get() else { return Err(fault(LaunchCause::NodeError, "the container is not there")) };
        (&live.go).write_all(b"g").map_err(|e| fault(LaunchCause::NodeError, format!("the go could not be given: {e}")))
    }

    /// Until the init has written the result, or is dead.
    pub(crate) fn wait(&self) -> i32 {
        let Some(live) = self.live.get() else { return libc::SIGKILL };
        loop {
            let (is_dead, is_done) = look(live, None);
            if is_done {
                let _ = (&live.done).read(&mut [0; 16]);
            }
            // Anyone in the container can write to the pipe; the result counts.
            if is_dead || (is_done && self.io.join("result.json").symlink_metadata().is_ok()) {
                return libc::SIGKILL;
            }
        }
    }

    pub(crate) fn is_oom_killed(&self) -> bool {
        let state = self.block_on(async {
            let docker = api::connect(&self.socket)?;
            Ok(docker.inspect_container(&self.name, None).await.map_err(api::node_error)?.state)
        });
        state.ok().flatten().and_then(|s| s.oom_killed).unwrap_or(false)
    }

    /// Ends and removes it.
    pub(crate) fn delete(&self) {
        if let Some(live) = self.live.get() {
            // Safety: a plain system call on our own descriptor, which names the process for certain.
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, live.process.as_raw_fd(), libc::SIGKILL, 0, 0) };
            look(live, Some(END_PATIENCE));
        }
        // If the engine is away now, the driver removes it when the worker lists its steps.
        let _ = self.block_on(async { api::remove(&api::connect(&self.socket)?, &self.name).await });
    }

    fn block_on<T>(&self, call: impl Future<Output = Result<T, LaunchError>>) -> Result<T, LaunchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|e| fault(LaunchCause::NodeError, e.to_string()))?.block_on(call)
    }
}

/// Waits for the process to die or the init to be done; with a limit for the death alone. Says what has come.
fn look(live: &Live, limit: Option<Duration>) -> (bool, bool) {
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut both = [watch(live.process.as_raw_fd()), watch(live.done.as_raw_fd())];
    let (count, limit_ms) = limit.map_or((2, -1), |limit| (1, limit.as_millis() as i32));
    // Safety: the pointer is to our own values, of which there are at least `count`.
    unsafe { libc::poll(both.as_mut_ptr(), count, limit_ms) };
    (both[0].revents != 0, both[1].revents != 0)
}

/// A descriptor that becomes readable when the process ends (Linux 5.3).
fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // Safety: a plain system call; what it gives is ours alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

fn is_inside(pid: i32, device: &Path) -> bool {
    let inside = Path::new("/proc").join(pid.to_string()).join("root").join(device.strip_prefix("/").unwrap_or(device));
    inside.symlink_metadata().is_ok()
}
