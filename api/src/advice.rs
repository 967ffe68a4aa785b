//! What would make a pending job start sooner: nearby changes (another partition, QOS or GPU type, fewer nodes, a shorter limit), each
//! admitted as a change by the job's user would be, and tried on the engine.

mod nearby;
mod trial;

use std::time::{Duration, Instant};

use berth_model::verdict::PlannedStart;
use berth_store::StoreError;
use berth_store::jobs::read::JobRow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::App;
use crate::auth::Caller;
use crate::problem::Answer;
use crate::resources::job_update;
use trial::Tried;

/// A change with which the job would start sooner, as far as can be told now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Alternative {
    /// What would be changed, in words: `a time limit of 00:30:00 or less`.
    pub words: String,
    /// The change as a body of `PATCH /v1/jobs/{job_id}`.
    #[schema(value_type = job_update::UpdateJob)]
    pub change: Map<String, Value>,
    /// It would start at once.
    pub starts_now: bool,
    pub planned_start: PlannedStart,
}

/// What was found in the time that there was.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// When the plans were made that this tells of.
    pub as_of: Timestamp,
    /// The soonest first.
    pub alternatives: Vec<Alternative>,
    /// Not everything was tried: a plan of this queue takes long.
    pub is_partial: bool,
}

/// Trying goes on so long.
const BUDGET: Duration = Duration::from_secs(3);
/// Alternatives told of, at most.
const MOST: usize = 8;
/// What no such change helps against.
const OUT_OF_REACH: [&str; 7] =
    ["held_user", "held_admin", "dependency", "dependency_never", "begin_time", "launch_backoff", "array_throttle"];

/// Advice for a pending job that `caller` may read.
pub async fn advise(app: &App, caller: &Caller, row: &JobRow) -> Answer<Advice> {
    let job_id = row.job_id as u64;
    let nothing = || Advice { as_of: Timestamp::now(), ..Advice::default() };
    let Some(job) = app.db.job_snapshot(job_id).await? else { return Ok(nothing()) };
    let spec = app.db.job_spec(job_id).await?;
    let rules = app.catalog.rules().await?;
    let gpu_types: Vec<String> = app.db.gpu_counts().await?.into_iter().map(|(kind, ..)| kind).collect();
    // Those that the job's user would be refused are left out.
    let (mut nearby, mut changes) = (Vec::new(), Vec::new());
    for change in nearby::changes(&spec, &row.partition, &row.qos, &rules, &gpu_types) {
        if let Ok(admitted) = job_update::change(app, caller, row, spec.clone(), &change.patch).await {
            changes.push(admitted);
            nearby.push(change);
        }
    }
    let snapshots = match app.db.rehearse_changes(job_id, row.version, &changes).await {
        // It has just changed, or started.
        Err(StoreError::StaleVersion(_) | StoreError::Conflict { .. }) => return Ok(nothing()),
        snapshots => snapshots?,
    };
    let (nearby, others): (Vec<_>, Vec<_>) = nearby.into_iter().zip(snapshots).filter_map(|(change, job)| Some((change, job?))).unzip();
    let families: Vec<_> = nearby.iter().map(|change| change.family).collect();
    let now = Timestamp::now().max(job.submit_time);
    let tried = app
        .forecasts
        .with(move |engine| {
            let begun = Instant::now();
            trial::compare(&job, others.into_iter().zip(families).collect(), &OUT_OF_REACH, &mut |job| {
                (begun.elapsed() < BUDGET).then(|| trial::Outcome::of(&engine.dry_run(job, now), now))
            })
        })
        .await?;
    Ok(tell(tried, nearby, now))
}

fn tell(tried: Tried, nearby: Vec<nearby::Nearby>, now: Timestamp) -> Advice {
    let mut alternatives: Vec<Alternative> = nearby
        .into_iter()
        .zip(tried.others)
        .filter_map(|(change, start)| Some(alternative(change.words, change.patch, start?, now)))
        .collect();
    if let Some((seconds, start)) = tried.shorter {
        let words = format!("a time limit of {} or less", berth_model::amount::format_time_limit(seconds));
        let patch = Map::from_iter([("time_limit_seconds".to_owned(), seconds.into())]);
        alternatives.push(alternative(words, patch, start, now));
    }
    alternatives.sort_by_key(|alternative| alternative.planned_start.at);
    alternatives.truncate(MOST);
    Advice { as_of: now, alternatives, is_partial: tried.is_partial }
}

fn alternative(words: String, change: Map<String, Value>, planned_start: PlannedStart, now: Timestamp) -> Alternative {
    Alternative { words, change, starts_now: planned_start.at <= now, planned_start }
}
