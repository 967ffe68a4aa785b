//! Whole cores on nodes whose cores have several threads: what is held, what is used, what is charged.

mod common;

use std::collections::BTreeSet;

use berth_engine::Plan;
use berth_model::cores::CoreDemand;
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::resources::{MemoryDemand, Shape};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres};
use berth_model::{Bytes, JobId};
use common::{GIB, World, at, attempt, first_code, held, job, node, planned, shape, verdict};

/// Sixteen CPUs: eight cores of two threads, numbered as Linux does, four cores to a NUMA node.
fn threaded(number: u32) -> Node {
    let mut node = node(number, 0);
    node.inventory.threads_per_core = 2;
    node.inventory.cores = (0..8).map(|core| vec![core, core + 8]).collect();
    for (numa, first) in node.inventory.numa.iter_mut().zip([0, 4]) {
        numa.cpus = (first..first + 4).chain(first + 8..first + 12).collect();
    }
    node
}

fn world(nodes: u32) -> World {
    let mut world = World::nodes(0, 0);
    (1..=nodes).for_each(|number| world.0.apply(Event::Node(Box::new(threaded(number)))));
    world
}

fn tasks(id: u64, tasks: u32, cpus: u32, threads: u32, per_core: u32) -> JobSnapshot {
    let cores = CoreDemand { threads, tasks: per_core };
    job(id, Shape { tasks, tasks_per_node: Some(tasks), cores, memory: MemoryDemand::PerNode(Bytes(GIB)), ..shape(1, cpus) }, 60)
}

/// CPUs used and idle of a job's start.
fn given(plan: &Plan, id: u64) -> (Vec<u32>, Vec<u32>) {
    let start = plan.starts.iter().find(|start| start.job == JobId(id)).expect("it starts");
    (start.nodes[0].cpus.clone(), start.nodes[0].idle_cpus.clone())
}

#[test]
fn a_job_has_whole_cores_and_is_charged_for_them() {
    // Tasks, CPUs of each, threads and tasks of a core: what is used and what stays idle, and the charge.
    for (count, cpus, threads, per_core, used, idle) in [
        (1, 1, 0, 0, vec![0, 8], vec![]),
        (3, 1, 0, 0, vec![0, 8, 1, 9], vec![]),
        (2, 2, 0, 0, vec![0, 8, 1, 9], vec![]),
        (2, 1, 1, 0, vec![0, 1], vec![8, 9]),
        (2, 1, 2, 0, vec![0, 8], vec![]),
        (2, 1, 0, 1, vec![0, 1], vec![8, 9]),
        (2, 3, 0, 1, vec![0, 8, 1, 2, 10, 3], vec![9, 11]),
        (2, 1, 0, 2, vec![0, 8], vec![]),
    ] {
        let plan = world(1).with(tasks(1, count, cpus, threads, per_core)).plan();
        let charged = (used.len() + idle.len()) as u64;
        assert_eq!(given(&plan, 1), (used, idle), "{count} tasks of {cpus}, threads {threads}, tasks {per_core}");
        assert_eq!(plan.starts[0].charge.tres[&Tres::Cpu], charged);
    }
}

#[test]
fn two_jobs_never_share_a_core() {
    let mut world = world(1);
    for id in 1..=9 {
        world = world.with(tasks(id, 1, 1, 0, 0));
    }
    let plan = world.plan();
    let cores: BTreeSet<u32> = plan.starts.iter().flat_map(|start| &start.nodes[0].cpus).map(|cpu| cpu % 8).collect();
    assert_eq!((plan.starts.len(), cores.len()), (8, 8), "eight cores for eight jobs");
    assert_eq!(planned(&plan, 9), Some(at(60)));
}

#[test]
fn memory_by_cpu_is_of_those_that_are_used() {
    for (threads, gib) in [(0, 4), (1, 3)] {
        let asked = tasks(1, 3, 1, threads, 0);
        let plan = world(1).with(JobSnapshot { shape: Shape { memory: MemoryDemand::PerCpu(Bytes(GIB)), ..asked.shape }, ..asked }).plan();
        assert_eq!(plan.starts[0].nodes[0].memory_bytes, Bytes(gib * GIB));
    }
}

#[test]
fn what_cannot_be_by_cores_is_refused() {
    let mut world = world(1).with(tasks(1, 9, 1, 1, 0)).with(tasks(2, 1, 1, 3, 0)).with(tasks(3, 8, 1, 1, 0));
    let plan = world.plan();
    assert_eq!((first_code(&plan, 1), first_code(&plan, 2)), ("shape_unsatisfiable", "shape_unsatisfiable"));
    assert!(verdict(&plan, 1).need.as_deref().unwrap().ends_with("1 thread of each core"), "{:?}", verdict(&plan, 1));
    assert_eq!(given(&plan, 3), ((0..8).collect(), (8..16).collect()));
}

#[test]
fn a_whole_node_uses_of_each_core_what_was_asked() {
    let asked = tasks(1, 2, 1, 1, 0);
    let plan = world(1).with(JobSnapshot { shape: Shape { exclusive: true, ..asked.shape }, ..asked }).plan();
    assert_eq!(given(&plan, 1), ((0..8).collect(), (8..16).collect()));
}

#[test]
fn nodes_that_do_not_tell_or_whose_cores_differ_give_cpus_one_by_one() {
    let mut silent = threaded(1);
    silent.inventory.cores = Vec::new();
    let mut uneven = threaded(2);
    uneven.inventory.cores[7] = vec![7];
    uneven.inventory.cores.push(vec![15]);
    for node in [silent, uneven] {
        let mut world = World::nodes(0, 0);
        world.0.apply(Event::Node(Box::new(node)));
        let plan = world.with(tasks(1, 3, 1, 0, 0)).with(tasks(2, 13, 1, 1, 0)).with(tasks(3, 1, 1, 2, 0)).plan();
        assert_eq!((given(&plan, 1).0.len(), given(&plan, 2).0.len()), (3, 13));
        assert_eq!(first_code(&plan, 3), "shape_unsatisfiable", "no core is known to have two threads");
    }
}

#[test]
fn a_job_from_before_that_has_half_a_core_has_all_of_it() {
    let before = job(1, shape(1, 1), 60);
    let part = held(1, 0..1, Bytes(GIB), 0..0);
    let running = JobSnapshot { state: JobState::Running, attempt: Some(attempt(at(0), Charge::default(), vec![part])), ..before };
    let plan = world(1).with(running).with(tasks(2, 14, 1, 0, 0)).with(tasks(3, 1, 1, 0, 0)).plan();
    assert!(!given(&plan, 2).0.contains(&8));
    assert_eq!(planned(&plan, 3), Some(at(60)));
}
