//! Reservations over time: a random story under random reservations, each start and planned start checked against their times and parts.

use std::collections::BTreeSet;

use berth_engine::{Plan, Settings};
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::Policy;
use berth_model::reservation::{Access, Reservation, ReservedPart, ReservedShare, Window};
use berth_model::{Bytes, Name, NodeName, hostlist};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::naive::{need, total};
use crate::sharing::alike;
use crate::world::{GIB, World, at, name};
use crate::{Happening, Planned, Story, any_fleet, any_happening};

/// The random part of a reservation.
#[derive(Clone, Debug)]
pub struct Keep {
    start: i64,
    length: i64,
    nodes: BTreeSet<u32>,
    /// CPUs of each node; the whole if absent.
    cpus: Option<u32>,
    is_flex: bool,
    may_overlap: bool,
    is_magnetic: bool,
    /// Nobody may use it.
    is_closed: bool,
    /// It floats in place of having a time.
    floats: bool,
    /// It comes again after so long.
    again: Option<i64>,
}

pub fn any_keeps() -> impl Strategy<Value = Vec<Keep>> {
    let rare = || prop::bool::weighted(0.2);
    let nodes = prop::collection::btree_set(1u32..9, 1..5);
    let times = (0i64..7200, 600i64..7200, prop::option::weighted(0.3, 0i64..1800));
    let flags = (rare(), rare(), rare(), rare(), prop::bool::weighted(0.1), prop::option::weighted(0.4, 1u32..9));
    let keep =
        (times, nodes, flags).prop_map(|((start, length, again), nodes, (is_flex, may_overlap, is_magnetic, is_closed, floats, cpus))| {
            Keep {
                start,
                length,
                nodes,
                cpus: cpus.filter(|_| !floats),
                is_flex: is_flex && !floats,
                may_overlap,
                is_magnetic: is_magnetic && !floats,
                is_closed,
                floats,
                again,
            }
        });
    prop::collection::vec(keep, 1..4)
}

/// Reservations as an administrator could have made them: those that may not overlap do not.
fn made(world: &World, keeps: &[Keep]) -> Vec<Reservation> {
    let mut made: Vec<Reservation> = Vec::new();
    for (number, keep) in (1..).zip(keeps) {
        let names: Vec<NodeName> = keep.nodes.iter().filter_map(|number| Some(world.nodes.get(number)?.name.clone())).collect();
        let window = |after: i64| Window { start: at(after), end: at(after + keep.length) };
        let mut windows = vec![window(keep.start)];
        windows.extend(keep.again.map(|pause| window(keep.start + keep.length + pause)));
        let share = keep.cpus.map(|cpus| ReservedShare { cpus, memory_bytes: Bytes(u64::from(cpus) * 2 * GIB), gpus: Default::default() });
        let new = Reservation {
            name: name(&format!("r{number}")),
            windows: if keep.floats { Vec::new() } else { windows },
            float_seconds: keep.floats.then_some(keep.length as u64),
            parts: vec![ReservedPart { nodes: hostlist::fold(&names), share }],
            access: Access {
                tenants: if keep.is_closed || keep.floats { BTreeSet::new() } else { BTreeSet::from(["acme".to_owned()]) },
                ..Access::default()
            },
            is_maintenance: false,
            is_flex: keep.is_flex,
            may_overlap: keep.may_overlap,
            is_magnetic: keep.is_magnetic,
        };
        let meets = |other: &Reservation| {
            let same_time = other.windows.iter().any(|theirs| new.windows.iter().any(|own| own.overlaps(theirs)));
            same_time && other.nodes().iter().any(|node| names.contains(node))
        };
        if !names.is_empty() && (keep.may_overlap || !made.iter().any(meets)) {
            made.push(new);
        }
    }
    made
}

/// Every second job names a reservation or two, whether or not it may use them.
pub fn asked_for(job: JobSnapshot) -> JobSnapshot {
    let reservations: Vec<Name> = match job.id.0 % 4 {
        1 => vec![name(&format!("r{}", job.id.0 / 4 % 4 + 1))],
        3 => vec![name("r2"), name("r1")],
        _ => Vec::new(),
    };
    JobSnapshot { reservations, ..job }
}

/// Where a job is, or will be, and by way of which reservation.
struct Run<'a> {
    job: &'a JobSnapshot,
    from: Timestamp,
    to: Timestamp,
    nodes: Vec<NodeName>,
    /// Unknown of what is only planned for jobs that have several ways.
    via: Option<Option<Name>>,
}

fn length(job: &JobSnapshot) -> SignedDuration {
    SignedDuration::from_secs(job.time_limit as i64)
}

/// Ways that a job may go: reservations that let it in, by what it names or what attracts it; `None` is in none.
fn ways(world: &World, job: &JobSnapshot) -> Vec<Option<Name>> {
    let lets_in = |r: &&Reservation| r.float_seconds.is_none() && r.access.admits(&job.tenant, &job.account, &job.user);
    let open: Vec<&Reservation> = world.reservations.iter().filter(lets_in).collect();
    if job.reservations.is_empty() {
        return open.iter().filter(|r| r.is_magnetic).map(|r| Some(r.name.clone())).chain([None]).collect();
    }
    job.reservations.iter().filter(|name| open.iter().any(|r| r.name == **name)).cloned().map(Some).collect()
}

/// Within one of its times, on its nodes, unless it is flex.
fn check_inside(reservation: &Reservation, run: &Run<'_>) -> Result<(), TestCaseError> {
    let is_inside = |window: &Window| window.start <= run.from && run.to <= window.end;
    let is_right = reservation.is_flex || reservation.windows.iter().any(is_inside);
    prop_assert!(is_right, "job {} from {} to {} is outside of {:?}", run.job.id, run.from, run.to, reservation.windows);
    let own = reservation.nodes();
    prop_assert!(reservation.is_flex || run.nodes.iter().all(|node| own.contains(node)), "job {} on {:?}", run.job.id, run.nodes);
    Ok(())
}

/// A run that does not go by way of the reservation leaves it what it keeps, whenever both are there.
fn check_outside(world: &World, reservation: &Reservation, run: &Run<'_>) -> Result<(), TestCaseError> {
    let own = reservation.nodes();
    for node in run.nodes.iter().filter(|node| own.contains(node)) {
        if let Some(float) = reservation.float_seconds {
            prop_assert!(run.job.time_limit <= float, "job {} on {} is longer than {} floats ahead", run.job.id, node, reservation.name);
        }
        let there = world.node(node);
        let meets = reservation.windows.iter().any(|window| window.start < run.to && run.from < window.end);
        let left = left_of(there, reservation);
        let need = need(run.job, there).unwrap();
        prop_assert!(!meets || (0..3).all(|i| need[i] <= left[i]), "job {} runs into {} on {}", run.job.id, reservation.name, node);
    }
    Ok(())
}

/// What a reservation leaves of a node.
fn left_of(node: &Node, reservation: &Reservation) -> [u64; 3] {
    let all = total(node);
    match &reservation.parts[0].share {
        None => [0; 3],
        Some(share) => [all[0].saturating_sub(u64::from(share.cpus)), all[1].saturating_sub(share.memory_bytes.0), all[2]],
    }
}

/// Checks all that a plan starts or plans, in the world as it was told.
pub fn check(world: &World, plan: &Plan) -> Result<(), TestCaseError> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for start in &plan.starts {
        let job = &world.pending[&start.job];
        let nodes = start.nodes.iter().map(|held| held.node.clone()).collect();
        runs.push(Run { job, from: plan.now, to: plan.now + length(job), nodes, via: Some(start.reservation.clone()) });
    }
    for verdict in &plan.verdicts {
        let job = &world.pending[&verdict.job];
        let ways = ways(world, job);
        prop_assert!(!ways.is_empty() || verdict.planned_start.is_none(), "job {} has no way", job.id);
        if ways.is_empty() {
            let codes: Vec<&str> = verdict.verdicts.iter().map(|v| v.code.as_str()).collect();
            let known = ["reservation_not_allowed", "reservation_over"];
            prop_assert!(codes.iter().any(|code| known.contains(code)), "{:?}", codes);
        }
        let Some(planned) = &verdict.planned_start else { continue };
        let nodes = hostlist::expand(&planned.nodes).unwrap();
        let via = if let [only] = ways.as_slice() { Some(only.clone()) } else { None };
        runs.push(Run { job, from: planned.at, to: planned.at + length(job), nodes, via });
    }
    for run in &runs {
        let ways = ways(world, run.job);
        let Some(via) = &run.via else { continue };
        prop_assert!(ways.contains(via), "job {} goes by {:?}", run.job.id, via);
        let shares = |own: &Reservation| own.may_overlap;
        let own = via.as_ref().map(|name| world.reservations.iter().find(|r| r.name == *name).unwrap());
        if let Some(own) = own {
            check_inside(own, run)?;
        }
        for other in world.reservations.iter().filter(|other| own.is_none_or(|own| own.name != other.name)) {
            if own.is_none_or(|own| !shares(own)) || other.float_seconds.is_some() {
                check_outside(world, other, run)?;
            }
        }
    }
    Ok(())
}

/// All that runs or is planned outside of a reservation since it was made leaves it what it keeps, at every instant, together.
pub fn check_shares(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    let started = |job: &JobSnapshot| job.attempt.as_ref().and_then(|attempt| attempt.started_at).unwrap();
    let mut runs: Vec<Run<'_>> = Vec::new();
    for job in world.running.values().filter(|job| !world.ran_before.contains(&job.id)) {
        let attempt = job.attempt.as_ref().unwrap();
        let nodes = attempt.nodes.iter().map(|held| held.node.clone()).collect();
        runs.push(Run { job, from: started(job), to: World::limit(job), nodes, via: Some(attempt.reservation.clone()) });
    }
    for (id, (from, nodes)) in planned {
        let Some(job) = world.pending.get(id) else { continue };
        if let [only] = ways(world, job).as_slice() {
            runs.push(Run { job, from: *from, to: *from + length(job), nodes: nodes.clone(), via: Some(only.clone()) });
        }
    }
    let reservations = &world.reservations;
    let shares = |name: &Option<Name>| reservations.iter().any(|r| r.may_overlap && Some(&r.name) == name.as_ref());
    for reservation in reservations {
        let others: Vec<&Run<'_>> =
            runs.iter().filter(|run| run.via.as_ref().is_some_and(|via| via.as_ref() != Some(&reservation.name) && !shares(via))).collect();
        for instant in others.iter().map(|run| run.from).chain(reservation.windows.iter().map(|window| window.start)) {
            if !reservation.windows.iter().any(|window| window.start <= instant && instant < window.end) {
                continue;
            }
            for node in reservation.nodes() {
                let there = others.iter().filter(|run| run.from <= instant && instant < run.to && run.nodes.contains(&node));
                let used = there
                    .map(|run| need(run.job, world.node(&node)).unwrap())
                    .fold([0; 3], |sum, need| [0, 1, 2].map(|i| sum[i] + need[i]));
                let left = left_of(world.node(&node), reservation);
                prop_assert!(
                    (0..3).all(|i| used[i] <= left[i]),
                    "{:?} of {:?} beside {} on {} at {}",
                    used,
                    left,
                    reservation.name,
                    node,
                    instant
                );
            }
        }
    }
    Ok(())
}

proptest! {
    /// Nobody runs into the times of others, members stay within their own, nothing is given twice, no quick plan delays anybody, and the
    /// same events make the same plan, also in an engine that begins now.
    #[test]
    fn reservations_are_kept(kinds in any_fleet(), keeps in any_keeps(), later in any_keeps(), shares in any::<bool>(), happenings in prop::collection::vec(any_happening(), 1..50)) {
        let mut story = Story::new(&kinds);
        story.shares = shares;
        story.tell(alike(Event::Policy(Policy::default())));
        let change_at = happenings.len() / 2;
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            if i == 0 || i == change_at {
                // At the second time what runs in those that are gone runs on.
                story.world.reservations = made(&story.world, if i == 0 { &keeps } else { &later });
                story.world.ran_before = story.world.running.keys().copied().collect();
                story.tell(Event::Reservations(story.world.reservations.clone()));
                let plan = story.plan(true)?;
                story.take(&plan)?;
            }
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            rebuilt.apply(alike(Event::Policy(Policy::default())));
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
                prop_assert_eq!(plan.verdicts.len() + plan.starts.len(), story.world.pending.len(), "everybody hears something");
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }
}

/// When reservations begin and end.
pub fn boundaries(world: &World) -> impl Iterator<Item = Timestamp> + '_ {
    world.reservations.iter().flat_map(|reservation| &reservation.windows).flat_map(|window| [window.start, window.end])
}

/// The job with this number, if the story has reservations.
pub fn named_by(world: &World, job: JobSnapshot) -> JobSnapshot {
    if world.reservations.is_empty() { job } else { asked_for(job) }
}
