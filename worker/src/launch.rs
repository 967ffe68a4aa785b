//! From an assignment to what a driver is given: environment, paths, limits, devices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use berth_model::gres::{ShareKind, SharesOfGpus, thread_percentage};
use berth_model::job::{JobSpec, Network, OpenMode};
use berth_model::resources::Gpu;
use berth_model::script::{PatternFields, expand_pattern};
use berth_model::state::LogStream;
use berth_model::step::TaskPlacement;
use berth_model::worker::{Assignment, StepAssignment};
use berth_model::{StepId, environment};
use berth_runtime::{GpuDevice, LaunchSpec, Limits, Mount, StepKey, TaskSpec, UserIds};
use jiff::Timestamp;

/// What is the same for all steps on this node.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    /// Group under which all steps' groups are made.
    pub cgroup_parent: String,
    pub lease: PathBuf,
    /// Folder put first on PATH; holds `srun`.
    pub tools_dir: Option<PathBuf>,
    /// CPU ids are real, so that steps can be bound to them.
    pub can_bind: bool,
    pub run_as: Option<UserIds>,
    pub pids_limit: u64,
    pub gpus: Vec<Gpu>,
    pub gpu_shares: BTreeMap<ShareKind, SharesOfGpus>,
    /// Device files of each GPU, by its index.
    pub device_nodes: BTreeMap<u32, Vec<PathBuf>>,
}

/// Paths of one attempt on this node.
#[derive(Clone, Debug)]
pub struct AttemptDirs {
    /// Spool files below; removed at the end.
    pub root: PathBuf,
    pub scratch: PathBuf,
    pub socket: PathBuf,
}

impl AttemptDirs {
    /// Where the step's standard input is gathered, if it is passed on.
    pub fn input(&self, step: StepId) -> PathBuf {
        self.root.join("output").join(step.to_string()).join("stdin.spool")
    }

    fn spool(&self, step: StepId, rank: u32, stream: LogStream) -> PathBuf {
        self.root.join("output").join(step.to_string()).join(format!("{rank}.{stream}"))
    }
}

/// The host's usual PATH.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub fn key(assignment: &Assignment, step: StepId) -> StepKey {
    StepKey { job: assignment.job_id.0, attempt: assignment.attempt, step: step.to_string() }
}

/// What the driver is to run.
///
/// `start` is when the attempt's own step began here, or begins.
pub fn launch_spec(assignment: &Assignment, step: &StepAssignment, dirs: &AttemptDirs, node: &Node, start: Timestamp) -> LaunchSpec {
    let job = &assignment.context.spec;
    let is_batch = step.step == StepId::Batch;
    let argv = match (&step.spec, is_batch) {
        (Some(spec), _) => spec.command.clone(),
        (None, true) => job.script_args.clone(),
        (None, false) => job.command.clone().unwrap_or_default(),
    };
    let image = job.container.as_ref();
    let devices =
        |indices: &[u32]| -> Vec<GpuDevice> { node.gpus.iter().filter(|g| indices.contains(&g.index)).map(|g| device(g, node)).collect() };
    // Device isolation renumbers what a container sees; on the host the node's own numbers hold.
    // CUDA knows MIG instances by their UUIDs alone.
    let uuid = |index: &u32| node.gpus.iter().find(|gpu| gpu.index == *index).map(|gpu| gpu.uuid.clone());
    let are_slices = step.here.gpus.iter().filter_map(uuid).any(|uuid| uuid.starts_with("MIG-"));
    let visible = |task: &[u32]| -> Vec<String> {
        let position = |index: &u32| step.here.gpus.iter().position(|g| g == index).map(|p| p.to_string());
        let name = |index: &u32| match image {
            _ if are_slices => uuid(index),
            Some(_) => position(index),
            None => Some(index.to_string()),
        };
        task.iter().filter_map(name).collect()
    };
    let files = OutputFiles::of(assignment, step, node);
    let is_streamed = |rank: u32| match &step.spec {
        Some(spec) => spec.stream_stdin && spec.stdin_task.is_none_or(|only| only == rank),
        None => job.stream_stdin,
    };
    let tasks = step
        .here
        .tasks
        .iter()
        .enumerate()
        .map(|(local_id, task)| {
            let seen = if task.gpus.is_empty() && is_batch { &step.here.gpus } else { &task.gpus };
            let env = if is_batch {
                environment::gpu_environment(&visible(seen))
            } else {
                environment::task_environment(assignment, step, task, local_id as u32, &visible(seen))
            };
            let (tee_stdout, tee_stderr) = files.of_task(task);
            TaskSpec {
                rank: task.rank,
                env,
                cores: if node.can_bind { task.cpus.clone() } else { Vec::new() },
                gpus: devices(&task.gpus).into_iter().map(|g| g.uuid).collect(),
                stdout: dirs.spool(step.step, task.rank, LogStream::Stdout),
                stderr: dirs.spool(step.step, task.rank, if files.is_merged { LogStream::Stdout } else { LogStream::Stderr }),
                tee_stdout,
                tee_stderr,
                tee_truncate: files.is_truncated,
                stdin: files.stdin_of(task),
                stdin_spool: is_streamed(task.rank).then(|| dirs.input(step.step)),
            }
        })
        .collect();
    LaunchSpec {
        key: key(assignment, step.step),
        hostname: Some(node.name.clone()),
        argv,
        script: is_batch.then(|| job.script.clone()).flatten(),
        env: common_environment(assignment, step, dirs, node, start),
        tasks,
        cwd: working_directory(job, step),
        user: node.run_as,
        image: image.map(|c| c.image.clone()),
        mounts: image
            .map(|c| &c.mounts)
            .into_iter()
            .flatten()
            .map(|m| Mount { source: m.source.clone().into(), target: m.target.clone().into(), read_only: m.read_only })
            .collect(),
        limits: Limits {
            cores: if node.can_bind { step.here.cpus.clone() } else { Vec::new() },
            cpu_millis: None,
            memory_bytes: Some(step.here.memory_bytes.0).filter(|b| *b > 0),
            pids: Some(node.pids_limit),
        },
        job_limits: Limits { memory_bytes: Some(assignment.allocation.memory_bytes.0).filter(|b| *b > 0), ..Limits::default() },
        gpus: devices(&step.here.gpus),
        no_network: image.is_some_and(|c| c.network == Network::None),
        tools_dir: node.tools_dir.clone(),
        agent_socket: Some(dirs.socket.clone()),
        scratch_dir: Some(dirs.scratch.clone()),
        read_only_root: image.is_some_and(|c| c.read_only_root),
        cgroup_parent: node.cgroup_parent.clone(),
        lease: Some(node.lease.clone()),
        kill_on_bad_exit: step.spec.as_ref().is_some_and(|s| s.kill_on_bad_exit),
    }
}

/// How the UUIDs of declared GPUs begin.
pub const DECLARED_UUID: &str = "GPU-declared-";

fn device(gpu: &Gpu, node: &Node) -> GpuDevice {
    // AMD's UUIDs do not say whose they are; its types do.
    let vendor = if gpu.kind.starts_with("mi") || gpu.kind.starts_with("gfx") { "amd.com" } else { "nvidia.com" };
    GpuDevice {
        uuid: gpu.uuid.clone(),
        index: gpu.index,
        cdi: Some(format!("{vendor}/gpu={}", gpu.uuid)),
        device_nodes: node.device_nodes.get(&gpu.index).cloned().unwrap_or_default(),
        is_declared: gpu.uuid.starts_with(DECLARED_UUID),
    }
}

/// The job's and the step's own variables, and over them Slurm's.
fn common_environment(
    assignment: &Assignment,
    step: &StepAssignment,
    dirs: &AttemptDirs,
    node: &Node,
    start: Timestamp,
) -> BTreeMap<String, String> {
    let job = &assignment.context.spec;
    let mut env = BTreeMap::new();
    if job.container.is_none() {
        env.insert("PATH".to_owned(), PATH.to_owned());
        env.insert("HOME".to_owned(), std::env::var("HOME").unwrap_or_else(|_| "/".to_owned()));
        env.insert("SHELL".to_owned(), "/bin/sh".to_owned());
    }
    env.insert("USER".to_owned(), assignment.context.user.clone());
    env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
    env.insert("TMPDIR".to_owned(), dirs.scratch.display().to_string());
    env.extend(job.environment.clone());
    if let Some(spec) = &step.spec {
        env.extend(spec.environment.clone());
    }
    env.extend(environment::batch_environment(assignment));
    // Safety: plain system calls.
    let own = || unsafe { UserIds { uid: libc::geteuid(), gid: libc::getegid() } };
    let user = node.run_as.unwrap_or_else(own);
    env.extend(environment::run_environment(start, assignment.context.time_limit_seconds, user.uid, user.gid));
    env.extend(threads_of_gpu(assignment, node).map(|share| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE".to_owned(), share.to_string())));
    env.insert("BERTH_AGENT_SOCKET".to_owned(), dirs.socket.display().to_string());
    if let Some(tools) = &node.tools_dir
        && let Some(path) = env.get_mut("PATH")
        && !path.starts_with(&*tools.to_string_lossy())
    {
        *path = format!("{}:{path}", tools.display());
    }
    env
}

/// Per cent of its GPU's threads that a job by MPS may use.
fn threads_of_gpu(assignment: &Assignment, node: &Node) -> Option<u32> {
    let share = assignment.allocation.share.as_ref().filter(|share| share.of == ShareKind::Mps)?;
    let all = node.gpu_shares.get(&ShareKind::Mps)?.get(assignment.allocation.gpus.first()?)?;
    Some(thread_percentage(share.count, *all))
}

/// `--chdir`; else where the job was submitted, if that is a folder here too (Slurm's fallback is `/tmp`); else the scratch folder.
fn working_directory(job: &JobSpec, step: &StepAssignment) -> Option<PathBuf> {
    let asked = step.spec.as_ref().and_then(|s| s.working_directory.as_ref()).or(job.working_directory.as_ref());
    if let Some(asked) = asked {
        return Some(asked.into());
    }
    if job.container.is_some() {
        return None;
    }
    // Where `srun` was called, where `berth submit` was: hints, followed if there is such a folder here.
    let called = step.spec.as_ref().and_then(|s| s.environment.get("PWD"));
    let hints = [called, job.environment.get("SLURM_SUBMIT_DIR")];
    hints.into_iter().flatten().map(PathBuf::from).find(|dir| dir.is_dir())
}

/// Files in the job's view that get copies of the output.
struct OutputFiles {
    stdout: Option<String>,
    stderr: Option<String>,
    stdin: Option<String>,
    fields: PatternFields,
    is_truncated: bool,
    /// Standard error goes where standard output goes, in the order in which both were written: Slurm's default for batch scripts, and
    /// for whatever goes to one file.
    is_merged: bool,
}

impl OutputFiles {
    fn of(assignment: &Assignment, step: &StepAssignment, node: &Node) -> OutputFiles {
        let context = &assignment.context;
        let job = &context.spec;
        let (stdout, stderr, stdin) = match &step.spec {
            Some(spec) => (spec.stdout.clone(), spec.stderr.clone(), spec.stdin.clone()),
            None => (job.stdout.clone(), job.stderr.clone(), job.stdin.clone()),
        };
        let fields = PatternFields {
            job_id: assignment.job_id.0,
            array_job_id: context.array.map_or(assignment.job_id.0, |a| a.job_id.0),
            array_index: context.array.map(|a| a.task_id),
            step: step.step.to_string(),
            job_name: job.name.clone().unwrap_or_default(),
            user: context.user.clone(),
            node: node.name.clone(),
            node_index: assignment.node_index,
            task: 0,
        };
        OutputFiles {
            is_merged: match (&stdout, &stderr) {
                (Some(stdout), Some(stderr)) => stdout == stderr,
                // One file gets both.
                (Some(_), None) => true,
                (None, _) => step.step == StepId::Batch && stderr.is_none(),
            },
            is_truncated: job.open_mode == OpenMode::Truncate,
            stdin: stdin.filter(|s| !s.is_empty() && s != "none"),
            stdout,
            stderr,
            fields,
        }
    }

    /// The file that a task reads, with the same patterns.
    fn stdin_of(&self, task: &TaskPlacement) -> Option<PathBuf> {
        let fields = PatternFields { task: task.rank, ..self.fields.clone() };
        self.stdin.as_ref().map(|pattern| PathBuf::from(expand_pattern(pattern, &fields)))
    }

    fn of_task(&self, task: &TaskPlacement) -> (Option<PathBuf>, Option<PathBuf>) {
        let fields = PatternFields { task: task.rank, ..self.fields.clone() };
        let expand = |pattern: &String| PathBuf::from(expand_pattern(pattern, &fields));
        let stdout = self.stdout.as_ref().map(expand);
        let stderr = self.stderr.as_ref().map(expand);
        // One file for both unless another is named: Slurm's rule for jobs and steps alike.
        (stdout.clone(), stderr.or(stdout))
    }
}

/// The streams of a launched step, as they are uploaded.
pub fn streams(spec: &LaunchSpec) -> Vec<(u32, LogStream, &Path)> {
    spec.tasks
        .iter()
        .flat_map(|task| {
            let stderr = (task.stderr != task.stdout).then_some((task.rank, LogStream::Stderr, task.stderr.as_path()));
            std::iter::once((task.rank, LogStream::Stdout, task.stdout.as_path())).chain(stderr)
        })
        .collect()
}
