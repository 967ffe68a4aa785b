//! Whole cores on a node whose cores have two threads.

mod common;

use common::{Stack, refused, said, until};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn jobs_have_whole_cores() {
    let mut stack = Stack::start(1, 1).await;
    let what = ["--node-cpus", "8", "--node-threads-per-core", "2", "--node-memory", "2GiB"];
    let worker = stack.worker("n1", &what).await;
    stack.workers.push(worker);
    let (ann, admin) = (stack.user(), stack.token("root", "", "platform_admin"));
    let mut jobs = Vec::new();
    let tells = "echo $SLURM_CPUS_ON_NODE/$SLURM_THREADS_PER_CORE/$SLURM_NTASKS_PER_CORE; sleep 600\n";
    // Options, what the job sees, and CPUs that it is charged for.
    for (options, says, charged) in [("-n1", "2//", 2), ("-n2 --hint=nomultithread", "2/1/", 4), ("-n1 --ntasks-per-core=1", "1//1", 2)] {
        let job = stack.submit(&ann, &format!("#!/bin/sh\n#SBATCH {options} --mem=64M -t 30\n{tells}"));
        until("it has told its CPUs", async || !stack.output(&ann, job).await.is_empty()).await;
        assert_eq!(stack.output(&ann, job).await.trim(), says, "{options}");
        let attempts = stack.call("GET", &format!("/v1/jobs/{job}/attempts"), &ann, None).await.1;
        let held: u64 = attempts["items"][0]["allocation"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|part| (part["cpus"].as_array().map_or(0, Vec::len) + part["idle_cpus"].as_array().map_or(0, Vec::len)) as u64)
            .sum();
        assert_eq!(held, charged, "{attempts:#}");
        jobs.push(job);
    }
    let node = stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert_eq!((node["allocated_cpus"].as_u64(), node["state"].as_str()), (Some(8), Some("allocated")), "{node:#}");
    assert_eq!(node["inventory"]["cores"], json!([[0, 1], [2, 3], [4, 5], [6, 7]]), "{node:#}");
    let shown = said(&stack.berth(&admin, &["show", "n1"]));
    assert!(shown.contains("4 of 2 threads"), "{shown}");

    // No core is left; more than there are never start, and a hint that is not followed is no silent one.
    let waits = stack.submit(&ann, "#!/bin/sh\n#SBATCH -n1 --mem=64M -t 10\ntrue\n");
    let never = stack.submit(&ann, "#!/bin/sh\n#SBATCH -n5 --threads-per-core=1 --mem=64M -t 10\ntrue\n");
    let explained = async |job: u64| said(&stack.berth(&ann, &["explain", &job.to_string()]));
    until("five cores are too many", async || explained(never).await.contains("1 thread of each core")).await;
    let hint = refused(&stack.berth(&ann, &["submit", "--hint=memory_bound", "--wrap", "true"]));
    assert!(hint.contains("one core of each socket"), "{hint}");
    stack.berth(&ann, &["cancel", &jobs[0].to_string()]);
    stack.until_state(&ann, waits, "completed").await;

    said(&stack.berth(&admin, &["nodes", "create", "c1", "--cpus=4", "--threads-per-core=2", "--memory=8GiB"]));
    let declared = stack.call("GET", "/v1/nodes/c1", &admin, None).await.1;
    assert_eq!(declared["inventory"]["cores"], json!([[0, 1], [2, 3]]), "{declared:#}");
    let odd = refused(&stack.berth(&admin, &["nodes", "create", "c2", "--cpus=5", "--threads-per-core=2", "--memory=8GiB"]));
    assert!(odd.contains("5 CPUs of 2 threads a core"), "{odd}");
}
