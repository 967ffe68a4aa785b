//! The state file: what the simulated machine looks like now.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

const STATE_VARIABLE: &str = "BERTH_FAKE_NVML_STATE";

/// The simulated machine. Without `gpus` it has eight H100s, four to a NUMA node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct State {
    pub gpus: Vec<Gpu>,
    pub events: Vec<Event>,
}

/// A GPU; its place in the list is its index and its minor number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gpu {
    /// Absent: made from the index.
    pub uuid: Option<String>,
    pub name: String,
    pub memory_bytes: u64,
    pub memory_used_bytes: u64,
    pub utilization_percent: u32,
    pub power_milliwatts: u32,
    pub temperature_celsius: u32,
    /// Uncorrectable ECC errors since the last reset.
    pub ecc_uncorrected: u64,
    pub row_remap_failed: bool,
    /// NVLinks that are down.
    pub nvlinks_down: Vec<u32>,
    /// Fallen off the bus: every call on it fails with `NVML_ERROR_GPU_IS_LOST`.
    pub lost: bool,
    /// NUMA node next to it; absent: not known.
    pub numa: Option<u32>,
    /// MIG is on, and these are its instances; absent: MIG is off.
    pub mig: Option<Vec<Instance>>,
}

/// A MIG instance; its place in the list is its index and the number of its GPU instance less one. Each has one compute instance, 0.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Absent: made from the GPU's index and its own.
    #[serde(default)]
    pub uuid: Option<String>,
    /// As `nvidia-smi mig` names it: `1g.10gb`.
    pub profile: String,
    pub memory_bytes: u64,
}

/// An Xid to deliver once. Ids grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub id: u64,
    pub gpu: usize,
    pub xid: u64,
}

impl Default for State {
    fn default() -> Self {
        State { gpus: (0..8).map(|index| Gpu { numa: Some(index / 4), ..Gpu::default() }).collect(), events: Vec::new() }
    }
}

impl Default for Gpu {
    fn default() -> Self {
        Gpu {
            uuid: None,
            name: "NVIDIA H100 80GB HBM3".into(),
            memory_bytes: 81_559 << 20,
            memory_used_bytes: 0,
            utilization_percent: 0,
            power_milliwatts: 71_400,
            temperature_celsius: 31,
            ecc_uncorrected: 0,
            row_remap_failed: false,
            nvlinks_down: Vec::new(),
            lost: false,
            numa: None,
            mig: None,
        }
    }
}

impl State {
    pub fn parse(text: &[u8]) -> Result<State, String> {
        let state: State = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match state.events.iter().find(|event| event.gpu >= state.gpus.len()) {
            Some(event) => Err(format!("event {} names GPU {} of {}", event.id, event.gpu, state.gpus.len())),
            None => Ok(state),
        }
    }

    pub(crate) fn uuid(&self, index: usize) -> String {
        match &self.gpus[index].uuid {
            Some(uuid) => uuid.clone(),
            None => format!("GPU-51b0e11a-0000-4000-8000-{index:012x}"),
        }
    }
}

/// The UUID of a MIG instance.
pub(crate) fn instance_uuid(gpu: usize, at: usize, instance: &Instance) -> String {
    instance.uuid.clone().unwrap_or_else(|| format!("MIG-51b0e11a-0000-5000-8000-{gpu:06x}{at:06x}"))
}

/// What the file held when it was last read well, and what was last said about it.
struct Loaded {
    text: Vec<u8>,
    state: Option<State>,
    complaint: String,
}

static LOADED: Mutex<Loaded> = Mutex::new(Loaded { text: Vec::new(), state: None, complaint: String::new() });

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state now; none when its file has never been readable.
pub(crate) fn current() -> Option<State> {
    let Some(path) = file() else { return Some(State::default()) };
    let mut loaded = lock(&LOADED);
    match std::fs::read(&path) {
        Ok(text) if text == loaded.text && loaded.state.is_some() => {}
        Ok(text) => match State::parse(&text) {
            Ok(state) => *loaded = Loaded { text, state: Some(state), complaint: String::new() },
            Err(reason) => loaded.complain(&path, &reason),
        },
        Err(error) => loaded.complain(&path, &error.to_string()),
    }
    loaded.state.clone()
}

impl Loaded {
    /// Says it once, not on every call.
    fn complain(&mut self, path: &Path, reason: &str) {
        let complaint = format!("simulated NVML: {}: {reason}", path.display());
        if complaint != self.complaint {
            eprintln!("{complaint}");
            self.complaint = complaint;
        }
    }
}

fn file() -> Option<PathBuf> {
    match std::env::var_os(STATE_VARIABLE) {
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => beside_the_library().filter(|path| path.exists()),
    }
}

/// `<path of this library>.state`.
fn beside_the_library() -> Option<PathBuf> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only writes to `found`; on success its file name is a string that lives as long as the library is loaded.
    let library = unsafe {
        if libc::dladdr(beside_the_library as *const libc::c_void, found.as_mut_ptr()) == 0 {
            return None;
        }
        let name = found.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        OsStr::from_bytes(CStr::from_ptr(name).to_bytes()).to_owned()
    };
    let mut path: OsString = library;
    path.push(".state");
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_only_what_differs_from_an_idle_h100() {
        let state = State::parse(br#"{"gpus": [{"uuid": "GPU-a", "ecc_uncorrected": 2}, {"numa": 1}]}"#).unwrap();
        assert_eq!((state.uuid(0).as_str(), state.uuid(1).as_str()), ("GPU-a", "GPU-51b0e11a-0000-4000-8000-000000000001"));
        assert_eq!((state.gpus[0].ecc_uncorrected, state.gpus[0].name.as_str()), (2, "NVIDIA H100 80GB HBM3"));
        assert_eq!((state.gpus[0].numa, state.gpus[1].numa), (None, Some(1)));
    }

    #[test]
    fn without_gpus_there_are_eight() {
        let state = State::parse(br#"{"events": [{"id": 1, "gpu": 7, "xid": 79}]}"#).unwrap();
        assert_eq!(state.gpus.len(), 8);
        assert_eq!(state.events, [Event { id: 1, gpu: 7, xid: 79 }]);
        assert_eq!(state.gpus.iter().map(|gpu| gpu.numa.unwrap()).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_mistyped_file_is_refused_by_name() {
        let typo = State::parse(br#"{"gpus": [{"ecc_uncorected": 2}]}"#).unwrap_err();
        assert!(typo.contains("ecc_uncorected"), "{typo}");
        let stray = State::parse(br#"{"gpus": [{}], "events": [{"id": 4, "gpu": 1, "xid": 79}]}"#).unwrap_err();
        assert_eq!(stray, "event 4 names GPU 1 of 1");
    }
}
