//! Every part tells of itself in OpenMetrics: names with units, counters with `_total`, an end mark.

mod common;

use common::{Stack, until};

#[tokio::test(flavor = "multi_thread")]
async fn api_scheduler_and_worker_tell_what_they_did() {
    let mut stack = Stack::start(1, 0).await;
    let [scheduler_port, worker_port] = [common::free_port(), common::free_port()];
    let listen = format!("127.0.0.1:{scheduler_port}");
    stack.schedulers.push(stack.scheduler_with(0, &["--metrics-listen", &listen]));
    let listen = format!("127.0.0.1:{worker_port}");
    let worker =
        stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB", "--node-gpus", "h100:2", "--metrics-listen", &listen]).await;
    stack.workers.push(worker);
    let ann = stack.user();
    let job = stack.submit(&ann, "#!/bin/sh\n#SBATCH --mem=32M --gpus=1\ntrue\n");
    stack.until_state(&ann, job, "completed").await;
    let get = async |url: String| stack.http.get(url).send().await.unwrap().text().await.unwrap();
    let scheduler = get(format!("http://127.0.0.1:{scheduler_port}/metrics")).await;
    for line in ["berth_scheduler_is_leader 1", "berth_scheduler_starts_total 1", "berth_scheduler_pending_jobs 0"] {
        assert!(scheduler.lines().any(|l| l == line), "{line}\n{scheduler}");
    }
    assert!(
        scheduler.contains("berth_scheduler_plan_seconds_bucket{le=")
            && scheduler.contains("berth_scheduler_decision_latency_seconds_count")
    );
    let worker_url = format!("http://127.0.0.1:{worker_port}/metrics");
    until("the step is no longer counted as running", async || get(worker_url.clone()).await.contains("berth_worker_running_steps 0"))
        .await;
    let worker = get(worker_url).await;
    assert!(worker.contains("berth_worker_launches_total{outcome=\"started\"} 1"), "{worker}");
    let api = get(format!("{}/metrics", stack.servers())).await;
    for part in [
        "berth_nodes{state=\"idle\"} 1",
        "berth_gpus{type=\"h100\",state=\"idle\"} 2",
        "berth_job_submissions_total{outcome=\"accepted\"} 1",
    ] {
        assert!(api.contains(part), "{part}\n{api}");
    }
    for text in [&api, &scheduler, &worker] {
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
