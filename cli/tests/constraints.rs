//! Constraints as users write them, with real workers of different features.

mod common;

use common::{Stack, refused, until};

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_of_one_kind_counted_or_preferred() {
    let mut stack = Stack::start(1, 1).await;
    for (number, features) in [(1, "rack1"), (2, "rack2,ib"), (3, "rack2")] {
        let worker = stack.worker(&format!("n{number}"), &["--node-cpus", "2", "--node-memory", "1GiB", "--node-features", features]).await;
        stack.workers.push(worker);
    }
    let ann = stack.user();
    let nodes = async |options: &str| {
        let script = format!("#!/bin/sh\n#SBATCH --mem=32M -t 10 {options}\necho $SLURM_JOB_NODELIST\n");
        let job = stack.submit(&ann, &script);
        stack.until_state(&ann, job, "completed").await;
        until("its output is there", async || !stack.output(&ann, job).await.is_empty()).await;
        stack.output(&ann, job).await.trim().to_owned()
    };
    assert_eq!(nodes("-N 2 -C '[rack1|rack2]'").await, "n[2-3]");
    assert_eq!(nodes("-C '[rack1*1&rack2*1]' -x n2").await, "n[1,3]", "as many nodes as are counted");
    assert_eq!(nodes("--prefer=ib").await, "n2");
    assert_eq!(nodes("--prefer=ib -C rack1").await, "n1", "what it must have goes before what it prefers");

    let wrong = refused(&stack.berth(&ann, &["submit", "-C", "[rack1|rack2", "--wrap=true"]));
    assert!(wrong.contains("the expression ends where & or | or ] should be"), "{wrong}");
    let wrong = refused(&stack.berth(&ann, &["submit", "-N", "2", "-C", "[rack1*1&rack2*2]", "--wrap=true"]));
    assert!(wrong.contains("counts 3 nodes, and the job has 2 at most"), "{wrong}");

    let job = stack.submit(&ann, "#!/bin/sh\n#SBATCH --mem=32M -N 2 -C '[rack1*1&rack3*1]'\ntrue\n");
    let path = format!("/v1/jobs/{job}/explain");
    let why = async || stack.call("GET", &path, &ann, None).await.1;
    until("it hears of its constraint", async || why().await["verdicts"][0]["code"] == "constraint_unsatisfiable").await;
    assert_eq!(why().await["verdicts"][0]["have"], "no node has rack3");
    // Changed, it starts.
    assert!(stack.berth(&ann, &["update", &job.to_string(), "-C", "[rack1*1&rack2*1]"]).status.success());
    stack.until_state(&ann, job, "completed").await;
}
