//! Dry runs: what is foretold of a job is what the plan does once it is submitted, and asking leaves nothing behind.

mod common;

use common::{Stack, until};
use serde_json::{Value, json};

async fn stack() -> (Stack, String) {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
    stack.workers.push(worker);
    let token = stack.user();
    (stack, token)
}

/// A job of so many CPUs with a limit.
fn job(cpus: u32, minutes: u64) -> Value {
    json!({ "command": ["sleep", "300"], "time_limit_seconds": minutes * 60,
        "resources": { "cpus_per_task": cpus, "memory_per_node_bytes": 16 << 20 } })
}

async fn ask(stack: &Stack, token: &str, job: &Value) -> Value {
    let (status, answer) = stack.call("POST", "/v1/jobs:dryRun", token, Some(job.clone())).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn submit(stack: &Stack, token: &str, job: &Value) -> u64 {
    let (status, answer) = stack.call("POST", "/v1/jobs", token, Some(job.clone())).await;
    assert_eq!(status, 201, "{answer}");
    answer["job_id"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_foretells_what_the_plan_then_does() {
    let (stack, ann) = stack().await;
    let answer = ask(&stack, &ann, &job(4, 60)).await;
    assert_eq!(
        (&answer["starts_now"], &answer["rank"], &answer["planned_start"]["nodes"]),
        (&true.into(), &1.into(), &"n1".into()),
        "{answer}"
    );
    assert_eq!(answer["summary"], "It would start at once on n1.");
    let mut array = job(1, 60);
    array["array"] = "1-6".into();
    let answer = ask(&stack, &ann, &array).await;
    let summary = answer["summary"].as_str().unwrap();
    assert!(summary.starts_with("4 of its tasks would start at once, the first on n1. The rest: "), "{answer}");
    assert!(answer["starts_now"] == true && answer["verdicts"][0]["code"].is_string(), "{answer}");
    let jobs = stack.call("GET", "/v1/jobs", &ann, None).await.1;
    assert_eq!(jobs["items"], json!([]), "nothing is left of what was asked");

    let first = submit(&stack, &ann, &job(3, 60)).await;
    stack.until_state(&ann, first, "running").await;
    // Behind the first; behind that; beside the first, since it ends before the second's planned start; never.
    for wanted in [job(4, 60), job(2, 10), job(1, 30), job(64, 10)] {
        let foretold = ask(&stack, &ann, &wanted).await;
        let id = submit(&stack, &ann, &wanted).await;
        if foretold["starts_now"] == true {
            let started = stack.until_state(&ann, id, "running").await;
            assert_eq!(started["nodes"], foretold["planned_start"]["nodes"], "{foretold}");
            continue;
        }
        // Quick plans come first; the full one, which a dry run foretells, follows within moments.
        let path = format!("/v1/jobs/{id}/explain");
        until("the plan says what was foretold", async || {
            let told = stack.call("GET", &path, &ann, None).await.1;
            let is_same = ["planned_start", "verdicts", "ahead", "summary"].iter().all(|field| told[field] == foretold[field]);
            is_same && told["priority"]["rank"] == foretold["rank"]
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_refuses_what_a_submission_refuses() {
    let (stack, ann) = stack().await;
    for bad in [
        json!({ "command": ["true"], "partition": "nowhere" }),
        json!({ "command": ["true"], "dependencies": ["afterok:99999999"] }),
        json!({ "command": ["true"], "nice": -5 }),
        json!({ "command": [] }),
        json!({ "command": ["true"], "colour": "blue" }),
    ] {
        let mut answers = Vec::new();
        for path in ["/v1/jobs", "/v1/jobs:dryRun"] {
            let (status, mut problem) = stack.call("POST", path, &ann, Some(bad.clone())).await;
            problem["request_id"].take();
            answers.push((status, problem));
        }
        assert_eq!(answers[0], answers[1]);
        assert!(answers[1].0 >= 400 && answers[1].1["code"].is_string(), "{answers:?}");
    }
    let viewer = stack.token("eve", "acme", "viewer");
    assert_eq!(stack.call("POST", "/v1/jobs:dryRun", &viewer, Some(job(1, 1))).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn test_only_asks_and_submits_nothing() {
    let (stack, ann) = stack().await;
    let first = submit(&stack, &ann, &job(4, 60)).await;
    stack.until_state(&ann, first, "running").await;
    let said = |args: &[&str]| {
        let output = stack.berth(&ann, args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = said(&["submit", "--test-only", "--mem=16M", "--time=5", "--wrap=true"]);
    assert!(text.contains(" on n1.") && text.contains("place 1 in the queue; nothing was submitted"), "{text}");
    let answer: Value = serde_json::from_str(&said(&["-o", "json", "run", "--test-only", "--mem=16M", "hostname"])).unwrap();
    let first = stack.job(&ann, first).await;
    assert_eq!(answer["planned_start"]["nodes"], "n1");
    assert!(answer["planned_start"]["at"].as_str() > first["start_time"].as_str(), "{answer}");
    let jobs = stack.call("GET", "/v1/jobs", &ann, None).await.1;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "nothing was submitted: {jobs}");
}
