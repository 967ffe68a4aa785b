//! The planner's rules as stories: a small world, a plan, what starts and why the rest waits.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::Plan;
use berth_model::event::{ArrayProgress, Event, JobSnapshot, TaskOf};
use berth_model::policy::{Policy, QueueOrder, QueuePolicy};
use berth_model::resources::Shape;
use berth_model::state::{Hold, NodeFlag};
use berth_model::{JobId, NodeName};
use common::{GIB, World, at, first_code, gpus_per_node, job, name, node, planned, running, shape, verdict};
use proptest::prelude::*;

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|s| s.job.0).collect()
}

#[test]
fn a_short_job_fills_the_gap_before_the_big_one() {
    let mut world = World::nodes(4, 8)
        .with(running(1, &[1, 2, 3], 60))
        .with(job(2, shape(4, 16), 120))
        .with(job(3, shape(1, 16), 30))
        .with(job(4, shape(1, 16), 90));
    let plan = world.plan();
    assert_eq!(starts(&plan), [3]);
    assert_eq!(planned(&plan, 2), Some(at(60)));
    // It would not end before the big one's planned start.
    assert_eq!(planned(&plan, 4), Some(at(180)));
}

#[test]
fn a_job_that_ends_just_when_the_big_one_begins_does_not_delay_it() {
    let mut world = World::nodes(2, 8).with(running(1, &[1], 60)).with(job(2, shape(2, 16), 10)).with(job(3, shape(1, 16), 60));
    let plan = world.plan();
    assert_eq!(starts(&plan), [3]);
    assert_eq!(planned(&plan, 2), Some(at(60)));
}

#[test]
fn a_gang_starts_whole_or_not_at_all() {
    let mut world = World::nodes(3, 8).with(running(1, &[1], 60)).with(job(2, shape(3, 1), 10));
    let plan = world.plan();
    assert_eq!(starts(&plan), [0u64; 0]);
    assert_eq!(first_code(&plan, 2), "resources");
    assert_eq!(plan.verdicts[0].verdicts[0].holders, ["job/1"]);
}

#[test]
fn gpus_are_given_by_index_and_never_twice() {
    let mut world = World::nodes(1, 8).with(job(1, gpus_per_node(1, 3), 10)).with(job(2, gpus_per_node(1, 3), 10)).with(job(
        3,
        gpus_per_node(1, 3),
        10,
    ));
    let plan = world.plan();
    assert_eq!(starts(&plan), [1, 2]);
    let given: Vec<u32> = plan.starts.iter().flat_map(|s| s.nodes[0].gpus.clone()).collect();
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), 6, "{given:?}");
    assert_eq!(first_code(&plan, 3), "resources");
}

#[test]
fn a_faulty_gpu_is_not_given() {
    let mut sick = node(1, 2);
    sick.inventory.gpus[0].fault = Some("xid 79".to_owned());
    let mut world = World::nodes(0, 0);
    world.0.apply(Event::Node(Box::new(sick)));
    let mut world = world.with(job(1, gpus_per_node(1, 1), 10)).with(job(2, gpus_per_node(1, 2), 10));
    let plan = world.plan();
    assert_eq!(plan.starts[0].nodes[0].gpus, [1]);
    assert_eq!(first_code(&plan, 2), "shape_unsatisfiable");
}

#[test]
fn qos_goes_before_submission_order() {
    let mut world = World::nodes(1, 0).with(job(1, shape(1, 16), 10)).with(JobSnapshot { qos: name("high"), ..job(2, shape(1, 16), 10) });
    let plan = world.plan();
    assert_eq!(starts(&plan), [2]);
    assert_eq!(first_code(&plan, 1), "resources");
}

#[test]
fn each_cause_that_holds_a_job_is_named() {
    let held = JobSnapshot { hold: Some(Hold::User), not_before: Some(at(60)), ..job(1, shape(1, 1), 10) };
    let mut world = World::nodes(1, 0)
        .with(held)
        .with(JobSnapshot { partition: name("gone"), ..job(2, shape(1, 1), 10) })
        .with(job(3, shape(1, 99), 10))
        .with(job(4, shape(5, 1), 10))
        .with(JobSnapshot { constraint: Some(vec![BTreeSet::from(["nvlink".to_owned()])]), ..job(5, shape(1, 1), 10) });
    let plan = world.plan();
    let codes: Vec<&str> = plan.verdicts.iter().find(|v| v.job.0 == 1).unwrap().verdicts.iter().map(|v| v.code.as_str()).collect();
    assert_eq!(codes, ["held_user", "begin_time"]);
    assert_eq!(first_code(&plan, 2), "partition_down");
    assert_eq!(first_code(&plan, 3), "shape_unsatisfiable");
    assert_eq!(first_code(&plan, 5), "constraint_unsatisfiable");
    assert_eq!(starts(&plan), [0u64; 0]);
    assert!(plan.wake_at.is_some_and(|wake| wake <= at(60)));
}

#[test]
fn a_drained_node_is_named_with_its_reason() {
    let mut drained = node(1, 0);
    drained.flags.insert(NodeFlag::Drain);
    drained.reason = Some("bad fan".to_owned());
    let mut world = World::nodes(0, 0);
    world.0.apply(Event::Node(Box::new(drained)));
    let mut world = world.with(job(1, shape(1, 1), 10));
    let plan = world.plan();
    let verdict = &plan.verdicts[0].verdicts[0];
    assert_eq!((verdict.code.as_str(), verdict.object.as_str()), ("nodes_unavailable", "node/n1"));
    assert_eq!(verdict.have.as_deref(), Some("drained: bad fan"));
    world.0.apply(Event::Node(Box::new(node(1, 0))));
    assert_eq!(starts(&world.plan()), [1]);
}

#[test]
fn an_array_runs_as_many_tasks_as_its_throttle_says() {
    let array = ArrayProgress { pending: [0, 1, 2, 3].into_iter().collect(), running: 1, throttle: Some(3) };
    let mut world = World::nodes(1, 0).with(JobSnapshot { array: Some(array), ..job(1, shape(1, 1), 10) });
    let plan = world.plan();
    assert_eq!(plan.starts.iter().map(|s| s.array_index).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(first_code(&plan, 1), "array_throttle");
}

#[test]
fn a_node_that_is_given_back_goes_to_the_next_job_at_once() {
    let mut world = World::nodes(2, 0).with(running(1, &[1, 2], 60)).with(job(2, shape(1, 16), 10));
    let plan = world.plan();
    assert_eq!((starts(&plan), planned(&plan, 2)), (vec![], Some(at(60))));
    world.0.apply(Event::Job(Box::new(running(1, &[1], 60))));
    let plan = world.0.quick_plan(at(1));
    assert_eq!((starts(&plan), plan.is_full), (vec![2], false));
    assert_eq!(plan.starts[0].nodes[0].node.as_str(), "n2");
}

#[test]
fn a_refused_start_gives_its_nodes_back_and_a_confirmed_one_is_held_once() {
    let mut world = World::nodes(1, 0).with(job(1, shape(1, 16), 10)).with(job(2, shape(1, 16), 10));
    assert_eq!(starts(&world.plan()), [1]);
    assert_eq!(starts(&world.plan()), [0u64; 0], "unconfirmed starts hold their nodes");
    world.0.retract(JobId(1), None);
    world.0.apply(Event::JobGone(JobId(1)));
    assert_eq!(starts(&world.plan()), [2]);
    world.0.confirm(JobId(2), None);
    world.0.apply(Event::Job(Box::new(running(2, &[1], 10))));
    let mut world = world.with(job(3, shape(1, 16), 10));
    assert_eq!(starts(&world.plan()), [0u64; 0]);
    world.0.apply(Event::JobGone(JobId(2)));
    assert_eq!(starts(&world.plan()), [3]);
}

fn any_job(id: u64) -> impl Strategy<Value = JobSnapshot> {
    (1u32..4, 1u32..17, 0u32..9, 1u64..200, any::<bool>()).prop_map(move |(nodes, cpus, gpus, minutes, exclusive)| {
        let mut wanted = if gpus == 0 { shape(nodes, cpus) } else { Shape { cpus_per_task: cpus, ..gpus_per_node(nodes, gpus) } };
        wanted.exclusive = exclusive && cpus > 12;
        job(id, wanted, minutes)
    })
}

fn any_queue() -> impl Strategy<Value = Vec<JobSnapshot>> {
    (1u64..25).prop_flat_map(|n| (1..=n).map(any_job).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn nothing_is_given_twice_and_gangs_are_whole(queue in any_queue()) {
        let mut world = World::nodes(4, 8).with(running(1000, &[2], 30));
        for job in &queue {
            world.0.apply(Event::Job(Box::new(job.clone())));
        }
        let plan = world.plan();
        let mut cpus = BTreeSet::new();
        let mut gpus = BTreeSet::new();
        let mut memory = BTreeMap::<NodeName, u64>::new();
        for start in &plan.starts {
            let job = queue.iter().find(|j| j.id == start.job).unwrap();
            prop_assert_eq!(start.nodes.len() as u32, job.shape.min_nodes);
            for given in &start.nodes {
                prop_assert_ne!(given.node.as_str(), "n2");
                prop_assert!(given.cpus.len() as u32 >= job.shape.cpus_per_task);
                for cpu in &given.cpus {
                    prop_assert!(cpus.insert((given.node.clone(), *cpu)), "CPU given twice");
                }
                for gpu in &given.gpus {
                    prop_assert!(gpus.insert((given.node.clone(), *gpu)), "GPU given twice");
                }
                let held = memory.entry(given.node.clone()).or_default();
                *held += given.memory_bytes.0;
                prop_assert!(*held <= 64 * GIB, "memory given twice");
            }
        }
        let told: BTreeSet<JobId> = plan.verdicts.iter().map(|v| v.job).chain(plan.starts.iter().map(|s| s.job)).collect();
        prop_assert_eq!(told.len(), queue.len(), "every job starts or has a verdict");
    }

    #[test]
    fn the_same_events_give_the_same_plan(queue in any_queue()) {
        let build = || {
            let mut world = World::nodes(4, 8);
            for job in &queue {
                world.0.apply(Event::Job(Box::new(job.clone())));
            }
            world.plan()
        };
        prop_assert_eq!(build(), build());
    }

    #[test]
    fn later_jobs_never_delay_the_head(queue in any_queue()) {
        let head = job(0, shape(4, 16), 60);
        let mut alone = World::nodes(4, 8).with(running(1000, &[2], 30)).with(head.clone());
        let expected = planned(&alone.plan(), 0);
        let mut crowded = World::nodes(4, 8).with(running(1000, &[2], 30)).with(head);
        for job in &queue {
            crowded.0.apply(Event::Job(Box::new(job.clone())));
        }
        prop_assert_eq!(planned(&crowded.plan(), 0), expected);
    }
}

#[test]
fn the_policy_says_how_the_queue_is_walked() {
    let urgency = QueuePolicy { order: QueueOrder::Urgency, depth: Some(1), ..QueuePolicy::default() };
    let mut world = World::nodes(1, 8).with(running(1, &[1], 60)).with(job(2, shape(1, 16), 600)).with(job(3, shape(1, 16), 10));
    let told = |plan: &Plan| (planned(plan, 2), planned(plan, 3));
    assert_eq!(told(&world.plan()), (Some(at(60)), Some(at(660))));
    world.0.apply(Event::Policy(Policy { weight_age: 0, queue: Some(urgency), ..Policy::default() }));
    assert_eq!(told(&world.plan()), (None, Some(at(60))), "the short one is more urgent, and only the head has a planned start");
    assert!(world.0.quick_plan(at(1)).is_full, "quick plans go by submission");
    world.0.apply(Event::Policy(Policy::default()));
    assert_eq!(told(&world.plan()), (Some(at(60)), Some(at(660))));
}

#[test]
fn tasks_with_numbers_of_their_own_count_against_the_throttle() {
    let own = |job: JobSnapshot| {
        let task_of = Some(TaskOf { array: JobId(9), index: job.id.0 as u32 - 1, throttle: Some(2) });
        JobSnapshot { task_of, submit_time: at(-60), accrues_since: Some(at(-60)), ..job }
    };
    let waits = |id| own(job(id, shape(1, 1), 60));
    // One of the two places is left: the least index gets it, whether it waits in the array (5, 6 and 7) or by itself.
    let array = |running| {
        let progress = ArrayProgress { pending: [5, 6, 7].into_iter().collect(), running, throttle: Some(2) };
        JobSnapshot { array: Some(progress), submit_time: at(-60), accrues_since: Some(at(-60)), ..job(9, shape(1, 1), 60) }
    };
    let mut world = World::nodes(4, 0).with(own(running(1, &[1], 60))).with(waits(2)).with(waits(3)).with(array(1)).with(waits(10));
    let plan = world.plan();
    assert_eq!(plan.starts.iter().map(|start| (start.job.0, start.array_index)).collect::<Vec<_>>(), [(2, None)]);
    // Not confirmed yet, it counts all the same; and everybody hears of the array.
    let plan = world.0.plan(at(1));
    assert!(plan.starts.is_empty(), "{:?}", plan.starts);
    for waiting in [3, 9, 10] {
        assert_eq!((first_code(&plan, waiting), verdict(&plan, waiting).object.as_str()), ("array_throttle", "job/9"));
    }
    // When nothing of the array waits any more, its tasks know the throttle themselves.
    let mut world = World::nodes(4, 0).with(own(running(1, &[1], 60))).with(own(running(2, &[2], 60))).with(waits(3));
    assert_eq!((world.plan().starts.len(), first_code(&world.0.plan(at(1)), 3)), (0, "array_throttle"));
    world.0.apply(Event::JobGone(JobId(1)));
    assert_eq!(world.0.plan(at(2)).starts.len(), 1);
}
