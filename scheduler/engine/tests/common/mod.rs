//! The small world of the stories: nodes `n1`, `n2`, … and jobs of ann from noon on.
#![allow(dead_code, reason = "each story file uses a part of it")]

use std::collections::BTreeSet;
use std::ops::Range;

use berth_engine::{Engine, Plan};
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::reservation::Reservation;
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::tres::Charge;
use berth_model::verdict::Verdict;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

pub const GIB: u64 = 1 << 30;

pub fn noon() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub fn at(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// `n1`, `n2`, … with 16 CPUs, 64 GiB and GPUs, on two NUMA nodes.
pub fn node(number: u32, gpus: u32) -> Node {
    let numa = |id: u32| NumaNode { id, cpus: (id * 8..id * 8 + 8).collect() };
    let gpu = |index: u32| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: "h100".to_owned(),
        memory_bytes: Bytes(80 * GIB),
        numa: Some(index * 2 / gpus.max(1)),
        fault: None,
    };
    Node {
        name: NodeName::new(format!("n{number}")).unwrap(),
        inventory: Inventory {
            cpus: (0..16).collect(),
            numa: vec![numa(0), numa(1)],
            sockets: 2,
            threads_per_core: 1,
            memory_bytes: Bytes(64 * GIB),
            gpus: (0..gpus).map(gpu).collect(),
            ..Inventory::default()
        },
        features: BTreeSet::new(),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    }
}

pub fn shape(nodes: u32, cpus: u32) -> Shape {
    Shape {
        min_nodes: nodes,
        max_nodes: nodes,
        tasks: nodes,
        tasks_per_node: Some(1),
        cpus_per_task: cpus,
        memory: MemoryDemand::PerCpu(Bytes(GIB)),
        gpus: GpuDemand::None,
        exclusive: false,
        exclusive_user: false,
        sockets: Default::default(),
        cores: Default::default(),
    }
}

pub fn gpus_per_node(nodes: u32, count: u32) -> Shape {
    Shape { gpus: GpuDemand::PerNode(Gpus { kind: Some("h100".to_owned()), count }), ..shape(nodes, 1) }
}

/// A pending job of ann in `main`, submitted and eligible at `since`. What a test does not speak of is as plain as can be.
pub fn pending(id: u64, shape: Shape, minutes: u64, since: Timestamp) -> JobSnapshot {
    JobSnapshot {
        id: JobId(id),
        tenant: name("acme"),
        account: name("default"),
        user: name("ann"),
        partition: name("main"),
        qos: name("normal"),
        name: format!("job-{id}"),
        state: JobState::Pending,
        hold: None,
        shape,
        time_limit: minutes * 60,
        submit_time: since,
        accrues_since: Some(since),
        not_before: None,
        deadline: None,
        nice: 0,
        site_factor: 0,
        constraint: None,
        required_nodes: BTreeSet::new(),
        excluded_nodes: BTreeSet::new(),
        is_expedited: false,
        restarts: 0,
        dependencies: Vec::new(),
        dependency_any: false,
        is_singleton: false,
        array: None,
        task_of: None,
        component_of: None,
        attempt: None,
        claim: None,
        reservations: Vec::new(),
        licenses: Vec::new(),
        choices: Vec::new(),
    }
}

pub fn job(id: u64, shape: Shape, minutes: u64) -> JobSnapshot {
    pending(id, shape, minutes, noon() - SignedDuration::from_secs(1000 - id as i64))
}

/// A gang of one task a node.
pub fn gang(nodes: u32, cpus: u32, memory: MemoryDemand, gpus: GpuDemand) -> Shape {
    Shape { memory, gpus, ..shape(nodes, cpus) }
}

/// A node of one socket and NUMA node, without features.
pub fn machine(number: u32, cpus: u32, memory: Bytes, gpus: &[&str]) -> Node {
    let gpu = |(index, kind): (u32, &&str)| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: (*kind).to_owned(),
        memory_bytes: Bytes(80 * GIB),
        numa: Some(0),
        fault: None,
    };
    let whole = node(number, 0);
    let inventory = Inventory {
        cpus: (0..cpus).collect(),
        numa: vec![NumaNode { id: 0, cpus: (0..cpus).collect() }],
        sockets: 1,
        memory_bytes: memory,
        gpus: (0..).zip(gpus).map(gpu).collect(),
        ..whole.inventory
    };
    Node { inventory, ..whole }
}

/// What a job holds of a node.
pub fn held(number: u32, cpus: Range<u32>, memory: Bytes, gpus: Range<u32>) -> NodeAllocation {
    let node = NodeName::new(format!("n{number}")).unwrap();
    NodeAllocation { node, cpus: cpus.collect(), memory_bytes: memory, gpus: gpus.collect(), share: None, idle_cpus: Vec::new(), tasks: 1 }
}

/// A first attempt that began at once and may be requeued.
pub fn attempt(began: Timestamp, charge: Charge, nodes: Vec<NodeAllocation>) -> RunningAttempt {
    RunningAttempt {
        number: 1,
        allocated_at: began,
        started_at: Some(began),
        charge,
        nodes,
        past: Vec::new(),
        checkpoint_at: None,
        is_requeueable: true,
        preempted: None,
        reservation: None,
        suspension: None,
        suspended_ms: 0,
    }
}

/// A job that has run on whole nodes since noon.
pub fn running(id: u64, nodes: &[u32], minutes: u64) -> JobSnapshot {
    let nodes: Vec<NodeAllocation> = nodes.iter().map(|number| held(*number, 0..16, Bytes(64 * GIB), 0..8)).collect();
    let job = job(id, shape(nodes.len() as u32, 16), minutes);
    JobSnapshot { state: JobState::Running, attempt: Some(attempt(noon(), Charge::default(), nodes)), ..job }
}

pub struct World(pub Engine);

impl World {
    pub fn nodes(count: u32, gpus: u32) -> World {
        let mut engine = Engine::new();
        engine.apply(Event::Policy(Policy::default()));
        engine.apply(Event::Qos(Qos::named(name("normal"))));
        engine.apply(Event::Qos(Qos { priority: 100, ..Qos::named(name("high")) }));
        engine.apply(Event::Partition(Partition { is_default: true, ..Partition::of_all_nodes(name("main")) }));
        for n in 1..=count {
            engine.apply(Event::Node(Box::new(node(n, gpus))));
        }
        World(engine)
    }

    pub fn with(mut self, job: JobSnapshot) -> World {
        self.0.apply(Event::Job(Box::new(job)));
        self
    }

    pub fn reserved<const N: usize>(mut self, reservations: [Reservation; N]) -> World {
        self.0.apply(Event::Reservations(reservations.to_vec()));
        self
    }

    pub fn plan(&mut self) -> Plan {
        self.0.plan(at(0))
    }
}

pub fn verdict(plan: &Plan, id: u64) -> &Verdict {
    &plan.verdicts.iter().find(|v| v.job.0 == id).expect("a verdict for every pending job").verdicts[0]
}

pub fn first_code(plan: &Plan, id: u64) -> &str {
    &verdict(plan, id).code
}

pub fn planned(plan: &Plan, id: u64) -> Option<Timestamp> {
    plan.verdicts.iter().find(|v| v.job.0 == id)?.planned_start.as_ref().map(|p| p.at)
}
