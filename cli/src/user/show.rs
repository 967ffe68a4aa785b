//! `berth show`, `berth whoami`.

use serde_json::Value;

use super::args::Format;
use super::client::Client;
use super::queue::{gpus, reasons, short_time, zone};
use super::{counted, print_data, segment, text};

pub async fn show(client: &Client, format: Format, what: &str) -> anyhow::Result<()> {
    let is_job = what.split(['_', '+']).all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
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
                "  step {} of attempt {}: {} ({} on {})  {}",
                text(&step, "step_id"),
                step["attempt"],
                text(&step, "state"),
                counted(step["tasks"].as_u64().unwrap_or(0), "task"),
                text(&step, "nodes"),
                text(&step, "name")
            );
        }
    } else {
        print_node(&value);
    }
    Ok(())
}

/// How many tasks an array has, and what has become of them.
fn tasks(array: &Value) -> String {
    let Some(all) = array["tasks"].as_u64() else { return String::new() };
    let mut words = vec![all.to_string()];
    words.extend(array["pending_tasks"].as_u64().map(|count| format!("{count} wait")));
    words.extend(array["throttle"].as_u64().map(|most| format!("at most {most} at once")));
    words.extend(array["cancelled"].as_str().map(|indices| format!("cancelled: {}", super::queue::abbreviated(indices))));
    words.join(", ")
}

fn print_job(job: &Value) {
    println!("Job {} ({}) of {} in {}", text(job, "name_ref"), text(job, "name"), text(job, "user"), text(job, "account"));
    // What could not be launched has no code of its own.
    let ended = |field: &str| if job["state"] == "launch_failed" { String::new() } else { text(job, field) };
    let mut lines: Vec<(&str, String)> = vec![
        ("State", text(job, "state")),
        ("Reason", text(job, "reason")),
        ("Waits for", reasons(job)),
        ("Tasks", tasks(&job["array"])),
        ("Partition", text(job, "partition")),
        ("QOS", text(job, "qos")),
        ("Priority", text(job, "priority")),
        ("Depends on", depends(&job["spec"])),
        ("Submitted", short_time(job, "submit_time")),
        ("Begin", short_time(&job["spec"], "begin")),
        ("Eligible", short_time(job, "eligible_time")),
        ("Planned start", short_time(job, "planned_start")),
        ("Started", short_time(job, "start_time")),
        ("Ended", short_time(job, "end_time")),
        ("Suspended for", job["suspended_seconds"].as_u64().map(super::table::duration).unwrap_or_default()),
        ("Deadline", short_time(&job["spec"], "deadline")),
        ("Time limit", super::table::limit(job["time_limit_seconds"].as_u64().unwrap_or(0))),
        ("Nodes", text(job, "nodes")),
        ("Exit code", ended("exit_code")),
        ("Signal", ended("exit_signal")),
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
    lines.push(("Script", first_lines(spec)));
    lines.push(("Array", text(spec, "array")));
    lines.push(("Constraint", text(spec, "constraint")));
    lines.push(("Licences", text(spec, "licenses")));
    lines.push(("Prefers", text(spec, "prefer")));
    lines.push(("Node list", text(spec, "nodelist")));
    lines.push(("Comment", text(spec, "comment")));
    let directory = Some(text(spec, "working_directory")).filter(|dir| !dir.is_empty());
    lines.push(("Directory", directory.unwrap_or_else(|| text(&spec["environment"], "SLURM_SUBMIT_DIR"))));
    for (name, field) in [("Input", "stdin"), ("Output", "stdout"), ("Errors", "stderr")] {
        lines.push((name, text(spec, field)));
    }
    lines.push(("Times in", zone()));
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        println!("  {name:<14} {value}");
    }
}

/// `afterok:5, afterany:6`, or with `or`.
fn depends(spec: &Value) -> String {
    let all: Vec<&str> = spec["dependencies"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    all.join(if spec["dependency_any"] == true { " or " } else { ", " })
}

/// The first lines of a script that do something.
fn first_lines(spec: &Value) -> String {
    let lines = spec["script"].as_str().unwrap_or_default().lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut lines: Vec<&str> = lines.take(4).collect();
    if lines.len() == 4 {
        lines[3] = "…";
    }
    lines.join("\n                 ")
}

fn print_node(node: &Value) {
    let list = |field: &str| node[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let flags = list("flags");
    println!("Node {}", text(node, "name"));
    let inventory = &node["inventory"];
    let bytes = |value: &Value| berth_model::Bytes(value.as_u64().unwrap_or(0)).to_string();
    let mut jobs: Vec<String> = node["jobs"].as_array().into_iter().flatten().map(ToString::to_string).collect();
    match node["other_jobs"].as_u64() {
        None | Some(0) => {}
        Some(others) => jobs.push(format!("{} of other tenants", counted(others, "job"))),
    }
    let lines = [
        ("State", if flags.is_empty() { text(node, "state") } else { format!("{}, {flags}", text(node, "state")) }),
        ("Reason", text(node, "reason")),
        ("CPUs", format!("{} of {} in use", text(node, "allocated_cpus"), inventory["cpus"].as_array().map_or(0, Vec::len))),
        (
            "Cores",
            inventory["cores"]
                .as_array()
                .map(|cores| format!("{} of {} threads", cores.len(), inventory["threads_per_core"]))
                .unwrap_or_default(),
        ),
        ("Memory", format!("{} of {} in use", bytes(&node["allocated_memory_bytes"]), bytes(&inventory["memory_bytes"]))),
        ("GPUs", gpus(node)),
        ("GPU faults", faults(inventory)),
        ("Jobs", jobs.join(", ")),
        ("Features", list("features")),
        ("Address", text(node, "address")),
        ("Drivers", list("drivers")),
        ("Worker", text(node, "worker_version")),
        ("Last seen", short_time(node, "last_seen")),
        (
            "Clock",
            if node["last_seen"].is_null() { String::new() } else { format!("{} ms from the service's", text(node, "clock_skew_ms")) },
        ),
        ("Times in", zone()),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        println!("  {name:<14} {value}");
    }
}

/// Of GPUs that no job gets, why: `GPU 3: lost`.
fn faults(inventory: &Value) -> String {
    let gpus = inventory["gpus"].as_array().into_iter().flatten();
    gpus.filter_map(|gpu| Some(format!("GPU {}: {}", gpu["index"], gpu["fault"].as_str()?))).collect::<Vec<_>>().join("; ")
}

/// A sentence with its instants in local time.
pub fn in_local_time(sentence: &str) -> String {
    let local = |word: &str| {
        let bare = word.trim_end_matches(['.', ',', ';', ')']);
        let at = bare.parse::<jiff::Timestamp>().ok()?.to_zoned(jiff::tz::TimeZone::system());
        Some(format!("{}{}", at.strftime("%Y-%m-%dT%H:%M:%S"), &word[bare.len()..]))
    };
    sentence.split(' ').map(|word| local(word).unwrap_or_else(|| word.to_owned())).collect::<Vec<_>>().join(" ")
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
