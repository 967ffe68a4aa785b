//! Jobs in containers: an image from a registry, limits, exactly the devices that were allocated.

mod common;

use common::Stack;
use common::cgroups::UnifiedLeftEmpty;
use common::registry::Registry;
use serde_json::{Value, json};

/// CDI describes two simulated GPUs: device nodes that are `/dev/null` and `/dev/zero` on the host, and a variable.
fn cdi() -> Value {
    let device = |index: u32, minor: u32| {
        json!({ "name": format!("GPU-declared-{index}"), "containerEdits": {
            "deviceNodes": [{ "path": format!("/dev/fakegpu{index}"), "type": "c", "major": 1, "minor": minor }],
            "env": [format!("CDI_GPU_{index}=granted")],
        } })
    };
    json!({ "cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [device(0, 3), device(1, 5)] })
}

struct Site {
    stack: Stack,
    runtime: &'static str,
    _cgroups: Option<UnifiedLeftEmpty>,
    _registry: Registry,
    image: String,
    ann: String,
}

impl Site {
    /// A node whose containers are run by this program.
    async fn start(runtime: &'static str) -> Site {
        let cgroups = UnifiedLeftEmpty::hold().await;
        let stack = Stack::start(1, 1).await;
        let registry = Registry::start(stack.dir.path()).await;
        let image = registry.push_busybox("berth/busybox").await;
        let cdi_dir = stack.path("cdi");
        std::fs::create_dir(&cdi_dir).unwrap();
        std::fs::write(cdi_dir.join("fake.json"), cdi().to_string()).unwrap();
        let data = stack.path("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("set"), "data set\n").unwrap();
        std::fs::write(stack.path("logins.json"), "{}").unwrap();
        let ann = stack.user();
        let mut site = Site { stack, runtime, _cgroups: cgroups, _registry: registry, image, ann };
        site.start_worker().await;
        site
    }

    async fn start_worker(&mut self) {
        let (cdi, mounts) = (self.stack.path("cdi").display().to_string(), format!("{},/usr", self.stack.path("data").display()));
        let what = ["--node-cpus", "4", "--node-memory", "2GiB", "--node-gpus", "h100:2", "--pids-limit", "40"];
        let logins = self.stack.path("logins.json").display().to_string();
        let how = ["--cdi-dirs", &cdi, "--allow-mounts", &mounts, "--runtime", self.runtime, "--registry-auth", &logins];
        let worker = self.stack.worker("n1", &[what.as_slice(), how.as_slice()].concat()).await;
        self.stack.workers.push(worker);
    }

    /// Submits a job in a container and waits for its end.
    async fn run(&self, job: Value) -> (Value, String) {
        let mut job = job;
        if job["container"].is_null() {
            job["container"] = json!({ "image": self.image });
        }
        if job["resources"].is_null() {
            job["resources"] = json!({ "memory_per_node_bytes": 64 << 20 });
        }
        let (status, answer) = self.stack.call("POST", "/v1/jobs", &self.ann, Some(job)).await;
        assert_eq!(status, 201, "{answer}");
        let id = answer["job_id"].as_u64().unwrap();
        let mut found = Value::Null;
        common::until("the job has ended", async || {
            found = self.stack.job(&self.ann, id).await;
            common::is_end(&found)
        })
        .await;
        (found, self.stack.output(&self.ann, id).await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crun_runs_an_image_within_its_limits_with_what_was_allocated() {
    an_image_is_pulled_run_and_limited_and_sees_what_was_allocated("crun").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runc_runs_an_image_within_its_limits_with_what_was_allocated() {
    an_image_is_pulled_run_and_limited_and_sees_what_was_allocated("runc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_restarts_finds_its_containers_of_crun() {
    a_worker_that_restarts_finds_its_containers("crun").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_restarts_finds_its_containers_of_runc() {
    a_worker_that_restarts_finds_its_containers("runc").await;
}

async fn an_image_is_pulled_run_and_limited_and_sees_what_was_allocated(runtime: &'static str) {
    let site = Site::start(runtime).await;
    let admin = site.stack.token("root", "", "platform_admin");
    let node = site.stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert!(node["inventory"]["facts"]["container_runtime"].as_str().unwrap().ends_with(runtime), "{node:#}");

    // A batch script, with srun and the image's own environment.
    let script = "#!/bin/sh\necho \"$FROM_IMAGE $SLURM_JOB_ID $(cat /etc/image)\"; ls /etc/old; hostname; pwd\n\
        echo tasks; srun -n2 --overlap sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'\n\
        echo procs $(ls -d /proc/[0-9]* | wc -l); ls /dev/fakegpu*; echo x > /proc/sys/kernel/hostname\n";
    let (job, text) = site.run(json!({ "script": script, "resources": { "tasks": 2, "memory_per_node_bytes": 64 << 20 } })).await;
    assert!(text.contains(&format!("yes {} from the image", job["job_id"])), "{job:#} {text}");
    assert!(text.contains("/etc/old: No such file"), "the second layer hides it: {text}");
    assert!(text.contains("\nn1\n/root\n"), "{text}");
    assert!(text.contains("0 of 2") && text.contains("1 of 2"), "{text}");
    assert!(text.contains("fakegpu*: No such file"), "it asked for no GPU: {text}");
    assert!(text.contains("Read-only file system"), "{text}");
    let processes: u32 = text.lines().find_map(|l| l.strip_prefix("procs ")).unwrap().parse().unwrap();
    assert!(processes < 12, "a container sees its own processes alone: {text}");

    // Exactly the devices that were allocated.
    let probe = "ls /dev/fakegpu*; echo $CUDA_VISIBLE_DEVICES; env | grep CDI_GPU; cat /dev/fakegpu0 >/dev/null && echo read";
    let gpu = json!({ "memory_per_node_bytes": 64 << 20, "gpus": 1 });
    let (_, text) = site.run(json!({ "command": ["sh", "-c", probe], "resources": gpu })).await;
    assert_eq!(text, "/dev/fakegpu0\n0\nCDI_GPU_0=granted\nread\n");
    let gpus = json!({ "memory_per_node_bytes": 64 << 20, "gpus": 2 });
    let (_, text) = site.run(json!({ "command": ["sh", "-c", "ls /dev/fakegpu*; echo $CUDA_VISIBLE_DEVICES"], "resources": gpus })).await;
    assert_eq!(text, "/dev/fakegpu0\n/dev/fakegpu1\n0,1\n");
    // A device that was not allocated cannot be made and opened either.
    let (job, text) = site.run(json!({ "command": ["sh", "-c", "mknod /tmp/d c 10 200 2>&1; cat /tmp/d 2>&1; true"] })).await;
    assert_eq!(job["state"], "completed");
    assert!(text.contains("Operation not permitted") || text.contains("No such file"), "{text}");

    // Walls.
    let (job, _) = site.run(json!({ "command": ["sh", "-c", "head -c 300000000 /dev/zero | tail -c 290000000 | wc -c"] })).await;
    assert_eq!(job["state"], "out_of_memory", "{job:#}");
    let bomb = "for i in $(seq 100); do sleep 3 & done 2>&1; echo never";
    let (job, text) = site.run(json!({ "command": ["sh", "-c", bomb] })).await;
    assert_ne!(job["state"], "completed", "{job:#} {text}");
    let (job, text) = site.run(json!({ "command": ["sh", "-c", "kill -9 $$"] })).await;
    assert_eq!((job["state"].as_str(), job["exit_signal"].as_u64()), (Some("failed"), Some(9)), "{job:#} {text}");

    // What is asked of the kernel: no namespaces, no mounts; threads and processes as anywhere.
    let escape =
        "unshare -U true 2>&1; unshare -m true 2>&1; mount -t tmpfs none /tmp 2>&1; umount /proc 2>&1; grep Seccomp: /proc/self/status";
    let (_, text) = site.run(json!({ "command": ["sh", "-c", escape] })).await;
    assert_eq!(text.matches("Operation not permitted").count() + text.matches("permission denied").count(), 4, "{text}");
    assert!(text.contains("Seccomp:\t2\n"), "{text}");
    let usr = |target: &str, source: &str| json!({ "source": source, "target": target, "read_only": true });
    let python = json!({ "image": site.image, "mounts": [usr("/usr", "/usr"), usr("/lib", "/usr/lib"), usr("/lib64", "/usr/lib64")] });
    let program = "import os, subprocess, threading\n\
        done = []\n\
        threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        child = os.fork()\n\
        child or os._exit(7)\n\
        print(len(done), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), subprocess.check_output(['/bin/echo', 'spawned']).decode())\n";
    let (job, text) = site.run(json!({ "command": ["/usr/bin/python3", "-c", program], "container": python })).await;
    assert_eq!(text.trim(), "8 7 spawned", "{job:#}");

    // Whose fault it is.
    let (job, _) = site.run(json!({ "command": ["no-such-program"] })).await;
    assert_eq!((job["state"].as_str(), job["exit_code"].as_u64()), (Some("failed"), Some(127)), "{job:#}");
    let missing = site.image.replace("busybox:1", "busybox:2");
    let (job, _) = site.run(json!({ "command": ["true"], "container": { "image": missing } })).await;
    assert_eq!(job["state"], "launch_failed", "{job:#}");
    assert!(job["reason"].as_str().unwrap().contains("image_unavailable"), "{job:#}");
    let (job, _) = site
        .run(json!({ "command": ["true"], "container": { "image": site.image, "mounts": [{ "source": "/etc", "target": "/host" }] } }))
        .await;
    assert!(job["reason"].as_str().unwrap().contains("may not be mounted"), "{job:#}");
    let data = site.stack.path("data");
    let mounts = json!([{ "source": data, "target": "/data", "read_only": true }]);
    let command = json!(["sh", "-c", "cat /data/set; touch /data/x 2>&1; ls /sys/class/net"]);
    let container = json!({ "image": site.image, "mounts": mounts, "network": "none" });
    let (_, text) = site.run(json!({ "command": command, "container": container })).await;
    assert!(text.contains("data set\n") && text.contains("Read-only"), "{text}");

    // Nothing of it drained the node, and nothing is left on it.
    let node = site.stack.call("GET", "/v1/nodes/n1", &admin, None).await.1;
    assert_eq!((node["state"].as_str(), node["flags"].as_array().map(Vec::len)), (Some("idle"), Some(0)), "{node:#}");
    common::until("the steps' folders are gone", async || std::fs::read_dir(site.stack.path("n1/oci-steps")).unwrap().count() == 0).await;
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(site.stack.dir.path().to_str().unwrap()), "{mounts}");
}

async fn a_worker_that_restarts_finds_its_containers(runtime: &'static str) {
    let mut site = Site::start(runtime).await;
    let body = json!({ "script": "#!/bin/sh\necho begun; sleep 3; echo over; exit 4\n", "container": { "image": site.image }, "resources": { "memory_per_node_bytes": 64 << 20 } });
    let (_, answer) = site.stack.call("POST", "/v1/jobs", &site.ann, Some(body)).await;
    let job = answer["job_id"].as_u64().unwrap();
    common::until("it has begun", async || site.stack.output(&site.ann, job).await == "begun\n").await;
    site.stack.workers.remove(0).kill();
    site.start_worker().await;
    let mut found = Value::Null;
    common::until("the job has ended", async || {
        found = site.stack.job(&site.ann, job).await;
        common::is_end(&found)
    })
    .await;
    assert_eq!(
        (found["state"].as_str(), found["exit_code"].as_u64(), found["restarts"].as_u64()),
        (Some("failed"), Some(4), Some(0)),
        "{found:#}"
    );
    assert_eq!(site.stack.output(&site.ann, job).await, "begun\nover\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_image_needs_the_nodes_login() {
    let site = Site::start("runc").await;
    let registry = Registry::start_with_login(site.stack.dir.path()).await;
    let image = registry.push_busybox("berth/private").await;
    let job = || json!({ "command": ["cat", "/etc/image"], "container": { "image": image } });
    let (found, _) = site.run(job()).await;
    assert!(found["reason"].as_str().unwrap().contains("image_unavailable"), "{found:#}");
    // The file is read at each pull.
    std::fs::write(site.stack.path("logins.json"), registry.login_file()).unwrap();
    let (found, _) = site.run(job()).await;
    let id = found["job_id"].as_u64().unwrap();
    common::until("its output is there", async || site.stack.output(&site.ann, id).await == "from the image\n").await;
}
