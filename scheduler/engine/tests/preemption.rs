//! Preemption as the engine decides it: who must go, who is safe, and who gets the nodes.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{Engine, Plan, Preemption};
use berth_model::event::{ArrayProgress, Event, JobSnapshot, RunningAttempt};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::{Claim, PreemptBy, PreemptMode, Preempted};
use berth_model::resources::{GpuDemand, Inventory, MemoryDemand, NodeAllocation, NumaNode, Shape};
use berth_model::state::{JobState, NodeFlag};
use berth_model::tres::{Charge, Tres};
use berth_model::verdict::JobVerdict;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};

fn noon() -> Timestamp {
    "2026-01-08T12:00:00Z".parse().unwrap()
}

fn at(seconds: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(seconds)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn node_name(number: u32) -> NodeName {
    NodeName::new(format!("n{number}")).unwrap()
}

/// 16 CPUs, no GPUs.
fn node(number: u32) -> Node {
    let inventory = Inventory {
        cpus: (0..16).collect(),
        numa: vec![NumaNode { id: 0, cpus: (0..16).collect() }],
        sockets: 1,
        threads_per_core: 1,
        memory_bytes: Bytes(1 << 36),
        gpus: Vec::new(),
        facts: BTreeMap::new(),
    };
    Node { name: node_name(number), inventory, features: BTreeSet::new(), weight: 1, is_down: false, flags: BTreeSet::new(), reason: None }
}

/// Waits with QOS `low`, for an hour on `nodes` with so many CPUs on each.
fn job(id: u64, nodes: u32, cpus: u32) -> JobSnapshot {
    JobSnapshot {
        id: JobId(id),
        tenant: name("acme"),
        account: name("ml"),
        user: name("ann"),
        partition: name("main"),
        qos: name("low"),
        name: format!("job-{id}"),
        state: JobState::Pending,
        hold: None,
        shape: Shape {
            min_nodes: nodes,
            max_nodes: nodes,
            tasks: nodes,
            tasks_per_node: Some(1),
            cpus_per_task: cpus,
            memory: MemoryDemand::PerNode(Bytes(1 << 20)),
            gpus: GpuDemand::None,
            exclusive: false,
            exclusive_user: false,
            sockets: Default::default(),
        },
        time_limit: 3600,
        submit_time: at(id as i64 - 100),
        accrues_since: Some(at(id as i64 - 100)),
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

fn of(qos: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { qos: name(qos), ..job }
}

fn within(partition: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { partition: name(partition), ..job }
}

/// Has run for so long, with a day to go, on these nodes, from this CPU on; bills its CPUs.
fn running(job: JobSnapshot, seconds: i64, nodes: &[u32], first_cpu: u32) -> JobSnapshot {
    let cpus = job.shape.cpus_per_task;
    let given = |number: &u32| NodeAllocation {
        node: node_name(*number),
        cpus: (first_cpu..first_cpu + cpus).collect(),
        memory_bytes: Bytes(1 << 20),
        gpus: Vec::new(),
        tasks: 1,
    };
    let all = u64::from(cpus) * nodes.len() as u64;
    let attempt = RunningAttempt {
        number: 1,
        allocated_at: at(-seconds),
        started_at: Some(at(-seconds)),
        charge: Charge { tres: [(Tres::Cpu, all)].into(), billing: all as f64, usage_factor: 1.0, partition_qos: None },
        nodes: nodes.iter().map(given).collect(),
        past: Vec::new(),
        checkpoint_at: None,
        is_requeueable: true,
        preempted: None,
        reservation: None,
    };
    JobSnapshot { state: JobState::Running, attempt: Some(attempt), time_limit: 86_400 + seconds as u64, ..job }
}

/// All of a node's CPUs.
fn whole(id: u64, seconds: i64, nodes: &[u32]) -> JobSnapshot {
    running(job(id, nodes.len() as u32, 16), seconds, nodes, 0)
}

fn by_qos() -> Policy {
    Policy { preempt_by: PreemptBy::Qos, ..Policy::default() }
}

fn high() -> Qos {
    Qos { priority: 100, preempts: BTreeSet::from([name("low")]), ..Qos::named(name("high")) }
}

struct World(Engine);

impl World {
    fn new(nodes: u32, policy: Policy) -> World {
        let mut world = World(Engine::new());
        world.tell(Event::Policy(policy));
        world.tell(Event::Qos(Qos::named(name("low"))));
        world.tell(Event::Qos(high()));
        world.tell(Event::Partition(Partition::of_all_nodes(name("main"))));
        (1..=nodes).for_each(|n| world.tell(Event::Node(Box::new(node(n)))));
        world
    }

    fn tell(&mut self, event: Event) {
        self.0.apply(event);
    }

    fn jobs(&mut self, jobs: impl IntoIterator<Item = JobSnapshot>) {
        jobs.into_iter().for_each(|job| self.tell(Event::Job(Box::new(job))));
    }

    fn plan(&mut self) -> Plan {
        self.0.plan(noon())
    }
}

/// What the service tells the engine once a plan's preemptions are written.
fn written(plan: &Plan, jobs: &[JobSnapshot]) -> Vec<JobSnapshot> {
    let mut told = Vec::new();
    for job in jobs {
        let mut job = job.clone();
        if let Some(p) = plan.preemptions.iter().find(|p| p.victim == job.id) {
            job.state = JobState::Completing;
            let preempted = Preempted { for_job: p.for_job, mode: p.mode, at: plan.now, kill_at: p.at };
            job.attempt.as_mut().unwrap().preempted = Some(preempted);
        }
        job.claim = plan.claims.iter().find(|c| c.job == job.id).map(|c| c.claim.clone());
        told.push(job);
    }
    told
}

fn victims(plan: &Plan) -> Vec<u64> {
    plan.preemptions.iter().map(|p| p.victim.0).collect()
}

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|start| start.job.0).collect()
}

fn verdict(plan: &Plan, job: u64) -> JobVerdict {
    plan.verdicts.iter().find(|v| v.job.0 == job).cloned().expect("a verdict")
}

/// Who goes when `asked` waits in a cluster where these run.
fn gone(nodes: u32, running: Vec<JobSnapshot>, asked: JobSnapshot) -> Vec<u64> {
    let mut world = World::new(nodes, by_qos());
    world.jobs(running);
    world.jobs([asked]);
    victims(&world.plan())
}

#[test]
fn the_least_work_lost_goes_first() {
    let all = || vec![whole(1, 7200, &[1]), whole(2, 60, &[2]), whole(3, 3600, &[3])];
    assert_eq!(gone(3, all(), of("high", job(9, 1, 1))), [2]);
    assert_eq!(gone(3, all(), of("high", job(9, 2, 1))), [2, 3]);
    assert_eq!(gone(3, all(), of("high", job(9, 3, 16))), [2, 3, 1], "by what they lose");
    assert_eq!(gone(3, all(), job(9, 1, 1)), [0u64; 0], "low preempts nobody");
    assert_eq!(gone(4, all(), of("high", job(9, 1, 1))), [0u64; 0], "there is room");
}

#[test]
fn a_checkpoint_keeps_what_was_done_before_it() {
    let mut saved = whole(1, 7200, &[1]);
    saved.attempt.as_mut().unwrap().checkpoint_at = Some(at(-30));
    assert_eq!(gone(3, vec![saved, whole(2, 60, &[2]), whole(3, 3600, &[3])], of("high", job(9, 1, 1))), [1]);
    let mut old = whole(1, 7200, &[1]);
    old.attempt.as_mut().unwrap().checkpoint_at = Some(at(-9000));
    assert_eq!(gone(2, vec![old, whole(2, 7100, &[2])], of("high", job(9, 1, 1))), [2], "of another attempt");
}

#[test]
fn work_is_what_is_billed() {
    // 16 CPUs for 100 s against 4 and 2 for 200 s: all of the second node go for less.
    let small = |id, cpus, first| running(job(id, 1, cpus), 200, &[2], first);
    assert_eq!(gone(2, vec![whole(1, 100, &[1]), small(2, 4, 0), small(3, 2, 4)], of("high", job(9, 1, 16))), [3, 2]);
    assert_eq!(gone(2, vec![whole(1, 100, &[1]), small(2, 4, 0), small(3, 6, 4)], of("high", job(9, 1, 16))), [1]);
}

#[test]
fn no_more_than_needed() {
    // The example of the reference: 8 nodes wanted, jobs on 2, 4 and 8.
    let nodes: Vec<u32> = (1..=14).collect();
    let all = vec![whole(1, 3600, &nodes[..2]), whole(2, 3600, &nodes[2..6]), whole(3, 3600, &nodes[6..])];
    assert_eq!(gone(14, all, of("high", job(9, 8, 16))), [3]);
    // Part of a node will do.
    let part = |id, seconds, first| running(job(id, 1, 4), seconds, &[1], first);
    let four = vec![part(1, 400, 0), part(2, 300, 4), part(3, 200, 8), part(4, 100, 12)];
    assert_eq!(gone(1, four.clone(), of("high", job(9, 1, 4))), [4]);
    assert_eq!(gone(1, four.clone(), of("high", job(9, 1, 5))), [4, 3]);
    assert_eq!(gone(1, four, of("high", job(9, 1, 17))), [0u64; 0], "it can never fit");
}

#[test]
fn who_is_ending_anyway_is_waited_for() {
    let ending = JobSnapshot { state: JobState::Completing, ..whole(1, 100, &[1]) };
    assert_eq!(gone(2, vec![ending.clone(), whole(2, 50, &[2])], of("high", job(9, 1, 1))), [0u64; 0]);
    assert_eq!(gone(2, vec![ending, whole(2, 50, &[2])], of("high", job(9, 2, 1))), [0u64; 0], "and a gang cannot start before it ends");
    let last_minute = JobSnapshot { time_limit: 110, ..whole(1, 100, &[1]) };
    assert_eq!(gone(2, vec![last_minute, whole(2, 50, &[2])], of("high", job(9, 1, 1))), [0u64; 0], "its limit is before any grace ends");
}

#[test]
fn a_job_is_safe_for_its_exempt_time() {
    let ran = |seconds, change: fn(&mut World)| {
        let mut world = World::new(1, Policy { preempt_exempt_seconds: 1800, ..by_qos() });
        change(&mut world);
        world.jobs([whole(1, seconds, &[1]), of("high", job(9, 1, 1))]);
        victims(&world.plan())
    };
    assert_eq!([ran(1799, |_| ()), ran(1800, |_| ())], [vec![], vec![1]]);
    let of_qos = |w: &mut World| w.tell(Event::Qos(Qos { preempt_exempt_seconds: Some(60), ..Qos::named(name("low")) }));
    assert_eq!([ran(59, of_qos), ran(60, of_qos)], [vec![], vec![1]]);
    fn of_partition(w: &mut World, over: bool) {
        w.tell(Event::Qos(Qos { preempt_exempt_seconds: Some(60), over_partition_qos: over, ..Qos::named(name("low")) }));
        w.tell(Event::Qos(Qos { preempt_exempt_seconds: Some(600), ..Qos::named(name("part")) }));
        w.tell(Event::Partition(Partition { qos: Some(name("part")), ..Partition::of_all_nodes(name("main")) }));
    }
    assert_eq!(ran(599, |w| of_partition(w, false)), [0u64; 0], "the partition's QOS says it first");
    assert_eq!(ran(599, |w| of_partition(w, true)), [1]);
    let mut preparing = JobSnapshot { state: JobState::Allocated, ..whole(1, 9000, &[1]) };
    preparing.attempt.as_mut().unwrap().started_at = None;
    let mut world = World::new(1, Policy { preempt_exempt_seconds: 1, ..by_qos() });
    world.jobs([preparing, of("high", job(9, 1, 1))]);
    assert_eq!(victims(&world.plan()), [0u64; 0], "it has not run at all");
}

#[test]
fn mode_and_grace_are_said_by_qos_before_partition_before_policy() {
    let plan = |policy: Option<PreemptMode>, partition: Option<PreemptMode>, qos: Option<PreemptMode>, may_requeue: bool| {
        let mut world = World::new(1, Policy { preempt_mode: policy.unwrap_or(PreemptMode::Requeue), ..by_qos() });
        let grace = |mode: Option<PreemptMode>, seconds| mode.map(|_| seconds);
        let main = Partition::of_all_nodes(name("main"));
        world.tell(Event::Partition(Partition { preempt_mode: partition, grace_seconds: grace(partition, 120), ..main }));
        world.tell(Event::Qos(Qos { preempt_mode: qos, grace_seconds: grace(qos, 300), ..Qos::named(name("low")) }));
        let mut victim = whole(1, 100, &[1]);
        victim.attempt.as_mut().unwrap().is_requeueable = may_requeue;
        world.jobs([victim, of("high", job(9, 1, 1))]);
        world.plan().preemptions.first().map(|p| (p.mode, p.at.duration_since(noon()).as_secs()))
    };
    use PreemptMode::{Cancel, Off, Requeue};
    assert_eq!(plan(None, None, None, true), Some((Requeue, 30)), "the policy's kill_wait_seconds");
    assert_eq!(plan(None, None, None, false), Some((Cancel, 30)), "it may not run again");
    assert_eq!(plan(Some(Off), None, None, true), None);
    assert_eq!(plan(Some(Off), Some(Cancel), None, true), Some((Cancel, 120)));
    assert_eq!(plan(Some(Cancel), Some(Cancel), Some(Requeue), true), Some((Requeue, 300)));
    assert_eq!(plan(Some(Cancel), Some(Cancel), Some(Off), true), None);
    assert_eq!(plan(Some(Cancel), Some(Off), Some(Cancel), true), Some((Cancel, 300)));
}

#[test]
fn a_higher_tier_preempts_on_its_own_nodes() {
    let world = |tier| {
        let mut world = World::new(3, Policy { preempt_by: PreemptBy::PartitionTier, ..Policy::default() });
        let top = Partition { nodes: "n[2-3]".to_owned(), priority_tier: tier, ..Partition::of_all_nodes(name("top")) };
        world.tell(Event::Partition(top));
        world.jobs([whole(1, 10, &[1]), whole(2, 100, &[2]), of("high", whole(3, 50, &[3]))]);
        world
    };
    let mut higher = world(2);
    higher.jobs([within("top", job(9, 1, 1))]);
    assert_eq!(victims(&higher.plan()), [3], "QOS does not matter, and n1 is none of its nodes");
    let mut same = world(1);
    same.jobs([within("top", job(9, 1, 1)), of("high", job(10, 1, 1))]);
    assert_eq!(victims(&same.plan()), [0u64; 0]);
}

#[test]
fn nobody_preempts_its_equals() {
    let mut world = World::new(1, by_qos());
    world.tell(Event::Qos(Qos { preempts: BTreeSet::from([name("high"), name("low")]), ..Qos::named(name("low")) }));
    world.jobs([whole(1, 100, &[1]), of("high", job(8, 1, 1)), job(9, 1, 1)]);
    assert_eq!(victims(&world.plan()), [0u64; 0], "each lists the other");
    world.tell(Event::Policy(Policy::default()));
    world.tell(Event::Qos(Qos::named(name("low"))));
    assert_eq!(victims(&world.plan()), [0u64; 0], "off");
}

#[test]
fn the_nodes_are_held_until_the_job_starts() {
    let mut world = World::new(2, by_qos());
    let jobs = [whole(1, 100, &[1]), whole(2, 200, &[2]), of("high", job(9, 2, 16))];
    world.jobs(jobs.clone());
    let plan = world.plan();
    assert_eq!(victims(&plan), [1, 2]);
    let expected =
        Preemption { victim: JobId(1), attempt: 1, mode: PreemptMode::Requeue, for_job: JobId(9), nodes: vec![node_name(1)], at: at(30) };
    assert_eq!(plan.preemptions[0], expected);
    let claim = Claim { nodes: vec![node_name(1), node_name(2)], victims: vec![JobId(1), JobId(2)], ready_at: at(30) };
    assert_eq!((plan.claims.len(), &plan.claims[0].claim), (1, &claim));
    let said = verdict(&plan, 9);
    let first = &said.verdicts[0];
    assert_eq!((first.code.as_str(), first.object.as_str(), first.clears_at), ("preempting", "node/n[1-2]", Some(at(30))));
    assert_eq!(first.holders, ["job/1", "job/2"]);
    let planned = said.planned_start.unwrap();
    assert_eq!((planned.at, planned.nodes.as_str()), (at(30), "n[1-2]"));

    world.jobs(written(&plan, &jobs));
    let again = world.0.plan(at(1));
    assert!(again.preemptions.is_empty() && again.starts.is_empty(), "nobody is preempted twice");
    assert_eq!(verdict(&again, 9).verdicts[0].code, "preempting");
    // One victim has gone. Neither somebody ahead of it in the queue nor somebody short gets in between.
    world.tell(Event::JobGone(JobId(1)));
    world.tell(Event::Qos(Qos { priority: 1000, ..Qos::named(name("top")) }));
    world.jobs([of("top", job(10, 1, 1)), JobSnapshot { time_limit: 1, ..of("top", job(11, 1, 1)) }]);
    assert_eq!(starts(&world.0.plan(at(2))), [0u64; 0]);
    assert_eq!(starts(&world.0.quick_plan(at(3))), [0u64; 0]);
    world.tell(Event::JobGone(JobId(2)));
    let quick = world.0.quick_plan(at(4));
    assert_eq!((quick.is_full, starts(&quick)), (false, vec![9]), "as soon as the last has gone");
    assert_eq!(quick.starts[0].nodes.iter().map(|n| n.node.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
}

#[test]
fn a_victim_that_overruns_its_grace_is_waited_for() {
    let mut world = World::new(1, by_qos());
    let jobs = [whole(1, 100, &[1]), of("high", job(9, 1, 16))];
    world.jobs(jobs.clone());
    let plan = world.plan();
    world.jobs(written(&plan, &jobs));
    world.jobs([of("high", job(10, 1, 16))]);
    let late = world.0.plan(at(100));
    assert_eq!((starts(&late), victims(&late)), (vec![], vec![]));
    assert_eq!(verdict(&late, 9).verdicts[0].code, "preempting");
    assert_eq!(late.wake_at, Some(at(101)));
    world.tell(Event::JobGone(JobId(1)));
    assert_eq!(starts(&world.0.plan(at(102))), [9]);
}

#[test]
fn a_claim_whose_node_has_gone_is_void() {
    let mut world = World::new(2, by_qos());
    let jobs = [whole(1, 100, &[1]), whole(2, 200, &[2]), of("high", job(9, 1, 16))];
    world.jobs(jobs.clone());
    let plan = world.plan();
    assert_eq!(victims(&plan), [1]);
    world.jobs(written(&plan, &jobs));
    world.tell(Event::Node(Box::new(Node { flags: BTreeSet::from([NodeFlag::Drain]), ..node(1) })));
    let next = world.0.plan(at(1));
    assert_eq!((victims(&next), next.claims[0].claim.nodes.clone()), (vec![2], vec![node_name(2)]));
}

#[test]
fn two_preemptors_take_different_victims_and_the_next_in_line_what_is_left() {
    let mut world = World::new(2, by_qos());
    world.jobs([whole(1, 100, &[1]), whole(2, 200, &[2])]);
    world.jobs([of("high", job(8, 1, 16)), of("high", job(9, 1, 16)), of("high", job(10, 1, 16))]);
    let plan = world.plan();
    let pairs: Vec<(u64, u64)> = plan.preemptions.iter().map(|p| (p.for_job.0, p.victim.0)).collect();
    assert_eq!(pairs, [(8, 1), (9, 2)]);
    assert_eq!(verdict(&plan, 10).verdicts[0].code, "resources");
    assert_eq!(verdict(&plan, 10).planned_start.unwrap().at, at(3630), "behind those with claims");
}

#[test]
fn a_job_ahead_keeps_its_planned_start() {
    let mut world = World::new(1, by_qos());
    world.tell(Event::Qos(Qos { priority: 1000, ..Qos::named(name("top")) }));
    // It ends in 100 s, and then the first in line gets the node.
    let victim = JobSnapshot { time_limit: 200, ..whole(1, 100, &[1]) };
    world.jobs([victim, of("top", job(8, 1, 16)), of("high", job(9, 1, 16))]);
    let plan = world.plan();
    assert_eq!(victims(&plan), [0u64; 0]);
    assert_eq!(verdict(&plan, 8).planned_start.unwrap().at, at(100));
    world.jobs([JobSnapshot { time_limit: 60, ..of("high", job(10, 1, 16)) }]);
    assert_eq!(victims(&world.plan()), [1], "for a job that ends in time: 30 + 60 < 100");
}

#[test]
fn an_array_preempts_for_one_task_at_a_time() {
    let mut world = World::new(2, by_qos());
    let array = ArrayProgress { pending: [3, 4].into_iter().collect(), running: 0, throttle: None };
    let jobs = [whole(1, 100, &[1]), whole(2, 200, &[2]), JobSnapshot { array: Some(array), ..of("high", job(9, 1, 16)) }];
    world.jobs(jobs.clone());
    let plan = world.plan();
    assert_eq!(victims(&plan), [1]);
    world.jobs(written(&plan, &jobs));
    world.tell(Event::JobGone(JobId(1)));
    let next = world.0.plan(at(5));
    assert_eq!((next.starts[0].array_index, victims(&next)), (Some(3), vec![2]));
}

#[test]
fn a_job_that_limits_hold_preempts_nobody() {
    let mut world = World::new(2, by_qos());
    world.tell(Event::Qos(Qos { max_jobs_per_user: Some(1), ..high() }));
    world.jobs([whole(1, 100, &[1]), whole(2, 200, &[2])]);
    world.jobs([of("high", job(8, 1, 16)), of("high", job(9, 1, 16))]);
    assert_eq!(victims(&world.plan()), [1], "for the one that the limit lets start");
}
