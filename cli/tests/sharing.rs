//! Whole nodes, and nodes without other users, with real workers.

mod common;

use common::{Stack, until};
use serde_json::json;

fn script(options: &str, command: &str) -> String {
    format!("#!/bin/sh\n#SBATCH --mem=32M -t 10 {options}\n{command}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_jobs_share_a_node_that_others_keep_off() {
    let mut stack = Stack::start(1, 1).await;
    for number in [1, 2] {
        let worker = stack.worker(&format!("n{number}"), &["--node-cpus", "4", "--node-memory", "1GiB"]).await;
        stack.workers.push(worker);
    }
    let (ann, bob) = (stack.user(), stack.token("bob", "acme", "user"));
    let nodes = async |token: &str, job: u64| stack.call("GET", &format!("/v1/jobs/{job}"), token, None).await.1["nodes"].clone();

    let first = stack.submit(&ann, &script("--exclusive=user", "sleep 300"));
    let second = stack.submit(&ann, &script("--exclusive=user", "sleep 300"));
    for job in [first, second] {
        stack.until_state(&ann, job, "running").await;
        assert_eq!(nodes(&ann, job).await, "n1");
    }
    let other = stack.submit(&bob, &script("-c 1", "sleep 300"));
    stack.until_state(&bob, other, "running").await;
    assert_eq!(nodes(&bob, other).await, "n2");
    // Bob has no node without ann, and no second one at all.
    let waiter = stack.submit(&bob, &script("--exclusive=user -N 2", "true"));
    let path = format!("/v1/jobs/{waiter}/explain");
    let why = async || stack.call("GET", &path, &bob, None).await.1;
    until("it hears why it waits", async || why().await["verdicts"][0]["code"] == "resources").await;
    let why = why().await;
    let (have, need) = (why["verdicts"][0]["have"].as_str().unwrap_or(""), why["verdicts"][0]["need"].as_str().unwrap_or(""));
    assert!(have.contains("1 node for one user's jobs alone") && need.ends_with("nodes shared with no other user"), "{why:#}");

    for (token, job) in [(&ann, first), (&ann, second), (&bob, other)] {
        assert!(stack.berth(token, &["cancel", &job.to_string()]).status.success());
    }
    stack.until_state(&bob, waiter, "completed").await;

    let whole = stack.submit(&bob, &script("--exclusive", "echo $SLURM_CPUS_ON_NODE CPUs"));
    stack.until_state(&bob, whole, "completed").await;
    until("its output is there", async || stack.output(&bob, whole).await.contains("4 CPUs")).await;
    let refused = stack.berth(&ann, &["submit", "--exclusive=topo", "--wrap=true"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--exclusive") && said.contains("is not supported"), "{said}");
    let told = stack.berth(&ann, &["submit", "-s", "--wrap=true"]);
    assert!(told.status.success() && String::from_utf8_lossy(&told.stderr).contains("never given to two jobs"), "{told:?}");
    let both = json!({ "command": ["true"], "resources": { "exclusive": true, "exclusive_user": true } });
    let (status, problem) = stack.call("POST", "/v1/jobs", &ann, Some(both)).await;
    assert!(status == 422 && problem.to_string().contains("exclusive_contradictory"), "{problem:#}");
    // No node has so many sockets.
    let wide = stack.submit(&ann, &script("-B 64:1", "true"));
    let path = format!("/v1/jobs/{wide}/explain");
    let why = async || stack.call("GET", &path, &ann, None).await.1["verdicts"][0].clone();
    until("it hears of the sockets", async || why().await["code"] == "shape_unsatisfiable").await;
    assert!(why().await["need"].as_str().unwrap_or("").contains("64 sockets at least of 1 core at least"));

    // What is filled first is for administrators to say.
    let root = stack.token("root", "acme", "platform_admin");
    assert!(stack.berth(&root, &["nodes", "set", "n1", "--weight=9", "--features=ib,rack1"]).status.success());
    let table = String::from_utf8_lossy(&stack.berth(&ann, &["-o", "wide", "nodes"]).stdout).into_owned();
    assert!(table.contains("WEIGHT") && table.contains("ib,rack1"), "{table}");
    let last = stack.submit(&ann, &script("-c 1", "true"));
    stack.until_state(&ann, last, "completed").await;
    assert_eq!(nodes(&ann, last).await, "n2");
    assert!(!stack.berth(&ann, &["nodes", "set", "n1", "--weight=1"]).status.success(), "not for users");
}
