//! Dry runs: when and where a job would start, without submitting it.

use axum::Json;
use axum::extract::{Request, State};
use berth_engine::DryRun;
use berth_model::Fault;
use berth_model::job::JobSpec;
use berth_model::verdict::{PlannedStart, Priority, Verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::explain::{self, Ahead, words};
use super::jobs::fold_nodes;
use super::reservations;
use super::submit::{read_job, require_submitter, split_query};
use crate::App;
use crate::admission::admit;
use crate::auth::Caller;
use crate::extract;
use crate::problem::{Answer, Problem};

/// What the next plan would say of the job if it were submitted now. It holds as long as nothing else happens.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DryRunAnswer {
    /// When the plan was made that this tells of.
    pub as_of: Timestamp,
    /// All of it, or of an array as many tasks as there is room for, would start at once.
    pub starts_now: bool,
    /// When it would start, and where; of an array its first task. Absent: nothing tells when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<PlannedStart>,
    /// Its place among the pending jobs; 1 is first.
    pub rank: u32,
    /// All of it in a sentence.
    pub summary: String,
    /// What would hold it, or the tasks of an array that do not start at once; the binding one first.
    pub verdicts: Vec<Verdict>,
    /// Absent if all of it would start at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    pub ahead: Vec<Ahead>,
    /// What was understood but would not be done: unsupported directives, for example.
    pub warnings: Vec<Fault>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(dry_run))
}

/// When and where would it start? Takes what a submission takes and refuses what a submission refuses, but submits nothing.
#[utoipa::path(post, path = "/v1/jobs/~dryRun", operation_id = "jobs_dry_run", tag = "jobs",
    params(("tenant" = Option<String>, Query, description = "The tenant meant; only platform admins name another than their own")),
    request_body(content((JobSpec = "application/json"), (String = "text/x-shellscript"))),
    responses((status = 200, body = DryRunAnswer), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn dry_run(State(app): State<App>, caller: Caller, request: Request) -> Answer<Json<DryRunAnswer>> {
    caller.require_scope("jobs:write")?;
    require_submitter(&caller)?;
    let (tenant, options) = split_query(&request);
    let tenant = caller.tenant_to_use(tenant.as_deref())?;
    let headers = request.headers().clone();
    let body = extract::read(request, &app).await?;
    let (spec, warnings) = read_job(&headers, &body, &options)?;
    let jobs = admit(&app, &caller, &tenant, spec).await?;
    let components = jobs.len();
    let (mut answer, as_of) = app.forecasts.ask(app.db.rehearse(&jobs).await?).await?;
    if let Some(verdict) = &mut answer.verdict {
        reservations::conceal(&app, &caller, &mut verdict.verdicts).await?;
        // Of an array that starts in part, the rest waits for what has started. There is no such job.
        let own: Vec<String> = (0..components as u64).map(|offset| format!("job/{}", verdict.job.0 + offset)).collect();
        verdict.verdicts.iter_mut().for_each(|verdict| verdict.holders.retain(|holder| !own.contains(holder)));
    }
    let ahead = match &answer.verdict {
        Some(verdict) => explain::ahead(&app, &tenant, verdict).await?,
        None => Vec::new(),
    };
    let nodes: Vec<String> = answer.starts.iter().flat_map(|start| &start.nodes).map(|part| part.node.to_string()).collect();
    let coming = app.db.nodes_not_up(&nodes).await?;
    let mut told = tell(answer, components, as_of, ahead, warnings);
    if !coming.is_empty() {
        told.summary.push_str(&format!(" It would wait for {} to power up.", fold_nodes(&coming)?));
    }
    Ok(Json(told))
}

fn tell(answer: DryRun, components: usize, as_of: Timestamp, ahead: Vec<Ahead>, warnings: Vec<Fault>) -> DryRunAnswer {
    let planned_start = answer.planned_start(as_of);
    let nodes = planned_start.as_ref().map(|planned| planned.nodes.as_str()).unwrap_or_default();
    let waits = answer.verdict.as_ref().map(words::summary);
    let summary = match (answer.starts.len(), waits) {
        (0, waits) => waits.unwrap_or_else(|| "It waits for its turn.".to_owned()),
        (1, None) => format!("It would start at once on {nodes}."),
        (_, None) if components > 1 => format!("All {components} components would start at once, on {nodes}."),
        (tasks, None) => format!("All {tasks} tasks would start at once, the first on {nodes}."),
        (tasks, Some(waits)) => format!("{tasks} of its tasks would start at once, the first on {nodes}. The rest: {waits}"),
    };
    let (starts_now, rank) = (!answer.starts.is_empty(), answer.rank);
    let (verdicts, priority) = answer.verdict.map_or((Vec::new(), None), |verdict| (verdict.verdicts, Some(verdict.priority)));
    DryRunAnswer { as_of, starts_now, planned_start, rank, summary, verdicts, priority, ahead, warnings }
}
