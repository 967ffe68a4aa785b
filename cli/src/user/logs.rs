//! `berth logs`, and following a job to its end.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use futures::StreamExt;
use serde_json::Value;

use super::args::LogsArgs;
use super::client::{Client, Outage, is_unreachable};
use super::{is_over, segment};

pub async fn logs(client: &Client, args: LogsArgs) -> anyhow::Result<ExitCode> {
    let job = segment(&args.job)?;
    if args.follow {
        return follow(client, job, args.step.as_deref(), false).await;
    }
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(args.step.map(|s| ("step", s)));
    query.extend(args.task.map(|t| ("task", t.to_string())));
    query.extend(args.attempt.map(|a| ("attempt", a.to_string())));
    if args.stderr {
        query.push(("stream", "stderr".to_owned()));
    }
    let path = format!("/v1/jobs/{job}/logs");
    let mut out = std::io::stdout().lock();
    if let Some(tail) = args.tail {
        query.push(("tail", tail.to_string()));
        out.write_all(&client.text(&path, &query).await?.bytes().await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut offset = 0;
    loop {
        let mut query = query.clone();
        query.push(("offset", offset.to_string()));
        let bytes = client.text(&path, &query).await?.bytes().await?;
        if bytes.is_empty() {
            out.flush()?;
            return Ok(ExitCode::SUCCESS);
        }
        offset += bytes.len();
        out.write_all(&bytes)?;
    }
}

/// Prints the output as it comes and ends with the job's exit code. A stream that breaks is taken up where it broke, from any replica.
/// `is_ours`: the job was submitted by this very command, so that even the first connection is tried for long; on a terminal it is told
/// why the job waits.
pub async fn follow(client: &Client, job: &str, step: Option<&str>, is_ours: bool) -> anyhow::Result<ExitCode> {
    let mut follower = Follower {
        client,
        job,
        step,
        cursor: None,
        tells_wait: is_ours && std::io::stderr().is_terminal(),
        is_known: is_ours,
        outage: Outage::none(),
    };
    loop {
        match follower.read().await {
            Ok(Some(code)) => return Ok(code),
            Ok(None) => {}
            Err(error) if follower.is_known && is_unreachable(&error) => {}
            Err(error) => return Err(error),
        }
        follower.outage.wait().await?;
    }
}

struct Follower<'a> {
    client: &'a Client,
    job: &'a str,
    step: Option<&'a str>,
    /// Of the last event seen.
    cursor: Option<String>,
    tells_wait: bool,
    /// The service has answered for this job.
    is_known: bool,
    outage: Outage,
}

/// A stream that is silent for so long is dead: the service says something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

impl Follower<'_> {
    /// Prints until the end, of which it gives the exit code, or until the stream breaks.
    async fn read(&mut self) -> anyhow::Result<Option<ExitCode>> {
        let mut query: Vec<(&str, String)> = self.step.map(|s| ("step", s.to_owned())).into_iter().collect();
        query.extend(self.cursor.clone().map(|c| ("cursor", c)));
        let response = self.client.text(&format!("/v1/jobs/{}/logs/follow", self.job), &query).await?;
        self.is_known = true;
        let mut stream = response.bytes_stream();
        let mut pending: Vec<u8> = Vec::new();
        loop {
            let patience = if self.tells_wait { Duration::from_secs(1) } else { SILENCE };
            let bytes = match tokio::time::timeout(patience, stream.next()).await {
                Ok(Some(Ok(bytes))) => bytes,
                Err(_) if std::mem::take(&mut self.tells_wait) => {
                    tell_wait(self.client, self.job).await;
                    continue;
                }
                _ => return Ok(None),
            };
            self.outage.over();
            pending.extend_from_slice(&bytes);
            while let Some(at) = pending.windows(2).position(|w| w == b"\n\n") {
                let event: Vec<u8> = pending.drain(..at + 2).collect();
                for line in event.split(|b| *b == b'\n') {
                    let Some(data) = line.strip_prefix(b"data:") else { continue };
                    let value: Value = serde_json::from_slice(data)?;
                    self.tells_wait = false;
                    if let Some(code) = print_event(&value)? {
                        return Ok(Some(code));
                    }
                    if let Some(cursor) = value["cursor"].as_str() {
                        self.cursor = Some(cursor.to_owned());
                    }
                }
            }
        }
    }
}

async fn tell_wait(client: &Client, job: &str) {
    if let Ok(why) = client.get(&format!("/v1/jobs/{job}/explain"), &[]).await
        && why["state"] == "pending"
    {
        eprintln!("berth: job {job}: {}", super::show::in_local_time(why["summary"].as_str().unwrap_or_default()));
    }
}

fn print_event(value: &Value) -> anyhow::Result<Option<ExitCode>> {
    match value["type"].as_str() {
        Some("output") => {
            // What is not UTF-8 comes in base64 beside a substitute.
            let exact = value["base64"].as_str().map(|text| base64::engine::general_purpose::STANDARD.decode(text)).transpose()?;
            let bytes = exact.as_deref().unwrap_or_else(|| value["text"].as_str().unwrap_or_default().as_bytes());
            if value["stream"] == "stderr" {
                std::io::stderr().write_all(bytes)?;
            } else {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()?;
            }
            Ok(None)
        }
        Some("failure") => {
            eprintln!("berth: {}: {}", value["cause"].as_str().unwrap_or_default(), value["detail"].as_str().unwrap_or_default());
            Ok(None)
        }
        Some("end") => Ok(Some(end(value))),
        _ => Ok(None),
    }
}

/// The exit code of a job that ended, with a word about it if it did not end well.
fn end(job: &Value) -> ExitCode {
    let state = job["state"].as_str().unwrap_or("unknown");
    if state == "completed" {
        return ExitCode::SUCCESS;
    }
    let reason = job["reason"].as_str().map(|r| format!(": {r}")).unwrap_or_default();
    eprintln!("berth: the job ended as {state}{reason}");
    let code = job["exit_code"].as_u64().and_then(|c| u8::try_from(c).ok()).filter(|c| *c != 0);
    ExitCode::from(code.unwrap_or(1))
}

/// Waits for the job's end without its output.
pub async fn wait(client: &Client, job: &str) -> anyhow::Result<ExitCode> {
    let mut pause = Duration::from_millis(50);
    let mut outage = Outage::none();
    loop {
        match client.get(&format!("/v1/jobs/{job}"), &[]).await {
            Ok(found) if is_over(&found) => return Ok(end(&found)),
            Ok(_) => outage.over(),
            Err(error) if is_unreachable(&error) => outage.wait().await?,
            Err(error) => return Err(error),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
