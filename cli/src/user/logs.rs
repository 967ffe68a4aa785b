//! `berth logs`, and following a job to its end.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;

use super::args::LogsArgs;
use super::client::Client;
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

/// Prints the output as it comes and ends with the job's exit code. `tells_wait`: on a terminal, say why the job waits.
pub async fn follow(client: &Client, job: &str, step: Option<&str>, tells_wait: bool) -> anyhow::Result<ExitCode> {
    let query: Vec<(&str, String)> = step.map(|s| ("step", s.to_owned())).into_iter().collect();
    let response = client.text(&format!("/v1/jobs/{job}/logs/follow"), &query).await?;
    let mut stream = response.bytes_stream();
    let mut pending: Vec<u8> = Vec::new();
    let mut said = tells_wait && std::io::stderr().is_terminal();
    loop {
        let next = if said {
            match tokio::time::timeout(Duration::from_secs(1), stream.next()).await {
                Ok(next) => next,
                Err(_) => {
                    said = false;
                    tell_wait(client, job).await;
                    continue;
                }
            }
        } else {
            stream.next().await
        };
        let Some(bytes) = next else {
            // The stream broke before the end: ask how it went.
            return wait(client, job).await;
        };
        pending.extend_from_slice(&bytes?);
        while let Some(at) = pending.windows(2).position(|w| w == b"\n\n") {
            let event: Vec<u8> = pending.drain(..at + 2).collect();
            for line in event.split(|b| *b == b'\n') {
                let Some(data) = line.strip_prefix(b"data:") else { continue };
                let value: Value = serde_json::from_slice(data)?;
                said = false;
                if let Some(code) = print_event(&value)? {
                    return Ok(code);
                }
            }
        }
    }
}

async fn tell_wait(client: &Client, job: &str) {
    if let Ok(why) = client.get(&format!("/v1/jobs/{job}/explain"), &[]).await
        && why["state"] == "pending"
    {
        eprintln!("berth: job {job} waits. {}", why["summary"].as_str().unwrap_or_default());
    }
}

fn print_event(value: &Value) -> anyhow::Result<Option<ExitCode>> {
    match value["type"].as_str() {
        Some("output") => {
            let text = value["text"].as_str().unwrap_or_default();
            if value["stream"] == "stderr" {
                std::io::stderr().write_all(text.as_bytes())?;
            } else {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes())?;
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
    loop {
        let found = client.get(&format!("/v1/jobs/{job}"), &[]).await?;
        if is_over(&found) {
            return Ok(end(&found));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
