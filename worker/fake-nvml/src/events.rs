//! Event sets: who listens to which GPU, and waiting for what the state file sends.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::*;

use crate::state::{self, Event, lock};

/// How often a waiting call looks at the state file.
const LOOK: Duration = Duration::from_millis(50);

pub const SUPPORTED: u64 = (nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeSingleBitEccError) as u64;

struct Sets {
    last_set: usize,
    /// By set: the event types wanted of each GPU.
    open: BTreeMap<usize, BTreeMap<usize, u64>>,
    last_delivered: u64,
}

static SETS: Mutex<Sets> = Mutex::new(Sets { last_set: 0, open: BTreeMap::new(), last_delivered: 0 });

/// Opens a set; its number is never 0.
pub fn create() -> usize {
    let mut sets = lock(&SETS);
    sets.last_set += 1;
    let set = sets.last_set;
    sets.open.insert(set, BTreeMap::new());
    set
}

pub fn free(set: usize) -> Result<(), nvmlReturn_t> {
    lock(&SETS).open.remove(&set).map(|_| ()).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)
}

pub fn register(set: usize, gpu: usize, types: u64) -> Result<(), nvmlReturn_t> {
    if types & !SUPPORTED != 0 {
        return Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
    }
    let mut sets = lock(&SETS);
    let wanted = sets.open.get_mut(&set).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    *wanted.entry(gpu).or_default() |= types;
    Ok(())
}

/// The next event for the set. As NVIDIA's call does, it fails at once while a GPU of the set is lost and nothing is left to deliver.
pub fn wait(set: usize, timeout: Duration) -> Result<Event, nvmlReturn_t> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(event) = look(set)? {
            return Ok(event);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(nvmlReturn_enum_NVML_ERROR_TIMEOUT);
        }
        std::thread::sleep(left.min(LOOK));
    }
}

fn look(set: usize) -> Result<Option<Event>, nvmlReturn_t> {
    let state = state::current().ok_or(nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    let mut sets = lock(&SETS);
    let last = sets.last_delivered;
    let wanted = sets.open.get(&set).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    let hears = |gpu: usize| wanted.get(&gpu).is_some_and(|types| types & nvmlEventTypeXidCriticalError as u64 != 0);
    let next = state.events.iter().filter(|event| event.id > last && hears(event.gpu)).min_by_key(|event| event.id).copied();
    match next {
        Some(event) => {
            sets.last_delivered = event.id;
            Ok(Some(event))
        }
        None if wanted.keys().any(|&gpu| state.gpus.get(gpu).is_none_or(|gpu| gpu.lost)) => Err(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
        None => Ok(None),
    }
}
