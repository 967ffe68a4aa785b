//! Suspended jobs: what they keep, what others get meanwhile, and when they go on.

mod common;

use std::collections::BTreeSet;

use berth_engine::{Engine, Plan, Resume};
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::{PreemptBy, PreemptMode, Suspension};
use berth_model::resources::{GpuDemand, Gpus, MemoryDemand, Shape};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres};
use berth_model::{Bytes, JobId};
use common::{GIB, at, gang, held, name, noon, pending, planned};
use jiff::{SignedDuration, Timestamp};

fn seconds(count: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(count)
}

fn asks(cpus: u32, gib: u64) -> Shape {
    gang(1, cpus, MemoryDemand::PerNode(Bytes(gib * GIB)), GpuDemand::None)
}

/// An hour of `qos`.
fn waits(id: u64, qos: &str, shape: Shape) -> JobSnapshot {
    JobSnapshot { qos: name(qos), ..pending(id, shape, 60, seconds(id as i64 - 1000)) }
}

/// Has run for ten minutes of its hour, on the first CPUs of n1 and as many GPUs.
fn runs(id: u64, cpus: u32, gib: u64, gpus: u32) -> JobSnapshot {
    let charge = Charge { tres: [(Tres::Cpu, u64::from(cpus))].into(), billing: f64::from(cpus), usage_factor: 1.0, partition_qos: None };
    let attempt = common::attempt(at(-10), charge, vec![held(1, 0..cpus, Bytes(gib * GIB), 0..gpus)]);
    JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..waits(id, "low", asks(cpus, gib)) }
}

fn suspended(job: JobSnapshot, at: Timestamp, since: Option<Timestamp>, is_held: bool) -> JobSnapshot {
    let suspension = Some(Suspension { number: 1, at, since, for_job: (!is_held).then_some(JobId(9)), is_held });
    let attempt = job.attempt.map(|attempt| berth_model::event::RunningAttempt { suspension, ..attempt });
    JobSnapshot { state: if since.is_some() { JobState::Suspended } else { JobState::Running }, attempt, ..job }
}

struct World(Engine);

impl World {
    /// One node with 16 CPUs, 64 GiB and 4 GPUs. Jobs of `high` suspend those of `low`.
    fn new() -> World {
        let mut world = World(Engine::new());
        world.tell(Event::Policy(Policy { preempt_by: PreemptBy::Qos, preempt_mode: PreemptMode::Suspend, ..Policy::default() }));
        world.tell(Event::Qos(Qos::named(name("low"))));
        world.tell(Event::Qos(Qos { priority: 100, preempts: BTreeSet::from([name("low")]), ..Qos::named(name("high")) }));
        world.tell(Event::Partition(Partition::of_all_nodes(name("main"))));
        world.tell(Event::Node(Box::new(common::node(1, 4))));
        world
    }

    fn tell(&mut self, event: Event) {
        self.0.apply(event);
    }

    fn with<const N: usize>(mut self, jobs: [JobSnapshot; N]) -> World {
        jobs.into_iter().for_each(|job| self.tell(Event::Job(Box::new(job))));
        self
    }

    fn plan(&mut self) -> Plan {
        self.0.plan(noon())
    }
}

fn resumed(plan: &Plan) -> Vec<(u64, Vec<u32>)> {
    plan.resumes.iter().map(|resume| (resume.job.0, resume.nodes[0].cpus.clone())).collect()
}

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|start| start.job.0).collect()
}

#[test]
fn a_victim_is_suspended_and_the_other_waits_for_its_cpus() {
    let victim = runs(1, 16, 8, 0);
    let asker = waits(9, "high", asks(8, 8));
    let mut world = World::new().with([victim.clone(), asker.clone()]);
    let plan = world.plan();
    let [preemption] = plan.preemptions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((preemption.victim.0, preemption.mode, preemption.at), (1, PreemptMode::Suspend, seconds(2)));
    assert_eq!(plan.claims[0].claim.ready_at, seconds(2));
    // It is told, and not yet still: its CPUs are its own.
    let asker = JobSnapshot { claim: Some(plan.claims[0].claim.clone()), ..asker };
    let mut world = world.with([suspended(victim.clone(), noon(), None, false), asker]);
    let plan = world.0.plan(seconds(1));
    assert!(plan.starts.is_empty() && plan.preemptions.is_empty() && plan.resumes.is_empty(), "{plan:?}");
    // Now it is.
    let mut world = world.with([suspended(victim, noon(), Some(seconds(2)), false)]);
    let plan = world.0.plan(seconds(2));
    assert_eq!((starts(&plan), resumed(&plan)), (vec![9], vec![]));
}

#[test]
fn it_goes_on_when_there_are_cpus_for_it_and_not_before() {
    let still = suspended(runs(1, 12, 8, 0), at(-1), Some(at(-1)), false);
    let other = JobSnapshot { qos: name("high"), ..runs(9, 8, 8, 0) };
    let mut world = World::new().with([still.clone(), other]);
    let plan = world.plan();
    assert!(plan.resumes.is_empty(), "{plan:?}");
    world.tell(Event::JobGone(JobId(9)));
    let plan = world.0.quick_plan(noon());
    assert!(plan.is_full, "suspended jobs go on by full plans");
    assert_eq!(resumed(&plan), [(1, (0..12).collect())]);
    let [Resume { attempt: 1, suspension: 1, nodes, .. }] = plan.resumes.as_slice() else { panic!("{plan:?}") };
    assert_eq!((nodes[0].memory_bytes, nodes[0].tasks), (Bytes(8 * GIB), 1));
}

#[test]
fn its_old_cpus_are_taken_again_where_they_are_free_and_others_else() {
    let still = suspended(runs(1, 4, 8, 0), at(-1), Some(at(-1)), false);
    // Has got CPUs 2 to 5.
    let mut other = runs(9, 4, 8, 0);
    other.attempt.as_mut().unwrap().nodes[0].cpus = (2..6).collect();
    let plan = World::new().with([still, other]).plan();
    // 0 and 1 are its own, 6 and 7 beside them on the same socket.
    assert_eq!(resumed(&plan), [(1, vec![0, 1, 6, 7])]);
}

#[test]
fn memory_and_gpus_are_kept() {
    let victim = || runs(1, 16, 40, 2);
    // 24 GiB and 2 GPUs are left whoever is suspended.
    for (asker, is_of_use) in [
        (asks(1, 24), true),
        (asks(1, 25), false),
        (Shape { gpus: GpuDemand::PerNode(Gpus { kind: None, count: 2 }), ..asks(1, 8) }, true),
        (Shape { gpus: GpuDemand::PerNode(Gpus { kind: None, count: 3 }), ..asks(1, 8) }, false),
    ] {
        let plan = World::new().with([victim(), waits(9, "high", asker.clone())]).plan();
        assert_eq!(plan.preemptions.len(), usize::from(is_of_use), "{asker:?}");
        let still = suspended(victim(), at(-1), Some(at(-1)), true);
        let plan = World::new().with([still, waits(9, "high", asker.clone())]).plan();
        assert_eq!(starts(&plan).len(), usize::from(is_of_use), "{asker:?}");
    }
}

#[test]
fn what_it_keeps_is_free_when_it_will_have_ended() {
    // 50 minutes are left to it; the other runs for 20 more.
    let still = || suspended(runs(1, 16, 40, 0), at(0), Some(at(0)), false);
    let other = JobSnapshot { time_limit: 30 * 60, qos: name("high"), ..runs(9, 16, 8, 0) };
    let plan = World::new().with([still(), other.clone(), waits(10, "low", asks(1, 30))]).plan();
    assert_eq!(planned(&plan, 10), Some(at(70)));
    // Who knows when, if a person holds it.
    let JobSnapshot { attempt: Some(mut attempt), .. } = still() else { unreachable!() };
    attempt.suspension.as_mut().unwrap().is_held = true;
    let held = JobSnapshot { attempt: Some(attempt), ..still() };
    let plan = World::new().with([held, other, waits(10, "low", asks(1, 30))]).plan();
    assert_eq!(planned(&plan, 10), None);
}

#[test]
fn it_comes_before_whoever_may_not_preempt_it() {
    let still = || suspended(runs(1, 16, 8, 0), at(-1), Some(at(-1)), false);
    let plan = World::new().with([still(), waits(10, "low", asks(1, 8))]).plan();
    assert_eq!((resumed(&plan).len(), starts(&plan)), (1, vec![]));
    assert_eq!(planned(&plan, 10), Some(at(51)), "50 minutes were left when it was suspended a minute ago");
    let long = JobSnapshot { time_limit: 61 * 60, ..waits(10, "low", asks(1, 8)) };
    let plan = World::new().with([still(), long, waits(11, "high", asks(1, 8)), waits(12, "low", asks(1, 8))]).plan();
    // The one that would not have ended by then waits until the suspended one has.
    assert_eq!((resumed(&plan), starts(&plan)), (vec![], vec![11, 12]));
    assert_eq!(planned(&plan, 10), Some(at(60 + 51)));
}

#[test]
fn of_several_the_first_suspended_goes_on_first() {
    let still = |id, minute| suspended(runs(id, 10, 8, 0), at(minute), Some(at(minute)), false);
    let plan = World::new().with([still(1, -1), still(2, -2)]).plan();
    assert_eq!(resumed(&plan), [(2, (0..10).collect())]);
}

#[test]
fn a_person_who_suspends_decides_when_it_goes_on() {
    let still = suspended(runs(1, 4, 8, 0), at(-1), Some(at(-1)), true);
    assert!(World::new().with([still]).plan().resumes.is_empty());
}

#[test]
fn time_in_which_it_is_suspended_does_not_count() {
    let long_ago = || {
        let mut job = runs(1, 4, 8, 0);
        let attempt = job.attempt.as_mut().unwrap();
        (attempt.started_at, attempt.allocated_at) = (Some(at(-120)), at(-120));
        job
    };
    // Without, it has run for twice its hour.
    assert_eq!(World::new().with([long_ago()]).plan().overdue, [JobId(1)]);
    let still = suspended(long_ago(), at(-100), Some(at(-100)), true);
    assert!(World::new().with([still]).plan().overdue.is_empty());
    let mut again = long_ago();
    again.attempt.as_mut().unwrap().suspended_ms = 90 * 60_000;
    // Of its hour 30 minutes are left.
    let plan = World::new().with([again, waits(10, "low", asks(16, 8))]).plan();
    assert!(plan.overdue.is_empty());
    assert_eq!(planned(&plan, 10), Some(at(30)));
}

#[test]
fn nobody_is_suspended_twice_or_before_it_has_begun() {
    let asker = || waits(9, "high", asks(1, 60));
    let still = suspended(runs(1, 16, 8, 0), at(-1), Some(at(-1)), true);
    assert!(World::new().with([still, asker()]).plan().preemptions.is_empty());
    let mut prepares = runs(1, 16, 8, 0);
    prepares.state = JobState::Allocated;
    prepares.attempt.as_mut().unwrap().started_at = None;
    assert!(World::new().with([prepares, waits(9, "high", asks(1, 8))]).plan().preemptions.is_empty());
}
