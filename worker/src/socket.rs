//! A job's own way to the service: a unix socket on which `srun` opens, follows and signals steps of this very job, no more.
//!
//! `/v1/steps…` becomes `/v1/jobs/<job>/steps…` with the job's token, which the job itself never sees.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use berth_model::JobId;
use berth_runtime::UserIds;
use tokio::net::UnixListener;

use crate::agent::Shared;

/// The socket; it closes when dropped.
pub struct JobSocket {
    path: PathBuf,
    token: Arc<Mutex<String>>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct Door {
    job: JobId,
    token: Arc<Mutex<String>>,
    shared: Arc<Shared>,
}

/// Longest request body, in bytes: a step's spec.
const BODY_LIMIT: usize = 8 << 20;

impl JobSocket {
    pub fn open(path: &Path, job: JobId, token: &str, shared: Arc<Shared>, owner: Option<UserIds>) -> io::Result<JobSocket> {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        if let Some(user) = owner {
            std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))?;
        }
        let token = Arc::new(Mutex::new(token.to_owned()));
        let door = Door { job, token: token.clone(), shared };
        let app = Router::new().fallback(forward).with_state(door);
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(JobSocket { path: path.to_owned(), token, serving })
    }

    pub fn set_token(&self, token: &str) {
        token.clone_into(&mut self.token.lock().expect("no panic while the lock is held"));
    }
}

impl Drop for JobSocket {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn forward(State(door): State<Door>, request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("", |p| p.as_str());
    let Some(rest) = path.strip_prefix("/v1/steps").filter(|rest| !rest.contains("..")) else {
        return problem(StatusCode::NOT_FOUND, "not_found", "this socket leads to the job's own steps alone");
    };
    let client = &door.shared.client;
    let url = format!("{}/v1/jobs/{}/steps{rest}", client.server(), door.job);
    let method = request.method().clone();
    let content_type = request.headers().get("content-type").cloned();
    let Ok(body) = axum::body::to_bytes(request.into_body(), BODY_LIMIT).await else {
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "a step's description takes up to 8 MiB");
    };
    let token = door.token.lock().expect("no panic while the lock is held").clone();
    let mut onward = client.http().request(method, url).bearer_auth(token).body(body);
    if let Some(kind) = content_type {
        onward = onward.header("content-type", kind);
    }
    match onward.send().await {
        Ok(response) => {
            let status = response.status();
            let kind = response.headers().get("content-type").cloned();
            let mut answer = (status, Body::from_stream(response.bytes_stream())).into_response();
            if let Some(kind) = kind {
                answer.headers_mut().insert("content-type", kind);
            }
            answer
        }
        Err(_) => {
            client.try_next_server();
            problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the service cannot be reached from this node")
        }
    }
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = serde_json::json!({ "status": status.as_u16(), "code": code, "detail": detail });
    (status, [("content-type", "application/problem+json")], body.to_string()).into_response()
}
