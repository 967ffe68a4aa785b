//! Debian's Slurm, started beside us on the same machine: a controller, one node of 64 CPUs and slurmrestd on a socket. Needs the packages
//! slurmctld, slurmd, slurm-client, slurmrestd and munge, and root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Slurm {
    dir: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// `None`, with the reason printed, where it is not installed.
    pub fn start() -> Option<Slurm> {
        if !["slurmctld", "slurmd", "slurmrestd", "munged"].iter().all(|name| Path::new("/usr/sbin").join(name).exists()) {
            println!("(Slurm's side is left out: apt-get install slurmctld slurmd slurm-client slurmrestd munge)");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("sl").tempdir_in("/tmp").unwrap();
        // slurmrestd refuses to be root, and must reach munge and its own socket.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut slurm = Slurm { dir, daemons: Vec::new() };
        for name in ["state", "spool", "munge"] {
            fs::create_dir(slurm.path(name)).unwrap();
        }
        fs::set_permissions(slurm.path("munge"), fs::Permissions::from_mode(0o711)).unwrap();
        fs::write(slurm.path("munge.key"), (0..1024).map(|i| (i * 7 + 3) as u8).collect::<Vec<u8>>()).unwrap();
        fs::set_permissions(slurm.path("munge.key"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(slurm.config(), slurm.settings()).unwrap();
        let at = |name: &str| slurm.path(name).display().to_string();
        let munge = [
            "--force".to_owned(),
            "--foreground".to_owned(),
            format!("--socket={}", at("munge/socket")),
            format!("--key-file={}", at("munge.key")),
            format!("--pid-file={}", at("munge/pid")),
            format!("--log-file={}", at("munge/log")),
            format!("--seed-file={}", at("munge/seed")),
        ];
        slurm.daemon("munged", &munge.iter().map(String::as_str).collect::<Vec<_>>());
        wait_for("munge", || slurm.path("munge/socket").exists());
        slurm.daemon("slurmctld", &["-D"]);
        wait_for("slurmctld", || slurm.ask("sinfo", &["-h"]).contains("n1"));
        slurm.daemon("slurmd", &["-D", "-N", "n1"]);
        wait_for("slurmd", || slurm.ask("sinfo", &["-h", "-o", "%t"]).trim() == "idle");
        let socket = format!("unix:{}", slurm.socket().display());
        slurm.daemon("runuser", &["-u", "nobody", "--", "slurmrestd", "-s", "openapi/v0.0.38", "-a", "rest_auth/local", &socket]);
        wait_for("slurmrestd", || slurm.socket().exists());
        Some(slurm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// slurmrestd's socket.
    pub fn socket(&self) -> PathBuf {
        self.path("rest.socket")
    }

    fn settings(&self) -> String {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let (dir, ports) = (self.dir.path().display(), [super::common::free_port(), super::common::free_port()]);
        format!(
            "ClusterName=bench\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={dir}/munge/socket\nSlurmctldPort={}\nSlurmdPort={}\nStateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/spool\nSlurmctldPidFile={dir}/ctld.pid\nSlurmdPidFile={dir}/d.pid\nSlurmctldLogFile={dir}/ctld.log\n\
             SlurmdLogFile={dir}/d.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nSlurmdParameters=config_overrides\n\
             SchedulerType=sched/backfill\nReturnToService=2\nMaxJobCount=200000\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=65536 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=64\n",
            ports[0], ports[1]
        )
    }

    fn daemon(&mut self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", self.config());
        self.daemons.push(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    /// One of Slurm's commands, to be run against this Slurm.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.path()).env("SLURM_CONF", self.config()).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn ask(&self, program: &str, args: &[&str]) -> String {
        String::from_utf8_lossy(&self.command(program, args).output().unwrap().stdout).into_owned()
    }

    /// `sbatch`, eight at once, of a script that does nothing: submissions a second.
    pub fn sbatch_rate(&self, count: usize) -> f64 {
        let script = self.path("true.sh");
        fs::write(&script, "#!/bin/sh\ntrue\n").unwrap();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..count / 8 {
                        let args = ["--hold", "--mem=64", "-o", "/dev/null", script.to_str().unwrap()];
                        assert!(self.command("sbatch", &args).stdout(Stdio::null()).status().unwrap().success());
                    }
                });
            }
        });
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// Jobs of `true` from the submission of an array to the end of the last: jobs a second.
    pub fn short_jobs(&self, count: usize) -> f64 {
        self.ask("scancel", &["--state=PENDING", "-u", "root"]);
        self.ask("scancel", &["--state=PENDING", "-u", "nobody"]);
        wait_for("an empty queue", || self.ask("squeue", &["-h"]).trim().is_empty());
        let begun = Instant::now();
        let array = format!("--array=1-{count}");
        let args = ["--mem=64", "-o", "/dev/null", array.as_str(), "--wrap=true"];
        assert!(self.command("sbatch", &args).stdout(Stdio::null()).status().unwrap().success());
        while !self.ask("squeue", &["-h"]).trim().is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// `srun true`, as a user waits for it.
    pub fn srun_true(&self) -> Duration {
        let begun = Instant::now();
        assert!(self.command("srun", &["--mem=64", "true"]).status().unwrap().success());
        begun.elapsed()
    }

    /// From `sbatch` to the first line in the job's output file.
    pub fn first_line(&self) -> Duration {
        let out = self.path("first.out");
        let _ = fs::remove_file(&out);
        let begun = Instant::now();
        let args = ["--mem=64", "-o", out.to_str().unwrap(), "--wrap=echo hello"];
        assert!(self.command("sbatch", &args).stdout(Stdio::null()).status().unwrap().success());
        while fs::read_to_string(&out).map_or(true, |text| text.is_empty()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        begun.elapsed()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
