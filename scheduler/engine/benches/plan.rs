//! Time to plan a full queue: nodes of 8 GPUs, mixed jobs from one GPU to gangs of 64 nodes. `make bench` runs it.
//!
//! The first plan starts what fits and plans the rest; the second is what an event costs when the queue is already known.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use berth_engine::Engine;
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

const GIB: u64 = 1 << 30;

fn node(number: u32) -> Node {
    let numa = |id: u32| NumaNode { id, cpus: (id * 48..id * 48 + 48).collect() };
    let gpu = |index: u32| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: "h100".to_owned(),
        memory_bytes: Bytes(80 * GIB),
        numa: Some(index / 4),
        fault: None,
    };
    Node {
        name: NodeName::new(format!("n{number}")).expect("a name"),
        inventory: Inventory {
            cpus: (0..96).collect(),
            numa: vec![numa(0), numa(1)],
            sockets: 2,
            threads_per_core: 1,
            memory_bytes: Bytes(1024 * GIB),
            gpus: (0..8).map(gpu).collect(),
            facts: BTreeMap::new(),
        },
        features: BTreeSet::new(),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    }
}

/// A mix without randomness: the number decides. Sizes and time limits are those of many small and few large jobs.
fn job(id: u64, now: Timestamp) -> JobSnapshot {
    let mix = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let (nodes, gpus) = match mix % 100 {
        0..=54 => (1, 1),
        55..=74 => (1, 4),
        75..=89 => (1, 8),
        90..=96 => (4, 8),
        97..=98 => (16, 8),
        _ => (64, 8),
    };
    let minutes = [10, 30, 60, 240, 720, 1440][(mix / 100 % 6) as usize];
    let name = |text: &str| Name::new(text).expect("a name");
    JobSnapshot {
        id: JobId(id),
        tenant: name("acme"),
        account: name("default"),
        user: name("ann"),
        partition: name("main"),
        qos: name("normal"),
        name: String::new(),
        state: JobState::Pending,
        hold: None,
        shape: Shape {
            min_nodes: nodes,
            max_nodes: nodes,
            tasks: nodes * gpus,
            tasks_per_node: Some(gpus),
            cpus_per_task: 8,
            memory: MemoryDemand::PerCpu(Bytes(4 * GIB)),
            gpus: GpuDemand::PerNode(Gpus { kind: Some("h100".to_owned()), count: gpus }),
            exclusive: false,
        },
        time_limit: minutes * 60,
        submit_time: now - SignedDuration::from_secs(1_000_000 - id as i64),
        not_before: None,
        deadline: None,
        nice: 0,
        constraint: None,
        required_nodes: BTreeSet::new(),
        excluded_nodes: BTreeSet::new(),
        is_expedited: false,
        dependencies: Vec::new(),
        dependency_any: false,
        is_singleton: false,
        array: None,
        attempt: None,
    }
}

fn main() {
    println!("{:>7} {:>8} {:>12} {:>9} {:>12} {:>12}", "nodes", "jobs", "first plan", "starts", "verdicts", "next plan");
    for nodes in [1_000, 10_000, 30_000] {
        for jobs in [3_000, 10_000, 100_000] {
            let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("an instant");
            let mut engine = Engine::new();
            engine.apply(Event::Policy(Policy::default()));
            engine.apply(Event::Qos(Qos {
                name: Name::new("normal").expect("a name"),
                priority: 0,
                max_time_seconds: None,
                allow_tenants: BTreeSet::new(),
                description: None,
            }));
            engine.apply(Event::Partition(Partition::of_all_nodes(Name::new("main").expect("a name"))));
            (1..=nodes).for_each(|n| engine.apply(Event::Node(Box::new(node(n)))));
            (1..=jobs).for_each(|id| engine.apply(Event::Job(Box::new(job(id, now)))));
            let begun = Instant::now();
            let plan = engine.plan(now);
            let first = begun.elapsed();
            let begun = Instant::now();
            let _ = engine.plan(now + SignedDuration::from_secs(1));
            let next = begun.elapsed();
            println!(
                "{nodes:>7} {jobs:>8} {:>9.1} ms {:>9} {:>12} {:>9.1} ms",
                first.as_secs_f64() * 1e3,
                plan.starts.len(),
                plan.verdicts.len(),
                next.as_secs_f64() * 1e3
            );
        }
    }
}
