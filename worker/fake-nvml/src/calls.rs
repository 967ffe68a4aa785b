//! The exported calls. Structs and constants are nvml-wrapper-sys's, so that layouts cannot drift from what the wrapper reads.
//!
//! A device handle is the GPU's index plus one, an event set's is its number; neither is ever dereferenced. A MIG instance's handle has its
//! own index plus one above that of its GPU.

// The bindings' constants carry C's names.
#![allow(non_upper_case_globals)]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};
use std::mem::size_of;
use std::ptr::without_provenance_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::*;

use crate::events;
use crate::state::{self, Gpu, Instance, State, instance_uuid};

const DRIVER_VERSION: &str = "550.54.15 (simulated)";
const NVML_VERSION: &str = "12.550.54.15";
const CUDA_VERSION: c_int = 12_040;
const POWER_LIMIT_MILLIWATTS: c_uint = 700_000;

/// Initialisations less shutdowns, as NVML counts them.
static USERS: AtomicU32 = AtomicU32::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

type Answer<T> = Result<T, nvmlReturn_t>;

/// Writes an answer where the caller wants it.
///
/// # Safety
/// `out` is null or valid for writing.
unsafe fn give<T>(out: *mut T, answer: Answer<T>) -> nvmlReturn_t {
    match answer {
        Ok(_) if out.is_null() => nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: not null, and the caller vouches for the rest.
            unsafe { out.write(value) };
            nvmlReturn_enum_NVML_SUCCESS
        }
        Err(code) => code,
    }
}

/// Writes two answers.
///
/// # Safety
/// As [`give`].
unsafe fn give_both<T>(first: *mut T, second: *mut T, answer: Answer<(T, T)>) -> nvmlReturn_t {
    match answer {
        // SAFETY: the caller vouches for both.
        Ok((a, b)) => match unsafe { give(first, Ok(a)) } {
            nvmlReturn_enum_NVML_SUCCESS => unsafe { give(second, Ok(b)) },
            code => code,
        },
        Err(code) => code,
    }
}

/// Writes a text with its final zero.
///
/// # Safety
/// `out` is null or has room for `length` bytes.
unsafe fn give_text(out: *mut c_char, length: c_uint, answer: Answer<String>) -> nvmlReturn_t {
    match answer {
        Ok(_) if out.is_null() => nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
        Ok(text) if text.len() >= length as usize => nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE,
        Ok(text) => {
            // SAFETY: the text and its zero fit in `length`.
            unsafe {
                out.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
                out.add(text.len()).write(0);
            }
            nvmlReturn_enum_NVML_SUCCESS
        }
        Err(code) => code,
    }
}

fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, from) in array[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    array
}

fn code(answer: Answer<()>) -> nvmlReturn_t {
    answer.err().unwrap_or(nvmlReturn_enum_NVML_SUCCESS)
}

fn machine() -> Answer<State> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED);
    }
    state::current().ok_or(nvmlReturn_enum_NVML_ERROR_UNKNOWN)
}

fn handle(state: &State, index: usize) -> Answer<nvmlDevice_t> {
    match state.gpus.get(index) {
        None => Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
        Some(gpu) if gpu.lost => Err(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
        Some(_) => Ok(without_provenance_mut(index + 1)),
    }
}

/// Bits of a handle that hold the GPU's index plus one; those above are the MIG instance's.
const GPU_BITS: u32 = 16;

/// GPU and place of a MIG instance's handle; none of a GPU's.
fn place_of(device: nvmlDevice_t) -> Option<(usize, usize)> {
    let at = (device.addr() >> GPU_BITS).checked_sub(1)?;
    Some(((device.addr() & ((1 << GPU_BITS) - 1)).checked_sub(1)?, at))
}

/// Asks a MIG instance that must be there.
fn ask_instance<T>(device: nvmlDevice_t, question: impl FnOnce(usize, usize, &Gpu, &Instance) -> T) -> Answer<T> {
    let (index, at) = place_of(device).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    let state = machine()?;
    handle(&state, index)?;
    let gpu = &state.gpus[index];
    let instance = gpu.mig.as_ref().and_then(|all| all.get(at)).ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
    Ok(question(index, at, gpu, instance))
}

/// Asks either, each in its own way.
fn ask_any<T>(
    device: nvmlDevice_t,
    whole: impl FnOnce(&State, usize, &Gpu) -> T,
    instance: impl FnOnce(usize, usize, &Gpu, &Instance) -> T,
) -> Answer<T> {
    if place_of(device).is_some() { ask_instance(device, instance) } else { ask(device, whole) }
}

fn instance_handle(device: nvmlDevice_t, at: c_uint) -> Answer<nvmlDevice_t> {
    let (index, count) = ask(device, |_, index, gpu| (index, gpu.mig.as_ref().map(Vec::len)))?;
    match count {
        None => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        Some(count) if at as usize >= count => Err(nvmlReturn_enum_NVML_ERROR_NOT_FOUND),
        Some(_) => Ok(without_provenance_mut((at as usize + 1) << GPU_BITS | (index + 1))),
    }
}

/// Asks a GPU that must be there.
fn ask<T>(device: nvmlDevice_t, question: impl FnOnce(&State, usize, &Gpu) -> T) -> Answer<T> {
    let state = machine()?;
    let index = device.addr().checked_sub(1).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    handle(&state, index)?;
    Ok(question(&state, index, &state.gpus[index]))
}

fn ask_pair<T>(one: nvmlDevice_t, other: nvmlDevice_t, question: impl FnOnce(&Gpu, &Gpu) -> T) -> Answer<T> {
    let (one, other) = (ask(one, |_, _, gpu| gpu.clone())?, ask(other, |_, _, gpu| gpu.clone())?);
    Ok(question(&one, &other))
}

fn start() -> nvmlReturn_t {
    if state::current().is_none() {
        return nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED;
    }
    LazyLock::force(&START);
    USERS.fetch_add(1, Ordering::AcqRel);
    nvmlReturn_enum_NVML_SUCCESS
}

fn stop() -> nvmlReturn_t {
    match USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1)) {
        Ok(_) => nvmlReturn_enum_NVML_SUCCESS,
        Err(_) => nvmlReturn_enum_NVML_ERROR_UNINITIALIZED,
    }
}

fn memory(total: u64, used: u64) -> nvmlMemory_v2_t {
    nvmlMemory_v2_t { version: memory_version(), total, reserved: 0, free: total.saturating_sub(used), used }
}

/// `NVML_STRUCT_VERSION(Memory, 2)` of nvml.h.
fn memory_version() -> c_uint {
    size_of::<nvmlMemory_v2_t>() as c_uint | 2 << 24
}

fn pci(index: usize) -> nvmlPciInfo_t {
    let bus = 0x18 + 8 * index as c_uint;
    nvmlPciInfo_t {
        busIdLegacy: chars(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus,
        device: 0,
        pciDeviceId: 0x2330_10de,
        pciSubSystemId: 0x16c1_10de,
        busId: chars(&format!("00000000:{bus:02X}:00.0")),
    }
}

/// NVIDIA's library does not tell it of a GPU that is cut.
fn utilization(gpu: &Gpu) -> Answer<nvmlUtilization_t> {
    match gpu.mig {
        Some(_) => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        None => Ok(nvmlUtilization_t { gpu: gpu.utilization_percent, memory: gpu.utilization_percent / 2 }),
    }
}

fn mig_mode(gpu: &Gpu) -> c_uint {
    if gpu.mig.is_some() { NVML_DEVICE_MIG_ENABLE } else { NVML_DEVICE_MIG_DISABLE }
}

fn link_state(gpu: &Gpu, link: c_uint) -> Answer<nvmlEnableState_t> {
    match link {
        NVML_NVLINK_MAX_LINKS.. => Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
        _ if gpu.nvlinks_down.contains(&link) => Ok(nvmlEnableState_enum_NVML_FEATURE_DISABLED),
        _ => Ok(nvmlEnableState_enum_NVML_FEATURE_ENABLED),
    }
}

fn ecc_errors(gpu: &Gpu, kind: nvmlMemoryErrorType_t) -> c_ulonglong {
    if kind == nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED { gpu.ecc_uncorrected } else { 0 }
}

/// Writes the NUMA node next to the GPU as a set of bits.
///
/// # Safety
/// `out` is null or has room for `words` words.
unsafe fn give_numa(device: nvmlDevice_t, words: c_uint, out: *mut c_ulong) -> nvmlReturn_t {
    let node = match ask(device, |_, _, gpu| gpu.numa) {
        Ok(Some(node)) => node,
        Ok(None) => return nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        Err(code) => return code,
    };
    let (word, bit) = (node / c_ulong::BITS, node % c_ulong::BITS);
    if out.is_null() || words == 0 {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    for at in 0..words {
        // SAFETY: below `words`.
        unsafe { out.add(at as usize).write(if at == word { 1 << bit } else { 0 }) };
    }
    nvmlReturn_enum_NVML_SUCCESS
}

/// # Safety
/// `out` is null or valid for reading and writing.
unsafe fn give_memory(device: nvmlDevice_t, out: *mut nvmlMemory_v2_t) -> nvmlReturn_t {
    // SAFETY: the caller vouches for it.
    if !out.is_null() && unsafe { (*out).version } != memory_version() {
        return nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    let whole = |_: &State, _, gpu: &Gpu| memory(gpu.memory_bytes, gpu.memory_used_bytes);
    let part = |_, _, _: &Gpu, instance: &Instance| memory(instance.memory_bytes, 0);
    // SAFETY: as above.
    unsafe { give(out, ask_any(device, whole, part)) }
}

fn wait(set: nvmlEventSet_t, timeout_ms: c_uint) -> Answer<nvmlEventData_t> {
    machine()?;
    let event = events::wait(set.addr(), Duration::from_millis(timeout_ms.into()))?;
    Ok(nvmlEventData_t {
        device: without_provenance_mut(event.gpu + 1),
        eventType: nvmlEventTypeXidCriticalError.into(),
        eventData: event.xid,
        gpuInstanceId: u32::MAX,
        computeInstanceId: u32::MAX,
    })
}

fn by_uuid(uuid: *const c_char) -> Answer<nvmlDevice_t> {
    let state = machine()?;
    if uuid.is_null() {
        return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: not null; the caller passes a C string.
    let wanted = unsafe { std::ffi::CStr::from_ptr(uuid) };
    let index = (0..state.gpus.len()).find(|&index| state.uuid(index).as_bytes() == wanted.to_bytes());
    handle(&state, index.ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?)
}

/// Exports calls that return an `nvmlReturn_t`.
///
/// # Safety
/// All of them: pointers are null or valid for what nvml.h says of the call.
macro_rules! export {
    ($(fn $name:ident($($arg:ident: $type:ty),*) => $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, unused_unsafe)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> nvmlReturn_t {
            // SAFETY: see the macro.
            unsafe { $body }
        }
    )*};
}

export! {
    fn nvmlInit_v2() => start();
    fn nvmlInitWithFlags(_flags: c_uint) => start();
    fn nvmlShutdown() => stop();
    fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) => give_text(out, length, machine().map(|_| DRIVER_VERSION.into()));
    fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: c_uint) => give_text(out, length, Ok(NVML_VERSION.into()));
    fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) => give(out, Ok(CUDA_VERSION));

    fn nvmlDeviceGetCount_v2(out: *mut c_uint) => give(out, machine().map(|state| state.gpus.len() as c_uint));
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut nvmlDevice_t) => give(out, machine().and_then(|state| handle(&state, index as usize)));
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut nvmlDevice_t) => give(out, by_uuid(uuid));
    fn nvmlDeviceGetIndex(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask(device, |_, index, _| index as c_uint));
    fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask(device, |_, index, _| index as c_uint));
    fn nvmlDeviceGetUUID(device: nvmlDevice_t, out: *mut c_char, length: c_uint) =>
        give_text(out, length, ask_any(device, |state, index, _| state.uuid(index), |gpu, at, _, instance| instance_uuid(gpu, at, instance)));
    fn nvmlDeviceGetName(device: nvmlDevice_t, out: *mut c_char, length: c_uint) =>
        give_text(out, length, ask_any(device, |_, _, gpu| gpu.name.clone(), |_, _, gpu, instance| format!("{} MIG {}", gpu.name, instance.profile)));
    fn nvmlDeviceGetSerial(device: nvmlDevice_t, out: *mut c_char, length: c_uint) =>
        give_text(out, length, ask(device, |_, index, _| format!("16530230{index:05}")));
    fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, out: *mut nvmlPciInfo_t) => give(out, ask(device, |_, index, _| pci(index)));

    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, out: *mut nvmlMemory_v2_t) => give_memory(device, out);
    fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, out: *mut nvmlUtilization_t) =>
        give(out, ask(device, |_, _, gpu| utilization(gpu)).and_then(|rates| rates));
    fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask(device, |_, _, gpu| gpu.power_milliwatts));
    fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask(device, |_, _, _| POWER_LIMIT_MILLIWATTS));
    fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, out: *mut c_ulonglong) =>
        give(out, ask(device, |_, _, gpu| START.elapsed().as_millis() as u64 * u64::from(gpu.power_milliwatts) / 1000));
    fn nvmlDeviceGetTemperature(device: nvmlDevice_t, _sensor: nvmlTemperatureSensors_t, out: *mut c_uint) =>
        give(out, ask(device, |_, _, gpu| gpu.temperature_celsius));
    fn nvmlDeviceGetComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, _out: *mut nvmlProcessInfo_t) =>
        give(count, ask(device, |_, _, _| 0));

    fn nvmlDeviceGetEccMode(device: nvmlDevice_t, current: *mut nvmlEnableState_t, pending: *mut nvmlEnableState_t) =>
        give_both(current, pending, ask(device, |_, _, _| (nvmlEnableState_enum_NVML_FEATURE_ENABLED, nvmlEnableState_enum_NVML_FEATURE_ENABLED)));
    fn nvmlDeviceGetTotalEccErrors(device: nvmlDevice_t, kind: nvmlMemoryErrorType_t, _counter: nvmlEccCounterType_t, out: *mut c_ulonglong) =>
        give(out, ask(device, |_, _, gpu| ecc_errors(gpu, kind)));
    fn nvmlDeviceGetRemappedRows(device: nvmlDevice_t, correctable: *mut c_uint, uncorrectable: *mut c_uint, pending: *mut c_uint, failed: *mut c_uint) =>
        match give_both(correctable, uncorrectable, ask(device, |_, _, _| (0, 0))) {
            nvmlReturn_enum_NVML_SUCCESS => give_both(pending, failed, ask(device, |_, _, gpu| (0, gpu.row_remap_failed.into()))),
            code => code,
        };
    fn nvmlDeviceGetRetiredPagesPendingStatus(device: nvmlDevice_t, out: *mut nvmlEnableState_t) =>
        give(out, ask(device, |_, _, _| nvmlEnableState_enum_NVML_FEATURE_DISABLED));

    fn nvmlDeviceGetMigMode(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) =>
        give_both(current, pending, ask(device, |_, _, gpu| (mig_mode(gpu), mig_mode(gpu))));
    fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask(device, |_, _, _| 7));
    fn nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, at: c_uint, out: *mut nvmlDevice_t) => give(out, instance_handle(device, at));
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device: nvmlDevice_t, out: *mut nvmlDevice_t) =>
        give(out, ask_instance(device, |index, _, _, _| without_provenance_mut(index + 1)));
    fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask_any(device, |_, _, _| 0, |_, _, _, _| 1));
    fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask_instance(device, |_, at, _, _| at as c_uint + 1));
    fn nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t, out: *mut c_uint) => give(out, ask_instance(device, |_, _, _, _| 0));

    fn nvmlDeviceGetMemoryAffinity(device: nvmlDevice_t, words: c_uint, out: *mut c_ulong, _scope: nvmlAffinityScope_t) => give_numa(device, words, out);
    // Only where the GPU's memory is a NUMA node of its own, as on Grace Hopper.
    fn nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, out: *mut c_uint) =>
        give(out, ask(device, |_, _, _| ()).and(Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)));
    fn nvmlDeviceGetNvLinkState(device: nvmlDevice_t, link: c_uint, out: *mut nvmlEnableState_t) =>
        give(out, ask(device, |_, _, gpu| link_state(gpu, link)).and_then(|state| state));
    fn nvmlDeviceGetNvLinkErrorCounter(device: nvmlDevice_t, link: c_uint, _counter: nvmlNvLinkErrorCounter_t, out: *mut c_ulonglong) =>
        give(out, ask(device, |_, _, gpu| link_state(gpu, link).map(|_| 0)).and_then(|count| count));
    fn nvmlDeviceGetTopologyCommonAncestor(one: nvmlDevice_t, other: nvmlDevice_t, out: *mut nvmlGpuTopologyLevel_t) =>
        give(out, ask_pair(one, other, |one, other| match one.numa == other.numa {
            true => nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
            false => nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
        }));
    fn nvmlDeviceGetP2PStatus(one: nvmlDevice_t, other: nvmlDevice_t, _caps: nvmlGpuP2PCapsIndex_t, out: *mut nvmlGpuP2PStatus_t) =>
        give(out, ask_pair(one, other, |_, _| nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_OK));

    fn nvmlDeviceGetSupportedEventTypes(device: nvmlDevice_t, out: *mut c_ulonglong) => give(out, ask(device, |_, _, _| events::SUPPORTED));
    fn nvmlDeviceRegisterEvents(device: nvmlDevice_t, types: c_ulonglong, set: nvmlEventSet_t) =>
        code(ask(device, |_, index, _| index).and_then(|index| events::register(set.addr(), index, types)));
    fn nvmlEventSetCreate(out: *mut nvmlEventSet_t) => give(out, machine().map(|_| without_provenance_mut(events::create())));
    fn nvmlEventSetWait_v2(set: nvmlEventSet_t, out: *mut nvmlEventData_t, timeout_ms: c_uint) => give(out, wait(set, timeout_ms));
    fn nvmlEventSetFree(set: nvmlEventSet_t) => code(events::free(set.addr()));
}

/// # Safety
/// None needed; unsafe as all of NVML's calls are in the bindings.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    match result {
        nvmlReturn_enum_NVML_SUCCESS => c"Success",
        nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => c"Uninitialized",
        nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT => c"Invalid Argument",
        nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => c"Not Supported",
        nvmlReturn_enum_NVML_ERROR_NOT_FOUND => c"Not Found",
        nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE => c"Insufficient Size",
        nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        nvmlReturn_enum_NVML_ERROR_TIMEOUT => c"Timeout",
        nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH => c"Argument version mismatch",
        _ => c"Unknown Error",
    }
    .as_ptr()
}
