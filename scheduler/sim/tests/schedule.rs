//! Small schedules whose right answer can be worked out by hand, and what must hold of any schedule.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::Settings;
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::{GpuDemand, Inventory, MemoryDemand, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::{Bytes, JobId, Name, NodeName};
use berth_sim::{Schedule, SimJob};
use jiff::{SignedDuration, Timestamp};

fn noon() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Nodes of four CPUs.
fn world(nodes: u32) -> Vec<Event> {
    let node = |number: u32| Node {
        name: NodeName::new(format!("n{number}")).unwrap(),
        inventory: Inventory {
            cpus: (0..4).collect(),
            numa: vec![NumaNode { id: 0, cpus: (0..4).collect() }],
            sockets: 1,
            threads_per_core: 1,
            memory_bytes: Bytes(16 << 30),
            gpus: Vec::new(),
            ..Inventory::default()
        },
        features: BTreeSet::new(),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    };
    let qos = Qos::named(name("normal"));
    let mut events = vec![Event::Policy(Policy::default()), Event::Qos(qos), Event::Partition(Partition::of_all_nodes(name("main")))];
    events.extend((1..=nodes).map(|n| Event::Node(Box::new(node(n)))));
    events
}

/// A job on whole nodes: submitted some minutes after noon, with a limit and a real length in minutes.
fn job(id: u64, submitted: i64, nodes: u32, limit: u64, length: u64) -> SimJob {
    let job = JobSnapshot {
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
            tasks: nodes,
            tasks_per_node: Some(1),
            cpus_per_task: 4,
            memory: MemoryDemand::PerCpu(Bytes(1 << 30)),
            gpus: GpuDemand::None,
            exclusive: false,
            exclusive_user: false,
            sockets: Default::default(),
            cores: Default::default(),
        },
        time_limit: limit * 60,
        submit_time: noon() + SignedDuration::from_mins(submitted),
        accrues_since: Some(noon() + SignedDuration::from_mins(submitted)),
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
    };
    SimJob { job, runtime: length * 60 }
}

fn simulate(world: Vec<Event>, jobs: Vec<SimJob>) -> Schedule {
    berth_sim::simulate(Settings::default(), world, jobs, &mut |_| ())
}

/// Start and end of each job, in minutes after noon.
fn times(schedule: &Schedule) -> BTreeMap<u64, (i64, i64)> {
    let minutes = |at: Timestamp| at.duration_since(noon()).as_mins();
    schedule.outcomes.iter().map(|o| (o.job.0, (minutes(o.started), minutes(o.ended)))).collect()
}

#[test]
fn a_short_job_fills_the_gap_and_a_long_one_does_not_delay_the_first_in_line() {
    // Two nodes. 1 runs on one of them for an hour, 2 wants both; 3 fits in the gap before 2, 4 does not.
    let jobs = vec![job(1, 0, 1, 60, 60), job(2, 1, 2, 30, 30), job(3, 2, 1, 50, 50), job(4, 3, 1, 120, 20)];
    let schedule = simulate(world(2), jobs);
    assert_eq!(times(&schedule), BTreeMap::from([(1, (0, 60)), (2, (60, 90)), (3, (2, 52)), (4, (90, 110))]));
    assert!(schedule.never_started.is_empty());
}

#[test]
fn an_early_end_is_used_and_a_time_limit_holds() {
    let jobs = vec![job(1, 0, 1, 60, 10), job(2, 0, 1, 20, 500), job(3, 1, 1, 10, 5)];
    let schedule = simulate(world(1), jobs);
    assert_eq!(times(&schedule), BTreeMap::from([(1, (0, 10)), (2, (10, 30)), (3, (30, 35))]));
    assert!(schedule.outcomes.iter().find(|o| o.job.0 == 2).unwrap().is_timed_out);
}

#[test]
fn what_can_never_run_is_told_and_holds_nobody_up() {
    let schedule = simulate(world(2), vec![job(1, 0, 3, 10, 10), job(2, 1, 2, 10, 10)]);
    assert_eq!(schedule.never_started, [JobId(1)]);
    assert_eq!(times(&schedule), BTreeMap::from([(2, (1, 11))]));
}

#[test]
fn no_node_is_given_twice_and_the_same_input_gives_the_same_schedule() {
    // A mix by arithmetic instead of chance.
    let jobs: Vec<SimJob> = (0..150)
        .map(|i: u64| {
            let mix = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            job(i + 1, (mix % 400) as i64, 1 + (mix >> 8) as u32 % 5, 10 + (mix >> 16) % 50, 1 + (mix >> 12) % 60)
        })
        .collect();
    let schedule = simulate(world(8), jobs.clone());
    assert_eq!(schedule.outcomes.len(), 150);
    let mut by_node: BTreeMap<&str, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    for outcome in &schedule.outcomes {
        assert!(outcome.started >= outcome.submitted);
        for node in &outcome.nodes {
            by_node.entry(node.node.as_str()).or_default().push((outcome.started, outcome.ended));
        }
    }
    for (node, mut spans) in by_node {
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{node} was given twice");
    }
    assert_eq!(simulate(world(8), jobs), schedule);
}
