//! Machines with cgroups of both versions.

use std::process::{Child, Command, Stdio};

/// crun refuses a machine whose version 2 owns controllers beside those of version 1. They are taken from it by mounting them as
/// version 1, in a mount namespace of its own, for as long as this lives.
pub struct UnifiedLeftEmpty(Child);

impl UnifiedLeftEmpty {
    /// `None`: this machine has no such mixture.
    pub async fn hold() -> Option<UnifiedLeftEmpty> {
        let unified = std::path::Path::new("/sys/fs/cgroup/unified/cgroup.controllers");
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let is_mounted = |name: &str| mounts.lines().any(|l| l.starts_with("cgroup ") && l.split([' ', ',']).any(|o| o == name));
        // Those that another test has taken count too: it may end first.
        let all = std::fs::read_to_string("/proc/cgroups").unwrap();
        let names = all.lines().filter(|l| !l.starts_with('#') && l.ends_with('1')).filter_map(|l| l.split_whitespace().next());
        let owned = names.filter(|name| !is_mounted(name)).collect::<Vec<_>>().join(",");
        if owned.is_empty() || !unified.exists() {
            return None;
        }
        let script = format!("mount -t tmpfs none /mnt && mkdir /mnt/v1 && mount -t cgroup -o {owned} none /mnt/v1 && exec sleep 3600");
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::null());
        let held = UnifiedLeftEmpty(command.spawn().unwrap());
        super::until("version 2 owns no controller", async || std::fs::read_to_string(unified).unwrap().trim().is_empty()).await;
        Some(held)
    }
}

impl Drop for UnifiedLeftEmpty {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
