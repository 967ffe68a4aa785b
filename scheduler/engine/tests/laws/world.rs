//! Small random worlds: fleets of several classes, queues, and what happens over time. Knows nothing of the engine's inside.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{Engine, Plan, Settings};
use berth_model::association::{AssociationKey, UsageKey, Used};
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::license::License;
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::Preempted;
use berth_model::reservation::Reservation;
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::{JobState, NodeFlag};
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

pub use crate::common::{GIB, name};
use crate::{common, preemption};

pub fn at(seconds: i64) -> Timestamp {
    "2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// Kinds of nodes: CPUs, GiB, GPUs, GPU type, weight.
const KINDS: [(u32, u64, u32, &str, u32); 4] = [(16, 64, 4, "h100", 1), (16, 32, 0, "", 1), (8, 64, 2, "a100", 5), (32, 128, 8, "h100", 1)];

pub fn node(number: u32, kind: usize) -> Node {
    let (cpus, gib, gpus, gpu_kind, weight) = KINDS[kind % KINDS.len()];
    let numa = |id: u32| NumaNode { id, cpus: (id * cpus / 2..(id + 1) * cpus / 2).collect() };
    let gpu = |index: u32| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: gpu_kind.to_owned(),
        memory_bytes: Bytes(80 * GIB),
        numa: Some(index * 2 / gpus),
        fault: None,
    };
    let features = if gpus > 0 { BTreeSet::from(["gpu".to_owned(), gpu_kind.to_owned()]) } else { BTreeSet::new() };
    let plain = common::node(number, 0);
    let inventory = Inventory {
        cpus: (0..cpus).collect(),
        numa: vec![numa(0), numa(1)],
        memory_bytes: Bytes(gib * GIB),
        gpus: (0..gpus).map(gpu).collect(),
        ..plain.inventory
    };
    Node { inventory, features, weight, ..plain }
}

/// The random part of a job.
#[derive(Clone, Debug)]
pub struct Ask {
    pub nodes: u32,
    cpus: u32,
    gpus: u32,
    is_typed: bool,
    gib_per_cpu: u64,
    pub minutes: u64,
    is_exclusive: bool,
    in_gpu_partition: bool,
    wants_h100: bool,
    excludes: Option<u32>,
    requires: Option<u32>,
    is_urgent: bool,
}

pub fn any_ask() -> impl Strategy<Value = Ask> {
    let sizes = (1u32..4, 1u32..17, 0u32..5, any::<bool>(), 1u64..5, 1u64..90);
    let rare = || prop::bool::weighted(0.1);
    let places = (rare(), any::<bool>(), rare(), prop::option::weighted(0.1, 1u32..9), prop::option::weighted(0.1, 1u32..9), rare());
    (sizes, places).prop_map(
        |((nodes, cpus, gpus, is_typed, gib_per_cpu, minutes), (is_exclusive, in_gpu, wants_h100, excludes, requires, is_urgent))| Ask {
            nodes,
            cpus,
            gpus,
            is_typed,
            gib_per_cpu,
            minutes,
            is_exclusive,
            in_gpu_partition: in_gpu && gpus > 0,
            wants_h100,
            excludes,
            requires,
            is_urgent,
        },
    )
}

pub fn job(id: u64, ask: &Ask) -> JobSnapshot {
    let kind = ask.is_typed.then(|| "h100".to_owned());
    let node = |number: &u32| NodeName::new(format!("n{number}")).unwrap();
    let gpus = if ask.gpus > 0 { GpuDemand::PerNode(Gpus { kind, count: ask.gpus }) } else { GpuDemand::None };
    let memory = MemoryDemand::PerCpu(Bytes(ask.gib_per_cpu * GIB));
    let shape = Shape { exclusive: ask.is_exclusive, ..common::gang(ask.nodes, ask.cpus, memory, gpus) };
    JobSnapshot {
        partition: name(if ask.in_gpu_partition { "gpu" } else { "main" }),
        qos: name(if ask.is_urgent { "high" } else { "normal" }),
        constraint: ask.wants_h100.then(|| vec![BTreeSet::from(["h100".to_owned()])]),
        required_nodes: ask.requires.iter().filter(|_| ask.excludes.is_none()).map(node).collect(),
        excluded_nodes: ask.excludes.iter().map(node).collect(),
        ..common::pending(id, shape, ask.minutes, at(id as i64 - 10_000))
    }
}

/// The truth about a small fleet, as the service would have it.
#[derive(Clone, Default)]
pub struct World {
    pub now: i64,
    pub nodes: BTreeMap<u32, Node>,
    pub pending: BTreeMap<JobId, JobSnapshot>,
    pub running: BTreeMap<JobId, JobSnapshot>,
    /// What has ended, undecayed.
    pub spent: BTreeMap<UsageKey, Used>,
    pub reservations: Vec<Reservation>,
    pub licenses: Vec<License>,
    /// Some jobs ask for nodes by more than the features of each.
    pub has_choices: bool,
    /// What was held of each when their number was last changed.
    pub licensed_before: BTreeMap<Name, u32>,
    /// Jobs that ran before the engines were told of them.
    pub ran_before: BTreeSet<JobId>,
}

impl World {
    pub fn of(kinds: &[usize]) -> World {
        World { nodes: (1..).zip(kinds).map(|(number, kind)| (number, node(number, *kind))).collect(), ..World::default() }
    }

    /// Events that tell all of it.
    pub fn events(&self) -> Vec<Event> {
        let qos = |text: &str, priority| Event::Qos(Qos { priority, ..Qos::named(name(text)) });
        let gpu =
            Partition { nodes: String::new(), node_features: BTreeSet::from(["gpu".to_owned()]), ..Partition::of_all_nodes(name("gpu")) };
        let mut events = vec![Event::Policy(Policy::default()), qos("normal", 0), qos("high", 100)];
        events.extend([Event::Partition(Partition::of_all_nodes(name("main"))), Event::Partition(gpu)]);
        events.push(Event::Reservations(self.reservations.clone()));
        events.push(Event::Licenses(self.licenses.clone()));
        events.extend(self.nodes.values().map(|node| Event::Node(Box::new(node.clone()))));
        events.extend(self.running.values().chain(self.pending.values()).map(|job| Event::Job(Box::new(job.clone()))));
        events
    }

    pub fn engine(&self, settings: Settings) -> Engine {
        let mut engine = Engine::with_settings(settings);
        self.events().into_iter().for_each(|event| engine.apply(event));
        engine
    }

    /// The queue in the order of the walk: urgent first, then by number (submitted in that order).
    pub fn queue(&self) -> Vec<&JobSnapshot> {
        let mut queue: Vec<&JobSnapshot> = self.pending.values().collect();
        queue.sort_by_key(|job| (job.qos.as_str() != "high", job.id));
        queue
    }

    /// Starts what a plan starts, and tells the engines.
    pub fn start(&mut self, plan: &Plan, engines: &mut [Engine]) {
        for start in &plan.starts {
            let job = self.pending.remove(&start.job).expect("only what waits is started");
            let attempt = RunningAttempt {
                reservation: start.reservation.clone(),
                suspension: None,
                suspended_ms: 0,
                ..common::attempt(at(self.now), start.charge.clone(), start.nodes.clone())
            };
            let job = JobSnapshot { state: JobState::Running, attempt: Some(attempt), claim: None, ..job };
            for engine in engines.iter_mut() {
                engine.confirm(start.job, None);
                engine.apply(Event::Job(Box::new(job.clone())));
            }
            self.running.insert(job.id, job);
        }
    }

    /// Tells the engines whom a plan preempts, and for whom.
    pub fn preempt(&mut self, plan: &Plan, engines: &mut [Engine]) {
        let mut told = Vec::new();
        for p in &plan.preemptions {
            let victim = self.running.get_mut(&p.victim).expect("only what runs is preempted");
            victim.state = JobState::Completing;
            let preempted = Preempted { for_job: p.for_job, mode: p.mode, at: plan.now, kill_at: p.at, reclaimed: p.reclaimed };
            victim.attempt.as_mut().expect("it runs").preempted = Some(preempted);
            told.push(victim.clone());
        }
        for new in &plan.claims {
            let job = self.pending.get_mut(&new.job).expect("it waits");
            job.claim = Some(new.claim.clone());
            told.push(job.clone());
        }
        for engine in engines {
            told.iter().for_each(|job| engine.apply(Event::Job(Box::new(job.clone()))));
        }
    }

    /// When a job ends at the latest.
    pub fn limit(job: &JobSnapshot) -> Timestamp {
        let started = job.attempt.as_ref().and_then(|a| a.started_at).expect("it runs");
        let limit = started + SignedDuration::from_secs(job.time_limit as i64);
        preemption::kill_at(job).map_or(limit, |kill_at| limit.min(kill_at))
    }

    /// Ends a job.
    pub fn end(&mut self, job: JobId) -> Event {
        if let Some(ended) = self.running.remove(&job) {
            let attempt = ended.attempt.expect("it ran");
            let seconds = at(self.now).duration_since(attempt.started_at.expect("it ran")).as_secs_f64();
            let key = UsageKey { user: AssociationKey::user(ended.tenant, ended.account, ended.user), qos: ended.qos, partition_qos: None };
            let spent = self.spent.entry(key).or_default();
            spent.wall += seconds;
            for (tres, count) in &attempt.charge.tres {
                *spent.tres.entry(tres.clone()).or_default() += *count as f64 * seconds;
            }
        }
        Event::JobGone(job)
    }

    /// Drains a node, or takes it back into service.
    pub fn toggle(&mut self, number: u32) -> Option<Event> {
        let node = self.nodes.get_mut(&number)?;
        if !node.flags.remove(&NodeFlag::Drain) {
            node.flags.insert(NodeFlag::Drain);
        }
        Some(Event::Node(Box::new(node.clone())))
    }

    pub fn node(&self, name: &NodeName) -> &Node {
        self.nodes.values().find(|node| node.name == *name).expect("a node of the fleet")
    }
}

/// What an allocation takes: CPUs, memory, GPUs by type.
pub fn taken(node: &Node, allocation: &NodeAllocation) -> (u64, u64, BTreeMap<String, u64>) {
    let mut gpus = BTreeMap::new();
    // GPUs that are shared are looked at by themselves.
    let is_whole = |index: &u32| allocation.share.is_none() && allocation.gpus.contains(index);
    for gpu in node.inventory.gpus.iter().filter(|gpu| is_whole(&gpu.index)) {
        *gpus.entry(gpu.kind.clone()).or_insert(0) += 1;
    }
    ((allocation.cpus.len() + allocation.idle_cpus.len()) as u64, allocation.memory_bytes.0, gpus)
}
