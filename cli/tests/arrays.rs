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
async fn a_throttle_holds_for_tasks_that_were_changed_or_run_again() {
    let (stack, token) = stack().await;
    let array = submit(&stack, &token, json!({ "command": ["sleep", "300"], "array": "0-5%1" })).await;
    until("a task runs", async || state(&stack, &token, &format!("{array}_0")).await == "running").await;
    let (status, changed) = stack.call("PATCH", &format!("/v1/jobs/{array}_3"), &token, Some(json!({ "nice": 1 }))).await;
    assert_eq!(status, 200, "{changed}");
    until("it hears of the throttle", async || {
        let told = stack.call("GET", &format!("/v1/jobs/{array}_3/explain"), &token, None).await.1;
        told["verdicts"][0]["code"] == "array_throttle" && told["verdicts"][0]["object"] == format!("job/{array}")
    })
    .await;
    assert_eq!(state(&stack, &token, &format!("{array}_3")).await, "pending");
    // One place more, and it is taken once.
    let (status, changed) = stack.call("PATCH", &format!("/v1/jobs/{array}"), &token, Some(json!({ "array_throttle": 2 }))).await;
    assert_eq!(status, 200, "{changed}");
    let running = async || {
        let mut running = Vec::new();
        for task in 0..6 {
            if state(&stack, &token, &format!("{array}_{task}")).await == "running" {
                running.push(task);
            }
        }
        running
    };
    until("two run", async || running().await.len() == 2).await;
    ask(&stack, &token, &format!("{array}_0"), "requeue").await;
    let restarts = async || stack.call("GET", &format!("/v1/jobs/{array}_0"), &token, None).await.1["restarts"].clone();
    until("it has been stopped", async || restarts().await == 1).await;
    until("two run again", async || running().await.len() == 2).await;
    for _ in 0..5 {
        assert!(running().await.len() <= 2);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    ask(&stack, &token, &array.to_string(), "cancel").await;
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

#[tokio::test(flavor = "multi_thread")]
async fn an_array_of_a_million_is_cancelled_and_throttled_as_one() {
    let (stack, token) = stack().await;
    let array = submit(&stack, &token, json!({ "command": ["sleep", "60"], "array": "0-999999%3" })).await;
    let pending = async || stack.job(&token, array).await["array"]["pending"].clone();
    until("three tasks run", async || pending().await == "3-999999").await;
    let cancel = stack.berth(&token, &["cancel", &format!("{array}_[5-900000]")]);
    assert_eq!(String::from_utf8_lossy(&cancel.stdout), format!("Job {array}_[5-900000] cancelled\n"));
    let queue = stack.berth(&token, &["queue"]);
    let queue = String::from_utf8_lossy(&queue.stdout).into_owned();
    assert!(queue.contains(&format!("{array}_[3-4,900001-999999%3]")), "{queue}");
    let job = stack.job(&token, array).await;
    let tasks = |field: &str| job["array"][field].clone();
    assert_eq!((tasks("tasks"), tasks("pending_tasks"), tasks("cancelled")), (json!(1_000_000), json!(100_001), json!("5-900000")));
    assert_eq!(state(&stack, &token, &format!("{array}_7")).await, "cancelled");
    assert_eq!(state(&stack, &token, &format!("{array}_1")).await, "running");
    let rows = stack.call("GET", &format!("/v1/jobs?array_job_id={array}"), &token, None).await.1;
    assert_eq!(rows["items"].as_array().unwrap().len(), 3, "only tasks that run have rows");

    let update = stack.berth(&token, &["update", &array.to_string(), "--array-throttle=4"]);
    assert!(update.status.success(), "{}", String::from_utf8_lossy(&update.stderr));
    until("a fourth task runs", async || pending().await == "4,900001-999999").await;
    let job = stack.job(&token, array).await;
    assert_eq!((&job["array"]["throttle"], &job["spec"]["array"]), (&json!(4), &json!("0-999999%4")));
    let (status, answer) = stack.call("PATCH", &format!("/v1/jobs/{array}_1"), &token, Some(json!({ "array_throttle": 1 }))).await;
    assert_eq!((status, answer["code"].as_str()), (422, Some("not_an_array")), "{answer}");

    ask(&stack, &token, &format!("{array}_[0-3,900001-999999]"), "cancel").await;
    ask(&stack, &token, &format!("{array}_4"), "cancel").await;
    until("all of it has ended", async || state(&stack, &token, &array.to_string()).await == "cancelled").await;
    // A task that was cancelled with others can still be waited for.
    let (status, answer) =
        stack.call("POST", "/v1/jobs", &token, Some(json!({ "command": ["true"], "dependencies": [format!("afterany:{array}_7")] }))).await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(state(&stack, &token, &format!("{array}_7")).await, "cancelled");
    assert_eq!(stack.call("POST", &format!("/v1/jobs/{array}_[x]:cancel"), &token, Some(json!({}))).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_arrays_count_their_tasks() {
    let (stack, token) = stack().await;
    let admin = stack.token("root", "acme", "platform_admin");
    let (status, answer) = stack.call("PATCH", "/v1/policy", &admin, Some(json!({ "max_array_size": 1000 }))).await;
    assert_eq!(status, 200, "{answer}");
    let array = async |indices: &str| {
        let job = json!({ "command": ["true"], "array": indices, "hold": true, "resources": { "memory_per_node_bytes": 16 << 20 } });
        let (status, answer) = stack.call("POST", "/v1/jobs", &token, Some(job)).await;
        (status, answer["code"].as_str().map(str::to_owned), answer["job_id"].as_u64())
    };
    until("the policy is known", async || array("1000").await.0 == 422).await;
    assert_eq!(array("0-1000").await.1.as_deref(), Some("array_too_large"));
    let (status, answer) = stack.call("PATCH", "/v1/qos/normal", &admin, Some(json!({ "max_submit_jobs_per_user": 500 }))).await;
    assert_eq!(status, 200, "{answer}");
    until("the limit is known", async || array("0-999").await.0 == 422).await;
    let first = array("0-998:2").await;
    assert_eq!(first.0, 201, "500 tasks: {first:?}");
    assert_eq!(array("1").await.1.as_deref(), Some("qos_max_submit_jobs_per_user"));
    ask(&stack, &token, &format!("{}_[0-9]", first.2.unwrap()), "cancel").await;
    assert_eq!(array("1-5").await.0, 201, "five have gone");
    assert_eq!(array("1").await.0, 422);
}
