//! Parts that run as services.

pub mod metrics;
pub mod up;
pub mod worker;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use berth_api::ApiConfig;
use berth_api::auth::{IssuerConfig, ServiceKey};
use berth_scheduler::SchedulerConfig;
use berth_store::Db;
use tokio::sync::watch;

use crate::args::{ApiArgs, DatabaseArgs, SchedulerArgs};

/// Turns true at SIGINT or SIGTERM; a second one ends the process at once.
pub fn stop_signal() -> anyhow::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (stop, stopping) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        for count in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if count > 0 {
                std::process::exit(130);
            }
            stop.send_replace(true);
        }
    });
    Ok(stopping)
}

/// Logs to standard error: human-readable on a terminal, JSON elsewhere. `BERTH_LOG` filters, as in `info,berth_scheduler=debug`.
pub fn start_logging(default: &str) {
    use std::io::IsTerminal;
    let filter = tracing_subscriber::EnvFilter::try_from_env("BERTH_LOG").unwrap_or_else(|_| default.into());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call (in tests) changes nothing.
    let _ = if std::io::stderr().is_terminal() { builder.compact().try_init() } else { builder.json().try_init() };
}

pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|n| n.trim().to_ascii_lowercase()).unwrap_or_else(|_| "node".to_owned())
}

/// Reads the development key, making it if it is not there.
pub fn dev_key(path: &Path) -> anyhow::Result<ServiceKey> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Ok(bytes) = std::fs::read(path) {
        return ServiceKey::from_pkcs8(bytes).map_err(|e| anyhow!("{}: {e}", path.display()));
    }
    let key = ServiceKey::generate().map_err(anyhow::Error::msg)?;
    let mut file = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("the development key {} cannot be made", path.display()))?;
    std::io::Write::write_all(&mut file, key.pkcs8())?;
    Ok(key)
}

pub async fn connect(url: &str, connections: u32) -> anyhow::Result<Db> {
    let patience = Duration::from_secs(60);
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        match Db::connect(url, connections).await {
            Ok(db) => return Ok(db),
            Err(error) if tokio::time::Instant::now() > deadline => {
                return Err(error).context("the database cannot be reached; --database-url says where it is");
            }
            Err(error) => {
                tracing::warn!(%error, "waiting for the database");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

pub async fn migrate(args: DatabaseArgs) -> anyhow::Result<()> {
    start_logging("info");
    connect(&args.database_url, 5).await?.migrate().await.context("the schema could not be brought up to date")?;
    println!("The schema is up to date.");
    Ok(())
}

pub async fn api(args: ApiArgs) -> anyhow::Result<()> {
    start_logging("info");
    let mut stopping = stop_signal()?;
    let issuers: Vec<IssuerConfig> = match &args.issuers {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("the issuers' file {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("the issuers' file {}", path.display()))?
        }
        None => Vec::new(),
    };
    let dev_key = args.dev_key.as_deref().map(dev_key).transpose()?;
    let db = connect(&args.database.database_url, args.max_connections).await?;
    db.ready().await.context("the database has not the schema of this version; run `berth migrate` first")?;
    let server =
        berth_api::start(db, ApiConfig { listen: args.listen, logs: args.logs, issuers, dev_key }).await.map_err(anyhow::Error::msg)?;
    tracing::info!(address = %server.address, "serving");
    let _ = stopping.wait_for(|stop| *stop).await;
    server.stop().await;
    Ok(())
}

pub async fn scheduler(args: SchedulerArgs) -> anyhow::Result<()> {
    start_logging("info");
    let stopping = stop_signal()?;
    let db = connect(&args.database.database_url, 10).await?;
    db.ready().await.context("the database has not the schema of this version; run `berth migrate` first")?;
    let holder = args.name.unwrap_or_else(|| format!("{}-{}", host_name(), std::process::id()));
    let config =
        SchedulerConfig { holder, lease: Duration::from_secs(args.lease_seconds), power: args.power.hooks(), ..SchedulerConfig::default() };
    if let Some(listen) = args.metrics_listen {
        let metrics = config.metrics.clone();
        metrics::serve(listen, move || metrics.render()).await?;
    }
    berth_scheduler::run(db, config, stopping).await;
    Ok(())
}
