//! The worker protocol: register, desired state by long poll, reports, logs. Kept out of the SDKs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use berth_model::worker::{DesiredState, LogChunks, NodeToken, Register, Registered, ReportBatch, ReportsApplied};
use berth_model::{Fault, NodeName};
use berth_store::logs::LogKey;
use berth_store::wake::Topic;
use berth_store::workers::Desired;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::join_tokens;
use crate::App;
use crate::auth::NodeCaller;
use crate::extract::{Body, Params};
use crate::problem::{Answer, Problem};

/// Life of a node's token, in seconds.
const NODE_TOKEN_SECONDS: u64 = 3600;
/// Longest long poll, in seconds.
const MAX_WAIT: u64 = 30;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(renew))
        .routes(routes!(assignments))
        .routes(routes!(reports))
        .routes(routes!(logs))
}

/// Register a node, with a join token (first time) or the node's own token (again).
#[utoipa::path(post, path = "/v1/worker/register", operation_id = "worker_register", tag = "worker", request_body = Register,
    responses((status = 200, body = Registered), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn register(State(app): State<App>, headers: axum::http::HeaderMap, Body(body): Body<Register>) -> Answer<Json<Registered>> {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.strip_prefix("Bearer "))
        .ok_or_else(|| Problem::unauthorized("the request carries no token"))?;
    let by_own_token = match app.verifier.claims(token, Some(crate::auth::WORKER_AUDIENCE)).await {
        Ok(claims) => claims.iss == crate::auth::SERVICE_ISSUER && claims.sub == body.node.as_str(),
        Err(_) => false,
    };
    if !by_own_token && !app.db.use_join_token(&join_tokens::hash(token), body.node.as_str()).await? {
        return Err(Problem::unauthorized(format!("the token does not let {} in", body.node))
            .help("make one with `berth token --join`; it may be used up, expired or for other node names"));
    }
    if body.inventory.cpus.is_empty() || body.inventory.cpus.len() > 65_536 || body.inventory.gpus.len() > 1024 {
        return Err(Fault::new(
            "invalid_inventory",
            "inventory",
            "the inventory is not that of a node",
            "give at least one CPU, at most 65536 CPUs and 1024 GPUs",
        )
        .into());
    }
    let skew = Timestamp::now().as_millisecond() - body.clock.as_millisecond();
    app.db.register_node(&body, -skew).await?;
    let (token, expires_at) = node_token(&app, &body.node)?;
    Ok(Json(Registered { token, expires_at, settings: app.db.worker_settings().await? }))
}

fn node_token(app: &App, node: &NodeName) -> Answer<(String, Timestamp)> {
    let token = app.service_key.node_token(node, NODE_TOKEN_SECONDS).map_err(|error| {
        tracing::error!(%error, "a node's token could not be signed");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the token could not be made")
    })?;
    Ok((token, Timestamp::now() + Duration::from_secs(NODE_TOKEN_SECONDS)))
}

/// Renew the node's token.
#[utoipa::path(post, path = "/v1/worker/token", operation_id = "worker_token", tag = "worker",
    responses((status = 200, body = NodeToken), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn renew(State(app): State<App>, NodeCaller(node): NodeCaller) -> Answer<Json<NodeToken>> {
    app.db.touch_node(node.as_str()).await?;
    let (token, expires_at) = node_token(&app, &node)?;
    Ok(Json(NodeToken { token, expires_at }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
struct Poll {
    /// Cursor of the state the worker has; absent: answer at once.
    #[serde(deserialize_with = "crate::extract::query::one")]
    cursor: Option<i64>,
    /// Seconds to wait for a change, at most 30.
    #[serde(deserialize_with = "crate::extract::query::one")]
    wait_seconds: Option<u64>,
}

/// All that should be on the node; 204 if nothing changed within the wait.
#[utoipa::path(get, path = "/v1/worker/assignments", operation_id = "worker_assignments", tag = "worker", params(Poll),
    responses((status = 200, body = DesiredState), (status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn assignments(State(app): State<App>, NodeCaller(node): NodeCaller, Params(poll): Params<Poll>) -> Answer<Response> {
    let mut wake = app.db.wake.subscribe(Topic::Node(node.to_string()));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(poll.wait_seconds.unwrap_or(0).min(MAX_WAIT));
    let mut cursor = app.db.touch_node(node.as_str()).await?;
    while poll.cursor == Some(cursor) {
        let slice = deadline.min(tokio::time::Instant::now() + Duration::from_secs(1));
        let mut stopping = app.stopping.clone();
        let woken = tokio::select! {
            changed = tokio::time::timeout_at(slice, wake.changed()) => changed.is_ok(),
            _ = stopping.wait_for(|stop| *stop) => return Ok(StatusCode::NO_CONTENT.into_response()),
        };
        if !woken && tokio::time::Instant::now() >= deadline {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        cursor = app.db.node_cursor(node.as_str()).await?;
    }
    let Desired { cursor, is_draining, reboot, mut assignments } = app.db.desired_state(node.as_str()).await?;
    for assignment in &mut assignments {
        let life = assignment.context.time_limit_seconds + 86_400;
        assignment.job_token = app.service_key.job_token(assignment.job_id, assignment.attempt, life).unwrap_or_default();
    }
    let settings = app.db.worker_settings().await?;
    Ok(Json(DesiredState { cursor: cursor.to_string(), settings, is_draining, reboot, assignments }).into_response())
}

/// Report facts. Each is applied at most once, in order of its number.
#[utoipa::path(post, path = "/v1/worker/reports", operation_id = "worker_reports", tag = "worker", request_body = ReportBatch,
    responses((status = 200, body = ReportsApplied), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn reports(State(app): State<App>, NodeCaller(node): NodeCaller, Body(batch): Body<ReportBatch>) -> Answer<Json<ReportsApplied>> {
    let applied = app.db.apply_reports(node.as_str(), &batch).await?;
    for cause in &applied.launch_failures {
        app.metrics.launch_failed(cause);
    }
    Ok(Json(applied.answer))
}

/// Store pieces of output.
#[utoipa::path(post, path = "/v1/worker/logs", operation_id = "worker_logs", tag = "worker", request_body = LogChunks,
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn logs(State(app): State<App>, NodeCaller(node): NodeCaller, Body(body): Body<LogChunks>) -> Answer<StatusCode> {
    let mut jobs = std::collections::BTreeSet::new();
    for chunk in &body.chunks {
        jobs.insert((chunk.job_id.0, chunk.attempt));
    }
    // A node writes output only of attempts that were given to it.
    for (job, attempt) in &jobs {
        if !app.db.ran_on(*job, *attempt, node.as_str()).await? {
            return Err(Problem::not_found(format!("attempt {attempt} of job {job} on {node}")));
        }
    }
    for chunk in body.chunks {
        let bytes = base64::engine::general_purpose::STANDARD.decode(&chunk.bytes).map_err(|_| {
            Fault::new("invalid_field", "chunks.bytes", "the bytes are not base64", "encode them with the standard alphabet and padding")
        })?;
        let key = LogKey { job: chunk.job_id, attempt: chunk.attempt, step: chunk.step, task: chunk.task, stream: chunk.stream };
        app.logs.put(&key, chunk.offset, bytes.into()).await?;
    }
    for (job, _) in jobs {
        app.db.wake.notify(Topic::Job(job));
    }
    Ok(StatusCode::NO_CONTENT)
}
