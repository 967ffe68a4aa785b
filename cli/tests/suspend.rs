//! Suspension as users meet it: a victim stands still and goes on, an administrator does the same by hand, and what stands still can end.

mod common;

use common::{Stack, refused, said, until};
use serde_json::Value;

/// Counts, on as many CPUs as it is told, and says when it hears that it is to stand still.
fn counts(qos: &str, cpus: u32) -> String {
    format!(
        "#!/bin/bash\n#SBATCH --qos={qos} -c {cpus} -t 10 --mem=32M\ntrap 'echo told' TSTP\ntrap 'echo ended; exit 0' TERM\n\
         for i in $(seq 1 100000); do echo $i $(grep -o 'list:.*' /proc/self/status | head -1); sleep 0.05; done\n"
    )
}

async fn lines(stack: &Stack, token: &str, job: u64) -> usize {
    stack.output(token, job).await.lines().count()
}

async fn goes_on(stack: &Stack, token: &str, job: u64) {
    let before = lines(stack, token, job).await;
    until("the job writes on", async || lines(stack, token, job).await > before + 3).await;
}

/// Its output comes in with a delay: what it had written before is let in first.
async fn stands_still(stack: &Stack, token: &str, job: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let before = lines(stack, token, job).await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(lines(stack, token, job).await, before, "job {job} should stand still");
}

async fn attempt(stack: &Stack, token: &str, job: u64) -> Value {
    stack.call("GET", &format!("/v1/jobs/{job}/attempts"), token, None).await.1["items"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_victim_stands_still_while_the_other_runs() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let (root, ann) = (stack.token("root", "acme", "platform_admin"), stack.user());
    said(&stack.berth(&root, &["policy", "set", "PreemptType=preempt/qos", "PreemptMode=SUSPEND,GANG"]));
    said(&stack.berth(&root, &["qos", "set", "low", "GraceTime=60"]));
    said(&stack.berth(&root, &["qos", "set", "urgent", "Priority=100", "Preempt=low"]));
    let low = stack.submit(&ann, &counts("low", 2));
    stack.until_state(&ann, low, "running").await;
    goes_on(&stack, &ann, low).await;

    let urgent = stack.submit(&ann, "#!/bin/sh\n#SBATCH --qos=urgent -c 2 -t 5 --mem=32M\nsleep 6\n");
    stack.until_state(&ann, low, "suspended").await;
    stack.until_state(&ann, urgent, "running").await;
    stands_still(&stack, &ann, low).await;
    let why = said(&stack.berth(&ann, &["why", &low.to_string()]));
    assert!(why.contains("It is suspended") && why.contains(&format!("to make room for job {urgent}; it goes on as soon as")), "{why}");
    let why = said(&stack.berth(&ann, &["why", &urgent.to_string()]));
    assert!(why.contains(&format!("It had job {low} suspended.")), "{why}");

    stack.until_state(&ann, urgent, "completed").await;
    stack.until_state(&ann, low, "running").await;
    goes_on(&stack, &ann, low).await;
    // A shell acts on a signal when its child has ended, which SIGTSTP stopped.
    assert!(stack.output(&ann, low).await.contains("told"));
    let still = stack.job(&ann, low).await;
    assert!(still["suspended_seconds"].as_u64() >= Some(4), "{still}");
    assert_eq!((still["attempt"].as_u64(), still["restarts"].as_u64()), (Some(1), Some(0)));

    // Standing still, it can be cancelled, and hears so.
    let urgent = stack.submit(&ann, "#!/bin/sh\n#SBATCH --qos=urgent -c 2 -t 5 --mem=32M\nsleep 60\n");
    stack.until_state(&ann, low, "suspended").await;
    said(&stack.berth(&ann, &["cancel", &low.to_string()]));
    stack.until_state(&ann, low, "cancelled").await;
    let output = stack.output(&ann, low).await;
    assert!(output.contains("ended"), "{}", output.lines().rev().take(5).collect::<Vec<_>>().join("\n"));
    let ended = attempt(&stack, &ann, low).await;
    assert!(ended["suspension"].is_null() && ended["suspended_seconds"].as_u64() >= Some(4), "{ended}");
    said(&stack.berth(&ann, &["cancel", &urgent.to_string()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_suspends_a_job_that_goes_on_on_other_cpus_and_after_a_restart() {
    let mut stack = Stack::start(1, 1).await;
    let cpus = ["--node-cpus", "2", "--node-memory", "1GiB"];
    let worker = stack.worker("n1", &cpus).await;
    stack.workers.push(worker);
    let (admin, ann) = (stack.token("boss", "acme", "tenant_admin"), stack.user());
    let job = stack.submit(&ann, &counts("normal", 1));
    let id = job.to_string();
    stack.until_state(&ann, job, "running").await;
    goes_on(&stack, &ann, job).await;
    assert!(refused(&stack.berth(&ann, &["suspend", &id])).contains("tenant_admin"));
    assert!(refused(&stack.berth(&admin, &["resume", &id])).contains("not suspended"));
    said(&stack.berth(&admin, &["suspend", &id]));
    stack.until_state(&ann, job, "suspended").await;
    stands_still(&stack, &ann, job).await;
    assert!(said(&stack.berth(&ann, &["why", &id])).contains("by an administrator; it goes on when an administrator resumes it"));
    let cpu_of = |attempt: &Value| attempt["allocation"][0]["cpus"][0].as_u64().unwrap();
    let old = cpu_of(&attempt(&stack, &ann, job).await);

    // Another takes its CPU; a worker that is killed and comes back leaves it as it is.
    let other = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 1 -t 5 --mem=32M\nsleep 600\n");
    stack.until_state(&ann, other, "running").await;
    let third = stack.submit(&ann, "#!/bin/sh\n#SBATCH -c 1 -t 5 --mem=32M\nsleep 600\n");
    stack.until_state(&ann, third, "running").await;
    stack.workers.pop().unwrap().kill();
    let worker = stack.revive("n1", "", &cpus);
    stack.workers.push(worker);
    stands_still(&stack, &ann, job).await;

    // All CPUs are in use: it is to go on, and waits. Then the other CPU is freed.
    let resumed = said(&stack.berth(&admin, &["resume", &id]));
    assert!(resumed.contains(&format!("Job {job} goes on as soon as there are CPUs")), "{resumed}");
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(stack.job(&ann, job).await["state"], "suspended");
    let on_other = if cpu_of(&attempt(&stack, &ann, other).await) == old { third } else { other };
    said(&stack.berth(&ann, &["cancel", &on_other.to_string()]));
    stack.until_state(&ann, job, "running").await;
    goes_on(&stack, &ann, job).await;
    assert_eq!(cpu_of(&attempt(&stack, &ann, job).await), 1 - old, "on the CPU that is free now");
    said(&stack.berth(&ann, &["cancel", &id]));
    stack.until_state(&ann, job, "cancelled").await;
}
