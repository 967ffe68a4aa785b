//! `berth queue` and `berth nodes`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::args::{Format, QueueArgs};
use super::client::Client;
use super::table::{Table, duration, limit};
use super::{open_states, print_data, text};

/// Whose objects an administrator of the platform means: the service writes all tenants as `-`.
pub fn tenant(named: Option<String>) -> Option<(&'static str, String)> {
    named.map(|name| ("tenant", if name == "all" { "-".to_owned() } else { name }))
}

pub async fn queue(client: &Client, format: Format, args: QueueArgs) -> anyhow::Result<()> {
    let mut query: Vec<(&str, String)> = Vec::new();
    let mut states: Vec<String> = args.states.iter().map(|state| state.to_ascii_lowercase()).collect();
    if states.is_empty() && !args.all {
        states.extend(open_states().map(|state| state.to_string()));
    }
    // To the service a held job is a pending one; the list calls it held.
    let only_held = states.iter().any(|state| state == "held") && !states.iter().any(|state| state == "pending");
    states.iter_mut().filter(|state| *state == "held").for_each(|state| *state = "pending".to_owned());
    query.extend(states.into_iter().map(|state| ("state", state)));
    query.extend(args.user.into_iter().map(|v| ("user", v)));
    query.extend(args.account.into_iter().map(|v| ("account", v)));
    query.extend(args.partition.into_iter().map(|v| ("partition", v)));
    query.extend(args.name.map(|v| ("name", v)));
    query.extend(args.node.map(|v| ("node", v)));
    query.extend(tenant(args.tenant));
    query.push(("page_size", args.limit.clamp(1, 1000).to_string()));
    let mut jobs = client.list("/v1/jobs", &query, args.limit as usize).await?;
    let is_cut = jobs.len() >= args.limit as usize;
    jobs.retain(|job| !only_held || job["state"] != "pending" || job["hold"].is_string());
    if print_data(format, &jobs)? {
        return Ok(());
    }
    let is_wide = format == Format::Wide;
    let submitted = format!("SUBMITTED ({})", zone());
    let heads: &[&str] = if is_wide {
        &[
            "JOB",
            "PARTITION",
            "NAME",
            "USER",
            "ACCOUNT",
            "QOS",
            "STATE",
            "TIME",
            "LIMIT",
            "PRIORITY",
            &submitted,
            "PLANNED START",
            "NODES / REASON",
        ]
    } else {
        &["JOB", "PARTITION", "NAME", "USER", "STATE", "TIME", "NODES / REASON"]
    };
    let mut table = Table::new(heads);
    for job in &jobs {
        let state = match &job["hold"] {
            Value::String(_) if job["state"] == "pending" => "held".to_owned(),
            _ => text(job, "state"),
        };
        let time = elapsed(job);
        let cells = [text(job, "name_ref"), text(job, "partition"), text(job, "name"), text(job, "user")];
        let mut row = cells.to_vec();
        if let Some(pending) = job["array"]["pending"].as_str().filter(|p| !p.is_empty()) {
            let throttle = job["array"]["throttle"].as_u64().map_or_else(String::new, |most| format!("%{most}"));
            row[0] = format!("{}_[{}{throttle}]", row[0], abbreviated(pending));
        }
        if is_wide {
            row.extend([text(job, "account"), text(job, "qos"), state, time]);
            row.extend([
                limit(job["time_limit_seconds"].as_u64().unwrap_or(0)),
                text(job, "priority"),
                short_time(job, "submit_time"),
                short_time(job, "planned_start"),
            ]);
        } else {
            row.extend([state, time]);
        }
        row.push(where_or_why(job));
        table.row(row);
    }
    table.print(is_wide);
    if is_cut {
        eprintln!("berth: only the first {} listed; --limit shows more", are(args.limit.into()));
    }
    Ok(())
}

/// Indices as they are, or as many as fit on a line: `0,3,7,…`.
pub fn abbreviated(indices: &str) -> String {
    const MOST: usize = 64;
    match indices.get(..MOST).filter(|_| indices.len() > MOST) {
        Some(start) => format!("{},…", start.rsplit_once(',').map_or(start, |(whole, _)| whole)),
        None => indices.to_owned(),
    }
}

/// Nodes of a job that has some, reasons of one that waits, the reason of one that ended.
fn where_or_why(job: &Value) -> String {
    if job["state"] == "pending" {
        return format!("({})", reasons(job));
    }
    match (text(job, "nodes"), text(job, "reason")) {
        (nodes, reason) if reason.is_empty() => nodes,
        (nodes, reason) if nodes.is_empty() => format!("({reason})"),
        (nodes, reason) => format!("{nodes} ({reason})"),
    }
}

/// What holds a pending job, each named once.
pub fn reasons(job: &Value) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in job["pending_reasons"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join(", ")
}

fn are(count: u64) -> String {
    if count == 1 { "job is".to_owned() } else { format!("{count} jobs are") }
}

/// The local time zone, as times are shown in it: `CET +01:00`.
pub fn zone() -> String {
    let now = jiff::Zoned::now();
    let (name, offset) = (now.strftime("%Z").to_string(), now.strftime("%:z").to_string());
    if name == "UTC" || name == offset { name } else { format!("{name} {offset}") }
}

fn instant(job: &Value, field: &str) -> Option<jiff::Timestamp> {
    job[field].as_str()?.parse().ok()
}

fn elapsed(job: &Value) -> String {
    let Some(start) = instant(job, "start_time") else { return String::new() };
    let end = instant(job, "end_time").unwrap_or_else(jiff::Timestamp::now);
    // Time in which it stood still is none of its own.
    let still = job["suspended_seconds"].as_i64().unwrap_or(0);
    duration((end.as_second() - start.as_second() - still).max(0) as u64)
}

/// In the local time zone.
pub fn short_time(job: &Value, field: &str) -> String {
    instant(job, field).map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string()).unwrap_or_default()
}

pub async fn nodes(client: &Client, format: Format) -> anyhow::Result<()> {
    let nodes = client.list("/v1/nodes", &[], usize::MAX).await?;
    if print_data(format, &nodes)? {
        return Ok(());
    }
    let is_wide = format == Format::Wide;
    let seen = format!("LAST SEEN ({})", zone());
    let heads: &[&str] = if is_wide {
        &["NODE", "STATE", "CPUS", "MEMORY", "GPUS", "JOBS", "WEIGHT", "FEATURES", "ADDRESS", "VERSION", &seen, "REASON"]
    } else {
        &["NODE", "STATE", "CPUS", "MEMORY", "GPUS", "JOBS", "REASON"]
    };
    let mut table = Table::new(heads);
    for node in &nodes {
        let inventory = &node["inventory"];
        let state = text(node, "status");
        let bytes = |value: &Value| berth_model::Bytes(value.as_u64().unwrap_or(0)).to_string();
        let jobs = node["jobs"].as_array().map_or(0, Vec::len) as u64 + node["other_jobs"].as_u64().unwrap_or(0);
        let mut row = vec![
            text(node, "name"),
            state,
            format!("{}/{}", text(node, "allocated_cpus"), inventory["cpus"].as_array().map_or(0, Vec::len)),
            format!("{}/{}", bytes(&node["allocated_memory_bytes"]), bytes(&inventory["memory_bytes"])),
            gpus(node),
            jobs.to_string(),
        ];
        if is_wide {
            let features: Vec<&str> = node["features"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            row.extend([
                text(node, "weight"),
                features.join(","),
                text(node, "address"),
                text(node, "worker_version"),
                short_time(node, "last_seen"),
            ]);
        }
        row.push(text(node, "reason"));
        table.row(row);
    }
    table.print(is_wide);
    Ok(())
}

/// `3/8 h100`, by type: `1/7 1g.10gb, 0/1 h100`.
pub fn gpus(node: &Value) -> String {
    let used = node["allocated_gpus"].as_array().map_or(&[][..], Vec::as_slice);
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for gpu in node["inventory"]["gpus"].as_array().into_iter().flatten() {
        let (taken, all) = kinds.entry(gpu["type"].as_str().unwrap_or_default()).or_default();
        *taken += usize::from(used.contains(&gpu["index"]));
        *all += 1;
    }
    let mut words: Vec<String> = kinds.iter().map(|(kind, (taken, all))| format!("{taken}/{all} {kind}")).collect();
    // Shares of them: `6/64 shard`.
    for (kind, each) in node["inventory"]["gpu_shares"].as_object().into_iter().flatten() {
        let all: u64 = each.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
        words.push(format!("{}/{all} {kind}", node["allocated_shares"][kind].as_u64().unwrap_or(0)));
    }
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}
