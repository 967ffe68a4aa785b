//! What one node must give to a job of a shape.
//!
//! A gang of n nodes is first tried evenly: every node can carry the largest share, tasks ÷ n and GPUs ÷ n rounded up. That makes
//! one question a class ("does the share fit?") and one count. [`fit::spread`](crate::fit) covers uneven gangs.
//!
//! GPUs of one job on one node are of one type: a demand for any type uses the type of which the node has most.

use berth_model::cores::CoreUse;
use berth_model::gres::SharedGpu;
use berth_model::policy::Partition;
use berth_model::resources::{GpuDemand, Gpus, MemoryDemand, Shape};

use crate::amount::{Amount, SLOTS};
use crate::fleet::Class;

/// A node's part of the whole: its tasks, and its GPUs where GPUs are asked for in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub tasks: u32,
    pub gpus: u32,
}

/// A partition's limits for each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLimits {
    pub cpus: Option<u32>,
    pub memory: Option<u64>,
}

impl NodeLimits {
    pub fn of(partition: &Partition) -> Self {
        NodeLimits { cpus: partition.max_cpus_per_node, memory: partition.max_memory_per_node_bytes.map(|b| b.0) }
    }
}

/// Least and most nodes of the gang. Each node has a task, except where the job asks for more nodes than tasks.
pub fn node_range(shape: &Shape, required: usize) -> (u32, u32) {
    let required = required as u32;
    let by_tasks = shape.tasks_per_node.map_or(1, |per_node| shape.tasks.div_ceil(per_node.max(1)));
    let least = shape.min_nodes.max(by_tasks).max(required).max(1);
    let most = shape.max_nodes.max(shape.min_nodes).min(shape.tasks.max(shape.min_nodes).max(required));
    (least, most)
}

/// Node counts that are tried evenly: the least, its doublings, the most.
pub fn node_counts(shape: &Shape, required: usize) -> Vec<u32> {
    let (least, most) = node_range(shape, required);
    let mut counts = Vec::new();
    let mut n = least;
    while n < most {
        counts.push(n);
        n = n.saturating_mul(2);
    }
    if least <= most {
        counts.push(most);
    }
    counts
}

/// GPUs asked for in total.
pub fn total_gpus(shape: &Shape) -> u32 {
    match &shape.gpus {
        GpuDemand::Total(gpus) => gpus.count,
        _ => 0,
    }
}

/// The share of node `i` of `n`: as even as can be, the larger ones first.
pub fn even_share(shape: &Shape, n: u32, i: u32) -> Share {
    let part = |all: u32| all / n + u32::from(i < all % n);
    Share { tasks: part(shape.tasks), gpus: part(total_gpus(shape)) }
}

/// An even gang is the only one there can be.
pub fn is_even_only(shape: &Shape, required: usize) -> bool {
    let (least, most) = node_range(shape, required);
    let tasks_fixed = shape.tasks <= least || shape.tasks_per_node.is_some_and(|per_node| per_node.saturating_mul(least) == shape.tasks);
    least == most && (least == 1 || (tasks_fixed && total_gpus(shape) <= least))
}

/// What a node of `class` must give for `share`; nothing if even a free one cannot.
pub fn node_need(shape: &Shape, class: &Class, limits: NodeLimits, share: Share) -> Option<Amount> {
    if shape.sockets.count > class.sockets.count || shape.sockets.cores > class.sockets.cores {
        return None;
    }
    let (cpus, used) = core_use(shape, class)?.cpus(share.tasks, shape.cpus_per_task);
    let (wanted, count) = gpus_on_node(shape, share);
    let mut need = Amount { memory: 0, cpus, gpus: [0; SLOTS] };
    if let GpuDemand::Share(asked) = &shape.gpus {
        // Whoever opens a GPU takes it whole from those who do not share it.
        need.gpus[shared_slot(class, asked)?] = 1;
    }
    if count > 0 {
        need.gpus[slot(class, wanted?)?] = u16::try_from(count).ok()?;
    }
    need.memory = match shape.memory {
        MemoryDemand::WholeNode => class.total.memory,
        MemoryDemand::PerNode(bytes) => bytes.0,
        // Of those that it may use.
        MemoryDemand::PerCpu(bytes) => bytes.0.saturating_mul(u64::from(used)),
        MemoryDemand::PerGpu(bytes) => bytes.0.saturating_mul(u64::from(count)),
    };
    if !class.total.covers(&need) {
        return None;
    }
    if shape.exclusive {
        // Of a node of which only a part is reserved nobody gets the whole.
        need = if class.is_part { return None } else { whole_node(shape, class) };
    }
    let is_within = limits.cpus.is_none_or(|most| need.cpus <= most) && limits.memory.is_none_or(|most| need.memory <= most);
    if shape.exclusive_user && class.is_part {
        return None;
    }
    is_within.then_some(need)
}

/// How a job of the shape uses the cores of a node; nothing if these have too few threads.
pub fn core_use(shape: &Shape, class: &Class) -> Option<CoreUse> {
    shape.cores.on(class.threads, shape.cpus_per_task)
}

/// The same in the eyes of all but those that it shares with: a job that shares with its own kind alone takes the whole node.
pub fn node_claim(shape: &Shape, class: &Class, limits: NodeLimits, share: Share) -> Option<Amount> {
    node_need(shape, class, limits, share).map(|need| if shape.exclusive_user { class.total } else { need })
}

/// All CPUs and GPUs of a node; of the memory as much as was asked for, by what it then has of CPUs or GPUs (Slurm's rule for --exclusive).
fn whole_node(shape: &Shape, class: &Class) -> Amount {
    let total = class.total;
    let memory = match shape.memory {
        MemoryDemand::WholeNode => total.memory,
        MemoryDemand::PerNode(bytes) => bytes.0,
        MemoryDemand::PerCpu(bytes) => bytes.0.saturating_mul(u64::from(total.cpus)),
        MemoryDemand::PerGpu(bytes) => bytes.0.saturating_mul(u64::from(total.gpu_count())),
    };
    Amount { memory: memory.min(total.memory), ..total }
}

fn gpus_on_node(shape: &Shape, share: Share) -> (Option<&Gpus>, u32) {
    match &shape.gpus {
        GpuDemand::None | GpuDemand::Share(_) => (None, 0),
        GpuDemand::Total(gpus) => (Some(gpus), share.gpus),
        GpuDemand::PerNode(gpus) => (Some(gpus), gpus.count),
        GpuDemand::PerTask(gpus) => (Some(gpus), gpus.count.saturating_mul(share.tasks)),
    }
}

/// The slot whose GPUs can be divided into so many shares: of several, that of most GPUs.
fn shared_slot(class: &Class, asked: &SharedGpu) -> Option<usize> {
    let shares = &class.shares[asked.of as usize];
    let is_asked = |slot: &usize| asked.kind.as_ref().is_none_or(|kind| class.kinds[*slot] == *kind) && shares[*slot] >= asked.count;
    (0..class.kinds.len()).rev().filter(is_asked).max_by_key(|slot| class.total.gpus[*slot])
}

fn slot(class: &Class, wanted: &Gpus) -> Option<usize> {
    match &wanted.kind {
        Some(kind) => class.kinds.iter().position(|k| k == kind),
        None => (0..class.kinds.len()).rev().max_by_key(|slot| class.total.gpus[*slot]),
    }
}
