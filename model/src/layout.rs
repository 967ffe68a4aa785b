//! Where the tasks of a step go within an allocation.
//!
//! Input: the allocation's nodes with their exact CPUs and GPUs, what the step asks for, what running steps hold.
//! Output: the step's part on each of its nodes, or that it must wait. Pure.
//! Tasks go node by node (Slurm's block distribution), evenly as far as CPUs and GPUs allow.

use std::collections::BTreeSet;

use crate::resources::{Gpus, NodeAllocation};
use crate::step::{NodeStep, StepSpec, TaskPlacement};
use crate::{Fault, NodeName, hostlist};

/// Places a step's tasks over the job's allocation. Ranks count node by node (block distribution): node 0 has ranks 0..k.
/// `busy` are the parts of running steps that do not overlap; `None` inside `Ok` means that the step must wait for them.
///
/// A step that gives neither `tasks`, `tasks_per_node` nor `cpus_per_task` has all CPUs of its nodes. One that says nothing of GPUs has
/// all of its nodes' GPUs (as `srun` inherits the job's); `gpus: 0` leaves them to others.
pub fn place_step(allocation: &[NodeAllocation], spec: &StepSpec, busy: &[NodeStep]) -> Result<Option<Vec<NodeStep>>, Fault> {
    let wish = Wish::read(allocation, spec)?;
    let all: Vec<Room> = wish.nodes.iter().map(|node| Room::of(node)).collect();
    let placed_alone = place(&wish, &all).map_err(|lack| too_large(lack, spec))?;
    if spec.overlap || busy.is_empty() {
        return Ok(Some(placed_alone));
    }
    let free: Vec<Room> = wish.nodes.iter().map(|node| Room::left_by(node, busy)).collect();
    Ok(place(&wish, &free).ok())
}

/// The parts of a job's own command: on each node the tasks that the allocation gives it.
pub fn place_job_command(allocation: &[NodeAllocation], cpus_per_task: u32, gpus_per_task: Option<u32>) -> Vec<NodeStep> {
    let mut first_rank = 0;
    let part = |node: &NodeAllocation| {
        let room = Room { node, cpus: node.cpus.clone(), gpus: node.gpus.clone() };
        let part = room.part(node.tasks, first_rank, cpus_per_task, gpus_per_task, node.memory_bytes);
        first_rank += node.tasks;
        part
    };
    allocation.iter().map(part).collect()
}

/// The batch script's part: one task with all of its node.
pub fn place_batch(first: &NodeAllocation) -> NodeStep {
    Room::of(first).part(1, 0, first.cpus.len() as u32, None, first.memory_bytes)
}

/// What a step asks for, with the job's values filled in.
struct Wish<'a> {
    spec: &'a StepSpec,
    /// Nodes it may use, in the allocation's order.
    nodes: Vec<&'a NodeAllocation>,
    /// Exactly so many; absent: at most as many as there are tasks.
    node_count: Option<usize>,
    tasks: u32,
    /// Tasks follow the allocation's own numbers for each node.
    follows_allocation: bool,
    /// All CPUs of each node, not only those that the tasks need.
    takes_whole_nodes: bool,
    /// Nothing was said of GPUs: all of each node's.
    wants_all_gpus: bool,
    gpus_per_task: Option<u32>,
}

impl<'a> Wish<'a> {
    fn read(allocation: &'a [NodeAllocation], spec: &'a StepSpec) -> Result<Self, Fault> {
        refuse_zeros(spec)?;
        let listed = listed_nodes(allocation, spec)?;
        let nodes: Vec<_> = allocation.iter().filter(|n| spec.nodes.is_some() || listed.is_empty() || listed.contains(&n.node)).collect();
        // `nodes` with a shorter `nodelist`: those of the list first, then others of the allocation.
        let nodes = match spec.nodes {
            Some(count) if !listed.is_empty() => nodes_with(&nodes, &listed, count as usize)?,
            _ => nodes,
        };
        let per_task = spec.gpus_per_task.as_ref().map(|g| g.count).filter(|n| *n > 0);
        let node_count = match (spec.nodes, spec.tasks, spec.tasks_per_node) {
            // More nodes than tasks: `srun` takes as many nodes as tasks.
            (Some(count), Some(tasks), _) => Some(count.min(tasks) as usize),
            (Some(count), None, _) => Some(count as usize),
            _ if !listed.is_empty() => Some(listed.len()),
            (None, Some(tasks), Some(per_node)) => Some(tasks.div_ceil(per_node) as usize),
            (None, None, Some(_)) => Some(nodes.len()),
            _ => None,
        };
        let own_tasks: u32 = nodes.iter().map(|n| n.tasks.max(1)).fold(0, u32::saturating_add);
        let (tasks, follows_allocation) = match (spec.tasks, spec.tasks_per_node, spec.nodes) {
            (Some(tasks), _, _) => (tasks, false),
            (None, Some(per_node), _) => (per_node.saturating_mul(node_count.unwrap_or(nodes.len()) as u32), false),
            (None, None, Some(nodes)) => (nodes, false),
            (None, None, None) => match (&spec.gpus, per_task) {
                (Some(total), Some(each)) => ((total.count / each).max(1), false),
                _ => (own_tasks, spec.cpus_per_task.is_none() && per_task.is_none()),
            },
        };
        if let (Some(total), Some(each)) = (spec.gpus.as_ref().filter(|g| g.count > 0), per_task)
            && u64::from(each) * u64::from(tasks) != u64::from(total.count)
        {
            return Err(Fault::new(
                "gpus_contradictory",
                "gpus",
                format!("{} GPUs are not {tasks} tasks of {each}", total.count),
                "gpus must be tasks times gpus_per_task; for example 8 tasks with gpus_per_task 1 and gpus 8",
            ));
        }
        let takes_whole_nodes = spec.tasks.is_none() && spec.tasks_per_node.is_none() && spec.cpus_per_task.is_none();
        let wants_all_gpus = spec.gpus.is_none() && spec.gpus_per_node.is_none() && spec.gpus_per_task.is_none();
        Ok(Wish { spec, nodes, node_count, tasks, follows_allocation, takes_whole_nodes, wants_all_gpus, gpus_per_task: per_task })
    }

    /// CPUs of one of the job's own tasks on `node`.
    fn jobs_cpus_per_task(&self, node: &NodeAllocation) -> u32 {
        let cpus = node.cpus.len() as u32;
        cpus.checked_div(node.tasks).unwrap_or(cpus).max(1)
    }
}

fn refuse_zeros(spec: &StepSpec) -> Result<(), Fault> {
    let counts =
        [("nodes", spec.nodes), ("tasks", spec.tasks), ("tasks_per_node", spec.tasks_per_node), ("cpus_per_task", spec.cpus_per_task)];
    match counts.into_iter().find(|(_, count)| *count == Some(0)) {
        Some((field, _)) => {
            Err(Fault::new("invalid_count", field, format!("{field} is 0"), "write 1 or more, or leave it out for the job's value"))
        }
        None => Ok(()),
    }
}

fn listed_nodes(allocation: &[NodeAllocation], spec: &StepSpec) -> Result<BTreeSet<NodeName>, Fault> {
    let Some(text) = &spec.nodelist else { return Ok(BTreeSet::new()) };
    let listed: BTreeSet<NodeName> = hostlist::expand(text)?.into_iter().collect();
    let strangers: Vec<_> = listed.iter().filter(|name| allocation.iter().all(|n| n.node != **name)).collect();
    if strangers.is_empty() {
        return Ok(listed);
    }
    Err(Fault::new(
        "node_not_in_allocation",
        "nodelist",
        format!("{} is not in the job's allocation", hostlist::fold(strangers)),
        format!("name nodes of the job: {}", hostlist::fold(allocation.iter().map(|n| &n.node))),
    ))
}

fn nodes_with<'a>(nodes: &[&'a NodeAllocation], listed: &BTreeSet<NodeName>, count: usize) -> Result<Vec<&'a NodeAllocation>, Fault> {
    if listed.len() > count {
        return Err(Fault::new(
            "node_count_contradictory",
            "nodes",
            format!("nodes is {count} but nodelist names {} nodes", listed.len()),
            "ask for at least as many nodes as the list names, or leave nodes out",
        ));
    }
    let mut others = count - listed.len();
    let chosen = |node: &&&NodeAllocation| {
        if listed.contains(&node.node) {
            return true;
        }
        let is_wanted = others > 0;
        others = others.saturating_sub(1);
        is_wanted
    };
    Ok(nodes.iter().filter(chosen).copied().collect())
}

/// What a node can give to the step.
struct Room<'a> {
    node: &'a NodeAllocation,
    cpus: Vec<u32>,
    gpus: Vec<u32>,
}

impl<'a> Room<'a> {
    fn of(node: &'a NodeAllocation) -> Self {
        Room { node, cpus: node.cpus.clone(), gpus: node.gpus.clone() }
    }

    fn left_by(node: &'a NodeAllocation, busy: &[NodeStep]) -> Self {
        let here = || busy.iter().filter(|part| part.node == node.node);
        let cpus: BTreeSet<u32> = here().flat_map(|part| part.cpus.iter().copied()).collect();
        let gpus: BTreeSet<u32> = here().flat_map(|part| part.gpus.iter().copied()).collect();
        Room {
            node,
            cpus: node.cpus.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect(),
            gpus: node.gpus.iter().copied().filter(|gpu| !gpus.contains(gpu)).collect(),
        }
    }

    fn is_untouched(&self) -> bool {
        self.cpus.len() == self.node.cpus.len()
    }

    /// Most tasks of this step that fit here.
    fn capacity(&self, wish: &Wish) -> u32 {
        let gpus_needed = match &wish.spec.gpus_per_node {
            Some(each) => each.count as usize,
            None if wish.wants_all_gpus => self.node.gpus.len(),
            None => 0,
        };
        if self.gpus.len() < gpus_needed {
            return 0;
        }
        let by_cpus = match wish.spec.cpus_per_task {
            _ if wish.takes_whole_nodes && !self.is_untouched() => 0,
            _ if wish.follows_allocation => self.node.tasks.max(1),
            Some(each) => self.cpus.len() as u32 / each,
            // The job's CPUs per task are a default, not a demand: one each is enough.
            None => self.cpus.len() as u32,
        };
        let by_gpus = wish.gpus_per_task.map_or(u32::MAX, |each| self.gpus.len() as u32 / each);
        let by_request = wish.spec.tasks_per_node.unwrap_or(u32::MAX);
        match by_cpus.min(by_gpus).min(by_request) {
            fits if wish.spec.tasks_per_node.is_some_and(|exact| fits < exact) && wish.spec.tasks.is_none() => 0,
            fits => fits,
        }
    }

    /// The part of a step that has all CPUs and GPUs of this room.
    fn part(self, tasks: u32, first_rank: u32, cpus_per_task: u32, gpus_per_task: Option<u32>, memory_bytes: crate::Bytes) -> NodeStep {
        let slice = |of: &[u32], each: u32, task: u32| {
            let (start, each) = (task as usize * each as usize, each as usize);
            of.get(start..start + each).map(<[u32]>::to_vec)
        };
        let fits = |count: usize, each: u32| each > 0 && tasks as usize * each as usize <= count;
        let has_own_cpus = fits(self.cpus.len(), cpus_per_task);
        let own_gpus = gpus_per_task.filter(|each| fits(self.gpus.len(), *each));
        let task = |task: u32| TaskPlacement {
            rank: first_rank + task,
            cpus: if has_own_cpus { slice(&self.cpus, cpus_per_task, task).unwrap_or_default() } else { Vec::new() },
            gpus: own_gpus.and_then(|each| slice(&self.gpus, each, task)).unwrap_or_else(|| self.gpus.clone()),
        };
        let tasks = (0..tasks).map(task).collect();
        NodeStep { node: self.node.node.clone(), tasks, cpus: self.cpus, gpus: self.gpus, memory_bytes }
    }
}

/// What is missing, in words.
type Lack = String;

fn too_large(lack: Lack, spec: &StepSpec) -> Fault {
    let field = match spec {
        StepSpec { tasks: Some(_), .. } => "tasks",
        StepSpec { tasks_per_node: Some(_), .. } => "tasks_per_node",
        StepSpec { nodes: Some(_), .. } => "nodes",
        _ => "resources",
    };
    Fault::new("step_too_large", field, lack, "a step must fit into its job: ask for less, or submit a job with more nodes, CPUs or GPUs")
}

fn place(wish: &Wish, rooms: &[Room]) -> Result<Vec<NodeStep>, Lack> {
    let mut first_lack = None;
    for chosen in choices(wish, rooms)? {
        match place_on(wish, &chosen) {
            Ok(parts) => return Ok(parts),
            Err(lack) => first_lack = first_lack.or(Some(lack)),
        }
    }
    Err(first_lack.unwrap_or_default())
}

fn place_on(wish: &Wish, chosen: &[&Room]) -> Result<Vec<NodeStep>, Lack> {
    let counts = spread(wish, chosen)?;
    let gpus = gpus_of_nodes(wish, chosen, &counts)?;
    let mut parts = Vec::new();
    let mut first_rank = 0;
    for ((room, tasks), gpus) in chosen.iter().zip(counts).zip(gpus) {
        let memory = wish.spec.memory_bytes.unwrap_or(room.node.memory_bytes);
        if memory > room.node.memory_bytes {
            return Err(format!("the step asks for {memory} on {}, where the job has {}", room.node.node, room.node.memory_bytes));
        }
        let each = match (wish.spec.cpus_per_task, room.cpus.len() as u32 / tasks) {
            (Some(each), _) => each,
            (None, most) if wish.takes_whole_nodes => most,
            (None, most) => wish.jobs_cpus_per_task(room.node).min(most),
        };
        let cpu_count = if wish.takes_whole_nodes { room.cpus.len() } else { (each * tasks) as usize };
        let taken = Room { node: room.node, cpus: room.cpus[..cpu_count].to_vec(), gpus: room.gpus[..gpus as usize].to_vec() };
        parts.push(taken.part(tasks, first_rank, each, wish.gpus_per_task, memory));
        first_rank += tasks;
    }
    Ok(parts)
}

/// Sets of nodes to try, best first: the first nodes that can carry a task, those with room for most tasks, those with most GPUs.
fn choices<'a, 'b>(wish: &Wish, rooms: &'b [Room<'a>]) -> Result<Vec<Vec<&'b Room<'a>>>, Lack> {
    let able: Vec<_> = rooms.iter().filter(|room| room.capacity(wish) > 0).collect();
    let needed = if wish.follows_allocation { rooms.len() } else { wish.node_count.unwrap_or(1) };
    if able.len() < needed.max(1) {
        return Err(format!("{} of the job's nodes can carry this step's tasks and {} are needed", able.len(), needed.max(1)));
    }
    let few = wish.node_count.unwrap_or(able.len().min(wish.tasks as usize));
    let most = wish.node_count.unwrap_or(able.len());
    let best_by = |room_for: &dyn Fn(&Room) -> u32| {
        let mut order: Vec<usize> = (0..able.len()).collect();
        order.sort_by_key(|i| (std::cmp::Reverse(room_for(able[*i])), *i));
        order.truncate(most.min(wish.tasks as usize));
        order.sort_unstable();
        order.into_iter().map(|i| able[i]).collect::<Vec<_>>()
    };
    Ok(vec![able[..few].to_vec(), best_by(&|room| room.capacity(wish)), best_by(&|room| room.gpus.len() as u32)])
}

/// Tasks of each chosen node: as even as their rooms allow, the first nodes one more.
fn spread(wish: &Wish, chosen: &[&Room]) -> Result<Vec<u32>, Lack> {
    let capacity: Vec<u32> = chosen.iter().map(|room| room.capacity(wish)).collect();
    let total = capacity.iter().map(|n| u64::from(*n)).sum::<u64>();
    if total < u64::from(wish.tasks) {
        return Err(format!("{} tasks are asked for and {total} fit on {} nodes", wish.tasks, chosen.len()));
    }
    if (wish.tasks as usize) < chosen.len() {
        return Err(format!("{} tasks cannot use {} nodes", wish.tasks, chosen.len()));
    }
    if wish.follows_allocation {
        return Ok(capacity);
    }
    Ok(level(wish.tasks, &capacity))
}

/// Divides `amount` over places with these limits, which suffice, as evenly as they allow.
fn level(amount: u32, limits: &[u32]) -> Vec<u32> {
    let mut given = vec![0u32; limits.len()];
    let mut left = amount;
    while left > 0 {
        let open: Vec<usize> = (0..limits.len()).filter(|i| given[*i] < limits[*i]).collect();
        let Some(each) = left.checked_div(open.len() as u32) else { break };
        for i in open {
            let more = each.max(1).min(limits[i] - given[i]).min(left);
            given[i] += more;
            left -= more;
        }
    }
    given
}

fn gpus_of_nodes(wish: &Wish, chosen: &[&Room], tasks: &[u32]) -> Result<Vec<u32>, Lack> {
    let here: Vec<u32> = chosen.iter().map(|room| room.gpus.len() as u32).collect();
    if let Some(each) = wish.gpus_per_task {
        return Ok(tasks.iter().map(|n| n * each).collect());
    }
    match (&wish.spec.gpus_per_node, &wish.spec.gpus) {
        (Some(Gpus { count, .. }), _) => Ok(vec![*count; chosen.len()]),
        (None, Some(Gpus { count, .. })) if here.iter().sum::<u32>() < *count => {
            Err(format!("{count} GPUs are asked for and the step's nodes have {}", here.iter().sum::<u32>()))
        }
        (None, Some(Gpus { count, .. })) => Ok(level(*count, &here)),
        // `gpus_per_task: 0` asks for none, as the others do.
        (None, None) if !wish.wants_all_gpus => Ok(vec![0; chosen.len()]),
        (None, None) => Ok(here),
    }
}

#[cfg(test)]
mod tests;
