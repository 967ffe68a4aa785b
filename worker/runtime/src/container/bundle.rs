//! The OCI configuration of a step's container: what crun and runc read as `config.json`.

use std::path::Path;

use container_device_interface::cache::{Cache, with_auto_refresh};
use container_device_interface::spec_dirs::with_spec_dirs;
use oci_spec::runtime::Spec;
use serde_json::{Value, json};

use super::{INIT_INSIDE, IO_INSIDE, seccomp};
use crate::cgroup::Layout;
use crate::shim::group_name;
use crate::{GpuDevice, LaunchCause, LaunchError, LaunchSpec};

/// Paths on the host that go into the container.
pub struct Parts<'a> {
    pub root: &'a Path,
    pub io: &'a Path,
    pub init: &'a Path,
    /// Folders of CDI specs.
    pub cdi_dirs: &'a [String],
    pub layout: &'a Layout,
}

/// What process 1 may do; tasks that run as another user lose it all. (A small part of the usual engines' default.)
pub const CAPABILITIES: [&str; 8] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID"];

const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
const READ_ONLY: [&str; 6] = ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Writes the configuration. The devices of the granted GPUs come from the node's CDI specs, or, for a GPU that has none, from its
/// device nodes.
pub fn config(spec: &LaunchSpec, parts: &Parts) -> Result<Value, LaunchError> {
    let mut config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": [INIT_INSIDE, IO_INSIDE],
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": { "bounding": CAPABILITIES, "effective": CAPABILITIES, "permitted": CAPABILITIES },
            "noNewPrivileges": true,
        },
        "root": { "path": parts.root, "readonly": spec.read_only_root },
        "hostname": spec.hostname,
        "mounts": mounts(spec, parts),
        "linux": {
            "cgroupsPath": format!("/{}", group_name(spec)),
            "namespaces": namespaces(spec),
            "resources": resources(spec, parts.layout),
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
            "seccomp": seccomp::profile(),
        },
    });
    if spec.gpus.is_empty() {
        return Ok(config);
    }
    let known = cdi_cache(parts.cdi_dirs)?;
    let is_known = |gpu: &GpuDevice| gpu.cdi.as_ref().is_some_and(|name| known.devices.contains_key(name));
    for node in spec.gpus.iter().filter(|gpu| !is_known(gpu)).flat_map(|gpu| &gpu.device_nodes) {
        add_device(&mut config, node)?;
    }
    inject(config, &spec.gpus, known)
}

/// What the node's CDI specs know.
pub fn cdi_cache(dirs: &[String]) -> Result<Cache, LaunchError> {
    let mut cache = Cache::default();
    let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
    cache.configure(vec![with_spec_dirs(&dirs), with_auto_refresh(false)]);
    cache.refresh().map_err(|e| device_error(format!("the CDI specs cannot be read: {e}")))?;
    Ok(cache)
}

fn namespaces(spec: &LaunchSpec) -> Value {
    let mut all = vec!["pid", "ipc", "uts", "mount"];
    if spec.no_network {
        all.push("network");
    }
    all.into_iter().map(|kind| json!({ "type": kind })).collect()
}

fn resources(spec: &LaunchSpec, layout: &Layout) -> Value {
    let limits = &spec.limits;
    let mut resources = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
    if let Some(bytes) = limits.memory_bytes {
        resources["memory"] = json!({ "limit": bytes });
        if matches!(layout, Layout::V2(_)) {
            // One process killed means the step is lost: all of it ends.
            resources["unified"] = json!({ "memory.oom.group": "1" });
        }
    }
    if let Some(pids) = limits.pids {
        resources["pids"] = json!({ "limit": pids });
    }
    if !limits.cores.is_empty() {
        let list = limits.cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        resources["cpu"] = json!({ "cpus": list });
    }
    if let Some(millis) = limits.cpu_millis {
        resources["cpu"]["period"] = json!(100_000);
        resources["cpu"]["quota"] = json!(millis * 100);
    }
    resources
}

fn mounts(spec: &LaunchSpec, parts: &Parts) -> Vec<Value> {
    let kernel =
        |target: &str, kind: &str, options: &[&str]| json!({ "destination": target, "type": kind, "source": kind, "options": options });
    let bind = |source: &Path, target: &Path, read_only: bool| {
        let access = if read_only { "ro" } else { "rw" };
        json!({ "destination": target, "type": "bind", "source": source, "options": ["rbind", "nosuid", access] })
    };
    let mut mounts = vec![
        kernel("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        kernel("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        kernel("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        // NCCL and data loaders want much of it; the step's memory limit is the wall.
        kernel("/dev/shm", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        kernel("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        json!({ "destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "nosuid", "noexec", "nodev", "ro"] }),
        bind(parts.init, Path::new(INIT_INSIDE), true),
        bind(parts.io, Path::new(IO_INSIDE), false),
    ];
    for file in ["/etc/resolv.conf", "/etc/hosts"].map(Path::new).into_iter().filter(|f| f.exists()) {
        mounts.push(bind(file, file, true));
    }
    mounts.extend(host_folders(spec).into_iter().map(|path| bind(path, path, false)));
    mounts.extend(spec.tools_dir.as_deref().map(|dir| bind(dir, dir, true)));
    mounts.extend(spec.mounts.iter().map(|m| bind(&m.source, &m.target, m.read_only)));
    mounts
}

/// What the container sees at the same place as the host and may write to: folders of output, scratch, the agent's socket.
pub fn host_folders(spec: &LaunchSpec) -> Vec<&Path> {
    let mut seen: Vec<&Path> = Vec::new();
    let outputs = spec.tasks.iter().flat_map(|t| [t.stdout.parent(), t.stderr.parent()]).flatten();
    for path in outputs.chain(spec.scratch_dir.as_deref()).chain(spec.agent_socket.as_deref()) {
        if !seen.contains(&path) {
            seen.push(path);
        }
    }
    seen
}

/// Exposes one device node of the host.
fn add_device(config: &mut Value, node: &Path) -> Result<(), LaunchError> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let about = std::fs::metadata(node).map_err(|e| device_error(format!("{}: {e}", node.display())))?;
    let kind = if about.file_type().is_block_device() { "b" } else { "c" };
    let number = about.rdev();
    let (major, minor) = (libc::major(number), libc::minor(number));
    push(
        &mut config["linux"]["devices"],
        json!({ "path": node, "type": kind, "major": major, "minor": minor, "fileMode": 0o666, "uid": 0, "gid": 0 }),
    );
    push(
        &mut config["linux"]["resources"]["devices"],
        json!({ "allow": true, "type": kind, "major": major, "minor": minor, "access": "rw" }),
    );
    Ok(())
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

fn inject(config: Value, gpus: &[GpuDevice], mut cache: Cache) -> Result<Value, LaunchError> {
    let (named, unnamed): (Vec<&GpuDevice>, Vec<&GpuDevice>) =
        gpus.iter().partition(|gpu| gpu.cdi.as_ref().is_some_and(|name| cache.devices.contains_key(name)));
    if let Some(lost) = unnamed.iter().find(|gpu| gpu.device_nodes.is_empty() && !gpu.is_declared) {
        return Err(device_error(format!("no CDI spec names the GPU {}, and there is no device node for it", lost.uuid)));
    }
    if named.is_empty() {
        return Ok(config);
    }
    let names = named.into_iter().filter_map(|gpu| gpu.cdi.clone()).collect();
    let mut spec: Spec = serde_json::from_value(config).map_err(|e| device_error(e.to_string()))?;
    cache.inject_devices(Some(&mut spec), names).map_err(|e| device_error(e.to_string()))?;
    serde_json::to_value(spec).map_err(|e| device_error(e.to_string()))
}

pub fn device_error(detail: String) -> LaunchError {
    LaunchError { cause: LaunchCause::DeviceError, detail }
}
