//! The node's loop: register, ask what should run, keep an actor for each attempt, hold the lease.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use berth_devices::DeviceSource;
use berth_model::JobId;
use berth_model::gres::mark_surplus_kinds;
use berth_model::resources::Inventory;
use berth_model::worker::{Assignment, DesiredState, Fact, Register, WorkerSettings};
use berth_runtime::container::auth::Logins;
use berth_runtime::container::oci::{Oci, OciConfig};
use berth_runtime::engine::{Engine, EngineConfig};
use berth_runtime::fence::{self, since_boot};
use berth_runtime::process::Process;
use berth_runtime::sim::Sim;
use berth_runtime::{Runtime, StepKey};
use tokio::sync::watch;

use crate::attempt::{Attempt, Wish, attempt_dir};
use crate::client::{CallError, Client};
use crate::config::{Hooks, WorkerConfig};
use crate::discover::{self, Machine};
use crate::launch::Node;
use crate::metrics::WorkerMetrics;
use crate::output::{self, Uploads};
use crate::reports::Outbox;
use crate::{WorkerError, hooks, io, stopped};

/// What all parts of the agent use.
pub struct Shared {
    pub client: Client,
    pub outbox: Arc<Outbox>,
    pub metrics: Arc<WorkerMetrics>,
    pub uploads: Uploads,
    pub node: Node,
    pub hooks: Hooks,
    /// Folder of the attempts' folders.
    pub jobs: PathBuf,
    /// Folder of the jobs' sockets. Short, since a socket's path is.
    pub sockets: PathBuf,
    /// Runs jobs without an image.
    host: Arc<dyn Runtime>,
    /// Runs jobs with one.
    container: Option<Arc<dyn Runtime>>,
    settings: Mutex<WorkerSettings>,
}

impl Shared {
    pub fn runtime_for(&self, has_image: bool) -> Arc<dyn Runtime> {
        // A node without a container runtime refuses images by way of the host's driver.
        if has_image { self.container.clone().unwrap_or_else(|| self.host.clone()) } else { self.host.clone() }
    }

    pub fn kill_wait(&self) -> Duration {
        Duration::from_secs(self.settings().kill_wait_seconds)
    }

    fn settings(&self) -> WorkerSettings {
        *self.settings.lock().expect("no panic while the lock is held")
    }

    fn runtimes(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        std::iter::once(&self.host).chain(&self.container)
    }
}

/// Longest path of the sockets' folder: a socket's whole path has 108 bytes.
const LONGEST_SOCKET_DIR: usize = 70;

/// Runs a worker until `stopping` is set. Running steps go on; the next start finds them.
pub async fn run(config: WorkerConfig, mut stopping: watch::Receiver<bool>) -> Result<(), WorkerError> {
    let state = config.state_dir.clone();
    let [jobs, sockets] = ["jobs", "run"].map(|name| state.join(name));
    for dir in [&jobs, &sockets] {
        std::fs::create_dir_all(dir).map_err(io(format!("{} cannot be made", dir.display())))?;
    }
    let sockets = sockets.canonicalize().map_err(io("the state directory"))?;
    if sockets.as_os_str().len() > LONGEST_SOCKET_DIR {
        return Err(WorkerError::Config(format!(
            "the state directory {} has too long a path for the sockets in it; choose a shorter one",
            state.display()
        )));
    }
    let jobs = jobs.canonicalize().map_err(io("the state directory"))?;
    let mut machine = discover::discover(&config.declared, config.nvml_library.as_deref());
    if let Some(threads) =
        config.declared.threads_per_core.filter(|threads| !machine.inventory.cpus.len().is_multiple_of(*threads as usize))
    {
        let cpus = machine.inventory.cpus.len();
        return Err(WorkerError::Config(format!("{cpus} CPUs are no whole number of cores of {threads} threads")));
    }
    discover::declare_shares(&mut machine.inventory, &config.declared.shares).map_err(WorkerError::Config)?;
    if let Some(program) = &config.hooks.reboot {
        machine.inventory.facts.insert("reboot_program".to_owned(), program.display().to_string());
    }
    let lease = jobs.with_file_name("lease");
    let boot_id = uuid::Uuid::new_v4().to_string();
    let (uploads, queue) = Uploads::new();
    let tools_dir = tools(&state)?;
    let shim = vec![tools_dir.with_file_name("shim").display().to_string()];
    let host: Arc<dyn Runtime> = match config.driver.as_str() {
        "sim" => Arc::new(Sim::default()),
        "process" => Arc::new(Process::open(&state.join("steps"), shim.clone()).map_err(io("the process driver"))?),
        other => return Err(WorkerError::Config(format!("there is no driver {other:?}; there are process and sim"))),
    };
    let container = match container_driver(&config, jobs.parent().unwrap_or(&jobs), &tools_dir, shim).await {
        Ok((driver, facts)) => {
            machine.inventory.facts.extend(facts.into_iter().map(|(name, value)| (name.to_owned(), value)));
            Some(driver)
        }
        // Steps of an earlier process may run in the engine: without it they could neither be found nor ended.
        Err(why) if config.containers.driver == "engine" => return Err(WorkerError::Config(format!("the container engine: {why}"))),
        Err(why) => {
            tracing::warn!(why, "jobs in containers cannot run on this node");
            machine.inventory.facts.insert("container_runtime".to_owned(), format!("none: {why}"));
            None
        }
    };
    let client = Client::new(config.servers.clone(), jobs.with_file_name("node-token"));
    if !client.has_token() && config.join_token.is_none() {
        return Err(WorkerError::Config(
            "a node needs a join token the first time; an operator makes one with `berth token --join`".to_owned(),
        ));
    }
    let shared = Arc::new(Shared {
        client,
        outbox: Arc::new(Outbox::new(boot_id.clone())),
        metrics: config.metrics.clone(),
        uploads,
        node: Node {
            name: config.node.to_string(),
            cgroup_parent: cgroup_parent(config.node.as_str(), &jobs),
            lease,
            tools_dir: Some(tools_dir),
            can_bind: machine.can_bind,
            run_as: config.run_as,
            pids_limit: config.pids_limit,
            gpus: machine.inventory.gpus.clone(),
            gpu_shares: machine.inventory.gpu_shares.clone(),
            device_nodes: machine.device_nodes.clone(),
        },
        hooks: config.hooks.clone(),
        jobs,
        sockets,
        host,
        container,
        settings: Mutex::new(WorkerSettings { heartbeat_seconds: 15, node_timeout_seconds: 60, kill_wait_seconds: 30 }),
    });
    let watched = machine.devices.clone().map(|source| (source, machine.inventory.clone()));
    let agent = Agent {
        shared: shared.clone(),
        config,
        machine,
        boot_id,
        attempts: BTreeMap::new(),
        finished: BTreeSet::new(),
        is_first: true,
        is_rebooting: false,
    };
    let uploading = {
        let shared = shared.clone();
        tokio::spawn(async move { output::upload(queue, &shared.client).await })
    };
    let checking = tokio::spawn(check_health(shared.clone()));
    if let Some((source, inventory)) = watched {
        watch_devices(source, inventory, shared.clone(), stopping.clone());
    }
    let sending = shared.outbox.clone();
    let result = tokio::select! {
        result = agent.poll(stopping.clone()) => result,
        result = sending.send(&shared.client, stopping.clone()) => match result {
            Err(_) => Err(WorkerError::Superseded(shared.node.name.clone())),
            Ok(()) => {
                stopped(&mut stopping).await;
                Ok(())
            }
        },
    };
    uploading.abort();
    checking.abort();
    result
}

/// What runs jobs with an image, and what is to be told of it. `Err` says in words why they cannot run here.
async fn container_driver(
    config: &WorkerConfig,
    state: &Path,
    tools: &Path,
    shim: Vec<String>,
) -> Result<(Arc<dyn Runtime>, Vec<(&'static str, String)>), String> {
    let (state, init) = (state.to_owned(), tools.join("srun"));
    let containers = config.containers.clone();
    let (cdi_dirs, mounts, logins) = (containers.cdi_dirs, containers.mounts, Logins::open(containers.registry_auth));
    if containers.driver == "engine" {
        let shim = config.engine_shim.clone();
        let driver = Engine::open(EngineConfig { state, shim, init, socket: containers.engine_socket, logins, cdi_dirs, mounts }).await?;
        let facts = vec![("container_runtime", driver.describe()), ("gpu_injection", driver.gpu_injection().to_owned())];
        return Ok((Arc::new(driver), facts));
    }
    let (insecure_registries, runtime) = (containers.insecure_registries, containers.runtime);
    let driver = Oci::open(OciConfig { state, shim, init, insecure_registries, logins, cdi_dirs, mounts, runtime })?;
    let facts = vec![("container_runtime", driver.runtime().display().to_string())];
    Ok((Arc::new(driver), facts))
}

/// Cgroups are the whole machine's: two workers of the same name, of two services, must not meet in them.
fn cgroup_parent(node: &str, state: &Path) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    format!("berth/{node}-{:08x}", hasher.finish() as u32)
}

/// The program that goes inside jobs, see `worker/helper`.
static HELPER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/berth-helper"));

/// The folder that is put on jobs' PATH, with `srun` and `scontrol` in it; beside it lies `shim`, the same file.
fn tools(state: &Path) -> Result<PathBuf, WorkerError> {
    let dir = state.join("tools");
    let place = || -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(&dir)?;
        let dir = dir.canonicalize()?;
        let draft = dir.join("srun.new");
        std::fs::write(&draft, HELPER)?;
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755))?;
        // Renamed over what is there: a shim that runs keeps its own file.
        let shim = dir.with_file_name("shim.new");
        let _ = std::fs::remove_file(&shim);
        std::fs::hard_link(&draft, &shim)?;
        std::fs::rename(shim, dir.with_file_name("shim"))?;
        // Programs are told apart by the name they are called by.
        let scontrol = dir.join("scontrol.new");
        let _ = std::fs::remove_file(&scontrol);
        std::fs::hard_link(&draft, &scontrol)?;
        std::fs::rename(scontrol, dir.join("scontrol"))?;
        std::fs::rename(draft, dir.join("srun"))?;
        Ok(dir)
    };
    place().map_err(io(format!("{} cannot be made", dir.display())))
}

/// A request for the desired state, under way.
type Poll = std::pin::Pin<Box<dyn Future<Output = Result<Option<DesiredState>, CallError>> + Send>>;

type AttemptId = (JobId, u32);

struct Agent {
    shared: Arc<Shared>,
    config: WorkerConfig,
    machine: Machine,
    boot_id: String,
    attempts: BTreeMap<AttemptId, Known>,
    /// Reported as finished, and perhaps still listed.
    finished: BTreeSet<AttemptId>,
    is_first: bool,
    is_rebooting: bool,
}

struct Known {
    wish: watch::Sender<Wish>,
    task: tokio::task::JoinHandle<()>,
}

impl Agent {
    async fn poll(mut self, mut stopping: watch::Receiver<bool>) -> Result<(), WorkerError> {
        let mut cursor: Option<String> = None;
        let mut pause = Duration::from_millis(50);
        let mut is_registered = false;
        let mut renewed = since_boot();
        let mut fence = tokio::time::interval(Duration::from_millis(200));
        fence.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut call: Option<Poll> = None;
        loop {
            if call.is_none() {
                let shared = self.shared.clone();
                let register = (!is_registered).then(|| (self.registration(), self.config.join_token.clone()));
                let renew = since_boot().saturating_sub(renewed) > RENEW_AFTER;
                let (at, wait) = (cursor.clone(), self.wait_seconds());
                call = Some(Box::pin(async move {
                    if let Some((body, join_token)) = register {
                        Agent::register(&shared, &body, join_token.as_deref()).await?;
                    } else if renew {
                        shared.client.renew_token().await?;
                    }
                    shared.client.assignments(at.as_deref(), wait).await
                }));
            }
            tokio::select! {
                answer = async { call.as_mut().expect("made above").await } => {
                    call = None;
                    match answer {
                        Ok(state) => {
                            if !is_registered || since_boot().saturating_sub(renewed) > RENEW_AFTER {
                                renewed = since_boot();
                            }
                            is_registered = true;
                            pause = Duration::from_millis(50);
                            if let Some(state) = state {
                                cursor = Some(state.cursor.clone());
                                *self.shared.settings.lock().expect("no panic while the lock is held") = state.settings;
                                self.reconcile(state).await;
                            }
                            self.hold_lease();
                        }
                        Err(CallError::Refused { status: 403 | 422 | 400, code, detail }) => return Err(WorkerError::Refused(format!("{code}: {detail}"))),
                        Err(error) => {
                            if error.is_unauthorized() && !is_registered {
                                return Err(WorkerError::Refused(error.to_string()));
                            }
                            // The service does not know us any more (or our token has run out): register again.
                            if matches!(error, CallError::Refused { .. }) {
                                is_registered = false;
                                cursor = None;
                            }
                            tracing::warn!(%error, "no word from the service");
                            tokio::time::sleep(pause).await;
                            pause = (pause * 2).min(Duration::from_secs(2));
                        }
                    }
                }
                _ = fence.tick() => {
                    self.shared.metrics.set_contact_age(since_boot().saturating_sub(self.shared.client.last_contact()));
                    if self.is_cut_off() {
                        self.cut_off();
                        is_registered = false;
                        cursor = None;
                    }
                }
                () = stopped(&mut stopping) => return Ok(()),
            }
            self.attempts.retain(|id, known| {
                let is_over = known.task.is_finished();
                if is_over {
                    self.finished.insert(*id);
                }
                !is_over
            });
        }
    }

    fn wait_seconds(&self) -> u64 {
        self.config.poll_wait_seconds.min(self.shared.settings().heartbeat_seconds).max(1)
    }

    fn registration(&self) -> Register {
        Register {
            node: self.config.node.clone(),
            boot_id: self.boot_id.clone(),
            machine_boot: std::fs::read_to_string(&self.config.machine_boot).unwrap_or_default().trim().to_owned(),
            inventory: self.machine.inventory.clone(),
            features: self.config.features.clone(),
            address: self.config.address.clone(),
            drivers: self.shared.runtimes().map(|r| r.name().to_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: jiff::Timestamp::now(),
        }
    }

    /// With the node's own token first, with the join token if that is not taken.
    async fn register(shared: &Shared, body: &Register, join_token: Option<&str>) -> Result<(), CallError> {
        let by_own = if shared.client.has_token() { Some(shared.client.register(body, None).await) } else { None };
        let registered = match (by_own, join_token) {
            (Some(Ok(registered)), _) => registered,
            (Some(Err(error)), Some(_)) if !error.is_unauthorized() => return Err(error),
            (_, Some(token)) => shared.client.register(body, Some(token)).await?,
            (Some(Err(error)), None) => return Err(error),
            (None, None) => {
                return Err(CallError::Refused { status: 401, code: "unauthorized".into(), detail: "there is no join token".into() });
            }
        };
        *shared.settings.lock().expect("no panic while the lock is held") = registered.settings;
        tracing::info!(node = %body.node, cpus = body.inventory.cpus.len(), gpus = body.inventory.gpus.len(), "registered");
        Ok(())
    }

    /// Makes the actors those of the list.
    async fn reconcile(&mut self, state: DesiredState) {
        if state.reboot && !std::mem::replace(&mut self.is_rebooting, true) {
            self.reboot();
        }
        let listed: BTreeSet<AttemptId> = state.assignments.iter().map(|a| (a.job_id, a.attempt)).collect();
        if std::mem::take(&mut self.is_first) {
            self.clear_strangers(&listed, &state.assignments).await;
        }
        self.finished.retain(|id| listed.contains(id));
        for (id, known) in &self.attempts {
            if !listed.contains(id) {
                known.wish.send_replace(Wish::Gone);
            }
        }
        for assignment in state.assignments {
            let id = (assignment.job_id, assignment.attempt);
            if self.finished.contains(&id) {
                continue;
            }
            let assignment = Arc::new(assignment);
            match self.attempts.get(&id) {
                Some(known) => known.wish.send_if_modified(|wish| {
                    // One that was cut off stays so: its steps are being killed, and its end will be told.
                    let is_open = matches!(wish, Wish::Assigned(_));
                    if is_open {
                        *wish = Wish::Assigned(assignment);
                    }
                    is_open
                }),
                None => {
                    let (wish, seen) = watch::channel(Wish::Assigned(assignment.clone()));
                    let actor = Attempt::new(self.shared.clone(), &assignment, seen);
                    self.attempts.insert(id, Known { wish, task: tokio::spawn(actor.run()) });
                    true
                }
            };
        }
    }

    /// After a start: steps and folders that an earlier process left and that are not wanted any more.
    async fn clear_strangers(&self, listed: &BTreeSet<AttemptId>, assignments: &[Assignment]) {
        let wanted: BTreeSet<StepKey> = assignments.iter().flat_map(|a| a.steps.iter().map(|s| crate::launch::key(a, s.step))).collect();
        for runtime in self.shared.runtimes() {
            for found in runtime.list().await.unwrap_or_default() {
                if !wanted.contains(&found.key) {
                    tracing::info!(step = ?found.key, "a step that is not wanted any more is removed");
                    if let Err(error) = runtime.delete(&found.key).await {
                        tracing::warn!(%error, "it could not be removed");
                    }
                }
            }
        }
        let keep: BTreeSet<PathBuf> = listed.iter().map(|(job, attempt)| attempt_dir(&self.shared, *job, *attempt)).collect();
        for entry in std::fs::read_dir(&self.shared.jobs).into_iter().flatten().flatten() {
            if !keep.contains(&entry.path()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Has the operator's program reboot the machine; this process is then ended with it.
    fn reboot(&self) {
        let Some(program) = self.shared.hooks.reboot.clone() else { return };
        let node = self.shared.node.name.clone();
        tracing::info!("the machine is to reboot");
        tokio::spawn(async move {
            if let Err(why) = crate::hooks::run(&program, &BTreeMap::from([("BERTH_NODE".to_owned(), node)])).await {
                tracing::error!(why, "the machine could not be rebooted");
            }
        });
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.shared.settings().node_timeout_seconds)
    }

    /// The shims' lease, for the case that this process dies.
    fn hold_lease(&self) {
        if let Err(error) = fence::renew(&self.shared.node.lease, self.shared.client.last_contact() + self.timeout()) {
            tracing::error!(%error, "the lease cannot be written: steps will be ended when it runs out");
        }
    }

    fn is_cut_off(&self) -> bool {
        !self.attempts.is_empty() && since_boot() > self.shared.client.last_contact() + self.timeout()
    }

    /// Ends all: by now the service may be giving these jobs to other nodes.
    fn cut_off(&self) {
        for (id, known) in &self.attempts {
            known.wish.send_if_modified(|wish| {
                let Wish::Assigned(assignment) = wish else { return false };
                tracing::error!(job = %id.0, attempt = id.1, "cut off from the service: its steps are ended");
                *wish = Wish::CutOff(assignment.clone());
                true
            });
        }
    }
}

/// Tells of GPUs that fall ill. NVML's wait blocks, so it has a thread of its own, which looks up now and then to see whether it is to
/// end.
fn watch_devices(source: Arc<dyn DeviceSource>, inventory: Inventory, shared: Arc<Shared>, stopping: watch::Receiver<bool>) {
    std::thread::spawn(move || {
        while !*stopping.borrow() {
            let Some(event) = source.wait_event(Duration::from_secs(1)) else { continue };
            tracing::warn!(gpu = event.index, code = event.code, detail = event.detail, is_fatal = event.is_fatal, "GPU event");
            if let Ok(mut gpus) = source.discover() {
                mark_surplus_kinds(&mut gpus);
                shared.outbox.push(Fact::InventoryChanged { inventory: Inventory { gpus, ..inventory.clone() } });
            }
            if event.is_fatal {
                let reason = format!("GPU {}: {}: {}", event.index, event.code, event.detail);
                shared.outbox.push(Fact::Unhealthy { reason });
            }
        }
    });
}

/// A node's token lives an hour.
const RENEW_AFTER: Duration = Duration::from_secs(1500);

/// The operator's health check, now and then.
async fn check_health(shared: Arc<Shared>) {
    let Some(check) = shared.hooks.health_check.clone() else { return };
    let mut sick: Option<String> = None;
    loop {
        let found = hooks::run(&check, &BTreeMap::from([("SLURMD_NODENAME".to_owned(), shared.node.name.clone())])).await.err();
        if found != sick {
            shared.outbox.push(match &found {
                Some(reason) => Fact::Unhealthy { reason: reason.clone() },
                None => Fact::Healthy,
            });
            sick = found;
        }
        tokio::time::sleep(shared.hooks.health_interval.max(Duration::from_secs(1))).await;
    }
}
