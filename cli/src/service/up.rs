//! `berth up`: everything on one machine, for a first look, for development and for small sites.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use berth_api::ApiConfig;
use berth_api::auth::{AUDIENCE, DEV_ISSUER, ServiceKey, TokenRequest, mint};
use berth_api::resources::join_tokens;
use berth_model::state::Role;
use berth_postgres::Postgres;
use berth_scheduler::SchedulerConfig;
use berth_store::{Db, StoreError};

use super::{connect, dev_key, start_logging, stop_signal};
use crate::args::UpArgs;
use crate::settings;

/// The development tenant.
const TENANT: &str = "dev";
/// Life of the tokens that `berth up` writes, in seconds; each start writes new ones.
const TOKEN_SECONDS: u64 = 30 * 86_400;
/// First line of a configuration file that this command wrote and may write again.
const MARK: &str = "# Written by `berth up`; delete this line to keep your changes.";

pub async fn run(args: UpArgs) -> anyhow::Result<()> {
    // A pool that loses its database while everything stops is no news, and slow statements are for `BERTH_LOG` to show.
    start_logging("warn,sqlx_core=error,sqlx::query=error");
    let mut stopping = stop_signal()?;
    let data = data_dir(args.data_dir)?;
    let _lock = lock(&data)?;
    println!("Starting Postgres in {} …", data.join("postgres").display());
    let mut postgres = {
        let dir = data.join("postgres");
        tokio::task::spawn_blocking(move || Postgres::start(&dir, 0)).await?.context("Postgres could not be started")?
    };
    let db = connect(&postgres.url(), 40).await?;
    db.migrate().await.context("the schema could not be brought up to date")?;
    let key = dev_key(&data.join("dev-key"))?;
    let user = bootstrap(&db).await?;
    let logs = data.join("logs");
    let config =
        ApiConfig { listen: args.listen, logs: format!("file://{}", logs.display()), issuers: Vec::new(), dev_key: Some(key.clone()) };
    let server = berth_api::start(db.clone(), config).await.map_err(anyhow::Error::msg)?;
    let url = format!("http://{}", server.address);
    let scheduler_db = connect(&postgres.url(), 10).await?;
    let scheduling = SchedulerConfig { power: args.power.hooks(), ..SchedulerConfig::default() };
    let scheduler = tokio::spawn(berth_scheduler::run(scheduler_db, scheduling, stopping.clone()));

    let token_file = data.join("token");
    write_secret(&token_file, &token(&key, &user, &[Role::PlatformAdmin, Role::TenantAdmin, Role::User])?)?;
    let join = join_token(&db).await?;
    let config = args.node.config(vec![url.clone()], Some(join), data.join("worker"))?;
    let node = config.node.clone();
    // Safety: the call cannot fail and takes nothing.
    let runs_as_root = config.run_as.is_none() && config.driver == "process" && unsafe { libc::geteuid() } == 0;
    let config = berth_worker::WorkerConfig {
        address: if config.address == node.as_str() { "127.0.0.1".to_owned() } else { config.address },
        ..config
    };
    let mut worker = tokio::spawn(berth_worker::run(config, stopping.clone()));
    if !args.no_client_config {
        write_client_config(&url, &token_file)?;
    }
    wait_for_node(&db, node.as_str(), &mut worker).await?;
    if runs_as_root {
        eprintln!(
            "Jobs without an image run as root on this machine. --run-as USER makes them run as that user; do so before others submit."
        );
    }
    println!("{}", welcome(&url, node.as_str(), &user, &data, &token_file, args.no_client_config));
    let early = loop {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break None,
            ended = &mut worker => break Some(ended),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        let (kept, revived) = tokio::task::spawn_blocking(move || {
            let revived = postgres.revive();
            (postgres, revived)
        })
        .await?;
        postgres = kept;
        match revived {
            Ok(true) => eprintln!("Postgres had ended and was started again; what was committed is there."),
            Ok(false) => {}
            Err(error) => eprintln!("Postgres has ended and cannot be started again: {error}"),
        }
    };
    if early.is_none() {
        println!("\nStopping. Running jobs go on; the next `berth up` finds them.");
        let _ = worker.await;
    }
    server.stop().await;
    if early.is_none() {
        let _ = tokio::time::timeout(Duration::from_secs(5), scheduler).await;
    }
    drop(db);
    tokio::task::spawn_blocking(move || postgres.stop()).await?;
    match early {
        Some(ended) => ended?.context("the worker ended"),
        None => Ok(()),
    }
}

fn data_dir(wanted: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    // Safety: the call cannot fail and takes nothing.
    let is_root = unsafe { libc::geteuid() } == 0;
    let dir = match wanted {
        Some(dir) => dir,
        None if is_root => PathBuf::from("/var/lib/berth"),
        None => {
            let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
            let base = base.or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/share")));
            base.context("there is no home directory; say --data-dir")?.join("berth")
        }
    };
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("the data directory {} cannot be made; choose another with --data-dir", dir.display()))?;
    Ok(dir.canonicalize()?)
}

/// Two services in one directory would share a database and a node.
fn lock(data: &Path) -> anyhow::Result<std::fs::File> {
    let file = std::fs::OpenOptions::new().create(true).write(true).truncate(false).open(data.join("lock"))?;
    if file.try_lock().is_err() {
        bail!("another `berth up` runs in {}; stop it, or choose another directory with --data-dir", data.display());
    }
    Ok(file)
}

/// The development tenant with its user; there already after the first start.
async fn bootstrap(db: &Db) -> anyhow::Result<String> {
    match db.create_tenant(TENANT, Some("Development")).await {
        Ok(_) | Err(StoreError::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let wanted = std::env::var("USER").unwrap_or_else(|_| "dev".to_owned()).to_ascii_lowercase();
    let user = if berth_model::Name::new(wanted.clone()).is_ok() { wanted } else { "dev".to_owned() };
    if db.find_user(TENANT, &user).await?.is_none() {
        db.put_user(TENANT, &user, None, Some("default".to_owned()), false).await?;
    }
    Ok(user)
}

fn token(key: &ServiceKey, user: &str, roles: &[Role]) -> anyhow::Result<String> {
    let request = TokenRequest {
        issuer: DEV_ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        subject: user.to_owned(),
        tenant: Some(TENANT.to_owned()),
        roles: roles.iter().map(ToString::to_string).collect(),
        scope: None,
        valid_seconds: TOKEN_SECONDS,
    };
    Ok(mint(key, &request)?)
}

/// Good for this start's registration alone.
async fn join_token(db: &Db) -> anyhow::Result<String> {
    let token = join_tokens::new_secret();
    let expires_at = jiff::Timestamp::now() + Duration::from_secs(600);
    db.add_join_token(uuid::Uuid::new_v4(), &join_tokens::hash(&token), "*", 1, expires_at, "berth up").await?;
    Ok(token)
}

fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let draft = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    std::fs::rename(draft, path).with_context(|| format!("{} cannot be written", path.display()))
}

/// So that `berth submit` in another terminal needs no settings. A file that is the user's own is left alone.
fn write_client_config(url: &str, token_file: &Path) -> anyhow::Result<()> {
    let Some(path) = settings::user_file() else { return Ok(()) };
    if std::fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(MARK)) {
        eprintln!(
            "{} is left as it is; set BERTH_SERVER={url} and BERTH_TOKEN_FILE={} to use this service",
            path.display(),
            token_file.display()
        );
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    write_secret(&path, &format!("{MARK}\nserver = {:?}\ntoken_file = {:?}\n", url, token_file.display().to_string()))
}

async fn wait_for_node(
    db: &Db,
    node: &str,
    worker: &mut tokio::task::JoinHandle<Result<(), berth_worker::WorkerError>>,
) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while db.node_cursor(node).await.is_err() {
        if worker.is_finished() {
            worker.await?.context("the worker could not start")?;
            bail!("the worker ended at once");
        }
        if tokio::time::Instant::now() > deadline {
            bail!("the worker has not registered within 30 s; BERTH_LOG=info shows more");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn welcome(url: &str, node: &str, user: &str, data: &Path, token_file: &Path, is_bare: bool) -> String {
    let settings = if is_bare { format!("  export BERTH_SERVER={url} BERTH_TOKEN_FILE={}\n", token_file.display()) } else { String::new() };
    format!(
        "Berth is up at {url} with the node {node}. You are {user} of the tenant {TENANT}.\n\n\
         In another terminal:\n{settings}\
         \x20 berth run hostname              run a command and see its output\n\
         \x20 berth submit script.sh          submit an sbatch script\n\
         \x20 berth queue                     what runs and waits\n\
         \x20 berth logs -f JOB               follow a job's output\n\n\
         API browser: {url}/docs    Metrics: {url}/metrics    Data: {}\n\
         Ctrl-C stops it.",
        data.display()
    )
}
