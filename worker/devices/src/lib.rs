//! GPUs of a node: which there are, how they are, what befell them, and which device files they need.
//!
//! Input: NVIDIA's library ([`nvml`]) and the kernel's sysfs ([`amd`]). Output: the GPUs of the node's inventory, samples for metrics,
//! and events that tell the worker to drain. Nothing here decides: the worker reports, the scheduler acts.

pub mod amd;
mod mig;
mod names;
mod nodes;
pub mod nvml;
mod xid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_model::Bytes;
use berth_model::resources::Gpu;

pub use names::{amd_type, nvidia_type};
pub use nodes::{Nodes, device_nodes};

/// The GPUs of one vendor on this node. Indices count from 0 within the vendor.
pub trait DeviceSource: Send + Sync {
    /// All GPUs, by index. One that does not answer is still listed, with its `fault`.
    fn discover(&self) -> Result<Vec<Gpu>, DeviceError>;

    /// How the GPUs are now. One that does not answer has no sample.
    fn sample(&self) -> Vec<Sample>;

    /// The next event, waiting for at most `timeout`. Blocks, so it wants a thread of its own; one caller at a time.
    fn wait_event(&self, timeout: Duration) -> Option<HealthEvent>;

    /// Facts for people, for the inventory: driver versions.
    fn facts(&self) -> BTreeMap<String, String>;

    /// Device files that a container needs to use the GPUs with these indices, as of the last `discover`; those not known are left out.
    fn nodes(&self, indices: &[u32]) -> Vec<PathBuf>;
}

/// A reading of one GPU. What the GPU cannot tell is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub index: u32,
    pub uuid: String,
    pub utilization_percent: Option<u32>,
    pub memory_used_bytes: Option<Bytes>,
    pub power_milliwatts: Option<u32>,
    pub temperature_celsius: Option<u32>,
    /// Uncorrectable ECC errors since the GPU's last reset (NVIDIA) or the driver's start (AMD).
    pub ecc_uncorrected: Option<u64>,
}

/// Something that befell a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    pub uuid: String,
    pub index: u32,
    /// Stable, for machines: `xid 79`, `ecc double-bit`, `lost`, `ras umc`.
    pub code: String,
    /// The same in words.
    pub detail: String,
    /// The GPU can no longer be trusted: drain the node. False for what an application did to itself.
    pub is_fatal: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("cannot use {library}: {reason}")]
    Library { library: String, reason: String },
    #[error("NVML: {0}")]
    Nvml(#[from] nvml_wrapper::error::NvmlError),
    #[error("cannot read {}: {error}", path.display())]
    Sysfs { path: PathBuf, error: std::io::Error },
}

/// All sources that this node has. `nvml_lib` names the library in place of NVML's own name; that it then fails is worth a warning,
/// while a node without a vendor's driver is nothing unusual.
pub fn open_all(nvml_lib: Option<&Path>, sysfs: &Path) -> Vec<Box<dyn DeviceSource>> {
    let mut sources: Vec<Box<dyn DeviceSource>> = Vec::new();
    match nvml::Nvml::open(nvml_lib) {
        Ok(source) => sources.push(Box::new(source)),
        Err(error) if nvml_lib.is_some() => tracing::warn!(%error, "no NVIDIA GPUs, though a library was named"),
        Err(error) => tracing::debug!(%error, "no NVIDIA GPUs"),
    }
    match amd::Amd::open(sysfs) {
        Ok(source) => sources.push(Box::new(source)),
        Err(error) => tracing::debug!(%error, "no AMD GPUs"),
    }
    sources
}
