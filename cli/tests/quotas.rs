//! Quotas as tenants meet them: beta borrows what acme does not use, and gives it back when acme wants it.

mod common;

use common::{Stack, said, until};
use serde_json::json;

const LONG: &str = "#!/bin/sh\n#SBATCH -c 1 -t 10 --mem=32M\n[ \"${SLURM_RESTART_COUNT:-0}\" -eq 0 ] || exit 0\nsleep 120\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_lends_it_gets_back() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let root = stack.token("root", "acme", "platform_admin");
    let (ann, boss) = (stack.user(), stack.token("boss", "acme", "tenant_admin"));
    let eve = stack.token("eve", "other", "user");
    said(&stack.berth(&root, &["policy", "set", "requeue_delay_seconds=00:00:01"]));
    said(&stack.berth(&root, &["tenants", "set", "acme", "Quota=cpu=1", "Cohort=research"]));
    let set = said(&stack.berth(&root, &["tenants", "set", "other", "Quota=cpu=1", "Cohort=research"]));
    assert!(set.contains("guaranteed=cpu=1 cohort=research") || set.contains("cohort=research guaranteed=cpu=1"), "{set}");
    // A tenant's own administrator cannot raise it, and accounts have none.
    for (path, body, status, field) in [
        ("/v1/tenants/acme", json!({ "terms": { "quota": { "guaranteed": { "cpu": 9 } } } }), 403, ""),
        ("/v1/tenants/acme", json!({ "terms": { "quota": { "guaranteed": { "node": 9 } } } }), 422, "terms.quota.guaranteed"),
        (
            "/v1/tenants/acme",
            json!({ "terms": { "quota": { "cohort": null, "lending_limit": { "cpu": 1 } } } }),
            422,
            "terms.quota.lending_limit",
        ),
        ("/v1/accounts/default", json!({ "terms": { "quota": { "cohort": "research" } } }), 422, "terms.quota"),
    ] {
        let token = if status == 403 { &boss } else { &root };
        let (found, problem) = stack.call("PATCH", path, token, Some(body)).await;
        assert_eq!((found, problem["field"].as_str().unwrap_or_default()), (status, field), "{problem}");
    }

    // Both CPUs: one of its own, and one that acme does not use. More is not lent.
    let own = stack.submit(&eve, LONG);
    stack.until_state(&eve, own, "running").await;
    let borrowed = stack.submit(&eve, LONG);
    stack.until_state(&eve, borrowed, "running").await;
    let third = stack.submit(&eve, LONG);
    until("it is told why", async || {
        let told = stack.call("GET", &format!("/v1/jobs/{third}/explain"), &eve, None).await.1;
        told["verdicts"][0]["code"] == "cohort_quota" && told["verdicts"][0]["object"] == "cohort/research"
    })
    .await;

    // acme wants its own: the job that has run for the shorter time gives way, and waits until something is lent again.
    let wanted = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 1 -t 10 --mem=32M\nsleep 1\n");
    stack.until_state(&ann, wanted, "completed").await;
    let attempts = stack.call("GET", &format!("/v1/jobs/{borrowed}/attempts"), &eve, None).await.1["items"].clone();
    assert_eq!((&attempts[0]["state"], &attempts[0]["preempted"]["for_job"]), (&json!("preempted"), &json!(wanted)), "{attempts}");
    assert_eq!(stack.job(&eve, own).await["state"], "running", "what is its own stays");
    stack.until_state(&eve, borrowed, "completed").await;
    let why = said(&stack.berth(&eve, &["why", &borrowed.to_string()]));
    assert!(why.contains("A job of another tenant preempted it at ") && why.contains("took back what it had lent"), "{why}");
    // An administrator of the platform sees all of it; a setting that is empty is taken back.
    let all = said(&stack.berth(&root, &["tenants"]));
    assert!(all.contains("acme") && all.contains("other"), "{all}");
    let queue = said(&stack.berth(&root, &["queue", "--all", "--tenant=all"]));
    assert!([own, borrowed, wanted].iter().all(|job| queue.contains(&format!("{job} "))), "{queue}");
    let set = said(&stack.berth(&root, &["tenants", "set", "other", "Quota=", "Cohort="]));
    assert!(!set.contains("guaranteed") && !set.contains("cohort"), "{set}");
}
