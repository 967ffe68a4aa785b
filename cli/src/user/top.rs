//! `berth top`: how busy the cluster is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::Format;
use super::client::Client;
use super::table::Table;
use super::{open_states, print_data, text};

/// Most jobs that are looked at.
const LIMIT: usize = 100_000;

pub async fn top(client: &Client, format: Format, watch: Option<u64>) -> anyhow::Result<()> {
    // Who runs the platform looks at the jobs of all.
    let roles = client.get("/v1/whoami", &[]).await?["roles"].clone();
    let is_admin = roles.as_array().is_some_and(|roles| roles.iter().any(|role| role == "platform_admin"));
    loop {
        let nodes = client.list("/v1/nodes", &[], usize::MAX).await?;
        let mut query: Vec<(&str, String)> = open_states().map(|s| ("state", s.to_string())).collect();
        query.push(("page_size", "1000".to_owned()));
        if is_admin {
            query.push(("tenant", "-".to_owned()));
        }
        let jobs = client.list("/v1/jobs", &query, LIMIT).await?;
        if watch.is_some() {
            // Clears the terminal.
            print!("\x1b[2J\x1b[H");
        }
        if !print_data(format, &summary(&nodes, &jobs))? {
            print(&nodes, &jobs);
        }
        match watch {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.max(1))).await,
            None => return Ok(()),
        }
    }
}

fn count(values: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    counts
}

fn node_state(node: &Value) -> String {
    let drains = node["flags"].as_array().is_some_and(|f| f.iter().any(|f| f == "drain"));
    if drains { "drained".to_owned() } else { text(node, "state") }
}

fn summary(nodes: &[Value], jobs: &[Value]) -> Value {
    let length = |value: &Value| value.as_array().map_or(0, Vec::len) as u64;
    let total = |of: &dyn Fn(&Value) -> u64| nodes.iter().map(of).sum::<u64>();
    json!({
        "nodes": count(nodes.iter().map(node_state)),
        "cpus": { "allocated": total(&|n| n["allocated_cpus"].as_u64().unwrap_or(0)), "all": total(&|n| length(&n["inventory"]["cpus"])) },
        "gpus": { "allocated": total(&|n| length(&n["allocated_gpus"])), "all": total(&|n| length(&n["inventory"]["gpus"])) },
        "memory_bytes": {
            "allocated": total(&|n| n["allocated_memory_bytes"].as_u64().unwrap_or(0)),
            "all": total(&|n| n["inventory"]["memory_bytes"].as_u64().unwrap_or(0)),
        },
        "jobs": count(jobs.iter().map(|j| text(j, "state"))),
    })
}

fn print(nodes: &[Value], jobs: &[Value]) {
    let all = summary(nodes, jobs);
    let words = |counts: &Value| {
        let parts: Vec<String> = counts.as_object().into_iter().flatten().map(|(k, v)| format!("{v} {k}")).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    println!("Nodes   {}", words(&all["nodes"]));
    println!("Jobs    {}", words(&all["jobs"]));
    for (name, field) in [("CPUs", "cpus"), ("GPUs", "gpus")] {
        let (used, there) = (all[field]["allocated"].as_u64().unwrap_or(0), all[field]["all"].as_u64().unwrap_or(0));
        if there > 0 {
            println!("{name:<7} {} {used} of {there} in use", bar(used, there));
        }
    }
    let mut by_user: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for job in jobs {
        let counts = by_user.entry((text(job, "user"), text(job, "account"))).or_default();
        if job["state"] == "pending" { counts.1 += 1 } else { counts.0 += 1 }
    }
    if !by_user.is_empty() {
        println!();
        let mut table = Table::new(&["USER", "ACCOUNT", "RUNNING", "PENDING"]);
        let mut rows: Vec<_> = by_user.into_iter().collect();
        rows.sort_by_key(|(_, (running, pending))| std::cmp::Reverse((*running, *pending)));
        for ((user, account), (running, pending)) in rows.into_iter().take(20) {
            table.row(vec![user, account, running.to_string(), pending.to_string()]);
        }
        table.print(false);
    }
}

fn bar(used: u64, all: u64) -> String {
    let filled = (used * 20).div_ceil(all.max(1)).min(20) as usize;
    format!("[{}{}]", "#".repeat(filled), ".".repeat(20 - filled))
}
