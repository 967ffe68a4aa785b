//! The shim: a small process that starts one step's tasks on this node, waits for them and writes down how they ended. It
//! leads a process group of its own, so that it outlives the agent, and holds a lock on `shim.lock`, its standard input, for as long as
//! it lives.
//!
//! Files in the step's folder: `spec.json` (what to run), `cgroup.json` (its group's name), `pids` (the tasks), `shim.lock`,
//! `exit.json` (how it ended, by rename).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cgroup::{Group, Layout};
use crate::fence;
use crate::tasks::{fault, start_all, wait_all};
use crate::{LaunchCause, LaunchSpec, StepExit, Usage};

/// Looks after the step in `dir` to its end. What `berth shim <dir>` does.
pub fn run(dir: &Path) -> io::Result<()> {
    if dir.join("runtime.json").exists() {
        return crate::container::shim::run(dir);
    }
    // Orphans of the tasks come to us instead of to init. Safety: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let spec: LaunchSpec = serde_json::from_slice(&fs::read(dir.join("spec.json"))?)?;
    let group = Group::new(&Layout::detect_quick(dir), &group_name(&spec));
    let begun = Instant::now();
    let mut exit = StepExit { tasks: Vec::new(), oom_killed: false, usage: Usage::default(), elapsed_ms: 0, failure: None };
    match start_all(dir, &spec, &group.join_files()) {
        Ok(running) => {
            let all = Everything { group: group.clone(), leaders: running.iter().map(|t| t.child.id() as i32).collect() };
            let watch = spec.lease.clone().map(|lease| watch_lease(lease, all.clone()));
            let kill = || all.kill();
            exit.tasks = wait_all(running, spec.kill_on_bad_exit.then_some(&kill));
            if watch.is_some_and(|cut_off| cut_off.load(Ordering::SeqCst)) {
                exit.failure = Some(fault(LaunchCause::CutOff, "the node could not reach the service for longer than node_timeout"));
            }
        }
        Err(failure) => {
            group.kill();
            exit.failure = Some(failure);
        }
    }
    exit.elapsed_ms = begun.elapsed().as_millis() as u64;
    // What the tasks left running in the background ends with them.
    group.kill();
    exit.oom_killed = group.is_oom_killed();
    exit.usage = group.usage();
    let draft = dir.join("exit.json.new");
    fs::write(&draft, serde_json::to_vec(&exit)?)?;
    fs::rename(draft, dir.join("exit.json"))
}

/// The group of a step: `<parent>/<job>-<attempt>/<step>`.
pub fn group_name(spec: &LaunchSpec) -> String {
    format!("{}/{}", job_group_name(spec), spec.key.step)
}

/// The group of all steps of an attempt.
pub fn job_group_name(spec: &LaunchSpec) -> String {
    format!("{}/{}-{}", spec.cgroup_parent, spec.key.job, spec.key.attempt)
}

/// All that a step started: its cgroup, and its tasks' process groups for machines without writable cgroups.
#[derive(Clone)]
pub(crate) struct Everything {
    pub group: Group,
    pub leaders: Vec<i32>,
}

impl Everything {
    pub fn kill(&self) {
        for leader in &self.leaders {
            // Safety: a plain system call. A leader's number is not given to another process while its group has members.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
        self.group.kill();
    }
}

/// Ends the step once the agent's lease has run out. The flag says that it did.
pub(crate) fn watch_lease(lease: PathBuf, step: Everything) -> Arc<AtomicBool> {
    let cut_off = Arc::new(AtomicBool::new(false));
    let flag = cut_off.clone();
    std::thread::spawn(move || {
        while !fence::is_over(&lease) {
            std::thread::sleep(Duration::from_millis(250));
        }
        flag.store(true, Ordering::SeqCst);
        step.kill();
    });
    cut_off
}

impl Layout {
    /// The layout that the agent found, without probing again.
    pub(crate) fn detect_quick(dir: &Path) -> Layout {
        let saved = fs::read(dir.join("cgroup.json")).ok().and_then(|bytes| serde_json::from_slice::<SavedLayout>(&bytes).ok());
        saved.map_or(Layout::None, SavedLayout::layout)
    }
}

/// [`Layout`] as written beside a step.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) enum SavedLayout {
    V1(Vec<(String, PathBuf)>),
    V2(PathBuf),
    None,
}

impl SavedLayout {
    pub(crate) fn of(layout: &Layout) -> SavedLayout {
        match layout.clone() {
            Layout::V1(controllers) => SavedLayout::V1(controllers),
            Layout::V2(root) => SavedLayout::V2(root),
            Layout::None => SavedLayout::None,
        }
    }

    fn layout(self) -> Layout {
        match self {
            SavedLayout::V1(controllers) => Layout::V1(controllers),
            SavedLayout::V2(root) => Layout::V2(root),
            SavedLayout::None => Layout::None,
        }
    }
}
