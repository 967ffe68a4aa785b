//! Why is it pending? In each of these situations the first verdict names the rule and the object that bind, its advice is one that a
//! person can follow, and who follows it sees the job start.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{Engine, Plan};
use berth_model::association::{Association, AssociationKey, Limits, Terms, UsageKey, UsageRow, Used};
use berth_model::dependency::{Dependency, DependencyKind, DependencyProgress, DependencyStatus};
use berth_model::event::{ArrayProgress, Event, JobSnapshot, RunningAttempt};
use berth_model::license::{License, parse_licenses};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::PreemptBy;
use berth_model::quota::Quota;
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::{Hold, JobState, NodeFlag, PartitionState};
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::validate::parse_choices;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

const GIB: u64 = 1 << 30;

/// The job that is asked about.
const ASKED: u64 = 100;

fn at(minutes: i64) -> Timestamp {
    "2026-01-08T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn node_name(number: u32) -> NodeName {
    NodeName::new(format!("n{number}")).unwrap()
}

/// 16 CPUs, 64 GiB, two H100; the fourth is half of it, has A100s and is old.
fn node(number: u32) -> Node {
    let is_old = number == 4;
    let cpus = if is_old { 8 } else { 16 };
    let gpu = |index| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: if is_old { "a100" } else { "h100" }.to_owned(),
        memory_bytes: Bytes(80 * GIB),
        numa: Some(0),
        fault: None,
    };
    Node {
        name: node_name(number),
        inventory: Inventory {
            cpus: (0..cpus).collect(),
            numa: vec![NumaNode { id: 0, cpus: (0..cpus).collect() }],
            sockets: 1,
            threads_per_core: 1,
            memory_bytes: Bytes(if is_old { 32 } else { 64 } * GIB),
            gpus: (0..2).map(gpu).collect(),
            facts: BTreeMap::new(),
        },
        features: BTreeSet::from([if is_old { "old" } else { "ib" }.to_owned()]),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    }
}

/// Of ann, for an hour.
fn job(id: u64, nodes: u32, cpus: u32) -> JobSnapshot {
    JobSnapshot {
        id: JobId(id),
        tenant: name("acme"),
        account: name("ml"),
        user: name("ann"),
        partition: name("main"),
        qos: name("normal"),
        name: "train".to_owned(),
        state: JobState::Pending,
        hold: None,
        shape: Shape {
            min_nodes: nodes,
            max_nodes: nodes,
            tasks: nodes,
            tasks_per_node: Some(1),
            cpus_per_task: cpus,
            memory: MemoryDemand::PerNode(Bytes(GIB)),
            gpus: GpuDemand::None,
            exclusive: false,
            exclusive_user: false,
            sockets: Default::default(),
        },
        time_limit: 3600,
        submit_time: at(-60) + SignedDuration::from_secs(id as i64),
        accrues_since: Some(at(-60) + SignedDuration::from_secs(id as i64)),
        not_before: None,
        deadline: None,
        nice: 0,
        site_factor: 0,
        constraint: None,
        required_nodes: BTreeSet::new(),
        excluded_nodes: BTreeSet::new(),
        reservations: Vec::new(),
        licenses: Vec::new(),
        choices: Vec::new(),
        is_expedited: false,
        restarts: 0,
        dependencies: Vec::new(),
        dependency_any: false,
        is_singleton: false,
        array: None,
        attempt: None,
        claim: None,
    }
}

/// Has run since noon on these nodes.
fn running(job: JobSnapshot, nodes: &[u32]) -> JobSnapshot {
    let cpus = u64::from(job.shape.cpus_per_task) * nodes.len() as u64;
    let given = |n: &u32| NodeAllocation {
        node: node_name(*n),
        cpus: (0..job.shape.cpus_per_task).collect(),
        memory_bytes: Bytes(GIB),
        gpus: Vec::new(),
        tasks: 1,
    };
    let tres = BTreeMap::from([(Tres::Cpu, cpus), (Tres::Node, nodes.len() as u64)]);
    let attempt = RunningAttempt {
        number: 1,
        allocated_at: at(0),
        started_at: Some(at(0)),
        charge: Charge { tres, billing: cpus as f64, usage_factor: 1.0, partition_qos: None },
        nodes: nodes.iter().map(given).collect(),
        past: Vec::new(),
        checkpoint_at: None,
        is_requeueable: true,
        preempted: None,
        reservation: None,
    };
    JobSnapshot { state: JobState::Running, attempt: Some(attempt), name: format!("job-{}", job.id), ..job }
}

/// Four nodes; the partition `small` is the fourth, for an hour and one node at most.
struct World {
    engine: Engine,
    asked: JobSnapshot,
    now: Timestamp,
}

impl World {
    fn new() -> World {
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

    fn tell(&mut self, event: Event) {
        self.engine.apply(event);
    }

    fn job(&mut self, job: JobSnapshot) {
        self.tell(Event::Job(Box::new(job)));
    }

    fn node(&mut self, number: u32, change: impl FnOnce(&mut Node)) {
        let mut node = node(number);
        change(&mut node);
        self.tell(Event::Node(Box::new(node)));
    }

    fn partition(&mut self, of: &str, change: impl FnOnce(&mut Partition)) {
        let mut partition = Partition::of_all_nodes(name(of));
        change(&mut partition);
        self.tell(Event::Partition(partition));
    }

    fn qos(&mut self, of: &str, change: impl FnOnce(&mut Qos)) {
        let mut qos = Qos::named(name(of));
        change(&mut qos);
        self.tell(Event::Qos(qos));
    }

    fn limit(&mut self, change: impl FnOnce(&mut Limits, &mut Terms)) {
        let (mut limits, mut terms) = (Limits::default(), Terms::default());
        change(&mut limits, &mut terms);
        let key = AssociationKey::account(name("acme"), name("ml"));
        let places = vec![Association { key, parent: None, terms: Terms { limits, ..terms } }];
        self.tell(Event::Associations { tenant: name("acme"), places });
    }

    fn quota(&mut self, quota: Quota) {
        let places =
            vec![Association { key: AssociationKey::tenant(name("acme")), parent: None, terms: Terms { quota, ..Terms::default() } }];
        self.tell(Event::Associations { tenant: name("acme"), places });
    }

    fn used(&mut self, cpu_minutes: f64) {
        let key = UsageKey { user: AssociationKey::user(name("acme"), name("ml"), name("ann")), qos: name("normal"), partition_qos: None };
        let used = Used { tres: BTreeMap::from([(Tres::Cpu, cpu_minutes * 60.0)]), ..Used::default() };
        self.tell(Event::Usage { rows: vec![UsageRow { key, as_of: at(0), used }], counted: Vec::new() });
    }

    /// Sixteen CPUs each of the first three nodes are taken for half an hour, and the fourth for as long.
    fn fill(&mut self) {
        self.job(running(JobSnapshot { time_limit: 1800, ..job(1, 3, 16) }, &[1, 2, 3]));
        self.job(running(JobSnapshot { time_limit: 1800, ..job(2, 1, 8) }, &[4]));
    }

    fn plan(&mut self) -> Plan {
        self.job(self.asked.clone());
        self.engine.plan(self.now)
    }
}

struct Situation {
    is: &'static str,
    made: fn(&mut World),
    code: &'static str,
    object: &'static str,
    advice: &'static str,
    follow: fn(&mut World),
}

fn on(kind: DependencyKind, progress: DependencyProgress) -> Vec<DependencyStatus> {
    vec![DependencyStatus { on: Dependency { job: JobId(90), task: None, kind, delay_minutes: 0 }, progress }]
}

fn cpus(count: u64) -> TresCounts {
    TresCounts::from([(Tres::Cpu, count)])
}

fn gpus(kind: Option<&str>, count: u32) -> GpuDemand {
    GpuDemand::PerNode(Gpus { kind: kind.map(str::to_owned), count })
}

const NEVER_MET: &str = "ask for what the limit allows, or ask an administrator to change the limit";
const WHEN_THEY_END: &str = "nothing to do: it may start when these jobs end";
const FADES: &str = "wait until use has faded or what runs has ended, or lower the time limit";
const TOO_LARGE: &str = "ask for less on each node, or for fewer nodes";
const NO_SUCH_NODES: &str = "relax the constraint or the node lists, or use another partition";
const OUT_OF_SERVICE: &str = "wait until the nodes are back, or ask for other nodes";

const SITUATIONS: &[Situation] = &[
    Situation {
        is: "held by its user",
        made: |w| w.asked.hold = Some(Hold::User),
        code: "held_user",
        object: "job/100",
        advice: "release the job when it should run",
        follow: |w| w.asked.hold = None,
    },
    Situation {
        is: "held by an administrator",
        made: |w| w.asked.hold = Some(Hold::Admin),
        code: "held_admin",
        object: "job/100",
        advice: "an administrator holds this job and must release it",
        follow: |w| w.asked.hold = None,
    },
    Situation {
        is: "waits for another job",
        made: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Waiting),
        code: "dependency",
        object: "job/90",
        advice: "nothing to do: the job becomes eligible when that job gets there",
        follow: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Satisfied),
    },
    Situation {
        is: "waits for a job that failed",
        made: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Never),
        code: "dependency_never",
        object: "job/90",
        advice: "cancel the job, or change its dependencies",
        follow: |w| w.asked.dependencies = Vec::new(),
    },
    Situation {
        is: "a singleton behind an elder",
        made: |w| {
            w.asked.is_singleton = true;
            w.job(JobSnapshot { name: "train".to_owned(), ..running(job(5, 1, 1), &[1]) });
        },
        code: "dependency",
        object: "job/5",
        advice: "nothing to do: the job becomes eligible when the earlier ones have ended",
        follow: |w| w.tell(Event::JobGone(JobId(5))),
    },
    Situation {
        is: "its begin time is to come",
        made: |w| w.asked.not_before = Some(at(10)),
        code: "begin_time",
        object: "job/100",
        advice: "nothing to do: the job becomes eligible then; or give it an earlier begin time",
        follow: |w| w.now = at(10),
    },
    Situation {
        is: "was requeued and waits a little",
        made: |w| (w.asked.restarts, w.asked.not_before) = (1, Some(at(10))),
        code: "launch_backoff",
        object: "job/100",
        advice: "nothing to do: the job becomes eligible then",
        follow: |w| w.now = at(10),
    },
    Situation {
        is: "cannot end by its deadline",
        made: |w| w.asked.deadline = Some(at(30)),
        code: "deadline_unreachable",
        object: "job/100",
        advice: "lower the time limit or move the deadline",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "would be planned too late for its deadline",
        made: |w| {
            w.fill();
            w.asked.deadline = Some(at(80));
        },
        code: "deadline_unreachable",
        object: "job/100",
        advice: "lower the time limit, ask for less, or move the deadline",
        follow: |w| {
            w.asked.time_limit = 40 * 60;
            w.tell(Event::JobGone(JobId(1)));
            w.now = at(30);
        },
    },
    Situation {
        is: "its partition is down",
        made: |w| w.partition("main", |p| p.state = PartitionState::Down),
        code: "partition_down",
        object: "partition/main",
        advice: "wait until an administrator sets it up, or move the job to another partition",
        follow: |w| w.asked.partition = name("small"),
    },
    Situation {
        is: "its partition is gone",
        made: |w| w.tell(Event::PartitionRemoved(name("main"))),
        code: "partition_down",
        object: "partition/main",
        advice: "move the job to another partition, or ask an administrator to restore this one",
        follow: |w| w.asked.partition = name("small"),
    },
    Situation {
        is: "longer than its partition allows",
        made: |w| {
            w.asked.partition = name("small");
            w.asked.time_limit = 2 * 3600;
        },
        code: "time_limit",
        object: "partition/small",
        advice: "lower the job's time limit",
        follow: |w| w.asked.time_limit = 3600,
    },
    Situation {
        is: "longer than its QOS allows",
        made: |w| w.qos("normal", |q| q.max_time_seconds = Some(1800)),
        code: "time_limit",
        object: "qos/normal",
        advice: "lower the job's time limit",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "more nodes than its partition allows",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.partition = name("small");
        },
        code: "node_count_limit",
        object: "partition/small",
        advice: "ask for fewer nodes, or use another partition",
        follow: |w| w.asked = JobSnapshot { partition: name("small"), ..job(ASKED, 1, 1) },
    },
    Situation {
        is: "fewer nodes than its partition asks for",
        made: |w| w.partition("main", |p| p.min_nodes = Some(2)),
        code: "node_count_limit",
        object: "partition/main",
        advice: "ask for more nodes, or use another partition",
        follow: |w| w.asked = job(ASKED, 2, 1),
    },
    Situation {
        is: "more of a node than its partition gives",
        made: |w| {
            w.partition("main", |p| p.max_cpus_per_node = Some(4));
            w.asked = job(ASKED, 1, 8);
        },
        code: "partition_limit",
        object: "partition/main",
        advice: "ask for less on each node, spread over more nodes, or use another partition",
        follow: |w| w.asked = job(ASKED, 2, 4),
    },
    Situation {
        is: "its array's throttle is reached",
        made: |w| w.asked.array = Some(ArrayProgress { pending: [2, 3].into_iter().collect(), running: 2, throttle: Some(2) }),
        code: "array_throttle",
        object: "job/100",
        advice: "wait for a task to end, or raise the throttle",
        follow: |w| w.asked.array = Some(ArrayProgress { pending: [2, 3].into_iter().collect(), running: 1, throttle: Some(2) }),
    },
    Situation {
        is: "the node it names is drained",
        made: |w| {
            w.asked.required_nodes = BTreeSet::from([node_name(2)]);
            w.node(2, |n| {
                n.flags.insert(NodeFlag::Drain);
                n.reason = Some("a bad disk".to_owned());
            });
        },
        code: "nodes_unavailable",
        object: "node/n2",
        advice: OUT_OF_SERVICE,
        follow: |w| w.asked.required_nodes = BTreeSet::from([node_name(3)]),
    },
    Situation {
        is: "the only node of its partition is down",
        made: |w| {
            w.asked.partition = name("small");
            w.node(4, |n| n.is_down = true);
        },
        code: "nodes_unavailable",
        object: "node/n4",
        advice: OUT_OF_SERVICE,
        follow: |w| w.node(4, |_| {}),
    },
    Situation {
        is: "no node has the feature",
        made: |w| w.asked.constraint = Some(vec![BTreeSet::from(["roce".to_owned()])]),
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.constraint = Some(vec![BTreeSet::from(["ib".to_owned()])]),
    },
    Situation {
        is: "its nodes are to be of one kind, and no kind has as many",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.choices = parse_choices("[old|roce]").unwrap();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.choices = parse_choices("[old|ib]").unwrap(),
    },
    Situation {
        is: "more nodes of one kind than there are",
        made: |w| {
            w.asked = job(ASKED, 3, 1);
            w.asked.choices = parse_choices("[ib*1&old*2]").unwrap();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.choices = parse_choices("[ib*2&old*1]").unwrap(),
    },
    Situation {
        is: "too few nodes are left by those it avoids",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.excluded_nodes = (1..=3).map(node_name).collect();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.excluded_nodes = (2..=3).map(node_name).collect(),
    },
    Situation {
        is: "too much memory",
        made: |w| w.asked.shape.memory = MemoryDemand::PerNode(Bytes(65 * GIB)),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.memory = MemoryDemand::PerNode(Bytes(64 * GIB)),
    },
    Situation {
        is: "too many GPUs on one node",
        made: |w| w.asked.shape.gpus = gpus(None, 3),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.gpus = gpus(None, 2),
    },
    Situation {
        is: "a type of GPU that no node has",
        made: |w| w.asked.shape.gpus = gpus(Some("b200"), 1),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.gpus = gpus(Some("a100"), 1),
    },
    Situation {
        is: "everything is in use",
        made: World::fill,
        code: "resources",
        object: "partition/main",
        advice: "nothing to do: it starts when the jobs that hold the resources end",
        follow: |w| w.tell(Event::JobGone(JobId(2))),
    },
    Situation {
        is: "there is room, but it would delay a job ahead",
        made: |w| {
            w.job(running(JobSnapshot { time_limit: 1800, ..job(1, 3, 16) }, &[1, 2, 3]));
            w.job(job(3, 4, 8));
        },
        code: "priority",
        object: "partition/main",
        advice: "a shorter time limit may let it start before them",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "those it preempts are ending",
        made: |w| {
            w.tell(Event::Policy(Policy { preempt_by: PreemptBy::Qos, ..Policy::default() }));
            w.qos("urgent", |q| _ = q.preempts.insert(name("normal")));
            w.fill();
            w.asked.qos = name("urgent");
        },
        code: "preempting",
        object: "node/n4",
        advice: "nothing to do: the nodes are held for it, and it starts there at the latest when the grace of those jobs ends",
        follow: |w| w.tell(Event::JobGone(JobId(2))),
    },
    Situation {
        is: "its account's CPUs are in use",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres.insert(Tres::Cpu, 16));
            w.job(running(job(1, 1, 16), &[1]));
        },
        code: "assoc_group_tres",
        object: "account/acme/ml",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "more than its account may ever have",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres.insert(Tres::Cpu, 16));
            w.asked = job(ASKED, 2, 12);
        },
        code: "assoc_group_tres",
        object: "account/acme/ml",
        advice: NEVER_MET,
        follow: |w| w.asked = job(ASKED, 2, 8),
    },
    Situation {
        is: "its account's jobs at once are running",
        made: |w| {
            w.limit(|limits, _| limits.grp_jobs = Some(1));
            w.job(running(job(1, 1, 1), &[1]));
        },
        code: "assoc_group_jobs",
        object: "account/acme/ml",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "its account's minutes are used up",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres_minutes.insert(Tres::Cpu, 100));
            w.used(90.0);
            w.tell(Event::Policy(Policy { half_life_seconds: 0, safe_limits: true, ..Policy::default() }));
        },
        code: "assoc_group_tres_minutes",
        object: "account/acme/ml",
        advice: FADES,
        follow: |w| w.asked.time_limit = 600,
    },
    Situation {
        is: "its user's jobs of the QOS are running",
        made: |w| {
            w.qos("normal", |q| q.max_jobs_per_user = Some(1));
            w.job(running(job(1, 1, 1), &[1]));
        },
        code: "qos_max_jobs_per_user",
        object: "qos/normal for user acme/ann",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "larger than a job of the QOS may be",
        made: |w| {
            w.qos("normal", |q| _ = q.limits.max_tres_per_job.insert(Tres::Node, 1));
            w.asked = job(ASKED, 2, 1);
        },
        code: "qos_max_tres_per_job",
        object: "qos/normal",
        advice: NEVER_MET,
        follow: |w| w.asked.qos = name("urgent"),
    },
    Situation {
        is: "smaller than a job of the QOS must be",
        made: |w| w.qos("normal", |q| _ = q.min_tres_per_job.insert(Tres::Gpu, 1)),
        code: "qos_min_tres_per_job",
        object: "qos/normal",
        advice: NEVER_MET,
        follow: |w| w.asked.shape.gpus = gpus(None, 1),
    },
    Situation {
        is: "its licences are in use",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            let mut holder = running(job(1, 1, 1), &[1]);
            holder.attempt.as_mut().unwrap().charge.tres.insert(Tres::License("matlab".to_owned()), 2);
            w.job(holder);
            w.asked.licenses = parse_licenses("matlab").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "nothing to do: it starts when the jobs that hold the licence end",
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "its licences are planned for a job ahead",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            w.fill();
            w.job(JobSnapshot { licenses: parse_licenses("matlab:2").unwrap(), ..job(3, 4, 1) });
            w.tell(Event::JobGone(JobId(2)));
            w.asked.licenses = parse_licenses("matlab").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "a shorter time limit may let it start before them",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "more licences than the cluster has",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            w.asked.licenses = parse_licenses("matlab:3").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "ask for at most 2",
        follow: |w| w.asked.licenses = parse_licenses("matlab:2").unwrap(),
    },
    Situation {
        is: "longer than its account allows",
        made: |w| w.limit(|limits, _| limits.max_wall_seconds = Some(1200)),
        code: "assoc_max_wall_seconds",
        object: "account/acme/ml",
        advice: NEVER_MET,
        follow: |w| w.asked.time_limit = 1200,
    },
    Situation {
        is: "beyond its tenant's quota",
        made: |w| w.quota(Quota { guaranteed: cpus(0), ..Quota::default() }),
        code: "tenant_quota",
        object: "tenant/acme",
        advice: NEVER_MET,
        follow: |w| w.quota(Quota { guaranteed: cpus(1), ..Quota::default() }),
    },
    Situation {
        is: "borrows what nobody lends",
        made: |w| {
            w.asked.shape.cpus_per_task = 2;
            w.quota(Quota { guaranteed: cpus(1), cohort: Some(name("research")), ..Quota::default() });
        },
        code: "cohort_quota",
        object: "cohort/research",
        advice: "nothing to do: it may start when borrowed resources come back; a smaller job may start sooner",
        follow: |w| w.asked.shape.cpus_per_task = 1,
    },
];

fn starts(plan: &Plan) -> bool {
    plan.starts.iter().any(|start| start.job == JobId(ASKED))
}

#[test]
fn each_situation_is_told_and_its_advice_helps() {
    assert!(SITUATIONS.len() >= 25);
    let mut wrong = Vec::new();
    for situation in SITUATIONS {
        let mut world = World::new();
        (situation.made)(&mut world);
        let plan = world.plan();
        let told = plan.verdicts.iter().find(|verdict| verdict.job == JobId(ASKED)).and_then(|verdict| verdict.verdicts.first());
        let found = told.map(|v| (v.code.as_str(), v.object.as_str(), v.advice.as_deref().unwrap_or_default()));
        if starts(&plan) || found != Some((situation.code, situation.object, situation.advice)) {
            wrong.push(format!("{}: {found:?}", situation.is));
            continue;
        }
        (situation.follow)(&mut world);
        let plan = world.plan();
        if !starts(&plan) {
            wrong.push(format!("{}: who follows the advice still waits: {:?}", situation.is, plan.verdicts));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
