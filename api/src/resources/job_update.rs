//! Changes to a job. A pending one is admitted anew as it shall be, so that a change reaches nothing a submission could not.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use berth_model::array::ArraySpec;
use berth_model::job::{JobSpec, RequeueSpec};
use berth_model::resize::Keep;
use berth_model::resources::ResourceRequest;
use berth_model::state::JobState;
use berth_model::{Fault, JobRef, Name, hostlist};
use berth_store::StoreError;
use berth_store::jobs::change::{Admitted, JobChange};
use berth_store::jobs::control::wrong_state;
use berth_store::jobs::read::JobRow;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::job_control::{answer, lookup_for_change};
use super::jobs::Job;
use crate::App;
use crate::admission::{Owner, admit_for, check_nice, check_spec};
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Segment, Tagged, parse_json};
use crate::patch;
use crate::problem::{Answer, Problem};

/// A merge patch of the job's spec: a field that is absent stays, `null` takes it back to its default. While it runs a job changes only
/// in its name, comment, labels, nice, requeue and time limit, which its user may only lower; and by `resources.nodes` or `nodelist` one
/// with a script gives back all nodes but so many, or but those.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateJob {
    #[schema(max_length = 200)]
    pub name: Option<String>,
    pub comment: Option<String>,
    pub labels: Option<BTreeMap<String, Option<String>>>,
    pub wckey: Option<String>,
    pub nice: Option<i32>,
    /// Added to the priority as it is; set by administrators of the platform.
    pub site_factor: Option<i32>,
    #[schema(minimum = 1)]
    pub time_limit_seconds: Option<u64>,
    #[schema(minimum = 1)]
    pub time_min_seconds: Option<u64>,
    pub account: Option<Name>,
    pub partition: Option<Name>,
    pub qos: Option<Name>,
    pub begin: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    /// Most tasks of an array at once, 0 for as many as there are.
    pub array_throttle: Option<u32>,
    /// Only the fields that change.
    #[schema(value_type = Option<ResourceRequest>)]
    pub resources: Option<Map<String, Value>>,
    pub constraint: Option<String>,
    pub prefer: Option<String>,
    pub nodelist: Option<String>,
    pub exclude: Option<String>,
    pub licenses: Option<String>,
    pub reservation: Option<String>,
    /// In place of those it has.
    pub dependencies: Option<Vec<String>>,
    pub dependency_any: Option<bool>,
    #[schema(value_type = Option<RequeueSpec>)]
    pub requeue: Option<Map<String, Value>>,
}

/// Fields that change without a new admission.
const LIGHT: [&str; 6] = ["name", "comment", "labels", "wckey", "nice", "requeue"];

/// A patch without `If-Match` is made anew as often if the job has just changed otherwise.
const TRIES: usize = 5;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(update))
}

/// Change a job: nearly all of it while it is pending; name, comment, labels, nice, requeue, fewer nodes and a lower time limit while it runs.
#[utoipa::path(patch, path = "/v1/jobs/{job_id}", operation_id = "jobs_update", tag = "jobs", params(("job_id" = String, Path)), request_body = UpdateJob,
    responses((status = 200, body = Job), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(job): Segment<JobRef>,
    IfMatch(version): IfMatch,
    Body(mut patch): Body<Map<String, Value>>,
) -> Answer<Tagged<Job>> {
    let Apart { site_factor, array_throttle } = check(&caller, &mut patch)?;
    if let (Some(_), JobRef::Task { .. }) = (array_throttle, job) {
        return Err(no_array(&job.to_string()).into());
    }
    let mut tries = if version.is_some() { 1 } else { TRIES };
    loop {
        let row = lookup_for_change(&app, &caller, job).await?;
        let mut spec = app.db.job_spec(row.job_id as u64).await?;
        if let Some(most) = array_throttle {
            throttle(&row, &mut spec, most)?;
        }
        let (keep, patch) = keep(&row, &patch)?;
        let change = JobChange { site_factor, array_throttle, keep, ..change(&app, &caller, &row, spec, &patch).await? };
        tries -= 1;
        match app.db.change_job(row.job_id as u64, version.unwrap_or(row.version), &change, caller.is_platform_admin()).await {
            Err(StoreError::StaleVersion(_)) if tries > 0 => {}
            outcome => {
                outcome?;
                return answer(&app, row.job_id).await;
            }
        }
    }
}

/// What of a patch is no part of a spec.
struct Apart {
    site_factor: Option<i32>,
    array_throttle: Option<u32>,
}

fn no_array(job: &str) -> Fault {
    Fault::new("not_an_array", "array_throttle", format!("job {job} is no array"), "name the array itself, for example 1234")
}

/// The spec of an array with another `%n`.
fn throttle(row: &JobRow, spec: &mut JobSpec, most: u32) -> Result<(), Fault> {
    let (Some(text), Some(_)) = (&spec.array, row.array_total) else { return Err(no_array(&row.job_id.to_string())) };
    let array = ArraySpec { throttle: (most > 0).then_some(most), ..text.parse()? };
    spec.array = Some(array.to_string());
    Ok(())
}

/// What a job that runs shall keep of its nodes, taken out of the patch: its `nodes` or `nodelist`, if it says nothing else of resources.
fn keep(row: &JobRow, patch: &Map<String, Value>) -> Answer<(Option<Keep>, Map<String, Value>)> {
    let asked = patch.get("resources").and_then(Value::as_object);
    let is_count_alone =
        asked.is_none_or(|asked| asked.iter().all(|(field, value)| field == "nodes" || field == "max_nodes" && value.is_null()));
    let count = asked.and_then(|asked| asked.get("nodes")).and_then(Value::as_u64).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let list = patch.get("nodelist").and_then(Value::as_str);
    if row.state()? != JobState::Running || !is_count_alone || count.is_none() && list.is_none() {
        return Ok((None, patch.clone()));
    }
    let keep = match (list.map(hostlist::expand).transpose()?, count) {
        (Some(names), Some(count)) if names.len() != count as usize => {
            let detail = format!("nodelist names {} nodes, and {count} shall be kept", names.len());
            return Err(Fault::new("contradiction", "nodelist", detail, "give one of the two, or as many names as nodes").into());
        }
        (Some(names), _) => Some(Keep::Nodes(names.into_iter().collect())),
        (None, count) => count.map(Keep::Count),
    };
    let mut rest = patch.clone();
    rest.remove("resources");
    rest.remove("nodelist");
    Ok((keep, rest))
}

/// What can be said of the patch alone. Takes out of it what is no part of a spec.
fn check(caller: &Caller, patch: &mut Map<String, Value>) -> Answer<Apart> {
    let read: UpdateJob = parse_json(&serde_json::to_vec(patch).unwrap_or_default())?;
    if let Some(nice) = read.nice {
        check_nice(caller, nice)?;
    }
    if read.site_factor.is_some() {
        caller.require_platform_admin("jobs:write")?;
    }
    patch.remove("site_factor");
    patch.remove("array_throttle");
    Ok(Apart { site_factor: read.site_factor, array_throttle: read.array_throttle })
}

/// The job of `spec` as `patch` makes it.
pub async fn change(app: &App, caller: &Caller, row: &JobRow, spec: JobSpec, patch: &Map<String, Value>) -> Answer<JobChange> {
    // What others have written since is in columns; the spec follows.
    let current = JobSpec { nice: row.nice, time_limit_seconds: Some(row.time_limit.max(0) as u64), ..spec };
    let touched: BTreeSet<&str> = patch.keys().map(String::as_str).collect();
    let is_light = touched.iter().all(|field| LIGHT.contains(field));
    let is_short = touched.iter().all(|field| LIGHT.contains(field) || *field == "time_limit_seconds");
    let depends_anew = touched.contains("dependencies");
    let begins_anew = touched.contains("begin");
    let any_account = caller.is_tenant_admin() || !touched.contains("account");
    let spec = patch::merge(&current, patch.clone())?;
    // A running job's limit is only lowered, or extended by an operator, who may.
    if is_light || is_short && row.state()? != JobState::Pending {
        check_spec(&spec)?;
        let name = spec.name.clone().unwrap_or_else(|| row.name.clone());
        let time_limit = spec.time_limit_seconds.unwrap_or(row.time_limit.max(0) as u64);
        return Ok(JobChange { spec, name, time_limit, site_factor: None, array_throttle: None, keep: None, admitted: None });
    }
    if row.state()? != JobState::Pending {
        return Err(wrong_state(row.job_id as u64, &row.state, "pending").into());
    }
    let user = row.user_name.parse()?;
    let owner = Owner { tenant: &row.tenant, user: &user, any_account, sees_all: caller.is_platform_admin() };
    let job = admit_for(app, &owner, spec).await?;
    let (spec, name, time_limit) = (job.spec.clone(), job.name.clone(), job.time_limit);
    let admitted = Some(Box::new(Admitted { job, depends_anew, begins_anew }));
    Ok(JobChange { spec, name, time_limit, site_factor: None, array_throttle: None, keep: None, admitted })
}
