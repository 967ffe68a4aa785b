//! Preemption as users meet it: an urgent job takes the node, the other one is warned, runs again, and both are told why.

mod common;

use common::{Stack, said, until};

/// Saves its work, waits, and says that it was warned; run again, it says so and ends.
const LOW: &str = "#!/bin/sh
#SBATCH --qos=low -c 2 -t 10 --mem=32M
if [ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ]; then echo resumed; exit 0; fi
scontrol checkpoint || exit 3
trap 'echo warned; exit 0' TERM
sleep 120 &
wait
";
const URGENT: &str = "#!/bin/sh\n#SBATCH --qos=urgent -c 2 -t 1 --mem=32M\ntrue\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_job_takes_the_node_and_gives_it_back() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let root = stack.token("root", "acme", "platform_admin");
    let ann = stack.user();
    said(&stack.berth(&root, &["policy", "set", "PreemptType=preempt/qos", "requeue_delay_seconds=00:00:01"]));
    said(&stack.berth(&root, &["qos", "set", "low", "GraceTime=60"]));
    said(&stack.berth(&root, &["qos", "set", "urgent", "Priority=100", "Preempt=low"]));
    let refused = stack.berth(&root, &["qos", "set", "low", "Preempt=urgent"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("urgent preempts low"), "{refused:?}");

    let low = stack.submit(&ann, LOW);
    stack.until_state(&ann, low, "running").await;
    let attempts = async || stack.call("GET", &format!("/v1/jobs/{low}/attempts"), &ann, None).await.1["items"].clone();
    until("the job has told of its checkpoint", async || attempts().await[0]["checkpoint_at"].is_string()).await;
    said(&stack.berth(&ann, &["checkpoint", &low.to_string()]));
    let other = stack.token("eve", "other", "user");
    assert_eq!(stack.call("POST", &format!("/v1/jobs/{low}:checkpoint"), &other, None).await.0, 404);

    let urgent = stack.submit(&ann, URGENT);
    // Long before the grace is over: the other one left when it was warned.
    stack.until_state(&ann, urgent, "completed").await;
    stack.until_state(&ann, low, "completed").await;
    let first = attempts().await[0].clone();
    assert_eq!(
        (&first["state"], &first["preempted"]["for_job"], &first["preempted"]["mode"]),
        (&"preempted".into(), &urgent.into(), &"requeue".into())
    );
    let why = |job: u64| said(&stack.berth(&ann, &["why", &job.to_string()]));
    assert!(why(urgent).contains(&format!("It preempted job {low}.")), "{}", why(urgent));
    assert!(why(low).contains(&format!("Job {urgent} preempted it at ")), "{}", why(low));
    let output = stack.output(&ann, low).await;
    assert!(output.contains("resumed"), "{output}");

    // With another mode it does not come back.
    said(&stack.berth(&root, &["qos", "set", "low", "PreemptMode=CANCEL"]));
    let low = stack.submit(&ann, LOW);
    stack.until_state(&ann, low, "running").await;
    let urgent = stack.submit(&ann, URGENT);
    stack.until_state(&ann, urgent, "completed").await;
    let ended = stack.until_state(&ann, low, "preempted").await;
    assert_eq!(ended["reason"], format!("preempted by job {urgent}"));
}
