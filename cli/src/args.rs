//! The command line. Help texts are for someone who has never seen Berth.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::service::worker::WorkerArgs;
use crate::user::args::{ClientArgs, UserCommand};

/// A batch service for GPU clusters: Slurm's scheduling policy behind an HTTP API.
#[derive(Parser)]
#[command(name = "berth", version, max_term_width = 120, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Begin with `berth up` in one terminal and `berth run hostname` in another.\n\
    Settings: a flag wins over its environment variable, that over the configuration file (--config, $BERTH_CONFIG,\n\
    ~/.config/berth/config.toml or /etc/berth/config.toml), that over the default. BERTH_DATABASE_URL is database_url in the file.")]
pub struct Args {
    /// Configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(subcommand)]
    pub command: Command,
}

pub fn command() -> clap::Command {
    Args::command()
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a whole service on this machine: Postgres, API, scheduler and one worker.
    ///
    /// All it keeps is in the data directory; Ctrl-C stops it, and the next `berth up` finds everything again.
    Up(UpArgs),
    /// Serve the HTTP API. Any number of replicas may run.
    Api(ApiArgs),
    /// Run a scheduler. Several may run; one leads and the others stand by.
    Scheduler(SchedulerArgs),
    /// Run the node agent, which pulls this node's jobs from the API and runs them.
    Worker(WorkerArgs),
    /// Bring the database's schema up to date.
    Migrate(DatabaseArgs),
    /// Print the OpenAPI document.
    Openapi,
    /// Print a completion script for a shell: `berth completion bash > /etc/bash_completion.d/berth`.
    Completion { shell: Shell },
    /// Look after one step that a container engine runs (started by the worker).
    #[command(hide = true)]
    Shim { dir: PathBuf },
    #[command(flatten)]
    User(UserCommand),
}

#[derive(clap::Args, Clone)]
pub struct DatabaseArgs {
    /// Postgres 15 or newer: postgres://user:password@host/database.
    #[arg(long, env = "BERTH_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: String,
}

#[derive(clap::Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub power: PowerArgs,
    /// Where everything is kept [default: /var/lib/berth for root, else ~/.local/share/berth].
    #[arg(long, env = "BERTH_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address of the API.
    #[arg(long, env = "BERTH_LISTEN", default_value = "127.0.0.1:6780", value_name = "ADDRESS")]
    pub listen: std::net::SocketAddr,
    /// Leave the user's configuration file alone.
    #[arg(long)]
    pub no_client_config: bool,
    #[command(flatten)]
    pub node: crate::service::worker::NodeArgs,
}

#[derive(clap::Args)]
pub struct ApiArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Address to listen on.
    #[arg(long, env = "BERTH_LISTEN", default_value = "127.0.0.1:6780", value_name = "ADDRESS")]
    pub listen: std::net::SocketAddr,
    /// Where jobs' output is kept: file:///directory or s3://bucket/prefix. All replicas must share it.
    #[arg(long, env = "BERTH_LOGS", default_value = "file:///var/lib/berth/logs", value_name = "URL")]
    pub logs: String,
    /// JSON file with the token issuers to trust: [{"issuer", "audience", "keys": {"file" or "url": …}, "tenants": []}].
    #[arg(long, env = "BERTH_ISSUERS", value_name = "FILE")]
    pub issuers: Option<PathBuf>,
    /// Development issuer's key; tokens made with it by `berth token` are accepted. Not for production.
    #[arg(long, env = "BERTH_DEV_KEY", value_name = "FILE")]
    pub dev_key: Option<PathBuf>,
    /// Most connections to the database.
    #[arg(long, env = "BERTH_MAX_CONNECTIONS", default_value_t = 20)]
    pub max_connections: u32,
}

#[derive(clap::Args)]
pub struct SchedulerArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Name by which the leader is shown [default: host name and process id].
    #[arg(long, env = "BERTH_SCHEDULER_NAME")]
    pub name: Option<String>,
    /// Seconds that the lease lasts without renewal: how long a leader that is cut off is waited for.
    #[arg(long, env = "BERTH_LEASE_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=300))]
    pub lease_seconds: u64,
    /// Address for /metrics and /healthz [default: none].
    #[arg(long, env = "BERTH_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<std::net::SocketAddr>,
    #[command(flatten)]
    pub power: PowerArgs,
}

/// Who powers nodes up and down: Slurm's power saving, see docs/nodes.md.
#[derive(clap::Args, Clone)]
pub struct PowerArgs {
    /// Program that powers nodes up; called with a host list, n[1-4].
    #[arg(long, env = "BERTH_RESUME_PROGRAM", value_name = "FILE")]
    pub resume_program: Option<PathBuf>,
    /// Program that powers nodes down; called with a host list.
    #[arg(long, env = "BERTH_SUSPEND_PROGRAM", value_name = "FILE")]
    pub suspend_program: Option<PathBuf>,
    /// Program that is told of nodes that did not come up in time.
    #[arg(long, env = "BERTH_RESUME_FAIL_PROGRAM", value_name = "FILE")]
    pub resume_fail_program: Option<PathBuf>,
    /// URL that gets the same as JSON: {"action": "resume", "nodes": […], "jobs": […]}.
    #[arg(long, env = "BERTH_POWER_WEBHOOK", value_name = "URL")]
    pub power_webhook: Option<String>,
}

impl PowerArgs {
    pub fn hooks(self) -> berth_scheduler::power::PowerHooks {
        berth_scheduler::power::PowerHooks {
            resume_program: self.resume_program,
            suspend_program: self.suspend_program,
            resume_fail_program: self.resume_fail_program,
            webhook: self.power_webhook,
        }
    }
}
