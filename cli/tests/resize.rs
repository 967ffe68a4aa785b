//! A running job gives nodes back: its steps there end, others get the nodes, and it goes on with what it kept.

mod common;

use common::{Stack, until};
use serde_json::{Value, json};

async fn three_nodes() -> Stack {
    let mut stack = Stack::start(1, 1).await;
    for name in ["n1", "n2", "n3"] {
        let worker = stack.worker(name, &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
        stack.workers.push(worker);
    }
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_gives_nodes_back_and_goes_on_with_the_others() {
    let stack = three_nodes().await;
    let ann = stack.user();
    let job = stack.submit(
        &ann,
        "#!/bin/sh\n#SBATCH --nodes=3 --cpus-per-task=4 --mem=16M --time=10\n\
         srun sh -c 'echo first on $SLURMD_NODENAME; exec sleep 600'; echo \"first step ended with $?\"\n\
         srun sh -c 'echo then on $SLURMD_NODENAME of $SLURM_JOB_NUM_NODES: $SLURM_JOB_NODELIST'\nexec sleep 600\n",
    );
    stack.until_state(&ann, job, "running").await;
    until("the first step runs everywhere", async || stack.output(&ann, job).await.matches("first on").count() == 3).await;
    let next = stack.submit(&ann, "#!/bin/sh\n#SBATCH --nodes=1 --cpus-per-task=4 --mem=16M --time=10\nexec sleep 600\n");

    let path = format!("/v1/jobs/{job}");
    let patch = async |patch: Value| {
        let (status, answer) = stack.call("PATCH", &path, &ann, Some(patch)).await;
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    for (change, status, code) in [
        (json!({ "resources": { "nodes": 4 } }), 422, "job_cannot_grow"),
        (json!({ "resources": { "nodes": 0 } }), 422, "invalid_count"),
        (json!({ "nodelist": "n[2-3]" }), 422, "batch_node_stays"),
        (json!({ "nodelist": "n[1,9]" }), 422, "node_not_in_allocation"),
        (json!({ "nodelist": "n1", "resources": { "nodes": 2 } }), 422, "contradiction"),
        (json!({ "resources": { "nodes": 2, "cpus_per_task": 1 } }), 409, "wrong_state"),
        (json!({ "partition": "main" }), 409, "wrong_state"),
        (json!({ "time_limit_seconds": 3600 }), 409, "time_limit_extension"),
    ] {
        assert_eq!(patch(change.clone()).await, (status, code.to_owned()), "{change}");
    }
    let update = stack.berth(&ann, &["update", &job.to_string(), "--nodelist=n1,n3", "--time=8", "--nice=5", "--comment=smaller"]);
    assert!(update.status.success(), "{}", String::from_utf8_lossy(&update.stderr));
    let shown = stack.job(&ann, job).await;
    assert_eq!((&shown["state"], &shown["nodes"]), (&json!("running"), &json!("n[1,3]")), "{shown:#}");
    assert_eq!((&shown["spec"]["resources"]["nodes"], &shown["time_limit_seconds"], &shown["nice"]), (&json!(2), &json!(480), &json!(5)));

    let running = stack.until_state(&ann, next, "running").await;
    assert_eq!(running["nodes"], "n2", "the next job has the node that was given back");
    until("the script goes on", async || stack.output(&ann, job).await.matches("then on").count() == 2).await;
    let text = stack.output(&ann, job).await;
    assert!(text.contains("then on n1 of 2: n[1,3]") && text.contains("then on n3 of 2: n[1,3]"), "{text}");
    assert!(!text.contains("first step ended with 0"), "the step that lost a node was ended: {text}");
    assert_eq!(stack.job(&ann, job).await["state"], "running", "it is not over because a node of it is");

    // Again, by count, and down to the batch node alone.
    let update = stack.berth(&ann, &["update", &job.to_string(), "--nodes=1"]);
    assert!(update.status.success(), "{}", String::from_utf8_lossy(&update.stderr));
    until("its other node is idle", async || {
        let node = stack.call("GET", "/v1/nodes/n3", &ann, None).await.1;
        node["allocated_cpus"] == 0
    })
    .await;
    let events = stack.call("GET", &format!("{path}/events"), &ann, None).await.1;
    let resized: Vec<&Value> = events["items"].as_array().unwrap().iter().filter(|event| event["kind"] == "job.resized").collect();
    let given: Vec<&Value> = resized.iter().map(|event| &event["detail"]["given_back"]).collect();
    assert_eq!(given, [&json!(["n2"]), &json!(["n3"])]);
    let (status, answer) = stack.call("POST", &format!("{path}:cancel"), &ann, Some(json!({ "grace_seconds": 0 }))).await;
    assert_eq!(status, 200, "{answer}");
    stack.until_state(&ann, job, "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_command_runs_everywhere_keeps_its_nodes() {
    let stack = three_nodes().await;
    let ann = stack.user();
    let spec = json!({ "command": ["sleep", "600"], "resources": { "nodes": 2, "memory_per_node_bytes": 16 << 20 } });
    let (status, answer) = stack.call("POST", "/v1/jobs", &ann, Some(spec)).await;
    assert_eq!(status, 201, "{answer}");
    let job = answer["job_id"].as_u64().unwrap();
    stack.until_state(&ann, job, "running").await;
    let (status, answer) = stack.call("PATCH", &format!("/v1/jobs/{job}"), &ann, Some(json!({ "resources": { "nodes": 1 } }))).await;
    assert_eq!((status, answer["code"].as_str()), (409, Some("command_on_all_nodes")), "{answer}");
}
