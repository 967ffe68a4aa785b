//! GPUs as NVML shows them: the real discovery code on a simulated `libnvidia-ml.so`.

mod common;

use common::{Stack, until};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_discovered_given_to_jobs_and_drain_the_node_when_they_fail() {
    let mut stack = Stack::start(1, 1).await;
    // Built beside this test; a copy of its own has a state file of its own.
    let built = std::env::current_exe().unwrap().with_file_name("libnvidia_ml.so");
    let library = stack.path("libnvidia-ml.so");
    std::fs::copy(built, &library).unwrap();
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "2GiB", "--nvml-library", library.to_str().unwrap()]).await;
    stack.workers.push(worker);
    let admin = stack.token("root", "", "platform_admin");
    let node = stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    let gpus = node["inventory"]["gpus"].as_array().unwrap();
    assert_eq!(gpus.len(), 8, "{node:#}");
    assert!(gpus.iter().all(|g| g["type"] == "h100" && g["memory_bytes"].as_u64() > Some(70 << 30)), "{node:#}");
    assert!(node["inventory"]["facts"]["nvidia_driver"].is_string(), "{node:#}");

    let ann = stack.user();
    let job = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gpus=h100:3 --mem=64M\necho $CUDA_VISIBLE_DEVICES\n");
    stack.until_state(&ann, job, "completed").await;
    assert_eq!(stack.output(&ann, job).await.trim().split(',').count(), 3);

    // An Xid of the application's own making changes nothing; one of the hardware's drains the node.
    let state = |events: serde_json::Value| {
        let text =
            json!({ "gpus": (0..8).map(|i| json!({ "uuid": format!("GPU-{i}") })).collect::<Vec<_>>(), "events": events }).to_string();
        std::fs::write(stack.path("libnvidia-ml.so.state"), text).unwrap();
    };
    let flags = async || stack.call("GET", "/v1/nodes/n1", &admin, None).await.1["flags"].to_string();
    state(json!([{ "id": 1, "gpu": 2, "xid": 31 }]));
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(flags().await, "[]");
    state(json!([{ "id": 1, "gpu": 2, "xid": 31 }, { "id": 2, "gpu": 5, "xid": 79 }]));
    until("the node is drained", async || flags().await.contains("drain")).await;
    let node = stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert!(node["reason"].as_str().unwrap().contains("GPU 5: xid 79"), "{node:#}");
}
