//! Priority, fair share and limits as the engine applies them, with right values worked out from Slurm's rules by hand.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{Engine, Plan};
use berth_model::association::{Association, AssociationKey, Limits, Terms, UsageKey, UsageRow, Used};
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::node::Node;
use berth_model::policy::{FairShareRule, Partition, Policy, Qos};
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::verdict::Verdict;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

fn noon() -> Timestamp {
    "2026-01-08T12:00:00Z".parse().unwrap()
}

fn at(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn counts(tres: &[(Tres, u64)]) -> TresCounts {
    tres.iter().cloned().collect()
}

/// 64 CPUs and 8 GPUs.
fn node(number: u32) -> Node {
    let gpu = |index| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        kind: "h100".to_owned(),
        memory_bytes: Bytes(1 << 36),
        numa: Some(0),
        fault: None,
    };
    Node {
        name: NodeName::new(format!("n{number}")).unwrap(),
        inventory: Inventory {
            cpus: (0..64).collect(),
            numa: vec![NumaNode { id: 0, cpus: (0..64).collect() }],
            sockets: 1,
            threads_per_core: 1,
            memory_bytes: Bytes(1 << 40),
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

/// Of ann in `ml`, eligible since noon.
fn job(id: u64, nodes: u32, cpus: u32, gpus: u32, minutes: u64) -> JobSnapshot {
    JobSnapshot {
        id: JobId(id),
        tenant: name("acme"),
        account: name("ml"),
        user: name("ann"),
        partition: name("main"),
        qos: name("normal"),
        name: format!("job-{id}"),
        state: JobState::Pending,
        hold: None,
        shape: Shape {
            min_nodes: nodes,
            max_nodes: nodes,
            tasks: nodes,
            tasks_per_node: Some(1),
            cpus_per_task: cpus,
            memory: MemoryDemand::PerNode(Bytes(1 << 30)),
            gpus: if gpus > 0 { GpuDemand::PerNode(Gpus { kind: None, count: gpus }) } else { GpuDemand::None },
            exclusive: false,
            exclusive_user: false,
            sockets: Default::default(),
        },
        time_limit: minutes * 60,
        submit_time: noon(),
        accrues_since: Some(noon()),
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
        attempt: None,
        claim: None,
        reservations: Vec::new(),
        licenses: Vec::new(),
        choices: Vec::new(),
    }
}

/// Has run since noon on these nodes.
fn running(job: JobSnapshot, nodes: &[u32], charge: Charge) -> JobSnapshot {
    let gpus = charge.tres.get(&Tres::Gpu).copied().unwrap_or(0) as u32 / nodes.len() as u32;
    let given = |n: &u32| NodeAllocation {
        node: NodeName::new(format!("n{n}")).unwrap(),
        cpus: (0..job.shape.cpus_per_task).collect(),
        memory_bytes: Bytes(1 << 30),
        gpus: (0..gpus).collect(),
        tasks: 1,
    };
    let nodes = nodes.iter().map(given).collect();
    let attempt = RunningAttempt {
        number: 1,
        allocated_at: noon(),
        started_at: Some(noon()),
        charge,
        nodes,
        past: Vec::new(),
        checkpoint_at: None,
        is_requeueable: true,
        preempted: None,
        reservation: None,
    };
    JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..job }
}

fn charge(tres: &[(Tres, u64)]) -> Charge {
    Charge { tres: counts(tres), billing: 1.0, usage_factor: 1.0, partition_qos: None }
}

struct World(Engine);

impl World {
    fn new(nodes: u32, policy: Policy) -> World {
        let mut world = World(Engine::new());
        world.tell(Event::Policy(policy));
        world.tell(Event::Qos(Qos::named(name("normal"))));
        world.tell(Event::Partition(Partition::of_all_nodes(name("main"))));
        (1..=nodes).for_each(|n| world.tell(Event::Node(Box::new(node(n)))));
        world
    }

    fn tell(&mut self, event: Event) {
        self.0.apply(event);
    }

    fn job(&mut self, job: JobSnapshot) {
        self.tell(Event::Job(Box::new(job)));
    }

    fn limit(&mut self, key: AssociationKey, limits: Limits) {
        let terms = Terms { limits, ..Terms::default() };
        let tenant = key.tenant.clone();
        self.tell(Event::Associations { tenant, places: vec![Association { key, parent: None, terms }] });
    }

    fn used(&mut self, user: &str, used: Used) {
        let key = UsageKey { user: AssociationKey::user(name("acme"), name("ml"), name(user)), qos: name("normal"), partition_qos: None };
        self.tell(Event::Usage { rows: vec![UsageRow { key, as_of: noon(), used }], counted: Vec::new() });
    }
}

fn ml() -> AssociationKey {
    AssociationKey::account(name("acme"), name("ml"))
}

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|start| start.job.0).collect()
}

fn verdicts(plan: &Plan, job: u64) -> Vec<Verdict> {
    plan.verdicts.iter().find(|v| v.job.0 == job).map(|v| v.verdicts.clone()).unwrap_or_default()
}

/// The job of the reference's example in a full cluster: a day old, a fair-share factor of 3 in 4.
fn example(policy: Policy, change: impl FnOnce(&mut JobSnapshot)) -> (i64, BTreeMap<String, (f64, f64)>) {
    let mut world = World::new(100, policy);
    for (qos, priority) in [("high", 50), ("highest", 200)] {
        world.tell(Event::Qos(Qos { priority, ..Qos::named(name(qos)) }));
    }
    for (partition, priority_job_factor) in [("main", 20), ("other", 50)] {
        world.tell(Event::Partition(Partition { priority_job_factor, ..Partition::of_all_nodes(name(partition)) }));
    }
    for (user, billing) in [("first", 0.0), ("ann", 1.0), ("third", 2.0), ("last", 3.0)] {
        world.used(user, Used { billing, ..Used::default() });
    }
    let all: Vec<u32> = (1..=100).collect();
    world.job(JobSnapshot { user: name("last"), ..running(job(1, 100, 64, 8, 100_000), &all, Charge::default()) });
    let mut asked = JobSnapshot { qos: name("high"), nice: 100, ..job(2, 10, 64, 8, 60) };
    change(&mut asked);
    world.job(asked);
    let plan = world.0.plan(at(24 * 60));
    let priority = plan.verdicts.into_iter().find(|v| v.job.0 == 2).unwrap().priority;
    let factors = priority.factors.into_iter().map(|f| (f.name.into_owned(), (f.raw, f.value)));
    (priority.total, factors.collect())
}

fn weights() -> Policy {
    Policy {
        weight_age: 1000,
        weight_fairshare: 10_000,
        weight_job_size: 1000,
        weight_partition: 1000,
        weight_qos: 2000,
        weight_tres: BTreeMap::from([(Tres::Gpu, "3000".parse().unwrap())]),
        ..Policy::default()
    }
}

#[test]
fn a_priority_is_the_weighted_sum_of_all_factors() {
    let (total, factors) = example(weights(), |_| {});
    assert_eq!(total, 8842);
    let expected = [
        ("age", 1.0 / 7.0, 142.857),
        ("fairshare", 0.75, 7500.0),
        ("job_size", 0.1, 100.0),
        ("partition", 0.4, 400.0),
        ("qos", 0.25, 500.0),
        ("tres/gres/gpu", 0.1, 300.0),
        ("nice", 100.0, -100.0),
    ];
    assert_eq!(factors.len(), expected.len());
    for (factor, raw, value) in expected {
        let found = factors[factor];
        assert!((found.0 - raw).abs() < 1e-9 && (found.1 - value).abs() < 1e-3, "{factor}: {found:?}");
    }
}

#[test]
fn small_jobs_can_be_favoured_by_size_or_by_size_and_time() {
    assert_eq!(example(Policy { favor_small: true, ..weights() }, |_| {}).0, 9642);
    let relative = Policy { small_relative_to_time: true, ..weights() };
    let (_, factors) = example(relative.clone(), |_| {});
    assert!((factors["job_size"].0 - 640.0 / 60.0 / 6400.0).abs() < 1e-9);
    let (_, factors) = example(Policy { favor_small: true, ..relative }, |_| {});
    assert!((factors["job_size"].0 - (1.0 - 640.0 / 60.0 / 6400.0)).abs() < 1e-9);
}

#[test]
fn age_counts_up_to_its_cap_and_only_while_it_runs() {
    let age = |days: Option<f64>| {
        let since = days.map(|days| at(24 * 60) - SignedDuration::from_secs((days * 86_400.0) as i64));
        example(weights(), |job| job.accrues_since = since).1["age"].0
    };
    assert_eq!([age(Some(3.5)), age(Some(7.0)), age(Some(10.0)), age(None)], [0.5, 1.0, 1.0, 0.0]);
}

#[test]
fn a_priority_is_at_least_one_and_at_most_all_of_32_bits() {
    assert_eq!(example(weights(), |job| job.nice = 2_000_000).0, 1);
    let huge = Policy { weight_fairshare: u32::MAX, weight_qos: u32::MAX, ..weights() };
    assert_eq!(example(huge, |job| job.qos = name("highest")).0, i64::from(u32::MAX));
    assert_eq!(example(weights(), |job| job.site_factor = 1000).0, 9842);
    assert_eq!(example(weights(), |job| job.hold = Some(berth_model::state::Hold::User)).0, 0);
}

#[test]
fn what_runs_counts_as_it_runs() {
    let mut world = World::new(2, Policy::default());
    world.job(JobSnapshot { user: name("bob"), ..running(job(1, 1, 64, 0, 600), &[1], charge(&[(Tres::Cpu, 64)])) });
    world.job(running(job(2, 1, 64, 0, 600), &[2], Charge { billing: 3.0, ..charge(&[]) }));
    world.0.plan(at(60));
    let shares = world.0.shares();
    let line = |user: Option<&str>| shares.iter().find(|s| s.user.as_ref().map(Name::as_str) == user && s.account.is_some()).unwrap();
    assert!((line(Some("ann")).effective_usage - 0.75).abs() < 1e-9 && (line(Some("bob")).effective_usage - 0.25).abs() < 1e-9);
    assert_eq!((line(Some("bob")).factor, line(Some("ann")).factor), (Some(1.0), Some(0.5)));
    let all = line(None).raw_usage;
    assert!(14_300.0 < all && all < 4.0 * 3600.0, "an hour of 4, a little of it faded: {all}");
    world.tell(Event::Policy(Policy { fair_share_rule: FairShareRule::Classic, ..Policy::default() }));
    world.0.plan(at(60));
    let classic = |user: &str| world.0.shares().into_iter().find(|s| s.user.as_ref().is_some_and(|u| u.as_str() == user)).unwrap().factor;
    // The account has all shares and all usage; of the effective usage half is the account's: 2^-((0.75 + 0.25 · 0.5) / 0.5).
    assert!((classic("ann").unwrap() - (-1.75f64).exp2()).abs() < 1e-9);
}

#[test]
fn a_group_limit_holds_one_job_and_lets_others_pass() {
    let mut world = World::new(2, Policy::default());
    world.limit(ml(), Limits { grp_tres: counts(&[(Tres::Gpu, 8)]), ..Limits::default() });
    world.job(running(job(1, 1, 8, 6, 30), &[1], charge(&[(Tres::Gpu, 6), (Tres::Node, 1)])));
    world.job(job(2, 1, 1, 4, 60));
    world.job(JobSnapshot { account: name("bio"), ..job(3, 1, 1, 8, 60) });
    world.job(job(4, 1, 1, 2, 60));
    world.job(job(5, 1, 1, 1, 60));
    let plan = world.0.plan(at(0));
    assert_eq!(starts(&plan), [3, 4], "who is held by a limit is no obstacle; with job 4 the limit is reached");
    let found = verdicts(&plan, 2);
    assert_eq!((found[0].code.as_str(), found[0].object.as_str()), ("assoc_group_tres", "account/acme/ml"));
    assert_eq!(found[0].have.as_deref(), Some("6 of 8 gres/gpu in use"));
    assert_eq!((found[0].need.as_deref(), found[0].clears_at), (Some("4 gres/gpu"), Some(at(30))));
    assert_eq!(found[0].holders, ["job/1"]);
    assert_eq!(verdicts(&plan, 5)[0].have.as_deref(), Some("8 of 8 gres/gpu in use"));
    world.tell(Event::JobGone(JobId(1)));
    assert_eq!(starts(&world.0.quick_plan(at(1))), [2, 5], "a quick plan looks at those whom the limit held: 2 + 4 + 1");
}

#[test]
fn a_limit_on_nodes_counts_distinct_ones() {
    let mut world = World::new(5, Policy::default());
    world.limit(ml(), Limits { grp_tres: counts(&[(Tres::Node, 4)]), ..Limits::default() });
    world.job(running(job(1, 3, 1, 0, 60), &[1, 2, 3], charge(&[(Tres::Node, 3)])));
    let on = |id: u64, nodes: &[u32]| {
        let required_nodes = nodes.iter().map(|n| NodeName::new(format!("n{n}")).unwrap()).collect();
        JobSnapshot { required_nodes, ..job(id, 2, 1, 0, 60) }
    };
    world.job(on(2, &[4, 5]));
    world.job(on(3, &[3, 4]));
    let plan = world.0.plan(at(0));
    assert_eq!(starts(&plan), [3]);
    assert_eq!(verdicts(&plan, 2)[0].have.as_deref(), Some("3 of 4 node in use"));
}

#[test]
fn minutes_used_are_a_limit_and_what_runs_may_still_use_counts_if_limits_are_safe() {
    let plan = |is_safe: bool, used: f64| {
        let mut world = World::new(2, Policy { safe_limits: is_safe, half_life_seconds: 0, ..Policy::default() });
        world.limit(ml(), Limits { grp_tres_minutes: counts(&[(Tres::Gpu, 1000)]), ..Limits::default() });
        world.used("ann", Used { tres: BTreeMap::from([(Tres::Gpu, used * 60.0)]), ..Used::default() });
        world.job(running(job(1, 1, 1, 2, 30), &[1], charge(&[(Tres::Gpu, 2)])));
        world.job(job(2, 1, 1, 2, 30));
        world.0.plan(at(0))
    };
    assert_eq!(starts(&plan(false, 900.0)), [2]);
    let safe = plan(true, 900.0);
    assert_eq!(starts(&safe), [0u64; 0], "60 + 60 > 1000 − 900");
    assert_eq!(verdicts(&safe, 2)[0].code, "assoc_group_tres_minutes");
    assert_eq!(verdicts(&safe, 2)[0].have.as_deref(), Some("900 of 1000 gres/gpu-minutes used, 60 more left to what runs"));
    assert_eq!(starts(&plan(true, 880.0)), [2]);
    assert_eq!(starts(&plan(false, 1000.0)), [0u64; 0]);
}

#[test]
fn what_can_never_be_met_is_said_and_gets_no_planned_start() {
    let mut world = World::new(2, Policy::default());
    world.limit(ml(), Limits { max_wall_seconds: Some(3600), ..Limits::default() });
    world.job(job(1, 1, 1, 0, 61));
    world.job(job(2, 1, 1, 0, 60));
    let plan = world.0.plan(at(0));
    assert_eq!(starts(&plan), [2]);
    let found = verdicts(&plan, 1);
    assert_eq!((found[0].code.as_str(), found[0].have.as_deref()), ("assoc_max_wall_seconds", Some("it can never be met by this job")));
    assert!(plan.verdicts[0].planned_start.is_none());
}
