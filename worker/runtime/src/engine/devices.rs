//! The granted GPUs as an engine is told of them: by CDI name where it does CDI, else by what the node's CDI specs say of the device, or by
//! its device nodes.

use std::path::PathBuf;

use bollard::models::{DeviceMapping, DeviceRequest, Mount, MountType};
use serde_json::Value;

use crate::container::bundle::{cdi_cache, device_error};
use crate::{GpuDevice, LaunchError};

/// What goes into a container's request.
#[derive(Debug, Default)]
pub struct Granted {
    pub requests: Vec<DeviceRequest>,
    pub nodes: Vec<DeviceMapping>,
    pub env: Vec<String>,
    pub mounts: Vec<Mount>,
    /// Device nodes that must then be in the container.
    pub expected: Vec<PathBuf>,
}

/// A GPU that cannot be given is an error: a container without it must not start.
pub fn grant(gpus: &[GpuDevice], cdi_dirs: &[String], engine_does_cdi: bool) -> Result<Granted, LaunchError> {
    let mut granted = Granted::default();
    if gpus.is_empty() {
        return Ok(granted);
    }
    let known = cdi_cache(cdi_dirs)?;
    let mut names = Vec::new();
    let mut has_shared_edits = false;
    for gpu in gpus {
        if let Some((name, device)) = gpu.cdi.as_ref().and_then(|name| Some((name, known.devices.get(name)?))) {
            let edits = |edits| serde_json::to_value(edits).map_err(|e| device_error(e.to_string()));
            let own = edits(&device.edits().container_edits)?;
            granted.expected.extend(list(&own, "deviceNodes").iter().map(|node| PathBuf::from(word(node, "path"))));
            if engine_does_cdi {
                names.push(name.clone());
                continue;
            }
            granted.add(&own);
            // What the spec says for all its devices is said once.
            if let Some(shared) = device.get_spec().cdi_spec.container_edits.filter(|_| !has_shared_edits) {
                granted.add(&serde_json::to_value(shared).map_err(|e| device_error(e.to_string()))?);
                has_shared_edits = true;
            }
        } else if gpu.device_nodes.is_empty() && !gpu.is_declared {
            return Err(device_error(format!("no CDI spec names the GPU {}, and there is no device node for it", gpu.uuid)));
        } else {
            for node in &gpu.device_nodes {
                let path = node.display().to_string();
                granted.expected.push(node.clone());
                granted.node(&path, &path, "rw");
            }
        }
    }
    if !names.is_empty() {
        granted.requests.push(DeviceRequest { driver: Some("cdi".to_owned()), device_ids: Some(names), ..DeviceRequest::default() });
    }
    Ok(granted)
}

impl Granted {
    /// What a CDI spec says. Its hooks are left out: an engine's API has no place for them.
    fn add(&mut self, edits: &Value) {
        if !list(edits, "hooks").is_empty() {
            tracing::warn!("the engine does no CDI: the hooks of the GPU's CDI spec are not run");
        }
        for node in list(edits, "deviceNodes") {
            let path = word(node, "path");
            let host = node["hostPath"].as_str().unwrap_or(path);
            self.node(host, path, node["permissions"].as_str().unwrap_or("rw"));
        }
        self.env.extend(list(edits, "env").iter().filter_map(|v| v.as_str().map(str::to_owned)));
        self.mounts.extend(list(edits, "mounts").iter().map(|mount| Mount {
            typ: Some(MountType::BIND),
            source: Some(word(mount, "hostPath").to_owned()),
            target: Some(word(mount, "containerPath").to_owned()),
            read_only: Some(list(mount, "options").iter().any(|o| o == "ro")),
            ..Mount::default()
        }));
    }

    /// Nodes that several GPUs share are exposed once.
    fn node(&mut self, host: &str, inside: &str, permissions: &str) {
        if !self.nodes.iter().any(|n| n.path_in_container.as_deref() == Some(inside)) {
            self.nodes.push(DeviceMapping {
                path_on_host: Some(host.to_owned()),
                path_in_container: Some(inside.to_owned()),
                cgroup_permissions: Some(permissions.to_owned()),
            });
        }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32) -> GpuDevice {
        GpuDevice {
            uuid: format!("GPU-{index}"),
            index,
            cdi: Some(format!("nvidia.com/gpu=GPU-{index}")),
            device_nodes: Vec::new(),
            is_declared: false,
        }
    }

    #[test]
    fn devices_go_by_name_or_by_what_the_spec_says_and_never_silently_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let spec = serde_json::json!({
            "cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
            "containerEdits": { "env": ["ALL=1"], "deviceNodes": [{ "path": "/dev/ctl", "hostPath": "/dev/full" }] },
            "devices": [
                { "name": "GPU-0", "containerEdits": { "deviceNodes": [{ "path": "/dev/g0", "hostPath": "/dev/null" }], "env": ["G0=1"] } },
                { "name": "GPU-1", "containerEdits": { "deviceNodes": [{ "path": "/dev/g1", "hostPath": "/dev/zero" }] } },
            ],
        });
        std::fs::write(dir.path().join("nvidia.json"), spec.to_string()).unwrap();
        let dirs = [dir.path().display().to_string()];

        let by_name = grant(&[gpu(0), gpu(1)], &dirs, true).unwrap();
        assert_eq!(by_name.requests[0].device_ids.as_ref().unwrap().len(), 2);
        assert!(by_name.nodes.is_empty());
        assert_eq!(by_name.expected, [PathBuf::from("/dev/g0"), PathBuf::from("/dev/g1")]);

        let by_node = grant(&[gpu(0), gpu(1)], &dirs, false).unwrap();
        assert!(by_node.requests.is_empty());
        let mut nodes: Vec<_> = by_node.nodes.iter().filter_map(|n| n.path_on_host.as_deref()).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, ["/dev/full", "/dev/null", "/dev/zero"]);
        assert_eq!(by_node.env, ["G0=1", "ALL=1"]);

        assert!(grant(&[gpu(7)], &dirs, true).is_err());
        let declared = GpuDevice { is_declared: true, ..gpu(7) };
        assert!(grant(&[declared], &dirs, true).unwrap().expected.is_empty());
    }
}
