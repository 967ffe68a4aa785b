//! Jobs as users see them: get, list, attempts, events.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use berth_model::job::JobSpec;
use berth_model::preemption::{Preempted, Suspension};
use berth_model::resources::NodeAllocation;
use berth_model::state::{Hold, JobState};
use berth_model::verdict::Decision;
use berth_model::{Fault, JobRef, NodeName, hostlist};
use berth_store::StoreError;
use berth_store::jobs::read::{After, AttemptRow, JobFilter, JobRow, JobSort};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::{Params, Segment, Tagged};
use crate::paging::{self, Page};
use crate::problem::{Answer, Problem};

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job_id: u64,
    /// How users name it: `1234`, `1234_7` for a task of an array, or `1234+1` for a component of a heterogeneous job.
    pub name_ref: String,
    pub state: JobState,
    /// Who holds it, if it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    pub name: String,
    pub tenant: String,
    pub account: String,
    pub user: String,
    pub partition: String,
    pub qos: String,
    /// Of a pending job, as of the last plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Codes of what holds a pending job, the binding one first; `explain` has them in full.
    pub pending_reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<Timestamp>,
    pub submit_time: Timestamp,
    /// Not before this instant: the job's own begin time, or the end of a requeue's delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    pub time_limit_seconds: u64,
    pub nice: i32,
    /// Nodes of the present or last attempt: `n[1-4]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    /// Why it ended as it did, or why it was requeued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of the present or last attempt; 0 before the first.
    pub attempt: u32,
    /// Unique, sortable id of that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub restarts: u32,
    /// Seconds for which the present or last attempt has been suspended: they do not count against its time limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended_seconds: u64,
    /// It is requeued ahead of everything after a node's failure.
    pub is_expediting: bool,
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayView>,
    /// The array this job is a task of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_job_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_index: Option<u32>,
    /// Of a component of a heterogeneous job, the first one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentView>,
    /// Grows with each change; the ETag.
    pub version: i64,
}

fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}

/// An array's own part.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArrayView {
    pub tasks: u32,
    /// Indices that have not started: `3-9,12`.
    pub pending: String,
    /// How many they are.
    pub pending_tasks: u32,
    /// Most tasks at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<u32>,
    /// Indices that were cancelled together while they waited; they have no jobs of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// A job's place among the components of a heterogeneous job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ComponentView {
    /// The first component, which runs the script. The ids of the others follow.
    pub leader: u64,
    /// 0 for the leader.
    pub offset: u32,
    /// Components in all.
    pub size: u32,
}

/// A job with its spec.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    #[serde(flatten)]
    pub job: Job,
    pub spec: JobSpec,
    /// Fields of the spec that are left out because they are the owner's to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

/// An attempt: one run of a job on one set of nodes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub attempt: u32,
    pub run_id: String,
    pub state: JobState,
    pub nodes: String,
    pub allocation: Vec<NodeAllocation>,
    pub allocated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The plan that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Its last checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_at: Option<Timestamp>,
    /// It had to make room for another job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted: Option<Preempted>,
    /// It stands still, or is about to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Seconds for which it has been suspended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended_seconds: u64,
}

/// Something that happened to a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// Cursor of the event, to read on from.
    pub id: i64,
    pub at: Timestamp,
    /// `job.submitted`, `job.allocated`, `job.started`, `job.ended`, `job.requeued`, …
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<serde_json::Value>,
}

/// Filters of `GET /v1/jobs`. Repeating one means "or".
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListJobs {
    #[param(value_type = Vec<JobState>)]
    pub state: Vec<String>,
    pub account: Vec<String>,
    pub partition: Vec<String>,
    pub qos: Vec<String>,
    pub user: Vec<String>,
    /// Name, with `*` and `?`.
    pub name: Vec<String>,
    /// `key=value`, all of which must match.
    pub label: Vec<String>,
    /// Jobs that hold this node now.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub node: Option<String>,
    /// Tasks of this array.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub array_job_id: Option<u64>,
    /// Components of this heterogeneous job.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub het_job_id: Option<u64>,
    #[serde(deserialize_with = "crate::extract::query::instant")]
    #[param(value_type = Option<String>, format = DateTime)]
    pub submitted_after: Option<Timestamp>,
    #[serde(deserialize_with = "crate::extract::query::instant")]
    #[param(value_type = Option<String>, format = DateTime)]
    pub submitted_before: Option<Timestamp>,
    /// `job_id`, `submit_time`, `start_time`, `end_time` or `priority`, with ` desc` for descending; `job_id desc` if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub order_by: Option<String>,
    /// Items a page, 1 to 1000; 100 if absent.
    #[serde(deserialize_with = "crate::extract::query::one")]
    #[param(minimum = 1, maximum = 1000)]
    pub page_size: Option<u32>,
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub page_token: Option<String>,
    /// The tenant meant; only platform admins name another than their own, or `-` for all.
    #[serde(deserialize_with = "crate::extract::query::one")]
    pub tenant: Option<String>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(attempts)).routes(routes!(events)).routes(routes!(tasks))
}

/// Finds a job for an action: 404 if it is not there or another tenant's, 403 if it may not be done.
pub async fn lookup(app: &App, caller: &Caller, job: JobRef, action: Action) -> Answer<JobRow> {
    let tenant = caller.tenant_to_read(None)?.filter(|_| !caller.is_platform_admin());
    let row = app.db.job(tenant.as_deref(), job).await?;
    let is_manager = match action {
        Action::Read => false,
        Action::ReadContents | Action::Control => {
            let member = app.catalog.membership(&row.tenant, caller.subject.as_str()).await?;
            member.accounts.iter().any(|(account, is_manager)| *account == row.account && *is_manager)
        }
    };
    caller.may(action, &row, is_manager)?;
    Ok(row)
}

/// A job as shown.
pub fn show(row: JobRow) -> Answer<Job> {
    let state = row.state()?;
    let name_ref = match (row.array_job_id, row.array_index) {
        (Some(array), Some(index)) => format!("{array}_{index}"),
        _ => match (row.het_job_id, row.het_offset) {
            (Some(leader), Some(offset)) => format!("{leader}+{offset}"),
            _ => row.job_id.to_string(),
        },
    };
    let component = row.het_job_id.map(|leader| ComponentView {
        leader: leader as u64,
        offset: row.het_offset.unwrap_or(0) as u32,
        size: row.het_size.unwrap_or(0) as u32,
    });
    let hold = row.hold();
    let array = row.array_pending.map(|pending| ArrayView {
        tasks: row.array_total.unwrap_or(0) as u32,
        pending,
        pending_tasks: row.array_left.unwrap_or(0) as u32,
        throttle: row.array_throttle.map(|most| most as u32),
        cancelled: row.array_cancelled,
    });
    Ok(Job {
        job_id: row.job_id as u64,
        name_ref,
        state,
        hold,
        priority: row.priority,
        pending_reasons: if state == JobState::Pending { row.pending_reasons.unwrap_or_default() } else { Vec::new() },
        planned_start: row.planned_start.map(|at| at.0),
        name: row.name,
        tenant: row.tenant,
        account: row.account,
        user: row.user_name,
        partition: row.partition,
        qos: row.qos,
        submit_time: row.submit_time.0,
        eligible_time: row.not_before.map(|at| at.0),
        start_time: row.start_time.map(|at| at.0),
        end_time: row.end_time.map(|at| at.0),
        deadline: row.deadline.map(|at| at.0),
        time_limit_seconds: row.time_limit.max(0) as u64,
        nice: row.nice,
        nodes: row.nodes.as_deref().map(fold_nodes).transpose()?,
        exit_code: row.exit_code,
        exit_signal: row.exit_signal,
        reason: row.reason,
        attempt: row.attempt as u32,
        run_id: row.run_id,
        restarts: row.restarts as u32,
        suspended_seconds: row.suspended_ms.unwrap_or(0).max(0) as u64 / 1000,
        is_expediting: row.is_expedited && state == JobState::Pending,
        labels: row.labels.0,
        array,
        array_job_id: row.array_job_id.map(|id| id as u64),
        array_index: row.array_index.map(|i| i as u32),
        component,
        version: row.version,
    })
}

pub(crate) fn fold_nodes(names: &[String]) -> Answer<String> {
    let names =
        names.iter().map(|n| NodeName::new(n.clone())).collect::<Result<Vec<_>, _>>().map_err(|f| StoreError::Corrupt(f.to_string()))?;
    Ok(hostlist::fold(&names))
}

fn show_attempt(row: AttemptRow) -> Answer<Attempt> {
    Ok(Attempt {
        attempt: row.attempt as u32,
        run_id: row.run_id,
        state: row.state.parse().map_err(|_| StoreError::Corrupt(row.state.clone()))?,
        nodes: fold_nodes(&row.nodes)?,
        allocation: row.allocation.0,
        allocated_at: row.allocated_at.0,
        started_at: row.started_at.map(|at| at.0),
        ended_at: row.ended_at.map(|at| at.0),
        stop_reason: row.stop_reason,
        exit_code: row.exit_code,
        exit_signal: row.exit_signal,
        failure: row.failure,
        decision: row.decision.map(|decision| decision.0),
        checkpoint_at: row.checkpoint_at.map(|at| at.0),
        preempted: row.preempted.map(|preempted| preempted.0),
        suspension: row.suspension.map(|suspension| suspension.0),
        suspended_seconds: row.suspended_ms.max(0) as u64 / 1000,
    })
}

/// List jobs.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "jobs_list", tag = "jobs", params(ListJobs),
    responses((status = 200, body = Page<Job>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(q): Params<ListJobs>) -> Answer<Json<Page<Job>>> {
    caller.require_scope("jobs:read")?;
    let size = paging::page_size(q.page_size)?;
    let (sort, descending) = order(q.order_by.as_deref())?;
    for state in &q.state {
        JobState::from_str(state).map_err(|fault| Fault { field: "state".to_owned(), ..fault })?;
    }
    let labels = q.label.iter().map(|l| label(l)).collect::<Result<Vec<_>, Fault>>()?;
    let filter = JobFilter {
        tenant: caller.tenant_to_read(q.tenant.as_deref())?,
        states: q.state,
        accounts: q.account,
        partitions: q.partition,
        qos: q.qos,
        users: q.user,
        names: q.name,
        labels,
        submitted_after: q.submitted_after,
        submitted_before: q.submitted_before,
        node: q.node,
        array_job_id: q.array_job_id.map(|id| i64::try_from(id).unwrap_or(i64::MAX)),
        het_job_id: q.het_job_id.map(|id| i64::try_from(id).unwrap_or(i64::MAX)),
    };
    let after: Option<(i64, i64)> = q.page_token.map(|t| app.page_tokens.read(&t)).transpose()?;
    let after = after.map(|(value, job_id)| After { value, job_id });
    let mut rows = app.db.jobs(&filter, sort, descending, after, size + 1).await?;
    let has_more = rows.len() as i64 > size;
    rows.truncate(size as usize);
    let next_page_token = rows.last().filter(|_| has_more).map(|(value, row)| app.page_tokens.make(&(value, row.job_id)));
    let items = rows.into_iter().map(|(_, row)| show(row)).collect::<Answer<Vec<_>>>()?;
    Ok(Json(Page { items, next_page_token }))
}

fn order(text: Option<&str>) -> Result<(JobSort, bool), Fault> {
    let text = text.unwrap_or("job_id desc");
    let (key, descending) = match text.strip_suffix(" desc") {
        Some(key) => (key, true),
        None => (text.strip_suffix(" asc").unwrap_or(text), false),
    };
    let sort = match key {
        "job_id" => JobSort::JobId,
        "submit_time" => JobSort::SubmitTime,
        "start_time" => JobSort::StartTime,
        "end_time" => JobSort::EndTime,
        "priority" => JobSort::Priority,
        _ => {
            return Err(Fault::new(
                "invalid_order",
                "order_by",
                format!("{text:?} is not an order"),
                "use job_id, submit_time, start_time, end_time or priority, with \" desc\" for descending",
            ));
        }
    };
    Ok((sort, descending))
}

fn label(text: &str) -> Result<(String, String), Fault> {
    text.split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| Fault::new("invalid_label", "label", format!("{text:?} is not key=value"), "for example label=team=vision"))
}

/// Get a job with its spec.
#[utoipa::path(get, path = "/v1/jobs/{job_id}", operation_id = "jobs_get", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = JobDetail), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Tagged<JobDetail>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let version = row.version;
    let mut spec = app.db.job_spec(row.job_id as u64).await?;
    let mut hidden = Vec::new();
    if lookup(&app, &caller, job, Action::ReadContents).await.is_err() {
        spec.environment.clear();
        hidden.push("environment".to_owned());
        if spec.script.take().is_some() {
            hidden.push("script".to_owned());
        }
    }
    Ok(Tagged(JobDetail { job: show(row)?, spec, hidden }, version))
}

/// List a job's attempts, oldest first.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/attempts", operation_id = "jobs_attempts", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Page<Attempt>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn attempts(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Json<Page<Attempt>>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let items = app.db.attempts(row.job_id as u64).await?.into_iter().map(show_attempt).collect::<Answer<Vec<_>>>()?;
    Ok(Json(Page { items, next_page_token: None }))
}

/// Where to read a job's events from.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
struct EventParams {
    /// Only events after this id.
    #[serde(deserialize_with = "crate::extract::query::one")]
    after: Option<i64>,
}

/// List what happened to a job, oldest first.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/events", operation_id = "jobs_events", tag = "jobs", params(("job_id" = String, Path), EventParams),
    responses((status = 200, body = Page<JobEvent>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn events(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    Params(q): Params<EventParams>,
) -> Answer<Json<Page<JobEvent>>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let rows = app.db.job_events(row.job_id as u64, q.after.unwrap_or(0), 1000).await?;
    let items = rows
        .into_iter()
        .map(|e| JobEvent { id: e.seq, at: e.at.0, kind: e.kind, attempt: e.attempt, node: e.node, detail: e.detail })
        .collect();
    Ok(Json(Page { items, next_page_token: None }))
}

/// List the tasks of an array that have started.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/tasks", operation_id = "jobs_tasks", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Page<Job>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn tasks(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Json<Page<Job>>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let filter = JobFilter { tenant: Some(row.tenant), array_job_id: Some(row.job_id), ..JobFilter::default() };
    let rows = app.db.jobs(&filter, JobSort::JobId, false, None, 1000).await?;
    let items = rows.into_iter().map(|(_, row)| show(row)).collect::<Answer<Vec<_>>>()?;
    Ok(Json(Page { items, next_page_token: None }))
}
