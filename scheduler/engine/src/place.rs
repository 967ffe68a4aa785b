//! Exact devices within a node: CPU ids and GPU indices.
//!
//! One NUMA node that has all the GPUs and CPUs is best, the fullest such one, so that larger gaps stay whole. Else the GPUs come
//! from one NUMA node if they can, and the CPUs from beside the GPUs as far as they go. GPUs at fault are never given.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::resources::NodeAllocation;

use crate::amount::Amount;
use crate::fleet::{Fleet, NodeIdx};

/// Devices whose NUMA node is not known.
const UNKNOWN: u32 = u32::MAX;

/// What is free near one NUMA node, ascending.
#[derive(Debug, Default)]
struct Domain {
    cpus: Vec<u32>,
    gpus: Vec<u32>,
}

/// Picks devices for `need` on a node that has them free.
pub fn allocate(fleet: &Fleet, at: NodeIdx, need: &Amount, tasks: u32) -> NodeAllocation {
    let entry = &fleet.nodes[at as usize];
    let slot = need.gpus.iter().position(|n| *n > 0);
    let total = fleet.class(fleet.real(at)).total;
    let is_whole = (need.cpus, need.gpus) == (total.cpus, total.gpus);
    let kind = slot.map(|slot| fleet.class(at).kinds[slot].as_str());
    let domains = free_domains(fleet, at, kind, is_whole);
    let (cpus, gpus) = pick(domains, need.cpus as usize, need.gpu_count() as usize);
    debug_assert_eq!((cpus.len(), gpus.len()), (need.cpus as usize, need.gpu_count() as usize), "counts promised what devices keep");
    NodeAllocation { node: entry.node.name.clone(), cpus, memory_bytes: berth_model::Bytes(need.memory), gpus, tasks }
}

/// CPUs for a suspended job that goes on, as many as before: its old ones where they are free, else others, from beside its GPUs and old
/// CPUs as far as they go.
pub fn cpus_again(fleet: &Fleet, at: NodeIdx, old: &NodeAllocation) -> Vec<u32> {
    let inventory = &fleet.nodes[at as usize].node.inventory;
    let numa_of: BTreeMap<u32, u32> = inventory.numa.iter().flat_map(|numa| numa.cpus.iter().map(|cpu| (*cpu, numa.id))).collect();
    let of_gpus = inventory.gpus.iter().filter(|gpu| old.gpus.contains(&gpu.index)).filter_map(|gpu| gpu.numa);
    let near: BTreeSet<u32> = of_gpus.chain(old.cpus.iter().filter_map(|cpu| numa_of.get(cpu).copied())).collect();
    let mut free: Vec<u32> = free_domains(fleet, at, None, false).into_values().flat_map(|domain| domain.cpus).collect();
    free.sort_unstable_by_key(|cpu| (!old.cpus.contains(cpu), numa_of.get(cpu).is_none_or(|numa| !near.contains(numa)), *cpu));
    free.truncate(old.cpus.len());
    free.sort_unstable();
    free
}

fn free_domains(fleet: &Fleet, at: NodeIdx, kind: Option<&str>, is_whole: bool) -> BTreeMap<u32, Domain> {
    let entry = &fleet.nodes[at as usize];
    let inventory = &entry.node.inventory;
    let used_cpus: BTreeSet<u32> = fleet.holdings(at).iter().flat_map(|h| h.cpus.iter().copied()).collect();
    let used_gpus: BTreeSet<u32> = fleet.holdings(at).iter().flat_map(|h| h.gpus.iter().copied()).collect();
    let numa_of: BTreeMap<u32, u32> = inventory.numa.iter().flat_map(|numa| numa.cpus.iter().map(|cpu| (*cpu, numa.id))).collect();
    let mut domains: BTreeMap<u32, Domain> = BTreeMap::new();
    for cpu in inventory.cpus.iter().filter(|cpu| !used_cpus.contains(cpu)) {
        domains.entry(numa_of.get(cpu).copied().unwrap_or(UNKNOWN)).or_default().cpus.push(*cpu);
    }
    let kinds = &fleet.class(at).kinds;
    for gpu in inventory.gpus.iter().filter(|g| g.fault.is_none() && !used_gpus.contains(&g.index)) {
        let is_asked = if is_whole { kinds.contains(&gpu.kind) } else { kind.is_none_or(|kind| kind == gpu.kind) };
        if is_asked {
            domains.entry(gpu.numa.unwrap_or(UNKNOWN)).or_default().gpus.push(gpu.index);
        }
    }
    for domain in domains.values_mut() {
        domain.cpus.sort_unstable();
        domain.gpus.sort_unstable();
    }
    domains
}

/// The order in which NUMA nodes are drawn from.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Draw {
    lacks_gpus: bool,
    lacks_cpus: bool,
    /// Among those that have all: the fullest. Among those that do not: the emptiest, as few pieces as can be.
    gpus: i64,
    cpus: i64,
    id: u32,
}

fn pick(mut domains: BTreeMap<u32, Domain>, cpus: usize, gpus: usize) -> (Vec<u32>, Vec<u32>) {
    let draw = |id: u32, domain: &Domain, cpus: usize, gpus: usize| {
        let (lacks_gpus, lacks_cpus) = (domain.gpus.len() < gpus, domain.cpus.len() < cpus);
        let order = |free: usize, lacks: bool| if lacks { -(free as i64) } else { free as i64 };
        Draw { lacks_gpus, lacks_cpus, gpus: order(domain.gpus.len(), lacks_gpus), cpus: order(domain.cpus.len(), lacks_cpus), id }
    };
    let (mut cpu_ids, mut gpu_ids) = (Vec::with_capacity(cpus), Vec::with_capacity(gpus));
    let mut beside: BTreeSet<u32> = BTreeSet::new();
    while gpu_ids.len() < gpus {
        let left = gpus - gpu_ids.len();
        let Some(best) = domains.iter().filter(|(_, d)| !d.gpus.is_empty()).map(|(id, d)| draw(*id, d, cpus, left)).min() else { break };
        let domain = domains.get_mut(&best.id).expect("the best is one of them");
        gpu_ids.extend(domain.gpus.drain(..left.min(domain.gpus.len())));
        beside.insert(best.id);
    }
    while cpu_ids.len() < cpus {
        let left = cpus - cpu_ids.len();
        let order = |(id, d): (&u32, &Domain)| (!beside.contains(id), draw(*id, d, left, 0));
        // Jobs without GPUs keep away from free GPUs: the draw's order by GPUs prefers the fewest.
        let Some((_, best)) = domains.iter().filter(|(_, d)| !d.cpus.is_empty()).map(order).min() else { break };
        let domain = domains.get_mut(&best.id).expect("the best is one of them");
        cpu_ids.extend(domain.cpus.drain(..left.min(domain.cpus.len())));
    }
    cpu_ids.sort_unstable();
    gpu_ids.sort_unstable();
    (cpu_ids, gpu_ids)
}
