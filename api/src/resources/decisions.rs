//! The record of decisions, for replays: all that the engine was told from a checkpoint on, and digests of what it answered.

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_model::JobRef;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::lookup;
use crate::App;
use crate::auth::{Action, Caller};
use crate::extract::Params;
use crate::problem::{Answer, Problem};

/// Which decision. One of the two.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct RecordParams {
    /// Up to the last plan at this time; now if neither is given.
    #[serde(deserialize_with = "crate::extract::query::instant")]
    #[param(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// Up to the plan that last started this job.
    #[serde(deserialize_with = "crate::extract::query::one")]
    #[param(value_type = Option<String>)]
    pub job: Option<JobRef>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(record))
}

/// Get the record of decisions: zstd of JSON lines, from the checkpoint before the decision asked for. `berth replay` reads it.
#[utoipa::path(get, path = "/v1/decisions/record", operation_id = "decisions_record", tag = "policy", params(RecordParams),
    responses((status = 200, body = String, content_type = "application/octet-stream"), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn record(State(app): State<App>, caller: Caller, Params(params): Params<RecordParams>) -> Answer<Response> {
    caller.require_platform_admin("policy:read")?;
    let at = match (params.at, params.job) {
        (Some(_), Some(_)) => {
            let both = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "conflicting_parameters", "at and job are both given");
            return Err(both.field("job").help("name a time or a job"));
        }
        (at, None) => at.unwrap_or_else(Timestamp::now),
        (None, Some(job)) => {
            let row = lookup(&app, &caller, job, Action::Read).await?;
            let last = app.db.attempts(row.job_id as u64).await?.pop();
            match last.and_then(|attempt| attempt.decision) {
                Some(decision) => decision.0.at,
                None => return Err(Problem::not_found("decision about a job that never started")),
            }
        }
    };
    let Some(range) = app.db.decisions_until(at).await? else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "not_recorded", format!("no record of decisions reaches back to {at}"))
            .help("decision_keep_seconds of the policy says how long it is kept; the first is made when a scheduler begins to lead"));
    };
    let body = Body::from_stream(app.db.decision_bodies(range));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}
