//! What may be done to a job: cancel, hold, release, requeue, suspend, resume, signal. How it is changed is in [`super::job_update`].

use axum::extract::State;
use berth_model::job::signal_number;
use berth_model::state::Hold;
use berth_model::{Fault, JobRef, JobSet, StepId};
use berth_store::jobs::read::JobRow;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{Job, lookup, show};
use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::{Body, Segment, Tagged};
use crate::problem::{Answer, Problem};

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelJob {
    /// Seconds between SIGTERM and SIGKILL; the cluster's kill wait if absent.
    #[schema(maximum = 3600)]
    pub grace_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequeueJob {
    /// Keep it held once it is back in the queue.
    pub hold: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalJob {
    /// Name (`SIGUSR1`) or number.
    pub signal: String,
    /// Only this step.
    #[serde(default)]
    pub step: Option<StepId>,
    /// The batch shell too.
    #[serde(default)]
    pub full: bool,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(requeue))
        .routes(routes!(suspend))
        .routes(routes!(resume))
        .routes(routes!(checkpoint))
        .routes(routes!(signal))
}

/// The job to act upon. A task that still waits in its array becomes a job of its own first, so that the others are left alone.
pub(super) async fn lookup_for_change(app: &App, caller: &Caller, job: JobRef) -> Answer<JobRow> {
    let row = lookup(app, caller, job, Action::Control).await?;
    match job {
        JobRef::Task { array, index } if row.job_id as u64 == array.0 => {
            app.db.split_off(array.0, index).await?;
            // If it was not there to be split off, it has just started.
            lookup(app, caller, job, Action::Control).await
        }
        _ => Ok(row),
    }
}

pub(super) async fn answer(app: &App, id: i64) -> Answer<Tagged<Job>> {
    let row = app.db.job(None, JobRef::Job(berth_model::JobId(id as u64))).await?;
    let version = row.version;
    Ok(Tagged(show(row)?, version))
}

/// Cancel a job, an array, or some tasks of one (`1234_[5-6,9]`, answered with the array). A pending one ends at once, a running one gets
/// its grace time first; one that has ended stays as it is.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~cancel", operation_id = "jobs_cancel", tag = "jobs", params(("job_id" = String, Path)), request_body = CancelJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Segment(jobs): Segment<JobSet>,
    Body(body): Body<CancelJob>,
) -> Answer<Tagged<Job>> {
    let row = match &jobs {
        JobSet::One(job) => lookup_for_change(&app, &caller, *job).await?,
        JobSet::Tasks { array, .. } => lookup(&app, &caller, JobRef::Job(*array), Action::Control).await?,
    };
    let most = app.catalog.rules().await?.policy.kill_wait_seconds.max(3600);
    let grace = body.grace_seconds.unwrap_or(app.catalog.rules().await?.policy.kill_wait_seconds);
    if grace > most {
        return Err(Fault::new("invalid_value", "grace_seconds", format!("{grace} s"), format!("use at most {most} seconds")).into());
    }
    let (job, by) = (row.job_id as u64, caller.subject.as_str());
    match &jobs {
        JobSet::One(_) => app.db.cancel_job(job, by, grace).await?,
        JobSet::Tasks { .. } if row.array_pending.is_none() => return Err(Problem::not_found(format!("array {job}"))),
        JobSet::Tasks { indices, .. } => app.db.cancel_tasks(job, indices, by, grace).await?,
    }
    answer(&app, row.job_id).await
}

/// Hold a pending job.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~hold", operation_id = "jobs_hold", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn hold(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    let is_owner = row.user_name == caller.subject.as_str();
    let hold = if is_owner { Hold::User } else { Hold::Admin };
    app.db.hold_job(row.job_id as u64, hold, caller.subject.as_str()).await?;
    answer(&app, row.job_id).await
}

/// Release a held job. What an administrator holds only an administrator releases.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~release", operation_id = "jobs_release", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn release(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    app.db.release_job(row.job_id as u64, caller.subject.as_str(), caller.is_tenant_admin()).await?;
    answer(&app, row.job_id).await
}

/// Stop a running job and put it back into the queue.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~requeue", operation_id = "jobs_requeue", tag = "jobs", params(("job_id" = String, Path)), request_body = RequeueJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn requeue(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    Body(body): Body<RequeueJob>,
) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    let grace = app.catalog.rules().await?.policy.kill_wait_seconds;
    app.db.requeue_job(row.job_id as u64, caller.subject.as_str(), grace, body.hold).await?;
    answer(&app, row.job_id).await
}

/// Suspend a running job: its processes are frozen and its CPUs are for others; it keeps its memory, GPUs and licences. For administrators.
/// It is `suspended` when it stands still on all its nodes; that time does not count against its limit.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~suspend", operation_id = "jobs_suspend", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn suspend(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<Job>> {
    let row = lookup(&app, &caller, job, Action::Control).await?;
    caller.require_tenant_admin("jobs:write")?;
    app.db.suspend_job(row.job_id as u64, caller.subject.as_str()).await?;
    answer(&app, row.job_id).await
}

/// Let a suspended job go on, as soon as there are CPUs for it on all its nodes. For administrators.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~resume", operation_id = "jobs_resume", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn resume(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<Job>> {
    let row = lookup(&app, &caller, job, Action::Control).await?;
    caller.require_tenant_admin("jobs:write")?;
    app.db.resume_job(row.job_id as u64, caller.subject.as_str()).await?;
    answer(&app, row.job_id).await
}

/// Say that a running job has saved its work: if it is preempted, what it did before is not lost, and those who lose less go first.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~checkpoint", operation_id = "jobs_checkpoint", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn checkpoint(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<Job>> {
    let row = lookup(&app, &caller, job, Action::Control).await?;
    app.db.note_checkpoint(row.job_id as u64).await?;
    answer(&app, row.job_id).await
}

/// Send a signal to a running job's steps.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~signal", operation_id = "jobs_signal", tag = "jobs", params(("job_id" = String, Path)), request_body = SignalJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn signal(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>, Body(body): Body<SignalJob>) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    let number = signal_number(&body.signal).ok_or_else(|| {
        Fault::new(
            "invalid_signal",
            "signal",
            format!("{:?} is not a signal", body.signal),
            "use a name or number; for example SIGUSR1 or 10",
        )
    })?;
    app.db.signal_job(row.job_id as u64, number, body.step, body.full).await?;
    answer(&app, row.job_id).await
}
