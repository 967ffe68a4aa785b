//! Putting a replica together and serving it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use berth_store::Db;
use berth_store::keys::SigningKey;
use berth_store::logs::LogStore;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::{Layer, ServiceExt as _};

use crate::auth::{self, IssuerConfig, ServiceKey, Verifier};
use crate::problem::Problem;
use crate::{App, Parts, resources, verbs};

/// What a replica needs beside its database.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    pub listen: SocketAddr,
    /// Where output is kept; see [`LogStore::open`].
    pub logs: String,
    pub issuers: Vec<IssuerConfig>,
    /// Key of the development issuer, if development tokens are accepted.
    pub dev_key: Option<ServiceKey>,
}

/// A replica that serves.
pub struct Server {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Stops taking requests, ends the long polls, and waits for what is under way, ten seconds at most.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(Duration::from_secs(10), self.task).await;
    }
}

/// Longest body of most routes, in bytes.
const BODY_LIMIT: usize = 8 << 20;
/// Longest body of a batch submission, of reports and of logs, in bytes.
const LARGE_BODY_LIMIT: usize = 16 << 20;

/// Starts a replica.
pub async fn start(db: Db, config: ApiConfig) -> Result<Server, String> {
    let service_key = service_key(&db).await?;
    let mut issuers = config.issuers;
    issuers.push(service_key.issuer(auth::SERVICE_ISSUER, auth::WORKER_AUDIENCE));
    if let Some(key) = &config.dev_key {
        issuers.push(key.issuer(auth::DEV_ISSUER, auth::AUDIENCE));
    }
    let (stop, stopping) = watch::channel(false);
    let app = App::new(Parts {
        logs: LogStore::open(&config.logs).map_err(|e| e.to_string())?,
        verifier: Verifier::new(issuers),
        dev_jwks: config.dev_key.as_ref().map(|k| serde_json::json!({ "keys": [k.jwk()] })),
        catalog: crate::catalog::Catalog::new(db.clone()),
        submissions: crate::batch::Submissions::start(db.clone()),
        simulations: crate::simulate::Simulations::new(db.clone()),
        forecasts: crate::forecast::Forecasts::new(db.clone()),
        page_tokens: crate::paging::PageTokens::new(Sha256::digest(service_key.pkcs8()).into()),
        metrics: crate::metrics::ApiMetrics::default(),
        service_key,
        stopping: stopping.clone(),
        db,
    });
    let listener = TcpListener::bind(config.listen).await.map_err(|e| format!("cannot listen on {}: {e}", config.listen))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let service = middleware::map_request(|request: Request| async { verbs::rewrite(request) }).layer(router(app));
    let mut stopped = stopping;
    let task = tokio::spawn(async move {
        let make = axum::ServiceExt::<Request>::into_make_service(service.boxed_clone());
        let serving = axum::serve(listener, make).with_graceful_shutdown(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        });
        if let Err(error) = serving.await {
            tracing::error!(%error, "serving ended");
        }
    });
    Ok(Server { address, stop, task })
}

/// The replicas' common key; the first one to start makes it.
async fn service_key(db: &Db) -> Result<ServiceKey, String> {
    let mut keys = db.signing_keys().await.map_err(|e| e.to_string())?;
    if keys.is_empty() {
        let key = ServiceKey::generate()?;
        db.add_first_signing_key(&SigningKey { kid: key.kid().to_owned(), pkcs8: key.pkcs8().to_vec() })
            .await
            .map_err(|e| e.to_string())?;
        keys = db.signing_keys().await.map_err(|e| e.to_string())?;
    }
    let newest = keys.into_iter().next().ok_or("there is no signing key")?;
    ServiceKey::from_pkcs8(newest.pkcs8)
}

/// All routes with their middleware.
pub fn router(app: App) -> Router {
    let (v1, _) = resources::routes().split_for_parts();
    // Serves the document itself too.
    let docs = utoipa_swagger_ui::SwaggerUi::new("/docs")
        .external_url_unchecked("/openapi.json", serde_json::to_value(crate::openapi::document()).unwrap_or_default());
    v1.merge(resources::health::routes())
        .merge(docs)
        .fallback(|| async { Problem::not_found("route").help("the routes are listed in /openapi.json, to be read at /docs") })
        .method_not_allowed_fallback(|| async {
            Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "the route does not take this method")
                .help("the methods are listed in /openapi.json")
        })
        .layer(middleware::from_fn(body_limit))
        .layer(DefaultBodyLimit::max(LARGE_BODY_LIMIT))
        .route_layer(middleware::from_fn_with_state(app.clone(), measure))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong inside the service").into_response()
        }))
        .layer(middleware::from_fn(crate::request_id::layer))
        .with_state(app)
}

/// A declared length beyond the route's limit is refused before anything is read.
async fn body_limit(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_large = path.ends_with("/~submitMany") || path.starts_with("/v1/worker/");
    let limit = if is_large { LARGE_BODY_LIMIT } else { BODY_LIMIT };
    let length = request.headers().get(http::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    if length.is_some_and(|l| l > limit) {
        return Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is larger than this route takes")
            .help("a job takes up to 8 MiB, many jobs in one call up to 16 MiB")
            .into_response();
    }
    next.run(request).await
}

async fn measure(State(app): State<App>, path: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let operation = path.map_or_else(|| "none".to_owned(), |p| format!("{} {}", request.method(), verbs::public_path(p.as_str())));
    let response = next.run(request).await;
    app.metrics.request(&operation, response.status().as_u16(), begun.elapsed());
    response
}
