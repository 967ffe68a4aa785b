//! Simulations under way: recorded history replayed on the engine, one request at a time on each replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use berth_sim::history::{History, Recorded, Report};
use berth_sim::plot::{Subject, draw};
use berth_store::Db;
use berth_store::history::PastJob;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::problem::{Answer, Problem};
use crate::resources::simulations::NamedPolicy;

/// Jobs of a period at the most: a replay of more takes hours.
pub const MOST_JOBS: usize = 100_000;
/// Between two notes of how far it is.
const NOTED: Duration = Duration::from_secs(2);

pub struct Simulations {
    db: Db,
    turn: Arc<Semaphore>,
}

impl Simulations {
    pub fn new(db: Db) -> Simulations {
        Simulations { db, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Begins to replay the jobs submitted within [`from`, `to`), and returns the simulation's number. `Ok(None)`: more jobs than
    /// [`MOST_JOBS`]. 503 while another one runs here.
    pub async fn begin(
        &self,
        by: &str,
        request: &Value,
        period: (Timestamp, Timestamp),
        policies: Vec<NamedPolicy>,
    ) -> Answer<Option<i64>> {
        let turn = self.turn.clone().try_acquire_owned().map_err(|_| busy())?;
        let jobs = self.db.history(period.0, period.1, MOST_JOBS + 1).await?;
        if jobs.len() > MOST_JOBS {
            return Ok(None);
        }
        let cluster = self.db.cluster().await?;
        let total = (jobs.len() * policies.len()) as u64;
        let id = self.db.begin_simulation(by, request, total).await?;
        let history = History::of(cluster, jobs.into_iter().map(recorded).collect());
        let title = format!("{} to {}, {} jobs", period.0, period.1, history.jobs());
        let db = self.db.clone();
        tokio::spawn(async move {
            let _turn = turn;
            if let Err(error) = run(&db, id, history, policies, title).await {
                tracing::warn!(%error, simulation = id, "what came of a simulation cannot be noted");
            }
        });
        Ok(Some(id))
    }
}

fn recorded(past: PastJob) -> Recorded {
    let PastJob { job, started, ended, restarts, lost_seconds } = past;
    Recorded { job, started, ended, restarts, lost_seconds }
}

async fn run(db: &Db, id: i64, history: History, policies: Vec<NamedPolicy>, title: String) -> Result<(), berth_store::StoreError> {
    let done = Arc::new(AtomicU64::new(0));
    let counter = done.clone();
    let mut replays = tokio::task::spawn_blocking(move || replay_all(&history, policies, &counter));
    let reports = loop {
        tokio::select! {
            reports = &mut replays => break reports,
            () = tokio::time::sleep(NOTED) => db.touch_simulation(id, done.load(Ordering::Relaxed)).await?,
        }
    };
    match reports {
        Ok(reports) => db.end_simulation(id, Ok(&result(&reports, &title))).await,
        Err(error) => {
            tracing::error!(%error, simulation = id, "a simulation panicked");
            db.end_simulation(id, Err("the engine failed; the replica's log tells why")).await
        }
    }
}

fn replay_all(history: &History, policies: Vec<NamedPolicy>, done: &AtomicU64) -> Vec<Report> {
    let mut reports = vec![history.recorded()];
    for (NamedPolicy { name, policy }, before) in policies.into_iter().zip(0..) {
        let before = before * history.jobs() as u64;
        let mut watch = |ended: usize| done.store(before + ended as u64, Ordering::Relaxed);
        reports.push(history.replay(name, policy, &mut watch));
    }
    reports
}

/// As [`SimulationResult`](crate::resources::simulations::SimulationResult) reads it.
fn result(reports: &[Report], title: &str) -> Value {
    let replays: Vec<_> = reports.iter().map(|report| report.replay.clone()).collect();
    json!({
        "policies": reports,
        "plots": { "wait": draw(&replays, Subject::Wait, title), "slowdown": draw(&replays, Subject::Slowdown, title) },
    })
}

fn busy() -> Problem {
    let mut problem = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "overloaded", "a simulation runs on this replica")
        .help("repeat the request after the seconds in Retry-After");
    problem.retry_after = Some(30);
    problem
}
