//! `berth up` as a new user meets it: start, run, submit, stop, start again.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use common::BERTH;

struct Up {
    child: Child,
    out: BufReader<ChildStdout>,
    home: std::path::PathBuf,
}

impl Up {
    fn start(dir: &Path) -> Up {
        let home = dir.join("home");
        std::fs::create_dir_all(&home).unwrap();
        let data = dir.join("data");
        let mut child = Command::new(BERTH)
            .args(["up", "--data-dir", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--node", "here", "--node-memory", "2GiB"])
            .env("HOME", &home)
            .env("USER", "ann")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("BERTH_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = Up { out: BufReader::new(child.stdout.take().unwrap()), child, home };
        let text = up.read_until("Ctrl-C stops it.");
        assert!(text.contains("with the node here") && text.contains("You are ann of the tenant dev"), "{text}");
        up
    }

    fn read_until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.contains(end) {
            assert!(self.out.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        }
        text
    }

    /// A user's command in another terminal: no settings but what `berth up` wrote.
    fn berth(&self, args: &[&str]) -> Output {
        let mut command = Command::new(BERTH);
        command.args(args).env("HOME", &self.home).env_remove("XDG_CONFIG_HOME").env_remove("BERTH_CONFIG").current_dir(&self.home);
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn stop(mut self) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Up {
    /// After a failure; a killed service leaves its Postgres, which ends with its directory.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_new_user_runs_a_script_and_finds_it_again_after_a_restart() {
    let dir = tempfile::Builder::new().prefix("bu").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let up = Up::start(dir.path());
    assert_eq!(out(&up.berth(&["run", "echo", "hello"])), "hello\n");
    let failed = up.berth(&["run", "sh", "-c", "echo to stderr >&2; exit 3"]);
    assert_eq!(failed.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&failed.stderr).starts_with("to stderr\n"));
    let missing = up.berth(&["run", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-program"));

    let script = dir.path().join("train.sh");
    std::fs::write(
        &script,
        "#!/bin/bash\n#SBATCH -J train\n#SBATCH --time=1:00\n#SBATCH -o elsewhere.txt\n#SBATCH --mail-type=END\n\
         echo \"$SLURM_JOB_NAME $SLURM_NTASKS $1 $COLOUR\"\nsrun echo step\n",
    )
    .unwrap();
    let submitted = up.berth(&["submit", "-o", "out-%x-%j.txt", "--wait", "--export=ALL,COLOUR=blue", script.to_str().unwrap(), "arg"]);
    let text = out(&submitted);
    let job = text.trim().strip_prefix("Submitted batch job ").unwrap_or_else(|| panic!("{text}")).to_owned();
    assert!(String::from_utf8_lossy(&submitted.stderr).contains("mail-type"), "a known option without effect is a warning");
    assert_eq!(out(&up.berth(&["logs", &job])), "train 1 arg blue\nstep\n");
    let file = up.home.join(format!("out-train-{job}.txt"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "train 1 arg blue\nstep\n");
    let queue = out(&up.berth(&["queue", "--all"]));
    assert!(queue.lines().any(|l| l.starts_with(&job) && l.contains("completed") && l.contains("here")), "{queue}");

    // It waits, and the answer says for what.
    let held = out(&up.berth(&["submit", "--parsable", "--mem=100G", "--wrap=true"]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let why = out(&up.berth(&["explain", held.trim()]));
    assert!(why.contains("memory"), "{why}");
    out(&up.berth(&["cancel", held.trim()]));

    let long = out(&up.berth(&["submit", "--parsable", "--wrap=echo begun; sleep 6; echo over"]));
    let long = long.trim();
    while !out(&up.berth(&["logs", long])).contains("begun") {}
    up.stop();

    // The job went on without the service, and its end is told to the next one.
    let up = Up::start(dir.path());
    let followed = up.berth(&["logs", "-f", long]);
    assert_eq!(out(&followed), "begun\nover\n");
    let queue = out(&up.berth(&["queue", "--all", "-o", "json"]));
    let jobs: Vec<serde_json::Value> = serde_json::from_str(&queue).unwrap();
    assert_eq!(jobs.iter().filter(|j| j["state"] == "completed").count(), 3, "{queue}");
    assert_eq!(jobs[0]["restarts"], 0);
    up.stop();
}

/// The process of the private Postgres.
fn postmaster(dir: &Path) -> String {
    let file = std::fs::read_to_string(dir.join("data/postgres/cluster/postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

#[test]
fn what_is_killed_comes_back_and_the_jobs_go_on() {
    let dir = tempfile::Builder::new().prefix("bu").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut up = Up::start(dir.path());
    let first = postmaster(dir.path());
    let job = out(&up.berth(&["submit", "--parsable", "--wrap=echo begun; sleep 8; echo over"]));
    let job = job.trim();
    while !out(&up.berth(&["logs", job])).contains("begun") {}

    // The database: started again by the service that needs it.
    assert!(Command::new("kill").args(["-KILL", &first]).status().unwrap().success());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !up.berth(&["queue"]).status.success() || postmaster(dir.path()) == first {
        assert!(std::time::Instant::now() < deadline, "the database did not come back");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    // The service: the next one finds the database that was left behind, and the job.
    up.child.kill().unwrap();
    up.child.wait().unwrap();
    let up = Up::start(dir.path());
    assert_eq!(out(&up.berth(&["logs", "-f", job])), "begun\nover\n");
    let shown: serde_json::Value = serde_json::from_str(&out(&up.berth(&["show", job, "-o", "json"]))).unwrap();
    assert_eq!((shown["state"].as_str(), shown["restarts"].as_u64()), (Some("completed"), Some(0)), "{shown}");
    up.stop();
}

#[test]
fn errors_say_what_to_do() {
    let berth = |args: &[&str]| {
        let output =
            Command::new(BERTH).args(args).env("BERTH_CONFIG", "/dev/null").env("BERTH_SERVER", "http://127.0.0.1:9").output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(berth(&["queue"]).contains("berth up"));
    assert!(berth(&["submit"]).contains("--wrap"));
    assert!(berth(&["submit", "/no/such/script.sh"]).contains("/no/such/script.sh"));
    assert!(berth(&["submit", "--tiem=5", "x.sh"]).contains("--tiem=5"));
    assert!(berth(&["worker", "--state-dir", "/proc/none"]).contains("/proc/none"));
    assert!(berth(&["show", "../nodes"]).contains("neither a number nor a name"));
}
