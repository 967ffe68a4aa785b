//! Bad jobs and scripts: each is refused with a stable code, the field, and help. None is a 500.

mod common;

use common::Stack;
use serde_json::{Value, json};

/// A change to a good job, and the field that must be named.
fn specs() -> Vec<(Value, &'static str)> {
    let with = |changes: Value| {
        let mut spec = json!({ "command": ["true"] });
        for (name, value) in changes.as_object().unwrap() {
            spec[name] = value.clone();
        }
        spec
    };
    let resources = |value: Value| json!({ "command": ["true"], "resources": value });
    vec![
        (json!({}), "script"),
        (with(json!({ "script": "#!/bin/sh\ntrue" })), "command"),
        (json!({ "command": [] }), "command"),
        (json!({ "command": [""] }), "command"),
        (json!({ "command": "true" }), "command"),
        (json!({ "script": "echo no shebang" }), "script"),
        (json!({ "script": "" }), "script"),
        (with(json!({ "colour": "blue" })), "colour"),
        (with(json!({ "partition": "nowhere" })), "partition"),
        (with(json!({ "qos": "golden" })), "qos"),
        (with(json!({ "account": "nobody" })), "account"),
        (with(json!({ "name": "x".repeat(500) })), "name"),
        (with(json!({ "time_limit_seconds": 0 })), "time_limit_seconds"),
        (with(json!({ "time_limit_seconds": -5 })), "time_limit_seconds"),
        (with(json!({ "time_limit_seconds": 9_000_000_000_000u64 })), "time_limit_seconds"),
        (with(json!({ "time_limit_seconds": 60, "time_min_seconds": 120 })), "time_min_seconds"),
        (with(json!({ "begin": "tomorrow" })), "begin"),
        (with(json!({ "deadline": "2020-01-01T00:00:00Z" })), "deadline"),
        (with(json!({ "array": "1-" })), "array"),
        (with(json!({ "array": "5-1" })), "array"),
        (with(json!({ "array": "0-99999999" })), "array"),
        (with(json!({ "dependencies": ["afterok:abc"] })), "dependencies"),
        (with(json!({ "dependencies": ["afterok:99999999"] })), "dependencies"),
        (with(json!({ "dependencies": ["sometime:1"] })), "dependencies"),
        (with(json!({ "constraint": "a&&b" })), "constraint"),
        (with(json!({ "nodelist": "n[1-" })), "nodelist"),
        (with(json!({ "exclude": "n[5-1]" })), "exclude"),
        (with(json!({ "signal": { "signal": "SIGFOO" } })), "signal"),
        (with(json!({ "nice": -100 })), "nice"),
        (with(json!({ "environment": { "A=B": "x" } })), "environment"),
        (with(json!({ "labels": { "": "x" } })), "labels"),
        (with(json!({ "container": { "image": "" } })), "container"),
        (with(json!({ "container": { "image": "x", "mounts": [{ "source": "data", "target": "/data" }] } })), "container"),
        (with(json!({ "working_directory": "relative/path" })), "working_directory"),
        (with(json!({ "kind": "magic" })), "kind"),
        (resources(json!({ "nodes": 0 })), "resources"),
        (resources(json!({ "tasks": 0 })), "resources"),
        (resources(json!({ "nodes": 4, "tasks": 2 })), "resources"),
        (resources(json!({ "gpus": "h100:many" })), "resources"),
        (resources(json!({ "memory_per_node_bytes": "lots" })), "resources"),
        (resources(json!({ "memory_per_node_bytes": 1, "memory_per_cpu_bytes": 1 })), "resources"),
        (resources(json!({ "cpus_per_task": 1.5 })), "resources"),
    ]
}

/// Directives, and what the answer must name: the option and its line.
fn scripts() -> Vec<(&'static str, &'static str)> {
    vec![
        ("#SBATCH --frobnicate=3", "frobnicate"),
        ("#SBATCH --time=never", "time"),
        ("#SBATCH --nodes=two", "nodes"),
        ("#SBATCH --mem=4Q", "mem"),
        ("#SBATCH --gres=gpu:h100:x", "gres"),
        ("#SBATCH --array=a-b", "array"),
        ("#SBATCH --dependency=after", "dependency"),
        ("#SBATCH --signal=NOSUCH@60", "signal"),
        ("#SBATCH --begin=someday", "begin"),
        ("#SBATCH --time", "time"),
        ("#SBATCH -Z 3", "Z"),
        ("#SBATCH --job-name='open", "line 2"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_job_is_refused_with_its_field_and_help() {
    let stack = Stack::start(1, 0).await;
    let ann = stack.user();
    let specs = specs();
    assert!(specs.len() >= 40);
    let mut faults = Vec::new();
    for (spec, field) in specs {
        let (status, answer) = stack.call("POST", "/v1/jobs", &ann, Some(spec.clone())).await;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let is_good = (400..500).contains(&status)
            && !text("code").is_empty()
            && text("field").starts_with(field)
            && text("help").len() > 10
            && text("detail").len() > 5;
        if !is_good {
            faults.push(format!("{spec}\n  wanted {field}, got {status} {answer}"));
        }
    }
    let submit = async |content_type: &str, body: Vec<u8>| {
        let request = stack.http.post(format!("{}/v1/jobs", stack.servers())).bearer_auth(&ann).header("content-type", content_type);
        let response = request.body(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    for (directive, part) in scripts() {
        let (status, text) = submit("text/x-shellscript", format!("#!/bin/bash\n{directive}\ntrue\n").into_bytes()).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        if status != 422 || !text.contains(part) || !text.contains("line 2") || answer["help"].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{directive}\n  wanted {part} and its line, got {status} {text}"));
        }
    }
    // Bodies that are no jobs at all.
    for (content_type, body, wanted) in [
        ("application/json", b"{\"command\": [\"true\"".to_vec(), 400),
        ("application/json", b"[]".to_vec(), 400),
        ("application/json", b"\xff\xfe".to_vec(), 400),
        ("application/xml", b"<job/>".to_vec(), 415),
        ("text/x-shellscript", b"#!/bin/sh\n\xff\n".to_vec(), 422),
        ("text/x-shellscript", b"#!/bin/sh\n\0\n".to_vec(), 422),
        ("application/json", br#"{"command": ["true"], "name": "a\u0000b"}"#.to_vec(), 422),
        ("application/json", br#"{"command": ["true"], "environment": {"A": "\u0000"}}"#.to_vec(), 422),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (status, text) = submit(content_type, body).await;
        let is_problem = serde_json::from_str::<Value>(&text).is_ok_and(|v| v["code"].is_string() && v["help"].is_string());
        if !(400..500).contains(&status) || !is_problem || (status != wanted && status != 422) {
            faults.push(format!("{content_type} {shown:?}\n  wanted {wanted}, got {status} {text}"));
        }
    }
    assert!(faults.is_empty(), "{} of the bad jobs are not refused well:\n{}", faults.len(), faults.join("\n"));
}
