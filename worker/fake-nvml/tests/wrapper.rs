//! The built library, read through the unchanged wrapper. Each test loads a copy of its own, with its own state file beside it.

use std::path::{Path, PathBuf};

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor, TopologyLevel};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use tempfile::TempDir;

/// A copy of the library that cargo built beside this test.
fn library(dir: &TempDir) -> PathBuf {
    let built = std::env::current_exe().unwrap().with_file_name("libnvidia_ml.so");
    let copy = dir.path().join("libnvidia-ml.so.1");
    std::fs::copy(&built, &copy).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    copy
}

fn write_state(library: &Path, json: &str) {
    let state = PathBuf::from(format!("{}.state", library.display()));
    let draft = state.with_extension("draft");
    std::fs::write(&draft, json).unwrap();
    std::fs::rename(&draft, &state).unwrap();
}

fn open(library: &Path) -> Result<Nvml, NvmlError> {
    Nvml::builder().lib_path(library.as_os_str()).init()
}

#[test]
fn without_a_state_file_there_are_eight_idle_h100s() {
    let dir = TempDir::new().unwrap();
    let nvml = open(&library(&dir)).unwrap();
    assert_eq!(nvml.device_count().unwrap(), 8);
    assert_eq!(nvml.sys_driver_version().unwrap(), "550.54.15 (simulated)");
    assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 12_040);
    let gpu = nvml.device_by_index(5).unwrap();
    assert_eq!(gpu.name().unwrap(), "NVIDIA H100 80GB HBM3");
    assert_eq!((gpu.index().unwrap(), gpu.minor_number().unwrap()), (5, 5));
    assert_eq!(nvml.device_by_uuid(gpu.uuid().unwrap()).unwrap().index().unwrap(), 5);
    assert_eq!(gpu.memory_info().unwrap().total, 81_559 << 20);
    assert_eq!(gpu.memory_affinity(1, 0).unwrap(), [0b10]);
    assert_eq!(gpu.pci_info().unwrap().bus_id, "00000000:40:00.0");
    assert!(gpu.is_ecc_enabled().unwrap().currently_enabled);
    assert!(!gpu.are_pages_pending_retired().unwrap());
    assert_eq!(gpu.mig_mode().unwrap().current, 0);
    assert_eq!(gpu.mig_device_count().unwrap(), 7);
    assert_eq!(gpu.enforced_power_limit().unwrap(), 700_000);
    assert_eq!(gpu.running_compute_processes_count().unwrap(), 0);
    assert_eq!(gpu.topology_common_ancestor(nvml.device_by_index(4).unwrap()).unwrap(), TopologyLevel::Node);
    assert_eq!(gpu.topology_common_ancestor(nvml.device_by_index(0).unwrap()).unwrap(), TopologyLevel::System);
    assert!(matches!(nvml.device_by_index(8), Err(NvmlError::InvalidArg)));
}

#[test]
fn readings_follow_the_file_while_the_library_is_open() {
    let dir = TempDir::new().unwrap();
    let library = library(&dir);
    write_state(&library, r#"{"gpus": [{"utilization_percent": 11, "nvlinks_down": [3]}]}"#);
    let nvml = open(&library).unwrap();
    let gpu = nvml.device_by_index(0).unwrap();
    assert_eq!(gpu.utilization_rates().unwrap().gpu, 11);
    assert!(gpu.link_wrapper_for(2).is_active().unwrap());
    assert!(!gpu.link_wrapper_for(3).is_active().unwrap());
    assert!(matches!(gpu.memory_affinity(1, 0), Err(NvmlError::NotSupported)));

    write_state(
        &library,
        r#"{"gpus": [{"utilization_percent": 98, "power_milliwatts": 650000, "temperature_celsius": 71, "memory_used_bytes": 4096,
            "ecc_uncorrected": 3}]}"#,
    );
    assert_eq!(gpu.utilization_rates().unwrap().gpu, 98);
    assert_eq!(gpu.power_usage().unwrap(), 650_000);
    assert_eq!(gpu.temperature(TemperatureSensor::Gpu).unwrap(), 71);
    assert_eq!(gpu.memory_info().unwrap().used, 4096);
    assert_eq!(gpu.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).unwrap(), 3);
    assert_eq!(gpu.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile).unwrap(), 0);

    write_state(&library, "{ half a fi");
    assert_eq!(gpu.utilization_rates().unwrap().gpu, 98, "a file that cannot be read leaves the last state");

    write_state(&library, r#"{"gpus": [{"lost": true}]}"#);
    assert!(matches!(gpu.utilization_rates(), Err(NvmlError::GpuLost)));
    assert!(matches!(nvml.device_by_index(0), Err(NvmlError::GpuLost)));
    assert_eq!(nvml.device_count().unwrap(), 1, "a lost GPU still counts");
}

#[test]
fn an_event_reaches_only_the_set_that_listens_and_only_once() {
    let dir = TempDir::new().unwrap();
    let library = library(&dir);
    write_state(&library, r#"{"gpus": [{}, {}]}"#);
    let nvml = open(&library).unwrap();
    let set = nvml.create_event_set().unwrap();
    let set = nvml.device_by_index(1).unwrap().register_events(EventTypes::CRITICAL_XID_ERROR, set).unwrap();
    assert!(matches!(set.wait(1), Err(NvmlError::Timeout)));

    write_state(&library, r#"{"gpus": [{}, {}], "events": [{"id": 1, "gpu": 0, "xid": 31}, {"id": 2, "gpu": 1, "xid": 79}]}"#);
    let event = set.wait(10_000).unwrap();
    assert_eq!((event.device.index().unwrap(), event.event_data), (1, Some(XidError::Value(79))));
    assert!(matches!(set.wait(120), Err(NvmlError::Timeout)));

    write_state(&library, r#"{"gpus": [{}, {"lost": true}]}"#);
    assert!(matches!(set.wait(10_000), Err(NvmlError::GpuLost)));
}

#[test]
fn a_first_state_that_cannot_be_read_is_a_driver_that_is_not_loaded() {
    let dir = TempDir::new().unwrap();
    let library = library(&dir);
    write_state(&library, r#"{"gpus": [{"memory": 1}]}"#);
    assert!(matches!(open(&library), Err(NvmlError::DriverNotLoaded)));
}
