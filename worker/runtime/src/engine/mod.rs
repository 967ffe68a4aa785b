//! The `engine` driver: a step's container is made by Docker or podman through the Docker Engine API, for sites that must use their
//! engine. Inside it and around it all is as with the driver [`crate::container::oci`]: one container for all tasks of the node, the helper
//! as process 1, a shim that looks after it and ends it when the lease runs out.
//!
//! [`api`] speaks to the engine, [`body`] turns a step into its request, [`devices`] brings in the GPUs, [`container`] is what the shim
//! does.

mod api;
mod body;
mod container;
mod devices;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::{CreateContainerOptionsBuilder, ListContainersOptionsBuilder};

use crate::cgroup::Group;
use crate::container::IO;
use crate::container::auth::Logins;
use crate::container::init::{DONE, GO};
use crate::container::shim::Container;
use crate::container::steps::{ContainerSteps, check_mounts, container_name, inner_spec, make_pipe};
use crate::process::node_error;
use crate::shim::group_name;
use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, Limits, Runtime, StepExit, StepKey, Usage};

pub use container::EngineContainer;

/// How the driver is set up.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Steps are kept below.
    pub state: PathBuf,
    /// The command to which a step's folder is added, as in `berth shim`.
    pub shim: Vec<String>,
    /// The static helper that becomes process 1, see `worker/helper`.
    pub init: PathBuf,
    /// The engine's socket; `None`: Docker's, or else podman's usual one.
    pub socket: Option<PathBuf>,
    /// Logins to registries, beside those of the engine itself.
    pub logins: Logins,
    /// Folders of CDI specs.
    pub cdi_dirs: Vec<String>,
    /// Host folders below which jobs may mount.
    pub mounts: Vec<PathBuf>,
}

/// Where engines listen.
const SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/podman/podman.sock"];
/// Names the worker whose container it is, by its steps' folder.
const OWNER_LABEL: &str = "berth.worker";

/// The driver. What it knows of steps is on disk and in the engine.
pub struct Engine {
    steps: ContainerSteps,
    config: EngineConfig,
    socket: PathBuf,
    docker: Docker,
    about: api::About,
    /// The value of [`OWNER_LABEL`].
    owner: String,
}

impl Engine {
    /// `Err` says in words why containers cannot be run here.
    pub async fn open(config: EngineConfig) -> Result<Engine, String> {
        let usual = || SOCKETS.map(PathBuf::from).into_iter().find(|socket| socket.exists());
        let socket = config
            .socket
            .clone()
            .or_else(usual)
            .ok_or_else(|| format!("no engine listens on {}; name its socket with --engine-socket", SOCKETS.join(" or ")))?;
        let docker = api::connect(&socket).map_err(|e| format!("{}: {}", socket.display(), e.detail))?;
        let about = api::about(&docker).await.map_err(|e| format!("{}: {}", socket.display(), e.detail))?;
        let state = config.state.join("engine-steps");
        let steps = ContainerSteps::open(&state, config.shim.clone()).map_err(|e| e.to_string())?;
        let owner = state.canonicalize().map_err(|e| e.to_string())?.display().to_string();
        Ok(Engine { steps, config, socket, docker, about, owner })
    }

    /// The engine in use, for the node's facts.
    pub fn describe(&self) -> String {
        format!("{} at {}", self.about.name, self.socket.display())
    }

    /// How GPUs get into containers, for the node's facts.
    pub fn gpu_injection(&self) -> &'static str {
        if self.about.does_cdi { "cdi by the engine" } else { "device nodes, without CDI's hooks: the engine does no CDI" }
    }

    async fn lay_out(&self, spec: &LaunchSpec, image: &str) -> Result<(), LaunchError> {
        check_mounts(spec, &self.config.mounts)?;
        let granted = devices::grant(&spec.gpus, &self.config.cdi_dirs, self.about.does_cdi)?;
        let (image, image_config) = api::image(&self.docker, image, &self.config.logins).await?;
        let inside = self.steps.dir(&spec.key).join(IO);
        let name = container_name(spec);
        let container = EngineContainer::new(&self.socket, name.clone(), inside.clone(), granted.expected.clone());
        let make = || -> io::Result<()> {
            self.steps.make_folders(spec, &inner_spec(spec, &image_config), &Container::Engine(container))?;
            make_pipe(&inside.join(GO))?;
            make_pipe(&inside.join(DONE))?;
            // The engine sets the limits on its own group below this one.
            Group::new(self.steps.layout(), &group_name(spec)).create(&Limits { cores: spec.limits.cores.clone(), ..Limits::default() })
        };
        make().map_err(|e| node_error(format!("the container's folder cannot be made: {e}")))?;
        let init = self.config.init.canonicalize().map_err(|e| node_error(format!("the helper is not there: {e}")))?;
        let parts = body::Parts {
            image: &image,
            init: &init,
            io: &inside,
            cgroup_parent: self.about.takes_cgroup_parent.then(|| format!("/{}", group_name(spec))),
            labels: self.labels(spec),
        };
        // One that an earlier worker process left half made.
        api::remove(&self.docker, &name).await?;
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        self.docker.create_container(Some(options), body::create(spec, &parts, granted)).await.map_err(api::creation_error)?;
        self.steps.laid_out(spec).map_err(|e| node_error(format!("the step cannot be written down: {e}")))
    }

    fn labels(&self, spec: &LaunchSpec) -> HashMap<String, String> {
        HashMap::from([
            (OWNER_LABEL.to_owned(), self.owner.clone()),
            ("berth.job".to_owned(), spec.key.job.to_string()),
            ("berth.attempt".to_owned(), spec.key.attempt.to_string()),
            ("berth.step".to_owned(), spec.key.step.clone()),
        ])
    }

    /// Removes containers of ours that belong to no step on disk: their shim died, or the engine was away when they were to be removed.
    async fn remove_strays(&self, known: &[FoundStep]) -> Result<(), LaunchError> {
        let filters = HashMap::from([("label".to_owned(), vec![format!("{OWNER_LABEL}={}", self.owner)])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        for container in self.docker.list_containers(Some(options)).await.map_err(api::node_error)? {
            let labels = container.labels.unwrap_or_default();
            let is_known = known.iter().any(|found| {
                let is = |label: &str, value: &str| labels.get(label).is_some_and(|l| l == value);
                let key = &found.key;
                is("berth.job", &key.job.to_string()) && is("berth.attempt", &key.attempt.to_string()) && is("berth.step", &key.step)
            });
            if let (false, Some(id)) = (is_known, container.id) {
                api::remove(&self.docker, &id).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Runtime for Engine {
    fn name(&self) -> &'static str {
        "engine"
    }

    async fn prepare(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        let Some(image) = &spec.image else {
            return Err(LaunchError { cause: LaunchCause::BadSpec, detail: "the job names no container image".to_owned() });
        };
        if !self.steps.is_laid_out(&spec.key) {
            self.lay_out(spec, image).await?;
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
        api::remove(&self.docker, &container_name(&self.steps.spec(key)?)).await?;
        self.steps.lost(key)
    }

    async fn usage(&self, key: &StepKey) -> Result<Usage, LaunchError> {
        self.steps.usage(key)
    }

    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError> {
        let spec = self.steps.spec(key).ok();
        self.steps.end(key).await?;
        if let Some(spec) = spec {
            // Whatever the shim did: it may have found the engine away.
            api::remove(&self.docker, &container_name(&spec)).await?;
        }
        self.steps.remove(key).await
    }

    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError> {
        let found = self.steps.list(|_: &Path| {})?;
        if let Err(error) = self.remove_strays(&found).await {
            tracing::warn!(%error, "containers that belong to no step could not be looked for");
        }
        Ok(found)
    }
}
