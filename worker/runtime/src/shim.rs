//! The shim: a small process that starts one step's tasks on this node, waits for them and writes down how they ended. It lives in a
//! session of its own, so that it outlives the agent, and holds a lock on `shim.lock` for as long as it lives.
//!
//! Files in the step's folder: `spec.json` (what to run), `cgroup.json` (its group's name), `pids` (the tasks), `shim.lock`,
//! `exit.json` (how it ended, by rename).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cgroup::{Group, Layout};
use crate::fence;
use crate::{LaunchCause, LaunchError, LaunchSpec, StepExit, TaskExit, TaskSpec, Usage, UserIds};

/// Looks after the step in `dir` to its end. What `berth shim <dir>` does.
pub fn run(dir: &Path) -> io::Result<()> {
    // Orphans of the tasks come to us instead of to init. Safety: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let spec: LaunchSpec = serde_json::from_slice(&fs::read(dir.join("spec.json"))?)?;
    let group = Group::new(&Layout::detect_quick(dir), &group_name(&spec));
    let begun = Instant::now();
    let mut exit = StepExit { tasks: Vec::new(), oom_killed: false, usage: Usage::default(), elapsed_ms: 0, failure: None };
    match start_all(dir, &spec, &group) {
        Ok(running) => {
            let all = Everything { group: group.clone(), leaders: running.iter().map(|t| t.child.id() as i32).collect() };
            let watch = spec.lease.clone().map(|lease| watch_lease(lease, all.clone()));
            let bad_exit = spec.kill_on_bad_exit.then_some(all);
            exit.tasks = wait_all(running, bad_exit);
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
struct Everything {
    group: Group,
    leaders: Vec<i32>,
}

impl Everything {
    fn kill(&self) {
        for leader in &self.leaders {
            // Safety: a plain system call. A leader's number is not given to another process while its group has members.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
        self.group.kill();
    }
}

/// Ends the step once the agent's lease has run out. The flag says that it did.
fn watch_lease(lease: PathBuf, step: Everything) -> Arc<AtomicBool> {
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
    fn detect_quick(dir: &Path) -> Layout {
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

struct Running {
    rank: u32,
    child: Child,
    copies: Vec<std::thread::JoinHandle<()>>,
}

fn start_all(dir: &Path, spec: &LaunchSpec, group: &Group) -> Result<Vec<Running>, LaunchError> {
    let argv = program(dir, spec)?;
    let mut running = Vec::new();
    let mut pids = String::new();
    for task in &spec.tasks {
        let started = start(spec, task, &argv, group)?;
        pids.push_str(&format!("{}\n", started.child.id()));
        running.push(started);
    }
    let _ = fs::write(dir.join("pids"), pids);
    Ok(running)
}

/// The program with its arguments; a script is written out first.
fn program(dir: &Path, spec: &LaunchSpec) -> Result<Vec<String>, LaunchError> {
    let Some(script) = &spec.script else { return Ok(spec.argv.clone()) };
    let path = dir.join("script");
    let written = fs::write(&path, script).and_then(|()| fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)));
    written.map_err(|e| fault(LaunchCause::NodeError, format!("the script could not be written: {e}")))?;
    let mut argv = vec![path.display().to_string()];
    argv.extend(spec.argv.iter().cloned());
    Ok(argv)
}

fn start(spec: &LaunchSpec, task: &TaskSpec, argv: &[String], group: &Group) -> Result<Running, LaunchError> {
    let [name, args @ ..] = argv else { return Err(fault(LaunchCause::BadSpec, "there is no program to run")) };
    let mut command = Command::new(name);
    command.args(args).env_clear().envs(&spec.env).envs(&task.env).process_group(0);
    let cwd = spec.cwd.clone().or_else(|| spec.scratch_dir.clone()).unwrap_or_else(|| PathBuf::from("/"));
    if !cwd.is_dir() {
        return Err(fault(LaunchCause::BadSpec, format!("the working directory {} is not there", cwd.display())));
    }
    command.current_dir(&cwd);
    let stdin = match &task.stdin {
        Some(path) => Stdio::from(
            File::open(cwd.join(path)).map_err(|e| fault(LaunchCause::BadSpec, format!("standard input {}: {e}", path.display())))?,
        ),
        None => Stdio::null(),
    };
    let stdout = spool(&task.stdout)?;
    let stderr = if task.stderr == task.stdout { stdout.try_clone().map_err(node_error)? } else { spool(&task.stderr)? };
    command.stdin(stdin);
    // Two streams that end in the same files share a pipe, which keeps their lines in order.
    let mut shared = None;
    if task.tee_stdout.is_some() && task.tee_stdout == task.tee_stderr && task.stdout == task.stderr {
        let (reader, writer) = io::pipe().map_err(node_error)?;
        command.stdout(writer.try_clone().map_err(node_error)?).stderr(writer);
        shared = Some(reader);
    } else {
        let spooled = |file: &File| file.try_clone().map(Stdio::from).map_err(node_error);
        command.stdout(if task.tee_stdout.is_some() { Stdio::piped() } else { spooled(&stdout)? });
        command.stderr(if task.tee_stderr.is_some() { Stdio::piped() } else { spooled(&stderr)? });
    }
    if let Some(UserIds { uid, gid }) = spec.user {
        command.uid(uid).gid(gid);
    }
    // Opened here, written in the child: joining must not allocate.
    let joins =
        group.join_files().iter().map(|f| OpenOptions::new().write(true).open(f)).collect::<io::Result<Vec<File>>>().map_err(node_error)?;
    let cores = task.cores.clone();
    // Safety: between fork and exec only system calls are made, on descriptors and memory that exist already.
    unsafe {
        command.pre_exec(move || {
            for file in &joins {
                if libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            bind(&cores);
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().map_err(|e| spawn_fault(name, &e))?;
    // Our ends of the child's pipes close with it.
    drop(command);
    let mut copies = Vec::new();
    if let (Some(source), Some(path)) = (shared, &task.tee_stdout) {
        copies.push(tee(source, stdout.try_clone().map_err(node_error)?, cwd.join(path), task.tee_truncate, spec.user));
    }
    if let (Some(source), Some(path)) = (child.stdout.take(), &task.tee_stdout) {
        copies.push(tee(source, stdout, cwd.join(path), task.tee_truncate, spec.user));
    }
    if let (Some(source), Some(path)) = (child.stderr.take(), &task.tee_stderr) {
        let is_same = task.tee_stdout.as_ref() == Some(path);
        copies.push(tee(source, stderr, cwd.join(path), task.tee_truncate && !is_same, spec.user));
    }
    Ok(Running { rank: task.rank, child, copies })
}

fn bind(cores: &[u32]) {
    if cores.is_empty() {
        return;
    }
    // Safety: the set is a plain bit array on our stack; ids beyond its size are left out. A refusal leaves the step's whole set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for core in cores {
            if (*core as usize) < libc::CPU_SETSIZE as usize {
                libc::CPU_SET(*core as usize, &mut set);
            }
        }
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set);
    }
}

fn spool(path: &Path) -> Result<File, LaunchError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|e| fault(LaunchCause::NodeError, format!("{}: {e}", path.display())))
}

/// Copies a stream to the spool file and to the user's own file, which is opened with the user's rights.
fn tee(
    mut source: impl Read + Send + 'static,
    mut spool: File,
    path: PathBuf,
    truncate: bool,
    user: Option<UserIds>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        if let Some(UserIds { uid, gid }) = user {
            // Safety: these change this thread's rights on files alone.
            unsafe {
                libc::syscall(libc::SYS_setfsgid, gid);
                libc::syscall(libc::SYS_setfsuid, uid);
            }
        }
        let mut copy = OpenOptions::new().create(true).write(true).append(!truncate).truncate(truncate).open(&path);
        if let Err(error) = &copy {
            let _ = writeln!(spool, "berth: the output file {} cannot be written: {error}", path.display());
        }
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match source.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let _ = spool.write_all(&buffer[..count]);
                    if let Ok(file) = &mut copy {
                        let _ = file.write_all(&buffer[..count]);
                    }
                }
            }
        }
    })
}

/// Waits for all tasks, in the order in which they end. With `bad_exit`, the first bad end kills the group.
fn wait_all(running: Vec<Running>, bad_exit: Option<Everything>) -> Vec<TaskExit> {
    let (ended, ends) = std::sync::mpsc::channel();
    for task in running {
        let ended = ended.clone();
        std::thread::spawn(move || ended.send(wait_one(task)));
    }
    drop(ended);
    let mut exits: Vec<TaskExit> = Vec::new();
    for exit in ends {
        if exit.code != Some(0)
            && let Some(step) = &bad_exit
        {
            step.kill();
        }
        exits.push(exit);
    }
    exits.sort_by_key(|exit| exit.rank);
    exits
}

fn wait_one(mut task: Running) -> TaskExit {
    let status = task.child.wait();
    // A background process may hold the pipe open for ever: what it writes after the task's end is not waited for.
    let deadline = Instant::now() + Duration::from_secs(1);
    for copy in task.copies {
        while !copy.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    exit_of(task.rank, status)
}

fn exit_of(rank: u32, status: io::Result<ExitStatus>) -> TaskExit {
    match status {
        Ok(status) => TaskExit { rank, code: status.code(), signal: status.signal() },
        Err(_) => TaskExit { rank, code: None, signal: None },
    }
}

fn fault(cause: LaunchCause, detail: impl Into<String>) -> LaunchError {
    LaunchError { cause, detail: detail.into() }
}

fn node_error(error: io::Error) -> LaunchError {
    fault(LaunchCause::NodeError, error.to_string())
}

fn spawn_fault(name: &str, error: &io::Error) -> LaunchError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            fault(LaunchCause::ExecNotFound, format!("{name}: {error}"))
        }
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            fault(LaunchCause::ExecNotFound, format!("{name}: not a program; a script begins with #!"))
        }
        _ => fault(LaunchCause::NodeError, format!("{name}: {error}")),
    }
}
