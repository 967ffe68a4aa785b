//! Jobs in containers that podman makes, by the Docker Engine API.

mod common;

use common::engine::Podman;
use common::registry::Registry;
use common::{Stack, until};
use serde_json::{Value, json};

struct Site {
    // Dropped first: its store is in the stack's folder.
    podman: Podman,
    stack: Stack,
    _registry: Registry,
    private: Registry,
    image: String,
    ann: String,
}

impl Site {
    async fn start() -> Site {
        let stack = Stack::start(1, 1).await;
        let registry = Registry::start(stack.dir.path()).await;
        let image = registry.push_busybox("berth/busybox").await;
        let private = Registry::start_with_login(stack.dir.path()).await;
        let podman = Podman::start(stack.dir.path(), &[&registry.address, &private.address]).await;
        for folder in ["cdi", "data"] {
            std::fs::create_dir(stack.path(folder)).unwrap();
        }
        let device = |index: u32, host: &str| {
            let node = json!({ "path": format!("/dev/fakegpu{index}"), "hostPath": host });
            json!({ "name": format!("GPU-declared-{index}"), "containerEdits": { "deviceNodes": [node], "env": [format!("CDI_GPU_{index}=granted")] } })
        };
        let cdi = json!({ "cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [device(0, "/dev/null"), device(1, "/dev/zero")] });
        std::fs::write(stack.path("cdi/fake.json"), cdi.to_string()).unwrap();
        std::fs::write(stack.path("data/set"), "data set\n").unwrap();
        std::fs::write(stack.path("logins.json"), "{}").unwrap();
        let ann = stack.user();
        let mut site = Site { podman, stack, _registry: registry, private, image, ann };
        site.start_worker().await;
        site
    }

    async fn start_worker(&mut self) {
        let [cdi, data, logins] = ["cdi", "data", "logins.json"].map(|name| self.stack.path(name).display().to_string());
        let socket = self.podman.socket.display().to_string();
        let what = ["--node-cpus", "4", "--node-memory", "2GiB", "--node-gpus", "h100:2", "--pids-limit", "40"];
        let how = ["--container-driver", "engine", "--engine-socket", &socket, "--registry-auth", &logins];
        let paths = ["--cdi-dirs", &cdi, "--allow-mounts", &data];
        let worker = self.stack.worker("n1", &[what.as_slice(), how.as_slice(), paths.as_slice()].concat()).await;
        self.stack.workers.push(worker);
    }

    async fn submit(&self, mut job: Value) -> u64 {
        if job["container"].is_null() {
            job["container"] = json!({ "image": self.image });
        }
        if job["resources"].is_null() {
            job["resources"] = json!({ "memory_per_node_bytes": 64 << 20 });
        }
        let (status, answer) = self.stack.call("POST", "/v1/jobs", &self.ann, Some(job)).await;
        assert_eq!(status, 201, "{answer}");
        answer["job_id"].as_u64().unwrap()
    }

    async fn end(&self, id: u64) -> (Value, String) {
        let mut found = Value::Null;
        until("the job has ended", async || {
            found = self.stack.job(&self.ann, id).await;
            common::is_end(&found)
        })
        .await;
        (found, self.stack.output(&self.ann, id).await)
    }

    async fn run(&self, job: Value) -> (Value, String) {
        let id = self.submit(job).await;
        self.end(id).await
    }

    async fn until_output(&self, job: u64, text: &str) {
        until("it has written", async || self.stack.output(&self.ann, job).await == text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_runs_a_job_within_its_limits_with_what_was_allocated() {
    let site = Site::start().await;
    let admin = site.stack.token("root", "", "platform_admin");
    let node = site.stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert!(node["inventory"]["facts"]["container_runtime"].as_str().unwrap().starts_with("Podman Engine"), "{node:#}");

    // A batch script, the image's environment under the job's, srun, an exit code.
    let script = "#!/bin/sh\necho \"$FROM_IMAGE $MINE $SLURM_JOB_ID $(cat /etc/image)\"; hostname; pwd\n\
        srun -n2 --overlap sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'\nls /dev/fakegpu*; ls -d /proc/[0-9]* | wc -l; exit 3\n";
    let resources = json!({ "tasks": 2, "memory_per_node_bytes": 64 << 20 });
    let (job, text) = site.run(json!({ "script": script, "environment": { "MINE": "too" }, "resources": resources })).await;
    assert!(text.contains(&format!("yes too {} from the image\nn1\n/root\n", job["job_id"])), "{job:#} {text}");
    assert!(text.contains("0 of 2") && text.contains("1 of 2"), "{text}");
    assert!(text.contains("fakegpu*: No such file"), "it asked for no GPU: {text}");
    let processes: u32 = text.lines().last().unwrap().parse().unwrap();
    assert!(processes < 12, "a container sees its own processes alone: {text}");
    assert_eq!((job["state"].as_str(), job["exit_code"].as_u64()), (Some("failed"), Some(3)), "{job:#}");

    // Exactly the devices that were allocated.
    let probe = "ls /dev/fakegpu*; echo $CUDA_VISIBLE_DEVICES; env | grep CDI_GPU; cat /dev/fakegpu0 >/dev/null && echo read";
    let gpu = json!({ "memory_per_node_bytes": 64 << 20, "gpus": 1 });
    let (job, text) = site.run(json!({ "command": ["sh", "-c", probe], "resources": gpu })).await;
    assert_eq!(text, "/dev/fakegpu0\n0\nCDI_GPU_0=granted\nread\n", "{job:#}");
    let (job, text) = site.run(json!({ "command": ["sh", "-c", "mknod /tmp/d c 10 200 2>&1; cat /tmp/d 2>&1; true"] })).await;
    assert_eq!(job["state"], "completed");
    assert!(text.contains("Operation not permitted") || text.contains("No such file"), "{text}");

    // Walls.
    let (job, text) = site.run(json!({ "command": ["sh", "-c", "head -c 300000000 /dev/zero | tail -c 290000000 | wc -c"] })).await;
    assert_eq!(job["state"], "out_of_memory", "{job:#} {text}");
    let bomb = "for i in $(seq 100); do sleep 3 & done 2>&1; echo never";
    let (job, text) = site.run(json!({ "command": ["sh", "-c", bomb] })).await;
    assert_ne!(job["state"], "completed", "{job:#} {text}");
    let (job, text) = site.run(json!({ "command": ["sh", "-c", "kill -9 $$"] })).await;
    assert_eq!((job["state"].as_str(), job["exit_signal"].as_u64()), (Some("failed"), Some(9)), "{job:#} {text}");

    // Whose fault it is.
    let (job, _) = site.run(json!({ "command": ["no-such-program"] })).await;
    assert_eq!((job["state"].as_str(), job["exit_code"].as_u64()), (Some("failed"), Some(127)), "{job:#}");
    let missing = site.image.replace("busybox:1", "busybox:2");
    let (job, _) = site.run(json!({ "command": ["true"], "container": { "image": missing } })).await;
    assert!(job["reason"].as_str().unwrap().contains("image_unavailable"), "{job:#}");
    let mounts = json!([{ "source": site.stack.path("data"), "target": "/data", "read_only": true }]);
    let command = json!(["sh", "-c", "cat /data/set; touch /data/x 2>&1; ls /sys/class/net"]);
    let (_, text) =
        site.run(json!({ "command": command, "container": { "image": site.image, "mounts": mounts, "network": "none" } })).await;
    assert!(text.contains("data set\n") && text.contains("Read-only") && text.ends_with("\nlo\n"), "{text}");

    // A private image needs the node's login.
    let image = site.private.push_busybox("berth/private").await;
    let job = || json!({ "command": ["cat", "/etc/image"], "container": { "image": image } });
    let (found, _) = site.run(job()).await;
    assert!(found["reason"].as_str().unwrap().contains("image_unavailable"), "{found:#}");
    std::fs::write(site.stack.path("logins.json"), site.private.login_file()).unwrap();
    let (found, _) = site.run(job()).await;
    site.until_output(found["job_id"].as_u64().unwrap(), "from the image\n").await;

    // Cancel: SIGTERM first, which a program that heeds it survives long enough to say so.
    let waits = "trap 'echo warned; exit 0' TERM; echo begun; while true; do sleep 0.1; done";
    let job = site.submit(json!({ "command": ["sh", "-c", waits] })).await;
    site.until_output(job, "begun\n").await;
    site.stack.call("POST", &format!("/v1/jobs/{job}:cancel"), &site.ann, Some(json!({}))).await;
    let (found, text) = site.end(job).await;
    assert_eq!((found["state"].as_str(), text.as_str()), (Some("cancelled"), "begun\nwarned\n"), "{found:#}");

    // Nothing of it drained the node, and nothing is left on it.
    let node = site.stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert_eq!((node["state"].as_str(), node["flags"].as_array().map(Vec::len)), (Some("idle"), Some(0)), "{node:#}");
    until("the steps' folders are gone", async || std::fs::read_dir(site.stack.path("n1/engine-steps")).unwrap().count() == 0).await;
    assert_eq!(site.podman.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_restarts_finds_the_engines_containers() {
    let mut site = Site::start().await;
    let script = "#!/bin/sh\necho begun; sleep 3; echo over; exit 4\n";
    let job = site.submit(json!({ "script": script })).await;
    site.until_output(job, "begun\n").await;
    site.stack.workers.remove(0).kill();
    assert_eq!(site.podman.containers().len(), 1);
    site.start_worker().await;
    let (found, text) = site.end(job).await;
    let outcome = (found["state"].as_str(), found["exit_code"].as_u64(), found["restarts"].as_u64());
    assert_eq!(outcome, (Some("failed"), Some(4), Some(0)), "{found:#}");
    assert_eq!(text, "begun\nover\n");

    // A worker that stays dead: its lease runs out, and what it ran ends.
    let job = site.submit(json!({ "command": ["sh", "-c", "echo begun; sleep 600"] })).await;
    site.until_output(job, "begun\n").await;
    site.stack.workers.remove(0).kill();
    std::fs::write(site.stack.path("n1/lease"), "1").unwrap();
    until("its container is gone", async || site.podman.containers().is_empty()).await;
}
