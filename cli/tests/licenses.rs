//! Licences as administrators and users meet them, with a real worker: refused, waited for, held, given back.

mod common;

use common::{Stack, refused, said, until};
use serde_json::{Value, json};

fn script(licenses: &str, command: &str) -> String {
    format!("#!/bin/sh\n#SBATCH --mem=32M -t 10 -L {licenses}\n{command}\n")
}

async fn used(stack: &Stack, token: &str) -> Value {
    stack.call("GET", "/v1/licenses/matlab", token, None).await.1["used"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_licence_and_starts_when_it_is_given_back() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let (root, ann) = (stack.token("root", "acme", "platform_admin"), stack.user());

    // Nobody but administrators makes them, and unknown ones are refused.
    let answer = refused(&stack.berth(&ann, &["submit", "-L", "matlab", "--wrap=true"]));
    assert!(answer.contains("no licence matlab"), "{answer}");
    let denied = refused(&stack.berth(&ann, &["licenses", "set", "matlab", "Total=4"]));
    assert!(denied.contains("platform_admin"), "{denied}");
    let missing = refused(&stack.berth(&root, &["licenses", "set", "matlab", "Description=seats"]));
    assert!(missing.contains("Total=4"), "{missing}");
    assert!(said(&stack.berth(&root, &["licenses", "set", "matlab", "Total=2", "Description=seats"])).contains("2 in all, 0 in use"));
    let (status, stale) = stack.call("GET", "/v1/licenses/none", &ann, None).await;
    assert_eq!((status, stale["code"].as_str()), (404, Some("not_found")));
    // What admission knows of licences may be a second old.
    until("the licence is known", async || {
        let answer = String::from_utf8_lossy(&stack.berth(&ann, &["submit", "-L", "matlab:3", "--wrap=true"]).stderr).into_owned();
        answer.contains("3 of matlab are more than the 2 that the cluster has")
    })
    .await;

    let holder = stack.submit(&ann, &script("matlab:2", "echo licences=$SLURM_JOB_LICENSES; sleep 300"));
    stack.until_state(&ann, holder, "running").await;
    until("two are in use", async || used(&stack, &ann).await == json!(2)).await;
    let waiter = stack.submit(&ann, &script("matlab", "true"));
    let path = format!("/v1/jobs/{waiter}/explain");
    let why = async || stack.call("GET", &path, &ann, None).await.1;
    until("it hears of the licence", async || why().await["verdicts"][0]["code"] == "licenses").await;
    let why = why().await;
    let verdict = &why["verdicts"][0];
    assert_eq!((&verdict["object"], &verdict["have"]), (&json!("license/matlab"), &json!("2 of 2 in use")), "{why:#}");
    assert_eq!(verdict["holders"], json!([format!("job/{holder}")]), "{why:#}");
    assert_eq!(verdict["clears_at"], why["planned_start"]["at"], "{why:#}");
    // Others pass, and one that may use something else in its place does not wait.
    let other = stack.submit(&ann, "#!/bin/sh\n#SBATCH --mem=32M -t 10\ntrue\n");
    stack.until_state(&ann, other, "completed").await;
    said(&stack.berth(&root, &["licenses", "set", "comsol", "Total=1"]));
    let either = stack.submit(&ann, &script("'matlab|comsol'", "true"));
    stack.until_state(&ann, either, "completed").await;

    let table = said(&stack.berth(&ann, &["licenses"]));
    assert!(table.contains("matlab") && table.contains("seats"), "{table}");
    // Lowered below what is in use: nobody is stopped.
    assert!(said(&stack.berth(&root, &["licenses", "set", "matlab", "Total=1"])).contains("1 in all, 2 in use"));
    let in_use = refused(&stack.berth(&root, &["licenses", "delete", "matlab"]));
    assert!(in_use.contains("jobs ask for license matlab"), "{in_use}");
    let metrics = stack.http.get(format!("{}/metrics", stack.servers())).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains(r#"berth_licenses{license="matlab",state="used"} 2"#), "{metrics}");

    assert!(stack.berth(&ann, &["cancel", &holder.to_string()]).status.success());
    stack.until_state(&ann, waiter, "completed").await;
    until("none is in use", async || used(&stack, &ann).await == json!(0)).await;
    said(&stack.berth(&root, &["licenses", "delete", "matlab"]));
}
