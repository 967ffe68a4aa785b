//! Why a job waits, or why it ran when and where it did. The verdicts are the engine's own, as the last plan made them.

pub(super) mod words;

use axum::Json;
use axum::extract::State;
use berth_model::preemption::{PreemptMode, Preempted};
use berth_model::state::JobState;
use berth_model::verdict::{Decision, JobVerdict, PlannedStart, Priority, Verdict};
use berth_model::{JobId, JobRef};
use berth_store::jobs::read::{AttemptRow, JobRow};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::words::{headline, past, summary};
use super::jobs::{fold_nodes, lookup};
use super::reservations;
use crate::App;
use crate::advice::{self, Advice};
use crate::auth::{Action, Caller};
use crate::extract::{Params, Segment};
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    pub job_id: u64,
    pub state: JobState,
    /// When the plan was made that this tells of.
    pub as_of: Timestamp,
    /// All of it in a sentence.
    pub summary: String,
    /// What holds it, the binding one first.
    pub verdicts: Vec<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    pub ahead: Vec<Ahead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<PlannedStart>,
    /// Of a job that has started: how its last start came about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Whom it preempted, the last first, at most twenty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<Victim>,
    /// Which of its attempts were preempted, and for whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted: Vec<PreemptedAttempt>,
    /// What would make a pending job start sooner, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// A job that had to make room.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Victim {
    pub job: u64,
    pub mode: PreemptMode,
    pub at: Timestamp,
    /// It is the caller's tenant's own.
    pub own: bool,
}

/// An attempt that had to make room.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PreemptedAttempt {
    pub attempt: u32,
    #[serde(flatten)]
    pub preempted: Preempted,
}

/// Why a job started then and there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Start {
    /// When it was given its nodes.
    pub at: Timestamp,
    pub nodes: String,
    /// The plan that decided it: `berth replay --job` makes it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What held it when it was last looked at before; empty if nothing ever did.
    pub waited_for: Vec<Verdict>,
    /// Its priority and its place in the queue then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Jobs ahead of it in the queue that stayed waiting, at most ten.
    pub passed: Vec<Ahead>,
}

/// Victims told of, at the most.
const MOST_VICTIMS: i64 = 20;

/// A job that is ahead in the queue.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Ahead {
    pub job: u64,
    pub why: String,
    /// It is the caller's tenant's own.
    pub own: bool,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(explain))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ExplainQuery {
    /// Try nearby changes too (a shorter limit, fewer nodes, another partition, QOS or GPU type) and tell which would start sooner, and
    /// when. Takes up to some seconds.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub advice: Option<bool>,
}

/// Why is it pending? When will it start, and what would make it start sooner? Of a job that has started: why then, and why there?
#[utoipa::path(get, path = "/v1/jobs/{job_id}/explain", operation_id = "jobs_explain", tag = "jobs", params(("job_id" = String, Path), ExplainQuery),
    responses((status = 200, body = Explanation), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn explain(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    Params(query): Params<ExplainQuery>,
) -> Answer<Json<Explanation>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let state = row.state()?;
    let attempts = app.db.attempts(row.job_id as u64).await?;
    let mut explanation = match state {
        JobState::Pending => pending(&app, &caller, &row, attempts.last()).await?,
        _ => started(&app, &caller, &row, state, attempts.last()).await?,
    };
    if state == JobState::Pending && query.advice == Some(true) {
        explanation.advice = Some(advice::advise(&app, &caller, &row).await?);
    }
    Ok(Json(preemption(&app, &row, attempts, explanation).await?))
}

async fn pending(app: &App, caller: &Caller, row: &JobRow, last: Option<&AttemptRow>) -> Answer<Explanation> {
    let job_id = row.job_id as u64;
    let Some((mut verdict, as_of)) = app.db.job_verdict(job_id).await? else {
        let summary = "It was submitted just now; the scheduler has not looked at it yet.".to_owned();
        return Ok(Explanation::of(job_id, JobState::Pending, summary));
    };
    reservations::conceal(app, caller, &mut verdict.verdicts).await?;
    let ahead = ahead(app, &row.tenant, &verdict).await?;
    let mut summary = summary(&verdict);
    // Why it is here again.
    if let Some(failure) = last.filter(|last| last.ended_at.is_some()).and_then(|last| last.failure.as_ref()) {
        summary.push_str(&format!(" Its last start failed: {failure}."));
    }
    Ok(Explanation {
        as_of: as_of.0,
        verdicts: verdict.verdicts,
        priority: Some(verdict.priority),
        ahead,
        planned_start: verdict.planned_start,
        ..Explanation::of(job_id, JobState::Pending, summary)
    })
}

/// A job that runs, has run, or ended without.
async fn started(app: &App, caller: &Caller, row: &JobRow, state: JobState, attempt: Option<&AttemptRow>) -> Answer<Explanation> {
    let job_id = row.job_id as u64;
    let nodes = row.nodes.as_deref().map(fold_nodes).transpose()?.unwrap_or_default();
    let mut summary = match (row.start_time, &row.reason) {
        (Some(start), None) => format!("{}; it started at {} on {nodes}.", words::it_is(state), start.0),
        (Some(start), Some(reason)) => format!("{} ({reason}); it started at {} on {nodes}.", words::it_is(state), start.0),
        (None, Some(reason)) => format!("{}: {reason}.", words::it_is(state)),
        (None, None) => format!("{}.", words::it_is(state)),
    };
    if state == JobState::Allocated {
        let coming = app.db.nodes_not_up(row.nodes.as_deref().unwrap_or_default()).await?;
        if !coming.is_empty() {
            summary.push_str(&format!(" It waits for {} to power up.", fold_nodes(&coming)?));
        }
    }
    let Some(attempt) = attempt else { return Ok(Explanation::of(job_id, state, summary)) };
    // A task of an array waited as a part of its array.
    let mut last = app.db.job_verdict(job_id).await?;
    if let (None, Some(array)) = (&last, row.array_job_id) {
        last = app.db.job_verdict(array as u64).await?;
    }
    let mut last = last.map(|(verdict, _)| verdict);
    if let Some(last) = &mut last {
        reservations::conceal(app, caller, &mut last.verdicts).await?;
    }
    let ahead: Vec<u64> = last.iter().flat_map(|v| &v.ahead).map(|job| job.0).collect();
    let passed = app.db.jobs_left_waiting(&ahead, attempt.allocated_at).await?;
    match last.as_ref().and_then(|v| v.verdicts.first()) {
        None => summary.push_str(" Nothing held it."),
        Some(verdict) => summary.push_str(&format!(" Until then {}", past(&headline(verdict)))),
    }
    if !passed.is_empty() {
        let names = passed.iter().map(|job| format!("job {job}")).collect::<Vec<_>>().join(", ");
        summary.push_str(&format!(" It went before {names}, ahead in the queue, which could not start yet, and delayed none of them."));
    }
    let passed = own_and_others(app, &row.tenant, passed).await?;
    let start = Start {
        at: attempt.allocated_at.0,
        nodes: fold_nodes(&attempt.nodes)?,
        decision: attempt.decision.as_ref().map(|decision| decision.0.clone()),
        waited_for: last.as_ref().map(|v| v.verdicts.clone()).unwrap_or_default(),
        priority: last.map(|v| v.priority),
        passed,
    };
    Ok(Explanation { start: Some(start), ..Explanation::of(job_id, state, summary) })
}

/// Whom the job had suspended, and who has it suspended.
async fn suspension(app: &App, row: &JobRow, last: Option<&AttemptRow>, explanation: &mut Explanation) -> Answer<()> {
    let still = app.db.suspended_for(row.job_id as u64, MOST_VICTIMS).await?;
    let victims = still.into_iter().map(|(job, at)| (job, PreemptMode::Suspend, at)).collect();
    tell_victims(app, row, victims, explanation, |names| format!(" It had {names} suspended.")).await?;
    let Some(suspension) = last.and_then(|attempt| attempt.suspension.as_ref()) else { return Ok(()) };
    let is_own = match suspension.for_job {
        Some(job) => is_own(app, row, job).await?,
        None => false,
    };
    explanation.summary.push_str(&words::suspended(&suspension.0, is_own));
    Ok(())
}

/// Adds those who had to make room for the job: which, how and when. `said` makes a sentence of their names.
async fn tell_victims(
    app: &App,
    row: &JobRow,
    victims: Vec<(u64, PreemptMode, Timestamp)>,
    explanation: &mut Explanation,
    said: impl FnOnce(&str) -> String,
) -> Answer<()> {
    if victims.is_empty() {
        return Ok(());
    }
    let own = app.db.jobs_of_tenant(&row.tenant, &victims.iter().map(|(job, ..)| *job).collect::<Vec<_>>()).await?;
    let names = victims.iter().map(|(job, ..)| format!("job {job}")).collect::<Vec<_>>().join(", ");
    explanation.summary.push_str(&said(&names));
    explanation.victims.extend(victims.into_iter().map(|(job, mode, at)| Victim { job, mode, at, own: own.contains(&job) }));
    Ok(())
}

/// The other job is of the job's own tenant.
async fn is_own(app: &App, row: &JobRow, other: JobId) -> Answer<bool> {
    Ok(!app.db.jobs_of_tenant(&row.tenant, &[other.0]).await?.is_empty())
}

/// Whom the job preempted, and who preempted it.
async fn preemption(app: &App, row: &JobRow, attempts: Vec<AttemptRow>, mut explanation: Explanation) -> Answer<Explanation> {
    let victims = app.db.preempted_for(row.job_id as u64, MOST_VICTIMS).await?;
    let victims = victims.into_iter().map(|(job, preempted)| (job, preempted.mode, preempted.at)).collect();
    tell_victims(app, row, victims, &mut explanation, |names| format!(" It preempted {names}.")).await?;
    suspension(app, row, attempts.last(), &mut explanation).await?;
    for attempt in attempts {
        if let Some(preempted) = attempt.preempted {
            explanation.preempted.push(PreemptedAttempt { attempt: attempt.attempt as u32, preempted: preempted.0 });
        }
    }
    if let Some(last) = explanation.preempted.last().map(|last| &last.preempted) {
        let is_own = is_own(app, row, last.for_job).await?;
        let who = if is_own { format!("Job {}", last.for_job) } else { "A job of another tenant".to_owned() };
        let why = if last.reclaimed { ", whose tenant took back what it had lent" } else { "" };
        explanation.summary.push_str(&format!(" {who} preempted it at {}{why}.", last.at));
    }
    Ok(explanation)
}

async fn own_and_others(app: &App, tenant: &str, jobs: Vec<u64>) -> Answer<Vec<Ahead>> {
    let own = app.db.jobs_of_tenant(tenant, &jobs).await?;
    Ok(jobs.into_iter().map(|job| Ahead { job, why: "higher priority".to_owned(), own: own.contains(&job) }).collect())
}

impl Explanation {
    fn of(job_id: u64, state: JobState, summary: String) -> Explanation {
        let as_of = Timestamp::now();
        let (verdicts, ahead) = (Vec::new(), Vec::new());
        Explanation {
            job_id,
            state,
            as_of,
            summary,
            verdicts,
            priority: None,
            ahead,
            planned_start: None,
            start: None,
            victims: Vec::new(),
            preempted: Vec::new(),
            advice: None,
        }
    }
}

/// The jobs ahead, as far as the tenant may see them.
pub(super) async fn ahead(app: &App, tenant: &str, verdict: &JobVerdict) -> Answer<Vec<Ahead>> {
    own_and_others(app, tenant, verdict.ahead.iter().map(|j| j.0).collect()).await
}
