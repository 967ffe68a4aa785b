//! Fleets and queues by arithmetic instead of chance: the number decides.

use std::collections::BTreeSet;

use berth_engine::Engine;
use berth_model::association::{Association, AssociationKey, Limits, Terms};
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

const GIB: u64 = 1 << 30;

pub fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("an instant")
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn mix(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
}

/// 96 CPUs, 1 TiB and 8 GPUs on two NUMA nodes.
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
            ..Inventory::default()
        },
        features: BTreeSet::new(),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    }
}

/// An engine that knows a policy, one partition and `nodes` nodes.
pub fn fleet(nodes: u32) -> Engine {
    let mut engine = Engine::new();
    engine.apply(Event::Policy(Policy::default()));
    engine.apply(Event::Qos(Qos::named(name("normal"))));
    engine.apply(Event::Partition(Partition::of_all_nodes(name("main"))));
    (1..=nodes).for_each(|n| engine.apply(Event::Node(Box::new(node(n)))));
    engine
}

fn shape(nodes: u32, gpus: u32, cpus_per_task: u32, gib_per_cpu: u64) -> Shape {
    let tasks = gpus.max(1);
    Shape {
        min_nodes: nodes,
        max_nodes: nodes,
        tasks: nodes * tasks,
        tasks_per_node: Some(tasks),
        cpus_per_task,
        memory: MemoryDemand::PerCpu(Bytes(gib_per_cpu * GIB)),
        gpus: if gpus > 0 { GpuDemand::PerNode(Gpus { kind: Some("h100".to_owned()), count: gpus }) } else { GpuDemand::None },
        exclusive: false,
        exclusive_user: false,
        sockets: Default::default(),
        cores: Default::default(),
    }
}

fn job(id: u64, shape: Shape, minutes: u64) -> JobSnapshot {
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
        shape,
        time_limit: minutes * 60,
        submit_time: now() - SignedDuration::from_secs(1_000_000 - id as i64),
        accrues_since: Some(now() - SignedDuration::from_secs(1_000_000 - id as i64)),
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

/// Six shapes and six time limits: many small jobs, few large ones.
pub fn simple_job(id: u64) -> JobSnapshot {
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
    job(id, shape(nodes, gpus, 8, 4), minutes)
}

/// Shapes told apart in a varied queue, and time limits in minutes.
pub const SHAPES: u64 = 2_000;
const LIMITS: [u64; 12] = [10, 20, 30, 45, 60, 90, 120, 240, 480, 720, 1440, 2880];

/// One of 2,000 shapes: CPUs alone, parts of a node, whole nodes, gangs up to 128 nodes, with CPUs and memory of many sizes.
fn varied_shape(number: u64) -> Shape {
    let roll = mix(number + 1);
    let pick = |salt: u64, n: u64| mix(number * 31 + salt * 7919) % n;
    let (nodes, gpus) = match roll % 100 {
        0..=9 => (1, 0),
        10..=59 => (1, 1 + pick(1, 7)),
        60..=74 => (1, 8),
        75..=89 => (2 + pick(2, 7), 8),
        90..=96 => (9 + pick(2, 24), 8),
        _ => (33 + pick(2, 96), 8),
    };
    let cpus = if gpus == 0 { 1 + pick(3, 48) } else { 2 + pick(3, 11) };
    shape(nodes as u32, gpus as u32, cpus as u32, 1 + pick(4, 10))
}

/// A job of one of [`SHAPES`] shapes and 12 time limits.
pub fn varied_job(id: u64) -> JobSnapshot {
    let roll = mix(id);
    job(id, varied_shape(roll % SHAPES), LIMITS[(roll / SHAPES % 12) as usize])
}

/// Running jobs on 90 % of the GPUs, a third as many as nodes: on each 30 nodes gangs of 16, 4 and 2, two on one whole node, and five with
/// five GPUs each. Their limits end between one minute and a day from now, each at another second.
pub fn running_jobs(nodes: u32, first_id: u64) -> Vec<JobSnapshot> {
    let mut running = Vec::new();
    for group in 0..nodes / 30 {
        let mut next = group * 30 + 1;
        for (count, gpus) in [(16, 8), (4, 8), (2, 8), (1, 8), (1, 8), (1, 5), (1, 5), (1, 5), (1, 5), (1, 5)] {
            let id = first_id + running.len() as u64;
            let given = |number: u32| NodeAllocation {
                node: NodeName::new(format!("n{number}")).expect("a name"),
                cpus: (0..gpus * 12).collect(),
                memory_bytes: Bytes(u64::from(gpus) * 128 * GIB),
                gpus: (0..gpus).collect(),
                share: None,
                idle_cpus: Vec::new(),
                tasks: gpus,
            };
            let end = now() + SignedDuration::from_secs(60 + (mix(id) % 86_400) as i64);
            let started = end - SignedDuration::from_hours(48);
            let attempt = RunningAttempt {
                number: 1,
                allocated_at: started,
                started_at: Some(started),
                charge: Charge::default(),
                nodes: (next..next + count).map(given).collect(),
                past: Vec::new(),
                checkpoint_at: None,
                is_requeueable: true,
                preempted: None,
                reservation: None,
                suspension: None,
                suspended_ms: 0,
            };
            next += count;
            running.push(JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..job(id, shape(count, gpus, 12, 10), 48 * 60) });
        }
    }
    running
}

/// The most memory this process has had, in MiB (VmHWM).
pub fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The job as one of so many users', a hundred of whom share an account.
pub fn by_user(job: JobSnapshot, users: u64) -> JobSnapshot {
    let user = mix(job.id.0) % users;
    let mut job = JobSnapshot { account: name(&format!("a{}", user / 100)), user: name(&format!("u{user}")), ..job };
    if let Some(attempt) = &mut job.attempt {
        let cpus = attempt.nodes.iter().map(|part| part.cpus.len() as u64).sum();
        let gpus = attempt.nodes.iter().map(|part| part.gpus.len() as u64).sum();
        let tres = TresCounts::from([(Tres::Cpu, cpus), (Tres::Gpu, gpus), (Tres::Node, attempt.nodes.len() as u64)]);
        attempt.charge = Charge { tres, billing: cpus as f64, usage_factor: 1.0, partition_qos: None };
    }
    job
}

/// Limits on so many accounts that some of them are reached, and on what they use.
pub fn limits(accounts: u64) -> Event {
    let counts = |tres, count| TresCounts::from([(tres, count)]);
    let limits = |i: u64| Limits {
        grp_tres: counts(Tres::Gpu, 500 + 40 * i),
        grp_tres_minutes: counts(Tres::Gpu, 1_000_000_000),
        max_wall_seconds: Some(7 * 86_400),
        ..Limits::default()
    };
    let place = |i| {
        let key = AssociationKey::account(name("acme"), name(&format!("a{i}")));
        Association { key, parent: None, terms: Terms { limits: limits(i), max_jobs: Some(50), ..Terms::default() } }
    };
    Event::Associations { tenant: name("acme"), places: (0..accounts).map(place).collect() }
}
