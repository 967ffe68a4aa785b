//! Heterogeneous jobs on the real product: two components in two partitions, planned, started, stopped and ended together.

mod common;

use common::{Stack, refused, said, until};
use serde_json::{Value, json};

/// Node n1 in partition a, n2 in b.
async fn stack() -> (Stack, String) {
    let mut stack = Stack::start(1, 1).await;
    for name in ["n1", "n2"] {
        let worker = stack.worker(name, &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
        stack.workers.push(worker);
    }
    let root = stack.token("root", "acme", "platform_admin");
    said(&stack.berth(&root, &["partitions", "set", "a", "nodes=n1"]));
    said(&stack.berth(&root, &["partitions", "set", "b", "nodes=n2"]));
    let ann = stack.user();
    // What admission knows of partitions may be a second old.
    until("the partitions are known", async || {
        stack.berth(&ann, &["submit", "-p", "b", "--hold", "--mem=16M", "--wrap=true"]).status.success()
    })
    .await;
    (stack, ann)
}

async fn job(stack: &Stack, token: &str, reference: &str) -> Value {
    stack.call("GET", &format!("/v1/jobs/{reference}"), token, None).await.1
}

async fn states(stack: &Stack, token: &str, leader: u64) -> [String; 2] {
    let mut states = [String::new(), String::new()];
    for (offset, state) in states.iter_mut().enumerate() {
        job(stack, token, &format!("{leader}+{offset}")).await["state"].as_str().unwrap_or_default().clone_into(state);
    }
    states
}

fn both(state: &str) -> [String; 2] {
    [state.to_owned(), state.to_owned()]
}

#[tokio::test(flavor = "multi_thread")]
async fn components_wait_for_each_other_and_end_with_the_script() {
    let (stack, ann) = stack().await;
    let holder = stack.submit(&ann, "#!/bin/sh\n#SBATCH -p b -c2 --mem=16M -t 10\nsleep 300\n");
    stack.until_state(&ann, holder, "running").await;
    let text = "#!/bin/sh\n#SBATCH -J coupled -p a -c2 --mem=16M -t 20\n#SBATCH hetjob\n#SBATCH -p b -c2 --mem=16M\necho on $SLURM_JOB_NODELIST\nsleep 3\nexit 7\n";
    let leader = stack.submit(&ann, text);
    let why = async |reference: &str| stack.call("GET", &format!("/v1/jobs/{reference}/explain"), &ann, None).await.1;
    until("the second component is told to hold all", async || {
        let why = why(&leader.to_string()).await;
        why["verdicts"][0]["code"] == "resources" && why["verdicts"][0]["component"] == 1
    })
    .await;
    let (first, second) = (why(&format!("{leader}+0")).await, why(&format!("{leader}+1")).await);
    assert_eq!(first["planned_start"]["at"], second["planned_start"]["at"], "{first:#} {second:#}");
    assert_eq!((&first["planned_start"]["nodes"], &second["planned_start"]["nodes"]), (&json!("n1"), &json!("n2")));
    assert_eq!(second["job_id"].as_u64(), Some(leader + 1), "ids follow one another");
    let told = said(&stack.berth(&ann, &["explain", "--brief", &leader.to_string()]));
    assert!(told.contains("component 1: resources"), "{told}");
    let queue = said(&stack.berth(&ann, &["queue"]));
    assert!(queue.contains(&format!("{leader}+0")) && queue.contains(&format!("{leader}+1")), "{queue}");

    said(&stack.berth(&ann, &["cancel", &holder.to_string(), "--grace=0"]));
    until("both run", async || states(&stack, &ann, leader).await == both("running")).await;
    let (first, second) = (job(&stack, &ann, &format!("{leader}+0")).await, job(&stack, &ann, &format!("{leader}+1")).await);
    assert_eq!(first["start_time"], second["start_time"], "at one instant");
    assert_eq!((&first["nodes"], &second["nodes"]), (&json!("n1"), &json!("n2")));
    // The script's end is the end of all, as it ended.
    until("both have ended", async || states(&stack, &ann, leader).await == both("failed")).await;
    assert_eq!(job(&stack, &ann, &format!("{leader}+1")).await["exit_code"], 7);
    assert_eq!(stack.output(&ann, leader).await.trim(), "on n1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_one_is_done_to_all() {
    let (stack, ann) = stack().await;
    let submit = |extra: &str| -> u64 {
        let line = ["submit", "--parsable", extra, "-p", "a", "--mem=16M", "-t", "10", ":", "-p", "b", "--mem=16M", "--wrap=sleep 300"];
        let line: Vec<&str> = line.into_iter().filter(|word| !word.is_empty()).collect();
        said(&stack.berth(&ann, &line)).trim().parse().unwrap()
    };
    let leader = submit("");
    until("both run", async || states(&stack, &ann, leader).await == both("running")).await;
    said(&stack.berth(&ann, &["requeue", &format!("{leader}+1")]));
    let restarts = async || (job(&stack, &ann, &format!("{leader}+0")).await["restarts"].clone(), states(&stack, &ann, leader).await);
    until("both run again", async || restarts().await == (json!(1), both("running"))).await;
    said(&stack.berth(&ann, &["cancel", &format!("{leader}+1"), "--grace=0"]));
    until("both are cancelled", async || states(&stack, &ann, leader).await == both("cancelled")).await;

    let held = submit("--hold");
    until("the hold is told", async || job(&stack, &ann, &held.to_string()).await["pending_reasons"][0] == "held_user").await;
    said(&stack.berth(&ann, &["release", &held.to_string()]));
    until("released, both run", async || states(&stack, &ann, held).await == both("running")).await;
    said(&stack.berth(&ann, &["cancel", &held.to_string(), "--grace=0"]));

    let array = refused(&stack.berth(&ann, &["submit", "-a", "1-2", "-p", "a", ":", "-p", "b", "--wrap=true"]));
    assert!(array.contains("array") && array.contains("components"), "{array}");
    let unknown = refused(&stack.berth(&ann, &["submit", "-p", "a", ":", "-p", "none", "--wrap=true"]));
    assert!(unknown.contains("there is no partition none"), "{unknown}");
    let spec = json!({ "script": "#!/bin/sh\ntrue\n", "partition": "a", "components": [{ "partition": "none" }] });
    let (status, problem) = stack.call("POST", "/v1/jobs", &ann, Some(spec)).await;
    assert_eq!((status, problem["field"].as_str()), (422, Some("components[0].partition")), "{problem}");
}
