//! A step as the engine is asked for it.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType};

use super::devices::Granted;
use crate::LaunchSpec;
use crate::container::bundle::{CAPABILITIES, host_folders};
use crate::container::{INIT_INSIDE, IO_INSIDE};

/// What the request is made of beside the step.
pub struct Parts<'a> {
    pub image: &'a str,
    pub init: &'a Path,
    pub io: &'a Path,
    /// The step's group; `None` where the engine takes none of ours.
    pub cgroup_parent: Option<String>,
    pub labels: HashMap<String, String>,
}

pub fn create(spec: &LaunchSpec, parts: &Parts, granted: Granted) -> ContainerCreateBody {
    let limits = &spec.limits;
    let number = |value: Option<u64>| value.map(|v| i64::try_from(v).unwrap_or(i64::MAX));
    let cores = limits.cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut mounts = vec![bind(parts.init, Path::new(INIT_INSIDE), true), bind(parts.io, Path::new(IO_INSIDE), false)];
    mounts.extend(host_folders(spec).into_iter().map(|path| bind(path, path, false)));
    mounts.extend(spec.tools_dir.as_deref().map(|dir| bind(dir, dir, true)));
    mounts.extend(spec.mounts.iter().map(|m| bind(&m.source, &m.target, m.read_only)));
    mounts.extend(granted.mounts);
    ContainerCreateBody {
        image: Some(parts.image.to_owned()),
        hostname: spec.hostname.clone(),
        // The init gives the tasks their user.
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec![INIT_INSIDE.to_owned()]),
        cmd: Some(vec![IO_INSIDE.to_owned()]),
        working_dir: Some("/".to_owned()),
        env: Some(granted.env),
        labels: Some(parts.labels.clone()),
        host_config: Some(HostConfig {
            cgroup_parent: parts.cgroup_parent.clone(),
            cpuset_cpus: Some(cores).filter(|list| !list.is_empty()),
            cpu_period: limits.cpu_millis.map(|_| 100_000),
            cpu_quota: number(limits.cpu_millis.map(|millis| millis * 100)),
            memory: number(limits.memory_bytes),
            // The same: no swap beyond it.
            memory_swap: number(limits.memory_bytes),
            pids_limit: number(limits.pids),
            // Memory all the same: the limit above is the wall.
            shm_size: number(limits.memory_bytes),
            devices: Some(granted.nodes),
            device_requests: Some(granted.requests).filter(|requests| !requests.is_empty()),
            mounts: Some(mounts),
            network_mode: Some(if spec.no_network { "none" } else { "host" }.to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.iter().map(|name| name.trim_start_matches("CAP_").to_owned()).collect()),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            readonly_rootfs: Some(spec.read_only_root),
            // Output goes to the step's own files.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn bind(source: &Path, target: &Path, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.display().to_string()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}
