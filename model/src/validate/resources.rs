//! Checks of what a job asks for: counts in range, and no two fields that contradict each other.

use super::{Faults, quoted};
use crate::job::JobSpec;
use crate::resources::{Gpus, MemoryDemand, ResourceRequest, Shape};
use crate::{Bytes, hostlist};

pub const MAX_NODES: u32 = hostlist::MAX_NAMES as u32;
pub const MAX_TASKS: u32 = 1_000_000;
pub const MAX_CPUS_PER_TASK: u32 = 4096;
pub const MAX_GPUS: u32 = 1_000_000;
/// More memory than any node has: a typing error.
pub const MAX_MEMORY: Bytes = Bytes(1 << 50);

pub(super) fn check_resources(spec: &JobSpec, faults: &mut Faults) {
    let request = &spec.resources;
    let found_before = faults.0.len();
    check_counts(request, faults);
    check_memory(request, faults);
    check_gpu_counts(request, faults);
    if request.exclusive && request.exclusive_user {
        faults.add(
            "exclusive_contradictory",
            "resources.exclusive_user",
            "whole nodes are shared with nobody, not even with jobs of the same user",
            "keep exclusive for whole nodes, or exclusive_user for nodes without other users",
        );
    }
    // Contradictions are looked for among numbers that make sense each by itself.
    if faults.0.len() == found_before {
        let shape = request.shape(MemoryDemand::WholeNode);
        check_tasks(request, &shape, faults);
        check_gpus(request, &shape, faults);
    }
}

fn check_counts(request: &ResourceRequest, faults: &mut Faults) {
    for (field, count, most, example) in [
        ("nodes", request.nodes, MAX_NODES, 4),
        ("max_nodes", request.max_nodes, MAX_NODES, 8),
        ("tasks", request.tasks, MAX_TASKS, 32),
        ("tasks_per_node", request.tasks_per_node, MAX_TASKS, 8),
        ("cpus_per_task", request.cpus_per_task, MAX_CPUS_PER_TASK, 16),
        ("sockets_per_node", request.sockets_per_node, MAX_CPUS_PER_TASK, 2),
        ("cores_per_socket", request.cores_per_socket, MAX_CPUS_PER_TASK, 32),
        ("threads_per_core", request.threads_per_core, MAX_CPUS_PER_TASK, 1),
        ("tasks_per_core", request.tasks_per_core, MAX_CPUS_PER_TASK, 1),
    ] {
        if let Some(count) = count.filter(|n| *n == 0 || *n > most) {
            faults.add(
                "invalid_count",
                format!("resources.{field}"),
                format!("{field} is {count}"),
                format!("write 1 to {most}; for example {example}"),
            );
        }
    }
    match (request.nodes, request.max_nodes) {
        (None, Some(most)) => faults.add(
            "max_nodes_without_nodes",
            "resources.max_nodes",
            format!("max_nodes is {most} and nodes is not given"),
            "give the least number too; for example nodes 2 and max_nodes 8",
        ),
        (Some(least), Some(most)) if most < least => faults.add(
            "max_nodes_below_nodes",
            "resources.max_nodes",
            format!("max_nodes {most} is below nodes {least}"),
            "nodes is the least and max_nodes the most; for example 2 and 8",
        ),
        _ => {}
    }
}

fn check_memory(request: &ResourceRequest, faults: &mut Faults) {
    let fields = [
        ("memory_per_node_bytes", request.memory_per_node_bytes),
        ("memory_per_cpu_bytes", request.memory_per_cpu_bytes),
        ("memory_per_gpu_bytes", request.memory_per_gpu_bytes),
    ];
    let given: Vec<_> = fields.iter().filter_map(|(field, bytes)| bytes.map(|bytes| (*field, bytes))).collect();
    if let [(first, _), (second, _), ..] = given.as_slice() {
        faults.add(
            "memory_contradictory",
            format!("resources.{second}"),
            format!("{first} and {second} are both given"),
            format!("keep one of them; for example {first} alone"),
        );
    }
    for (field, bytes) in given {
        if bytes == Bytes(0) && field != "memory_per_node_bytes" {
            faults.add(
                "invalid_memory",
                format!("resources.{field}"),
                format!("{field} is 0"),
                "write an amount, or memory_per_node_bytes 0 for all memory of each node; for example \"4GiB\"",
            );
        } else if bytes > MAX_MEMORY {
            faults.add(
                "invalid_memory",
                format!("resources.{field}"),
                format!("{bytes} are more than any node has"),
                format!("write at most {MAX_MEMORY}; for example \"64GiB\""),
            );
        }
    }
}

fn check_gpu_counts(request: &ResourceRequest, faults: &mut Faults) {
    let fields = [("gpus", &request.gpus), ("gpus_per_node", &request.gpus_per_node), ("gpus_per_task", &request.gpus_per_task)];
    for (field, gpus) in fields.iter().filter_map(|(field, gpus)| gpus.as_ref().map(|gpus| (*field, gpus))) {
        if gpus.count > MAX_GPUS {
            faults.add(
                "invalid_count",
                format!("resources.{field}"),
                format!("{field} is {}", gpus.count),
                format!("write at most {MAX_GPUS}; for example h100:8"),
            );
        }
        if gpus.kind.as_deref().is_some_and(|kind| kind.is_empty() || kind.len() > 63) {
            faults.add(
                "invalid_gpus",
                format!("resources.{field}"),
                format!("{} is not a type of GPU", quoted(gpus.kind.as_deref().unwrap_or(""))),
                "write a type as nodes report it, or none for any; for example h100:8",
            );
        }
    }
    let kinds: Vec<_> = fields.iter().filter_map(|(field, gpus)| Some((*field, gpus.as_ref()?.kind.as_deref()?))).collect();
    if let Some(pair) = kinds.windows(2).find(|pair| pair[0].1 != pair[1].1) {
        faults.add(
            "gpus_contradictory",
            format!("resources.{}", pair[1].0),
            format!("{} asks for {} and {} for {}", pair[0].0, pair[0].1, pair[1].0, pair[1].1),
            "a job has GPUs of one type; name the same type in all fields, or in one",
        );
    }
    if request.gpu_share.is_some() && fields.iter().any(|(_, gpus)| gpus.as_ref().is_some_and(|gpus| gpus.count > 0)) {
        faults.add(
            "gpu_share_with_gpus",
            "resources.gpu_share",
            "the job asks for a share of a GPU and for whole ones",
            "a job has whole GPUs or a share of one: keep one of them; for example gpu_share \"shard:2\" alone",
        );
    }
    if request.gpu_share.is_some() && request.exclusive {
        faults.add(
            "gpu_share_exclusive",
            "resources.gpu_share",
            "whole nodes come with whole GPUs, and the job asks for a share of one",
            "leave exclusive or gpu_share out",
        );
    }
    if request.memory_per_gpu_bytes.is_some() && !fields.iter().any(|(_, gpus)| gpus.as_ref().is_some_and(|g| g.count > 0)) {
        faults.add(
            "memory_per_gpu_without_gpus",
            "resources.memory_per_gpu_bytes",
            "memory is asked for each GPU, but no GPUs",
            "ask for GPUs too, or for memory by node or CPU; for example gpus 8 and memory_per_gpu_bytes \"64GiB\"",
        );
    }
}

fn check_tasks(request: &ResourceRequest, shape: &Shape, faults: &mut Faults) {
    let tasks = shape.tasks;
    if tasks > MAX_TASKS {
        faults.add(
            "invalid_count",
            "resources.tasks_per_node",
            format!("nodes times tasks_per_node are {tasks} tasks"),
            format!("a job has at most {MAX_TASKS} tasks; for example nodes 4 and tasks_per_node 8"),
        );
    } else if let Some(each) = request.tasks_per_node {
        let nodes = u64::from(tasks) / u64::from(each.max(1));
        if request.tasks.is_some()
            && (!tasks.is_multiple_of(each) || nodes < u64::from(shape.min_nodes) || nodes > u64::from(shape.max_nodes))
        {
            let on = if request.nodes.is_some() {
                format!("{} nodes with {each} tasks each", shape.min_nodes)
            } else {
                format!("a whole number of nodes with {each} tasks each")
            };
            faults.add(
                "tasks_contradictory",
                "resources.tasks",
                format!("{tasks} tasks are not {on}"),
                "tasks must be nodes times tasks_per_node; leave one of the three out, for example nodes 4 and tasks_per_node 8",
            );
        }
    } else if tasks < shape.min_nodes {
        faults.add(
            "tasks_contradictory",
            "resources.tasks",
            format!("{tasks} tasks cannot use {} nodes", shape.min_nodes),
            "each node runs at least one task: ask for as many tasks as nodes or more, or leave tasks out",
        );
    }
}

fn check_gpus(request: &ResourceRequest, shape: &Shape, faults: &mut Faults) {
    let count = |gpus: &Option<Gpus>| gpus.as_ref().map(|g| u64::from(g.count)).filter(|n| *n > 0);
    let (total, per_node, per_task) = (count(&request.gpus), count(&request.gpus_per_node), count(&request.gpus_per_task));
    let tasks = u64::from(shape.tasks);
    let (least, most) = (u64::from(shape.min_nodes), u64::from(shape.max_nodes));
    if let (Some(total), Some(each)) = (total, per_task)
        && total != tasks * each
    {
        faults.add(
            "gpus_contradictory",
            "resources.gpus",
            format!("{total} GPUs are not {tasks} tasks of {each}"),
            "gpus must be tasks times gpus_per_task; leave one of them out, for example tasks 8 and gpus_per_task 1",
        );
    }
    if let (Some(total), Some(each)) = (total, per_node)
        && (total % each != 0 || total / each < least || total / each > most)
    {
        let nodes = if least == most { least.to_string() } else { format!("{least} to {most}") };
        faults.add(
            "gpus_contradictory",
            "resources.gpus",
            format!("{total} GPUs are not {nodes} nodes of {each}"),
            "gpus must be nodes times gpus_per_node; leave one of them out, for example nodes 2 and gpus_per_node 8",
        );
    }
    if let (Some(node), Some(task)) = (per_node, per_task)
        && (node % task != 0 || tasks * task < node * least || tasks * task > node * most)
    {
        faults.add("gpus_contradictory", "resources.gpus_per_node", format!("{tasks} tasks of {task} GPUs are not {least} nodes of {node}"), "gpus_per_node must be tasks_per_node times gpus_per_task; leave one of them out, for example tasks_per_node 8 and gpus_per_task 1");
    }
    if total.is_some_and(|total| total < least) {
        faults.add(
            "gpus_contradictory",
            "resources.gpus",
            format!("{} GPUs cannot be spread over {least} nodes", total.unwrap_or(0)),
            "ask for at least one GPU a node, or for fewer nodes; for example nodes 2 and gpus 16",
        );
    }
    let all = per_task.map_or(0, |each| each * tasks).max(per_node.map_or(0, |each| each * least));
    if all > u64::from(MAX_GPUS) {
        faults.add(
            "invalid_count",
            "resources.gpus",
            format!("the job comes to {all} GPUs"),
            format!("a job has at most {MAX_GPUS} GPUs; for example nodes 4 and gpus_per_node 8"),
        );
    }
}
