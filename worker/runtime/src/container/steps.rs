//! Steps in containers as their drivers share them: folders, the go, signals, the end. Who runs the container is the shim's business.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::IO;
use super::images::ImageConfig;
use super::shim::Container;
use crate::cgroup::{Group, Layout};
use crate::process::{ShimCommand, StepDirs, freeze, node_error, until};
use crate::shim::{SavedLayout, group_name, job_group_name};
use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, StepExit, StepKey, StepPhase, Usage};

/// Longest time for a container to be created.
const CREATE_PATIENCE: Duration = Duration::from_secs(120);

/// After the go a container's init takes no longer to start its tasks.
const STARTING: Duration = Duration::from_secs(1);

/// The steps of one driver of containers. What is known of them is on disk alone.
pub struct ContainerSteps {
    dirs: StepDirs,
    layout: Layout,
}

impl ContainerSteps {
    /// Keeps them below `state`; `shim` is the command to which a step's folder is added.
    pub fn open(state: &Path, shim: Vec<String>) -> io::Result<ContainerSteps> {
        Ok(ContainerSteps { dirs: StepDirs::open(state, ShimCommand(shim))?, layout: Layout::detect() })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn dir(&self, key: &StepKey) -> PathBuf {
        self.dirs.dir(key)
    }

    pub fn spec(&self, key: &StepKey) -> Result<LaunchSpec, LaunchError> {
        self.dirs.spec(key)
    }

    /// The container's own group, once it is there.
    fn group(&self, key: &StepKey) -> Result<Group, LaunchError> {
        let name = fs::read_to_string(self.dir(key).join("group")).or_else(|_| Ok(group_name(&self.spec(key)?)))?;
        Ok(Group::new(&self.layout, &name))
    }

    /// The step's folder with all that its shim and its init are told.
    pub fn make_folders(&self, spec: &LaunchSpec, inner: &LaunchSpec, container: &Container) -> io::Result<()> {
        let dir = self.dir(&spec.key);
        let inside = dir.join(IO);
        fs::create_dir_all(&inside)?;
        for folder in spec.tasks.iter().flat_map(|task| [&task.stdout, &task.stderr]).filter_map(|file| file.parent()) {
            fs::create_dir_all(folder)?;
        }
        fs::write(dir.join("cgroup.json"), serde_json::to_vec(&SavedLayout::of(&self.layout))?)?;
        fs::write(dir.join("runtime.json"), serde_json::to_vec(container)?)?;
        fs::write(inside.join("spec.json"), serde_json::to_vec(inner)?)?;
        make_pipe(&dir.join("go"))?;
        Group::new(&self.layout, &job_group_name(spec)).create(&spec.job_limits)
    }

    pub fn is_laid_out(&self, key: &StepKey) -> bool {
        self.dir(key).join("spec.json").exists()
    }

    /// All is written: from now on the step is known.
    pub fn laid_out(&self, spec: &LaunchSpec) -> io::Result<()> {
        let dir = self.dir(&spec.key);
        fs::write(dir.join("spec.json.new"), serde_json::to_vec(spec)?)?;
        fs::rename(dir.join("spec.json.new"), dir.join("spec.json"))
    }

    /// Sees to it that a shim looks after the step, and waits until its container is there.
    pub async fn until_created(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.dir(key);
        if !self.dirs.has_shim(&dir) && !dir.join("exit.json").exists() {
            self.dirs.start_shim(&dir)?;
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

    /// Lets the tasks start.
    pub fn go(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.dir(key);
        if dir.join("started").exists() || dir.join("exit.json").exists() {
            return Ok(());
        }
        // Nobody reads: the shim is gone, and `wait` will tell.
        match write_to_shim(&dir, b"g") {
            Some(Err(error)) => Err(node_error(format!("the go could not be given: {error}"))),
            _ => Ok(()),
        }
    }

    pub async fn signal(&self, key: &StepKey, signal: i32, all: bool) -> Result<(), LaunchError> {
        let dir = self.dir(key);
        let init = fs::read_to_string(dir.join("created")).unwrap_or_default();
        // The tasks are the init's children, each the leader of a group.
        let children = || -> Vec<i32> {
            let list = fs::read_to_string(format!("/proc/{0}/task/{0}/children", init.trim())).unwrap_or_default();
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
        };
        // The init may be starting them just now: a signal must not miss them.
        let count = self.spec(key)?.tasks.len();
        let is_young = || {
            let age = fs::metadata(dir.join("started")).and_then(|file| file.modified()).ok().and_then(|at| at.elapsed().ok());
            age.is_none_or(|age| age < STARTING)
        };
        until(|| dir.join("exit.json").exists() || children().len() >= count || !is_young()).await;
        for task in children() {
            // Safety: a plain system call on the container's processes.
            unsafe { libc::kill(if all { -task } else { task }, signal) };
        }
        Ok(())
    }

    pub async fn kill(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.dir(key);
        if dir.join("exit.json").exists() {
            return Ok(());
        }
        if let Ok(init) = fs::read_to_string(dir.join("created")).unwrap_or_default().trim().parse::<i32>() {
            // The kernel ends the whole namespace with its process 1. Safety: a plain system call.
            unsafe { libc::kill(init, libc::SIGKILL) };
        }
        if !dir.join("started").exists() {
            // The shim waits for a go that will not come.
            let _ = write_to_shim(&dir, b"e");
        }
        let group = self.group(key)?;
        tokio::task::spawn_blocking(move || group.kill()).await.map_err(|e| node_error(e.to_string()))
    }

    /// Freezes the container, or lets it go on. By its group, whoever made it.
    pub async fn suspend(&self, key: &StepKey, is_suspended: bool) -> Result<(), LaunchError> {
        freeze(self.group(key)?, is_suspended).await
    }

    pub fn bind(&self, key: &StepKey, cores: &[u32]) -> Result<(), LaunchError> {
        self.group(key)?.bind(cores).map_err(|e| node_error(format!("the container could not be bound to other CPUs: {e}")))
    }

    /// Waits for the shim's word. `None`: it died without one; all is killed then, and the container is to be removed.
    pub async fn wait(&self, key: &StepKey) -> Result<Option<StepExit>, LaunchError> {
        let exit = self.dirs.wait(key).await?;
        if exit.is_none() {
            self.kill(key).await?;
        }
        Ok(exit)
    }

    /// The end of a step whose shim died.
    pub fn lost(&self, key: &StepKey) -> Result<StepExit, LaunchError> {
        let failure = LaunchError { cause: LaunchCause::Lost, detail: "the container's shim died".to_owned() };
        Ok(StepExit { failure: Some(failure), usage: self.usage(key)?, ..StepExit::default() })
    }

    pub fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError> {
        Ok(self.group(key)?.usage())
    }

    /// Ends what runs. Gives the step if its container may still be there and is to be removed.
    pub async fn end(&self, key: &StepKey) -> Result<Option<LaunchSpec>, LaunchError> {
        let dir = self.dir(key);
        let Ok(spec) = self.spec(key) else { return Ok(None) };
        if self.dirs.has_shim(&dir) {
            self.kill(key).await?;
            let _ = self.dirs.wait(key).await;
        }
        Ok((!dir.join("exit.json").exists()).then_some(spec))
    }

    /// Removes the step's groups and its folder.
    pub async fn remove(&self, key: &StepKey) -> Result<(), LaunchError> {
        let dir = self.dir(key);
        if let Ok(spec) = self.spec(key) {
            let group = Group::new(&self.layout, &group_name(&spec));
            let _ = tokio::task::spawn_blocking(move || group.remove()).await;
        }
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(node_error(format!("{}: {error}", dir.display()))),
            _ => Ok(()),
        }
    }

    pub fn list(&self, clear: impl Fn(&Path)) -> Result<Vec<FoundStep>, LaunchError> {
        let phase = |dir: &Path| match () {
            () if dir.join("exit.json").exists() => StepPhase::Exited,
            () if dir.join("started").exists() => StepPhase::Running,
            () => StepPhase::Created,
        };
        self.dirs.list(phase, clear)
    }
}

/// Names a step's container on this machine.
pub fn container_name(spec: &LaunchSpec) -> String {
    format!("{}-{}-{}-{}", spec.cgroup_parent.replace('/', "-"), spec.key.job, spec.key.attempt, spec.key.step)
}

/// A mount's source must be below a folder that the operator allows.
pub fn check_mounts(spec: &LaunchSpec, allowed: &[PathBuf]) -> Result<(), LaunchError> {
    for mount in &spec.mounts {
        let bad = |detail: String| LaunchError { cause: LaunchCause::BadSpec, detail };
        let source = mount.source.canonicalize().map_err(|e| bad(format!("the mount's source {}: {e}", mount.source.display())))?;
        if !allowed.iter().any(|folder| source.starts_with(folder)) {
            return Err(bad(format!(
                "{} may not be mounted here; the node's operator allows folders with --allow-mounts",
                mount.source.display()
            )));
        }
    }
    Ok(())
}

/// What the init is given: the image's environment under the job's.
pub fn inner_spec(spec: &LaunchSpec, image: &ImageConfig) -> LaunchSpec {
    let mut inner = spec.clone();
    let mut env: BTreeMap<String, String> =
        image.env.iter().filter_map(|v| v.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    env.entry("HOME".to_owned()).or_insert_with(|| "/root".to_owned());
    env.extend(std::mem::take(&mut inner.env));
    if let (Some(tools), Some(path)) = (&spec.tools_dir, env.get_mut("PATH")) {
        *path = format!("{}:{path}", tools.display());
    }
    inner.env = env;
    if inner.cwd.is_none() {
        let dir = image.working_dir.as_str();
        inner.cwd = Some(if dir.is_empty() || dir == "/" { spec.scratch_dir.clone().unwrap_or_else(|| "/".into()) } else { dir.into() });
    }
    // The container's own limits hold; CPUs are bound task by task inside.
    inner.lease = None;
    inner
}

/// `None`: no shim listens.
fn write_to_shim(dir: &Path, byte: &[u8]) -> Option<io::Result<()>> {
    let mut pipe = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(dir.join("go")).ok()?;
    Some(io::Write::write_all(&mut pipe, byte))
}

/// Makes a named pipe that root alone may open.
pub fn make_pipe(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // Safety: the name is a valid string for the call's time.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0 || io::Error::last_os_error().kind() == io::ErrorKind::AlreadyExists {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
