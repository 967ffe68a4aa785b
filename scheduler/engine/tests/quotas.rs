//! Quotas as stories: who borrows, who is held, and who gives way when a tenant wants its own back. Four nodes of 16 CPUs; acme is guaranteed
//! 48 of the 64 and lends at most 16, beta is guaranteed 16.

mod common;

use berth_engine::Plan;
use berth_model::JobId;
use berth_model::association::{Association, AssociationKey, Terms};
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::policy::{Policy, Qos};
use berth_model::preemption::PreemptMode;
use berth_model::quota::{Quota, Reclaim};
use berth_model::state::JobState;
use berth_model::tres::{Charge, Tres, TresCounts};
use common::{World, at, first_code, job, name, noon, planned, running, shape, verdict};
use jiff::SignedDuration;

fn cpus(count: u64) -> TresCounts {
    TresCounts::from([(Tres::Cpu, count)])
}

fn cohort(guaranteed: u64) -> Quota {
    Quota { guaranteed: cpus(guaranteed), cohort: Some(name("research")), ..Quota::default() }
}

fn world(quotas: [(&str, Quota); 2]) -> World {
    let mut world = World::nodes(4, 0);
    for (tenant, quota) in quotas {
        let key = AssociationKey::tenant(name(tenant));
        let places = vec![Association { key, parent: None, terms: Terms { quota, ..Terms::default() } }];
        world.0.apply(Event::Associations { tenant: name(tenant), places });
    }
    world
}

fn usual() -> World {
    world([("acme", Quota { lending_limit: cpus(16), ..cohort(48) }), ("beta", cohort(16))])
}

/// Waits for a whole node.
fn wants(id: u64, tenant: &str) -> JobSnapshot {
    JobSnapshot { tenant: name(tenant), ..job(id, shape(1, 16), 60) }
}

/// Has held whole nodes for so many minutes, with an hour to go.
fn holds(id: u64, tenant: &str, nodes: &[u32], minutes: i64) -> JobSnapshot {
    let job = running(id, nodes, 60 + minutes.unsigned_abs());
    let began = noon() - SignedDuration::from_mins(minutes);
    let held = 16 * nodes.len() as u64;
    let charge = Charge { tres: cpus(held), billing: held as f64, usage_factor: 1.0, partition_qos: None };
    let attempt = job.attempt.clone().map(|attempt| RunningAttempt { allocated_at: began, started_at: Some(began), charge, ..attempt });
    JobSnapshot { tenant: name(tenant), attempt, ..job }
}

fn starts(plan: &Plan) -> Vec<u64> {
    plan.starts.iter().map(|start| start.job.0).collect()
}

fn victims(plan: &Plan) -> Vec<(u64, u64)> {
    plan.preemptions.iter().map(|preemption| (preemption.victim.0, preemption.for_job.0)).collect()
}

#[test]
fn a_tenant_borrows_what_the_others_lend_and_no_more() {
    let mut world = usual().with(wants(1, "beta")).with(wants(2, "beta")).with(wants(3, "beta"));
    let plan = world.plan();
    assert_eq!(starts(&plan), [1, 2], "16 of its own, and 16 that acme lends");
    let held = verdict(&plan, 3);
    assert_eq!((held.code.as_str(), held.object.as_str(), planned(&plan, 3)), ("cohort_quota", "cohort/research", None));
    assert_eq!(held.have.as_deref(), Some("the others lend 16 cpu now, and 16 are borrowed"));
    assert_eq!(held.need.as_deref(), Some("16 cpu, which makes 32 beyond the 16 of beta"));
    assert_eq!(held.holders, ["job/1", "job/2"]);
    assert_eq!(held.clears_at, Some(at(60)));
}

#[test]
fn it_goes_on_in_a_quick_plan_when_something_comes_back() {
    let mut world = usual().with(holds(1, "beta", &[1], 1)).with(holds(2, "beta", &[2], 1)).with(wants(3, "beta"));
    assert_eq!((starts(&world.plan()), first_code(&world.0.plan(at(0)), 3)), (vec![], "cohort_quota"));
    let mut world = world.with(JobSnapshot { state: JobState::Completed, attempt: None, ..holds(1, "beta", &[1], 1) });
    assert_eq!(starts(&world.0.quick_plan(at(1))), [3]);
}

#[test]
fn the_guarantee_is_never_held_and_what_was_lent_comes_back() {
    // acme has 32 free and 16 lent: its third job gets them from the one of beta that loses least.
    let mut world = usual()
        .with(holds(1, "beta", &[1], 30))
        .with(holds(2, "beta", &[2], 10))
        .with(wants(3, "acme"))
        .with(wants(4, "acme"))
        .with(wants(5, "acme"))
        .with(wants(6, "acme"));
    let plan = world.plan();
    assert_eq!(starts(&plan), [3, 4]);
    assert_eq!(victims(&plan), [(2, 5)]);
    assert!(plan.preemptions[0].reclaimed);
    assert_eq!(plan.preemptions[0].mode, PreemptMode::Requeue);
    assert_eq!(first_code(&plan, 5), "preempting");
    // With the fourth it would be beyond its 48, so nobody else gives way.
    assert_eq!(first_code(&plan, 6), "resources");
}

#[test]
fn nobody_gives_way_where_nothing_was_borrowed() {
    // Everybody is within its guarantee: acme waits for the second node as anybody does.
    let busy = || usual().with(holds(1, "beta", &[1], 10)).with(holds(2, "acme", &[2, 3], 10));
    let mut world = busy().with(JobSnapshot { tenant: name("acme"), ..job(3, shape(2, 16), 60) });
    let plan = world.plan();
    assert_eq!((victims(&plan), first_code(&plan, 3)), (vec![], "cohort_quota"), "32 + 32 > 48: it would borrow itself");
    // beta borrows a node; a job of two nodes would need its own one as well.
    let mut world = usual().with(holds(1, "beta", &[1], 10)).with(holds(2, "beta", &[2], 10)).with(holds(4, "acme", &[3], 10));
    world = world.with(JobSnapshot { tenant: name("acme"), ..job(3, shape(3, 16), 60) });
    assert_eq!(victims(&world.plan()), []);
}

#[test]
fn what_makes_room_already_is_not_taken_again() {
    let told = |job: JobSnapshot| {
        let preempted =
            serde_json::from_value(serde_json::json!({ "for_job": 9, "mode": "requeue", "at": at(0), "kill_at": at(1) })).unwrap();
        let attempt = job.attempt.clone().map(|attempt| RunningAttempt { preempted, ..attempt });
        JobSnapshot { attempt, ..job }
    };
    let mut world = usual().with(told(holds(1, "beta", &[1], 30))).with(holds(2, "beta", &[2], 10)).with(holds(4, "acme", &[3, 4], 10));
    world = world.with(wants(3, "acme"));
    assert_eq!(victims(&world.plan()), [], "beta is down to its own when job 1 has gone");
}

#[test]
fn policy_and_qos_say_whether_anybody_gives_way() {
    let full = || usual().with(holds(1, "beta", &[1, 2], 10)).with(holds(2, "acme", &[3, 4], 10)).with(wants(3, "acme"));
    assert_eq!(victims(&full().plan()), [(1, 3)]);
    let mut world = full();
    world.0.apply(Event::Policy(Policy { reclaim: Reclaim::Off, ..Policy::default() }));
    assert_eq!((victims(&world.plan()), planned(&world.0.plan(at(0)), 3)), (vec![], Some(at(60))));
    let mut world = full();
    world.0.apply(Event::Qos(Qos { preempt_mode: Some(PreemptMode::Off), ..Qos::named(name("normal")) }));
    assert_eq!(victims(&world.plan()), []);
}

#[test]
fn without_a_cohort_or_beyond_the_borrowing_limit_it_is_a_limit_as_any() {
    let alone = || world([("acme", Quota { guaranteed: cpus(16), ..Quota::default() }), ("beta", cohort(16))]);
    let mut world1 = alone().with(wants(1, "acme")).with(wants(2, "acme"));
    let plan = world1.plan();
    assert_eq!((starts(&plan), first_code(&plan, 2), verdict(&plan, 2).object.as_str()), (vec![1], "tenant_quota", "tenant/acme"));
    let bounded = Quota { borrowing_limit: cpus(8), ..cohort(16) };
    let mut world2 = world([("acme", cohort(48)), ("beta", bounded)]).with(wants(1, "beta")).with(wants(2, "beta"));
    let plan = world2.plan();
    assert_eq!((starts(&plan), first_code(&plan, 2)), (vec![1], "tenant_quota"));
    assert_eq!(verdict(&plan, 2).have.as_deref(), Some("16 of 24 cpu in use"));
    // Whoever has no quota is bound by none.
    let mut world3 = alone().with(wants(1, "gamma")).with(wants(2, "gamma")).with(wants(3, "gamma")).with(wants(4, "gamma"));
    assert_eq!(starts(&world3.plan()), [1, 2, 3, 4]);
}

#[test]
fn a_claim_counts_before_its_job_starts() {
    // Job 3 has reclaimed node 2 and waits for it; with it acme has all it is guaranteed.
    let claim = serde_json::json!({ "nodes": ["n2"], "victims": [2], "ready_at": at(5) });
    let waiting = JobSnapshot { claim: serde_json::from_value(claim).unwrap(), ..wants(3, "acme") };
    let leaving = holds(2, "beta", &[2], 10);
    let preempted = serde_json::from_value(serde_json::json!({ "for_job": 3, "mode": "requeue", "at": at(0), "kill_at": at(5) })).unwrap();
    let attempt = leaving.attempt.clone().map(|attempt| RunningAttempt { preempted, ..attempt });
    let mut world = world([("acme", cohort(48)), ("beta", cohort(8))])
        .with(JobSnapshot { attempt, time_limit: 605, ..leaving })
        .with(holds(1, "beta", &[1], 30))
        .with(holds(4, "acme", &[3, 4], 10))
        .with(waiting)
        .with(wants(5, "acme"));
    let plan = world.plan();
    assert!(victims(&plan).is_empty(), "{:?}", plan.preemptions);
    assert_eq!(plan.verdicts.iter().find(|v| v.job == JobId(3)).unwrap().verdicts[0].code, "preempting");
}

#[test]
fn what_is_never_lent_is_said_to_be() {
    let mut world = usual().with(JobSnapshot { tenant: name("beta"), ..job(1, shape(3, 16), 60) });
    let plan = world.plan();
    assert_eq!(verdict(&plan, 1).have.as_deref(), Some("the others never lend more than 16 cpu"));
    assert!(verdict(&plan, 1).advice.as_deref().unwrap().starts_with("ask for less"));
}
