//! The `oci` driver: an image pulled and unpacked by us, an overlay root, devices by CDI, and crun or runc to run it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::auth::Logins;
use super::bundle::{self, Parts};
use super::images::{Image, Images};
use super::shim::{Container, RuntimeCommand};
use super::steps::{ContainerSteps, check_mounts, container_name, inner_spec};
use super::{BUNDLE, IO};
use crate::process::node_error;
use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, Runtime, StepExit, StepKey, Usage};

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
    /// Logins to registries.
    pub logins: Logins,
    /// Folders of CDI specs; `/etc/cdi` and `/var/run/cdi` as a rule.
    pub cdi_dirs: Vec<String>,
    /// Host folders below which jobs may mount.
    pub mounts: Vec<PathBuf>,
    /// crun, runc or a path; `None`: the first of them that works.
    pub runtime: Option<String>,
}

/// The driver. What it knows of steps is on disk alone.
pub struct Oci {
    steps: ContainerSteps,
    images: Images,
    config: OciConfig,
    program: PathBuf,
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
        let steps = ContainerSteps::open(&config.state.join("oci-steps"), config.shim.clone()).map_err(|e| e.to_string())?;
        let images = Images::open(&config.state.join("images"), config.insecure_registries.clone(), config.logins.clone())
            .map_err(|e| e.to_string())?;
        let program = find_runtime(&config, &root)?;
        Ok(Oci { steps, images, program, root, config })
    }

    /// The runtime in use, for the node's facts.
    pub fn runtime(&self) -> &Path {
        &self.program
    }

    fn command(&self, spec: &LaunchSpec) -> RuntimeCommand {
        RuntimeCommand { program: self.program.clone(), root: self.root.clone(), id: container_name(spec) }
    }

    /// Folders, the root's mount, the configuration.
    fn lay_out(&self, spec: &LaunchSpec, image: &Image) -> Result<(), LaunchError> {
        let dir = self.steps.dir(&spec.key);
        let (bundle_dir, io) = (dir.join(BUNDLE), dir.join(IO));
        let make = || -> io::Result<PathBuf> {
            self.steps.make_folders(spec, &inner_spec(spec, &image.config), &Container::Oci(self.command(spec)))?;
            let root = bundle_dir.join("rootfs");
            mount_root(&bundle_dir, &root, &image.layers)?;
            Ok(root)
        };
        let root = make().map_err(|e| node_error(format!("the container's folder cannot be made: {e}")))?;
        let init = self.config.init.canonicalize().map_err(|e| node_error(format!("the helper is not there: {e}")))?;
        let parts = Parts { root: &root, io: &io, init: &init, cdi_dirs: &self.config.cdi_dirs, layout: self.steps.layout() };
        let config = bundle::config(spec, &parts)?;
        let write = || -> io::Result<()> {
            fs::write(bundle_dir.join("config.json"), serde_json::to_vec(&config)?)?;
            self.steps.laid_out(spec)
        };
        write().map_err(|e| node_error(format!("the container's configuration cannot be written: {e}")))
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
    command.delete();
    let _ = fs::remove_dir_all(&dir);
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("says: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("nothing"))),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}

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
        if !self.steps.is_laid_out(&spec.key) {
            check_mounts(spec, &self.config.mounts)?;
            let image = self.images.get(name).await?;
            unmount(&dir.join(BUNDLE).join("rootfs"));
            self.lay_out(spec, &image)?;
        }
        self.steps.until_created(&spec.key).await
    }

    async fn start(&self, key: &StepKey) -> Result<(), LaunchError> {
        self.steps.go(key)
    }

    async fn signal(&self, key: &StepKey, signal: i32, all: bool) -> Result<(), LaunchError> {
        self.steps.signal(key, signal, all).await
    }

    async fn suspend(&self, key: &StepKey, is_suspended: bool) -> Result<(), LaunchError> {
        self.steps.suspend(key, is_suspended).await
    }

    async fn bind(&self, key: &StepKey, cores: &[u32]) -> Result<(), LaunchError> {
        self.steps.bind(key, cores)
    }

    async fn kill(&self, key: &StepKey) -> Result<(), LaunchError> {
        self.steps.kill(key).await
    }

    async fn wait(&self, key: &StepKey) -> Result<StepExit, LaunchError> {
        if let Some(exit) = self.steps.wait(key).await? {
            return Ok(exit);
        }
        self.command(&self.steps.spec(key)?).delete();
        self.steps.lost(key)
    }

    async fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError> {
        self.steps.usage(key)
    }

    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError> {
        if let Some(spec) = self.steps.end(key).await? {
            self.command(&spec).delete();
        }
        unmount(&self.steps.dir(key).join(BUNDLE).join("rootfs"));
        self.steps.remove(key).await
    }

    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError> {
        self.steps.list(|dir| unmount(&dir.join(BUNDLE).join("rootfs")))
    }
}
