//! NVIDIA GPUs that are cut into MIG instances: each instance is a GPU of its own to jobs, of a type named after its profile (`1g.10gb`).
//!
//! They are numbered from a hundred on for each GPU: the third instance of GPU 1 is 202. NVML's own numbers begin anew with every GPU.
//! Utilisation, power and events are the GPU's, not the instances'.

use std::ffi::c_uint;
use std::path::PathBuf;

use berth_model::Bytes;
use berth_model::resources::Gpu;
use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_try};

use crate::names;

/// Instances of GPU n are numbered from (n + 1) · 100 on.
const NUMBERS: u32 = 100;

/// Where the driver tells which device files let a process use an instance.
pub const MINORS: &str = "/proc/driver/nvidia-caps/mig-minors";

/// An instance, with the numbers by which the driver names its device files.
#[derive(Clone, Debug)]
pub struct Slice {
    pub gpu: Gpu,
    gpu_instance: Option<u32>,
    compute_instance: Option<u32>,
}

/// The instances of a GPU; `None` if MIG is off or unknown to it. `whole` is the GPU itself, whose place and faults they share.
pub fn slices(device: &Device<'_>, whole: &Gpu) -> Result<Option<Vec<Slice>>, NvmlError> {
    match device.mig_mode() {
        Ok(mode) if mode.current != 0 => {}
        Err(NvmlError::GpuLost) => return Err(NvmlError::GpuLost),
        _ => return Ok(None),
    }
    let mut found = Vec::new();
    for i in 0..device.mig_device_count()?.min(NUMBERS) {
        match device.mig_device_by_index(i) {
            Ok(instance) => found.push(slice(&instance, whole, (whole.index + 1) * NUMBERS + i)?),
            Err(NvmlError::GpuLost) => return Err(NvmlError::GpuLost),
            // There need not be as many as there can be.
            Err(_) => {}
        }
    }
    Ok(Some(found))
}

fn slice(instance: &Device<'_>, whole: &Gpu, index: u32) -> Result<Slice, NvmlError> {
    let name = instance.name().unwrap_or_default();
    let kind = match names::mig_type(&name) {
        Some(kind) => kind,
        // Drivers that do not name the profile tell its parts.
        None => {
            let parts = instance.attributes()?;
            names::mig_type_of(parts.gpu_instance_slice_count, parts.compute_instance_slice_count, parts.memory_size_mb)
        }
    };
    let gpu = Gpu { index, uuid: instance.uuid()?, kind, memory_bytes: Bytes(instance.memory_info()?.total), ..whole.clone() };
    // Not wrapped by nvml-wrapper.
    let lib = instance.nvml().lib();
    // SAFETY: the handle is the instance's, and the numbers outlive the calls.
    let (gpu_instance, compute_instance) = unsafe {
        let of_gpu = lib.nvmlDeviceGetGpuInstanceId.as_ref().ok();
        let of_computing = lib.nvmlDeviceGetComputeInstanceId.as_ref().ok();
        (
            of_gpu.and_then(|call| number(|out| call(instance.handle(), out))),
            of_computing.and_then(|call| number(|out| call(instance.handle(), out))),
        )
    };
    Ok(Slice { gpu, gpu_instance, compute_instance })
}

/// One of the driver's numbers of an instance; none if the library does not know the call.
fn number(ask: impl FnOnce(&mut c_uint) -> c_uint) -> Option<u32> {
    let mut number = 0;
    nvml_try(ask(&mut number)).ok().map(|()| number)
}

/// Device files by which a process may use the instance, beside those of its GPU, of that minor number. `minors` is the text of [`MINORS`]:
/// `gpu0/gi1/access 12` and `gpu0/gi1/ci0/access 13` name `/dev/nvidia-caps/nvidia-cap12` and `…13`.
pub fn caps(minors: &str, minor: u32, slice: &Slice) -> Vec<PathBuf> {
    let (Some(gi), Some(ci)) = (slice.gpu_instance, slice.compute_instance) else { return Vec::new() };
    let wanted = [format!("gpu{minor}/gi{gi}/access"), format!("gpu{minor}/gi{gi}/ci{ci}/access")];
    let entries = minors.lines().filter_map(|line| line.split_once(' '));
    let own = entries.filter(|(name, _)| wanted.iter().any(|wanted| wanted == name));
    own.map(|(_, cap)| PathBuf::from(format!("/dev/nvidia-caps/nvidia-cap{}", cap.trim()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_comes_with_its_capabilities_alone() {
        let gpu = Gpu { index: 200, uuid: "MIG-a".into(), kind: "1g.10gb".into(), memory_bytes: Bytes(0), numa: None, fault: None };
        let slice = Slice { gpu, gpu_instance: Some(9), compute_instance: Some(0) };
        let minors = "config 1\nmonitor 2\ngpu1/gi9/access 84\ngpu1/gi9/ci0/access 85\ngpu1/gi9/ci1/access 86\ngpu1/gi90/access 87\ngpu0/gi9/access 3\n";
        let paths: Vec<String> = caps(minors, 1, &slice).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(paths, ["/dev/nvidia-caps/nvidia-cap84", "/dev/nvidia-caps/nvidia-cap85"]);
        assert!(caps(minors, 1, &Slice { gpu_instance: None, ..slice }).is_empty());
    }
}
