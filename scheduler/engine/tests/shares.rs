//! Shares of GPUs: who joins whom, what whole GPUs are left, and what everybody hears.

mod common;

use berth_engine::Plan;
use berth_model::JobId;
use berth_model::event::{Event, JobSnapshot};
use berth_model::gres::{DeclaredShares, SharedGpu};
use berth_model::node::Node;
use berth_model::policy::Qos;
use berth_model::resources::{GpuDemand, Shape};
use berth_model::state::JobState;
use berth_model::tres::{Tres, TresCounts};
use common::{World, at, attempt, first_code, gpus_per_node, job, name, node, noon, planned, shape, verdict};

/// `n1`, `n2`, … with GPUs that are shared as declared.
fn world(count: u32, gpus: u32, declared: &[&str]) -> World {
    let mut world = World::nodes(0, 0);
    (1..=count).for_each(|number| world.0.apply(Event::Node(Box::new(sharing(node(number, gpus), declared)))));
    world
}

fn sharing(mut node: Node, declared: &[&str]) -> Node {
    for text in declared {
        let shares: DeclaredShares = text.parse().unwrap();
        node.inventory.gpu_shares.insert(shares.of, shares.over(&node.inventory.gpus).unwrap());
    }
    node
}

fn asks(id: u64, text: &str, minutes: u64) -> JobSnapshot {
    job(id, Shape { gpus: GpuDemand::Share(text.parse().unwrap()), ..shape(1, 1) }, minutes)
}

fn whole(id: u64, gpus: u32, minutes: u64) -> JobSnapshot {
    job(id, gpus_per_node(1, gpus), minutes)
}

/// Job, node, GPUs and share of each start.
fn starts(plan: &Plan) -> Vec<(u64, String, Vec<u32>, Option<String>)> {
    let parts = plan.starts.iter().flat_map(|start| start.nodes.iter().map(move |part| (start.job.0, part)));
    parts.map(|(job, part)| (job, part.node.to_string(), part.gpus.clone(), part.share.as_ref().map(SharedGpu::to_string))).collect()
}

/// The GPUs that jobs start on, by job; all on one node.
fn gpus(plan: &Plan) -> Vec<(u64, Vec<u32>)> {
    starts(plan).into_iter().map(|(job, _, gpus, _)| (job, gpus)).collect()
}

/// Starts what a plan starts.
fn begin(world: &mut World, plan: &Plan, jobs: &[JobSnapshot], minute: i64) {
    for start in &plan.starts {
        let job = jobs.iter().find(|job| job.id == start.job).unwrap();
        let attempt = attempt(at(minute), start.charge.clone(), start.nodes.clone());
        world.0.confirm(start.job, None);
        world.0.apply(Event::Job(Box::new(JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..job.clone() })));
    }
}

#[test]
fn sixty_four_shards_on_eight_gpus_are_eight_on_each() {
    let mut world = world(1, 8, &["shard:64"]).with(asks(1, "shard:8", 60)).with(asks(2, "shard:9", 60)).with(asks(3, "mps:1", 60));
    let plan = world.plan();
    assert_eq!(starts(&plan), [(1, "n1".to_owned(), vec![0], Some("shard:8".to_owned()))]);
    assert_eq!((first_code(&plan, 2), first_code(&plan, 3)), ("shape_unsatisfiable", "shape_unsatisfiable"));
    assert!(verdict(&plan, 2).need.as_deref().unwrap().ends_with("shard:9 of one GPU a node"), "{:?}", verdict(&plan, 2));
    assert!(verdict(&plan, 2).have.as_deref().unwrap().ends_with("8 GPUs, each of up to 8 shards"), "{:?}", verdict(&plan, 2));
}

#[test]
fn shares_join_the_fullest_gpu_that_holds_them() {
    let asked = ["shard:5", "shard:4", "shard:3", "shard:4", "shard:1"];
    let mut world = world(1, 4, &["shard:32"]);
    for (id, text) in (1..).zip(asked) {
        world = world.with(asks(id, text, 60));
    }
    let plan = world.plan();
    assert_eq!(gpus(&plan), [(1, vec![0]), (2, vec![1]), (3, vec![0]), (4, vec![1]), (5, vec![2])]);
    // Each holds, and is charged for, its shares; the GPU is nobody's as a whole.
    assert_eq!(plan.starts[0].charge.tres[&Tres::Shard], 5);
    assert!(!plan.starts[0].charge.tres.contains_key(&Tres::Gpu));
}

#[test]
fn a_gpu_is_whole_or_shared_in_one_way() {
    // One GPU: of these, whoever comes later waits for the last of those before.
    for (first, second, third) in [
        (asks(1, "shard:2", 60), whole(2, 1, 10), asks(3, "shard:8", 10)),
        (whole(1, 1, 60), asks(2, "shard:8", 10), whole(3, 1, 10)),
        (asks(1, "shard:2", 60), asks(2, "mps:10", 10), whole(3, 1, 10)),
    ] {
        let mut world = world(1, 1, &["shard:8", "mps:100"]).with(first).with(second).with(third);
        let plan = world.plan();
        assert_eq!(gpus(&plan), [(1, vec![0])]);
        assert_eq!((planned(&plan, 2), planned(&plan, 3)), (Some(at(60)), Some(at(70))));
        assert_eq!(first_code(&plan, 2), "resources");
    }
}

#[test]
fn a_share_that_would_keep_a_gpu_open_into_somebodys_plan_does_not_join() {
    let mut world = world(1, 1, &["shard:8"])
        .with(asks(1, "shard:2", 60))
        .with(whole(2, 1, 60))
        .with(asks(3, "shard:2", 61))
        .with(asks(4, "shard:2", 60))
        .with(asks(5, "shard:2", 10));
    let plan = world.plan();
    assert_eq!(gpus(&plan), [(1, vec![0]), (4, vec![0]), (5, vec![0])]);
    assert_eq!((planned(&plan, 2), planned(&plan, 3)), (Some(at(60)), Some(at(120))));
}

#[test]
fn what_is_planned_is_shared_as_what_runs_is() {
    let jobs = [whole(1, 1, 60), asks(2, "shard:4", 60), asks(3, "shard:4", 30), asks(4, "shard:4", 30), whole(5, 1, 30)];
    let mut world = world(1, 1, &["shard:8"]);
    for job in &jobs {
        world = world.with(job.clone());
    }
    let plan = world.plan();
    assert_eq!(gpus(&plan), [(1, vec![0])]);
    let times: Vec<_> = (2..=5).map(|id| planned(&plan, id)).collect();
    assert_eq!(times, [Some(at(60)), Some(at(60)), Some(at(90)), Some(at(120))]);
    // It ends sooner: a quick plan starts both together, and the third joins at their first end.
    begin(&mut world, &plan, &jobs, 0);
    world.0.apply(Event::JobGone(JobId(1)));
    let plan = world.0.quick_plan(at(10));
    assert!(!plan.is_full);
    assert_eq!(gpus(&plan), [(2, vec![0]), (3, vec![0])]);
    begin(&mut world, &plan, &jobs, 10);
    world.0.apply(Event::JobGone(JobId(3)));
    let plan = world.0.quick_plan(at(20));
    assert_eq!(gpus(&plan), [(4, vec![0])]);
}

#[test]
fn the_last_to_leave_has_the_gpu() {
    // Two share until 13:00 and 12:30; the first one ends at once, then the other is the one.
    let jobs = [asks(1, "shard:4", 60), asks(2, "shard:4", 30), whole(3, 1, 10)];
    let mut world = world(1, 1, &["shard:8"]);
    for job in &jobs {
        world = world.with(job.clone());
    }
    let plan = world.plan();
    begin(&mut world, &plan, &jobs, 0);
    assert_eq!(planned(&plan, 3), Some(at(60)));
    world.0.apply(Event::JobGone(JobId(1)));
    assert_eq!(planned(&world.0.plan(at(5)), 3), Some(at(30)));
    world.0.apply(Event::JobGone(JobId(2)));
    assert_eq!(gpus(&world.0.plan(at(6))), [(3, vec![0])]);
}

#[test]
fn gpus_of_different_counts_are_shared_as_the_smallest() {
    let mut world = world(1, 4, &["mps:1300+1200+1100+1000"]).with(asks(1, "mps:1001", 60));
    for id in 2..=7 {
        world = world.with(asks(id, "mps:200", 60));
    }
    let plan = world.plan();
    assert_eq!(first_code(&plan, 1), "shape_unsatisfiable");
    assert_eq!(gpus(&plan), [(2, vec![0]), (3, vec![0]), (4, vec![0]), (5, vec![0]), (6, vec![0]), (7, vec![1])]);
}

#[test]
fn a_gang_has_a_share_on_each_node_and_goes_where_gpus_are_open() {
    let gang = Shape { gpus: GpuDemand::Share("shard:4".parse().unwrap()), ..shape(2, 1) };
    let wants_n2 = JobSnapshot { required_nodes: [node(2, 0).name].into(), ..asks(1, "shard:4", 60) };
    let mut world = world(3, 2, &["shard:16"]).with(wants_n2).with(job(2, gang, 60)).with(asks(3, "shard:h100:4", 60)).with(asks(
        4,
        "shard:a100:1",
        60,
    ));
    let plan = world.plan();
    let where_to: Vec<_> = starts(&plan).into_iter().map(|(job, node, gpus, _)| (job, node, gpus)).collect();
    let on = |job: u64, node: &str, gpu: u32| (job, node.to_owned(), vec![gpu]);
    assert_eq!(where_to, [on(1, "n2", 0), on(2, "n1", 0), on(2, "n2", 0), on(3, "n1", 0)]);
    assert_eq!(plan.starts[1].charge.tres[&Tres::Shard], 8);
    assert_eq!(first_code(&plan, 4), "shape_unsatisfiable");
}

#[test]
fn shares_are_counted_for_limits() {
    let mut world = world(1, 2, &["shard:16"]);
    let mut qos = Qos { priority: 0, ..Qos::named(name("normal")) };
    qos.limits.grp_tres = TresCounts::from([(Tres::Shard, 6)]);
    world.0.apply(Event::Qos(qos));
    let plan = world.with(asks(1, "shard:4", 60)).with(asks(2, "shard:3", 60)).with(asks(3, "shard:2", 60)).plan();
    assert_eq!(gpus(&plan), [(1, vec![0]), (3, vec![0])]);
    assert!(verdict(&plan, 2).have.as_deref().unwrap().contains("4 of 6 gres/shard"), "{:?}", verdict(&plan, 2));
}

#[test]
fn a_users_own_nodes_are_not_shared_by_gpu() {
    let alone = |id| JobSnapshot { shape: Shape { exclusive_user: true, ..asks(id, "shard:2", 60).shape }, ..asks(id, "shard:2", 60) };
    let plan = world(1, 2, &["shard:16"]).with(alone(1)).with(alone(2)).with(asks(3, "shard:1", 10)).plan();
    assert_eq!(gpus(&plan), [(1, vec![0]), (2, vec![1])]);
    assert_eq!(planned(&plan, 3), Some(at(60)));
}

#[test]
fn a_gpu_at_fault_is_not_shared() {
    let mut broken = sharing(node(1, 2), &["shard:16"]);
    broken.inventory.gpus[0].fault = Some("lost".to_owned());
    let mut world = World::nodes(0, 0);
    world.0.apply(Event::Node(Box::new(broken)));
    let plan = world.with(asks(1, "shard:5", 60)).with(asks(2, "shard:5", 60)).plan();
    assert_eq!(gpus(&plan), [(1, vec![1])]);
    assert_eq!((planned(&plan, 2), noon()), (Some(at(60)), at(0)));
}
