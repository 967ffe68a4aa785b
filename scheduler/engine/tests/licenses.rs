//! Licences as stories: who holds them, who waits for them, and what is planned with them.

mod common;

use berth_engine::Plan;
use berth_model::event::{ArrayProgress, Event, JobSnapshot};
use berth_model::license::{License, held, parse_licenses};
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::{JobId, Name};
use common::{World, at, job, name, planned, running, shape, verdict};

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|start| start.job.0).collect()
}

fn with(licenses: &str, job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { licenses: parse_licenses(licenses).unwrap(), ..job }
}

/// What runs holds these.
fn holding(licenses: &[(&str, u64)], mut job: JobSnapshot) -> JobSnapshot {
    let tres: TresCounts = licenses.iter().map(|(name, count)| (Tres::License((*name).to_owned()), *count)).collect();
    job.attempt.as_mut().unwrap().charge = Charge { tres, ..Charge::default() };
    job
}

fn all<const N: usize>(totals: [(&str, u32); N]) -> Event {
    Event::Licenses(totals.into_iter().map(|(text, total)| License { name: name(text), total, description: None }).collect())
}

fn world<const N: usize>(nodes: u32, totals: [(&str, u32); N]) -> World {
    let mut world = World::nodes(nodes, 0);
    world.0.apply(all(totals));
    world
}

fn held_by(plan: &Plan, id: u64) -> Vec<(Name, u32)> {
    let start = plan.starts.iter().find(|start| start.job == JobId(id)).expect("it starts");
    held(&start.charge.tres).into_iter().collect()
}

#[test]
fn a_job_waits_for_its_licences_while_others_pass() {
    let mut world = world(4, [("matlab", 4)])
        .with(holding(&[("matlab", 3)], running(1, &[1], 60)))
        .with(with("matlab:2", job(2, shape(1, 1), 30)))
        .with(with("matlab", job(3, shape(1, 1), 60)))
        .with(with("matlab", job(4, shape(1, 1), 61)))
        .with(job(5, shape(1, 1), 600));
    let plan = world.plan();
    // The third ends just when the second begins; with the fourth there would be too few for it.
    assert_eq!(starts(&plan), [3, 5]);
    assert_eq!((planned(&plan, 2), planned(&plan, 4)), (Some(at(60)), Some(at(60))));
    assert_eq!(held_by(&plan, 3), [(name("matlab"), 1)]);
    let second = verdict(&plan, 2);
    assert_eq!((second.code.as_str(), second.object.as_str(), second.clears_at), ("licenses", "license/matlab", Some(at(60))));
    assert_eq!((second.have.as_deref(), second.need.as_deref()), (Some("4 of 4 in use"), Some("2 matlab")));
    assert_eq!(second.holders, ["job/1", "job/3"]);
}

#[test]
fn what_is_planned_with_a_licence_is_not_delayed() {
    let mut world = world(4, [("matlab", 2)])
        .with(holding(&[("matlab", 1)], running(1, &[1], 60)))
        .with(with("matlab:2", job(2, shape(1, 1), 30)))
        .with(with("matlab", job(3, shape(1, 1), 61)));
    let plan = world.plan();
    assert_eq!((planned(&plan, 2), planned(&plan, 3)), (Some(at(60)), Some(at(90))));
    let third = verdict(&plan, 3);
    assert_eq!((third.code.as_str(), third.have.as_deref()), ("licenses", Some("1 of 2 in use, 2 more planned for jobs ahead")));
    assert_eq!((third.holders.as_slice(), third.clears_at), (["job/2".to_owned()].as_slice(), Some(at(90))));
}

#[test]
fn the_licence_is_named_first_only_if_it_binds() {
    let mut world = world(1, [("matlab", 1)]).with(holding(&[("matlab", 1)], running(1, &[1], 60)));
    world.0.apply(Event::Job(Box::new(with("matlab", job(2, shape(1, 1), 30)))));
    let codes = |plan: &Plan| plan.verdicts[0].verdicts.iter().map(|v| v.code.clone()).collect::<Vec<_>>();
    assert_eq!(codes(&world.plan()), ["licenses", "resources"]);
    let mut world = self::world(2, [("matlab", 1)])
        .with(holding(&[("matlab", 1)], running(1, &[1], 30)))
        .with(running(3, &[2], 60))
        .with(with("matlab", job(2, shape(2, 1), 30)));
    assert_eq!(codes(&world.plan()), ["resources", "licenses"]);
}

#[test]
fn all_of_several_at_once() {
    let mut world = world(4, [("matlab", 2), ("ansys", 1)])
        .with(holding(&[("matlab", 1)], running(1, &[1], 60)))
        .with(holding(&[("ansys", 1)], running(2, &[2], 30)))
        .with(with("matlab:2,ansys", job(3, shape(1, 1), 30)));
    let plan = world.plan();
    assert_eq!(planned(&plan, 3), Some(at(60)));
    let objects: Vec<&str> = plan.verdicts[0].verdicts.iter().map(|verdict| verdict.object.as_str()).collect();
    assert_eq!(objects, ["license/ansys", "license/matlab"]);
}

#[test]
fn any_one_of_several_the_first_that_is_free() {
    let asks = |id| with("matlab:2|comsol", job(id, shape(1, 1), 30));
    let mut world =
        world(4, [("matlab", 2), ("comsol", 1)]).with(holding(&[("matlab", 1)], running(1, &[1], 60))).with(asks(2)).with(asks(3));
    let plan = world.plan();
    assert_eq!(held_by(&plan, 2), [(name("comsol"), 1)]);
    assert_eq!(planned(&plan, 3), Some(at(30)), "comsol is free sooner");
    world.0.apply(Event::JobGone(JobId(1)));
    let plan = world.0.quick_plan(at(1));
    assert_eq!(held_by(&plan, 3), [(name("matlab"), 2)]);
}

#[test]
fn what_is_given_back_is_taken_by_the_next_quick_plan() {
    let mut world = world(4, [("matlab", 1)])
        .with(holding(&[("matlab", 1)], running(1, &[1], 60)))
        .with(with("matlab", job(2, shape(1, 1), 30)))
        .with(with("matlab", job(3, shape(1, 1), 30)));
    assert!(starts(&world.plan()).is_empty());
    world.0.apply(Event::JobGone(JobId(1)));
    let plan = world.0.quick_plan(at(5));
    assert!(!plan.is_full);
    assert_eq!(starts(&plan), [2]);
    // A start that the database refused gives it back.
    world.0.retract(JobId(2), None);
    world.0.apply(Event::JobGone(JobId(2)));
    let plan = world.0.quick_plan(at(6));
    assert_eq!(starts(&plan), [3]);
}

#[test]
fn more_than_there_are_is_never_planned_and_is_no_obstacle() {
    let mut world = world(1, [("matlab", 2)])
        .with(with("matlab:3", job(1, shape(1, 16), 30)))
        .with(with("nastran", job(2, shape(1, 16), 30)))
        .with(with("matlab:2", job(3, shape(1, 16), 30)));
    let plan = world.plan();
    assert_eq!(starts(&plan), [3]);
    let told = |id| (verdict(&plan, id).object.as_str(), verdict(&plan, id).have.as_deref(), verdict(&plan, id).advice.as_deref());
    assert_eq!(told(1), ("license/matlab", Some("the cluster has 2"), Some("ask for at most 2")));
    assert_eq!(told(2), ("license/nastran", Some("the cluster has none"), Some("leave it out, or ask an administrator")));
    assert_eq!((planned(&plan, 1), planned(&plan, 2)), (None, None));
}

#[test]
fn a_lowered_total_stops_nobody_and_only_delays() {
    let mut world = world(4, [("matlab", 4)])
        .with(holding(&[("matlab", 3)], running(1, &[1], 60)))
        .with(holding(&[("matlab", 1)], running(2, &[2], 30)));
    world.0.apply(all([("matlab", 2)]));
    world.0.apply(Event::Job(Box::new(with("matlab", job(3, shape(1, 1), 30)))));
    let plan = world.plan();
    assert!(plan.preemptions.is_empty() && plan.starts.is_empty());
    assert_eq!(planned(&plan, 3), Some(at(60)), "not when the second ends: 3 of 2 are still in use");
    assert_eq!(verdict(&plan, 3).have.as_deref(), Some("4 of 2 in use"));
}

#[test]
fn of_an_array_as_many_tasks_start_as_there_are_licences() {
    let array = ArrayProgress { pending: (0..5).collect(), running: 0, throttle: None };
    let mut world = world(4, [("matlab", 3)]).with(JobSnapshot { array: Some(array), ..with("matlab", job(1, shape(1, 1), 30)) });
    let plan = world.plan();
    assert_eq!(plan.starts.len(), 3);
    assert_eq!(planned(&plan, 1), Some(at(30)));
    assert_eq!(verdict(&plan, 1).object, "license/matlab");
}

#[test]
fn an_overrun_holds_its_licence_for_a_second_more() {
    let mut world =
        world(2, [("matlab", 1)]).with(holding(&[("matlab", 1)], running(1, &[1], 60))).with(with("matlab", job(2, shape(1, 1), 30)));
    assert_eq!(planned(&world.plan(), 2), Some(at(60)));
    let plan = world.0.quick_plan(at(60));
    assert!(plan.starts.is_empty(), "the holder has not ended");
    assert_eq!(planned(&plan, 2), Some(at(60) + jiff::SignedDuration::from_secs(1)));
}
