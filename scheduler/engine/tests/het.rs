//! Heterogeneous jobs: components start together or not at all, and nobody ahead of them waits for it.

mod common;

use berth_engine::Plan;
use berth_model::component::ComponentOf;
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::{HetjobPriority, Partition, Policy, Qos};
use berth_model::state::Hold;
use berth_model::tres::Charge;
use berth_model::{Bytes, JobId, NodeName};
use common::*;
use std::collections::{BTreeMap, BTreeSet};

/// Component `offset` of `size` of the job `leader`.
fn component(leader: u64, offset: u32, size: u32, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { component_of: Some(ComponentOf { leader: JobId(leader), offset, size }), submit_time: at(-5), ..job }
}

/// Two components of whole nodes, of so many nodes each.
fn pair(leader: u64, first: u32, second: u32, minutes: u64) -> [JobSnapshot; 2] {
    [component(leader, 0, 2, job(leader, shape(first, 16), minutes)), component(leader, 1, 2, job(leader + 1, shape(second, 16), minutes))]
}

fn on(node: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { required_nodes: BTreeSet::from([NodeName::new(node).unwrap()]), ..job }
}

fn with_all(world: World, jobs: impl IntoIterator<Item = JobSnapshot>) -> World {
    jobs.into_iter().fold(world, World::with)
}

fn started(plan: &Plan) -> BTreeMap<u64, Vec<String>> {
    plan.starts.iter().map(|start| (start.job.0, start.nodes.iter().map(|n| n.node.to_string()).collect())).collect()
}

/// Code, component and object of all verdicts of a job.
fn told(plan: &Plan, id: u64) -> Vec<(String, Option<u32>)> {
    let verdict = plan.verdicts.iter().find(|v| v.job.0 == id).expect("a verdict for every pending job");
    verdict.verdicts.iter().map(|v| (v.code.clone(), v.component)).collect()
}

#[test]
fn all_start_at_once_on_nodes_of_their_own() {
    let plan = with_all(World::nodes(3, 0), pair(1, 1, 2, 60)).plan();
    let starts = started(&plan);
    assert_eq!(starts.keys().copied().collect::<Vec<_>>(), [1, 2]);
    let nodes: BTreeSet<&String> = starts.values().flatten().collect();
    assert_eq!(nodes.len(), 3, "{starts:?}");
    assert!(plan.verdicts.is_empty());
}

#[test]
fn components_may_share_a_node() {
    let halves = [component(1, 0, 2, job(1, shape(1, 8), 60)), component(1, 1, 2, job(2, shape(1, 8), 60))];
    assert_eq!(started(&with_all(World::nodes(1, 0), halves).plan()).len(), 2);
    let more = [component(1, 0, 2, job(1, shape(1, 8), 60)), component(1, 1, 2, job(2, shape(1, 9), 60))];
    let plan = with_all(World::nodes(1, 0), more).plan();
    assert!(plan.starts.is_empty(), "all or none");
    // One after the other is not together: 8 and 9 CPUs are more than the node has.
    assert_eq!(planned(&plan, 1), None);
}

#[test]
fn the_latest_component_binds_and_the_others_wait_for_it() {
    // n1 is busy for half an hour; component 1 must have it.
    let [first, second] = pair(10, 1, 1, 60);
    let mut world = with_all(World::nodes(2, 0).with(running(1, &[1], 30)), [first, on("n1", second)]);
    let plan = world.plan();
    assert!(plan.starts.is_empty());
    assert_eq!((planned(&plan, 10), planned(&plan, 11)), (Some(at(30)), Some(at(30))));
    assert_eq!(told(&plan, 10), [("resources".to_owned(), Some(1))]);
    assert_eq!(told(&plan, 11), told(&plan, 10), "all are told of the whole");
    let nodes = |id: u64| plan.verdicts.iter().find(|v| v.job.0 == id).unwrap().planned_start.as_ref().unwrap().nodes.clone();
    assert_eq!((nodes(10), nodes(11)), ("n2".to_owned(), "n1".to_owned()));
}

#[test]
fn what_is_free_until_then_is_anybodys_that_ends_in_time() {
    let [first, second] = pair(10, 1, 1, 60);
    let world = with_all(World::nodes(2, 0).with(running(1, &[1], 30)), [first, second]);
    let mut world = world.with(pending(20, shape(1, 16), 30, at(-1))).with(pending(21, shape(1, 16), 31, at(-1)));
    let plan = world.plan();
    assert_eq!(started(&plan).keys().copied().collect::<Vec<_>>(), [20]);
    assert_eq!(planned(&plan, 10), Some(at(30)));
    assert_eq!(planned(&plan, 21), Some(at(90)), "behind the planned components");
}

#[test]
fn nobody_ahead_is_delayed() {
    // The head needs both nodes from 12:30 on; the components would end at 13:00.
    let head = job(5, shape(2, 16), 60);
    let mut world = with_all(World::nodes(2, 0).with(running(1, &[1], 30)).with(head), pair(10, 1, 1, 60));
    let plan = world.plan();
    assert_eq!((planned(&plan, 5), planned(&plan, 10), planned(&plan, 11)), (Some(at(30)), Some(at(90)), Some(at(90))));
}

#[test]
fn whoever_has_less_to_choose_from_is_placed_first() {
    // Component 0 takes any node, component 1 only n1, which comes first of all.
    let [first, second] = pair(1, 1, 1, 60);
    let starts = started(&with_all(World::nodes(2, 0), [first, on("n1", second)]).plan());
    assert_eq!((starts[&1].as_slice(), starts[&2].as_slice()), (["n2".to_owned()].as_slice(), ["n1".to_owned()].as_slice()));
}

#[test]
fn components_that_need_the_same_node_never_fit() {
    let both = pair(1, 1, 1, 60).map(|job| on("n1", job));
    let plan = with_all(World::nodes(2, 0), both).plan();
    assert!(plan.starts.is_empty());
    assert_eq!((planned(&plan, 1), planned(&plan, 2)), (None, None));
    // And they keep nothing from others.
    let both = pair(1, 1, 1, 60).map(|job| on("n1", job));
    let plan = with_all(World::nodes(2, 0), both).with(job(9, shape(2, 16), 60)).plan();
    assert_eq!(started(&plan).keys().copied().collect::<Vec<_>>(), [9]);
}

#[test]
fn what_holds_one_holds_all() {
    let [first, second] = pair(1, 1, 1, 60);
    let held = JobSnapshot { hold: Some(Hold::User), ..second.clone() };
    let plan = with_all(World::nodes(2, 0), [first.clone(), held]).plan();
    assert!(plan.starts.is_empty());
    assert_eq!(told(&plan, 1), [("held_user".to_owned(), Some(1))]);
    // Of two that hold it, the one that nothing clears binds first.
    let early = JobSnapshot { not_before: Some(at(10)), ..first.clone() };
    let held = JobSnapshot { hold: Some(Hold::User), ..second.clone() };
    let plan = with_all(World::nodes(2, 0), [early, held]).plan();
    assert_eq!(told(&plan, 2), [("held_user".to_owned(), Some(1)), ("begin_time".to_owned(), Some(0))]);
    let large = JobSnapshot { shape: shape(3, 16), ..second };
    let plan = with_all(World::nodes(2, 0), [first, large]).plan();
    assert_eq!(told(&plan, 1)[0].1, Some(1), "{:?}", told(&plan, 1));
    assert!(plan.starts.is_empty());
}

#[test]
fn a_component_that_is_not_there_yet_is_waited_for() {
    let [first, second] = pair(1, 1, 1, 60);
    let mut world = World::nodes(2, 0).with(first);
    let plan = world.plan();
    assert!(plan.starts.is_empty());
    assert_eq!(told(&plan, 1), [("component".to_owned(), Some(1))]);
    assert_eq!(started(&world.with(second).plan()).len(), 2);
}

#[test]
fn each_counts_for_limits() {
    let limited = |most: u32| {
        let mut world = with_all(World::nodes(3, 0), pair(1, 1, 1, 60));
        let mut high = Qos::named(name("normal"));
        high.max_jobs_per_user = Some(most);
        world.0.apply(Event::Qos(high));
        world.plan()
    };
    let plan = limited(1);
    assert!(plan.starts.is_empty(), "two jobs are more than one");
    assert_eq!(told(&plan, 1).iter().map(|(_, component)| *component).collect::<Vec<_>>(), [Some(1)]);
    assert_eq!(started(&limited(2)).len(), 2);
}

#[test]
fn the_priority_is_the_leaders_or_as_the_policy_says() {
    // The leader is of the QOS normal, the other component of high; a rival stands between by its nice.
    let ranks = |mode: HetjobPriority| {
        let [first, second] = pair(10, 1, 1, 60);
        let second = JobSnapshot { qos: name("high"), ..second };
        let rival = JobSnapshot { qos: name("high"), nice: 7000, ..job(5, shape(2, 16), 60) };
        let mut world = with_all(World::nodes(2, 0).with(running(1, &[1, 2], 30)).with(rival), [first, second]);
        world.0.apply(Event::Policy(Policy { hetjob_priority: mode, ..Policy::default() }));
        let plan = world.plan();
        plan.verdicts.iter().map(|v| v.job.0).collect::<Vec<_>>()
    };
    assert_eq!(ranks(HetjobPriority::Leader), [5, 10, 11]);
    assert_eq!(ranks(HetjobPriority::Min), [5, 10, 11]);
    assert_eq!(ranks(HetjobPriority::Avg), [10, 11, 5], "half of 10000 is more than 3000");
    assert_eq!(ranks(HetjobPriority::Max), [10, 11, 5]);
}

#[test]
fn a_quick_plan_leaves_them_to_a_full_one_which_follows_at_once() {
    let mut world = World::nodes(2, 0);
    world.plan();
    for job in pair(1, 1, 1, 60) {
        world.0.apply(Event::Job(Box::new(job)));
    }
    let plan = world.0.quick_plan(at(0));
    assert!(plan.is_full);
    assert_eq!(started(&plan).len(), 2);
    // A planned start whose time has come is made for all.
    let mut world = with_all(World::nodes(2, 0).with(running(1, &[1], 30)), pair(10, 1, 1, 60));
    world.plan();
    world.0.apply(Event::JobGone(JobId(1)));
    let plan = world.0.quick_plan(at(30));
    assert_eq!(started(&plan).keys().copied().collect::<Vec<_>>(), [10, 11]);
}

#[test]
fn a_dry_run_says_what_the_plan_then_does() {
    let world = World::nodes(2, 0).with(running(1, &[1], 30));
    let [first, second] = pair(10, 1, 1, 60);
    let answer = world.0.dry_run_together(vec![first.clone(), second.clone()], at(0));
    let plan = with_all(world, [first, second]).plan();
    let verdict = plan.verdicts.iter().find(|v| v.job.0 == 10).unwrap();
    assert_eq!((answer.rank, answer.verdict.as_ref()), (1, Some(verdict)));
    let free = World::nodes(2, 0).0.dry_run_together(pair(10, 1, 1, 60).to_vec(), at(0));
    assert_eq!(free.planned_start(at(0)).unwrap().nodes, "n[1-2]");
}

#[test]
fn a_component_is_never_a_victim() {
    let held = |number: u32| held(number, 0..16, Bytes(64 * GIB), 0..0);
    let runs = |job: JobSnapshot, number: u32| JobSnapshot {
        state: berth_model::state::JobState::Running,
        attempt: Some(attempt(noon(), Charge::default(), vec![held(number)])),
        ..job
    };
    let mut world = World::nodes(2, 0);
    let policy = Policy { preempt_by: berth_model::preemption::PreemptBy::PartitionTier, ..Policy::default() };
    world.0.apply(Event::Policy(policy));
    world.0.apply(Event::Partition(Partition { priority_tier: 5, ..Partition::of_all_nodes(name("urgent")) }));
    let [first, second] = pair(1, 1, 1, 60);
    let urgent = JobSnapshot { partition: name("urgent"), ..job(9, shape(1, 16), 60) };
    let mut world = with_all(world, [runs(first, 1), runs(second, 2), urgent]);
    let plan = world.plan();
    assert!(plan.preemptions.is_empty());
    assert_eq!(planned(&plan, 9), Some(at(60)));
}

#[test]
fn a_singleton_does_not_wait_for_its_own_components() {
    let both = pair(1, 1, 1, 60).map(|job| JobSnapshot { name: "solo".to_owned(), is_singleton: true, ..job });
    assert_eq!(started(&with_all(World::nodes(2, 0), both).plan()).len(), 2);
}
