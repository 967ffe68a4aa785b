//! Steps: listed for users, opened by `srun` with the job's own token, and streamed back to it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use berth_model::job::signal_number;
use berth_model::state::{JobState, LogStream};
use berth_model::step::StepSpec;
use berth_model::{Fault, JobId, JobRef, StepId};
use berth_store::logs::LogKey;
use berth_store::steps::StepRow;
use berth_store::wake::Topic;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{fold_nodes, lookup};
use crate::App;
use crate::auth::{Action, Caller, JobCaller};
use crate::extract::{Body, Segment};
use crate::paging::Page;
use crate::problem::{Answer, Problem};

/// A step of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Step {
    pub step_id: StepId,
    pub attempt: u32,
    pub name: String,
    pub state: JobState,
    pub tasks: u32,
    pub nodes: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    pub cpu_microseconds: u64,
    pub memory_peak_bytes: u64,
}

/// What `srun` is answered.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenedStep {
    pub step_id: u32,
    pub tasks: u32,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalStep {
    pub signal: String,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, open))
        .routes(routes!(stream))
        .routes(routes!(signal))
        .routes(routes!(requeue))
        .routes(routes!(checkpoint))
}

fn show(row: StepRow) -> Answer<Step> {
    Ok(Step {
        step_id: StepId::from_i32(row.step),
        attempt: row.attempt as u32,
        name: row.name,
        state: row.state.parse().map_err(|_| berth_store::StoreError::Corrupt(row.state.clone()))?,
        tasks: row.task_count as u32,
        nodes: fold_nodes(&row.nodes)?,
        created_at: row.created_at.0,
        started_at: row.started_at.map(|at| at.0),
        ended_at: row.ended_at.map(|at| at.0),
        exit_code: row.exit_code,
        exit_signal: row.exit_signal,
        cpu_microseconds: row.cpu_usec as u64,
        memory_peak_bytes: row.memory_peak_bytes as u64,
    })
}

/// List a job's steps.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/steps", operation_id = "steps_list", tag = "steps", params(("job_id" = String, Path)),
    responses((status = 200, body = Page<Step>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Json<Page<Step>>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let items = app.db.steps(row.job_id as u64).await?.into_iter().map(show).collect::<Answer<Vec<_>>>()?;
    Ok(Json(Page { items, next_page_token: None }))
}

/// The token is that of this very job.
pub(super) fn own_job(caller: JobCaller, named: &str) -> Answer<JobId> {
    if named == caller.job.to_string() { Ok(caller.job) } else { Err(Problem::not_found(format!("job {named}"))) }
}

/// Open a parallel step inside the job's allocation. For `srun`, with the job's own token.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/steps", operation_id = "steps_open", tag = "worker", params(("job_id" = String, Path)), request_body = StepSpec,
    responses((status = 201, body = OpenedStep), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn open(
    State(app): State<App>,
    caller: JobCaller,
    Path(job): Path<String>,
    Body(spec): Body<StepSpec>,
) -> Answer<(StatusCode, Json<OpenedStep>)> {
    let job = own_job(caller, &job)?;
    if spec.command.first().is_none_or(String::is_empty) {
        return Err(Fault::new("command_required", "command", "there is no program to run", "name one; for example srun hostname").into());
    }
    let row = app.db.open_step(job.0, caller.attempt, &spec).await?;
    Ok((StatusCode::CREATED, Json(OpenedStep { step_id: row.step as u32, tasks: row.task_count as u32 })))
}

/// Signal a step's tasks. For `srun`, with the job's own token. SIGKILL and SIGTERM end the step.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/steps/{step}/~signal", operation_id = "steps_signal", tag = "worker",
    params(("job_id" = String, Path), ("step" = String, Path)), request_body = SignalStep,
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn signal(
    State(app): State<App>,
    caller: JobCaller,
    Path((job, step)): Path<(String, String)>,
    Body(body): Body<SignalStep>,
) -> Answer<StatusCode> {
    let job = own_job(caller, &job)?;
    let step: StepId = step.parse()?;
    let number = signal_number(&body.signal)
        .ok_or_else(|| Fault::new("invalid_signal", "signal", format!("{:?} is not a signal", body.signal), "for example SIGTERM"))?;
    if matches!(number, 9 | 15 | 2) {
        app.db.stop_step(job.0, caller.attempt, step).await?;
    } else {
        app.db.signal_job(job.0, number, Some(step), false).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Stop the job and put it back into the queue. For `scontrol requeue`, with the job's own token.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/steps/~requeue", operation_id = "steps_requeue_job", tag = "worker", params(("job_id" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn requeue(State(app): State<App>, caller: JobCaller, Path(job): Path<String>) -> Answer<StatusCode> {
    let job = own_job(caller, &job)?;
    let grace = app.catalog.rules().await?.policy.kill_wait_seconds;
    app.db.requeue_job(job.0, &format!("job {job} itself"), grace, false).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Say that the job has saved its work: if it is preempted, what it did before is not lost. For `scontrol checkpoint`, with the job's own token.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/steps/~checkpoint", operation_id = "steps_checkpoint_job", tag = "worker", params(("job_id" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn checkpoint(State(app): State<App>, caller: JobCaller, Path(job): Path<String>) -> Answer<StatusCode> {
    app.db.note_checkpoint(own_job(caller, &job)?.0).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A step's output and end as lines of JSON. For `srun`, with the job's own token; `?cursor=` reads on after a break.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/steps/{step}/stream", operation_id = "steps_stream", tag = "worker",
    params(("job_id" = String, Path), ("step" = String, Path), ("cursor" = Option<String>, Query)),
    responses((status = 200, content_type = "application/x-ndjson", body = String), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn stream(
    State(app): State<App>,
    caller: JobCaller,
    Path((job, step)): Path<(String, String)>,
    axum::extract::RawQuery(query): axum::extract::RawQuery,
) -> Answer<Response> {
    let job = own_job(caller, &job)?;
    let step: StepId = step.parse()?;
    app.db.step(job.0, caller.attempt, step).await?;
    let given = crate::extract::form_pairs(query.as_deref().unwrap_or("")).into_iter().find(|(k, v)| k == "cursor" && !v.is_empty());
    let cursor = given.map(|(_, text)| Cursor::read(&text)).transpose()?;
    let follower = Follower::new(app, job, caller.attempt, step, cursor);
    let lines = futures::stream::unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        let events = follower.next().await;
        let text: String = events.iter().map(|e| format!("{e}\n")).collect();
        let is_last = follower.is_over;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (!is_last).then_some(follower)))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], HttpBody::from_stream(lines)).into_response())
}

/// Follows the output of one step until its end. Shared by `srun`'s stream and users' `logs -f`.
pub struct Follower {
    app: App,
    job: JobId,
    attempt: u32,
    step: StepId,
    /// Bytes handed out of each task's stream.
    read: Offsets,
    wake: tokio::sync::watch::Receiver<u64>,
    /// The step was seen as ended: what is stored by now is all there is, up to the last uploads.
    pub is_over: bool,
    /// This replica stops: there may be more, to be read from another.
    pub is_cut: bool,
}

type Offsets = BTreeMap<(u32, LogStream), u64>;

/// How far the output of one attempt was read: `1:0.stdout.4096~1.stdout.512`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub attempt: u32,
    read: Offsets,
}

impl Cursor {
    /// Reads what an event carried.
    pub fn read(text: &str) -> Result<Cursor, Fault> {
        let parse = || -> Option<Cursor> {
            let (attempt, parts) = text.split_once(':')?;
            let offset = |part: &str| {
                let mut fields = part.split('.');
                let entry = ((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?), fields.next()?.parse().ok()?);
                fields.next().is_none().then_some(entry)
            };
            let read = parts.split('~').filter(|p| !p.is_empty()).map(offset).collect::<Option<Offsets>>()?;
            Some(Cursor { attempt: attempt.parse().ok().filter(|n| *n <= i32::MAX as u32)?, read })
        };
        parse().ok_or_else(|| {
            let detail = format!("{:?} is not a cursor of this stream", text.chars().take(80).collect::<String>());
            Fault::new(
                "invalid_cursor",
                "cursor",
                detail,
                "send the cursor (or id) of the last event seen as it was, or none to begin anew",
            )
        })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.read.iter().map(|((task, stream), offset)| format!("{task}.{stream}.{offset}")).collect();
        write!(f, "{}:{}", self.attempt, parts.join("~"))
    }
}

/// Bytes of one stream handed out at once.
const PIECE: usize = 256 * 1024;

impl Follower {
    pub fn new(app: App, job: JobId, attempt: u32, step: StepId, cursor: Option<Cursor>) -> Follower {
        let read = cursor.filter(|c| c.attempt == attempt).unwrap_or_default().read;
        let wake = app.db.wake.subscribe(Topic::Job(job.0));
        Follower { app, job, attempt, step, read, wake, is_over: false, is_cut: false }
    }

    /// The next events, waiting for some; after the last one `is_over` is set.
    pub async fn next(&mut self) -> Vec<serde_json::Value> {
        loop {
            self.wake.mark_unchanged();
            // The state first: a step seen as ended has uploaded its output before it said so.
            let ended = self.ended().await;
            let mut events = self.output().await;
            if let Some(end) = ended {
                if events.is_empty() {
                    self.is_over = true;
                    events.extend(end);
                }
                return events;
            }
            if !events.is_empty() {
                return events;
            }
            let _ = tokio::time::timeout(Duration::from_millis(1000), self.wake.changed()).await;
            if *self.app.stopping.borrow() {
                (self.is_over, self.is_cut) = (true, true);
                return Vec::new();
            }
        }
    }

    async fn ended(&self) -> Option<Vec<serde_json::Value>> {
        let row = self.app.db.step(self.job.0, self.attempt, self.step).await.ok()?;
        row.ended_at?;
        let mut events = Vec::new();
        for result in self.app.db.step_results(self.job.0, self.attempt, self.step).await.unwrap_or_default() {
            for task in &result.tasks {
                events.push(serde_json::json!({ "type": "exit", "task": task.rank, "code": task.code, "signal": task.signal }));
            }
            if let Some(failure) = &result.failure {
                events.push(serde_json::json!({ "type": "failure", "cause": failure.cause, "detail": failure.detail }));
            }
        }
        let code = row.exit_code.unwrap_or(if row.state == "completed" { 0 } else { 1 });
        let code = if code == 0 && row.state != "completed" { 1 } else { code };
        events.push(serde_json::json!({ "type": "end", "state": row.state, "exit_code": code }));
        Some(events)
    }

    async fn output(&mut self) -> Vec<serde_json::Value> {
        let mut events = Vec::new();
        for (task, stream) in self.app.logs.tasks(self.job, self.attempt, self.step).await.unwrap_or_default() {
            if stream == LogStream::Stdin {
                continue;
            }
            let key = LogKey { job: self.job, attempt: self.attempt, step: self.step, task, stream };
            let offset = self.read.get(&(task, stream)).copied().unwrap_or(0);
            let Ok(bytes) = self.app.logs.read(&key, offset, PIECE).await else { continue };
            let whole = whole_characters(&bytes);
            if whole == 0 {
                continue;
            }
            self.read.insert((task, stream), offset + whole as u64);
            let text = String::from_utf8_lossy(&bytes[..whole]);
            let mut event = serde_json::json!({
                "type": "output", "step": self.step, "task": task, "stream": stream, "text": text, "cursor": self.cursor(),
            });
            // Text that had to be mended goes along as it was.
            if matches!(text, std::borrow::Cow::Owned(_)) {
                event["base64"] = base64::engine::general_purpose::STANDARD.encode(&bytes[..whole]).into();
            }
            events.push(event);
        }
        events
    }

    fn cursor(&self) -> String {
        Cursor { attempt: self.attempt, read: self.read.clone() }.to_string()
    }
}

/// Bytes up to the last whole UTF-8 character, unless what is left is no character at all.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written_and_nothing_else_is() {
        for text in ["1:", "2:0.stdout.17", "2:0.stderr.1~0.stdout.17~12.stdout.9"] {
            assert_eq!(Cursor::read(text).unwrap().to_string().split('~').count(), text.split('~').count(), "{text}");
        }
        for text in ["", "x", "0.stdout.17", "1:0.stdout", "1:0.stdout.1.2", "1:0.music.1", "-1:", "9999999999:", "1:0.stdout.-4"] {
            assert_eq!(Cursor::read(text).unwrap_err().code, "invalid_cursor", "{text}");
        }
    }
}
