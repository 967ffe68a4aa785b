//! The port at which a scheduler or a worker tells of itself.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::http::header;
use axum::routing::get;

/// Serves `/metrics` and `/healthz` at `listen`.
pub async fn serve(listen: SocketAddr, render: impl Fn() -> String + Clone + Send + Sync + 'static) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(listen).await.with_context(|| format!("--metrics-listen {listen}"))?;
    let metrics = move || async move { ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], render()) };
    let app = Router::new().route("/metrics", get(metrics)).route("/healthz", get(|| async { "ok\n" }));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    Ok(())
}
