//! Reservations as stories: who starts where and when, and what the others hear. Times and limits are those of Slurm's manual
//! (reservations.html) where it has examples.

mod common;

use std::collections::BTreeSet;

use berth_engine::Plan;
use berth_model::JobId;
use berth_model::event::{ArrayProgress, Event, JobSnapshot, RunningAttempt};
use berth_model::policy::{Policy, Qos};
use berth_model::preemption::{PreemptBy, PreemptMode};
use berth_model::reservation::Reservation;
use berth_model::resources::Shape;
use common::{GIB, World, at, first_code, gpus_per_node, job, name, planned, running, shape, verdict};
use serde_json::{Value, json};

/// Where each start goes, and in which reservation: `2:n1@r`.
fn placed(plan: &Plan) -> Vec<String> {
    let place = |start: &berth_engine::Start| {
        let nodes: Vec<&str> = start.nodes.iter().map(|held| held.node.as_str()).collect();
        let reservation = start.reservation.as_ref().map(|name| format!("@{name}")).unwrap_or_default();
        format!("{}:{}{reservation}", start.job, nodes.join("+"))
    };
    plan.starts.iter().map(place).collect()
}

/// A reservation of `nodes` for acme, from and until so many minutes after noon, with other fields.
fn reservation(name: &str, nodes: &str, from: i64, until: i64, more: Value) -> Reservation {
    let mut value = json!({
        "name": name, "windows": [{ "start": at(from), "end": at(until) }], "parts": [{ "nodes": nodes }], "access": { "tenants": ["acme"] },
    });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

/// The job names these.
fn within(names: &[&str], job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { reservations: names.iter().map(|text| name(text)).collect(), ..job }
}

fn by(tenant: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { tenant: name(tenant), ..job }
}

#[test]
fn outside_jobs_end_before_it_begins() {
    // Noon to one o'clock, and now is half an hour before: 30 minutes fit, 31 do not.
    let mut world = World::nodes(1, 0)
        .reserved([reservation("noon", "n1", 30, 90, json!({ "is_maintenance": true, "access": {} }))])
        .with(job(1, shape(1, 8), 30))
        .with(job(2, shape(1, 8), 31));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["1:n1"]);
    let verdict = verdict(&plan, 2);
    assert_eq!((verdict.code.as_str(), verdict.object.as_str(), verdict.clears_at), ("reserved", "reservation/noon", Some(at(90))));
    assert_eq!(verdict.have.as_deref(), Some("noon keeps nodes from 2026-01-01T12:30:00Z until 2026-01-01T13:30:00Z"));
    assert_eq!(verdict.holders, ["reservation/noon"]);
    assert!(verdict.advice.as_deref().unwrap().contains("a time limit of 00:30:00 or less"), "{verdict:?}");
    assert_eq!(planned(&plan, 2), Some(at(90)));
    assert_eq!(plan.wake_at, Some(at(30)));
}

#[test]
fn its_jobs_start_in_it_and_end_in_it() {
    let mut world = World::nodes(2, 0)
        .reserved([reservation("r", "n1", -10, 60, json!({}))])
        .with(within(&["r"], job(1, shape(1, 16), 40)))
        .with(within(&["r"], job(2, shape(1, 16), 20)))
        .with(within(&["r"], job(3, shape(1, 1), 61)))
        .with(within(&["r"], job(4, shape(2, 1), 10)));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["1:n1@r"]);
    assert_eq!((first_code(&plan, 2), planned(&plan, 2)), ("reservation_nodes_busy", Some(at(40))));
    assert_eq!(verdict(&plan, 2).clears_at, Some(at(40)));
    assert_eq!((first_code(&plan, 3), planned(&plan, 3)), ("reservation_too_short", None));
    assert_eq!(verdict(&plan, 3).need.as_deref(), Some("01:01:00"));
    // Two nodes are not there, though the other one is free.
    assert_eq!((first_code(&plan, 4), verdict(&plan, 4).object.as_str()), ("constraint_unsatisfiable", "reservation/r"));
}

#[test]
fn one_to_come_is_waited_for() {
    let mut world =
        World::nodes(1, 0).reserved([reservation("r", "n1", 60, 120, json!({}))]).with(within(&["r"], job(1, shape(1, 16), 60)));
    let plan = world.plan();
    assert_eq!(
        (first_code(&plan, 1), planned(&plan, 1), verdict(&plan, 1).clears_at),
        ("reservation_not_started", Some(at(60)), Some(at(60)))
    );
    // A quick plan at its beginning starts it, on time.
    assert_eq!(placed(&world.0.quick_plan(at(59))), [""; 0]);
    assert_eq!(placed(&world.0.quick_plan(at(60))), ["1:n1@r"]);
}

#[test]
fn whoever_may_not_use_it_hears_so() {
    let mut world = World::nodes(1, 0)
        .reserved([reservation("r", "n1", 0, 60, json!({})), reservation("old", "n1", -60, -10, json!({}))])
        .with(within(&["r"], by("beta", job(1, shape(1, 1), 10))))
        .with(within(&["gone"], job(2, shape(1, 1), 10)))
        .with(within(&["old"], job(3, shape(1, 1), 10)))
        .with(within(&["gone", "r"], job(4, shape(1, 1), 10)));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["4:n1@r"], "one of two is enough");
    assert_eq!([1, 2, 3].map(|id| first_code(&plan, id)), ["reservation_not_allowed", "reservation_over", "reservation_over"]);
    assert_eq!(verdict(&plan, 3).have.as_deref(), Some("it ended at 2026-01-01T11:50:00Z"));
}

#[test]
fn of_several_the_first_to_allow_a_start_is_taken() {
    let both = || [reservation("a", "n1", 0, 120, json!({})), reservation("b", "n2", 0, 120, json!({}))];
    let in_a = |attempt: Option<RunningAttempt>| attempt.map(|attempt| RunningAttempt { reservation: Some(name("a")), ..attempt });
    let busy = running(1, &[1], 60);
    let busy = JobSnapshot { attempt: in_a(busy.attempt.clone()), ..busy };
    let mut world = World::nodes(2, 0).reserved(both()).with(busy).with(within(&["a", "b"], job(2, shape(1, 16), 30)));
    assert_eq!(placed(&world.plan()), ["2:n2@b"]);
    let mut world = World::nodes(2, 0).reserved(both()).with(within(&["b", "a"], job(2, shape(1, 16), 30)));
    assert_eq!(placed(&world.plan()), ["2:n2@b"], "of equals the first named");
}

#[test]
fn a_magnetic_one_attracts_whom_it_lets_in() {
    let mut world = World::nodes(2, 0)
        .reserved([reservation("m", "n2", 0, 60, json!({ "is_magnetic": true }))])
        .with(job(1, shape(1, 16), 30))
        .with(job(2, shape(1, 16), 30))
        .with(by("beta", job(3, shape(1, 16), 30)))
        .with(job(4, shape(1, 16), 90));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["1:n2@m", "2:n1"], "in it first, then anywhere");
    assert_eq!(planned(&plan, 3), Some(at(30)));
    // Too long for it, it runs outside, when there is room.
    assert_eq!(planned(&plan, 4), Some(at(60)));
}

#[test]
fn jobs_of_a_flex_one_are_bound_neither_to_its_time_nor_to_its_nodes() {
    let flex = || reservation("f", "n1", 30, 60, json!({ "is_flex": true }));
    let mut world = World::nodes(2, 0).reserved([flex()]).with(within(&["f"], job(1, shape(2, 16), 90)));
    assert_eq!(placed(&world.plan()), ["1:n1+n2@f"]);
    let mut strict =
        World::nodes(2, 0).reserved([reservation("f", "n1", 30, 60, json!({}))]).with(within(&["f"], job(1, shape(2, 16), 90)));
    assert_eq!(placed(&strict.plan()), [""; 0]);
}

#[test]
fn a_floating_one_fences_long_jobs_off_for_good() {
    // An hour ahead on n1: 60 minutes may start there at any time, 61 never.
    let mut float = reservation("t", "n1", 0, 1, json!({ "float_seconds": 3600, "access": {} }));
    float.windows.clear();
    let mut world =
        World::nodes(1, 0).reserved([float]).with(running(1, &[1], 300)).with(job(2, shape(1, 16), 60)).with(job(3, shape(1, 16), 61));
    let plan = world.plan();
    assert_eq!(planned(&plan, 2), Some(at(300)));
    assert_eq!((first_code(&plan, 3), planned(&plan, 3)), ("reserved", None));
    assert!(verdict(&plan, 3).advice.as_deref().unwrap().starts_with("lower the time limit to 01:00:00 or less"));
}

#[test]
fn maintenance_over_a_reservation_keeps_its_jobs_out() {
    let reserved = || reservation("r", "n1", 0, 240, json!({}));
    let maintenance = reservation("m", "n1", 60, 120, json!({ "is_maintenance": true, "may_overlap": true, "access": {} }));
    let mut world = World::nodes(1, 0)
        .reserved([maintenance, reserved()])
        .with(within(&["r"], job(1, shape(1, 8), 60)))
        .with(within(&["r"], job(2, shape(1, 8), 61)));
    let plan = world.plan();
    assert_eq!((placed(&plan), planned(&plan, 2)), (vec!["1:n1@r".to_owned()], Some(at(120))));
}

#[test]
fn a_part_of_a_node_is_kept_and_the_rest_is_for_all() {
    let part = json!({ "parts": [{ "nodes": "n1", "share": { "cpus": 8, "memory_bytes": 32 * GIB, "gpus": { "h100": 2 } } }] });
    let mut world = World::nodes(1, 4)
        .reserved([reservation("p", "", 0, 60, part)])
        .with(job(1, shape(1, 9), 10))
        .with(job(2, gpus_per_node(1, 2), 10))
        .with(job(3, gpus_per_node(1, 1), 10))
        .with(within(&["p"], job(4, gpus_per_node(1, 2), 10)))
        .with(within(&["p"], job(5, JobSnapshot::clone(&job(5, shape(1, 1), 10)).shape, 10)))
        .with(within(&["p"], job(6, Shape { exclusive: true, ..shape(1, 1) }, 10)));
    let plan = world.plan();
    let mut there = placed(&plan);
    there.sort();
    assert_eq!(there, ["2:n1", "4:n1@p", "5:n1@p"]);
    assert_eq!((first_code(&plan, 1), planned(&plan, 1)), ("reserved", Some(at(60))));
    let given: BTreeSet<u32> = plan.starts.iter().flat_map(|start| start.nodes[0].gpus.clone()).collect();
    assert_eq!(given.len(), 4, "no GPU is given twice");
    assert_eq!(first_code(&plan, 6), "shape_unsatisfiable", "nobody gets the whole of a part");
}

#[test]
fn one_that_comes_again_is_kept_free_next_time_too() {
    let windows = json!([{ "start": at(0), "end": at(60) }, { "start": at(120), "end": at(180) }]);
    let mut world = World::nodes(1, 0)
        .reserved([reservation("d", "n1", 0, 60, json!({ "windows": windows }))])
        .with(job(1, shape(1, 16), 60))
        .with(job(2, shape(1, 16), 61))
        .with(within(&["d"], job(3, shape(1, 16), 50)))
        .with(within(&["d"], job(4, shape(1, 16), 50)));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["3:n1@d"]);
    assert_eq!([1, 2, 4].map(|id| planned(&plan, id)), [Some(at(60)), Some(at(180)), Some(at(120))]);
}

#[test]
fn jobs_that_were_there_before_are_left_alone() {
    // Taken with ignore_jobs while job 1 runs: its own job waits for the end.
    let mut world = World::nodes(1, 0)
        .with(running(1, &[1], 90))
        .reserved([reservation("r", "n1", 0, 120, json!({}))])
        .with(within(&["r"], job(2, shape(1, 16), 30)));
    let plan = world.plan();
    assert_eq!((first_code(&plan, 2), planned(&plan, 2)), ("reservation_nodes_busy", Some(at(90))));
    assert_eq!(verdict(&plan, 2).holders, ["job/1"]);
}

#[test]
fn a_job_in_a_reservation_goes_before_others_and_tasks_go_each() {
    let tasks = ArrayProgress { pending: [1, 2, 3].into_iter().collect(), running: 0, throttle: None };
    let mut world = World::nodes(2, 0)
        .reserved([reservation("r", "n[1-2]", 0, 60, json!({}))])
        .with(JobSnapshot { qos: name("high"), ..job(1, shape(1, 16), 10) })
        .with(within(&["r"], JobSnapshot { array: Some(tasks), ..job(2, shape(1, 16), 10) }));
    let plan = world.plan();
    assert_eq!(placed(&plan), ["2:n1@r", "2:n2@r"]);
    assert_eq!(verdict(&plan, 2).clears_at, Some(at(10)));
    assert_eq!(first_code(&plan, 1), "reserved");
}

#[test]
fn victims_are_taken_only_where_the_job_may_run() {
    let policy = Policy { preempt_by: PreemptBy::Qos, preempt_mode: PreemptMode::Requeue, ..Policy::default() };
    let high = Qos { priority: 100, preempts: BTreeSet::from([name("normal")]), grace_seconds: Some(0), ..Qos::named(name("high")) };
    let preempting = |reservations: [Reservation; 1], urgent: JobSnapshot| {
        let mut world = World::nodes(1, 0).with(running(1, &[1], 600)).reserved(reservations);
        [Event::Policy(policy.clone()), Event::Qos(high.clone()), Event::Job(Box::new(JobSnapshot { qos: name("high"), ..urgent }))]
            .into_iter()
            .for_each(|event| world.0.apply(event));
        world.plan().preemptions.iter().map(|preemption| preemption.victim.0).collect::<Vec<_>>()
    };
    let soon = || [reservation("r", "n1", 30, 90, json!({}))];
    assert_eq!(preempting(soon(), job(2, shape(1, 16), 29)), [1]);
    assert_eq!(preempting(soon(), job(2, shape(1, 16), 40)), [0u64; 0], "it would run into the reservation");
    assert_eq!(preempting([reservation("r", "n1", 0, 90, json!({}))], within(&["r"], job(2, shape(1, 16), 40))), [1]);
}

#[test]
fn a_dry_run_says_the_same_and_its_end_is_the_start_of_others() {
    let mut world = World::nodes(1, 0).reserved([reservation("r", "n1", 0, 60, json!({}))]).with(job(1, shape(1, 16), 10));
    let asked = within(&["r"], job(2, shape(1, 16), 60));
    let answer = world.0.dry_run(asked.clone(), at(0));
    assert_eq!(answer.starts[0].reservation, Some(name("r")));
    let plan = world.plan();
    assert_eq!(planned(&plan, 1), Some(at(60)));
    world.0.apply(Event::Job(Box::new(asked)));
    assert_eq!(placed(&world.0.quick_plan(at(0))), ["2:n1@r"]);
    // It goes: the node is free for all.
    world.0.retract(JobId(2), None);
    world.0.apply(Event::JobGone(JobId(2)));
    world.0.apply(Event::Reservations(Vec::new()));
    assert_eq!(placed(&world.0.quick_plan(at(1))), ["1:n1"]);
}

#[test]
fn a_node_that_a_job_must_have_is_told_of_though_others_are_free() {
    let on_n1 = |id| JobSnapshot { required_nodes: BTreeSet::from(["n1".parse().unwrap()]), ..job(id, shape(1, 1), 30) };
    let mut world = World::nodes(3, 0).reserved([reservation("r", "n1", 0, 60, json!({}))]).with(on_n1(1));
    let plan = world.plan();
    assert_eq!((first_code(&plan, 1), verdict(&plan, 1).object.as_str(), planned(&plan, 1)), ("reserved", "reservation/r", Some(at(60))));
    assert_eq!(verdict(&plan, 1).have.as_deref(), Some("r keeps nodes from 2026-01-01T12:00:00Z until 2026-01-01T13:00:00Z"));
    // Without the reservation it is the node that is full.
    let mut world = World::nodes(3, 0).with(running(7, &[1], 90)).with(on_n1(1));
    let plan = world.plan();
    assert_eq!(first_code(&plan, 1), "resources");
    assert_eq!(verdict(&plan, 1).have.as_deref(), Some("32 CPUs free on 3 nodes; of these 0 CPUs free on n1, which it must have"));
    assert_eq!(verdict(&plan, 1).holders, ["job/7"]);
}

#[test]
fn who_would_not_end_in_time_behind_a_running_job_is_not_told_to_wait() {
    let busy = running(1, &[1], 50);
    let attempt = busy.attempt.clone().map(|attempt| RunningAttempt { reservation: Some(name("r")), ..attempt });
    let mut world = World::nodes(1, 0)
        .reserved([reservation("r", "n1", 0, 60, json!({}))])
        .with(JobSnapshot { attempt, ..busy })
        .with(within(&["r"], job(2, shape(1, 16), 10)))
        .with(within(&["r"], job(3, shape(1, 16), 11)));
    let plan = world.plan();
    assert_eq!((first_code(&plan, 2), planned(&plan, 2)), ("reservation_nodes_busy", Some(at(50))));
    assert_eq!((first_code(&plan, 3), planned(&plan, 3)), ("reservation_too_short", None));
    assert_eq!(verdict(&plan, 3).have.as_deref(), Some("00:10:00 once the jobs there have ended, until r ends at 2026-01-01T13:00:00Z"));
    assert_eq!(verdict(&plan, 3).advice.as_deref(), Some("lower the time limit to 00:10:00 or less"));
}
