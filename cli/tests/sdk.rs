//! Both SDKs and their examples, run against a live service.

mod common;

use std::process::Command;

use common::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_and_their_examples_work_against_a_live_service() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
    stack.workers.push(worker);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/test.sh");
    let mut command = Command::new("sh");
    command.arg(script).env("BERTH_SERVER", stack.servers()).env("BERTH_TOKEN", stack.user());
    let output = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        stack.print_logs();
        panic!("{text}");
    }
    // Neither suite may have skipped what needs a service.
    assert!(text.contains("OK") && !text.contains("skipped"), "{text}");
}
