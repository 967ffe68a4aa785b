//! What this machine has: CPUs, NUMA nodes, memory, GPUs. A declaration overrides what was found.

mod cpus;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use berth_devices::DeviceSource;
use berth_model::Bytes;
use berth_model::gres::{DeclaredShares, mark_surplus_kinds};
use berth_model::resources::{Gpu, Inventory, NumaNode};

use crate::config::Declared;
use crate::launch::DECLARED_UUID;

/// The machine as found, with what is declared in place of it.
#[derive(Clone)]
pub struct Machine {
    pub inventory: Inventory,
    /// CPU ids exist here, so that steps can be bound to them.
    pub can_bind: bool,
    /// Device files of each GPU, by its index.
    pub device_nodes: BTreeMap<u32, Vec<PathBuf>>,
    /// Where the GPUs were found; `None` if they are declared or there are none.
    pub devices: Option<Arc<dyn DeviceSource>>,
}

/// Looks at the machine. `nvml`: NVIDIA's management library, if it is not where the loader finds it.
pub fn discover(declared: &Declared, nvml: Option<&Path>) -> Machine {
    let found = cpus::find();
    let can_bind = declared.cpus.is_none_or(|count| count as usize <= found.ids.len());
    let cpus = match declared.cpus {
        Some(count) if can_bind => found.ids[..count as usize].to_vec(),
        Some(count) => (0..count).collect(),
        None => found.ids.clone(),
    };
    let numa = if can_bind {
        let keep = |node: NumaNode| NumaNode { cpus: node.cpus.into_iter().filter(|c| cpus.contains(c)).collect(), ..node };
        found.numa.into_iter().map(keep).filter(|n| !n.cpus.is_empty()).collect()
    } else {
        vec![NumaNode { id: 0, cpus: cpus.clone() }]
    };
    let cores = cores(declared.threads_per_core, &cpus, if can_bind { &found.cores } else { &[] });
    let (mut gpus, devices) = match &declared.gpus {
        Some(gpus) => (declared_gpus(gpus.kind.as_deref().unwrap_or("gpu"), gpus.count), None),
        None => find_gpus(nvml),
    };
    mark_surplus_kinds(&mut gpus);
    for gpu in gpus.iter().filter(|gpu| gpu.fault.is_some()) {
        tracing::warn!(gpu = gpu.index, kind = gpu.kind, fault = gpu.fault, "no job gets this GPU");
    }
    let mut facts = BTreeMap::from([
        ("kernel".to_owned(), line("/proc/sys/kernel/osrelease")),
        ("cgroups".to_owned(), berth_runtime::cgroup::Layout::detect().describe().to_owned()),
        ("architecture".to_owned(), std::env::consts::ARCH.to_owned()),
    ]);
    let mut device_nodes = BTreeMap::new();
    if let Some(source) = &devices {
        facts.extend(source.facts());
        for gpu in &gpus {
            let nodes = source.nodes(&[gpu.index]).into_iter().filter(|node| node.exists()).collect();
            device_nodes.insert(gpu.index, nodes);
        }
    }
    let inventory = Inventory {
        cpus,
        numa,
        sockets: found.sockets,
        threads_per_core: cores.first().map_or(if can_bind { found.threads_per_core } else { 1 }, |core| core.len() as u32),
        cores,
        memory_bytes: declared.memory.unwrap_or_else(memory),
        gpus,
        gpu_shares: BTreeMap::new(),
        facts,
    };
    Machine { inventory, can_bind, device_nodes, devices }
}

/// The CPUs of each core, if they are told apart: as found, or else as declared, neighbours together.
fn cores(declared: Option<u32>, cpus: &[u32], found: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let usable = |core: &Vec<u32>| core.iter().copied().filter(|cpu| cpus.contains(cpu)).collect::<Vec<u32>>();
    let found: Vec<Vec<u32>> = found.iter().map(usable).filter(|core| !core.is_empty()).collect();
    let are_alike = |threads: usize| threads > 1 && !found.is_empty() && found.iter().all(|core| core.len() == threads);
    let first = found.first().map_or(1, Vec::len);
    match declared.map(|threads| threads as usize) {
        None if are_alike(first) => found,
        None => {
            if found.iter().any(|core| core.len() > 1) {
                tracing::warn!("cores have different numbers of threads that jobs may use: jobs get CPUs one by one, and may share cores");
            }
            Vec::new()
        }
        Some(0 | 1) => Vec::new(),
        Some(threads) if are_alike(threads) => found,
        Some(threads) => cpus.chunks_exact(threads).map(<[u32]>::to_vec).collect(),
    }
}

/// Takes over how the machine's GPUs may be shared. `Err`: a declaration that does not fit them.
pub fn declare_shares(inventory: &mut Inventory, declared: &[DeclaredShares]) -> Result<(), String> {
    for shares in declared {
        inventory.gpu_shares.insert(shares.of, shares.over(&inventory.gpus)?);
    }
    Ok(())
}

/// The GPUs of the first vendor that has some: indices count by vendor, and a node has one kind as a rule.
fn find_gpus(nvml: Option<&Path>) -> (Vec<Gpu>, Option<Arc<dyn DeviceSource>>) {
    for source in berth_devices::open_all(nvml, Path::new("/sys")) {
        match source.discover() {
            Ok(gpus) if gpus.is_empty() => {}
            Ok(gpus) => return (gpus, Some(Arc::from(source))),
            Err(error) => tracing::warn!(%error, "GPUs cannot be discovered"),
        }
    }
    (Vec::new(), None)
}

fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Memory that jobs may use: what the machine has less a twentieth for the system (at least 256 MiB, at most 4 GiB).
fn memory() -> Bytes {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(1 << 30, |kib| kib * 1024);
    Bytes(total - (total / 20).clamp(256 << 20, 4 << 30).min(total / 2))
}

fn declared_gpus(kind: &str, count: u32) -> Vec<Gpu> {
    (0..count)
        .map(|index| Gpu {
            index,
            uuid: format!("{DECLARED_UUID}{index}"),
            kind: kind.to_owned(),
            memory_bytes: Bytes(0),
            numa: None,
            fault: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use berth_model::gres::ShareKind;

    use super::*;

    #[test]
    fn this_machine_has_cpus_and_memory_and_a_declaration_overrides_them() {
        let found = discover(&Declared::default(), None).inventory;
        assert!(!found.cpus.is_empty() && found.memory_bytes.0 > 64 << 20 && found.threads_per_core >= 1);
        let on_numa: usize = found.numa.iter().map(|n| n.cpus.len()).sum();
        assert_eq!(on_numa, found.cpus.len());
        let declared = Declared { cpus: Some(1000), memory: Some(Bytes(5)), gpus: Some("h100:3".parse().unwrap()), ..Declared::default() };
        let machine = discover(&declared, None);
        assert!(!machine.can_bind);
        assert_eq!((machine.inventory.cpus.len(), machine.inventory.memory_bytes, machine.inventory.gpus.len()), (1000, Bytes(5), 3));
        assert_eq!(machine.inventory.gpus[2].kind, "h100");
        assert!(machine.inventory.cores.is_empty());
        let mut inventory = machine.inventory;
        declare_shares(&mut inventory, &["shard:24".parse().unwrap(), "mps:100+100+50".parse().unwrap()]).unwrap();
        assert_eq!((inventory.shares_of(ShareKind::Shard, 1), inventory.shares_of(ShareKind::Mps, 2)), (8, 50));
        assert!(declare_shares(&mut inventory, &["mps:100+100".parse().unwrap()]).unwrap_err().contains("3 GPUs"));
    }

    #[test]
    fn cores_are_those_found_or_declared() {
        let cpus = [0, 1, 2, 3];
        let paired = [vec![0, 2], vec![1, 3]];
        assert_eq!(cores(None, &cpus, &paired), paired);
        assert_eq!(cores(Some(2), &cpus, &paired), paired);
        assert_eq!(cores(Some(2), &cpus, &[]), [[0, 1], [2, 3]], "nothing is known of them");
        // One by one: if that was declared, where cores have one thread, and where they differ.
        assert!(cores(Some(1), &cpus, &paired).is_empty());
        assert!(cores(None, &cpus, &cpus.map(|cpu| vec![cpu])).is_empty());
        assert!(cores(None, &cpus[..3], &paired).is_empty());
    }
}
