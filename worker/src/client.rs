//! The worker's side of the HTTP protocol: one place for addresses, tokens and retries.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use berth_model::worker::{DesiredState, LogChunks, NodeToken, Register, Registered, ReportBatch, ReportsApplied};
use berth_runtime::fence::since_boot;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a request came to.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody answered, or not sensibly: try again.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    #[error("the service answered {status}: {code}: {detail}")]
    Refused { status: u16, code: String, detail: String },
}

impl CallError {
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, CallError::Refused { status: 401, .. })
    }

    pub fn has_code(&self, wanted: &str) -> bool {
        matches!(self, CallError::Refused { code, .. } if code == wanted)
    }
}

/// The service as this node sees it.
pub struct Client {
    http: reqwest::Client,
    servers: Vec<String>,
    /// Index of the server that answered last.
    current: AtomicUsize,
    /// The node's token, kept on disk for the next start.
    token: Mutex<Option<String>>,
    token_file: PathBuf,
    /// When the last answered request was sent, since boot: from then on nobody knows more of us.
    contact: Mutex<Duration>,
}

/// Longest time for an answer beside what a long poll asks for.
const PATIENCE: Duration = Duration::from_secs(10);

impl Client {
    pub fn new(servers: Vec<String>, token_file: PathBuf) -> Client {
        let token = std::fs::read_to_string(&token_file).ok().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(3))
            .tcp_nodelay(true)
            .user_agent(concat!("berth-worker/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("the client has no settings that can fail");
        Client { http, servers, current: AtomicUsize::new(0), token: Mutex::new(token), token_file, contact: Mutex::new(since_boot()) }
    }

    /// When the last answered request was sent.
    pub fn last_contact(&self) -> Duration {
        *self.contact.lock().expect("no panic while the lock is held")
    }

    pub fn has_token(&self) -> bool {
        self.token.lock().expect("no panic while the lock is held").is_some()
    }

    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Base URL of the server in use.
    pub fn server(&self) -> &str {
        &self.servers[self.current.load(Ordering::Relaxed) % self.servers.len()]
    }

    pub fn try_next_server(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    fn keep_token(&self, token: &str) {
        let write = || -> std::io::Result<()> {
            use std::os::unix::fs::OpenOptionsExt;
            let draft = self.token_file.with_extension("new");
            let mut file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
            std::io::Write::write_all(&mut file, token.as_bytes())?;
            std::fs::rename(draft, &self.token_file)
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "the node's token could not be kept for the next start");
        }
        *self.token.lock().expect("no panic while the lock is held") = Some(token.to_owned());
    }

    /// Registers with `join_token`, or with the node's own.
    pub async fn register(&self, body: &Register, join_token: Option<&str>) -> Result<Registered, CallError> {
        let registered: Registered =
            self.call(Method::POST, "/v1/worker/register", Some(body), join_token, Duration::ZERO).await?.unwrap_or_refuse()?;
        self.keep_token(&registered.token);
        Ok(registered)
    }

    pub async fn renew_token(&self) -> Result<(), CallError> {
        let renewed: NodeToken =
            self.call(Method::POST, "/v1/worker/token", None::<&()>, None, Duration::ZERO).await?.unwrap_or_refuse()?;
        self.keep_token(&renewed.token);
        Ok(())
    }

    /// What should run; `None`: nothing changed within the wait.
    pub async fn assignments(&self, cursor: Option<&str>, wait_seconds: u64) -> Result<Option<DesiredState>, CallError> {
        let path = match cursor {
            Some(cursor) => format!("/v1/worker/assignments?cursor={cursor}&wait_seconds={wait_seconds}"),
            None => "/v1/worker/assignments".to_owned(),
        };
        Ok(self.call(Method::GET, &path, None::<&()>, None, Duration::from_secs(wait_seconds)).await?.0)
    }

    pub async fn report(&self, batch: &ReportBatch) -> Result<ReportsApplied, CallError> {
        self.call(Method::POST, "/v1/worker/reports", Some(batch), None, Duration::ZERO).await?.unwrap_or_refuse()
    }

    pub async fn upload(&self, chunks: &LogChunks) -> Result<(), CallError> {
        self.call::<_, serde_json::Value>(Method::POST, "/v1/worker/logs", Some(chunks), None, Duration::ZERO).await.map(|_| ())
    }

    async fn call<B: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        token: Option<&str>,
        wait: Duration,
    ) -> Result<Answer<A>, CallError> {
        let sent = since_boot();
        let own = self.token.lock().expect("no panic while the lock is held").clone();
        let mut request = self.http.request(method, format!("{}{path}", self.server())).timeout(wait + PATIENCE);
        if let Some(token) = token.map(str::to_owned).or(own) {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                self.try_next_server();
                return Err(CallError::Unreachable(without_url(&error)));
            }
        };
        let status = response.status();
        let bytes = response.bytes().await.map_err(|e| CallError::Unreachable(without_url(&e)))?;
        if status.is_server_error() {
            // The service is there but cannot answer (its database is away): this is no contact.
            self.try_next_server();
            return Err(CallError::Unreachable(format!("{status}")));
        }
        *self.contact.lock().expect("no panic while the lock is held") = sent;
        if status == StatusCode::NO_CONTENT {
            return Ok(Answer(None));
        }
        if !status.is_success() {
            let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let text = |field: &str| problem[field].as_str().unwrap_or("").to_owned();
            return Err(CallError::Refused { status: status.as_u16(), code: text("code"), detail: text("detail") });
        }
        serde_json::from_slice(&bytes)
            .map(|a| Answer(Some(a)))
            .map_err(|e| CallError::Unreachable(format!("an answer that is not understood: {e}")))
    }
}

/// The error's causes in a line. (reqwest puts the URL in front, which says nothing new.)
fn without_url(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}

struct Answer<A>(Option<A>);

impl<A> Answer<A> {
    fn unwrap_or_refuse(self) -> Result<A, CallError> {
        self.0.ok_or_else(|| CallError::Unreachable("an empty answer".to_owned()))
    }
}
