//! Why a job waits, or why it ran when and where it did. The verdicts are the engine's own, as the last plan made them.

use axum::Json;
use axum::extract::State;
use berth_model::JobRef;
use berth_model::state::JobState;
use berth_model::verdict::{PlannedStart, Priority, Verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{fold_nodes, lookup};
use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::Segment;
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
}

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

/// Why is it pending? When will it start?
#[utoipa::path(get, path = "/v1/jobs/{job_id}/explain", operation_id = "jobs_explain", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = 200, body = Explanation), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn explain(State(app): State<App>, caller: Caller, Segment(job): Segment<JobRef>) -> Answer<Json<Explanation>> {
    let row = lookup(&app, &caller, job, Action::Read).await?;
    let state = row.state()?;
    let job_id = row.job_id as u64;
    if state != JobState::Pending {
        let nodes = row.nodes.as_deref().map(fold_nodes).transpose()?.unwrap_or_default();
        let summary = match (row.start_time, &row.reason) {
            (Some(start), None) => format!("It is {state}; it started at {} on {nodes}.", start.0),
            (Some(start), Some(reason)) => format!("It is {state} ({reason}); it started at {} on {nodes}.", start.0),
            (None, Some(reason)) => format!("It is {state}: {reason}."),
            (None, None) => format!("It is {state}."),
        };
        return Ok(Json(Explanation {
            job_id,
            state,
            as_of: Timestamp::now(),
            summary,
            verdicts: Vec::new(),
            priority: None,
            ahead: Vec::new(),
            planned_start: None,
        }));
    }
    let Some((verdict, as_of)) = app.db.job_verdict(job_id).await? else {
        let summary = "It was submitted just now; the scheduler has not looked at it yet.".to_owned();
        return Ok(Json(Explanation {
            job_id,
            state,
            as_of: Timestamp::now(),
            summary,
            verdicts: Vec::new(),
            priority: None,
            ahead: Vec::new(),
            planned_start: None,
        }));
    };
    let ids: Vec<u64> = verdict.ahead.iter().map(|j| j.0).collect();
    let own = app.db.jobs_of_tenant(&row.tenant, &ids).await?;
    let ahead = ids.iter().map(|id| Ahead { job: *id, why: "higher priority".to_owned(), own: own.contains(id) }).collect();
    let mut summary = verdict.verdicts.first().map(|v| v.rule.clone()).unwrap_or_else(|| "It waits for its turn.".to_owned());
    if let Some(planned) = &verdict.planned_start {
        summary.push_str(&format!(" Planned to start at {} on {}.", planned.at, planned.nodes));
    }
    Ok(Json(Explanation {
        job_id,
        state,
        as_of: as_of.0,
        summary,
        verdicts: verdict.verdicts,
        priority: Some(verdict.priority),
        ahead,
        planned_start: verdict.planned_start,
    }))
}
