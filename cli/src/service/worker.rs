//! `berth worker`, and the settings of a node that it shares with `berth up`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use berth_model::gres::DeclaredShares;
use berth_model::resources::Gpus;
use berth_model::{Bytes, NodeName};
use berth_runtime::UserIds;
use berth_worker::{Containers, Declared, Hooks, WorkerConfig};

use super::{host_name, start_logging, stop_signal};

#[derive(clap::Args)]
pub struct WorkerArgs {
    /// Lets the node in the first time; an operator makes one with `berth token --join`.
    #[arg(long, env = "BERTH_JOIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub join_token: Option<String>,
    /// Journals, images and output on its way.
    #[arg(long, env = "BERTH_STATE_DIR", default_value = "/var/lib/berth/worker", value_name = "DIR")]
    pub state_dir: PathBuf,
    /// Address for /metrics and /healthz [default: none].
    #[arg(long, env = "BERTH_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<std::net::SocketAddr>,
    #[command(flatten)]
    pub node: NodeArgs,
}

/// What a node is and does.
#[derive(clap::Args, Clone)]
pub struct NodeArgs {
    /// The node's name [default: this machine's].
    #[arg(long, env = "BERTH_NODE")]
    pub node: Option<String>,
    /// Host name or address by which other nodes' tasks reach this one [default: the node's name].
    #[arg(long, env = "BERTH_NODE_ADDRESS", value_name = "ADDRESS")]
    pub node_address: Option<String>,
    /// Features that jobs may ask for with --constraint.
    #[arg(long, env = "BERTH_NODE_FEATURES", value_delimiter = ',', value_name = "NAME,…")]
    pub node_features: Vec<String>,
    /// CPUs to offer in place of those found.
    #[arg(long, env = "BERTH_NODE_CPUS", value_name = "COUNT")]
    pub node_cpus: Option<u32>,
    /// Threads of each core: jobs get whole cores. 1: CPUs one by one [default: as found].
    #[arg(long, env = "BERTH_NODE_THREADS_PER_CORE", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub node_threads_per_core: Option<u32>,
    /// Memory to offer in place of what was found: 64GiB.
    #[arg(long, env = "BERTH_NODE_MEMORY", value_name = "SIZE")]
    pub node_memory: Option<Bytes>,
    /// GPUs to declare, for tests and for devices that cannot be discovered: h100:8.
    #[arg(long, env = "BERTH_NODE_GPUS", value_name = "TYPE:COUNT")]
    pub node_gpus: Option<Gpus>,
    /// Let jobs share GPUs: shard:64 or mps:800 over all of them, or mps:1300+1200 each by itself.
    #[arg(long, env = "BERTH_NODE_GRES", value_delimiter = ',', value_name = "KIND:COUNT,…")]
    pub node_gres: Vec<DeclaredShares>,
    /// NVIDIA's management library, if it is not where the loader finds it.
    #[arg(long, env = "BERTH_NVML_LIBRARY", value_name = "FILE")]
    pub nvml_library: Option<PathBuf>,
    /// What runs jobs without a container image: process, or sim (nothing runs; for tests of scale).
    #[arg(long, env = "BERTH_DRIVER", default_value = "process", value_parser = ["process", "sim"])]
    pub driver: String,
    /// Who makes jobs' containers: oci (the worker itself, with crun or runc), or engine (Docker or podman, by the Docker Engine API).
    #[arg(long, env = "BERTH_CONTAINER_DRIVER", default_value = "oci", value_parser = ["oci", "engine"])]
    pub container_driver: String,
    /// The engine's Unix socket [default: /var/run/docker.sock, or else /run/podman/podman.sock].
    #[arg(long, env = "BERTH_ENGINE_SOCKET", value_name = "PATH")]
    pub engine_socket: Option<PathBuf>,
    /// What the driver oci runs containers with: crun, runc or a path [default: the first of them that works].
    #[arg(long, env = "BERTH_RUNTIME", value_name = "PROGRAM")]
    pub runtime: Option<String>,
    /// Registries without TLS, for the driver oci, beside those on loopback: registry.lan:5000.
    #[arg(long, env = "BERTH_INSECURE_REGISTRIES", value_delimiter = ',', value_name = "HOST,…")]
    pub insecure_registries: Vec<String>,
    /// Logins to registries, a file as docker login writes it; read at each pull [default: none].
    #[arg(long, env = "BERTH_REGISTRY_AUTH", value_name = "FILE")]
    pub registry_auth: Option<PathBuf>,
    /// Folders of CDI specs, which say how GPUs get into containers.
    #[arg(long, env = "BERTH_CDI_DIRS", value_delimiter = ',', default_value = "/etc/cdi,/var/run/cdi", value_name = "DIR,…")]
    pub cdi_dirs: Vec<String>,
    /// Folders of this node below which jobs may mount into their containers.
    #[arg(long, env = "BERTH_ALLOW_MOUNTS", value_delimiter = ',', value_name = "DIR,…")]
    pub allow_mounts: Vec<PathBuf>,
    /// Program that runs before an attempt's first step; another end than 0 drains the node.
    #[arg(long, env = "BERTH_PROLOG", value_name = "FILE")]
    pub prolog: Option<PathBuf>,
    /// Program that runs after an attempt's last step; another end than 0 drains the node.
    #[arg(long, env = "BERTH_EPILOG", value_name = "FILE")]
    pub epilog: Option<PathBuf>,
    /// Program that runs now and then; another end than 0 drains the node with the line it prints.
    #[arg(long, env = "BERTH_HEALTH_CHECK", value_name = "FILE")]
    pub health_check: Option<PathBuf>,
    /// Seconds between health checks.
    #[arg(long, env = "BERTH_HEALTH_INTERVAL_SECONDS", default_value_t = 60)]
    pub health_interval_seconds: u64,
    /// Program that reboots this machine when an operator asks for it [default: none, and the API refuses reboots].
    #[arg(long, env = "BERTH_REBOOT_PROGRAM", value_name = "FILE")]
    pub reboot_program: Option<PathBuf>,
    /// File that tells one boot of the machine from the next.
    #[arg(long, env = "BERTH_MACHINE_BOOT", default_value = "/proc/sys/kernel/random/boot_id", hide = true)]
    pub machine_boot: PathBuf,
    /// Numeric user and group that jobs run as, 1000:1000 [default: the worker's own].
    #[arg(long, env = "BERTH_RUN_AS", value_name = "UID:GID", value_parser = run_as)]
    pub run_as: Option<UserIds>,
    /// Processes and threads that a step may have.
    #[arg(long, env = "BERTH_PIDS_LIMIT", default_value_t = 16_384)]
    pub pids_limit: u64,
}

fn run_as(text: &str) -> Result<UserIds, String> {
    let parse = || {
        let (uid, gid) = text.split_once(':')?;
        Some(UserIds { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    };
    parse().ok_or_else(|| "write a numeric user and group; for example 1000:1000".to_owned())
}

impl NodeArgs {
    /// A worker's configuration.
    pub fn config(self, server: Vec<String>, join_token: Option<String>, state_dir: PathBuf) -> anyhow::Result<WorkerConfig> {
        let name = self.node.unwrap_or_else(|| host_name().split('.').next().unwrap_or("node").to_owned());
        let binary = std::env::current_exe().context("this program's own file")?;
        let node = NodeName::new(name).map_err(|f| anyhow::anyhow!("--node: {}; {}", f.detail, f.help))?;
        Ok(WorkerConfig {
            servers: server.into_iter().map(|s| s.trim_end_matches('/').to_owned()).collect(),
            address: self.node_address.unwrap_or_else(|| node.to_string()),
            node,
            join_token,
            state_dir,
            features: self.node_features.into_iter().filter(|f| !f.is_empty()).collect(),
            declared: Declared {
                cpus: self.node_cpus,
                memory: self.node_memory,
                threads_per_core: self.node_threads_per_core,
                gpus: self.node_gpus,
                shares: self.node_gres,
            },
            engine_shim: vec![binary.display().to_string(), "shim".to_owned()],
            driver: self.driver,
            nvml_library: self.nvml_library,
            containers: Containers {
                driver: self.container_driver,
                engine_socket: self.engine_socket,
                runtime: self.runtime,
                insecure_registries: self.insecure_registries,
                registry_auth: self.registry_auth,
                cdi_dirs: self.cdi_dirs,
                mounts: self.allow_mounts,
            },
            hooks: Hooks {
                prolog: self.prolog,
                epilog: self.epilog,
                health_check: self.health_check,
                health_interval: Duration::from_secs(self.health_interval_seconds),
                reboot: self.reboot_program,
            },
            run_as: self.run_as,
            poll_wait_seconds: 25,
            machine_boot: self.machine_boot,
            pids_limit: self.pids_limit,
            metrics: Default::default(),
        })
    }
}

/// `servers`: base URLs of the API.
pub async fn run(args: WorkerArgs, servers: Vec<String>) -> anyhow::Result<()> {
    start_logging("info");
    let stopping = stop_signal()?;
    let config = args.node.config(servers, args.join_token.filter(|t| !t.is_empty()), args.state_dir)?;
    if let Some(listen) = args.metrics_listen {
        let metrics = config.metrics.clone();
        super::metrics::serve(listen, move || metrics.render()).await?;
    }
    Ok(berth_worker::run(config, stopping).await?)
}
