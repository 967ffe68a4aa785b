//! Four nodes, two tasks on each, as a data-parallel training job has them: a batch script whose `srun` starts Python ranks.

mod common;

use std::collections::BTreeSet;

use common::Stack;

async fn cluster() -> Stack {
    let mut stack = Stack::start(1, 1).await;
    for name in ["n1", "n2", "n3", "n4"] {
        let worker = stack.worker(name, &["--node-cpus", "4", "--node-memory", "4GiB", "--node-gpus", "h100:8"]).await;
        stack.workers.push(worker);
    }
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_of_four_nodes_find_each_other_and_reduce() {
    let stack = cluster().await;
    let ann = stack.user();
    let ranks = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ranks.py");
    let job = stack.submit(
        &ann,
        &format!(
            "#!/bin/bash\n#SBATCH --job-name=ddp --nodes=4\n#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-task=h100:2\n#SBATCH --time=2\n\
             echo \"nodes $SLURM_JOB_NODELIST tasks $SLURM_NTASKS\"\n\
             srun --label python3 {ranks}\n\
             srun -N1 -n1 sh -c 'echo one $SLURM_STEP_ID $SLURM_NTASKS'\n\
             srun -n8 --kill-on-bad-exit sh -c 'test $SLURM_PROCID = 5 && exit 7; sleep 30'\n\
             echo \"last step ended with $?\"\n"
        ),
    );
    stack.until_state(&ann, job, "completed").await;
    let text = stack.output(&ann, job).await;
    assert!(text.contains("nodes n[1-4] tasks 8"), "{text}");
    // 1 + 2 + … + 8, the squares of 0 to 7, and eight ones.
    assert!(text.contains("0: sum [36.0, 140.0, 8.0]"), "{text}");
    let lines: Vec<Vec<&str>> = text.lines().filter(|l| l.contains(": rank ")).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 8, "{text}");
    let mut seen = BTreeSet::new();
    for line in &lines {
        let [label, _, rank, _, local, _, node, _, gpus, _, sum] = line.as_slice() else { panic!("{line:?}") };
        assert_eq!(label.trim_end_matches(':'), *rank);
        assert_eq!(*sum, "36.0");
        let number: u32 = rank.parse().unwrap();
        assert_eq!((*local, *node), ((number % 2).to_string().as_str(), format!("n{}", number / 2 + 1).as_str()));
        for gpu in gpus.split(',') {
            assert!(seen.insert((node.to_string(), gpu.to_owned())), "a GPU is seen by two tasks: {text}");
        }
    }
    assert_eq!(seen.len(), 16, "each task sees two of its node's four GPUs: {text}");
    assert!(text.contains("one 1 1"), "{text}");
    assert!(text.contains("task 5: Exited with exit code 7"), "{text}");
    // The highest of all, as Slurm has it: the others were ended by SIGTERM.
    assert!(text.contains("last step ended with 143"), "{text}");
}
