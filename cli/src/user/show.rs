//! `berth show`, `berth explain`, `berth whoami`.

use serde_json::Value;

use super::args::Format;
use super::client::Client;
use super::queue::short_time;
use super::{print_data, segment, text};

pub async fn show(client: &Client, format: Format, what: &str) -> anyhow::Result<()> {
    let is_job = what.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let path = if is_job { format!("/v1/jobs/{}", segment(what)?) } else { format!("/v1/nodes/{}", segment(what)?) };
    let value = client.get(&path, &[]).await?;
    if print_data(format, &value)? {
        return Ok(());
    }
    if is_job {
        print_job(&value);
        let attempts = client.list(&format!("{path}/attempts"), &[], 100).await?;
        for attempt in attempts.iter().filter(|_| value["restarts"].as_u64().unwrap_or(0) > 0) {
            println!(
                "  attempt {}: {} on {}  {}",
                attempt["attempt"],
                text(attempt, "state"),
                text(attempt, "nodes"),
                text(attempt, "failure")
            );
        }
        for step in client.list(&format!("{path}/steps"), &[], 100).await? {
            println!(
                "  step {}: {} ({} tasks on {})  {}",
                text(&step, "step_id"),
                text(&step, "state"),
                step["tasks"],
                text(&step, "nodes"),
                text(&step, "name")
            );
        }
    } else {
        // What a node has is long; YAML reads well.
        print!("{}", serde_yaml_ng::to_string(&value)?);
    }
    Ok(())
}

fn print_job(job: &Value) {
    println!("Job {} ({}) of {} in {}", text(job, "name_ref"), text(job, "name"), text(job, "user"), text(job, "account"));
    let mut lines: Vec<(&str, String)> = vec![
        ("State", text(job, "state")),
        ("Reason", text(job, "reason")),
        ("Waits for", job["pending_reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
        ("Partition", text(job, "partition")),
        ("QOS", text(job, "qos")),
        ("Priority", text(job, "priority")),
        ("Submitted", short_time(job, "submit_time")),
        ("Eligible", short_time(job, "eligible_time")),
        ("Planned start", short_time(job, "planned_start")),
        ("Started", short_time(job, "start_time")),
        ("Ended", short_time(job, "end_time")),
        ("Time limit", super::table::duration(job["time_limit_seconds"].as_u64().unwrap_or(0))),
        ("Nodes", text(job, "nodes")),
        ("Exit code", text(job, "exit_code")),
        ("Signal", text(job, "exit_signal")),
        ("Attempt", text(job, "attempt")),
        ("Run", text(job, "run_id")),
    ];
    let spec = &job["spec"];
    let resources: Vec<String> = spec["resources"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| **v != Value::Bool(false))
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    lines.push(("Asked for", resources.join(" ").replace('"', "")));
    lines.push(("Container", text(&spec["container"], "image")));
    lines.push(("Command", spec["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")));
    lines.push(("Directory", text(spec, "working_directory")));
    lines.push(("Output", text(spec, "stdout")));
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        println!("  {name:<14} {value}");
    }
}

pub async fn explain(client: &Client, format: Format, job: &str) -> anyhow::Result<()> {
    let why = client.get(&format!("/v1/jobs/{}/explain", segment(job)?), &[]).await?;
    if print_data(format, &why)? {
        return Ok(());
    }
    println!("{}", text(&why, "summary"));
    for verdict in why["verdicts"].as_array().into_iter().flatten() {
        println!("\n  {} ({})", text(verdict, "code"), text(verdict, "object"));
        println!("    {}", text(verdict, "rule"));
        for (name, field) in [("have", "have"), ("need", "need"), ("what to do", "advice")] {
            let value = text(verdict, field);
            if !value.is_empty() {
                println!("    {name}: {value}");
            }
        }
        let holders: Vec<&str> = verdict["holders"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !holders.is_empty() {
            println!("    held by: {}", holders.join(", "));
        }
        let clears = short_time(verdict, "clears_at");
        if !clears.is_empty() {
            println!("    may clear at {clears}");
        }
    }
    if let Some(priority) = why["priority"].as_object() {
        println!("\n  priority {}, place {} in the queue", priority["total"], priority["rank"]);
        for factor in priority["factors"].as_array().into_iter().flatten() {
            let number = |field: &str| factor[field].as_f64().unwrap_or(0.0);
            println!("    {:<10} {:>8.4} × {:>8} = {:>10.0}", text(factor, "name"), number("raw"), text(factor, "weight"), number("value"));
        }
    }
    if let Some(planned) = why["planned_start"].as_object() {
        let planned = Value::Object(planned.clone());
        println!("\n  planned to start at {} on {}", short_time(&planned, "at"), text(&planned, "nodes"));
    }
    Ok(())
}

pub async fn whoami(client: &Client, format: Format) -> anyhow::Result<()> {
    let me = client.get("/v1/whoami", &[]).await?;
    if print_data(format, &me)? {
        return Ok(());
    }
    let list = |field: &str| me[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    println!("{} of the tenant {}; roles: {}; accounts: {}", text(&me, "user"), text(&me, "tenant"), list("roles"), list("accounts"));
    Ok(())
}
