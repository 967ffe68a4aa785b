//! Process 1 of a step's container: starts the tasks, reaps what they leave behind, and writes down how they ended. (Without it a
//! SIGTERM to a program without a handler would be ignored by the kernel, and a death by signal would look like an exit code.)
//!
//! Where an engine runs the container there are two pipes in the step's folder. On [`GO`] comes a byte that lets the tasks start;
//! [`DONE`] tells the shim that the result is written. The container then stays until the shim has read its cgroup's counters, which the
//! engine would remove with it, and killed it.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tasks::{start_all, wait_all};
use crate::{LaunchError, LaunchSpec, TaskExit};

/// Pipe by which the shim speaks to the init.
pub const GO: &str = "go";
/// Pipe by which the init speaks to the shim.
pub const DONE: &str = "done";
/// Longest wait for the shim to have read the counters.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// What the init tells the shim, as `result.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct InitResult {
    pub tasks: Vec<TaskExit>,
    pub failure: Option<LaunchError>,
}

/// Runs the step described in `dir` to its end. All else in the container ends with this process.
pub fn run(dir: &Path) -> ExitCode {
    match run_step(dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("berth: init: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_step(dir: &Path) -> std::io::Result<()> {
    let mut spec: LaunchSpec = serde_json::from_slice(&fs::read(dir.join("spec.json"))?)?;
    let is_held = dir.join(GO).exists();
    if is_held {
        // Opened for both ways, so that reading waits instead of finding the end.
        OpenOptions::new().read(true).write(true).open(dir.join(GO))?.read_exact(&mut [0])?;
    }
    // Our own variables are those that CDI gave the container.
    for (name, value) in std::env::vars() {
        spec.env.entry(name).or_insert(value);
    }
    if let Some(cwd) = &spec.cwd {
        // Containers have no home for most jobs; a folder that is asked for is made.
        let _ = fs::create_dir_all(cwd);
    }
    let mut result = InitResult::default();
    match start_all(dir, &spec, &[]) {
        Ok(running) => {
            let tasks: BTreeSet<i32> = running.iter().map(|t| t.child.id() as i32).collect();
            let open = Arc::new(Mutex::new(tasks));
            let reaper = open.clone();
            std::thread::spawn(move || reap_orphans(&reaper));
            // Process 1 may kill all others of its namespace.
            let kill = || unsafe {
                // Safety: a plain system call.
                libc::kill(-1, libc::SIGKILL);
            };
            result.tasks = wait_all(running, spec.kill_on_bad_exit.then_some(&kill));
        }
        Err(failure) => result.failure = Some(failure),
    }
    let draft = dir.join("result.json.new");
    fs::write(&draft, serde_json::to_vec(&result)?)?;
    fs::rename(draft, dir.join("result.json"))?;
    if is_held {
        wait_for_release(dir);
    }
    Ok(())
}

/// Holds the container until its counters are read.
fn wait_for_release(dir: &Path) {
    let told = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(dir.join(DONE)).and_then(|mut p| p.write_all(b"d"));
    if told.is_ok() {
        std::thread::sleep(RELEASE_PATIENCE);
    }
}

/// Takes the end of processes whose parents are gone; the tasks' own are left to those who wait for them.
fn reap_orphans(tasks: &Mutex<BTreeSet<i32>>) {
    loop {
        // Safety: the pointers are to our own values; a process is only taken if it is no task.
        let pid = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            if libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT) != 0 {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            info.si_pid()
        };
        if tasks.lock().is_ok_and(|tasks| tasks.contains(&pid)) {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            // Safety: as above.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        }
    }
}
