//! Conservative backfill by brute force: a list of intervals for each node, every instant tried, every node asked.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::event::JobSnapshot;
use berth_model::license::LicenseCounts;
use berth_model::node::Node;
use berth_model::resources::{GpuDemand, MemoryDemand};
use berth_model::validate::{Choice, NodeCount};
use berth_model::{JobId, NodeName};
use jiff::{SignedDuration, Timestamp};

use crate::constraints;
use crate::cores;
use crate::licenses::{self, Taken};
use crate::shares;
use crate::world::{World, at, taken};

/// CPUs, memory, GPUs. Each kind of node has one type of GPU at most.
type Amount = [u64; 3];

/// Half-open, with what is taken, and whether it is only planned.
#[derive(Clone, Debug)]
pub struct Interval {
    from: Timestamp,
    to: Timestamp,
    amount: Amount,
    is_planned: bool,
}

pub struct Lines {
    pub now: Timestamp,
    pub by_node: BTreeMap<u32, Vec<Interval>>,
}

pub fn total(node: &Node) -> Amount {
    [node.inventory.cpus.len() as u64, node.inventory.memory_bytes.0, node.inventory.gpus.len() as u64]
}

/// What the job takes of a node; nothing if the node is none of its.
pub fn need(job: &JobSnapshot, node: &Node) -> Option<Amount> {
    let gpus = match &job.shape.gpus {
        GpuDemand::PerNode(gpus) => {
            let has_kind = |kind: &String| node.inventory.gpus.iter().any(|gpu| gpu.kind == *kind);
            if !gpus.kind.iter().all(has_kind) {
                return None;
            }
            u64::from(gpus.count)
        }
        GpuDemand::Share(share) if shares::capacity(node, share) < share.count => return None,
        _ => 0,
    };
    let (cpus, used) = cores::cpus(job, node)?;
    let MemoryDemand::PerCpu(per_cpu) = job.shape.memory else { unreachable!("jobs here ask by CPU") };
    let need = [cpus, used * per_cpu.0, gpus];
    let fits = (0..3).all(|i| need[i] <= total(node)[i]);
    let [cpus, memory, gpus] = total(node);
    fits.then_some(if job.shape.exclusive { [cpus, memory.min(cpus * per_cpu.0), gpus] } else { need })
}

fn is_candidate(job: &JobSnapshot, node: &Node) -> bool {
    let in_partition = job.partition.as_str() == "main" || node.features.contains("gpu");
    let by_constraint = job.constraint.as_ref().is_none_or(|any| any.iter().any(|all| all.is_subset(&node.features)));
    node.is_usable() && in_partition && by_constraint && !job.excluded_nodes.contains(&node.name)
}

impl Lines {
    /// What runs, each until its limit.
    pub fn of(world: &World) -> Lines {
        let mut lines = Lines { now: at(world.now), by_node: world.nodes.keys().map(|number| (*number, Vec::new())).collect() };
        for job in world.running.values() {
            // What should have ended ends in a second.
            let limit = World::limit(job);
            let to = if limit <= lines.now { lines.now + SignedDuration::from_secs(1) } else { limit };
            for allocation in &job.attempt.as_ref().unwrap().nodes {
                let (cpus, memory, gpus) = taken(world.node(&allocation.node), allocation);
                lines.add(world, &allocation.node, Timestamp::MIN, to, [cpus, memory, gpus.values().sum()], false);
            }
        }
        lines
    }

    pub fn add(&mut self, world: &World, name: &NodeName, from: Timestamp, to: Timestamp, amount: Amount, is_planned: bool) {
        let number = world.nodes.iter().find(|(_, node)| node.name == *name).unwrap().0;
        self.by_node.get_mut(number).unwrap().push(Interval { from, to, amount, is_planned });
    }

    fn used(&self, node: u32, when: Timestamp, with_planned: bool) -> Amount {
        let here = self.by_node[&node].iter().filter(|i| i.from <= when && when < i.to && (with_planned || !i.is_planned));
        here.fold([0; 3], |sum, i| [sum[0] + i.amount[0], sum[1] + i.amount[1], sum[2] + i.amount[2]])
    }

    /// Instants over all nodes at which something is taken or given back.
    fn steps(&self) -> Vec<Timestamp> {
        let mut steps: Vec<Timestamp> = self.by_node.values().flatten().flat_map(|i| [i.from, i.to]).chain([self.now]).collect();
        steps.retain(|step| *step >= self.now);
        steps.sort();
        steps.dedup();
        steps
    }

    fn fits_at(&self, node: u32, total: Amount, need: Amount, when: Timestamp) -> bool {
        let used = self.used(node, when, true);
        (0..3).all(|i| used[i] + need[i] <= total[i])
    }

    /// What a job has on its nodes ends by `end`.
    pub fn end_by(&mut self, world: &World, job: &JobSnapshot, end: Timestamp) {
        let limit = World::limit(job);
        for held in &job.attempt.as_ref().unwrap().nodes {
            let amount = need(job, world.node(&held.node)).unwrap();
            let number: u32 = held.node.as_str()[1..].parse().unwrap();
            let here = self.by_node.get_mut(&number).unwrap();
            if let Some(interval) = here.iter_mut().find(|i| !i.is_planned && i.to == limit && i.amount == amount) {
                interval.to = interval.to.min(end);
            }
        }
    }

    /// Candidates on which a job's part is free from one instant to another.
    pub fn room(&self, world: &World, job: &JobSnapshot, from: Timestamp, to: Timestamp) -> Vec<u32> {
        let mut steps = self.steps();
        steps.retain(|step| from < *step && *step < to);
        steps.push(from);
        let is_free = |(number, node): &(&u32, &Node)| {
            let need = need(job, node).filter(|_| is_candidate(job, node));
            need.is_some_and(|need| steps.iter().all(|step| self.fits_at(**number, total(node), need, *step)))
        };
        world.nodes.iter().filter(is_free).map(|(number, _)| *number).collect()
    }

    /// Nothing is taken twice at any instant.
    pub fn over_allocated(&self, world: &World) -> Option<String> {
        let steps = self.steps();
        let is_over = |number: &u32, node: &Node, step: &Timestamp| !self.fits_at(*number, total(node), [0; 3], *step);
        world.nodes.iter().find_map(|(number, node)| {
            let step = steps.iter().find(|step| is_over(number, node, step))?;
            Some(format!("n{number} at {step}: {:?} of {:?}", self.used(*number, *step, true), total(node)))
        })
    }

    /// The earliest start of a job with these licences, and its nodes.
    fn earliest(
        &self,
        world: &World,
        job: &JobSnapshot,
        set: &LicenseCounts,
        counts: &[NodeCount],
        taken: &Taken,
    ) -> Option<(Timestamp, Vec<u32>)> {
        let length = SignedDuration::from_secs(job.time_limit as i64);
        let steps = self.steps();
        for from in steps.iter().filter(|from| licenses::are_free(world, taken, set, **from, **from + length)) {
            let mut ready = Vec::new();
            for (number, node) in &world.nodes {
                let Some(need) = need(job, node).filter(|_| is_candidate(job, node)) else { continue };
                let inside = steps.iter().filter(|step| *step >= from && **step < *from + length);
                if inside.copied().all(|step| self.fits_at(*number, total(node), need, step)) {
                    // Since when it has been free without a break.
                    let back = steps.iter().rev().filter(|step| *step <= from);
                    let since = *back.take_while(|step| self.fits_at(*number, total(node), need, **step)).last().unwrap();
                    let used = self.used(*number, self.now, false);
                    let free = [total(node)[2] - used[2], total(node)[0] - used[0]];
                    let is_optional = !job.required_nodes.contains(&node.name);
                    let rank = if *from == self.now { (self.now, node.weight, free) } else { (since, node.weight, [0, 0]) };
                    ready.push((is_optional, rank, *number));
                }
            }
            ready.sort();
            let required = ready.iter().filter(|(is_optional, _, _)| !is_optional).count();
            if ready.len() >= job.shape.min_nodes as usize && required == job.required_nodes.len() {
                let ready: Vec<u32> = ready.iter().map(|(_, _, number)| *number).collect();
                if let Some(mut chosen) = first_gang(world, counts, &ready, required, job.shape.min_nodes as usize) {
                    chosen.sort();
                    return Some((*from, chosen));
                }
            }
        }
        None
    }
}

/// The first nodes in their order, all of the first `required` among them, of which so many are of each kind.
fn first_gang(world: &World, counts: &[NodeCount], ready: &[u32], required: usize, gang: usize) -> Option<Vec<u32>> {
    fn extend(ready: &[u32], chosen: &mut Vec<u32>, gang: usize, does: &dyn Fn(&[u32]) -> bool) -> bool {
        if chosen.len() == gang {
            return does(chosen);
        }
        (0..ready.len()).any(|i| {
            chosen.push(ready[i]);
            let is_found = extend(&ready[i + 1..], chosen, gang, does);
            if !is_found {
                chosen.pop();
            }
            is_found
        })
    }
    let does = |chosen: &[u32]| {
        let names: Vec<NodeName> = chosen.iter().map(|number| world.nodes[number].name.clone()).collect();
        chosen.iter().filter(|number| ready[..required].contains(number)).count() == required
            && constraints::are_counted(world, counts, &names)
    };
    let mut chosen = Vec::new();
    extend(ready, &mut chosen, gang, &does).then_some(chosen)
}

/// For each job that can ever start: when, and on which nodes.
pub fn plan(world: &World) -> BTreeMap<JobId, (Timestamp, Vec<u32>)> {
    let mut lines = Lines::of(world);
    let mut taken = licenses::taken(world);
    let mut planned = BTreeMap::new();
    for job in world.queue() {
        let sets = if job.licenses.is_empty() { vec![LicenseCounts::new()] } else { job.licenses.clone() };
        let plain = vec![Choice { any_of: job.constraint.clone().unwrap_or_else(|| vec![BTreeSet::new()]), counts: Vec::new() }];
        let choices = if job.choices.is_empty() { plain } else { job.choices.clone() };
        let ways = choices.into_iter().flat_map(|choice| sets.iter().map(move |set| (choice.clone(), set.clone())));
        let found = ways.filter_map(|(choice, set)| {
            let asks = JobSnapshot { constraint: Some(choice.any_of), ..job.clone() };
            lines.earliest(world, &asks, &set, &choice.counts, &taken).map(|(from, nodes)| (from, nodes, set))
        });
        let Some((from, nodes, set)) = found.min_by_key(|(from, ..)| *from) else { continue };
        let to = from + SignedDuration::from_secs(job.time_limit as i64);
        taken.push((from, to, set));
        for number in &nodes {
            let amount = need(job, &world.nodes[number]).unwrap();
            let name = world.nodes[number].name.clone();
            lines.add(world, &name, from, to, amount, from > lines.now);
        }
        planned.insert(job.id, (from, nodes));
    }
    planned
}
