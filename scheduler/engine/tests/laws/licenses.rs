//! Licences in the laws: who asks for them by its number, and that there are never too few.

use std::collections::BTreeMap;

use berth_engine::Settings;
use berth_model::event::{Event, JobSnapshot};
use berth_model::license::{License, LicenseCounts, held};
use berth_model::{Name, NodeName};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::world::{World, at, name};
use crate::{Happening, Planned, Story, any_fleet, any_happening};

/// With 2 of `a` and 3 of `b`: some jobs ask for one, some for both, some for either; now and then for more than there are.
pub fn needed_by(world: &World, job: JobSnapshot) -> JobSnapshot {
    if world.licenses.is_empty() {
        return job;
    }
    let set =
        |a: u32, b: u32| -> LicenseCounts { [("a", a), ("b", b)].into_iter().filter(|(_, n)| *n > 0).map(|(t, n)| (name(t), n)).collect() };
    let licenses = match job.id.0 % 8 {
        0 => vec![set(1, 0)],
        1 => vec![set(2, 0)],
        2 => vec![set(1, 2)],
        3 => vec![set(0, 1)],
        4 => vec![set(2, 0), set(0, 1)],
        5 if job.id.0.is_multiple_of(3) => vec![set(0, 4)],
        _ => Vec::new(),
    };
    JobSnapshot { licenses, ..job }
}

/// Half-open, with what is taken.
pub type Taken = Vec<(Timestamp, Timestamp, LicenseCounts)>;

/// What runs holds, until its limit; what should have ended, for a second more.
pub fn taken(world: &World) -> Taken {
    let soon = at(world.now) + SignedDuration::from_secs(1);
    let to = |job: &JobSnapshot| if World::limit(job) <= at(world.now) { soon } else { World::limit(job) };
    world.running.values().map(|job| (Timestamp::MIN, to(job), held(&job.attempt.as_ref().unwrap().charge.tres))).collect()
}

/// A set can be taken beside what is taken, from one instant to another.
pub fn are_free(world: &World, taken: &Taken, set: &LicenseCounts, from: Timestamp, to: Timestamp) -> bool {
    let begins = taken.iter().map(|(begin, ..)| *begin).filter(|begin| from < *begin && *begin < to);
    begins.chain([from]).all(|instant| set.iter().all(|(name, count)| used(taken, name, instant) + count <= total(world, name)))
}

fn used(taken: &Taken, name: &Name, instant: Timestamp) -> u32 {
    taken.iter().filter(|(from, to, _)| *from <= instant && instant < *to).filter_map(|(_, _, set)| set.get(name)).sum()
}

fn total(world: &World, name: &Name) -> u32 {
    world.licenses.iter().find(|license| license.name == *name).map_or(0, |license| license.total)
}

/// What runs has one of the sets that it asked for, and whoever has started since the total was last changed finds enough; planned starts
/// together with what runs, too, whichever of their sets they will take.
pub fn check(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    if world.licenses.is_empty() {
        return Ok(());
    }
    for job in world.running.values() {
        let holds = held(&job.attempt.as_ref().unwrap().charge.tres);
        prop_assert!(job.licenses.contains(&holds) || job.licenses.is_empty() && holds.is_empty());
    }
    let running = taken(world);
    let mut in_use: BTreeMap<Name, u32> = BTreeMap::new();
    running.iter().flat_map(|(_, _, set)| set).for_each(|(name, count)| *in_use.entry(name.clone()).or_default() += count);
    for (name, count) in &in_use {
        prop_assert!(*count <= total(world, name).max(world.licensed_before.get(name).copied().unwrap_or(0)), "{} of {}", count, name);
    }
    // Those with one set alone: of others it does not show which they will take.
    let mut all = running;
    for (id, (from, _)) in planned {
        let Some(job) = world.pending.get(id) else { continue };
        if let [set] = job.licenses.as_slice() {
            let to = *from + SignedDuration::from_secs(job.time_limit as i64);
            prop_assert!(are_free(world, &all, set, *from, to), "job {} is planned at {} with licences that are taken", id, from);
            all.push((*from, to, set.clone()));
        }
    }
    Ok(())
}

fn totals(a: u32, b: u32) -> Vec<License> {
    [("a", a), ("b", b)].map(|(text, total)| License { name: name(text), total, description: None }).to_vec()
}

proptest! {
    /// Licences are never given twice, nor planned so; no quick plan delays anybody; an engine that begins now plans the same; and a full
    /// plan is that of brute force.
    #[test]
    fn licences_are_never_given_twice(kinds in any_fleet(), lowers in any::<bool>(), happenings in prop::collection::vec(any_happening(), 1..50)) {
        let mut story = Story::new(&kinds);
        let change_at = happenings.len() / 2;
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            if i == 0 || i == change_at && lowers {
                story.world.licenses = if i == 0 { totals(2, 3) } else { totals(1, 3) };
                story.world.licensed_before = BTreeMap::new();
                for (name, count) in taken(&story.world).into_iter().flat_map(|(_, _, set)| set) {
                    *story.world.licensed_before.entry(name).or_default() += count;
                }
                story.tell(Event::Licenses(story.world.licenses.clone()));
                let plan = story.plan(true)?;
                story.take(&plan)?;
            }
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
                let name = |number: &u32| NodeName::new(format!("n{number}")).unwrap();
                let expected = crate::naive::plan(&story.world);
                let expected: Planned = expected.iter().map(|(job, (from, nodes))| (*job, (*from, nodes.iter().map(name).collect()))).collect();
                prop_assert_eq!(crate::planned(&plan), expected);
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }
}
