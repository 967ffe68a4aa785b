//! Nodes that come and go: power saving, nodes that do not exist yet, reboots, and nodes that an operator sets down.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::{Process, Stack, until};
use serde_json::{Value, json};

const SMALL: [&str; 4] = ["--node-cpus", "2", "--node-memory", "1GiB"];

struct Site {
    stack: Stack,
    admin: String,
    ann: String,
    join: String,
}

impl Site {
    /// A service whose scheduler has programs for power, which write down what they are told.
    async fn start() -> Site {
        let mut stack = Stack::start(1, 0).await;
        let mut args = Vec::new();
        for name in ["resume", "suspend", "resume-fail"] {
            let said = stack.path(name);
            let script = format!(
                "#!/bin/sh\n[ -z \"$SLURM_RESUME_FILE\" ] || cp \"$SLURM_RESUME_FILE\" {0}.json\necho \"$1\" >> {0}\n",
                said.display()
            );
            args.extend([format!("--{name}-program"), program(&stack, &format!("{name}.sh"), &script)]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let scheduler = stack.scheduler_with(0, &args);
        stack.schedulers.push(scheduler);
        let admin = stack.token("root", "ops", "platform_admin");
        let (_, join) = stack.call("POST", "/v1/node-join-tokens", &admin, Some(json!({ "node_pattern": "*", "uses": 100 }))).await;
        let join = join["token"].as_str().unwrap_or_else(|| panic!("{join}")).to_owned();
        let ann = stack.user();
        Site { stack, admin, ann, join }
    }

    fn said(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.stack.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    async fn status(&self, node: &str) -> String {
        self.stack.call("GET", &format!("/v1/nodes/{node}"), &self.admin, None).await.1["status"].as_str().unwrap_or_default().to_owned()
    }

    async fn until_status(&self, node: &str, status: &str) {
        until(&format!("{node} is {status}"), async || self.status(node).await == status).await;
    }

    fn worker(&self, node: &str, extra: &[&str]) -> Process {
        self.stack.revive(node, &self.join, &[&SMALL[..], extra].concat())
    }

    async fn policy(&self, patch: Value) {
        let (status, answer) = self.stack.call("PATCH", "/v1/policy", &self.admin, Some(patch)).await;
        assert_eq!(status, 200, "{answer}");
    }

    async fn submit(&self, job: Value) -> u64 {
        let (status, answer) = self.stack.call("POST", "/v1/jobs", &self.ann, Some(job)).await;
        assert_eq!(status, 201, "{answer}");
        answer["job_id"].as_u64().unwrap()
    }
}

fn program(stack: &Stack, name: &str, text: &str) -> String {
    let path = stack.path(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn job(nodes: u32, command: &[&str]) -> Value {
    json!({ "command": command, "time_limit_seconds": 600, "resources": { "nodes": nodes, "tasks_per_node": 1, "memory_per_node_bytes": 16 << 20 } })
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_powered_up_for_jobs_and_down_when_idle() {
    let site = Site::start().await;
    let stack = &site.stack;
    let mut n1 = site.worker("n1", &[]);
    site.until_status("n1", "idle").await;
    // A node that does not exist yet.
    let output = stack.berth(&site.admin, &["nodes", "create", "c[1-2]", "--cpus=2", "--memory=1GiB", "--features=cloud"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(site.status("c1").await, "powered_down");
    let (status, problem) =
        stack.call("POST", "/v1/nodes", &site.admin, Some(json!({ "name": "c1", "cpus": 2, "memory_bytes": 1 << 30 }))).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("already_exists")), "{problem}");
    for (body, field) in [
        (json!({ "name": "c3", "cpus": 0, "memory_bytes": 1 }), "cpus"),
        (json!({ "name": "c3", "cpus": 1, "memory_bytes": 0 }), "memory_bytes"),
        (json!({ "name": "c3", "cpus": 1, "memory_bytes": 1, "gpus": [8] }), "gpus"),
        (json!({ "name": "c3", "cpus": 1, "memory_bytes": 1, "gpus": ["h100:0"] }), "gpus"),
        (json!({ "name": "c3", "cpus": 1, "memory_bytes": 1, "features": ["a b"] }), "features"),
    ] {
        let (status, problem) = stack.call("POST", "/v1/nodes", &site.admin, Some(body)).await;
        assert_eq!((status, problem["field"].as_str()), (422, Some(field)), "{problem}");
    }
    assert_eq!(stack.call("POST", "/v1/nodes/n1:powerDown", &site.ann, None).await.0, 403, "an operator's order");

    // Two nodes: the one that is up, and one that must be made. The job waits for it on both.
    let pair = site.submit(job(2, &["sh", "-c", "echo $SLURMD_NODENAME of $SLURM_JOB_NODELIST"])).await;
    until("the program is told", async || site.said("resume") == ["c1"]).await;
    let told: Value = serde_json::from_slice(&std::fs::read(stack.path("resume.json")).unwrap()).unwrap();
    assert_eq!(told, json!({ "all_nodes_resume": "c1", "jobs": [{ "job_id": pair, "nodes_resume": "c1" }] }));
    assert_eq!(site.status("c1").await, "powering_up");
    assert_eq!(stack.job(&site.ann, pair).await["state"], "allocated");
    let mut c1 = site.worker("c1", &[]);
    stack.until_state(&site.ann, pair, "completed").await;
    let text = stack.output(&site.ann, pair).await;
    assert!(text.contains("of c1,n1") || text.contains("of n1,c1"), "{text}");

    // Idle nodes go down, but for those that are excluded.
    site.policy(
        json!({ "power": { "idle_seconds": 1, "exclude_nodes": "c[7-9]" }, "suspend_timeout_seconds": 1, "resume_timeout_seconds": 120 }),
    )
    .await;
    until("both are told to go down", async || {
        let mut said: Vec<String> =
            site.said("suspend").iter().flat_map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>()).collect();
        said.sort();
        said == ["c1", "n1"]
    })
    .await;
    n1.signal("KILL");
    c1.signal("KILL");
    n1.wait();
    c1.wait();
    site.until_status("n1", "powered_down").await;
    site.until_status("c1", "powered_down").await;

    // A job needs one again; the first one does not come up, so another is.
    site.policy(json!({ "resume_timeout_seconds": 2, "requeue_delay_seconds": 0 })).await;
    let late = site.submit(job(1, &["true"])).await;
    until("a node is given up", async || !site.said("resume-fail").is_empty()).await;
    let failed = site.said("resume-fail")[0].clone();
    site.policy(json!({ "resume_timeout_seconds": 120 })).await;
    assert_eq!(site.status(&failed).await, "down");
    until("another is powered up", async || site.said("resume").last().is_some_and(|last| *last != failed)).await;
    let next = site.said("resume").last().unwrap().clone();
    let _next = site.worker(&next, &[]);
    let done = stack.until_state(&site.ann, late, "completed").await;
    assert_eq!((&done["nodes"], &done["restarts"]), (&json!(next), &json!(1)));
    // The one that was given up comes after all.
    let _failed = site.worker(&failed, &[]);
    until("it is in service", async || site.status(&failed).await != "down").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_reach_nodes_that_are_on_their_way() {
    let site = Site::start().await;
    let stack = &site.stack;
    let order = async |node: &str, verb: &str, body: Value| {
        let (status, answer) = stack.call("POST", &format!("/v1/nodes/{node}:{verb}"), &site.admin, Some(body)).await;
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    let n1 = site.worker("n1", &[]);
    site.until_status("n1", "idle").await;
    assert_eq!(order("n1", "resume", json!({})).await, (409, "wrong_state".to_owned()));
    assert_eq!(order("n1", "delete", json!({})).await, (409, "node_alive".to_owned()));
    // One of several names cannot be declared: the others are.
    let output = stack.berth(&site.admin, &["nodes", "create", "n1", "c[1-2]", "--cpus=2", "--memory=1GiB"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Node c2 is declared"), "{output:?}");
    assert_eq!(order("c1", "reboot", json!({ "reason": "kernel" })).await, (409, "wrong_state".to_owned()));

    // A job that is cancelled while its node powers up holds nothing any more.
    let mut waiting = job(1, &["true"]);
    waiting["nodelist"] = "c1".into();
    let waiting = site.submit(waiting).await;
    site.until_status("c1", "powering_up").await;
    let told = stack.call("GET", &format!("/v1/jobs/{waiting}/explain"), &site.ann, None).await.1;
    assert!(told["summary"].as_str().unwrap().ends_with("It waits for c1 to power up. Nothing held it."), "{told:#}");
    stack.call("POST", &format!("/v1/jobs/{waiting}:cancel"), &site.ann, None).await;
    assert_eq!(stack.job(&site.ann, waiting).await["state"], "cancelled");
    // It is drained on its way, and turns round.
    assert_eq!(order("c1", "drain", json!({ "reason": "cooling" })).await.0, 200);
    assert_eq!(site.status("c1").await, "drained");
    assert_eq!(order("c1", "powerDown", json!({})).await.0, 200);
    until("the program is told", async || site.said("suspend") == ["c1"]).await;
    assert!(site.said("resume-fail").is_empty());
    // Drained nodes stay drained for the same reason when they come up, and when they were silent.
    site.policy(json!({ "node_timeout_seconds": 2 })).await;
    assert_eq!(order("n1", "drain", json!({ "reason": "disk" })).await.0, 200);
    n1.kill();
    let reason = async || stack.call("GET", "/v1/nodes/n1", &site.admin, None).await.1["reason"].clone();
    site.until_status("n1", "down").await;
    assert_eq!(reason().await, "disk; not responding");
    let n1 = site.worker("n1", &[]);
    site.until_status("n1", "drained").await;
    assert_eq!(reason().await, "disk");
    // An order to go down that is taken back in time, and a node that was powered down for the books alone.
    assert_eq!(order("n1", "resume", json!({})).await.0, 200);
    site.until_status("n1", "idle").await;
    site.policy(json!({ "suspend_timeout_seconds": 1 })).await;
    assert_eq!(order("n1", "powerDown", json!({})).await.0, 200);
    site.until_status("n1", "powered_down").await;
    assert_eq!(order("n1", "powerUp", json!({})).await.0, 200);
    site.until_status("n1", "idle").await;
    // What has stopped can be forgotten.
    assert_eq!(order("c2", "delete", json!({})).await.0, 204);

    // A job whose only node was lost runs there again when it is back.
    site.policy(json!({ "requeue_delay_seconds": 0 })).await;
    let only = site.submit(job(1, &["sleep", "300"])).await;
    assert_eq!(stack.until_state(&site.ann, only, "running").await["nodes"], "n1");
    n1.kill();
    stack.until_state(&site.ann, only, "pending").await;
    let told = async || stack.call("GET", &format!("/v1/jobs/{only}/explain"), &site.ann, None).await.1["summary"].to_string();
    until("it is told why", async || told().await.contains("Its last start failed: node n1 does not respond.")).await;
    let _n1 = site.worker("n1", &[]);
    let again = stack.until_state(&site.ann, only, "running").await;
    assert_eq!((&again["nodes"], &again["restarts"]), (&json!("n1"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_rebooted_when_idle_and_set_down_by_hand() {
    let site = Site::start().await;
    let stack = &site.stack;
    let boot = stack.path("boot");
    std::fs::write(&boot, "first\n").unwrap();
    let asked = stack.path("reboot-asked");
    let reboot = program(stack, "reboot.sh", &format!("#!/bin/sh\necho $BERTH_NODE >> {}\n", asked.display()));
    let extra = ["--reboot-program", &reboot, "--machine-boot", boot.to_str().unwrap()];
    let mut n1 = site.worker("n1", &extra);
    let n2 = site.worker("n2", &[]);
    site.until_status("n1", "idle").await;
    site.until_status("n2", "idle").await;
    let (status, problem) = stack.call("POST", "/v1/nodes/n2:reboot", &site.admin, Some(json!({ "reason": "kernel" }))).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("reboot_unsupported")), "{problem}");

    // As soon as it is idle: nothing new starts there, what runs goes on.
    let gate = stack.path("gate");
    let mut first = job(1, &["sh", "-c", &format!("while ! [ -e {} ]; do sleep 0.05; done", gate.display())]);
    first["nodelist"] = "n1".into();
    let first = site.submit(first).await;
    stack.until_state(&site.ann, first, "running").await;
    // The other one is planned for a job of both.
    let mut pair = job(2, &["true"]);
    pair["resources"]["cpus_per_task"] = 2.into();
    let pair = site.submit(pair).await;
    site.until_status("n2", "planned").await;
    stack.call("POST", &format!("/v1/jobs/{pair}:cancel"), &site.ann, None).await;
    site.until_status("n2", "idle").await;
    let output = stack.berth(&site.admin, &["reboot", "n1", "--asap", "--reason", "a new kernel"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(site.status("n1").await, "draining");
    let mut second = job(1, &["true"]);
    second["nodelist"] = "n1".into();
    let second = site.submit(second).await;
    until("it is told why", async || {
        let told = stack.call("GET", &format!("/v1/jobs/{second}/explain"), &site.ann, None).await.1;
        told["verdicts"][0]["have"].as_str().is_some_and(|have| have.contains("a new kernel"))
    })
    .await;
    assert!(!asked.exists());
    std::fs::write(&gate, "").unwrap();
    stack.until_state(&site.ann, first, "completed").await;
    until("the program runs", async || asked.exists()).await;
    site.until_status("n1", "rebooting").await;
    assert_eq!(std::fs::read_to_string(&asked).unwrap(), "n1\n", "once");
    // A worker that is only restarted has not rebooted its machine.
    n1.signal("KILL");
    n1.wait();
    std::fs::remove_file(&asked).unwrap();
    let mut n1 = site.worker("n1", &extra);
    until("it is told again", async || asked.exists()).await;
    n1.signal("KILL");
    n1.wait();
    std::fs::write(&boot, "second\n").unwrap();
    let _n1 = site.worker("n1", &extra);
    let done = stack.until_state(&site.ann, second, "completed").await;
    assert_eq!(done["nodes"], "n1");
    let node = stack.call("GET", "/v1/nodes/n1", &site.admin, None).await.1;
    assert_eq!((&node["flags"], &node["reason"]), (&json!([]), &Value::Null), "{node}");

    // Down by hand: what runs is requeued, and the node does not come back by itself.
    let mut long = job(1, &["sleep", "300"]);
    long["nodelist"] = "n2".into();
    let long = site.submit(long).await;
    stack.until_state(&site.ann, long, "running").await;
    let output = stack.berth(&site.admin, &["down", "n2", "--reason", "smoke"]);
    assert!(output.status.success(), "{output:?}");
    stack.until_state(&site.ann, long, "pending").await;
    assert_eq!(site.status("n2").await, "down");
    let text = String::from_utf8(stack.berth(&site.admin, &["nodes"]).stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("n2") && line.contains("down") && line.contains("smoke")), "{text}");
    n2.kill();
    let _n2 = site.worker("n2", &[]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(site.status("n2").await, "down");
    stack.berth(&site.admin, &["resume", "n2"]);
    stack.until_state(&site.ann, long, "running").await;
}
