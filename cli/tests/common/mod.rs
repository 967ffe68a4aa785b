//! A whole Berth of real processes on this machine: Postgres, api replicas, schedulers, workers. Each can be killed by itself.

#![allow(dead_code)]

pub mod cgroups;
pub mod engine;
pub mod registry;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use berth_postgres::Postgres;
use serde_json::{Value, json};

pub const BERTH: &str = env!("CARGO_BIN_EXE_berth");

/// A process that ends with the test.
pub struct Process(Child);

impl Process {
    pub fn start(log: &Path, args: &[&str], env: &[(&str, &str)]) -> Process {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(BERTH);
        command.args(args).envs(env.iter().copied()).env("BERTH_CONFIG", "/dev/null").env("BERTH_LOG", "info");
        Process(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status().unwrap().success());
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Stack {
    pub workers: Vec<Process>,
    pub schedulers: Vec<Process>,
    pub apis: Vec<Process>,
    pub ports: Vec<u16>,
    pub dir: tempfile::TempDir,
    pub http: reqwest::Client,
    postgres: Postgres,
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Stack {
    /// `apis` replicas and `schedulers` schedulers; workers are added by [`Stack::worker`].
    pub async fn start(apis: usize, schedulers: usize) -> Stack {
        // A short path, since sockets are in it.
        let dir = tempfile::Builder::new().prefix("bt").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let postgres = Postgres::start(&dir.path().join("postgres"), 0).unwrap();
        let url = postgres.url();
        let migrated = Command::new(BERTH).args(["migrate", "--database-url", &url]).env("BERTH_CONFIG", "/dev/null").output().unwrap();
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
        let mut stack = Stack { workers: Vec::new(), schedulers: Vec::new(), apis: Vec::new(), ports: Vec::new(), dir, http, postgres };
        for _ in 0..apis {
            stack.ports.push(free_port());
            let api = stack.api(stack.ports.len() - 1);
            stack.apis.push(api);
        }
        for port in stack.ports.clone() {
            let url = format!("http://127.0.0.1:{port}/readyz");
            until("the api is ready", async || stack.http.get(&url).send().await.is_ok_and(|r| r.status() == 200)).await;
        }
        for index in 0..schedulers {
            let scheduler = stack.scheduler(index);
            stack.schedulers.push(scheduler);
        }
        let admin = stack.token("root", "", "platform_admin");
        for tenant in ["acme", "other"] {
            let (status, answer) = stack.call("POST", "/v1/tenants", &admin, Some(json!({ "name": tenant }))).await;
            assert_eq!(status, 201, "{answer}");
        }
        stack
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts (again) the replica with this index.
    pub fn api(&self, index: usize) -> Process {
        let listen = format!("127.0.0.1:{}", self.ports[index]);
        let logs = format!("file://{}", self.path("logs").display());
        let key = self.path("dev-key");
        let args = [
            "api",
            "--database-url",
            &self.postgres.url(),
            "--listen",
            &listen,
            "--logs",
            &logs,
            "--dev-key",
            key.to_str().unwrap(),
            "--max-connections",
            "16",
        ];
        // The first replica makes the key.
        let process = Process::start(&self.path(&format!("api{index}.log")), &args, &[]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !key.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        process
    }

    pub fn scheduler(&self, index: usize) -> Process {
        self.scheduler_with(index, &[])
    }

    pub fn scheduler_with(&self, index: usize, extra: &[&str]) -> Process {
        let (url, name) = (self.postgres.url(), format!("s{index}"));
        let mut args = vec!["scheduler", "--database-url", &url, "--name", &name, "--lease-seconds", "5"];
        args.extend(extra);
        Process::start(&self.path(&format!("scheduler{index}.log")), &args, &[])
    }

    pub fn servers(&self) -> String {
        self.ports.iter().map(|p| format!("http://127.0.0.1:{p}")).collect::<Vec<_>>().join(",")
    }

    /// Starts a worker of this name; started again under the same name it goes on where it was.
    pub async fn worker(&self, name: &str, extra: &[&str]) -> Process {
        self.worker_of(name, &self.servers(), extra).await
    }

    /// A worker that reaches the service by `servers`.
    pub async fn worker_of(&self, name: &str, servers: &str, extra: &[&str]) -> Process {
        let admin = self.token("root", "", "platform_admin");
        let (_, join) = self.call("POST", "/v1/node-join-tokens", &admin, Some(json!({ "node_pattern": name }))).await;
        let process = self.start_worker(name, servers, join["token"].as_str().unwrap(), extra);
        let path = format!("/v1/nodes/{name}");
        until("the node is there", async || self.call("GET", &path, &admin, None).await.1["state"] == "idle").await;
        process
    }

    /// Starts again a worker that has been here, or one whose name the service knows already.
    pub fn revive(&self, name: &str, join: &str, extra: &[&str]) -> Process {
        self.start_worker(name, &self.servers(), join, extra)
    }

    fn start_worker(&self, name: &str, servers: &str, join: &str, extra: &[&str]) -> Process {
        let state = self.path(name);
        let mut args = vec!["worker", "--server", servers, "--node", name, "--node-address", "127.0.0.1"];
        args.extend(["--state-dir", state.to_str().unwrap(), "--join-token", join]);
        args.extend(extra);
        Process::start(&self.path(&format!("{name}.log")), &args, &[])
    }

    /// The process that writes this log.
    pub fn pid_of(&self, log: &str) -> u32 {
        let log = self.path(log);
        let writes = |pid: u32| std::fs::read_link(format!("/proc/{pid}/fd/1")).is_ok_and(|target| target == log);
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let mut pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
            if let Some(pid) = pids.find(|pid| writes(*pid)) {
                return pid;
            }
            assert!(Instant::now() < deadline, "no process writes that log");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A development token.
    pub fn token(&self, subject: &str, tenant: &str, role: &str) -> String {
        let key = self.path("dev-key");
        let args = ["token", "--dev-key", key.to_str().unwrap(), "--subject", subject, "--tenant", tenant, "--role", role];
        let output = Command::new(BERTH).args(args).env("BERTH_CONFIG", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn user(&self) -> String {
        self.token("ann", "acme", "user")
    }

    /// Status and body of a request to the first replica that answers.
    pub async fn call(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> (u16, Value) {
        for _ in 0..200 {
            for port in &self.ports {
                let mut request = self.http.request(method.parse().unwrap(), format!("http://127.0.0.1:{port}{path}")).bearer_auth(token);
                if let Some(body) = &body {
                    request = request.json(body);
                }
                if let Ok(response) = request.send().await {
                    let status = response.status().as_u16();
                    let text = response.text().await.unwrap_or_default();
                    return (status, serde_json::from_str(&text).unwrap_or(Value::String(text)));
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no replica answers");
    }

    /// Runs a user's command.
    pub fn berth(&self, token: &str, args: &[&str]) -> Output {
        let mut command = Command::new(BERTH);
        command.args(["--server", &self.servers(), "--token", token]).args(args).env("BERTH_CONFIG", "/dev/null");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Submits a script and gives its number.
    pub fn submit(&self, token: &str, script: &str) -> u64 {
        let path = self.path("script.sh");
        std::fs::write(&path, script).unwrap();
        let output = self.berth(token, &["submit", "--parsable", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    pub async fn job(&self, token: &str, job: u64) -> Value {
        self.call("GET", &format!("/v1/jobs/{job}"), token, None).await.1
    }

    /// Waits for the job to be in this state.
    pub async fn until_state(&self, token: &str, job: u64, state: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let found = self.job(token, job).await;
            if found["state"] == state {
                return found;
            }
            if Instant::now() > deadline || is_end(&found) {
                self.print_logs();
                panic!("job {job} is not {state}: {found:#}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn output(&self, token: &str, job: u64) -> String {
        match self.call("GET", &format!("/v1/jobs/{job}/logs"), token, None).await.1 {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// For a test that failed: what the processes had to say.
    pub fn print_logs(&self) {
        for entry in std::fs::read_dir(self.dir.path()).unwrap().flatten() {
            if entry.path().extension().is_some_and(|e| e == "log") {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                eprintln!("--- {}\n{}", entry.path().display(), lines[lines.len().saturating_sub(15)..].join("\n"));
            }
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.workers.clear();
        self.schedulers.clear();
        self.apis.clear();
        self.postgres.stop();
    }
}

/// What a command that succeeds prints.
pub fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command that fails prints.
pub fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn is_end(job: &Value) -> bool {
    !matches!(job["state"].as_str(), Some("pending" | "allocated" | "running" | "suspended" | "completing") | None)
}

/// Waits for what must come true, half a minute at most.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < deadline, "it never came true that {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
