//! What an attempt must know after a restart of the worker, beside what its drivers know.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Data {
    /// Start of the first step, in milliseconds since the machine came up: the time limit counts from here.
    pub started_ms: Option<u64>,
    /// When the job was told that it began: the same to each of its steps.
    pub told_start: Option<Timestamp>,
    pub is_prolog_done: bool,
    /// Signals up to this id are delivered.
    pub last_signal: u64,
    /// Number of the suspension in which it stands still now, and since when, as `started_ms`.
    pub suspended: Option<u32>,
    pub suspended_since_ms: u64,
    /// Milliseconds for which it stood still before.
    pub suspended_ms: u64,
    /// The machine's boot that `started_ms` counts from.
    machine_boot: String,
}

pub struct Journal {
    file: PathBuf,
    pub data: Data,
}

impl Journal {
    /// The journal kept in `dir`, or an empty one.
    pub fn open(dir: &Path) -> Journal {
        let file = dir.join("journal.json");
        let machine_boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let data = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Data>(&bytes).ok())
            .filter(|data| data.machine_boot == machine_boot)
            .unwrap_or_else(|| Data { machine_boot, ..Data::default() });
        Journal { file, data }
    }

    pub fn update(&mut self, change: impl FnOnce(&mut Data)) {
        change(&mut self.data);
        let draft = self.file.with_extension("new");
        let written = serde_json::to_vec(&self.data).map_err(std::io::Error::other).and_then(|bytes| std::fs::write(&draft, bytes));
        if let Err(error) = written.and_then(|()| std::fs::rename(&draft, &self.file)) {
            tracing::warn!(%error, file = %self.file.display(), "the journal could not be written");
        }
    }
}
