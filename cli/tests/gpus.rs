//! GPUs as NVML shows them: the real discovery code on a simulated `libnvidia-ml.so`.

mod common;

use common::{Stack, said, until};
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

#[tokio::test(flavor = "multi_thread")]
async fn mig_instances_are_gpus_of_their_own_types_and_go_one_by_one() {
    let mut stack = Stack::start(1, 1).await;
    let built = std::env::current_exe().unwrap().with_file_name("libnvidia_ml.so");
    let library = stack.path("libnvidia-ml.so");
    std::fs::copy(built, &library).unwrap();
    // GPU 0 is whole, GPU 1 is cut.
    let slice = |profile: &str, uuid: &str| json!({ "profile": profile, "memory_bytes": 10u64 << 30, "uuid": uuid });
    let mig = json!([slice("1g.10gb", "MIG-a"), slice("1g.10gb", "MIG-b"), slice("1g.10gb", "MIG-c"), slice("3g.40gb", "MIG-d")]);
    std::fs::write(stack.path("libnvidia-ml.so.state"), json!({ "gpus": [{}, { "mig": mig }] }).to_string()).unwrap();
    let worker = stack.worker("n1", &["--node-cpus", "4", "--node-memory", "2GiB", "--nvml-library", library.to_str().unwrap()]).await;
    stack.workers.push(worker);
    let ann = stack.user();
    let listed = said(&stack.berth(&ann, &["nodes"]));
    assert!(listed.contains("0/3 1g.10gb, 0/1 3g.40gb, 0/1 h100"), "{listed}");

    let two = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gpus=1g.10gb:2 --mem=64M\necho $CUDA_VISIBLE_DEVICES $SLURM_JOB_GPUS\nsleep 600\n");
    stack.until_state(&ann, two, "running").await;
    until("it has told its devices", async || !stack.output(&ann, two).await.is_empty()).await;
    assert_eq!(stack.output(&ann, two).await.trim(), "MIG-a,MIG-b 200,201");
    // A task has the slice that is its own; the third one is left, a fourth there is not.
    let each = "#!/bin/sh\n#SBATCH -n1 --gpus-per-task=1g.10gb:1 --mem=64M\nsrun sh -c 'echo $CUDA_VISIBLE_DEVICES'\n";
    let one = stack.submit(&ann, each);
    stack.until_state(&ann, one, "completed").await;
    assert_eq!(stack.output(&ann, one).await.trim(), "MIG-c");
    let more = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gpus=1g.10gb:4 --mem=64M\ntrue\n");
    let job = format!("/v1/jobs/{more}/explain");
    until("it hears that there are too few", async || {
        stack.call("GET", &job, &ann, None).await.1.to_string().contains("shape_unsatisfiable")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_shared_as_shards_and_by_mps() {
    let mut stack = Stack::start(1, 1).await;
    let what = ["--node-cpus", "8", "--node-memory", "2GiB", "--node-gpus", "h100:4", "--node-gres", "shard:32,mps:1300+1200+1100+1000"];
    let worker = stack.worker("n1", &what).await;
    stack.workers.push(worker);
    let ann = stack.user();
    let tells = "echo $CUDA_VISIBLE_DEVICES/$SLURM_SHARDS_ON_NODE/$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE/$SLURM_GPUS_ON_NODE; sleep 600\n";
    let mut jobs = Vec::new();
    // Two join, a third opens another GPU; whoever comes by MPS has one that no shard is on, and there is one left.
    for (gres, says) in [("shard:4", "0/4//"), ("shard:4", "0/4//"), ("shard:2", "1/2//"), ("mps:200", "2//18/"), ("gpu:1", "3///1")] {
        let job = stack.submit(&ann, &format!("#!/bin/sh\n#SBATCH --gres={gres} --mem=64M\n{tells}"));
        until("it has told its devices", async || !stack.output(&ann, job).await.is_empty()).await;
        assert_eq!(stack.output(&ann, job).await.trim(), says, "{gres}");
        jobs.push(job);
    }
    let listed = said(&stack.berth(&ann, &["nodes"]));
    assert!(listed.contains("4/4 h100, 200/4600 mps, 10/32 shard"), "{listed}");
    let first = stack.call("GET", &format!("/v1/jobs/{}", jobs[0]), &ann, None).await.1;
    assert_eq!(first["spec"]["resources"]["gpu_share"], "shard:4", "{first:#}");

    // All are open: a whole one waits, more shards than a GPU has never start, six join the third.
    let waits = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gres=gpu:1 --mem=64M -t 10\ntrue\n");
    let never = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gres=shard:9 --mem=64M -t 10\ntrue\n");
    let joins = stack.submit(&ann, "#!/bin/sh\n#SBATCH --gres=shard:6 --mem=64M -t 10\necho $CUDA_VISIBLE_DEVICES\n");
    stack.until_state(&ann, joins, "completed").await;
    assert_eq!(stack.output(&ann, joins).await.trim(), "1");
    let explained = async |job: u64| said(&stack.berth(&ann, &["explain", &job.to_string()]));
    until("the whole one hears of shares", async || explained(waits).await.contains("of 32 shards taken")).await;
    until("too many are refused", async || explained(never).await.contains("each of up to 8 shards or 1000 mps")).await;
    let refused = stack
        .call("POST", "/v1/jobs", &ann, Some(json!({ "command": ["true"], "resources": { "gpu_share": "shard:1", "gpus": 1 } })))
        .await;
    assert_eq!((refused.0, refused.1["code"].as_str()), (422, Some("gpu_share_with_gpus")), "{:#}", refused.1);
    // When the three have gone, their GPUs are whole again.
    for job in &jobs[..3] {
        stack.berth(&ann, &["cancel", &job.to_string()]);
    }
    stack.until_state(&ann, waits, "completed").await;

    let admin = stack.token("root", "", "platform_admin");
    let made = stack.berth(&admin, &["nodes", "create", "c1", "--cpus=8", "--memory=8GiB", "--gpus=h100:2", "--gres=shard:16"]);
    said(&made);
    let node = stack.call("GET", "/v1/nodes/c1", &admin, None).await.1;
    assert_eq!(node["inventory"]["gpu_shares"]["shard"], json!({ "0": 8, "1": 8 }), "{node:#}");
}
