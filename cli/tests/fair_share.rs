//! Fair share, limits and priorities as users and administrators meet them: from the command line to the plan and back.

mod common;

use common::{Stack, said, until};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn shares_limits_and_priorities_from_the_command_line() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let (root, lead) = (stack.token("root", "", "platform_admin"), stack.token("lea", "acme", "tenant_admin"));
    let (ann, bob) = (stack.token("ann", "acme", "user"), stack.token("bob", "acme", "user"));
    said(&stack.berth(&root, &["policy", "set", "PriorityWeightFairshare=10000", "PriorityWeightAge=0", "PriorityWeightJobSize=100"]));
    said(&stack.berth(&root, &["qos", "set", "short", "MaxWall=10", "Flags=DenyOnLimit"]));
    let made = said(&stack.berth(&lead, &["accounts", "set", "ml", "Fairshare=20", "GrpTRES=cpu=2", "Description=Learning machines"]));
    assert!(made.contains("Account ml created") && made.contains("grp_tres=cpu=2"), "{made}");
    for user in ["ann", "bob"] {
        said(&stack.berth(&lead, &["accounts", "set", "ml", "--user", user, "MaxSubmitJobs=3"]));
    }
    let listed = said(&stack.berth(&lead, &["accounts", "-o", "wide"]));
    assert!(listed.lines().any(|line| line.contains("ml") && line.contains("20") && line.contains("grp_tres=cpu=2")), "{listed}");

    let script = "#!/bin/sh\n#SBATCH --account=ml --ntasks=2 --mem=32M --time=5\nsleep 120\n";
    let first = stack.submit(&ann, script);
    stack.until_state(&ann, first, "running").await;
    let (second, third) = (stack.submit(&ann, script), stack.submit(&bob, script));
    let explained = async |job: u64| stack.call("GET", &format!("/v1/jobs/{job}/explain"), &lead, None).await.1;
    until("the limit holds the others", async || explained(third).await["verdicts"][0]["code"] == "assoc_group_tres").await;
    let verdict = explained(second).await["verdicts"][0].clone();
    assert_eq!(verdict["object"], "account/acme/ml");
    assert_eq!((&verdict["have"], &verdict["need"]), (&"2 of 2 cpu in use".into(), &"2 cpu".into()), "{verdict}");
    assert_eq!(verdict["holders"][0], format!("job/{first}"));

    // Whoever has used nothing comes first.
    until("usage moves the order", async || {
        let jobs: Vec<Value> = serde_json::from_str(&said(&stack.berth(&lead, &["prio", "-o", "json"]))).unwrap();
        jobs.first().is_some_and(|job| job["job_id"] == third && job["total"].as_i64() > jobs[1]["total"].as_i64())
    })
    .await;
    let table = said(&stack.berth(&lead, &["prio", "-o", "wide"]));
    assert!(table.contains("FAIRSHARE") && table.contains("JOB_SIZE"), "{table}");
    until("the tree shows who has used something", async || {
        let tree = said(&stack.berth(&lead, &["share", "-o", "wide"]));
        tree.lines().any(|line| line.trim_start().starts_with("ml") && line.contains("ann"))
    })
    .await;
    let seen = stack.call("GET", "/v1/shares?user=bob", &stack.token("eve", "other", "tenant_admin"), None).await.1;
    assert_eq!(seen["items"], serde_json::json!([]), "nobody sees another tenant's tree");

    // A limit at submission, one that can never be met, and a limit that is taken away.
    stack.submit(&ann, script);
    let path = stack.path("script.sh");
    let refused = stack.berth(&ann, &["submit", path.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("max_submit_jobs=3"), "{error}");
    let refused = stack.berth(&bob, &["submit", "--qos=short", "--time=11", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("can never be met"), "{refused:?}");
    said(&stack.berth(&lead, &["accounts", "set", "ml", "GrpTRES=cpu=-1"]));
    stack.until_state(&bob, third, "running").await;
    for job in [first, second, third] {
        said(&stack.berth(&lead, &["cancel", &job.to_string()]));
    }
}
