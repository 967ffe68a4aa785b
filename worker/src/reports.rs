//! The outbox: facts in order, numbered within this start of the worker, sent until the service has taken them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use berth_model::worker::{Fact, Report, ReportBatch};
use tokio::sync::{Notify, watch};

use crate::client::{CallError, Client};
use crate::stopped;

/// Facts on their way to the service.
pub struct Outbox {
    boot_id: String,
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// The highest number that the service has.
    taken: watch::Sender<u64>,
}

#[derive(Default)]
struct Waiting {
    last_seq: u64,
    reports: VecDeque<Report>,
}

/// Most facts in one request.
const BATCH: usize = 512;

impl Outbox {
    pub fn new(boot_id: String) -> Outbox {
        Outbox { boot_id, waiting: Mutex::default(), wake: Notify::new(), taken: watch::Sender::new(0) }
    }

    /// Adds a fact and gives its number.
    pub fn push(&self, fact: Fact) -> u64 {
        let mut waiting = self.waiting.lock().expect("no panic while the lock is held");
        waiting.last_seq += 1;
        let seq = waiting.last_seq;
        waiting.reports.push_back(Report { seq, fact });
        drop(waiting);
        self.wake.notify_one();
        seq
    }

    /// Returns when the service has the fact of this number.
    pub async fn until_taken(&self, seq: u64) {
        let _ = self.taken.subscribe().wait_for(|taken| *taken >= seq).await;
    }

    /// What has not been taken yet.
    #[cfg(test)]
    pub fn waiting(&self) -> Vec<Fact> {
        self.waiting.lock().expect("no panic while the lock is held").reports.iter().map(|report| report.fact.clone()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().expect("no panic while the lock is held").reports.is_empty()
    }

    /// Sends for ever. Returns when another process has taken the node's name.
    pub async fn send(&self, client: &Client, mut stopping: watch::Receiver<bool>) -> Result<(), CallError> {
        let mut pause = Duration::from_millis(50);
        loop {
            let reports: Vec<Report> = {
                let waiting = self.waiting.lock().expect("no panic while the lock is held");
                waiting.reports.iter().take(BATCH).cloned().collect()
            };
            if reports.is_empty() {
                tokio::select! {
                    () = self.wake.notified() => {}
                    () = stopped(&mut stopping) => if self.is_empty() { return Ok(()) },
                }
                continue;
            }
            match client.report(&ReportBatch { boot_id: self.boot_id.clone(), reports }).await {
                Ok(taken) => {
                    pause = Duration::from_millis(50);
                    let mut waiting = self.waiting.lock().expect("no panic while the lock is held");
                    while waiting.reports.front().is_some_and(|r| r.seq <= taken.applied) {
                        waiting.reports.pop_front();
                    }
                    self.taken.send_replace(taken.applied);
                    if !taken.stale.is_empty() {
                        tracing::info!(numbers = ?taken.stale, "reports came too late: their attempts are over");
                    }
                }
                Err(error) if error.has_code("boot_superseded") => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "reports wait");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
            }
        }
    }
}
