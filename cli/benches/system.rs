//! The whole system measured on this machine, clients and all: submissions, the batch endpoint, short jobs to their end, and how long a
//! user waits for a first line; each beside Debian's Slurm where that is installed. `make bench` runs it; `docs/benchmarks.md` holds results.

#[path = "../tests/common/mod.rs"]
mod common;
mod slurm;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{BERTH, Stack};
use serde_json::json;
use slurm::Slurm;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

#[tokio::main]
async fn main() {
    // cargo asks benches for their list in other modes; only a real run measures.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    // `cargo bench … -- short waits` runs only these.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|c| c == part);
    if is_chosen("submissions") {
        submissions().await;
    }
    if is_chosen("short") {
        short_jobs().await;
    }
    if is_chosen("waits") {
        waits().await;
    }
}

/// One keep-alive connection that repeats a request: little beside the service's own work.
async fn client(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: Arc<Vec<u8>>, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        stream.write_all(&request).await.unwrap();
        let mut filled = 0;
        loop {
            let read = stream.read(&mut buffer[filled..]).await.unwrap();
            assert_ne!(read, 0, "the connection was closed");
            filled += read;
            if let Some(head) = buffer[..filled].windows(4).position(|w| w == b"\r\n\r\n") {
                let text = std::str::from_utf8(&buffer[..head]).unwrap().to_ascii_lowercase();
                assert!(text.starts_with("http/1.1 20"), "{text}");
                let length: usize = text.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().parse().unwrap();
                if filled >= head + 4 + length {
                    break;
                }
            }
        }
        times.push(begun.elapsed());
    }
    times
}

/// How `clients` fare that each repeat a request for some seconds.
async fn crowd(what: &str, clients: usize, connect: impl AsyncFn() -> Connection, request: &Arc<Vec<u8>>) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let (request, stop) = (request.clone(), stop.clone());
        tasks.push(match connect().await {
            Connection::Tcp(stream) => tokio::spawn(client(stream, request, stop)),
            Connection::Unix(stream) => tokio::spawn(client(stream, request, stop)),
        });
    }
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(4)).await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort();
    println!("{what:<12} {clients:>8} {rate:>10.0} {:>9.2} {:>9.2}", quantile(&times, 0.5), quantile(&times, 0.99));
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An HTTP/1.1 request with a JSON body.
fn post(path: &str, headers: &str, body: &str) -> Arc<Vec<u8>> {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    Arc::new(request.into_bytes())
}

fn quantile(times: &[Duration], q: f64) -> f64 {
    times[((times.len() - 1) as f64 * q) as usize].as_secs_f64() * 1e3
}

async fn submissions() {
    // No scheduler: its share of two cores is measured with the jobs' ends below.
    let stack = Stack::start(1, 0).await;
    let token = stack.user();
    let body =
        json!({ "name": "bench", "command": ["true"], "resources": { "memory_per_node_bytes": 64 << 20 }, "time_limit_seconds": 60 })
            .to_string();
    let request = post("/v1/jobs", &format!("authorization: Bearer {token}\r\n"), &body);
    println!("submissions; ours are on disk when answered");
    println!("{:<12} {:>8} {:>10} {:>9} {:>9}", "", "clients", "jobs/s", "p50 ms", "p99 ms");
    let port = stack.ports[0];
    for clients in [1, 16, 64] {
        let connect = async || {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.set_nodelay(true).unwrap();
            Connection::Tcp(stream)
        };
        crowd("berth", clients, connect, &request).await;
    }
    if let Some(slurm) = Slurm::start() {
        let body = json!({ "script": "#!/bin/sh\ntrue\n", "job": { "name": "bench", "environment": { "PATH": "/bin" },
            "current_working_directory": "/tmp", "memory_per_cpu": 64, "hold": true } });
        let request = post("/slurm/v0.0.38/job/submit", "", &body.to_string());
        for clients in [1, 16] {
            crowd("slurmrestd", clients, async || Connection::Unix(UnixStream::connect(slurm.socket()).await.unwrap()), &request).await;
        }
        println!("sbatch, 8 at once: {:.0} jobs/s", slurm.sbatch_rate(400));
    }
    let jobs: Vec<_> = (0..10_000)
        .map(|i| json!({ "name": format!("j{i}"), "command": ["true"], "resources": { "memory_per_node_bytes": 64 << 20 } }))
        .collect();
    let many = json!({ "jobs": jobs }).to_string();
    let begun = Instant::now();
    for _ in 0..5 {
        let url = format!("http://127.0.0.1:{}/v1/jobs:submitMany", stack.ports[0]);
        let request = stack.http.post(url).bearer_auth(&token).header("content-type", "application/json").body(many.clone());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 201);
        response.bytes().await.unwrap();
    }
    println!("batch endpoint, 5 calls of 10000: {:.0} jobs/s\n", 50_000.0 / begun.elapsed().as_secs_f64());
}

async fn short_jobs() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "64", "--node-memory", "64GiB"]).await;
    stack.workers.push(worker);
    let token = stack.user();
    for round in 0..2 {
        let jobs: Vec<_> = (0..1000).map(|_| json!({ "command": ["true"], "resources": { "memory_per_node_bytes": 64 << 20 } })).collect();
        let begun = Instant::now();
        let (status, _) = stack.call("POST", "/v1/jobs:submitMany", &token, Some(json!({ "jobs": jobs }))).await;
        assert_eq!(status, 201);
        let open = "/v1/jobs?state=pending&state=allocated&state=running&state=completing&page_size=1";
        while stack.call("GET", open, &token, None).await.1["items"].as_array().is_none_or(|i| !i.is_empty()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("1000 jobs of `true` to their ends, driver process, round {round}: {:.0} jobs/s", 1000.0 / begun.elapsed().as_secs_f64());
    }
    let done = stack.call("GET", "/v1/jobs?state=completed&page_size=1000", &token, None).await.1;
    assert_eq!(done["items"].as_array().map(Vec::len), Some(1000));
    drop(stack);
    if let Some(slurm) = Slurm::start() {
        println!("the same, Slurm: {:.0} jobs/s", slurm.short_jobs(500));
    }
}

/// Wall time of a user's command.
fn time(stack: &Stack, token: &str, args: &[&str], first_line: bool) -> Duration {
    let mut command = Command::new(BERTH);
    command.args(["--server", &stack.servers(), "--token", token]).args(args).env("BERTH_CONFIG", "/dev/null");
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
    if first_line {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        assert_eq!(line, "hello\n");
    }
    let first = begun.elapsed();
    assert!(child.wait().unwrap().success());
    if first_line { first } else { begun.elapsed() }
}

async fn waits() {
    let mut stack = Stack::start(1, 1).await;
    let registry = common::registry::Registry::start(stack.dir.path()).await;
    let image = registry.push_busybox("berth/busybox").await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "2GiB"]).await;
    stack.workers.push(worker);
    let token = stack.user();
    let container = format!("--container-image={image}");
    for (what, args, first_line) in [
        ("berth run echo hello, to its first line, process", vec!["run", "--mem=64M", "echo", "hello"], true),
        ("berth run true, process", vec!["run", "--mem=64M", "true"], false),
        ("berth run echo hello, to its first line, oci", vec!["run", "--mem=64M", &container, "echo", "hello"], true),
        ("berth run true, oci", vec!["run", "--mem=64M", &container, "true"], false),
    ] {
        let mut times: Vec<Duration> = (0..25).map(|_| time(&stack, &token, &args, first_line)).skip(5).collect();
        times.sort();
        println!("{what}: p50 {:.0} ms, p95 {:.0} ms", quantile(&times, 0.5), quantile(&times, 0.95));
    }
    drop(stack);
    if let Some(slurm) = Slurm::start() {
        let summary = |what: &str, time: &dyn Fn() -> Duration, count: usize| {
            let mut times: Vec<Duration> = (0..count).map(|_| time()).skip(2).collect();
            times.sort();
            println!("{what}: p50 {:.0} ms, p95 {:.0} ms", quantile(&times, 0.5), quantile(&times, 0.95));
        };
        summary("srun true, Slurm", &|| slurm.srun_true(), 22);
        summary("sbatch to the first line, Slurm", &|| slurm.first_line(), 10);
    }
}
