//! The leader: takes the lease, feeds the engine with events, and commits what it plans. A standby waits for the lease.
//!
//! The loop holds no truth of its own. When anything fails it drops the engine, takes a new snapshot and goes on; when the lease is
//! lost it becomes a standby again.

mod accounts;
mod lead;
mod metrics;
pub mod power;
pub mod record;
mod reservations;
mod written;

use std::sync::Arc;
use std::time::Duration;

use berth_store::lease::{Candidate, Lease};
use berth_store::{Db, StoreError};
use tokio::sync::watch;

pub use metrics::SchedulerMetrics;

/// How a scheduler runs.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Shown as the leader's name.
    pub holder: String,
    /// Life of the lease without renewal.
    pub lease: Duration,
    pub metrics: Arc<SchedulerMetrics>,
    /// Who powers nodes up and down.
    pub power: power::PowerHooks,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig {
            holder: format!("scheduler-{}", std::process::id()),
            lease: Duration::from_secs(10),
            metrics: Arc::default(),
            power: Default::default(),
        }
    }
}

/// Time between a standby's tries for the lease.
const STANDBY_POLL: Duration = Duration::from_millis(100);

/// Runs until `stopping` turns true: as a standby, or as the leader.
pub async fn run(db: Db, config: SchedulerConfig, mut stopping: watch::Receiver<bool>) {
    let mut candidate = Candidate::default();
    while !*stopping.borrow() {
        match db.try_lead(&mut candidate, &config.holder, config.lease).await {
            Ok(Some(lease)) => {
                config.metrics.is_leader.set(1);
                term(&db, lease, &config, &mut stopping).await;
                config.metrics.is_leader.set(0);
            }
            Ok(None) => pause(STANDBY_POLL, &mut stopping).await,
            Err(error) => {
                tracing::warn!(%error, "the lease cannot be asked for");
                pause(Duration::from_secs(1), &mut stopping).await;
            }
        }
    }
}

async fn pause(time: Duration, stopping: &mut watch::Receiver<bool>) {
    let _ = tokio::time::timeout(time, stopping.wait_for(|stop| *stop)).await;
}

/// One term of leadership.
async fn term(db: &Db, mut lease: Lease, config: &SchedulerConfig, stopping: &mut watch::Receiver<bool>) {
    tracing::info!(epoch = lease.epoch, "leading");
    let ended = lead::lead(db, &mut lease, config, stopping).await;
    match ended {
        Ok(()) => {
            let _ = lease.release().await;
        }
        Err(StoreError::Fenced) => tracing::warn!("the lease was taken by another scheduler"),
        Err(error) => {
            tracing::warn!(%error, "leading was interrupted; beginning anew");
            let _ = lease.release().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
