//! Orders about jobs and nodes.

use std::fmt::Display;
use std::process::ExitCode;

use berth_model::JobRef;
use serde_json::{Value, json};

use super::client::Client;
use super::{segment, text};

/// Gives each job the order.
pub async fn order(client: &Client, jobs: Vec<String>, verb: &str, body: &Value, done: &str) -> anyhow::Result<ExitCode> {
    each(jobs, done, async |path| client.post(&format!("{path}:{verb}"), body, None).await).await
}

/// Does something to each job by its path; tells of each to which it could not be done and goes on.
pub async fn each(jobs: Vec<String>, done: &str, act: impl AsyncFn(String) -> anyhow::Result<Value>) -> anyhow::Result<ExitCode> {
    let act = async |job: &String| {
        let outcome = match segment(job) {
            Ok(job) => act(format!("/v1/jobs/{job}")).await,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| about(job, &error))
    };
    Ok(tell_each("Job", &jobs, done, act).await)
}

/// Does something to each of several objects of a kind; tells of each to which it could not be done, in words, and goes on.
pub async fn tell_each<T: Display>(kind: &str, all: &[T], done: &str, act: impl AsyncFn(&T) -> Result<Value, String>) -> ExitCode {
    tell_each_of(kind, all, |_| done.to_owned(), act).await
}

/// The same, telling what was answered of each.
async fn tell_each_of<T: Display>(
    kind: &str,
    all: &[T],
    done: impl Fn(&Value) -> String,
    act: impl AsyncFn(&T) -> Result<Value, String>,
) -> ExitCode {
    let mut failed = false;
    for one in all {
        match act(one).await {
            Ok(answer) => println!("{kind} {one} {}", done(&answer)),
            Err(why) => {
                failed = true;
                eprintln!("berth: {why}");
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The error, with the job's number unless it names that itself.
pub fn about(job: &str, error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    if text.contains(&format!("job {job}")) { text } else { format!("job {job}: {text}") }
}

pub async fn drain(client: &Client, node: &str, reason: &str) -> anyhow::Result<()> {
    client.post(&format!("/v1/nodes/{}:drain", segment(node)?), &json!({ "reason": reason }), None).await?;
    println!("Node {node} drains: what runs there goes on, nothing new starts");
    Ok(())
}

/// Puts nodes back into service, and lets suspended jobs go on.
pub async fn resume(client: &Client, what: Vec<String>) -> anyhow::Result<ExitCode> {
    let is_job = |name: &String| name.parse::<JobRef>().is_ok();
    let (jobs, nodes): (Vec<String>, Vec<String>) = what.into_iter().partition(is_job);
    let of_nodes = tell_nodes(client, &nodes).await;
    let of_jobs = order(client, jobs, "resume", &Value::Null, "goes on as soon as there are CPUs for it").await?;
    Ok(if of_nodes == ExitCode::SUCCESS { of_jobs } else { of_nodes })
}

async fn tell_nodes(client: &Client, nodes: &[String]) -> ExitCode {
    let resume = async |name: &String| {
        let resumed = async { client.post(&format!("/v1/nodes/{}:resume", segment(name)?), &json!({}), None).await }.await;
        resumed.map_err(|error| format!("{error:#}"))
    };
    tell_each_of("Node", nodes, |node| format!("is resumed: {}", text(node, "status")), resume).await
}
