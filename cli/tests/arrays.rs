//! Arrays and dependencies on their tasks: one task can be held, cancelled or waited for without the others.

mod common;

use common::{Stack, until};
use serde_json::{Value, json};

async fn stack() -> (Stack, String) {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "8", "--node-memory", "4GiB"]).await;
    stack.workers.push(worker);
    let token = stack.user();
    (stack, token)
}

async fn submit(stack: &Stack, token: &str, job: Value) -> u64 {
    let mut spec = json!({ "resources": { "memory_per_node_bytes": 16 << 20 } });
    spec.as_object_mut().unwrap().extend(job.as_object().unwrap().clone());
    let (status, answer) = stack.call("POST", "/v1/jobs", token, Some(spec)).await;
    assert_eq!(status, 201, "{answer}");
    answer["job_id"].as_u64().unwrap()
}

async fn state(stack: &Stack, token: &str, reference: &str) -> String {
    let job = stack.call("GET", &format!("/v1/jobs/{reference}"), token, None).await.1;
    job["state"].as_str().unwrap_or_default().to_owned()
}

async fn ask(stack: &Stack, token: &str, reference: &str, verb: &str) -> Value {
    let (status, answer) = stack.call("POST", &format!("/v1/jobs/{reference}:{verb}"), token, Some(json!({}))).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_one_task_leaves_the_others_alone() {
    let (stack, token) = stack().await;
    let array = submit(&stack, &token, json!({ "command": ["sleep", "1"], "array": "1-6%2" })).await;
    until("two tasks run", async || state(&stack, &token, &format!("{array}_2")).await == "running").await;
    let cancelled = ask(&stack, &token, &format!("{array}_5"), "cancel").await;
    assert_eq!((cancelled["state"].as_str(), cancelled["array_index"].as_u64()), (Some("cancelled"), Some(5)), "{cancelled}");
    let held = ask(&stack, &token, &format!("{array}_6"), "hold").await;
    assert_eq!((held["hold"].as_str(), held["array_index"].as_u64()), (Some("user"), Some(6)), "{held}");
    for task in [1, 2, 3, 4] {
        until("the others end well", async || state(&stack, &token, &format!("{array}_{task}")).await == "completed").await;
    }
    assert_eq!(state(&stack, &token, &format!("{array}_6")).await, "pending");
    assert_eq!(state(&stack, &token, &array.to_string()).await, "running", "a held task is still to come");
    ask(&stack, &token, &format!("{array}_6"), "release").await;
    until("the released one ends too", async || state(&stack, &token, &format!("{array}_6")).await == "completed").await;
    until("the array ends", async || state(&stack, &token, &array.to_string()).await == "failed").await;
    let (status, answer) = stack.call("POST", &format!("/v1/jobs/{array}_1:release"), &token, Some(json!({}))).await;
    assert_eq!((status, answer["code"].as_str()), (409, Some("wrong_state")), "a job that is over cannot be released: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_follows_another_task_by_task() {
    let (stack, token) = stack().await;
    let script = "#!/bin/sh\n[ $SLURM_ARRAY_TASK_ID = 2 ] && exit 1\n[ $SLURM_ARRAY_TASK_ID = 3 ] && sleep 3\nexit 0\n";
    let first = submit(&stack, &token, json!({ "script": script, "array": "1-3" })).await;
    let follow = json!({ "command": ["true"], "array": "1-3", "dependencies": [format!("aftercorr:{first}")] });
    let second = submit(&stack, &token, follow).await;
    until("the first follows at once", async || state(&stack, &token, &format!("{second}_1")).await == "completed").await;
    assert_ne!(state(&stack, &token, &format!("{first}_3")).await, "completed", "it did not wait for the whole array");
    until("the last follows", async || state(&stack, &token, &format!("{second}_3")).await == "completed").await;
    let of_never = async || {
        let job = stack.job(&token, second).await;
        (job["state"].clone(), job["pending_reasons"].clone(), job["array"]["pending"].clone())
    };
    until("the second is told that it waits in vain", async || {
        of_never().await == (json!("pending"), json!(["dependency_never"]), json!("2"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_can_wait_for_one_task() {
    let (stack, token) = stack().await;
    let array = submit(&stack, &token, json!({ "command": ["sleep", "2"], "array": "1-4%1" })).await;
    let after = json!({ "command": ["true"], "dependencies": [format!("afterok:{array}_2")] });
    let job = submit(&stack, &token, after).await;
    stack.until_state(&token, job, "completed").await;
    assert_eq!(state(&stack, &token, &format!("{array}_2")).await, "completed");
    assert_ne!(state(&stack, &token, &array.to_string()).await, "completed", "it did not wait for the others");
    let bad = json!({ "command": ["true"], "dependencies": [format!("afterok:{array}_9")] });
    let (status, answer) = stack.call("POST", "/v1/jobs", &token, Some(bad)).await;
    assert_eq!((status, answer["code"].as_str()), (422, Some("dependency_not_found")), "{answer}");
}

/// The scheduler that starts tasks and the node that reports ends lock the same rows: always in the same order.
#[tokio::test(flavor = "multi_thread")]
async fn short_tasks_under_a_throttle_meet_no_deadlock() {
    let (stack, token) = stack().await;
    let array = submit(&stack, &token, json!({ "command": ["sleep", "0.1"], "array": "1-60%6" })).await;
    stack.until_state(&token, array, "completed").await;
    let log = std::fs::read_to_string(stack.path("postgres/postgres.log")).unwrap();
    assert!(!log.contains("deadlock"), "{log}");
}
