//! The agent's lease: a file that says until when its steps may run. The agent moves it on whenever the service answers; a shim that
//! finds it run out ends its step. So a node that is cut off, or whose agent is dead, has nothing running by the time the service
//! gives its jobs to other nodes.
//!
//! Instants are milliseconds of `CLOCK_BOOTTIME`, which goes on while the machine sleeps and which nobody can set.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time since the machine came up, sleep included.
pub fn since_boot() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safety: the pointer is to our own variable.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Moves the lease on to `until`.
pub fn renew(lease: &Path, until: Duration) -> io::Result<()> {
    let draft = lease.with_extension("new");
    fs::write(&draft, until.as_millis().to_string())?;
    fs::rename(draft, lease)
}

/// The lease has run out. A file that cannot be read counts as valid: only the agent's silence ends a step, not a full disk.
pub fn is_over(lease: &Path) -> bool {
    let until = fs::read_to_string(lease).ok().and_then(|text| text.trim().parse::<u64>().ok());
    until.is_some_and(|until| since_boot() > Duration::from_millis(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_at_its_instant_and_not_for_lack_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let lease = dir.path().join("lease");
        assert!(!is_over(&lease));
        renew(&lease, since_boot() + Duration::from_secs(60)).unwrap();
        assert!(!is_over(&lease));
        renew(&lease, since_boot().saturating_sub(Duration::from_millis(2))).unwrap();
        assert!(is_over(&lease));
    }
}
