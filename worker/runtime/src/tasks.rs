//! The tasks of a step: started with their environment, streams and limits, and waited for. The shim does it on the host, the init
//! inside a container.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::files::{self, Copies, Copy};
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
    let cwd = spec.cwd.clone().or_else(|| spec.scratch_dir.clone()).unwrap_or_else(|| PathBuf::from("/"));
    if !cwd.is_dir() {
        return Err(fault(LaunchCause::BadSpec, format!("the working directory {} is not there", cwd.display())));
    }
    // All files first: a step that could not write where it should must not have done half its work.
    let mut copies = Copies::default();
    let mut files = Vec::new();
    for task in &spec.tasks {
        files.push(TaskFiles::open(spec, task, &cwd, &mut copies)?);
    }
    let mut running = Vec::new();
    let mut pids = String::new();
    for (task, files) in spec.tasks.iter().zip(files) {
        let started = start(spec, task, &argv, &cwd, files, joins)?;
        pids.push_str(&format!("{}\n", started.child.id()));
        running.push(started);
    }
    // By rename: whoever finds the list finds all of it.
    let draft = dir.join("pids.new");
    let _ = fs::write(&draft, pids).and_then(|()| fs::rename(draft, dir.join("pids")));
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

/// The files that the user named for one task.
struct TaskFiles {
    stdin: Option<File>,
    stdout: Option<Arc<Copy>>,
    stderr: Option<Arc<Copy>>,
}

impl TaskFiles {
    fn open(spec: &LaunchSpec, task: &TaskSpec, cwd: &Path, copies: &mut Copies) -> Result<TaskFiles, LaunchError> {
        let mut copy = |path: &Option<PathBuf>| {
            let Some(path) = path.as_ref().map(|p| cwd.join(p)) else { return Ok(None) };
            let opened = copies.open(&path, task.tee_truncate, spec.user);
            opened
                .map(Some)
                .map_err(|e| fault(LaunchCause::FileError, format!("the output file {} cannot be written: {e}", path.display())))
        };
        let (stdout, stderr) = (copy(&task.tee_stdout)?, copy(&task.tee_stderr)?);
        let stdin = task.stdin.as_ref().map(|p| cwd.join(p)).map(|path| {
            let opened = files::as_user(spec.user, || File::open(&path));
            opened.map_err(|e| fault(LaunchCause::FileError, format!("the input file {} cannot be read: {e}", path.display())))
        });
        Ok(TaskFiles { stdin: stdin.transpose()?, stdout, stderr })
    }
}

fn start(
    spec: &LaunchSpec,
    task: &TaskSpec,
    argv: &[String],
    cwd: &Path,
    files: TaskFiles,
    joins: &[PathBuf],
) -> Result<Running, LaunchError> {
    let [name, args @ ..] = argv else { return Err(fault(LaunchCause::BadSpec, "there is no program to run")) };
    let mut command = Command::new(name);
    command.args(args).env_clear().envs(&spec.env).envs(&task.env).process_group(0).current_dir(cwd);
    command.stdin(match files.stdin {
        Some(file) => Stdio::from(file),
        None if task.stdin_spool.is_some() => Stdio::piped(),
        None => Stdio::null(),
    });
    let stdout = spool(&task.stdout)?;
    let stderr = if task.stderr == task.stdout { stdout.try_clone().map_err(node_error)? } else { spool(&task.stderr)? };
    // Two streams that end in the same files share a pipe, which keeps their lines in order.
    let is_same = matches!((&files.stdout, &files.stderr), (Some(out), Some(err)) if Arc::ptr_eq(out, err));
    let mut shared = None;
    if is_same && task.stdout == task.stderr {
        let (reader, writer) = io::pipe().map_err(node_error)?;
        command.stdout(writer.try_clone().map_err(node_error)?).stderr(writer);
        shared = Some(reader);
    } else {
        let spooled = |file: &File| file.try_clone().map(Stdio::from).map_err(node_error);
        command.stdout(if files.stdout.is_some() { Stdio::piped() } else { spooled(&stdout)? });
        command.stderr(if files.stderr.is_some() { Stdio::piped() } else { spooled(&stderr)? });
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
    if let (Some(source), Some(copy)) = (shared, &files.stdout) {
        copies.push(tee(source, stdout.try_clone().map_err(node_error)?, copy.clone()));
    }
    if let (Some(source), Some(copy)) = (child.stdout.take(), files.stdout) {
        copies.push(tee(source, stdout, copy));
    }
    if let (Some(source), Some(copy)) = (child.stderr.take(), files.stderr) {
        copies.push(tee(source, stderr, copy));
    }
    if let (Some(pipe), Some(spool)) = (child.stdin.take(), task.stdin_spool.clone()) {
        std::thread::spawn(move || feed(&spool, pipe));
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

/// Copies a stream to the spool file and to the user's own file. A copy that fails on the way (a full disk) is told once in the spool.
fn tee(mut source: impl Read + Send + 'static, mut spool: File, copy: Arc<Copy>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut is_whole = true;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match source.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let _ = spool.write_all(&buffer[..count]);
                    if let Err(error) = (&copy.file).write_all(&buffer[..count])
                        && std::mem::replace(&mut is_whole, false)
                    {
                        let _ = writeln!(spool, "berth: error: the output file {} cannot be written: {error}", copy.path.display());
                    }
                }
            }
        }
    })
}

/// What is added to the name of a spooled input once all of it is there.
pub const INPUT_END: &str = "end";

/// Passes on what arrives in `spool`, until all has come or nobody reads it any more.
fn feed(spool: &Path, mut pipe: ChildStdin) {
    let end = spool.with_extension(INPUT_END);
    let mut source: Option<File> = None;
    let mut buffer = vec![0; 64 * 1024];
    let mut pause = Duration::from_millis(2);
    loop {
        // The end first: what is written before it is read after it.
        let is_whole = end.exists();
        source = source.or_else(|| File::open(spool).ok());
        let count = source.as_mut().map_or(0, |file| file.read(&mut buffer).unwrap_or(0));
        if count > 0 {
            pause = Duration::from_millis(2);
            if pipe.write_all(&buffer[..count]).is_err() {
                return;
            }
        } else if is_whole {
            return;
        } else {
            std::thread::sleep(pause);
            pause = (pause * 3 / 2).min(Duration::from_millis(100));
        }
    }
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
