//! Forecasts: an engine beside the API that follows the feed and never plans for real. It is asked what the leader's next plan would
//! say of a job if that were submitted now.
//!
//! The engine is built at the first question, from the snapshot that a leader begins with, and brought up to date at each one. After
//! [`FORGOTTEN`] the next one begins anew. One question is answered at a time, and at most [`MOST_WAITING`] wait:
//! each costs a copy of the engine's state and a full plan.

use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_engine::{DryRun, Engine};
use berth_model::event::JobSnapshot;
use berth_store::feed::Position;
use berth_store::{Db, StoreError};
use jiff::Timestamp;
use tokio::sync::{Mutex, Semaphore};

use crate::problem::{Answer, Problem};

/// Less than any event is kept for. What has been used since the snapshot, for fair share, is counted by the leader alone: so an engine
/// is never older than this either.
const FORGOTTEN: Duration = Duration::from_secs(300);
const MOST_WAITING: usize = 16;

pub struct Forecasts {
    db: Db,
    places: Semaphore,
    follower: Arc<Mutex<Option<Follower>>>,
}

struct Follower {
    engine: Engine,
    position: Position,
    began: Instant,
}

impl Forecasts {
    pub fn new(db: Db) -> Forecasts {
        Forecasts { db, places: Semaphore::new(MOST_WAITING), follower: Arc::default() }
    }

    /// What a full plan made now would say of a job, given by its components, and when now was. 503 `overloaded` if too many wait for such answers.
    pub async fn ask(&self, jobs: Vec<JobSnapshot>) -> Answer<(DryRun, Timestamp)> {
        // By the database's clock if that is ahead: the job is not from the future.
        let now = jobs.iter().map(|job| job.submit_time).fold(Timestamp::now(), Timestamp::max);
        Ok((self.with(move |engine| engine.dry_run_together(jobs, now)).await?, now))
    }

    /// What `question` makes of an engine that knows all that has happened. As dear as the plans that it makes. 503 `overloaded` if too
    /// many wait.
    pub async fn with<T: Send + 'static>(&self, question: impl FnOnce(&Engine) -> T + Send + 'static) -> Answer<T> {
        let _place = self.places.try_acquire().map_err(|_| busy())?;
        let mut follower = self.follower.clone().lock_owned().await;
        let kept = follower.take().filter(|follower| follower.began.elapsed() < FORGOTTEN);
        *follower = Some(Follower::follow(&self.db, kept).await?);
        let answered = tokio::task::spawn_blocking(move || follower.as_ref().map(|follower| question(&follower.engine))).await;
        match answered {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) | Err(_) => Err(StoreError::Unavailable("the forecast was interrupted".to_owned()).into()),
        }
    }
}

impl Follower {
    /// Brings `kept` up to date, or begins with a snapshot.
    async fn follow(db: &Db, kept: Option<Follower>) -> Result<Follower, StoreError> {
        let mut follower = match kept {
            Some(kept) => kept,
            None => {
                let (events, position) = db.snapshot().await?;
                let mut engine = Engine::new();
                events.into_iter().for_each(|event| engine.apply(event));
                Follower { engine, position, began: Instant::now() }
            }
        };
        loop {
            let news = db.read_feed(&mut follower.position).await?;
            // What hides behind a transaction that still runs is not waited for: the leader does not know it either.
            let is_all = news.events.is_empty() || !news.is_partial;
            news.events.into_iter().for_each(|event| follower.engine.apply(event));
            if is_all {
                return Ok(follower);
            }
        }
    }
}

fn busy() -> Problem {
    let mut problem = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "overloaded", "too many dry runs are waiting")
        .help("repeat the request after the seconds in Retry-After");
    problem.retry_after = Some(1);
    problem
}
