//! The service as the user's commands see it: requests, retries on another replica, and errors that say what to do.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::{Method, Response};
use serde_json::Value;

use super::args::ClientArgs;

pub struct Client {
    http: reqwest::Client,
    servers: Vec<String>,
    token: Option<String>,
}

/// No replica answers.
#[derive(Debug, thiserror::Error)]
#[error("the service cannot be reached ({0})\n  start one with `berth up`, or say where it is with --server or BERTH_SERVER")]
pub struct Unreachable(String);

/// Whether it is worth trying again.
pub fn is_unreachable(error: &anyhow::Error) -> bool {
    error.is::<Unreachable>() || error.is::<reqwest::Error>()
}

/// A time without an answer: how long it lasts, and that it was told of.
pub struct Outage {
    since: Option<Instant>,
    pause: Duration,
    has_told: bool,
}

/// Longest time to wait for the service to come back.
const OUTAGE: Duration = Duration::from_secs(120);

impl Outage {
    pub fn none() -> Outage {
        Outage { since: None, pause: Duration::from_millis(100), has_told: false }
    }

    /// The service answers.
    pub fn over(&mut self) {
        *self = Outage { has_told: self.has_told, ..Outage::none() };
    }

    /// Waits a little before the next try. `Err` once it has lasted too long.
    pub async fn wait(&mut self) -> anyhow::Result<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() > OUTAGE {
            bail!("the service has not answered for {} seconds; the job is not affected", OUTAGE.as_secs());
        }
        if !std::mem::replace(&mut self.has_told, true) {
            eprintln!("berth: the connection to the service broke; trying again for {} seconds", OUTAGE.as_secs());
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(Duration::from_secs(2));
        Ok(())
    }
}

/// What a request carries.
#[derive(Clone, Copy)]
enum Payload<'a> {
    None,
    Json(&'a Value),
    Bytes(&'a [u8]),
}

/// Tries of a request when no replica can be reached.
const TRIES: u32 = 4;

impl Client {
    pub fn new(args: &ClientArgs) -> anyhow::Result<Client> {
        let token = match (&args.token, &args.token_file) {
            (Some(token), _) => Some(token.trim().to_owned()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path).with_context(|| format!("the token file {}", path.display()))?;
                Some(text.trim().to_owned())
            }
            (None, None) => None,
        };
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(3))
            .tcp_nodelay(true)
            .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let servers: Vec<String> = args.server.iter().map(|s| s.trim_end_matches('/').to_owned()).filter(|s| !s.is_empty()).collect();
        if servers.is_empty() {
            bail!("no server is named; set --server or BERTH_SERVER");
        }
        Ok(Client { http, servers, token })
    }

    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        read(self.send(Method::GET, path, query, Payload::None, None).await?).await
    }

    /// Posts JSON. `key`: an idempotency key, with which the request may be repeated.
    pub async fn post(&self, path: &str, body: &Value, key: Option<&str>) -> anyhow::Result<Value> {
        read(self.send(Method::POST, path, &[], Payload::Json(body), key).await?).await
    }

    /// The object; nothing if it is not there.
    pub async fn find(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Option<Value>> {
        let response = self.send(Method::GET, path, query, Payload::None, None).await?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        read(response).await.map(Some)
    }

    /// Replaces an object, or makes it. A repeat does no harm.
    pub async fn put(&self, path: &str, query: &[(&str, String)], body: &Value) -> anyhow::Result<Value> {
        read(self.send(Method::PUT, path, query, Payload::Json(body), Some("")).await?).await
    }

    /// Changes an object by a merge patch. A repeat does no harm.
    pub async fn patch(&self, path: &str, query: &[(&str, String)], body: &Value) -> anyhow::Result<Value> {
        read(self.send(Method::PATCH, path, query, Payload::Json(body), Some("")).await?).await
    }

    pub async fn delete(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        read(self.send(Method::DELETE, path, query, Payload::None, None).await?).await
    }

    /// Posts bytes where a repeat does no harm.
    pub async fn post_bytes(&self, path: &str, query: &[(&str, String)], bytes: &[u8]) -> anyhow::Result<()> {
        checked(self.send(Method::POST, path, query, Payload::Bytes(bytes), Some("")).await?).await.map(|_| ())
    }

    pub async fn text(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Response> {
        checked(self.send(Method::GET, path, query, Payload::None, None).await?).await
    }

    /// All items of a list, at most `limit`.
    pub async fn list(&self, path: &str, query: &[(&str, String)], limit: usize) -> anyhow::Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut query = query.to_vec();
        loop {
            let mut page = self.get(path, &query).await?;
            items.extend(page["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
            let next = page["next_page_token"].as_str().map(str::to_owned);
            query.retain(|(name, _)| *name != "page_token");
            match next {
                Some(token) if items.len() < limit => query.push(("page_token", token)),
                _ => break,
            }
        }
        items.truncate(limit);
        Ok(items)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Payload<'_>,
        key: Option<&str>,
    ) -> anyhow::Result<Response> {
        let is_repeatable = method == Method::GET || key.is_some();
        let mut last = None;
        for attempt in 0..TRIES {
            for server in &self.servers {
                let mut request = self.http.request(method.clone(), format!("{server}{path}")).query(query);
                if let Some(token) = &self.token {
                    request = request.bearer_auth(token);
                }
                if let Some(key) = key.filter(|k| !k.is_empty()) {
                    request = request.header("idempotency-key", key);
                }
                request = match body {
                    Payload::None => request,
                    Payload::Json(value) => request.json(value),
                    Payload::Bytes(bytes) => request.header("content-type", "application/octet-stream").body(bytes.to_vec()),
                };
                match request.send().await {
                    Ok(response) if matches!(response.status().as_u16(), 502..=504) && is_repeatable => {
                        last = Some(format!("{server} answers that it is not available"))
                    }
                    Ok(response) => return Ok(response),
                    Err(error) if error.is_connect() || is_repeatable => last = Some(format!("{server}: {}", cause(&error))),
                    Err(error) => bail!("{server}: {}; whether it was done is not known", cause(&error)),
                }
            }
            if attempt + 1 < TRIES {
                tokio::time::sleep(Duration::from_millis(200 << attempt)).await;
            }
        }
        Err(Unreachable(last.unwrap_or_default()).into())
    }
}

fn cause(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut inner: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(next) = inner {
        text = next.to_string();
        inner = next.source();
    }
    text
}

async fn read(response: Response) -> anyhow::Result<Value> {
    let response = checked(response).await?;
    let bytes = response.bytes().await?;
    if bytes.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&bytes)?) }
}

/// Turns a problem document into an error: what was wrong, where, and what to do.
async fn checked(response: Response) -> anyhow::Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let problem: Value = response.json().await.unwrap_or_default();
    let mut text = problem["detail"].as_str().map_or_else(|| format!("the service answered {status}"), str::to_owned);
    if status == 401 {
        text.push_str("\n  give a token with --token, BERTH_TOKEN or BERTH_TOKEN_FILE");
    }
    let faults = problem["errors"].as_array().cloned().unwrap_or_default();
    if faults.is_empty() {
        text.extend(problem["field"].as_str().map(|field| format!(" ({field})")));
        text.extend(problem["help"].as_str().map(|help| format!("\n  {help}")));
    }
    for fault in &faults {
        let part = |name: &str| fault[name].as_str().unwrap_or_default();
        text.push_str(&format!("\n  {}: {}; {}", part("field"), part("detail"), part("help")));
    }
    bail!(text)
}
