//! Simulations: what was recorded, replayed under other policies.

mod common;

use common::Stack;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn recorded_history_is_replayed_under_other_policies() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
    stack.workers.push(worker);
    let (ann, admin) = (stack.user(), stack.token("root", "", "platform_admin"));
    let mut jobs = Vec::new();
    for cpus in [4, 4, 1] {
        let job = json!({ "command": ["sleep", "1"], "time_limit_seconds": 60 * cpus,
            "resources": { "cpus_per_task": cpus, "memory_per_node_bytes": 16 << 20 } });
        let (status, answer) = stack.call("POST", "/v1/jobs", &ann, Some(job)).await;
        assert_eq!(status, 201, "{answer}");
        jobs.push(answer["job_id"].as_u64().unwrap());
    }
    for job in &jobs {
        stack.until_state(&ann, *job, "completed").await;
    }
    let now = jiff::Timestamp::now();
    let period = format!("{}..{now}", now - jiff::SignedDuration::from_hours(1));
    let output = stack.berth(&admin, &["-o", "json", "simulate", "--history", &period, "--policy", "conservative", "--policy", "urgency"]);
    assert!(output.status.success(), "{output:?}");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&done["state"], &done["done_jobs"], &done["total_jobs"]), (&"done".into(), &6.into(), &6.into()), "{done}");
    let rows = done["result"]["policies"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["recorded", "conservative", "urgency"]);
    for row in rows {
        assert_eq!((&row["jobs"], &row["rejected"]), (&3.into(), &0.into()), "{row}");
        assert_eq!((&row["accounts"][0]["account"], &row["accounts"][0]["jobs"]), (&"default".into(), &3.into()), "{row}");
        assert!(row["mean_wait_seconds"].as_f64().unwrap() > 0.0, "{row}");
    }
    // With urgency the short and narrow third job, and which of the others is first, may differ; what was used may not.
    assert_eq!(rows[1]["accounts"][0]["unit_hours"], rows[2]["accounts"][0]["unit_hours"]);
    assert!(done["result"]["plots"]["wait"].as_str().unwrap().starts_with("<svg "));
    let output = stack.berth(&admin, &["simulate", "--history", &period, "--policy", "easy"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("recorded") && table.contains("UNIT HOURS"), "{table}");

    // Admins only; a period that is over; known policies.
    let asked = json!({ "from": now - jiff::SignedDuration::from_hours(1), "to": now, "policies": [{ "name": "mine", "policy": {} }] });
    assert_eq!(stack.call("POST", "/v1/simulations", &ann, Some(asked.clone())).await.0, 403);
    for (field, value, named) in [
        ("to", json!("2099-01-01T00:00:00Z"), "to"),
        ("from", json!("2020-01-01T00:00:00Z"), "from"),
        ("policies", json!([]), "policies"),
        ("policies", json!([{ "name": "recorded", "policy": {} }]), "policies[0].name"),
        ("policies", json!([{ "name": "a", "policy": { "kill_wait_seconds": 99999 } }]), "policies[0].policy.kill_wait_seconds"),
    ] {
        let mut bad = asked.clone();
        bad[field] = value;
        let (status, problem) = stack.call("POST", "/v1/simulations", &admin, Some(bad)).await;
        assert_eq!((status, problem["field"].as_str()), (422, Some(named)), "{problem}");
    }
    assert_eq!(stack.call("GET", "/v1/simulations/99", &admin, None).await.0, 404);
}
