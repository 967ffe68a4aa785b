//! Reservations as administrators and users meet them, with real workers: maintenance, a user's own, a magnetic one, and their ends.

mod common;

use common::{Stack, refused, said, until};
use serde_json::{Value, json};

fn script(options: &str, command: &str) -> String {
    format!("#!/bin/sh\n#SBATCH --mem=32M {options}\n{command}\n")
}

async fn stack(nodes: usize) -> (Stack, String, String) {
    let mut stack = Stack::start(1, 1).await;
    for number in 1..=nodes {
        let worker = stack.worker(&format!("n{number}"), &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
        stack.workers.push(worker);
    }
    let (root, ann) = (stack.token("root", "acme", "platform_admin"), stack.user());
    (stack, root, ann)
}

async fn explained(stack: &Stack, token: &str, job: u64, code: &str) -> Value {
    let path = format!("/v1/jobs/{job}/explain");
    let verdict = async || stack.call("GET", &path, token, None).await.1;
    until(&format!("job {job} hears {code}"), async || verdict().await["verdicts"][0]["code"] == code).await;
    verdict().await
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_keeps_long_jobs_out_and_lets_short_ones_in() {
    let (stack, root, ann) = stack(1).await;
    said(&stack.berth(&root, &["reservations", "create", "fans", "start=now+30minutes", "duration=60", "nodes=n1", "flags=MAINT"]));
    let long = stack.submit(&ann, &script("-t 40", "true"));
    let short = stack.submit(&ann, &script("-t 10", "echo reservation=$SLURM_JOB_RESERVATION"));
    stack.until_state(&ann, short, "completed").await;
    until("its output is there", async || stack.output(&ann, short).await == "reservation=\n").await;
    let why = explained(&stack, &ann, long, "reserved").await;
    let reservation = stack.call("GET", "/v1/reservations/fans", &root, None).await.1;
    let verdict = &why["verdicts"][0];
    assert_eq!((&verdict["object"], &verdict["clears_at"]), (&json!("reservation/fans"), &reservation["window"]["end"]), "{why:#}");
    assert_eq!(why["planned_start"]["at"], reservation["window"]["end"], "{why:#}");
    let told = said(&stack.berth(&ann, &["why", &long.to_string()]));
    assert!(told.contains("stays out of reservation fans"), "{told}");
    // Nobody may submit to it, and nobody else may see whose it is.
    let answer = refused(&stack.berth(&ann, &["submit", "--reservation=fans", "--wrap=true"]));
    assert!(answer.contains("no reservation fans"), "{answer}");
    let denied = refused(&stack.berth(&ann, &["reservations", "create", "mine", "duration=60", "nodes=n1", "users=acme/ann"]));
    assert!(denied.contains("platform_admin"), "{denied}");
    // The window goes: the job starts.
    assert_eq!(stack.call("DELETE", "/v1/reservations/fans", &ann, None).await.0, 403);
    said(&stack.berth(&root, &["reservations", "delete", "fans"]));
    stack.until_state(&ann, long, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_its_users_and_ends() {
    let (stack, root, ann) = stack(2).await;
    let bob = stack.token("bob", "acme", "user");
    let eve = stack.token("eve", "other", "tenant_admin");
    let made = said(&stack.berth(&root, &["reservations", "create", "demo", "duration=60", "NodeCnt=1", "users=acme/ann"]));
    assert!(made.contains("Reservation created: demo on n1"), "{made}");
    let (status, problem) = stack
        .call(
            "POST",
            "/v1/reservations",
            &root,
            Some(json!({ "name": "more", "duration_seconds": 600, "node_count": 2, "tenants": ["acme"] })),
        )
        .await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("nodes_unavailable")), "{problem:#}");
    assert!(problem["detail"].as_str().unwrap().contains("n1: reservation demo"), "{problem:#}");
    for (people, missing) in [("tenants=nowhere", "no tenant nowhere"), ("accounts=acme/nothing", "no account nothing of tenant acme")] {
        let unknown = refused(&stack.berth(&root, &["reservations", "create", "x", "duration=60", "nodes=n2", people]));
        assert!(unknown.contains(missing), "{unknown}");
    }
    // Who sees it.
    for (token, sees) in [(&root, true), (&ann, true), (&bob, false), (&eve, false)] {
        let (status, list) = stack.call("GET", "/v1/reservations", token, None).await;
        assert_eq!((status, list["items"].as_array().unwrap().len()), (200, usize::from(sees)));
        assert_eq!(stack.call("GET", "/v1/reservations/demo", token, None).await.0, if sees { 200 } else { 404 });
    }
    let node = stack.call("GET", "/v1/nodes/n1", &ann, None).await.1;
    assert_eq!((&node["flags"], &node["reservation"]), (&json!(["reserved"]), &json!("demo")));
    assert_eq!(node["status"], "reserved", "nothing runs there");
    let other = stack.call("GET", "/v1/nodes/n1", &eve, None).await.1;
    assert_eq!((&other["flags"], &other["reservation"]), (&json!(["reserved"]), &Value::Null));

    // Outside, both of bob's jobs share the other node, and ann's has hers.
    let own = stack.submit(&ann, &script("-t 5 -c 2 --reservation=demo", "echo in $SLURM_JOB_RESERVATION; sleep 60"));
    let bobs = [stack.submit(&bob, &script("-t 5 -c 2", "sleep 60")), stack.submit(&bob, &script("-t 5 -c 2", "true"))];
    assert_eq!(stack.until_state(&ann, own, "running").await["nodes"], "n1");
    assert_eq!(stack.until_state(&bob, bobs[0], "running").await["nodes"], "n2");
    until("its output is there", async || stack.output(&ann, own).await == "in demo\n").await;
    let next = stack.submit(&ann, &script("-t 5 -c 2 --reservation=demo", "true"));
    let why = explained(&stack, &ann, next, "reservation_nodes_busy").await;
    assert_eq!(why["verdicts"][0]["holders"], json!([format!("job/{own}")]), "{why:#}");
    for (options, token, code) in [
        ("--reservation=nothing", &ann, "no reservation nothing"),
        ("--reservation=demo", &bob, "does not take jobs of bob"),
        ("--reservation=demo --time=2:00:00", &ann, "does not fit into the reservation demo"),
    ] {
        let mut line = vec!["submit"];
        line.extend(options.split(' '));
        line.push("--wrap=true");
        let answer = refused(&stack.berth(token, &line));
        assert!(answer.contains(code), "{answer}");
    }
    let metrics = stack.http.get(format!("{}/metrics", stack.servers())).send().await.unwrap().text().await.unwrap();
    for line in [
        "berth_reserved{reservation=\"demo\",maint=\"false\",resource=\"cpu\",state=\"used\"} 2",
        "berth_reserved{reservation=\"demo\",maint=\"false\",resource=\"node\",state=\"idle\"} 0",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }

    // It is not deleted under its jobs; when it goes, who waits for it is held and told.
    let in_use = refused(&stack.berth(&root, &["reservations", "delete", "demo"]));
    assert!(in_use.contains("a job runs in reservation demo"), "{in_use}");
    for change in [&["Nodes=n2", "Flags=IGNORE_JOBS"][..], &["StartTime=now+1hour"]] {
        let left = refused(&stack.berth(&root, &[&["reservations", "update", "demo"], change].concat()));
        assert!(left.contains(&format!("job {own} runs in it on n1")), "{left}");
    }
    let (status, stale) = {
        let request = stack.http.patch(format!("{}/v1/reservations/demo", stack.servers())).bearer_auth(&root).header("if-match", "\"99\"");
        let response = request.json(&json!({ "comment": "x" })).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(status, 412, "{stale}");
    said(&stack.berth(&ann, &["cancel", &own.to_string()]));
    stack.until_state(&ann, next, "completed").await;
    let last = stack.submit(&ann, &script("-t 5 -c 2 --begin=now+1hour --reservation=demo", "true"));
    until("nobody runs in it", async || stack.call("GET", "/v1/reservations/demo", &root, None).await.1["running_jobs"] == 0).await;
    said(&stack.berth(&root, &["reservations", "delete", "demo"]));
    let held = stack.job(&ann, last).await;
    assert_eq!((&held["hold"], &held["state"]), (&json!("user"), &json!("pending")), "{held:#}");
    stack.until_state(&bob, bobs[1], "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_magnetic_one_attracts_and_a_short_one_is_over_by_itself() {
    let (stack, root, ann) = stack(1).await;
    said(&stack.berth(&root, &["reservations", "create", "pull", "duration=60", "nodes=n1", "tenants=acme", "flags=MAGNETIC"]));
    let job = stack.submit(&ann, &script("-t 5", "echo in $SLURM_JOB_RESERVATION"));
    stack.until_state(&ann, job, "completed").await;
    until("its output is there", async || stack.output(&ann, job).await == "in pull\n").await;
    // Who may not use it stays out of it.
    let eve = stack.token("eve", "other", "user");
    let outside = stack.submit(&eve, &script("-t 5", "true"));
    let why = explained(&stack, &eve, outside, "reserved").await;
    assert_eq!((&why["verdicts"][0]["object"], &why["verdicts"][0]["holders"]), (&json!("reservation"), &Value::Null), "{why:#}");
    assert!(!why.to_string().contains("pull"), "it is none of theirs: {why:#}");
    said(&stack.berth(&root, &["reservations", "update", "pull", "EndTime=now+4", "flags=MAGNETIC,NO_HOLD_JOBS_AFTER_END"]));
    stack.until_state(&eve, outside, "completed").await;
    until("it is gone", async || stack.call("GET", "/v1/reservations/pull", &root, None).await.0 == 404).await;
}
