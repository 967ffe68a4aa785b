//! The tasks of a step: started with their environment, streams and limits, and waited for. The shim does it on the host, the init
//! inside a container.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{LaunchCause, LaunchError, LaunchSpec, TaskExit, TaskSpec, UserIds};

/// A task that runs.
pub struct Running {
    rank: u32,
    pub child: Child,
    copies: Vec<std::thread::JoinHandle<()>>,
}

/// Starts a step's tasks. `dir` gets the script and the list of the tasks' process ids; `joins` are files to which each task writes `0`
/// to enter its cgroups.
pub fn start_all(dir: &Path, spec: &LaunchSpec, joins: &[PathBuf]) -> Result<Vec<Running>, LaunchError> {
    let argv = program(dir, spec)?;
    let mut running = Vec::new();
    let mut pids = String::new();
    for task in &spec.tasks {
        let started = start(spec, task, &argv, joins)?;
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

fn start(spec: &LaunchSpec, task: &TaskSpec, argv: &[String], joins: &[PathBuf]) -> Result<Running, LaunchError> {
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
    let joins = joins.iter().map(|f| OpenOptions::new().write(true).open(f)).collect::<io::Result<Vec<File>>>().map_err(node_error)?;
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

/// Waits for all tasks, in the order in which they end. `on_bad_exit` is called at each end that is not 0.
pub fn wait_all(running: Vec<Running>, on_bad_exit: Option<&dyn Fn()>) -> Vec<TaskExit> {
    let (ended, ends) = std::sync::mpsc::channel();
    for task in running {
        let ended = ended.clone();
        std::thread::spawn(move || ended.send(wait_one(task)));
    }
    drop(ended);
    let mut exits: Vec<TaskExit> = Vec::new();
    for exit in ends {
        if exit.code != Some(0)
            && let Some(act) = on_bad_exit
        {
            act();
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

pub(crate) fn fault(cause: LaunchCause, detail: impl Into<String>) -> LaunchError {
    LaunchError { cause, detail: detail.into() }
}

pub(crate) fn node_error(error: io::Error) -> LaunchError {
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
