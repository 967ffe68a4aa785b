//! A container engine of the test's own: podman's service with a store of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct Podman {
    service: Child,
    dir: PathBuf,
    pub socket: PathBuf,
}

impl Podman {
    /// Starts it below `dir`; it may pull from these registries without TLS.
    pub async fn start(dir: &Path, registries: &[&str]) -> Podman {
        let dir = dir.join("podman");
        fs::create_dir(&dir).unwrap();
        let socket = dir.join("s");
        // It would raise limits above what this machine allows, and asks for what is not there without systemd.
        let limits = ["nofile", "nproc"].map(|name| format!("\"{name}={0}:{0}\"", if name == "nofile" { 1024 } else { 4096 })).join(", ");
        let engine = "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\n";
        fs::write(dir.join("containers.conf"), format!("[containers]\ndefault_ulimits = [{limits}]\n{engine}")).unwrap();
        let trusted: String =
            registries.iter().map(|registry| format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n")).collect();
        fs::write(dir.join("registries.conf"), trusted).unwrap();
        let url = format!("unix://{}", socket.display());
        let log = fs::File::create(dir.join("service.log")).unwrap();
        let mut command = Podman::command(&dir);
        command.args(["system", "service", "--time=0", &url]).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let podman = Podman { service: command.spawn().expect("podman is installed"), dir, socket };
        super::until("podman listens", async || std::os::unix::net::UnixStream::connect(&podman.socket).is_ok()).await;
        podman
    }

    fn command(dir: &Path) -> Command {
        let mut command = Command::new("podman");
        // Its monitors leave files where they are started.
        command
            .current_dir(dir)
            .env("CONTAINERS_CONF", dir.join("containers.conf"))
            .env("CONTAINERS_REGISTRIES_CONF", dir.join("registries.conf"));
        for (option, folder) in [("--root", "root"), ("--runroot", "run"), ("--tmpdir", "tmp")] {
            command.arg(option).arg(dir.join(folder));
        }
        command
    }

    /// Containers that it has, running or not.
    pub fn containers(&self) -> Vec<String> {
        let output = Podman::command(&self.dir).args(["ps", "--all", "--format", "{{.Names}}"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = Podman::command(&self.dir).args(["rm", "--all", "--force", "--time", "0"]).output();
        let _ = self.service.kill();
        let _ = self.service.wait();
        // Its store may keep a mount.
        for folder in ["root/overlay", "root"] {
            let _ = Command::new("umount").args(["-l", "-q"]).arg(self.dir.join(folder)).stderr(Stdio::null()).status();
        }
    }
}
