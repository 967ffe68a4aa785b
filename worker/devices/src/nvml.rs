//! NVIDIA GPUs, through NVML.
//!
//! A GPU that has fallen off the bus answers nothing, not even its name, so what it last said is kept: its inventory entry and the
//! handle by which its events are told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use berth_model::Bytes;
use berth_model::resources::Gpu;
use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::event::EventSet;
use nvml_wrapper::struct_wrappers::event::EventData;

use crate::mig::{self, Slice};
use crate::{DeviceError, DeviceSource, HealthEvent, Nodes, Sample, device_nodes, names, xid};

/// How long to leave the event set alone while it only says that some GPU is lost.
const LOST_PAUSE: Duration = Duration::from_millis(200);

/// `NVML_AFFINITY_SCOPE_NODE`.
const SCOPE_NODE: u32 = 0;

/// The GPUs of NVIDIA's driver.
pub struct Nvml {
    /// Never closed: NVML is meant to be initialised once, and the event set borrows it.
    nvml: &'static nvml_wrapper::Nvml,
    /// What each GPU said when it last answered, by index.
    known: Mutex<BTreeMap<u32, Known>>,
    watch: Mutex<Watch>,
    /// A GPU answers that the watch does not cover.
    is_watch_stale: AtomicBool,
}

struct Known {
    gpu: Gpu,
    /// Its MIG instances, which jobs get in its place; `None` if it is whole.
    slices: Option<Vec<Slice>>,
    minor: Option<u32>,
    handle: usize,
    /// It was lost when the watch was last set up.
    is_unheard: bool,
}

struct Watch {
    /// None when no GPU sends events.
    set: Option<EventSet<'static>>,
    /// GPUs whose loss has been told.
    lost: BTreeSet<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nvml {
    /// Loads `lib_path`, or `libnvidia-ml.so.1` from where the system keeps libraries, and starts to listen for events.
    ///
    /// The library stays loaded until the process ends, so open it once. Fails with the reason when there is no library, no driver
    /// behind it, or no answer.
    pub fn open(lib_path: Option<&Path>) -> Result<Nvml, DeviceError> {
        let mut builder = nvml_wrapper::Nvml::builder();
        if let Some(path) = lib_path {
            builder.lib_path(path.as_os_str());
        }
        let library = || lib_path.map_or("libnvidia-ml.so.1".into(), |path| path.display().to_string());
        let nvml = builder.init().map_err(|error| DeviceError::Library { library: library(), reason: error.to_string() })?;
        let source = Nvml {
            nvml: Box::leak(Box::new(nvml)),
            known: Mutex::default(),
            watch: Mutex::new(Watch { set: None, lost: BTreeSet::new() }),
            is_watch_stale: AtomicBool::new(false),
        };
        source.discover()?;
        source.renew_watch(&mut lock(&source.watch));
        Ok(source)
    }

    /// The GPU, or its MIG instances, as it is or as it was when it last answered.
    fn look(&self, index: u32) -> Vec<Gpu> {
        let found = self.nvml.device_by_index(index).and_then(|device| describe(index, &device));
        let mut known = lock(&self.known);
        match found {
            Ok(now) => {
                let gpus = now.for_jobs();
                if known.get(&index).is_none_or(|before| before.is_unheard || before.handle != now.handle) {
                    self.is_watch_stale.store(true, Ordering::Release);
                }
                known.insert(index, now);
                gpus
            }
            Err(error) => {
                let fault = Some(match error {
                    NvmlError::GpuLost => "lost: it has fallen off the bus".into(),
                    error => format!("does not answer: {error}"),
                });
                match known.get(&index) {
                    Some(before) => before.for_jobs().into_iter().map(|gpu| Gpu { fault: fault.clone(), ..gpu }).collect(),
                    None => {
                        let uuid = format!("unknown-{index}");
                        vec![Gpu { index, uuid, kind: "unknown".into(), memory_bytes: Bytes(0), numa: None, fault }]
                    }
                }
            }
        }
    }

    /// A new event set over all GPUs that answer.
    ///
    /// The wrapper gives the set up when one registration fails, so a GPU that refuses is left out and the rest start anew.
    fn renew_watch(&self, watch: &mut Watch) {
        self.is_watch_stale.store(false, Ordering::Release);
        let mut wanted: Vec<u32> = lock(&self.known).keys().copied().collect();
        watch.set = None;
        while !wanted.is_empty() {
            match self.listen(&wanted) {
                Ok(set) => {
                    watch.set = Some(set);
                    return;
                }
                Err((index, error)) => {
                    tracing::warn!(gpu = index, %error, "no events from this GPU");
                    if let (NvmlError::GpuLost, Some(known)) = (error, lock(&self.known).get_mut(&index)) {
                        known.is_unheard = true;
                    }
                    wanted.retain(|&other| other != index);
                }
            }
        }
    }

    /// An event set over these GPUs, or the one that refused and why.
    fn listen(&self, indices: &[u32]) -> Result<EventSet<'static>, (u32, NvmlError)> {
        let mut set = self.nvml.create_event_set().map_err(|error| (indices[0], error))?;
        for &index in indices {
            let device = self.nvml.device_by_index(index).map_err(|error| (index, error))?;
            let supported = device.supported_event_types().map_err(|error| (index, error))?;
            let types = supported & (EventTypes::CRITICAL_XID_ERROR | EventTypes::DOUBLE_BIT_ECC_ERROR);
            if types.is_empty() {
                return Err((index, NvmlError::NotSupported));
            }
            set = device.register_events(types, set).map_err(|error| (index, error.error))?;
        }
        Ok(set)
    }

    /// What NVML delivered, if it concerns health and comes from a GPU that can be named.
    fn health_event(&self, watch: &mut Watch, event: &EventData<'_>) -> Option<HealthEvent> {
        let (index, uuid) = self.whose(&event.device)?;
        let (code, detail, is_fatal) = match &event.event_data {
            Some(XidError::Value(number)) => {
                if *number == xid::FALLEN_OFF_THE_BUS {
                    watch.lost.insert(index);
                }
                (format!("xid {number}"), xid::words(*number), xid::is_fatal(*number))
            }
            Some(XidError::Unknown) => ("xid unknown".into(), "an error that the driver could not name", true),
            None if event.event_type.contains(EventTypes::DOUBLE_BIT_ECC_ERROR) => ("ecc double-bit".into(), xid::words(48), true),
            None => return None,
        };
        Some(HealthEvent { uuid, index, code, detail: detail.into(), is_fatal })
    }

    /// Index and UUID of an event's GPU, which may be beyond asking.
    fn whose(&self, device: &Device<'_>) -> Option<(u32, String)> {
        let handle = handle(device);
        if let Some((index, known)) = lock(&self.known).iter().find(|(_, known)| known.handle == handle) {
            return Some((*index, known.gpu.uuid.clone()));
        }
        match device.index().and_then(|index| Ok((index, device.uuid()?))) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::warn!(%error, "an event from a GPU that cannot be named");
                None
            }
        }
    }

    /// A GPU that was lost since the last look, without an Xid that said so.
    fn newly_lost(&self, watch: &mut Watch) -> Option<HealthEvent> {
        for (&index, known) in lock(&self.known).iter() {
            let is_lost = matches!(self.nvml.device_by_index(index).and_then(|device| device.uuid()), Err(NvmlError::GpuLost));
            if !is_lost {
                watch.lost.remove(&index);
            } else if watch.lost.insert(index) {
                let detail = "the GPU stopped answering: it has fallen off the bus".into();
                return Some(HealthEvent { uuid: known.gpu.uuid.clone(), index, code: "lost".into(), detail, is_fatal: true });
            }
        }
        None
    }
}

impl DeviceSource for Nvml {
    fn discover(&self) -> Result<Vec<Gpu>, DeviceError> {
        Ok((0..self.nvml.device_count()?).flat_map(|index| self.look(index)).collect())
    }

    fn sample(&self) -> Vec<Sample> {
        let count = self.nvml.device_count().unwrap_or(0);
        (0..count).filter_map(|index| read(index, &self.nvml.device_by_index(index).ok()?)).collect()
    }

    fn wait_event(&self, timeout: Duration) -> Option<HealthEvent> {
        let deadline = Instant::now() + timeout;
        let mut watch = lock(&self.watch);
        if self.is_watch_stale.load(Ordering::Acquire) {
            self.renew_watch(&mut watch);
            // One that was lost meanwhile is not in the set, which therefore will not tell.
            if let Some(lost) = self.newly_lost(&mut watch) {
                return Some(lost);
            }
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let delivered = match &watch.set {
                Some(set) => set.wait(left.as_millis().try_into().unwrap_or(u32::MAX)),
                None => {
                    sleep(left);
                    Err(NvmlError::Timeout)
                }
            };
            let event = match delivered {
                Ok(event) => self.health_event(&mut watch, &event),
                Err(NvmlError::Timeout) => None,
                Err(NvmlError::GpuLost) => {
                    let lost = self.newly_lost(&mut watch);
                    if lost.is_none() {
                        sleep(left.min(LOST_PAUSE));
                    }
                    lost
                }
                Err(error) => {
                    tracing::warn!(%error, "waiting for GPU events failed");
                    sleep(left);
                    return None;
                }
            };
            if event.is_some() || Instant::now() >= deadline {
                return event;
            }
        }
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        if let Ok(version) = self.nvml.sys_driver_version() {
            facts.insert("nvidia_driver".into(), version);
        }
        if let Ok(version) = self.nvml.sys_cuda_driver_version() {
            let (major, minor) = (nvml_wrapper::cuda_driver_version_major(version), nvml_wrapper::cuda_driver_version_minor(version));
            facts.insert("nvidia_cuda".into(), format!("{major}.{minor}"));
        }
        facts
    }

    fn nodes(&self, indices: &[u32]) -> Vec<PathBuf> {
        let known = lock(&self.known);
        let caps = std::fs::read_to_string(mig::MINORS).unwrap_or_default();
        let (mut minors, mut own) = (Vec::new(), Vec::new());
        for known in known.values() {
            let Some(minor) = known.minor else { continue };
            let slices = known.slices.iter().flatten().filter(|slice| indices.contains(&slice.gpu.index));
            let is_whole = known.slices.is_none() && indices.contains(&known.gpu.index);
            if is_whole || slices.clone().next().is_some() {
                minors.push(minor);
            }
            own.extend(slices.flat_map(|slice| mig::caps(&caps, minor, slice)));
        }
        let mut files = device_nodes(&Nodes::Nvidia { minors });
        files.extend(own);
        files
    }
}

impl Known {
    /// What jobs are given of it. A GPU that is to be cut and is not yet is of no use.
    fn for_jobs(&self) -> Vec<Gpu> {
        match &self.slices {
            None => vec![self.gpu.clone()],
            Some(slices) if slices.is_empty() => {
                vec![Gpu { fault: Some("MIG is on and there are no instances: make some, or switch it off".into()), ..self.gpu.clone() }]
            }
            Some(slices) => slices.iter().map(|slice| slice.gpu.clone()).collect(),
        }
    }
}

fn describe(index: u32, device: &Device<'_>) -> Result<Known, NvmlError> {
    let gpu = Gpu {
        index,
        uuid: device.uuid()?,
        kind: names::nvidia_type(&device.name()?),
        memory_bytes: Bytes(device.memory_info()?.total),
        numa: numa(device),
        fault: fault(device)?,
    };
    let slices = mig::slices(device, &gpu)?;
    Ok(Known { gpu, slices, minor: device.minor_number().ok(), handle: handle(device), is_unheard: false })
}

/// The NUMA node next to the GPU. (`nvmlDeviceGetNumaNodeId` is another thing: the node that the GPU's own memory is, on Grace.)
fn numa(device: &Device<'_>) -> Option<u32> {
    let words = device.memory_affinity(16, SCOPE_NODE).ok()?;
    let (at, word) = words.iter().enumerate().find(|(_, word)| **word != 0)?;
    Some(at as u32 * std::ffi::c_ulong::BITS + word.trailing_zeros())
}

/// Why the GPU should get no job: uncorrectable ECC errors that no reset has cleared (for which NVIDIA's DCGM also says to drain and
/// reset), or spare memory rows that could not be put in place. A replacement that is merely pending is none: new work may start.
fn fault(device: &Device<'_>) -> Result<Option<String>, NvmlError> {
    if let Some(errors @ 1..) = uncorrected(device)? {
        return Ok(Some(format!("uncorrectable ECC errors since its last reset: {errors}")));
    }
    Ok(has_failed_remapping(device)?.then(|| "a bad memory row could not be replaced".into()))
}

/// Uncorrectable ECC errors since the last reset; none without ECC.
fn uncorrected(device: &Device<'_>) -> Result<Option<u64>, NvmlError> {
    match device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile) {
        Ok(errors) => Ok(Some(errors)),
        Err(NvmlError::GpuLost) => Err(NvmlError::GpuLost),
        Err(_) => Ok(None),
    }
}

/// Not wrapped by nvml-wrapper; absent before Ampere.
fn has_failed_remapping(device: &Device<'_>) -> Result<bool, NvmlError> {
    let Ok(call) = device.nvml().lib().nvmlDeviceGetRemappedRows.as_ref() else { return Ok(false) };
    let (mut correctable, mut uncorrectable, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle is the device's, and the four numbers outlive the call.
    let code = unsafe { call(device.handle(), &mut correctable, &mut uncorrectable, &mut pending, &mut failed) };
    match nvml_try(code) {
        Ok(()) => Ok(failed != 0),
        Err(NvmlError::GpuLost) => Err(NvmlError::GpuLost),
        Err(_) => Ok(false),
    }
}

fn read(index: u32, device: &Device<'_>) -> Option<Sample> {
    Some(Sample {
        index,
        uuid: device.uuid().ok()?,
        utilization_percent: device.utilization_rates().ok().map(|rates| rates.gpu),
        memory_used_bytes: device.memory_info().ok().map(|memory| Bytes(memory.used)),
        power_milliwatts: device.power_usage().ok(),
        temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok(),
        ecc_uncorrected: uncorrected(device).ok()?,
    })
}

/// The same for the same GPU as long as the library is loaded.
fn handle(device: &Device<'_>) -> usize {
    // SAFETY: only compared, never used.
    unsafe { device.handle() }.addr()
}
