//! Jobs that share their nodes with none but their user's own: what starts where, what waits, and what everybody hears.

mod common;

use berth_model::Bytes;
use berth_model::event::{Event, JobSnapshot};
use berth_model::resources::{MemoryDemand, Shape, Sockets};
use berth_model::tres::Tres;
use common::{GIB, World, at, first_code, gpus_per_node, job, name, node, planned, running, shape, verdict};

fn alone(id: u64, cpus: u32, minutes: u64) -> JobSnapshot {
    job(id, Shape { exclusive_user: true, ..shape(1, cpus) }, minutes)
}

fn of(user: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { user: name(user), ..job }
}

/// Job and node of each start.
fn starts(plan: &berth_engine::Plan) -> Vec<(u64, String)> {
    plan.starts.iter().flat_map(|start| start.nodes.iter().map(|node| (start.job.0, node.node.to_string()))).collect()
}

#[test]
fn a_users_jobs_share_a_node_and_keep_strangers_off() {
    let mut world = World::nodes(2, 8)
        .with(alone(1, 4, 60))
        .with(alone(2, 4, 60))
        .with(of("bob", job(3, shape(1, 1), 60)))
        .with(of("bob", job(4, shape(2, 1), 30)))
        .with(of("bob", alone(5, 1, 10)));
    let plan = world.plan();
    assert_eq!(starts(&plan), [(1, "n1".into()), (2, "n1".into()), (3, "n2".into())]);
    // Each holds, and is charged for, what it asked for.
    assert_eq!(plan.starts[0].nodes[0].cpus.len(), 4);
    assert_eq!(plan.starts[0].charge.tres[&Tres::Cpu], 4);
    // Two nodes are free of strangers in an hour; a node that is shared with nobody, too, and the gang is in the way.
    assert_eq!(planned(&plan, 4), Some(at(60)));
    assert_eq!(planned(&plan, 5), Some(at(90)));
    assert_eq!(first_code(&plan, 5), "resources");
    assert!(verdict(&plan, 5).need.as_deref().unwrap().ends_with("nodes shared with no other user"));
    assert!(verdict(&plan, 4).have.as_deref().unwrap().contains("1 node for one user's jobs alone"), "{:?}", verdict(&plan, 4));
}

#[test]
fn the_users_other_jobs_and_others_of_the_name_elsewhere_are_strangers() {
    let other_tenant = JobSnapshot { tenant: name("beta"), ..alone(3, 1, 30) };
    let mut world = World::nodes(1, 8).with(alone(1, 4, 60)).with(job(2, shape(1, 1), 30)).with(other_tenant);
    let plan = world.plan();
    assert_eq!(starts(&plan), [(1, "n1".into())]);
    assert_eq!((planned(&plan, 2), planned(&plan, 3)), (Some(at(60)), Some(at(90))));
}

#[test]
fn what_is_planned_is_shared_as_what_runs_is() {
    // The node is busy until 13:00; then both of ann's go there together, and bob behind them.
    let mut world =
        World::nodes(1, 8).with(running(9, &[1], 60)).with(alone(1, 4, 60)).with(alone(2, 12, 30)).with(of("bob", alone(3, 1, 10)));
    let plan = world.plan();
    assert_eq!((planned(&plan, 1), planned(&plan, 2), planned(&plan, 3)), (Some(at(60)), Some(at(60)), Some(at(120))));
    world.0.apply(Event::JobGone(berth_model::JobId(9)));
    let plan = world.0.quick_plan(at(10));
    assert!(!plan.is_full);
    assert_eq!(starts(&plan), [(1, "n1".into()), (2, "n1".into())]);
}

#[test]
fn room_is_what_the_users_own_leave() {
    let mut world = World::nodes(1, 8).with(alone(1, 12, 60)).with(alone(2, 8, 30)).with(alone(3, 4, 30));
    let plan = world.plan();
    assert_eq!(starts(&plan), [(1, "n1".into()), (3, "n1".into())]);
    assert_eq!(planned(&plan, 2), Some(at(60)));
}

#[test]
fn gangs_go_where_their_own_are_first() {
    let gang = Shape { exclusive_user: true, ..gpus_per_node(2, 2) };
    let mut world = World::nodes(4, 8).with(of("bob", job(1, shape(1, 1), 60))).with(alone(2, 1, 60)).with(job(3, gang, 60));
    assert_eq!(starts(&world.plan()), [(1, "n1".into()), (2, "n2".into()), (3, "n2".into()), (3, "n3".into())]);
}

#[test]
fn whole_nodes_have_all_cpus_and_gpus_and_the_memory_that_was_asked_for() {
    // The shape's least, and what a node of 16 CPUs, 64 GiB and 8 GPUs gives of memory, in GiB.
    for (memory, gib) in [
        (MemoryDemand::WholeNode, 64),
        (MemoryDemand::PerNode(Bytes(10 * GIB)), 10),
        (MemoryDemand::PerCpu(Bytes(2 * GIB)), 32),
        (MemoryDemand::PerCpu(Bytes(5 * GIB)), 64),
    ] {
        let mut world = World::nodes(1, 8).with(job(1, Shape { exclusive: true, memory, ..shape(1, 1) }, 60)).with(job(2, shape(1, 1), 5));
        let plan = world.plan();
        let given = &plan.starts[0].nodes[0];
        assert_eq!((given.cpus.len(), given.gpus.len(), given.memory_bytes), (16, 8, Bytes(gib * GIB)), "{memory:?}");
        assert_eq!(plan.starts[0].charge.tres[&Tres::Mem], gib * 1024);
        assert_eq!(planned(&plan, 2), Some(at(60)));
    }
}

#[test]
fn nodes_have_the_sockets_and_cores_that_were_asked_for() {
    // Nodes here have two sockets of eight cores; the third has one of sixteen, and the fourth two of four with two threads each.
    for (sockets, starts_on) in [
        (Sockets { count: 2, cores: 0 }, Some("n1")),
        (Sockets { count: 2, cores: 8 }, Some("n1")),
        (Sockets { count: 0, cores: 9 }, Some("n3")),
        (Sockets { count: 2, cores: 9 }, None),
    ] {
        let mut world = World::nodes(2, 8);
        for (number, inventory) in [(3, (1, 1)), (4, (2, 2))] {
            let mut other = node(number, 8);
            (other.inventory.sockets, other.inventory.threads_per_core) = inventory;
            world.0.apply(Event::Node(Box::new(other)));
        }
        let mut world = world.with(job(1, Shape { sockets, ..shape(1, 1) }, 60));
        let plan = world.plan();
        assert_eq!(starts(&plan).first().map(|(_, node)| node.as_str()), starts_on, "{sockets:?}");
        if starts_on.is_none() {
            assert_eq!(first_code(&plan, 1), "shape_unsatisfiable");
            assert!(verdict(&plan, 1).need.as_deref().unwrap().ends_with("2 sockets at least of 9 cores at least"));
        }
    }
}
