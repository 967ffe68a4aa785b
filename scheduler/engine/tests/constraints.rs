//! Constraints as stories: features of each node, the same of all nodes, of so many nodes, and those that are preferred.

mod common;

use std::collections::BTreeSet;

use berth_engine::Plan;
use berth_model::event::{Event, JobSnapshot};
use berth_model::validate::preferred;
use berth_model::{JobId, NodeName};
use common::{World, at, job, node, planned, running, shape, verdict};

/// Nodes n1, n2, … with these features.
fn world(features: &[&str]) -> World {
    let mut world = World::nodes(0, 0);
    for (number, features) in (1..).zip(features) {
        let mut node = node(number, 0);
        node.features = features.split_whitespace().map(str::to_owned).collect();
        world.0.apply(Event::Node(Box::new(node)));
    }
    world
}

fn on(constraint: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { choices: preferred(None, Some(constraint)).unwrap(), ..job }
}

fn preferring(prefer: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { choices: preferred(Some(prefer), None).unwrap(), ..job }
}

/// Where a job starts: `n1+n2`.
fn placed(plan: &Plan, id: u64) -> String {
    let start = plan.starts.iter().find(|start| start.job == JobId(id)).expect("it starts");
    start.nodes.iter().map(|held| held.node.as_str()).collect::<Vec<_>>().join("+")
}

#[test]
fn all_nodes_share_the_same_one_of_several() {
    let racks = ["rack1", "rack2", "rack1", "rack2", "rack2"];
    let plan = world(&racks).with(on("[rack1|rack2]", job(1, shape(3, 1), 30))).plan();
    assert_eq!(placed(&plan, 1), "n2+n4+n5", "rack1 has only two");
    let plan = world(&racks).with(on("rack1|rack2", job(1, shape(3, 1), 30))).plan();
    assert_eq!(placed(&plan, 1), "n1+n2+n3", "without brackets each node has either");
    // The rack that is free first: rack1 in half an hour, rack2 in an hour.
    let mut world = world(&racks)
        .with(running(1, &[4], 60))
        .with(running(2, &[1], 30))
        .with(on("[rack1|rack2]&(rack1|rack2)", job(3, shape(2, 1), 30)));
    assert_eq!(placed(&world.plan(), 3), "n2+n5");
    world.0.apply(Event::Job(Box::new(on("[rack1|rack2]", job(4, shape(2, 16), 30)))));
    assert_eq!(planned(&world.plan(), 4), Some(at(30)));
}

#[test]
fn so_many_nodes_of_each() {
    let racks = ["rack1", "rack1", "rack1", "rack2", "rack2"];
    let plan = world(&racks).with(on("[rack1*2&rack2*2]", job(1, shape(4, 1), 30))).plan();
    assert_eq!(placed(&plan, 1), "n1+n2+n4+n5");
    let plan = world(&racks).with(on("rack2*1", job(1, shape(3, 1), 30))).plan();
    assert_eq!(placed(&plan, 1), "n1+n2+n4", "the others are any");
    let plan = world(&["a", "a b", "a"]).with(on("[a*2&b*1]", job(1, shape(3, 1), 30))).plan();
    assert_eq!(placed(&plan, 1), "n1+n2+n3", "a node counts once, wherever it is needed");
    // One of rack2 is in use: it is waited for, though rack1 has enough nodes.
    let mut world = world(&racks).with(running(1, &[5], 60)).with(on("[rack1*1&rack2*2]", job(2, shape(3, 1), 30)));
    assert_eq!(planned(&world.plan(), 2), Some(at(60)));
    world.0.apply(Event::JobGone(JobId(1)));
    let plan = world.0.quick_plan(at(1));
    assert_eq!(placed(&plan, 2), "n1+n4+n5");
}

#[test]
fn required_nodes_leave_room_for_what_is_counted() {
    let need = |names: &[&str], job: JobSnapshot| JobSnapshot {
        required_nodes: names.iter().map(|name| NodeName::new(*name).unwrap()).collect::<BTreeSet<_>>(),
        ..job
    };
    let racks = ["rack1", "rack1", "rack2", "rack2"];
    let plan = world(&racks).with(need(&["n2"], on("[rack1*1&rack2*1]", job(1, shape(2, 1), 30)))).plan();
    assert_eq!(placed(&plan, 1), "n2+n3");
    let plan = world(&racks).with(need(&["n1", "n2"], on("[rack1*1&rack2*1]", job(1, shape(2, 1), 30)))).plan();
    assert!(plan.starts.is_empty(), "two of rack1 leave no room for one of rack2");
}

#[test]
fn what_is_preferred_is_taken_if_it_costs_no_time() {
    let mut world = world(&["ib", "", "ib"]).with(preferring("ib", job(1, shape(2, 16), 60)));
    let plan = world.plan();
    assert_eq!(placed(&plan, 1), "n1+n3");
    world.0.apply(Event::Job(Box::new(preferring("ib", job(2, shape(1, 1), 30)))));
    assert_eq!(placed(&world.0.quick_plan(at(0)), 2), "n2", "those with it are busy");
    // Later as sooner: of equal planned starts the preferred one.
    let mut world = self::world(&["", "ib"]).with(running(1, &[1, 2], 60)).with(preferring("ib", job(2, shape(1, 1), 30)));
    let plan = world.plan();
    let told = &plan.verdicts[0];
    assert_eq!(told.planned_start.as_ref().map(|start| start.nodes.as_str()), Some("n2"));
}

#[test]
fn a_verdict_names_the_part_that_no_node_meets() {
    let have = |constraint: &str, nodes: u32| {
        let plan = world(&["a", "a b", "c"]).with(on(constraint, job(1, shape(nodes, 1), 30))).plan();
        let verdict = verdict(&plan, 1);
        assert_eq!((verdict.code.as_str(), verdict.object.as_str()), ("constraint_unsatisfiable", "partition/main"));
        verdict.have.clone().unwrap()
    };
    assert_eq!(have("[roce|a&roce]", 1), "no node has roce");
    assert_eq!(have("[b&c|z]", 1), "no node has b&c, no node has z");
    assert_eq!(have("[a*1&b*2]", 3), "1 node of b");
    assert_eq!(have("[a*1&z*1]", 2), "no node has z");
    assert_eq!(have("[a|c]", 3), "2 matching nodes");
}
