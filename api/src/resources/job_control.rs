//! What may be done to a job: cancel, hold, release, requeue, signal, change.

use axum::extract::State;
use berth_model::job::signal_number;
use berth_model::state::Hold;
use berth_model::{Fault, JobRef, Name, StepId};
use berth_store::jobs::control::JobChange;
use berth_store::jobs::read::JobRow;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{Job, lookup, show};
use super::tenants::{check_text, some};
use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::{Body, IfMatch, Segment, Tagged};
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

/// A merge patch.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateJob {
    #[schema(max_length = 200)]
    pub name: Option<String>,
    #[schema(minimum = 1)]
    pub time_limit_seconds: Option<u64>,
    pub nice: Option<i32>,
    /// Added to the priority as it is; set by administrators of the platform.
    pub site_factor: Option<i32>,
    pub partition: Option<Name>,
    pub qos: Option<Name>,
    pub comment: Option<String>,
    #[serde(deserialize_with = "some")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub begin: Option<Option<Timestamp>>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(update))
        .routes(routes!(cancel))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(requeue))
        .routes(routes!(signal))
}

/// The job to act upon. A task that still waits in its array becomes a job of its own first, so that the others are left alone.
async fn lookup_for_change(app: &App, caller: &Caller, job: JobRef) -> Answer<JobRow> {
    let row = lookup(app, caller, job, Action::Control).await?;
    match job {
        JobRef::Task { array, index } if row.array_index.is_none() => {
            app.db.split_off(array.0, index).await?;
            // If it was not there to be split off, it has just started.
            lookup(app, caller, job, Action::Control).await
        }
        _ => Ok(row),
    }
}

async fn answer(app: &App, id: i64) -> Answer<Tagged<Job>> {
    let row = app.db.job(None, JobRef::Job(berth_model::JobId(id as u64))).await?;
    let version = row.version;
    Ok(Tagged(show(row)?, version))
}

/// Cancel a job. A pending one ends at once, a running one gets its grace time first; one that has ended stays as it is.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/~cancel", operation_id = "jobs_cancel", tag = "jobs", params(("job_id" = String, Path)), request_body = CancelJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn cancel(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>, Body(body): Body<CancelJob>) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    let most = app.catalog.rules().await?.policy.kill_wait_seconds.max(3600);
    let grace = body.grace_seconds.unwrap_or(app.catalog.rules().await?.policy.kill_wait_seconds);
    if grace > most {
        return Err(Fault::new("invalid_value", "grace_seconds", format!("{grace} s"), format!("use at most {most} seconds")).into());
    }
    app.db.cancel_job(row.job_id as u64, caller.subject.as_str(), grace).await?;
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

/// Change a job: all of it while it is pending; name, comment, nice and a lower time limit while it runs.
#[utoipa::path(patch, path = "/v1/jobs/{job_id}", operation_id = "jobs_update", tag = "jobs", params(("job_id" = String, Path)), request_body = UpdateJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    IfMatch(version): IfMatch,
    Body(body): Body<UpdateJob>,
) -> Answer<Tagged<Job>> {
    let row = lookup_for_change(&app, &caller, job).await?;
    check_text("name", body.name.as_deref(), 200)?;
    check_text("comment", body.comment.as_deref(), 4096)?;
    if body.time_limit_seconds.is_some_and(|t| t == 0 || t > berth_model::amount::MAX_SECONDS) {
        return Err(Fault::new("invalid_time", "time_limit_seconds", "the time limit is out of range", "use 1 second to ten years").into());
    }
    if body.nice.is_some_and(|n| !(0..=10_000_000).contains(&n)) && !caller.is_tenant_admin() {
        return Err(Fault::new("invalid_nice", "nice", "users may only lower their priority", "use 0 to 10000000").into());
    }
    if body.site_factor.is_some() {
        caller.require_platform_admin("jobs:write")?;
    }
    let rules = app.catalog.rules().await?;
    for (field, known) in [
        ("partition", body.partition.as_ref().is_none_or(|p| rules.partition(p.as_str()).is_some())),
        ("qos", body.qos.as_ref().is_none_or(|q| rules.qos(q.as_str()).is_some())),
    ] {
        if !known {
            return Err(Fault::new(
                &format!("{field}_not_found"),
                field,
                format!("there is no such {field}"),
                format!("GET /v1/{field}s lists them"),
            )
            .into());
        }
    }
    let change = JobChange {
        name: body.name,
        time_limit: body.time_limit_seconds,
        nice: body.nice,
        site_factor: body.site_factor,
        partition: body.partition.map(Name::into_string),
        qos: body.qos.map(Name::into_string),
        comment: body.comment,
        not_before: body.begin,
    };
    app.db.update_job(row.job_id as u64, version, &change, caller.is_platform_admin()).await?;
    answer(&app, row.job_id).await
}
