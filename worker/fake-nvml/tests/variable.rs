//! The environment variable that names the state file. It belongs to the whole process, hence one test, alone in its binary.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use tempfile::TempDir;

#[test]
fn the_variable_names_the_state_file_before_the_one_beside_the_library() {
    let dir = TempDir::new().unwrap();
    let library = dir.path().join("libnvidia-ml.so.1");
    std::fs::copy(std::env::current_exe().unwrap().with_file_name("libnvidia_ml.so"), &library).unwrap();
    std::fs::write(dir.path().join("libnvidia-ml.so.1.state"), r#"{"gpus": [{}]}"#).unwrap();
    let state = dir.path().join("named.json");
    let open = || Nvml::builder().lib_path(library.as_os_str()).init();

    // SAFETY: no other thread of this process reads or writes the environment.
    unsafe { std::env::set_var("BERTH_FAKE_NVML_STATE", &state) };
    assert!(matches!(open(), Err(NvmlError::DriverNotLoaded)), "it names no file yet");
    std::fs::write(&state, r#"{"gpus": [{}, {"name": "NVIDIA GB200"}, {}]}"#).unwrap();
    let nvml = open().unwrap();
    assert_eq!(nvml.device_count().unwrap(), 3);
    assert_eq!(nvml.device_by_index(1).unwrap().name().unwrap(), "NVIDIA GB200");
}
