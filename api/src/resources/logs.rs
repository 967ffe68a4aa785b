//! Jobs' output: read, or followed as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use berth_model::state::LogStream;
use berth_model::step::deciding_step;
use berth_model::{Fault, JobId, JobRef, StepId};
use berth_store::jobs::read::JobRow;
use berth_store::logs::LogKey;
use berth_store::wake::Topic;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::lookup;
use super::steps::Follower;
use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::{Params, Segment};
use crate::problem::{Answer, Problem};

/// Which output to read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct LogParams {
    /// `stdout` (if absent) or `stderr`.
    #[serde(deserialize_with = "crate::extract::query::one")]
    #[param(value_type = Option<LogStream>)]
    pub stream: Option<LogStream>,
    /// `batch`, or a step's number; the job's main step if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    #[param(value_type = Option<String>)]
    pub step: Option<StepId>,
    /// Rank of the task; 0 if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub task: Option<u32>,
    /// Attempt; the last one if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub attempt: Option<u32>,
    /// Bytes to skip.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub offset: Option<u64>,
    /// Only the last bytes.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub tail: Option<u64>,
}

/// What to follow.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct FollowParams {
    /// `batch`, or a step's number; the job's main step if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    #[param(value_type = Option<String>)]
    pub step: Option<StepId>,
    /// `cursor` of the last event seen, to read on after a break. It holds for the step and the attempt it came from.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub cursor: Option<String>,
}

/// Bytes answered at once; `X-Next-Offset` says where to read on.
const PIECE: usize = 4 * 1024 * 1024;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(follow))
}

async fn main_step(app: &App, row: &JobRow) -> Answer<StepId> {
    Ok(deciding_step(app.db.job_spec(row.job_id as u64).await?.script.is_some()))
}

/// Read a task's output. Empty if it has written nothing (yet).
#[utoipa::path(get, path = "/v1/jobs/{job_id}/logs", operation_id = "jobs_logs", tag = "logs", params(("job_id" = String, Path), LogParams),
    responses((status = 200, body = String, content_type = "text/plain", headers(("X-Next-Offset" = u64))), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn read(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>, Params(q): Params<LogParams>) -> Answer<Response> {
    let row = lookup(&app, &caller, job, Action::ReadContents).await?;
    if q.offset.is_some() && q.tail.is_some() {
        return Err(Fault::new("invalid_parameter", "tail", "offset and tail contradict each other", "use one of them").into());
    }
    let step = match q.step {
        Some(step) => step,
        None => main_step(&app, &row).await?,
    };
    let key = LogKey {
        job: JobId(row.job_id as u64),
        attempt: q.attempt.unwrap_or(row.attempt as u32),
        step,
        task: q.task.unwrap_or(0),
        stream: q.stream.unwrap_or(LogStream::Stdout),
    };
    let (from, bytes) = match q.tail {
        Some(tail) => app.logs.tail(&key, tail.min(PIECE as u64)).await?,
        None => {
            let from = q.offset.unwrap_or(0);
            (from, app.logs.read(&key, from, PIECE).await?)
        }
    };
    let next = from.saturating_add(bytes.len() as u64).to_string();
    // Output is whatever the job wrote; a browser must not take it for a page.
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::HeaderName::from_static("x-next-offset"), next),
    ];
    Ok((headers, bytes).into_response())
}

/// Follow a job's output as server-sent events until it ends. Each event's data is JSON: `output` with task, stream and text, then `end`.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/logs/follow", operation_id = "jobs_logs_follow", tag = "logs", params(("job_id" = String, Path), FollowParams),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn follow(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    Params(q): Params<FollowParams>,
) -> Answer<Response> {
    let row = lookup(&app, &caller, job, Action::ReadContents).await?;
    let step = match q.step {
        Some(step) => step,
        None => main_step(&app, &row).await?,
    };
    let state = Stage::Waiting { app, job: JobId(row.job_id as u64), step, cursor: q.cursor };
    let events = futures::stream::unfold(state, |stage| async move {
        let (values, next) = advance(stage).await?;
        let events: Vec<Result<Event, Infallible>> = values.iter().map(|v| Ok(Event::default().data(v.to_string()))).collect();
        Some((futures::stream::iter(events), next))
    });
    let events = futures::StreamExt::flatten(events);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

enum Stage {
    /// The job has not started.
    Waiting {
        app: App,
        job: JobId,
        step: StepId,
        cursor: Option<String>,
    },
    Following(Box<Follower>, App, JobId),
    /// The step's output is out; the job's end is awaited.
    Ending {
        app: App,
        job: JobId,
    },
    Over,
}

/// One move of a follower: what to send, and what comes next. `None` after the end.
async fn advance(stage: Stage) -> Option<(Vec<serde_json::Value>, Stage)> {
    match stage {
        Stage::Waiting { app, job, step, cursor } => {
            let mut wake = app.db.wake.subscribe(Topic::Job(job.0));
            loop {
                wake.mark_unchanged();
                let row = app.db.job(None, JobRef::Job(job)).await.ok()?;
                let has_step = row.attempt > 0 && app.db.step(job.0, row.attempt as u32, step).await.is_ok();
                if has_step {
                    let follower = Follower::new(app.clone(), job, row.attempt as u32, step, cursor.as_deref());
                    return Some((Vec::new(), Stage::Following(Box::new(follower), app, job)));
                }
                if row.state().ok()?.is_end() {
                    return Some((vec![end(&row)], Stage::Over));
                }
                let _ = tokio::time::timeout(Duration::from_millis(1000), wake.changed()).await;
                if *app.stopping.borrow() {
                    return None;
                }
            }
        }
        Stage::Following(mut follower, app, job) => {
            let values: Vec<_> = follower.next().await.into_iter().filter(|v| v["type"] != "end").collect();
            let next = if follower.is_over { Stage::Ending { app, job } } else { Stage::Following(follower, app, job) };
            Some((values, next))
        }
        Stage::Ending { app, job } => {
            let mut wake = app.db.wake.subscribe(Topic::Job(job.0));
            loop {
                wake.mark_unchanged();
                let row = app.db.job(None, JobRef::Job(job)).await.ok()?;
                let state = row.state().ok()?;
                // A requeued job is followed no further: its next attempt is another output.
                if state.is_end() || state == berth_model::state::JobState::Pending {
                    return Some((vec![end(&row)], Stage::Over));
                }
                let _ = tokio::time::timeout(Duration::from_millis(1000), wake.changed()).await;
                if *app.stopping.borrow() {
                    return None;
                }
            }
        }
        Stage::Over => None,
    }
}

fn end(row: &JobRow) -> serde_json::Value {
    serde_json::json!({ "type": "end", "state": row.state, "exit_code": row.exit_code, "signal": row.exit_signal, "reason": row.reason })
}
