//! The queue: pending jobs in the order of the walk, and which of them policy lets start.

use std::collections::{BTreeMap, HashMap};

use berth_model::event::JobSnapshot;
use berth_model::state::JobState;
use berth_model::verdict::Verdict;
use berth_model::{Indices, JobId, Name};

use crate::amount::{Micros, micros, span};
use crate::backfill::{Queued, Tasks};
use crate::eligible::Rules;
use crate::engine::{Entry, Unconfirmed, World};
use crate::plan::Plan;
use crate::priority::{Place, Scale, Score};

/// A pending job at its place.
pub struct Ranked<'a> {
    pub place: Place,
    pub score: Score,
    pub entry: &'a Entry,
}

/// A job that may be placed, or what holds it.
pub enum Judged {
    Queued(Queued),
    Held(Vec<Verdict>),
}

type Starting = BTreeMap<(JobId, Option<u32>), Unconfirmed>;
pub type Elders<'a> = HashMap<(&'a Name, &'a Name, &'a str), JobId>;

pub fn is_waiting(job: &JobSnapshot, starting: &Starting) -> bool {
    job.state == JobState::Pending && !starting.contains_key(&(job.id, None))
}

/// All pending jobs, first to last.
pub fn rank<'a>(world: &'a World, scale: &Scale<'_>) -> Vec<Ranked<'a>> {
    let waiting = world.jobs.values().filter(|e| is_waiting(&e.job, &world.unconfirmed));
    let mut ranked: Vec<Ranked<'a>> = waiting.map(|entry| ranked(entry, scale)).collect();
    ranked.sort_unstable_by_key(|ranked| ranked.place);
    ranked
}

pub fn ranked<'a>(entry: &'a Entry, scale: &Scale<'_>) -> Ranked<'a> {
    let score = scale.score(entry);
    let place = scale.place(&entry.job, &score);
    let place = entry.job.component_of.map_or(place, |of| scale.place_together(&entry.job, of));
    Ranked { place, score, entry }
}

/// What policy says of one job. Tells the plan what it must heed: a passed deadline, a begin time to wake for.
pub fn judge(world: &World, rules: &Rules<'_>, entry: &Entry, elders: &Elders<'_>, plan: &mut Plan) -> Judged {
    let job = &entry.job;
    let length = span(job.time_limit);
    if job.deadline.is_some_and(|deadline| rules.now.saturating_add(length) > micros(deadline)) {
        plan.expired.push(job.id);
    }
    if let Some(begin) = job.not_before {
        plan.wake_by(begin);
    }
    let elder = job.is_singleton.then(|| elders.get(&(&job.tenant, &job.user, job.name.as_str())).copied()).flatten();
    let throttle = Throttle::of(world, job);
    // Components, which have one name, do not wait for each other.
    let first = job.component_of.map_or(job.id, |of| of.leader);
    let causes = rules.causes(job, elder.filter(|elder| *elder < first), throttle);
    if !causes.is_empty() {
        return Judged::Held(causes);
    }
    let tasks = job.array.as_ref().map(|array| {
        let most = throttle.map_or(usize::MAX, |throttle| throttle.left() as usize);
        let starting: Indices = starting_tasks(job.id, &world.unconfirmed).collect();
        Tasks { pending: array.pending.divide(&starting).1, most }
    });
    Judged::Queued(Queued { tasks, throttle, ..Queued::of(entry) })
}

/// How many tasks of an array may hold nodes at once, and how many do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    pub array: JobId,
    pub most: u32,
    pub running: u32,
}

impl Throttle {
    /// That of an array, or of a task that has a number of its own. Nothing if there is none.
    fn of(world: &World, job: &JobSnapshot) -> Option<Throttle> {
        let (array, told) = match (&job.array, job.task_of) {
            (Some(_), _) => (job.id, None),
            (None, Some(task)) => (task.array, task.throttle),
            (None, None) => return None,
        };
        // What waits of the array knows best: the throttle may have been changed.
        let progress = world.jobs.get(&array).and_then(|entry| entry.job.array.as_ref()).or(job.array.as_ref());
        let most = progress.map_or(told, |progress| progress.throttle)?;
        let known = world.tasks.get(&array).map_or(0, |tasks| tasks.len() as u32);
        let held = progress.map_or(known, |progress| progress.running.max(known));
        Some(Throttle { array, most, running: held + starting_tasks(array, &world.unconfirmed).count() as u32 })
    }

    /// So many more may start.
    pub fn left(&self) -> u32 {
        self.most.saturating_sub(self.running)
    }
}

/// Tasks that are about to start.
fn starting_tasks(array: JobId, starting: &Starting) -> impl Iterator<Item = u32> {
    starting.range((array, Some(0))..=(array, Some(u32::MAX))).filter_map(|((_, index), _)| *index)
}

/// The first live job of each user and name, if anybody asks for it.
pub fn elders(world: &World) -> Elders<'_> {
    let mut elders = HashMap::new();
    if world.jobs.values().any(|e| e.job.is_singleton) {
        for entry in world.jobs.values() {
            elders.entry((&entry.job.tenant, &entry.job.user, entry.job.name.as_str())).or_insert(entry.job.id);
        }
    }
    elders
}

pub fn rules(world: &World, now: Micros) -> Rules<'_> {
    Rules { partitions: &world.partitions, qos: &world.qos, reservations: &world.reservations, now }
}
