//! What must hold when parts die or are cut off: every acknowledged job runs once, none is lost, none doubled.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Stack, is_end, until};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const JOBS: usize = 1000;
const CLIENTS: usize = 16;

/// Index of the leading scheduler and its epoch, from what the schedulers say.
fn leader(stack: &Stack) -> Option<(usize, u64)> {
    (0..2)
        .filter_map(|index| {
            let text = std::fs::read_to_string(stack.path(&format!("scheduler{index}.log"))).ok()?;
            let epoch = text.lines().rev().find_map(|line| {
                let line: Value = serde_json::from_str(line).ok()?;
                (line["fields"]["message"] == "leading").then(|| line["fields"]["epoch"].as_u64()).flatten()
            })?;
            Some((index, epoch))
        })
        .max_by_key(|(_, epoch)| *epoch)
}

async fn submit(stack: &Stack, token: &str, number: usize, file: &Path) -> u64 {
    let command = format!("echo $SLURM_JOB_ID >> {}", file.display());
    let body =
        json!({ "name": format!("j{number}"), "command": ["sh", "-c", command], "resources": { "memory_per_node_bytes": 64 << 20 } });
    for attempt in 0.. {
        let port = stack.ports[(number + attempt) % stack.ports.len()];
        let request = stack
            .http
            .post(format!("http://127.0.0.1:{port}/v1/jobs"))
            .bearer_auth(token)
            .header("idempotency-key", format!("key-{number}"));
        match request.json(&body).send().await {
            Ok(response) if response.status() == 201 => match response.json::<Value>().await {
                Ok(answer) => return answer["job_id"].as_u64().unwrap(),
                Err(_) => continue,
            },
            Ok(response) if response.status() == 503 => {}
            Ok(response) => panic!("{}: {}", response.status(), response.text().await.unwrap()),
            Err(_) => {}
        }
        assert!(attempt < 400, "no replica takes the job");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    unreachable!()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_outlive_schedulers_a_replica_and_a_worker() {
    let mut stack = Stack::start(2, 2).await;
    let size = ["--node-cpus", "16", "--node-memory", "8GiB"];
    for name in ["w0", "w1", "w2"] {
        let worker = stack.worker(name, &size).await;
        stack.workers.push(worker);
    }
    until("a scheduler leads", async || leader(&stack).is_some()).await;
    let ann = stack.user();
    let file = stack.path("ran");
    let next = Arc::new(AtomicUsize::new(0));
    let mut stack = Arc::new(stack);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (stack, ann, file, next) = (stack.clone(), ann.clone(), file.clone(), next.clone());
        clients.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= JOBS {
                    return mine;
                }
                mine.push(submit(&stack, &ann, number, &file).await);
                // Spread over the time in which things die.
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
        }));
    }
    let mut dead = Dead::default();
    for round in 0..2 {
        tokio::time::sleep(Duration::from_millis(800)).await;
        dead.kill_leader(&stack).await;
        if round == 0 {
            dead.kill(&stack, "api0.log");
            tokio::time::sleep(Duration::from_millis(500)).await;
            dead.restarted.push(stack.api(0));
            dead.kill(&stack, "w1.log");
            tokio::time::sleep(Duration::from_millis(300)).await;
            dead.restarted.push(stack.worker("w1", &size).await);
        }
    }
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    assert_eq!(acknowledged.len(), JOBS);
    let stack = Arc::get_mut(&mut stack).unwrap();
    let deadline = Instant::now() + Duration::from_secs(240);
    for job in &acknowledged {
        loop {
            let found = stack.job(&ann, *job).await;
            if found["state"] == "completed" {
                break;
            }
            if is_end(&found) || Instant::now() > deadline {
                stack.print_logs();
                panic!("job {job} did not complete: {found:#}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let mut runs: BTreeMap<u64, u32> = BTreeMap::new();
    for line in std::fs::read_to_string(&file).unwrap().lines() {
        *runs.entry(line.parse().unwrap()).or_default() += 1;
    }
    let doubled: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "ran more than once: {doubled:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|job| !runs.contains_key(job)).collect();
    assert!(lost.is_empty(), "acknowledged and never run: {lost:?}");
    assert_eq!(runs.len(), JOBS, "something ran that nobody was told of");
    println!("takeovers: {:?}", dead.takeovers);
}

/// What was killed and started again.
#[derive(Default)]
struct Dead {
    restarted: Vec<common::Process>,
    takeovers: Vec<Duration>,
}

impl Dead {
    /// SIGKILL for the process with this log. (Its handle in the stack stays, and finds it dead at the end.)
    fn kill(&self, stack: &Stack, log: &str) {
        let pid = stack.pid_of(log);
        assert!(std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }

    async fn kill_leader(&mut self, stack: &Stack) {
        let (index, epoch) = leader(stack).unwrap();
        self.kill(stack, &format!("scheduler{index}.log"));
        let died = Instant::now();
        until("the standby leads", async || leader(stack).is_some_and(|(_, e)| e > epoch)).await;
        self.takeovers.push(died.elapsed());
        self.restarted.push(stack.scheduler(index));
    }
}

/// A way to the service that can be cut: connections stay open and nothing passes any more.
async fn cuttable(to: u16, is_cut: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((inner, _)) = listener.accept().await {
            let is_cut = is_cut.clone();
            tokio::spawn(async move {
                if is_cut.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let outer = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let (inner_read, inner_write) = inner.into_split();
                let (outer_read, outer_write) = outer.into_split();
                tokio::join!(pass(inner_read, outer_write, is_cut.clone()), pass(outer_read, inner_write, is_cut));
            });
        }
    });
    port
}

async fn pass(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf, is_cut: Arc<AtomicBool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = tokio::io::AsyncReadExt::read(&mut from, &mut buffer).await {
        if is_cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_kills_its_steps_before_they_start_elsewhere() {
    let mut stack = Stack::start(1, 1).await;
    let admin = stack.token("root", "", "platform_admin");
    let (_, mut policy) = stack.call("GET", "/v1/policy", &admin, None).await;
    policy["node_timeout_seconds"] = json!(3);
    policy["requeue_delay_seconds"] = json!(0);
    policy.as_object_mut().unwrap().remove("version");
    let (status, answer) = stack.call("PUT", "/v1/policy", &admin, Some(policy)).await;
    assert_eq!(status, 200, "{answer}");
    let is_cut = Arc::new(AtomicBool::new(false));
    let port = cuttable(stack.ports[0], is_cut.clone()).await;
    let worker = stack.worker_of("n1", &format!("http://127.0.0.1:{port}"), &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let ann = stack.user();
    let beats = stack.path("beats");
    let script = format!(
        "#!/bin/bash\n#SBATCH --mem=64M --time=5\nfor i in $(seq 400); do echo $BERTH_ATTEMPT $SLURMD_NODENAME $(date +%s%N) >> {}; sleep 0.02; [ $BERTH_ATTEMPT = 2 ] && [ $i = 20 ] && exit 0; done\n",
        beats.display()
    );
    let job = stack.submit(&ann, &script);
    stack.until_state(&ann, job, "running").await;
    let worker = stack.worker("n2", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    is_cut.store(true, Ordering::SeqCst);
    let cut = Instant::now();
    let ended = stack.until_state(&ann, job, "completed").await;
    println!("cut off, fenced, placed again and done after {:?}", cut.elapsed());
    assert_eq!((ended["attempt"].as_u64(), ended["restarts"].as_u64()), (Some(2), Some(1)), "{ended:#}");
    assert_eq!(ended["nodes"], "n2");
    let mut last_of_first = 0u64;
    let mut first_of_second = u64::MAX;
    for line in std::fs::read_to_string(&beats).unwrap().lines() {
        let [attempt, node, at] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let at: u64 = at.parse().unwrap();
        match (attempt, node) {
            ("1", "n1") => last_of_first = last_of_first.max(at),
            ("2", "n2") => first_of_second = first_of_second.min(at),
            other => panic!("{other:?}"),
        }
    }
    assert!(last_of_first < first_of_second, "both attempts ran at once");
    // The node comes back and is used again.
    is_cut.store(false, Ordering::SeqCst);
    until("the node is back", async || stack.call("GET", "/v1/nodes/n1", &admin, None).await.1["state"] == "idle").await;
}
