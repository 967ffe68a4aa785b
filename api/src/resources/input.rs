//! Standard input of jobs and steps: written in pieces by `berth run` and `srun`, read by the nodes whose tasks get it.
//!
//! It is kept beside the output, as pieces of the stream `stdin` of task 0; its length, once known, is all there is of task 1. A job's
//! own is kept under attempt 0, so that another attempt reads it again.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_model::state::LogStream;
use berth_model::step::deciding_step;
use berth_model::{Fault, JobId, JobRef, StepId};
use berth_store::logs::LogKey;
use berth_store::wake::Topic;
use bytes::Bytes;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::lookup;
use super::steps::own_job;
use crate::App;
use crate::auth::{Action, Caller, JobCaller};
use crate::extract::{self, Params, Segment};
use crate::problem::{Answer, Problem};

/// Most bytes of one input.
const MAX_INPUT: u64 = 1 << 30;
/// Bytes answered at once.
const PIECE: usize = 1 << 20;
/// How long a reader is kept waiting for the next piece.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
struct WriteInput {
    /// Bytes of the input before this piece; 0 if absent. A piece sent again overwrites itself.
    #[serde(deserialize_with = "crate::extract::query::one")]
    offset: Option<u64>,
    /// The input ends with this piece.
    #[serde(deserialize_with = "crate::extract::query::one")]
    end: Option<bool>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
struct ReadInput {
    /// Bytes to skip.
    #[serde(deserialize_with = "crate::extract::query::one")]
    offset: Option<u64>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(write_job, read_job)).routes(routes!(write_step, read_step))
}

/// Whose input.
#[derive(Clone, Copy)]
struct Whose {
    job: JobId,
    attempt: u32,
    step: StepId,
}

impl Whose {
    async fn job(app: &App, job: JobId) -> Answer<Whose> {
        let spec = app.db.job_spec(job.0).await?;
        if !spec.stream_stdin {
            return Err(Fault::new(
                "no_stdin",
                "stream_stdin",
                format!("job {job} takes no input this way"),
                "submit it with \"stream_stdin\": true",
            )
            .into());
        }
        Ok(Whose { job, attempt: 0, step: deciding_step(spec.script.is_some()) })
    }

    fn pieces(self) -> LogKey {
        LogKey { job: self.job, attempt: self.attempt, step: self.step, task: 0, stream: LogStream::Stdin }
    }

    fn length(self) -> LogKey {
        LogKey { task: 1, ..self.pieces() }
    }
}

async fn write(app: &App, whose: Whose, q: WriteInput, bytes: Bytes) -> Answer<StatusCode> {
    let offset = q.offset.unwrap_or(0);
    let length = offset.saturating_add(bytes.len() as u64);
    if length > MAX_INPUT {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "input_too_large", format!("the input is longer than {MAX_INPUT} bytes"))
            .help("put it into a file that the nodes can read, and name that with --input"));
    }
    if !bytes.is_empty() {
        app.logs.put(&whose.pieces(), offset, bytes).await?;
    }
    if q.end == Some(true) {
        app.logs.put(&whose.length(), 0, length.to_string().into()).await?;
    }
    app.db.wake.notify(Topic::Job(whose.job.0));
    Ok(StatusCode::NO_CONTENT)
}

/// The next piece; an empty one is the end. 204 if none has come within the wait.
async fn read(app: &App, whose: Whose, offset: u64) -> Answer<Response> {
    let mut wake = app.db.wake.subscribe(Topic::Job(whose.job.0));
    let deadline = tokio::time::Instant::now() + WAIT;
    loop {
        wake.mark_unchanged();
        // The length first: what was written before it is read after it.
        let length = app.logs.read(&whose.length(), 0, 32).await?;
        let length: Option<u64> = std::str::from_utf8(&length).ok().and_then(|text| text.parse().ok());
        let bytes = app.logs.read(&whose.pieces(), offset, PIECE).await?;
        if !bytes.is_empty() || length.is_some_and(|length| offset >= length) {
            return Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response());
        }
        if tokio::time::Instant::now() >= deadline || *app.stopping.borrow() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let slice = deadline.min(tokio::time::Instant::now() + Duration::from_secs(1));
        let _ = tokio::time::timeout_at(slice, wake.changed()).await;
    }
}

/// Write a piece of the standard input of a job submitted with `stream_stdin`. Its tasks read on as pieces come.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/stdin", operation_id = "jobs_write_stdin", tag = "logs", params(("job_id" = String, Path), WriteInput),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn write_job(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    Params(q): Params<WriteInput>,
    request: Request,
) -> Answer<StatusCode> {
    let row = lookup(&app, &caller, job, Action::Control).await?;
    let whose = Whose::job(&app, JobId(row.job_id as u64)).await?;
    let bytes = extract::read(request, &app).await?;
    write(&app, whose, q, bytes).await
}

/// Read a job's standard input. For its nodes, with the job's own token. Empty at the end; 204 if nothing more has come yet.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/stdin", operation_id = "jobs_read_stdin", tag = "worker", params(("job_id" = String, Path), ReadInput),
    responses((status = 200, body = String, content_type = "application/octet-stream"), (status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn read_job(State(app): State<App>, caller: JobCaller, Path(job): Path<String>, Params(q): Params<ReadInput>) -> Answer<Response> {
    let whose = Whose::job(&app, own_job(caller, &job)?).await?;
    read(&app, whose, q.offset.unwrap_or(0)).await
}

/// Write a piece of a step's standard input. For `srun`, with the job's own token.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/steps/{step}/stdin", operation_id = "steps_write_stdin", tag = "worker",
    params(("job_id" = String, Path), ("step" = String, Path), WriteInput), request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn write_step(
    State(app): State<App>,
    caller: JobCaller,
    Path((job, step)): Path<(String, String)>,
    Params(q): Params<WriteInput>,
    request: Request,
) -> Answer<StatusCode> {
    let whose = step_of(&app, caller, &job, &step).await?;
    let bytes = extract::read(request, &app).await?;
    write(&app, whose, q, bytes).await
}

/// Read a step's standard input. For its nodes, with the job's own token. Empty at the end; 204 if nothing more has come yet.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/steps/{step}/stdin", operation_id = "steps_read_stdin", tag = "worker",
    params(("job_id" = String, Path), ("step" = String, Path), ReadInput),
    responses((status = 200, body = String, content_type = "application/octet-stream"), (status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn read_step(
    State(app): State<App>,
    caller: JobCaller,
    Path((job, step)): Path<(String, String)>,
    Params(q): Params<ReadInput>,
) -> Answer<Response> {
    let whose = step_of(&app, caller, &job, &step).await?;
    read(&app, whose, q.offset.unwrap_or(0)).await
}

async fn step_of(app: &App, caller: JobCaller, job: &str, step: &str) -> Answer<Whose> {
    let attempt = caller.attempt;
    let job = own_job(caller, job)?;
    let step: StepId = step.parse()?;
    app.db.step(job.0, attempt, step).await?;
    Ok(Whose { job, attempt, step })
}
