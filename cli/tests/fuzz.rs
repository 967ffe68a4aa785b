//! Generated requests against a live service: no 5xx, and no answer that the OpenAPI document does not describe.

mod common;

use std::process::Command;

use common::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn no_generated_request_breaks_the_service_or_its_own_document() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/fuzz.sh");
    let token = stack.token("root", "acme", "platform_admin,tenant_admin,user");
    let output = Command::new("sh").arg(script).env("BERTH_SERVER", stack.servers()).env("BERTH_TOKEN", token).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    let cases = text.lines().find(|l| l.contains("generated")).unwrap_or_default();
    assert!(text.contains("Tested: ") && !cases.is_empty(), "{text}");
    println!("{}", cases.trim());
}
