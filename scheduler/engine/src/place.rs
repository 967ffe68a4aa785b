//! Exact devices within a node: CPU ids and GPU indices.
//!
//! CPUs are taken by whole cores where the node tells which are of one core; what a job asked for says which threads of these it uses.
//! One NUMA node that has all the GPUs and CPUs is best, the fullest such one, so that larger gaps stay whole. Else the GPUs come
//! from one NUMA node if they can, and the CPUs from beside the GPUs as far as they go. GPUs at fault are never given.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::Bytes;
use berth_model::cores::CoreUse;
use berth_model::resources::NodeAllocation;

use crate::amount::Amount;
use crate::fleet::{Fleet, NodeIdx};

/// Devices whose NUMA node is not known.
const UNKNOWN: u32 = u32::MAX;

/// What is free near one NUMA node, ascending.
#[derive(Debug, Default)]
struct Domain {
    /// Core by core.
    cpus: Vec<u32>,
    gpus: Vec<u32>,
}

/// Picks devices for `need` on a node that has them free. Its CPUs are whole cores, of which `cores` says how they are used.
pub fn allocate(fleet: &Fleet, at: NodeIdx, need: &Amount, cores: CoreUse, tasks: u32) -> NodeAllocation {
    let entry = &fleet.nodes[at as usize];
    let slot = need.gpus.iter().position(|n| *n > 0);
    let total = fleet.class(fleet.real(at)).total;
    let is_whole = (need.cpus, need.gpus) == (total.cpus, total.gpus);
    let kind = slot.map(|slot| fleet.class(at).kinds[slot].as_str());
    let domains = free_domains(fleet, at, kind, is_whole);
    let (picked, gpus) = pick(domains, cores.threads as usize, need.cpus as usize, need.gpu_count() as usize);
    let (cpus, idle_cpus) = cores.split(picked);
    debug_assert_eq!(
        (cpus.len() + idle_cpus.len(), gpus.len()),
        (need.cpus as usize, need.gpu_count() as usize),
        "counts promised what devices keep"
    );
    NodeAllocation { node: entry.node.name.clone(), cpus, idle_cpus, memory_bytes: Bytes(need.memory), gpus, share: None, tasks }
}

/// What a suspended job has that goes on: as before, but for whole cores that others have now. Free ones take their place, thread by thread,
/// from beside its GPUs and old CPUs as far as they go.
pub fn cpus_again(fleet: &Fleet, at: NodeIdx, old: &NodeAllocation) -> NodeAllocation {
    let inventory = &fleet.nodes[at as usize].node.inventory;
    let numa_of: BTreeMap<u32, u32> = inventory.numa.iter().flat_map(|numa| numa.cpus.iter().map(|cpu| (*cpu, numa.id))).collect();
    let of_gpus = inventory.gpus.iter().filter(|gpu| old.gpus.contains(&gpu.index)).filter_map(|gpu| gpu.numa);
    let near: BTreeSet<u32> = of_gpus.chain(old.cpus.iter().filter_map(|cpu| numa_of.get(cpu).copied())).collect();
    let is_own = |cpu: &u32| old.cpus.contains(cpu) || old.idle_cpus.contains(cpu);
    let threads = fleet.class(at).threads.max(1) as usize;
    let domains = free_domains(fleet, at, None, false);
    let free: Vec<&[u32]> = domains.values().flat_map(|domain| domain.cpus.chunks(threads)).collect();
    let is_free = |cpu: &u32| free.iter().any(|core| core.contains(cpu));
    let mut spare: Vec<&[u32]> = free.iter().copied().filter(|core| !core.iter().any(is_own)).collect();
    spare.sort_by_key(|core| (numa_of.get(&core[0]).is_none_or(|numa| !near.contains(numa)), core[0]));
    let singles: Vec<Vec<u32>> = inventory.cpus.iter().map(|cpu| vec![*cpu]).collect();
    let cores = if threads > 1 { &inventory.cores } else { &singles };
    let gone = cores.iter().filter(|core| core.iter().any(is_own) && !core.iter().any(is_free));
    let moved: BTreeMap<u32, u32> = gone.zip(spare).flat_map(|(gone, spare)| gone.iter().copied().zip(spare.iter().copied())).collect();
    let again = |cpus: &[u32]| {
        let mut cpus: Vec<u32> = cpus.iter().map(|cpu| moved.get(cpu).copied().unwrap_or(*cpu)).collect();
        cpus.sort_unstable();
        cpus
    };
    NodeAllocation { cpus: again(&old.cpus), idle_cpus: again(&old.idle_cpus), ..old.clone() }
}

fn free_domains(fleet: &Fleet, at: NodeIdx, kind: Option<&str>, is_whole: bool) -> BTreeMap<u32, Domain> {
    let entry = &fleet.nodes[at as usize];
    let inventory = &entry.node.inventory;
    let used_cpus: BTreeSet<u32> = fleet.holdings(at).iter().flat_map(|h| h.cpus.iter().copied()).collect();
    let used_gpus: BTreeSet<u32> = fleet.holdings(at).iter().flat_map(|h| h.gpus.iter().copied()).collect();
    let numa_of: BTreeMap<u32, u32> = inventory.numa.iter().flat_map(|numa| numa.cpus.iter().map(|cpu| (*cpu, numa.id))).collect();
    let mut domains: BTreeMap<u32, Domain> = BTreeMap::new();
    let domain_of = |cpu: &u32| numa_of.get(cpu).copied().unwrap_or(UNKNOWN);
    if fleet.class(at).threads == 1 {
        for cpu in inventory.cpus.iter().filter(|cpu| !used_cpus.contains(cpu)) {
            domains.entry(domain_of(cpu)).or_default().cpus.push(*cpu);
        }
        domains.values_mut().for_each(|domain| domain.cpus.sort_unstable());
    } else {
        let mut cores: Vec<&Vec<u32>> = inventory.cores.iter().filter(|core| !core.iter().any(|cpu| used_cpus.contains(cpu))).collect();
        cores.sort_unstable();
        cores.into_iter().for_each(|core| domains.entry(domain_of(&core[0])).or_default().cpus.extend(core));
    }
    let kinds = &fleet.class(at).kinds;
    for gpu in inventory.gpus.iter().filter(|g| g.fault.is_none() && !used_gpus.contains(&g.index)) {
        let is_asked = if is_whole { kinds.contains(&gpu.kind) } else { kind.is_none_or(|kind| kind == gpu.kind) };
        if is_asked {
            domains.entry(gpu.numa.unwrap_or(UNKNOWN)).or_default().gpus.push(gpu.index);
        }
    }
    for domain in domains.values_mut() {
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

/// CPUs of whole cores, `threads` of each, the lowest first, and GPUs.
fn pick(mut domains: BTreeMap<u32, Domain>, threads: usize, cpus: usize, gpus: usize) -> (Vec<u32>, Vec<u32>) {
    let draw = |id: u32, domain: &Domain, cpus: usize, gpus: usize| {
        let (lacks_gpus, lacks_cpus) = (domain.gpus.len() < gpus, domain.cpus.len() < cpus);
        let order = |free: usize, lacks: bool| if lacks { -(free as i64) } else { free as i64 };
        Draw { lacks_gpus, lacks_cpus, gpus: order(domain.gpus.len(), lacks_gpus), cpus: order(domain.cpus.len(), lacks_cpus), id }
    };
    let (mut picked, mut gpu_ids) = (Vec::with_capacity(cpus), Vec::with_capacity(gpus));
    let mut beside: BTreeSet<u32> = BTreeSet::new();
    while gpu_ids.len() < gpus {
        let left = gpus - gpu_ids.len();
        let Some(best) = domains.iter().filter(|(_, d)| !d.gpus.is_empty()).map(|(id, d)| draw(*id, d, cpus, left)).min() else { break };
        let domain = domains.get_mut(&best.id).expect("the best is one of them");
        gpu_ids.extend(domain.gpus.drain(..left.min(domain.gpus.len())));
        beside.insert(best.id);
    }
    while picked.len() < cpus {
        let left = cpus - picked.len();
        let order = |(id, d): (&u32, &Domain)| (!beside.contains(id), draw(*id, d, left, 0));
        // Jobs without GPUs keep away from free GPUs: the draw's order by GPUs prefers the fewest.
        let Some((_, best)) = domains.iter().filter(|(_, d)| !d.cpus.is_empty()).map(order).min() else { break };
        let domain = domains.get_mut(&best.id).expect("the best is one of them");
        picked.extend(domain.cpus.drain(..left.min(domain.cpus.len())));
    }
    if threads == 1 {
        picked.sort_unstable();
    } else {
        let mut cores: Vec<&[u32]> = picked.chunks(threads).collect();
        cores.sort_unstable();
        picked = cores.concat();
    }
    gpu_ids.sort_unstable();
    (picked, gpu_ids)
}
