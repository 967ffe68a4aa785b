//! Commands for people, and how to reach the service.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// How to reach the service.
#[derive(clap::Args)]
pub struct ClientArgs {
    /// Base URL of the API; several, separated by commas, are tried in turn.
    #[arg(
        long,
        global = true,
        env = "BERTH_SERVER",
        default_value = "http://127.0.0.1:6780",
        value_delimiter = ',',
        value_name = "URL",
        help_heading = "Service"
    )]
    pub server: Vec<String>,
    /// Access token.
    #[arg(long, global = true, env = "BERTH_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = "Service")]
    pub token: Option<String>,
    /// File that holds the access token.
    #[arg(long, global = true, env = "BERTH_TOKEN_FILE", value_name = "FILE", help_heading = "Service")]
    pub token_file: Option<PathBuf>,
    /// How to print.
    #[arg(
        short = 'o',
        long = "format",
        global = true,
        env = "BERTH_FORMAT",
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Service"
    )]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    /// A table with more columns, as wide as it needs.
    Wide,
    Json,
    Yaml,
}

#[derive(Subcommand)]
pub enum UserCommand {
    /// Submit a batch script (or a job as JSON). Takes sbatch's options.
    ///
    /// berth submit [sbatch options] [--wait] SCRIPT [ARGS…]; `-`, or nothing, reads the script from standard input, --wrap='command' makes one.
    /// Options win over the script's #SBATCH lines. `berth submit --help` lists the options.
    #[command(disable_help_flag = true)]
    Submit {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS SCRIPT ARGS")]
        line: Vec<String>,
    },
    /// Run a command as a job, show its output and end as it ended. Takes sbatch's options.
    ///
    /// berth run [sbatch options] COMMAND [ARGS…]. Ctrl-C cancels the job.
    #[command(disable_help_flag = true)]
    Run {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS COMMAND ARGS")]
        line: Vec<String>,
    },
    /// List jobs: those that wait or run, or with --all those that ended too.
    #[command(visible_alias = "jobs")]
    Queue(QueueArgs),
    /// Show a job, or a node, in full.
    Show {
        /// A job's number (1234, or 1234_7 for a task of an array), or a node's name; -o yaml has all there is.
        what: String,
    },
    /// Tell why a job waits and when it will start; of one that has started, why then and there.
    #[command(visible_alias = "why")]
    Explain {
        job: String,
        /// Leave out what would make it start sooner: finding that takes up to some seconds in a long queue.
        #[arg(long)]
        brief: bool,
    },
    /// Change waiting jobs, or the little that can change of running ones. Takes sbatch's options.
    ///
    /// berth update JOB[,JOB…] [sbatch options]: `berth update 12 --time=30 --partition=debug`. An empty value takes an option back:
    /// --dependency= . --array-throttle=N lets N tasks of an array run at once, 0 as many as there are. Of a running job only its name,
    /// comment, nice, requeue and (downwards) its time limit and nodes change: --nodes=2 or --nodelist=n1,n3 keeps so many of them, or these.
    Update {
        /// Jobs' numbers, separated by commas.
        jobs: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        line: Vec<String>,
    },
    /// Make a past plan again from the record of decisions, and compare. For administrators.
    Replay(ReplayArgs),
    /// Cancel jobs: those named, or all that wait or run and match the filters.
    Cancel(CancelArgs),
    /// Hold pending jobs: they do not start until released.
    Hold {
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Release held jobs.
    Release {
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Stop running jobs and put them back into the queue.
    Requeue {
        #[arg(required = true)]
        jobs: Vec<String>,
        /// Held, until released.
        #[arg(long)]
        hold: bool,
    },
    /// Suspend running jobs: they stand still and give their CPUs to others, until resumed. For administrators.
    Suspend {
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Say that running jobs have saved their work: what they did before is not lost if they are preempted.
    ///
    /// Inside a job, `scontrol checkpoint` says it of the job itself.
    Checkpoint {
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Print a job's output.
    Logs(LogsArgs),
    /// List nodes with what they have and what is in use; or declare nodes that do not exist yet.
    Nodes {
        #[command(subcommand)]
        command: Option<NodesCommand>,
    },
    /// Take a node out of service: what runs there ends in its own time, nothing new starts.
    Drain {
        node: String,
        /// Shown to users whose jobs wait for the node.
        #[arg(short, long)]
        reason: String,
    },
    /// Put nodes that are drained or down back into service; or, given job numbers, let suspended jobs go on.
    Resume {
        /// Nodes or jobs: a number is a job.
        #[arg(required = true)]
        what: Vec<String>,
    },
    /// Set a node down: what runs there is ended, and requeued where its job allows.
    Down {
        node: String,
        /// Shown to users whose jobs wait for the node.
        #[arg(short, long)]
        reason: String,
    },
    /// Power nodes up, or down once nothing runs there.
    Power {
        direction: Direction,
        /// Nodes, as host lists: n[1-4].
        #[arg(required = true)]
        nodes: Vec<String>,
    },
    /// Reboot nodes once nothing runs there.
    Reboot {
        /// Nodes, as host lists: n[1-4].
        #[arg(required = true)]
        nodes: Vec<String>,
        #[arg(short, long)]
        reason: String,
        /// Let nothing new start there until then.
        #[arg(long)]
        asap: bool,
        /// Leave them down afterwards.
        #[arg(long)]
        stays_down: bool,
    },
    /// How busy the cluster is: nodes, CPUs, GPUs, jobs.
    Top {
        /// Again every so many seconds, until Ctrl-C.
        #[arg(short, long, num_args = 0..=1, default_missing_value = "2", value_name = "SECONDS")]
        watch: Option<u64>,
    },
    /// Replay a workload trace on the scheduler, under one policy or several, and compare waits, slowdowns and use.
    ///
    /// A trace needs no service. With --history the service replays what it recorded (platform admins), and the first row is what was.
    ///
    /// The table's columns: mean and 95th percentile wait, mean and median bounded slowdown, use between the first and the last
    /// submission, mean wait of the largest hundredth of the jobs, the worst user's mean slowdown over that of all users, and jobs that
    /// no cluster of this size can run.
    Simulate(SimulateArgs),
    /// Show the tree of shares: what each account and user was given, has used, and has for a fair-share factor.
    Share(ShareArgs),
    /// Show why waiting jobs have the priorities they have, factor by factor.
    Prio(PrioArgs),
    /// Show accounts and their users, or set their shares and limits.
    Accounts(AccountsArgs),
    /// Show tenants, or set their shares and limits (administrators of the platform).
    Tenants(TenantsArgs),
    /// Show QOS, or set their priorities and limits.
    Qos {
        #[command(subcommand)]
        command: Option<NamedCommand>,
    },
    /// Show partitions, or set their limits, QOS and billing weights.
    Partitions {
        #[command(subcommand)]
        command: Option<NamedCommand>,
    },
    /// Show reservations, or make, change and delete them (administrators of the platform).
    #[command(visible_alias = "reservation")]
    Reservations {
        #[command(subcommand)]
        command: Option<ReservationCommand>,
    },
    /// Show licences and their use, or say how many there are (administrators of the platform).
    #[command(visible_alias = "license")]
    Licenses {
        #[command(subcommand)]
        command: Option<LicenseCommand>,
    },
    /// Show the cluster's weights and rules, or set them.
    Policy {
        #[command(subcommand)]
        command: Option<PolicyCommand>,
    },
    /// Make a token: for a new node with --join, or of the development issuer with --dev-key.
    Token(TokenArgs),
    /// Tell who the token says you are.
    Whoami,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    Up,
    Down,
}

#[derive(Subcommand)]
pub enum NodesCommand {
    /// Declare nodes that do not exist yet: they are powered up when jobs need them.
    ///
    /// berth nodes create n[1-8] --cpus=32 --memory=256GiB --gpus=h100:8
    Create {
        /// Nodes, as host lists: n[1-8].
        #[arg(required = true)]
        nodes: Vec<String>,
        #[arg(long)]
        cpus: u32,
        /// Threads of each core: jobs get whole cores.
        #[arg(long, default_value_t = 1)]
        threads_per_core: u32,
        #[arg(long, value_name = "SIZE")]
        memory: berth_model::Bytes,
        /// type:count, several separated by commas.
        #[arg(long, value_delimiter = ',', value_name = "TYPE:COUNT")]
        gpus: Vec<String>,
        /// How GPUs may be shared: shard:64 or mps:800 over all of them.
        #[arg(long, value_delimiter = ',', value_name = "KIND:COUNT")]
        gres: Vec<String>,
        #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
        features: Vec<String>,
        /// Lower is filled first.
        #[arg(long, default_value_t = 1)]
        weight: u32,
    },
    /// Set weight and features of nodes: berth nodes set n[1-8] --weight=5 --features=ib,rack1.
    Set {
        #[arg(required = true)]
        nodes: Vec<String>,
        /// Lower is filled first.
        #[arg(long, required_unless_present = "features")]
        weight: Option<u32>,
        /// All that they have from now on; "" for none.
        #[arg(long, value_name = "NAME,…")]
        features: Option<String>,
    },
    /// Forget nodes that run nothing.
    Delete {
        #[arg(required = true)]
        nodes: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct ReplayArgs {
    /// The last plan at this time (2026-12-01T09:30:00Z); now if neither is given.
    #[arg(long, conflicts_with = "job")]
    pub at: Option<jiff::Timestamp>,
    /// The plan that last started this job.
    #[arg(long)]
    pub job: Option<String>,
    /// Read the record from this file, as the service gave it, instead of asking for it.
    #[arg(long, value_name = "FILE")]
    pub record: Option<std::path::PathBuf>,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("filter").multiple(true))]
pub struct CancelArgs {
    /// Jobs' numbers: 1234, tasks of arrays 1234_7, ranges of them 1234_[5-6,9].
    #[arg(required_unless_present = "filter")]
    pub jobs: Vec<String>,
    /// Only jobs of this user; several filters must all match.
    #[arg(short, long, group = "filter", value_delimiter = ',')]
    pub user: Vec<String>,
    /// Only your own.
    #[arg(long, group = "filter")]
    pub me: bool,
    /// Only jobs of this name, with * and ?.
    #[arg(short, long, group = "filter", value_delimiter = ',')]
    pub name: Vec<String>,
    /// Only jobs in this state: pending, running, …
    #[arg(short = 't', long = "state", group = "filter", value_delimiter = ',')]
    pub states: Vec<String>,
    #[arg(short, long, group = "filter", value_delimiter = ',')]
    pub partition: Vec<String>,
    #[arg(short = 'A', long, group = "filter", value_delimiter = ',')]
    pub account: Vec<String>,
    /// Send this signal to the jobs' steps and cancel nothing.
    #[arg(short, long)]
    pub signal: Option<String>,
    /// With --signal: to the batch shell too.
    #[arg(long, requires = "signal")]
    pub full: bool,
    /// Seconds between SIGTERM and SIGKILL.
    #[arg(long)]
    pub grace: Option<u64>,
}

#[derive(clap::Args)]
pub struct QueueArgs {
    /// Jobs that ended too, the newest first.
    #[arg(short, long)]
    pub all: bool,
    /// Only jobs in these states: pending, held, running, failed, …
    #[arg(short = 't', long = "state", value_delimiter = ',')]
    pub states: Vec<String>,
    #[arg(short, long, value_delimiter = ',')]
    pub user: Vec<String>,
    #[arg(short = 'A', long, value_delimiter = ',')]
    pub account: Vec<String>,
    #[arg(short, long, value_delimiter = ',')]
    pub partition: Vec<String>,
    /// Name, with * and ?.
    #[arg(short, long)]
    pub name: Option<String>,
    /// Only jobs on this node.
    #[arg(short = 'w', long)]
    pub node: Option<String>,
    /// For administrators of the platform: another tenant, or `all`.
    #[arg(long)]
    pub tenant: Option<String>,
    /// Most jobs to list.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

#[derive(clap::Args)]
pub struct LogsArgs {
    pub job: String,
    /// Follow it until the job ends; the exit code is then the job's.
    #[arg(short, long)]
    pub follow: bool,
    /// A step's number; the batch script if absent.
    #[arg(long)]
    pub step: Option<String>,
    /// Rank of the task.
    #[arg(long, conflicts_with = "follow")]
    pub task: Option<u32>,
    /// Standard error in place of standard output.
    #[arg(long, conflicts_with = "follow")]
    pub stderr: bool,
    /// An earlier attempt.
    #[arg(long, conflicts_with = "follow")]
    pub attempt: Option<u32>,
    /// Only the last bytes.
    #[arg(long, value_name = "BYTES", conflicts_with = "follow")]
    pub tail: Option<u64>,
}

#[derive(clap::Args)]
pub struct SimulateArgs {
    /// CSV, or the Standard Workload Format if it is called .swf; either may end in .gz.
    #[arg(required_unless_present = "history")]
    pub trace: Option<PathBuf>,
    /// Replay the jobs that the service recorded: 2026-11-01..2026-12-01, or with times: 2026-11-01T08:00:00Z..2026-11-02T08:00:00Z.
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["trace", "cluster", "nodes", "placement"])]
    pub history: Option<String>,
    /// YAML or JSON file of the cluster: [{"count": 66, "cpus": 64, "gpus": 8, "mem_mb": 524288}], or an object of such lists by name.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "cpus", "gpus"])]
    pub cluster: Option<PathBuf>,
    /// Which cluster of the file [default: the one called as the trace].
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub cluster_name: Option<String>,
    /// So many equal nodes, whose memory is not counted.
    #[arg(long)]
    pub nodes: Option<u32>,
    /// CPUs of each.
    #[arg(long, default_value_t = 1)]
    pub cpus: u32,
    /// GPUs of each.
    #[arg(long, default_value_t = 0)]
    pub gpus: u32,
    /// Whether jobs need their nodes, or only so many GPUs (without any, CPUs) of all there are.
    #[arg(long, default_value = "node")]
    pub placement: PlacementChoice,
    /// A policy: easy, easy-sjbf, easy-sjbf-predicted, conservative, urgency, or NAME=FILE of your own (TOML; with --history YAML or
    /// JSON, a whole policy as the service has it). Repeat it to compare.
    #[arg(long = "policy", value_name = "POLICY", default_values = ["easy", "urgency"])]
    pub policies: Vec<String>,
    /// Draw how jobs fared under each policy into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// What is drawn.
    #[arg(long, default_value = "slowdown", requires = "plot")]
    pub plot_of: PlotChoice,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PlacementChoice {
    Pool,
    Node,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PlotChoice {
    Wait,
    Slowdown,
}

#[derive(clap::Args)]
pub struct TokenArgs {
    /// Make a join token for new nodes.
    #[arg(long)]
    pub join: bool,
    /// With --join: names it lets in, with *.
    #[arg(long, default_value = "*", value_name = "PATTERN")]
    pub nodes: String,
    /// With --join: how many nodes it lets in.
    #[arg(long, default_value_t = 1)]
    pub uses: u32,
    /// Key file of the development issuer; `berth up` keeps it as dev-key in its data directory.
    #[arg(long, env = "BERTH_DEV_KEY", value_name = "FILE")]
    pub dev_key: Option<PathBuf>,
    /// Whom the token is for.
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
    #[arg(long, default_value = "dev")]
    pub tenant: String,
    /// platform_admin, tenant_admin, account_manager, user or viewer.
    #[arg(long = "role", value_delimiter = ',', default_value = "user")]
    pub roles: Vec<String>,
    /// How long it is valid: 12h, 30d [default: 12h; with --join 1h].
    #[arg(long, value_name = "TIME")]
    pub valid: Option<String>,
}

#[derive(clap::Args)]
pub struct ShareArgs {
    #[arg(short = 'A', long)]
    pub account: Option<String>,
    #[arg(short, long)]
    pub user: Option<String>,
    /// For administrators of the platform: another tenant, or `all`.
    #[arg(long)]
    pub tenant: Option<String>,
}

#[derive(clap::Args)]
pub struct PrioArgs {
    /// Only these jobs.
    pub jobs: Vec<String>,
    #[arg(short = 'A', long)]
    pub account: Option<String>,
    #[arg(short, long)]
    pub user: Option<String>,
    #[arg(short, long)]
    pub partition: Option<String>,
    /// For administrators of the platform: another tenant, or `all`.
    #[arg(long)]
    pub tenant: Option<String>,
    /// Factors from 0 to 1, without their weights.
    #[arg(short = 'n', long)]
    pub norm: bool,
    /// Most jobs to list.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

#[derive(clap::Args)]
pub struct AccountsArgs {
    /// For administrators of the platform: whose accounts.
    #[arg(long, global = true)]
    pub tenant: Option<String>,
    #[command(subcommand)]
    pub command: Option<AccountCommand>,
}

#[derive(Subcommand)]
pub enum AccountCommand {
    /// Set what an account, or a user of it, is given; what is not there yet is made.
    ///
    /// berth accounts set ml Parent=research Fairshare=20 GrpTRES=gres/gpu=8,cpu=100 GrpJobs=10;
    /// berth accounts set ml --user ann MaxJobs=4 Fairshare=parent. Names are sacctmgr's; -1 takes a limit away.
    Set {
        account: String,
        /// This user's place in the account.
        #[arg(short, long)]
        user: Option<String>,
        #[arg(value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
    /// Delete an account that was never used, or take from a user the right to use it.
    Delete {
        account: String,
        #[arg(short, long)]
        user: Option<String>,
    },
}

#[derive(clap::Args)]
pub struct TenantsArgs {
    #[command(subcommand)]
    pub command: Option<TenantCommand>,
}

#[derive(Subcommand)]
pub enum TenantCommand {
    /// Set what a tenant is given: berth tenants set acme Fairshare=40 GrpTRES=gres/gpu=256.
    Set {
        tenant: String,
        #[arg(value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
}

#[derive(Subcommand)]
pub enum NamedCommand {
    /// Set fields; what is not there yet is made. Names are Slurm's or Berth's own; -1 takes a limit away.
    ///
    /// berth qos set high Priority=100 MaxTRESPerUser=gres/gpu=4 Flags=DenyOnLimit;
    /// berth partitions set gpu QOS=gpu TRESBillingWeights=cpu=1,mem=0.25G,gres/gpu=16.
    Set {
        name: String,
        #[arg(value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
    /// Delete one that no live job uses.
    Delete { name: String },
}

#[derive(Subcommand)]
pub enum ReservationCommand {
    /// List those that concern you.
    List,
    /// Show one in full.
    Show { name: String },
    /// Make one; its nodes are chosen now.
    ///
    /// berth reservations create maint StartTime=22:00 Duration=4:00:00 Nodes=ALL Flags=MAINT,IGNORE_JOBS;
    /// berth reservations create demo StartTime=now+1hour Duration=120 NodeCnt=2 Users=acme/ann. Names are scontrol's.
    Create {
        name: String,
        #[arg(value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
    /// Change one; nothing after = takes a setting back.
    Update {
        name: String,
        #[arg(required = true, value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
    /// Delete one in which no job runs. Jobs that wait for it are held.
    Delete { name: String },
}

#[derive(Subcommand)]
pub enum LicenseCommand {
    /// Say how many there are: berth licenses set matlab Total=4 Description="floating, until 2027".
    ///
    /// Fewer than are in use stops no job: it only lets nothing more start with it.
    Set {
        name: String,
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Delete one that no live job asks for.
    Delete { name: String },
}

#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Set weights and rules: berth policy set PriorityWeightFairshare=10000 PriorityDecayHalfLife=14-0.
    Set {
        #[arg(required = true, value_name = "KEY=VALUE", allow_hyphen_values = true)]
        settings: Vec<String>,
    },
}
