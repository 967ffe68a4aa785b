//! The `oci` driver: an image pulled and unpacked by us, an overlay root, devices by CDI, and crun or runc to run it.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::bundle::{self, Parts};
use super::images::{Image, Images};
use super::shim::RuntimeCommand;
use super::{BUNDLE, IO};
use crate::cgroup::{Group, Layout};
use crate::process::{ShimCommand, StepDirs, node_error};
use crate::shim::{SavedLayout, group_name, job_group_name};
use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, Runtime, StepExit, StepKey, StepPhase, Usage};

/// How the driver is set up.
#[derive(Clone, Debug)]
pub struct OciConfig {
    /// Steps, images and the runtime's state are kept below.
    pub state: PathBuf,
    /// The command to which a step's folder is added, as in `berth shim`.
    pub shim: Vec<String>,
    /// The static helper that becomes process 1, see `worker/helper`.
    pub init: PathBuf,
    /// Registries without TLS, beside those on loopback.
    pub insecure_registries: Vec<String>,
    /// Folders of CDI specs; `/etc/cdi` and `/var/run/cdi` as a rule.
    pub cdi_dirs: Vec<String>,
    /// Host folders below which jobs may mount.
    pub mounts: Vec<PathBuf>,
    /// crun, runc or a path; `None`: the first of them that works.
    pub runtime: Option<String>,
}

/// The driver. What it knows of steps is on disk alone.
pub struct Oci {
    steps: StepDirs,
    images: Images,
    config: OciConfig,
    program: PathBuf,
    layout: Layout,
    root: PathBuf,
}

impl Oci {
    /// `Err` says in words why containers cannot be run here.
    pub fn open(config: OciConfig) -> Result<Oci, String> {
        // Safety: the call cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("containers need a worker that runs as root".to_owned());
        }
        let root = config.state.join("oci-run");
        fs::create_dir_all(&root).map_err(|e| format!("{}: {e}", root.display()))?;
        let steps = StepDirs::open(&config.state.join("oci-steps"), ShimCommand(config.shim.clone())).map_err(|e| e.to_string())?;
        let images = Images::open(&config.state.join("images"), config.insecure_registries.clone()).map_err(|e| e.to_string())?;
        let program = find_runtime(&config, &root)?;
        Ok(Oci { steps, images, program, layout: Layout::detect(), root, config })
    }

    /// The runtime in use, for the node's facts.
    pub fn runtime(&self) -> &Path {
        &self.program
    }

    fn command(&self, spec: &LaunchSpec) -> RuntimeCommand {
        let id = format!("{}-{}-{}-{}", spec.cgroup_parent.replace('/', "-"), spec.key.job, spec.key.attempt, spec.key.step);
        RuntimeCommand { program: self.program.clone(), root: self.root.clone(), id }
    }

    /// Folders, the root's mount, the configuration.
    fn lay_out(&self, spec: &LaunchSpec, image: &Image) -> Result<(), LaunchError> {
        let dir = self.steps.dir(&spec.key);
        let (bundle_dir, io) = (dir.join(BUNDLE), dir.join(IO));
        let make = || -> io::Result<PathBuf> {
            fs::create_dir_all(&io)?;
            for task in &spec.tasks {
                for file in [&task.stdout, &task.stderr] {
                    if let Some(parent) = file.parent() {
                        fs::create_dir_all(parent)?;
                    }
                }
            }
            let root = bundle_dir.join("rootfs");
            mount_root(&bundle_dir, &root, &image.layers)?;
            fs::write(dir.join("cgroup.json"), serde_json::to_vec(&SavedLayout::of(&self.layout))?)?;
            fs::write(dir.join("runtime.json"), serde_json::to_vec(&self.command(spec))?)?;
            fs::write(io.join("spec.json"), serde_json::to_vec(&inner_spec(spec, image))?)?;
            make_pipe(&dir.join("go"))?;
            Group::new(&self.layout, &job_group_name(spec)).create(&spec.job_limits)?;
            Ok(root)
        };
        let root = make().map_err(|e| node_error(format!("the container's folder cannot be made: {e}")))?;
        let init = self.config.init.canonicalize().map_err(|e| node_error(format!("the helper is not there: {e}")))?;
        let parts = Parts { root: &root, io: &io, init: &init, cdi_dirs: &self.config.cdi_dirs, layout: &self.layout };
        let config = bundle::config(spec, &parts)?;
        let write = || -> io::Result<()> {
            fs::write(bundle_dir.join("config.json"), serde_json::to_vec(&config)?)?;
            fs::write(dir.join("spec.json.new"), serde_json::to_vec(spec)?)?;
            fs::rename(dir.join("spec.json.new"), dir.join("spec.json"))
        };
        write().map_err(|e| node_error(format!("the container's configuration cannot be written: {e}")))
    }

    /// The source must be below a folder that the operator allows.
    fn check_mounts(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        for mount in &spec.mounts {
            let bad = |detail: String| LaunchError { cause: LaunchCause::BadSpec, detail };
            let source = mount.source.canonicalize().map_err(|e| bad(format!("the mount's source {}: {e}", mount.source.display())))?;
            if !self.config.mounts.iter().any(|allowed| source.starts_with(allowed)) {
                return Err(bad(format!(
                    "{} may not be mounted here; the node's operator allows folders with --allow-mounts",
                    mount.source.display()
                )));
            }
        }
        Ok(())
    }
}

/// What the init is given: the image's environment under the job's.
fn inner_spec(spec: &LaunchSpec, image: &Image) -> LaunchSpec {
    let mut inner = spec.clone();
    let mut env: std::collections::BTreeMap<String, String> =
        image.config.env.iter().filter_map(|v| v.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    env.entry("HOME".to_owned()).or_insert_with(|| "/root".to_owned());
    env.extend(std::mem::take(&mut inner.env));
    if let (Some(tools), Some(path)) = (&spec.tools_dir, env.get_mut("PATH")) {
        *path = format!("{}:{path}", tools.display());
    }
    inner.env = env;
    if inner.cwd.is_none() {
        let dir = image.config.working_dir.as_str();
        inner.cwd = Some(if dir.is_empty() || dir == "/" { spec.scratch_dir.clone().unwrap_or_else(|| "/".into()) } else { dir.into() });
    }
    // The container's own limits hold; CPUs are bound task by task inside.
    inner.lease = None;
    inner
}

fn make_pipe(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // Safety: the name is a valid string for the call's time.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0 || io::Error::last_os_error().kind() == io::ErrorKind::AlreadyExists {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Mounts the layers with a writable folder over them.
fn mount_root(bundle: &Path, root: &Path, layers: &[PathBuf]) -> io::Result<()> {
    let (upper, work) = (bundle.join("upper"), bundle.join("work"));
    for dir in [root, &upper, &work] {
        fs::create_dir_all(dir)?;
    }
    // The kernel's list begins with the highest.
    let lower = layers.iter().rev().map(|l| l.display().to_string()).collect::<Vec<_>>().join(":");
    let options = format!("lowerdir={lower},upperdir={},workdir={}", upper.display(), work.display());
    if options.len() > 4000 {
        return Err(io::Error::other(format!("the image has {} layers, more than the kernel takes; squash it", layers.len())));
    }
    let (target, options) = (CString::new(root.as_os_str().as_bytes())?, CString::new(options)?);
    // Safety: all pointers are to strings that live through the call.
    let mounted = unsafe { libc::mount(c"overlay".as_ptr(), target.as_ptr(), c"overlay".as_ptr(), 0, options.as_ptr().cast()) };
    if mounted == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unmount(root: &Path) {
    if let Ok(target) = CString::new(root.as_os_str().as_bytes()) {
        // Safety: the string lives through the call. What is not mounted needs no unmounting.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// The first runtime that runs a container that does nothing.
fn find_runtime(config: &OciConfig, root: &Path) -> Result<PathBuf, String> {
    let candidates: Vec<String> = config.runtime.clone().map_or_else(|| vec!["crun".to_owned(), "runc".to_owned()], |r| vec![r]);
    let mut faults = Vec::new();
    for name in &candidates {
        match which(name).ok_or_else(|| "is not installed".to_owned()).and_then(|program| probe(&program, config, root).map(|()| program)) {
            Ok(program) => return Ok(program),
            Err(fault) => faults.push(format!("{name} {fault}")),
        }
    }
    Err(format!("no container runtime works here: {}; install one with apt-get install crun (or runc)", faults.join("; ")))
}

fn which(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| p.exists());
    }
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|p| p.exists())
}

fn probe(program: &Path, config: &OciConfig, root: &Path) -> Result<(), String> {
    let dir = config.state.join("probe");
    let _ = fs::remove_dir_all(&dir);
    let lay_out = || -> io::Result<()> {
        for folder in ["dev", "proc", "sys"] {
            fs::create_dir_all(dir.join("rootfs").join(folder))?;
        }
        fs::copy(&config.init, dir.join("rootfs/init"))?;
        let namespaces: Vec<_> = ["pid", "ipc", "uts", "mount"].map(|kind| serde_json::json!({ "type": kind })).to_vec();
        let config = serde_json::json!({
            "ociVersion": "1.0.2",
            "process": { "terminal": false, "user": { "uid": 0, "gid": 0 }, "args": ["/init"], "cwd": "/", "noNewPrivileges": true },
            "root": { "path": "rootfs", "readonly": true },
            "mounts": [
                { "destination": "/proc", "type": "proc", "source": "proc" },
                { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"] },
            ],
            "linux": { "cgroupsPath": format!("/berth/probe-{}", std::process::id()), "namespaces": namespaces },
        });
        fs::write(dir.join("config.json"), config.to_string())
    };
    lay_out().map_err(|e| format!("cannot be tried: {e}"))?;
    let command = RuntimeCommand { program: program.to_owned(), root: root.to_owned(), id: format!("berth-probe-{}", std::process::id()) };
    let bundle = dir.display().to_string();
    let output = command.call(&["run", "--bundle", &bundle, &command.id]);
    let _ = command.call(&["delete", "--force", &command.id]);
    let _ = fs::remove_dir_all(&dir);
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("says: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("nothing"))),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}

/// Longest time for a container to be created.
const CREATE_PATIENCE: Duration = Duration::from_secs(120);

#[async_trait]
impl Runtime for Oci {
    fn name(&self) -> &'static str {
        "oci"
    }

    async fn prepare(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        let Some(name) = &spec.image else {
            return Err(LaunchError { cause: LaunchCause::BadSpec, detail: "the job names no container image".to_owned() });
        };
        let dir = self.steps.dir(&spec.key);
        if !dir.join("spec.json").exists() {
            self.check_mounts(spec)?;
            let image = self.images.get(name).await?;
            unmount(&dir.join(BUNDLE).join("rootfs"));
            self.lay_out(spec, &image)?;
        }
        if !self.steps.has_shim(&dir) && !dir.join("exit.json").exists() {
            self.steps.start_shim(&dir)?;
        }
        let deadline = Instant::now() + CREATE_PATIENCE;
        while !dir.join("created").exists() {
            if let Ok(bytes) = fs::read(dir.join("exit.json")) {
                let exit: StepExit = serde_json::from_slice(&bytes).map_err(|e| node_error(e.to_string()))?;
                return Err(exit.failure.unwrap_or_else(|| node_error("the container ended before it was started")));
            }
            if Instant::now() > deadline {
                return Err(node_error(format!("the container was not created within {} s", CREATE_PATIENCE.as_secs())));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn start(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        if dir.join("started").exists() || dir.join("exit.json").exists() {
            return Ok(());
        }
        // Nobody reads: the shim is gone, and `wait` will tell.
        let pipe = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(dir.join("go"));
        if let Ok(mut pipe) = pipe {
            io::Write::write_all(&mut pipe, b"g").map_err(|e| node_error(format!("the go could not be given: {e}")))?;
        }
        Ok(())
    }

    async fn signal(&self, key: &StepKey, signal: i32, all: bool) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        let init = fs::read_to_string(dir.join("created")).unwrap_or_default();
        // The tasks are the init's children, each the leader of a group.
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", init.trim())).unwrap_or_default();
        for task in children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()) {
            // Safety: a plain system call on the container's processes.
            unsafe { libc::kill(if all { -task } else { task }, signal) };
        }
        Ok(())
    }

    async fn kill(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        if dir.join("exit.json").exists() {
            return Ok(());
        }
        if let Ok(init) = fs::read_to_string(dir.join("created")).unwrap_or_default().trim().parse::<i32>() {
            // The kernel ends the whole namespace with its process 1. Safety: a plain system call.
            unsafe { libc::kill(init, libc::SIGKILL) };
        }
        if !dir.join("started").exists()
            && let Ok(mut pipe) = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(dir.join("go"))
        {
            // The shim waits for a go that will not come.
            let _ = io::Write::write_all(&mut pipe, b"e");
        }
        let group = Group::new(&self.layout, &group_name(&self.steps.spec(key)?));
        tokio::task::spawn_blocking(move || group.kill()).await.map_err(|e| node_error(e.to_string()))
    }

    async fn wait(&self, key: &StepKey) -> Result<StepExit, LaunchError> {
        match self.steps.wait(key).await? {
            Some(exit) => Ok(exit),
            None => {
                self.kill(key).await?;
                let command = self.command(&self.steps.spec(key)?);
                let _ = command.call(&["delete", "--force", &command.id]);
                let failure = LaunchError { cause: LaunchCause::Lost, detail: "the container's shim died".to_owned() };
                Ok(StepExit { failure: Some(failure), usage: self.usage(key).await?, ..StepExit::default() })
            }
        }
    }

    async fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError> {
        Ok(Group::new(&self.layout, &group_name(&self.steps.spec(key)?)).usage())
    }

    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.steps.dir(key);
        if !dir.exists() {
            return Ok(());
        }
        if let Ok(spec) = self.steps.spec(key) {
            if self.steps.has_shim(&dir) {
                self.kill(key).await?;
                let _ = self.steps.wait(key).await;
            }
            let command = self.command(&spec);
            if !dir.join("exit.json").exists() {
                let _ = command.call(&["delete", "--force", &command.id]);
            }
            let group = Group::new(&self.layout, &group_name(&spec));
            let _ = tokio::task::spawn_blocking(move || group.remove()).await;
        }
        unmount(&dir.join(BUNDLE).join("rootfs"));
        fs::remove_dir_all(&dir).map_err(|e| node_error(format!("{}: {e}", dir.display())))
    }

    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError> {
        let phase = |dir: &Path| match () {
            () if dir.join("exit.json").exists() => StepPhase::Exited,
            () if dir.join("started").exists() => StepPhase::Running,
            () => StepPhase::Created,
        };
        self.steps.list(phase, |dir| unmount(&dir.join(BUNDLE).join("rootfs")))
    }
}
