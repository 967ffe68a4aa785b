//! Four nodes, what runs there, and the job that is asked about.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::common::{GIB, name};
use berth_engine::{Engine, Plan};
use berth_model::association::{Association, AssociationKey, Limits, Terms, UsageKey, UsageRow, Used};
use berth_model::dependency::{Dependency, DependencyKind, DependencyProgress, DependencyStatus};
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::quota::Quota;
use berth_model::reservation::Reservation;
use berth_model::resources::{GpuDemand, Gpus, MemoryDemand};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::{Bytes, JobId, NodeName};
use jiff::{SignedDuration, Timestamp};

use crate::common;

/// The job that is asked about.
pub const ASKED: u64 = 100;

pub fn at(minutes: i64) -> Timestamp {
    "2026-01-08T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

pub fn node_name(number: u32) -> NodeName {
    NodeName::new(format!("n{number}")).unwrap()
}

/// 16 CPUs, 64 GiB, two H100; the fourth is half of it, has A100s and is old.
pub fn node(number: u32) -> Node {
    let (cpus, gib, kind, feature) = if number == 4 { (8, 32, "a100", "old") } else { (16, 64, "h100", "ib") };
    Node { features: BTreeSet::from([feature.to_owned()]), ..common::machine(number, cpus, Bytes(gib * GIB), &[kind; 2]) }
}

/// Of ann, for an hour.
pub fn job(id: u64, nodes: u32, cpus: u32) -> JobSnapshot {
    let shape = common::gang(nodes, cpus, MemoryDemand::PerNode(Bytes(GIB)), GpuDemand::None);
    let since = at(-60) + SignedDuration::from_secs(id as i64);
    JobSnapshot { account: name("ml"), name: "train".to_owned(), ..common::pending(id, shape, 60, since) }
}

/// Has run since noon on these nodes.
pub fn running(job: JobSnapshot, nodes: &[u32]) -> JobSnapshot {
    let cpus = u64::from(job.shape.cpus_per_task) * nodes.len() as u64;
    let held = nodes.iter().map(|number| common::held(*number, 0..job.shape.cpus_per_task, Bytes(GIB), 0..0)).collect();
    let tres = BTreeMap::from([(Tres::Cpu, cpus), (Tres::Node, nodes.len() as u64)]);
    let charge = Charge { tres, billing: cpus as f64, usage_factor: 1.0, partition_qos: None };
    JobSnapshot { state: JobState::Running, attempt: Some(common::attempt(at(0), charge, held)), name: format!("job-{}", job.id), ..job }
}

/// Four nodes; the partition `small` is the fourth, for an hour and one node at most.
pub struct World {
    pub engine: Engine,
    pub asked: JobSnapshot,
    pub now: Timestamp,
}

impl World {
    pub fn new() -> World {
        let mut world = World { engine: Engine::new(), asked: job(ASKED, 1, 1), now: at(0) };
        world.tell(Event::Policy(Policy { half_life_seconds: 0, ..Policy::default() }));
        world.qos("normal", |_| {});
        world.qos("urgent", |qos| qos.priority = 100);
        world.partition("main", |_| {});
        world.partition("small", |small| {
            small.nodes = "n4".to_owned();
            small.max_time_seconds = Some(3600);
            small.max_nodes = Some(1);
        });
        (1..=4).for_each(|n| world.node(n, |_| {}));
        world
    }

    pub fn tell(&mut self, event: Event) {
        self.engine.apply(event);
    }

    pub fn job(&mut self, job: JobSnapshot) {
        self.tell(Event::Job(Box::new(job)));
    }

    pub fn node(&mut self, number: u32, change: impl FnOnce(&mut Node)) {
        let mut node = node(number);
        change(&mut node);
        self.tell(Event::Node(Box::new(node)));
    }

    pub fn partition(&mut self, of: &str, change: impl FnOnce(&mut Partition)) {
        let mut partition = Partition::of_all_nodes(name(of));
        change(&mut partition);
        self.tell(Event::Partition(partition));
    }

    pub fn qos(&mut self, of: &str, change: impl FnOnce(&mut Qos)) {
        let mut qos = Qos::named(name(of));
        change(&mut qos);
        self.tell(Event::Qos(qos));
    }

    pub fn limit(&mut self, change: impl FnOnce(&mut Limits, &mut Terms)) {
        let (mut limits, mut terms) = (Limits::default(), Terms::default());
        change(&mut limits, &mut terms);
        let key = AssociationKey::account(name("acme"), name("ml"));
        let places = vec![Association { key, parent: None, terms: Terms { limits, ..terms } }];
        self.tell(Event::Associations { tenant: name("acme"), places });
    }

    pub fn reserve<const N: usize>(&mut self, reservations: [Reservation; N]) {
        self.tell(Event::Reservations(reservations.to_vec()));
    }

    /// A job that ran is gone.
    pub fn end(&mut self, job: u64) {
        self.tell(Event::JobGone(JobId(job)));
    }

    pub fn quota(&mut self, quota: Quota) {
        let places =
            vec![Association { key: AssociationKey::tenant(name("acme")), parent: None, terms: Terms { quota, ..Terms::default() } }];
        self.tell(Event::Associations { tenant: name("acme"), places });
    }

    pub fn used(&mut self, cpu_minutes: f64) {
        let key = UsageKey { user: AssociationKey::user(name("acme"), name("ml"), name("ann")), qos: name("normal"), partition_qos: None };
        let used = Used { tres: BTreeMap::from([(Tres::Cpu, cpu_minutes * 60.0)]), ..Used::default() };
        self.tell(Event::Usage { rows: vec![UsageRow { key, as_of: at(0), used }], counted: Vec::new() });
    }

    /// Sixteen CPUs each of the first three nodes are taken for half an hour, and the fourth for as long.
    pub fn fill(&mut self) {
        self.job(running(JobSnapshot { time_limit: 1800, ..job(1, 3, 16) }, &[1, 2, 3]));
        self.job(running(JobSnapshot { time_limit: 1800, ..job(2, 1, 8) }, &[4]));
    }

    pub fn plan(&mut self) -> Plan {
        self.job(self.asked.clone());
        self.engine.plan(self.now)
    }
}

pub fn on(kind: DependencyKind, progress: DependencyProgress) -> Vec<DependencyStatus> {
    vec![DependencyStatus { on: Dependency { job: JobId(90), task: None, kind, delay_minutes: 0 }, progress }]
}

pub fn cpus(count: u64) -> TresCounts {
    TresCounts::from([(Tres::Cpu, count)])
}

pub fn gpus(kind: Option<&str>, count: u32) -> GpuDemand {
    GpuDemand::PerNode(Gpus { kind: kind.map(str::to_owned), count })
}

pub const NEVER_MET: &str = "ask for what the limit allows, or ask an administrator to change the limit";
pub const WHEN_THEY_END: &str = "nothing to do: it may start when these jobs end";
pub const FADES: &str = "wait until use has faded or what runs has ended, or lower the time limit";
pub const TOO_LARGE: &str = "ask for less on each node, or for fewer nodes";
pub const NO_SUCH_NODES: &str = "relax the constraint or the node lists, or use another partition";
pub const OUT_OF_SERVICE: &str = "wait until the nodes are back, or ask for other nodes";
