//! The record of decisions on a running service: past plans are made again by another process, also those of a leader that is gone.

mod common;

use common::{Stack, until};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_explained_and_its_plan_made_again_after_a_failover() {
    let mut stack = Stack::start(1, 2).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let ann = stack.user();
    let admin = stack.token("root", "acme", "platform_admin");
    let holder = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 1 -t 10\nsleep 4\n");
    stack.until_state(&ann, holder, "running").await;
    let wide = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 2 -t 10\ntrue\n");
    until("the wide job has its reason", async || {
        stack.call("GET", &format!("/v1/jobs/{wide}/explain"), &ann, None).await.1["verdicts"][0]["code"] == "resources"
    })
    .await;
    let quick = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 1 -t 1\ntrue\n");
    for job in [quick, holder, wide] {
        stack.until_state(&ann, job, "completed").await;
    }

    let why = |job: u64| {
        let output = stack.berth(&ann, &["why", &job.to_string()]);
        String::from_utf8(output.stdout).unwrap()
    };
    let said = why(wide);
    assert!(said.contains("Until then it waited for resources that job ") && said.contains("decided by plan "), "{said}");
    assert!(why(holder).contains("Nothing held it."), "{}", why(holder));

    // Within a second what a leader decided is kept, even if it is killed.
    let mut found = Value::Null;
    until("the record reaches the wide job's start", async || {
        let output = stack.berth(&admin, &["replay", "-o", "json", "--job", &wide.to_string()]);
        found = serde_json::from_slice(&output.stdout).unwrap_or_default();
        output.status.success()
    })
    .await;
    assert_eq!((&found["plan"]["starts"][0]["job"], &found["before"]["verdicts"][0]["code"]), (&wide.into(), &"resources".into()));
    let leader = stack.call("GET", &format!("/v1/jobs/{wide}/explain"), &ann, None).await.1["start"]["decision"]["epoch"].clone();
    let decided_at = found["record"]["at"].as_str().unwrap().to_owned();

    stack.schedulers.remove(0).kill();
    let later = stack.submit(&ann, "#!/bin/sh\ntrue\n");
    stack.until_state(&ann, later, "completed").await;
    until("the standby's record is kept", async || stack.berth(&admin, &["replay", "--job", &later.to_string()]).status.success()).await;
    let output = stack.berth(&admin, &["replay", "-o", "json", "--at", &decided_at]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&again["record"], &again["epoch"]), (&found["record"], &leader));
    assert!(again["differs_at"].is_null());

    let output = stack.berth(&ann, &["replay"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("platform_admin"));
    let output = stack.berth(&admin, &["replay", "--at", "2020-01-01T00:00:00Z"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no record of decisions reaches back"));
}
