//! Nodes that jobs share with none but their user's own, over time.

use berth_engine::Settings;
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::Policy;
use berth_model::preemption::PreemptBy;
use berth_model::{JobId, NodeName};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::preemption::events;
use crate::world::{World, at, name};
use crate::{Happening, Planned, Story, any_fleet, any_happening};

/// Some of ann's, some of bob's; some of both want no stranger on their nodes.
pub fn asked_by(mut job: JobSnapshot) -> JobSnapshot {
    job.user = name(["ann", "bob"][job.id.0 as usize % 2]);
    job.shape.exclusive_user = job.id.0 % 5 < 2 && !job.shape.exclusive;
    job
}

/// To a policy for which users are all alike: an engine that begins now knows nothing of what they had.
pub fn alike(event: Event) -> Event {
    match event {
        Event::Policy(policy) => Event::Policy(Policy { weight_fairshare: 0, ..policy }),
        other => other,
    }
}

/// Who is on a node, from when until when.
struct Stay<'a> {
    job: &'a JobSnapshot,
    node: NodeName,
    from: Timestamp,
    to: Timestamp,
}

/// No job that wants no stranger meets one, now or as planned.
pub fn check(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    let mut stays: Vec<Stay> = Vec::new();
    let soon = at(world.now) + SignedDuration::from_secs(1);
    for job in world.running.values() {
        let limit = World::limit(job);
        let to = if limit <= at(world.now) { soon } else { limit };
        for held in &job.attempt.as_ref().unwrap().nodes {
            stays.push(Stay { job, node: held.node.clone(), from: Timestamp::MIN, to });
        }
    }
    for (id, (from, nodes)) in planned {
        let Some(job) = world.pending.get::<JobId>(id) else { continue };
        let to = *from + SignedDuration::from_secs(job.time_limit as i64);
        stays.extend(nodes.iter().map(|node| Stay { job, node: node.clone(), from: *from, to }));
    }
    let is_alone = |job: &JobSnapshot| job.shape.exclusive_user;
    for one in stays.iter().filter(|stay| is_alone(stay.job)) {
        for other in stays.iter().filter(|other| other.node == one.node && other.job.id != one.job.id) {
            let meet = one.from < other.to && other.from < one.to;
            let may = is_alone(other.job) && other.job.user == one.job.user;
            prop_assert!(!meet || may, "jobs {} and {} meet on {}", one.job.id, other.job.id, one.node);
        }
    }
    Ok(())
}

proptest! {
    /// Nobody meets a stranger, in full plans, quick ones and as planned; nothing is given twice; no quick plan delays anybody; and an
    /// engine that begins now plans the same.
    #[test]
    fn no_stranger_is_met(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..60)) {
        let mut story = Story::new(&kinds);
        story.shares = true;
        story.tell(alike(Event::Policy(Policy::default())));
        for (happening, seconds) in happenings {
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

    /// Nor where jobs preempt others.
    #[test]
    fn no_stranger_is_met_by_preemption(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..50)) {
        let mut story = Story::new(&kinds);
        events(PreemptBy::Qos, 0).into_iter().for_each(|event| story.tell(alike(event)));
        (story.shares, story.is_preempted) = (true, true);
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            events(PreemptBy::Qos, 0).into_iter().for_each(|event| rebuilt.apply(alike(event)));
            let plan = story.plan(i % 2 == 0 || matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
        }
    }
}
