//! What would make a job start sooner: told by `explain`, and true once it is done. A change is admitted as a submission is.

mod common;

use common::{Stack, until};
use serde_json::{Value, json};

/// Two nodes of four CPUs, each with a partition of its own, and a QOS that goes first.
async fn stack() -> (Stack, String, String) {
    let mut stack = Stack::start(1, 1).await;
    for name in ["n1", "n2"] {
        let worker = stack.worker(name, &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
        stack.workers.push(worker);
    }
    let admin = stack.token("root", "ops", "platform_admin");
    let partition = |name: &str, nodes: &str, more: Value| {
        let mut body = json!({ "name": name, "nodes": nodes });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let main = stack.call("GET", "/v1/partitions", &admin, None).await.1["items"][0]["name"].as_str().unwrap().to_owned();
    for (name, body) in [
        (main.as_str(), partition(&main, "n1", json!({ "is_default": true, "max_time_seconds": 86_400 }))),
        ("debug", partition("debug", "n2", json!({ "max_time_seconds": 7200 }))),
        ("vip", partition("vip", "n2", json!({ "allow_tenants": ["other"] }))),
    ] {
        let (status, answer) = stack.call("PUT", &format!("/v1/partitions/{name}"), &admin, Some(body)).await;
        assert!(status < 300, "{answer}");
    }
    for (name, body) in [
        ("high", json!({ "name": "high", "priority": 1000 })),
        ("secret", json!({ "name": "secret", "priority": 5000, "allow_tenants": ["other"] })),
    ] {
        let (status, answer) = stack.call("PUT", &format!("/v1/qos/{name}"), &admin, Some(body)).await;
        assert!(status < 300, "{answer}");
    }
    let user = stack.user();
    (stack, user, main)
}

fn job(cpus: u32, minutes: u64) -> Value {
    json!({ "command": ["sleep", "300"], "time_limit_seconds": minutes * 60,
        "resources": { "cpus_per_task": cpus, "memory_per_node_bytes": 16 << 20 } })
}

async fn submit(stack: &Stack, token: &str, job: Value) -> u64 {
    let (status, answer) = stack.call("POST", "/v1/jobs", token, Some(job)).await;
    assert_eq!(status, 201, "{answer}");
    answer["job_id"].as_u64().unwrap()
}

async fn advice(stack: &Stack, token: &str, job: u64) -> Vec<Value> {
    let (status, answer) = stack.call("GET", &format!("/v1/jobs/{job}/explain?advice=true"), token, None).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["advice"]["is_partial"], false, "{answer}");
    answer["advice"]["alternatives"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn words(alternatives: &[Value]) -> Vec<String> {
    alternatives
        .iter()
        .map(|a| format!("{} {}", a["words"].as_str().unwrap(), if a["starts_now"] == true { "now" } else { "later" }))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_that_is_followed_starts_the_job() {
    let (stack, ann, main) = stack().await;
    let first = submit(&stack, &ann, job(3, 60)).await;
    stack.until_state(&ann, first, "running").await;
    // Planned behind the first; the next would run into that plan.
    submit(&stack, &ann, job(4, 60)).await;
    let long = submit(&stack, &ann, job(1, 240)).await;
    until("the plan has met the last job", async || {
        stack.call("GET", &format!("/v1/jobs/{long}/explain"), &ann, None).await.1["planned_start"].is_object()
    })
    .await;
    let found = advice(&stack, &ann, long).await;
    let told = words(&found);
    let shorter = found.iter().find(|a| a["change"]["time_limit_seconds"].is_u64()).unwrap_or_else(|| panic!("{found:?}"));
    let limit = shorter["change"]["time_limit_seconds"].as_u64().unwrap();
    assert!((40 * 60..=60 * 60).contains(&limit), "what is left of the first job's hour, to a quarter of an hour: {limit}");
    assert_eq!(shorter["planned_start"]["nodes"], "n1");
    // The partition `debug` allows two hours, so it is no way out for a job of four; `vip` and `secret` are others'.
    assert!(told.iter().all(|words| words.starts_with("a time limit of") || words.starts_with("the QOS high")), "{told:?}");

    // As a person sees and follows it.
    let text = String::from_utf8(stack.berth(&ann, &["explain", &long.to_string()]).stdout).unwrap();
    let command = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("berth update ").filter(|rest| rest.contains("--time=")))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(text.contains("it would start sooner with"), "{text}");
    let mut line = vec!["update"];
    line.extend(command.split(' '));
    let output = stack.berth(&ann, &line);
    assert!(output.status.success(), "{output:?}");
    stack.until_state(&ann, long, "running").await;

    // Another partition.
    let wide = submit(&stack, &ann, job(4, 60)).await;
    let found = advice(&stack, &ann, wide).await;
    assert!(words(&found).contains(&"the partition debug now".to_owned()), "{found:?}");
    let change = found.iter().find(|a| a["words"] == "the partition debug").unwrap()["change"].clone();
    let (status, answer) = stack.call("PATCH", &format!("/v1/jobs/{wide}"), &ann, Some(change)).await;
    assert_eq!((status, answer["partition"].as_str()), (200, Some("debug")), "{answer}");
    let ran = stack.until_state(&ann, wide, "running").await;
    assert_eq!(ran["nodes"], "n2");
    assert_ne!(main, "debug");

    // Held: no change helps, and none is told.
    let mut held = job(1, 60);
    held["hold"] = true.into();
    let held = submit(&stack, &ann, held).await;
    assert_eq!(advice(&stack, &ann, held).await, Vec::<Value>::new());
    let (_, plain) = stack.call("GET", &format!("/v1/jobs/{held}/explain"), &ann, None).await;
    assert_eq!(plain["advice"], Value::Null, "only if asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_nothing_that_a_submission_could_not() {
    let (stack, ann, main) = stack().await;
    let mut spec = job(1, 60);
    spec["hold"] = true.into();
    spec["labels"] = json!({ "team": "nlp" });
    let id = submit(&stack, &ann, spec).await;
    let path = format!("/v1/jobs/{id}");
    for (patch, status, code, field) in [
        (json!({ "qos": "secret" }), 422, "qos_not_allowed", "qos"),
        (json!({ "qos": "nosuch" }), 422, "qos_not_found", "qos"),
        (json!({ "partition": "vip" }), 422, "partition_not_allowed", "partition"),
        (json!({ "account": "others" }), 422, "account_not_allowed", "account"),
        (json!({ "time_limit_seconds": 90_000 }), 422, "time_limit_too_long", "time_limit_seconds"),
        (json!({ "time_limit_seconds": 0 }), 422, "invalid_time", "time_limit_seconds"),
        (json!({ "nice": -5 }), 403, "forbidden", "nice"),
        (json!({ "site_factor": 5 }), 403, "forbidden", ""),
        (json!({ "constraint": "a&" }), 422, "invalid_constraint", "constraint"),
        (json!({ "dependencies": ["afterok:999999"] }), 422, "dependency_not_found", "dependencies"),
        (json!({ "dependencies": [format!("afterok:{id}")] }), 422, "dependency_not_found", "dependencies"),
        (json!({ "script": "#!/bin/sh\n" }), 422, "invalid_field", "script"),
        (json!({ "resources": { "nodes": "two" } }), 422, "invalid_field", "resources.nodes"),
        (json!([1]), 422, "invalid_field", ""),
        (json!(["another name"]), 422, "invalid_field", ""),
    ] {
        let (got, problem) = stack.call("PATCH", &path, &ann, Some(patch.clone())).await;
        assert_eq!((got, problem["code"].as_str()), (status, Some(code)), "{patch}: {problem}");
        if !field.is_empty() {
            assert_eq!(problem["field"].as_str(), Some(field), "{patch}: {problem}");
        }
    }
    let before = stack.call("GET", &path, &ann, None).await.1;
    assert_eq!(before["version"], 1, "nothing of it was done");

    // All that a change can reach, at once.
    let begin = "2030-01-01T00:00:00Z";
    let patch = json!({ "name": "b", "comment": "c", "nice": 7, "time_limit_seconds": 3600, "begin": begin, "partition": "debug", "qos": "high",
        "resources": { "cpus_per_task": 2 }, "labels": { "team": null, "run": "4" }, "constraint": null });
    let (status, _) = stack.call("PATCH", &path, &ann, Some(patch)).await;
    assert_eq!(status, 200);
    let after = stack.call("GET", &path, &ann, None).await.1;
    for (field, wanted) in [("name", "b"), ("partition", "debug"), ("qos", "high"), ("eligible_time", begin)] {
        assert_eq!(after[field], wanted, "{after}");
    }
    assert_eq!(
        (&after["time_limit_seconds"], &after["nice"], &after["labels"], &after["hold"]),
        (&3600.into(), &7.into(), &json!({ "run": "4" }), &"user".into())
    );
    assert_eq!(after["spec"]["resources"], json!({ "cpus_per_task": 2, "memory_per_node_bytes": 16 << 20, "exclusive": false }));
    // Back to its default.
    let (_, after) = stack.call("PATCH", &path, &ann, Some(json!({ "begin": null, "time_limit_seconds": 1800 }))).await;
    assert_eq!((&after["eligible_time"], &after["time_limit_seconds"]), (&Value::Null, &1800.into()));

    // A running job keeps what it was placed by.
    stack.call("POST", &format!("{path}:release"), &ann, None).await;
    stack.until_state(&ann, id, "running").await;
    for (patch, status, code) in [
        (json!({ "partition": main }), 409, "wrong_state"),
        (json!({ "resources": { "cpus_per_task": 1 } }), 409, "wrong_state"),
        (json!({ "resources": { "nodes": 2 } }), 422, "job_cannot_grow"),
        (json!({ "time_limit_seconds": 3600 }), 409, "time_limit_extension"),
    ] {
        let (got, problem) = stack.call("PATCH", &path, &ann, Some(patch.clone())).await;
        assert_eq!((got, problem["code"].as_str()), (status, Some(code)), "{patch}: {problem}");
    }
    let (status, after) =
        stack.call("PATCH", &path, &ann, Some(json!({ "time_limit_seconds": 1200, "name": "d", "requeue": { "mode": "never" } }))).await;
    assert_eq!((status, &after["time_limit_seconds"], after["name"].as_str()), (200, &1200.into(), Some("d")), "{after}");
    let (status, problem) = stack.call("POST", &format!("{path}:requeue"), &ann, Some(json!({}))).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("requeue_disabled")), "{problem}");
    let output = stack.berth(&ann, &["update", &id.to_string(), "--requeue", "--comment="]);
    assert!(output.status.success(), "{output:?}");
    let (status, _) = stack.call("POST", &format!("{path}:requeue"), &ann, Some(json!({}))).await;
    assert_eq!(status, 200);
}
