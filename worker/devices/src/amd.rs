//! AMD GPUs, through sysfs alone: the compute driver's topology (`class/kfd`) says which there are, the graphics driver's render node
//! (`class/drm`) how they are.
//!
//! The layout is that of the kernel's documentation (gpu/amdgpu) and sources (amdkfd/kfd_topology.c, amdgpu_ras.c). A GPU split into
//! compute partitions shows as several with one UUID; they are not told apart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use berth_model::Bytes;
use berth_model::resources::Gpu;

use crate::{DeviceError, DeviceSource, HealthEvent, Nodes, Sample, device_nodes, names};

/// How often a waiting call looks at the error counts; the kernel announces nothing here.
const LOOK: Duration = Duration::from_secs(1);

/// The GPUs of the amdgpu driver.
pub struct Amd {
    sysfs: PathBuf,
    /// Uncorrectable errors at the last look, by UUID and block.
    counts: Mutex<BTreeMap<(String, String), u64>>,
}

/// A GPU of the topology.
struct Node {
    index: u32,
    uuid: String,
    device_id: u32,
    gfx_target_version: u32,
    render_minor: u32,
    /// `class/drm/renderD…/device`.
    device: PathBuf,
}

impl Amd {
    /// Reads below `sysfs_root` (`/sys`). Fails when the compute driver is not loaded. Errors counted before this call are old news to
    /// `wait_event`.
    pub fn open(sysfs_root: &Path) -> Result<Amd, DeviceError> {
        let amd = Amd { sysfs: sysfs_root.into(), counts: Mutex::default() };
        let nodes = amd.nodes_in_order()?;
        *amd.counts() = nodes.iter().flat_map(uncorrectable).collect();
        Ok(amd)
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topology's GPUs, counted as ROCm counts them: in the order of their nodes, without those that are CPUs.
    fn nodes_in_order(&self) -> Result<Vec<Node>, DeviceError> {
        let path = self.sysfs.join("class/kfd/kfd/topology/nodes");
        let entries = fs::read_dir(&path).map_err(|error| DeviceError::Sysfs { path: path.clone(), error })?;
        let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        let mut nodes = Vec::new();
        for number in numbers {
            nodes.extend(self.node(&path.join(number.to_string()), nodes.len() as u32));
        }
        Ok(nodes)
    }

    /// None for a CPU, and for a GPU that a device cgroup hides from us.
    fn node(&self, path: &Path, index: u32) -> Option<Node> {
        if number(&path.join("gpu_id"))? == 0 {
            return None;
        }
        let text = fs::read_to_string(path.join("properties")).ok()?;
        let properties: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(key, value)| Some((key, value.trim().parse().ok()?)))
            .collect();
        let property = |key: &str| properties.get(key).copied().unwrap_or(0);
        let render_minor = property("drm_render_minor") as u32;
        Some(Node {
            index,
            uuid: uuid(property("unique_id"), property("domain"), property("location_id")),
            device_id: property("device_id") as u32,
            gfx_target_version: property("gfx_target_version") as u32,
            render_minor,
            device: self.sysfs.join(format!("class/drm/renderD{render_minor}/device")),
        })
    }

    /// The first count that grew since the last look. Only that one is noted, so that others which grew too come next.
    fn grown(&self) -> Option<HealthEvent> {
        let nodes = self.nodes_in_order().ok()?;
        let mut counts = self.counts();
        for node in &nodes {
            for (key, now) in uncorrectable(node) {
                let before = *counts.entry(key.clone()).or_insert(now);
                counts.insert(key.clone(), now);
                if now > before {
                    let block = key.1;
                    return Some(HealthEvent {
                        uuid: node.uuid.clone(),
                        index: node.index,
                        code: format!("ras {block}"),
                        detail: format!("uncorrectable errors in the GPU's block {block}: {} more, {now} in all", now - before),
                        is_fatal: true,
                    });
                }
            }
        }
        None
    }
}

impl DeviceSource for Amd {
    fn discover(&self) -> Result<Vec<Gpu>, DeviceError> {
        Ok(self.nodes_in_order()?.iter().map(describe).collect())
    }

    fn sample(&self) -> Vec<Sample> {
        let nodes = self.nodes_in_order().unwrap_or_default();
        nodes.iter().filter(|node| node.device.exists()).map(read).collect()
    }

    fn wait_event(&self, timeout: Duration) -> Option<HealthEvent> {
        let deadline = Instant::now() + timeout;
        loop {
            let event = self.grown();
            let left = deadline.saturating_duration_since(Instant::now());
            if event.is_some() || left.is_zero() {
                return event;
            }
            sleep(left.min(LOOK));
        }
    }

    fn facts(&self) -> BTreeMap<String, String> {
        // Only the packaged driver tells a version; the kernel's own goes by the kernel's.
        let version = text(&self.sysfs.join("module/amdgpu/version"));
        version.map(|version| ("amd_driver".into(), version)).into_iter().collect()
    }

    fn nodes(&self, indices: &[u32]) -> Vec<PathBuf> {
        let nodes = self.nodes_in_order().unwrap_or_default();
        let render_minors = indices.iter().filter_map(|&index| Some(nodes.get(index as usize)?.render_minor)).collect();
        device_nodes(&Nodes::Amd { render_minors })
    }
}

/// ROCm's form, which `ROCR_VISIBLE_DEVICES` takes; a GPU without an id goes by its place on the bus.
///
/// `location_id` is bus · 256 + device · 8 + function.
fn uuid(unique_id: u64, domain: u64, location: u64) -> String {
    match unique_id {
        0 => format!("PCI-{domain:04x}:{:02x}:{:02x}.{}", location >> 8 & 0xff, location >> 3 & 0x1f, location & 7),
        id => format!("GPU-{id:016x}"),
    }
}

fn describe(node: &Node) -> Gpu {
    let product = text(&node.device.join("product_name")).unwrap_or_default();
    let memory = number(&node.device.join("mem_info_vram_total"));
    let fault = memory.is_none().then(|| format!("does not answer: its render node renderD{} is gone", node.render_minor));
    Gpu {
        index: node.index,
        uuid: node.uuid.clone(),
        kind: names::amd_type(&product, node.device_id, node.gfx_target_version),
        memory_bytes: Bytes(memory.unwrap_or(0)),
        // -1 when the firmware does not say.
        numa: number(&node.device.join("numa_node")).map(|numa| numa as u32),
        fault,
    }
}

fn read(node: &Node) -> Sample {
    let device = &node.device;
    let sensors = hwmon(device);
    let sensor = |names: &[&str]| names.iter().find_map(|name| number(&sensors.as_ref()?.join(name)));
    let errors = uncorrectable(node);
    Sample {
        index: node.index,
        uuid: node.uuid.clone(),
        utilization_percent: number(&device.join("gpu_busy_percent")).map(|percent| percent as u32),
        memory_used_bytes: number(&device.join("mem_info_vram_used")).map(Bytes),
        // In microwatts; newer GPUs have only the second.
        power_milliwatts: sensor(&["power1_average", "power1_input"]).map(|micro| (micro / 1000) as u32),
        // In thousandths of a degree: edge, junction, memory. Accelerators begin at the second.
        temperature_celsius: sensor(&["temp1_input", "temp2_input", "temp3_input"]).map(|milli| (milli / 1000) as u32),
        ecc_uncorrected: (!errors.is_empty()).then(|| errors.iter().map(|(_, count)| count).sum()),
    }
}

/// Uncorrectable errors of each block that counts them: `ras/umc_err_count` holds `ue: 0` and `ce: 0` on lines of their own.
fn uncorrectable(node: &Node) -> Vec<((String, String), u64)> {
    let Ok(entries) = fs::read_dir(node.device.join("ras")) else { return Vec::new() };
    let mut counts: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let block = entry.file_name().to_str()?.strip_suffix("_err_count")?.to_owned();
            let text = fs::read_to_string(entry.path()).ok()?;
            let count = text.lines().find_map(|line| line.strip_prefix("ue:")?.trim().parse().ok())?;
            Some(((node.uuid.clone(), block), count))
        })
        .collect();
    counts.sort_unstable();
    counts
}

/// The only directory in `hwmon`.
fn hwmon(device: &Path) -> Option<PathBuf> {
    fs::read_dir(device.join("hwmon")).ok()?.find_map(|entry| Some(entry.ok()?.path()))
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}
