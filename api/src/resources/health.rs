//! Outside `/v1`: health, readiness, metrics and the development issuer's keys.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::get};

use crate::App;
use crate::problem::{Answer, Problem};

pub fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/.well-known/jwks.json", get(jwks))
}

async fn ready(State(app): State<App>) -> Answer<&'static str> {
    if *app.stopping.borrow() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "this replica is about to stop"));
    }
    app.db.ready().await?;
    Ok("ready\n")
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|a| a.to_str().ok()).unwrap_or("");
    let is_classic = accept.contains("text/plain") && !accept.contains("openmetrics");
    let text = app.metrics.render(&app.db, is_classic).await;
    let kind =
        if is_classic { "text/plain; version=0.0.4; charset=utf-8" } else { "application/openmetrics-text; version=1.0.0; charset=utf-8" };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn jwks(State(app): State<App>) -> Answer<Json<serde_json::Value>> {
    app.dev_jwks.clone().map(Json).ok_or_else(|| Problem::not_found("development issuer"))
}
