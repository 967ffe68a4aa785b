//! Backfill: walk the queue and give each job its earliest instant on the profile.
//!
//! Now is a start. Later is a planned start: its nodes are taken off the profile, so no later job can delay it, and a later job
//! starts only where it ends in time or stands elsewhere. By default every job gets a planned start; beyond
//! [`Settings::depth`](crate::Settings) jobs are only tried now (they still respect all planned starts). Jobs that can never fit are no obstacle.
//! Of one array at most [`ARRAY_DEPTH`] tasks get planned starts in a pass, as with Slurm's `bf_max_job_array_resv`.

use std::sync::Arc;

use berth_model::preemption::Claim;
use berth_model::{Indices, JobId};

use crate::accounts::PartyId;
use crate::amount::{Micros, NEVER, micros, span};
use crate::claims::Kept;
use crate::components::{self, Together};
use crate::engine::Entry;
use crate::fit::{Fit, Fitness};
use crate::fleet::NodeIdx;
use crate::keys::KeyId;
use crate::limits::Causes;
use crate::pass::{Found, Pass, Ways};
use crate::plan::Start;
use crate::queue::Throttle;

pub const ARRAY_DEPTH: usize = 20;

/// A job that may start as far as policy goes.
#[derive(Debug)]
pub struct Queued {
    pub job: JobId,
    pub key: KeyId,
    /// Its other [ways](crate::ways).
    pub others: Vec<KeyId>,
    pub party: PartyId,
    pub length: Micros,
    /// It must have ended by then.
    pub deadline: Option<Micros>,
    /// Array tasks that may start; `None` for a plain job.
    pub tasks: Option<Tasks>,
    /// What bounds the tasks of its array.
    pub throttle: Option<Throttle>,
    /// Nodes that it, or its first task, has got by preemption.
    pub claim: Option<Arc<Claim>>,
    /// Of the leader of a heterogeneous job: its further components.
    pub components: Vec<Queued>,
}

/// Tasks of an array, of which the first `most` may start.
#[derive(Debug, Default)]
pub struct Tasks {
    pub pending: Indices,
    pub most: usize,
}

impl Queued {
    /// A job, or an array of which nothing may start.
    pub fn of(entry: &Entry) -> Queued {
        let job = &entry.job;
        let tasks = job.array.as_ref().map(|_| Tasks::default());
        let deadline = job.deadline.map(micros);
        let claim = job.claim.clone().map(Arc::new);
        let others = entry.others.clone();
        Queued {
            job: job.id,
            key: entry.key,
            others,
            party: entry.party,
            length: span(job.time_limit),
            deadline,
            tasks,
            throttle: None,
            claim,
            components: Vec::new(),
        }
    }

    /// Its ways, the first to be tried first.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        std::iter::once(self.key).chain(self.others.iter().copied())
    }

    /// Itself and its further components.
    pub fn parts(&self) -> impl Iterator<Item = &Queued> {
        std::iter::once(self).chain(&self.components)
    }
}

/// Why a job did not start, or all of an array did not.
#[derive(Clone, Debug)]
pub enum Wait {
    /// It started, every task of it.
    No,
    Planned {
        at: Micros,
        nodes: Vec<NodeIdx>,
    },
    /// Others were preempted for it; it starts when they have ended, at the latest then.
    Preempting {
        at: Micros,
        nodes: Vec<NodeIdx>,
        victims: Vec<JobId>,
    },
    /// Not now; beyond the depth to which starts are planned.
    NotNow,
    /// No start before its deadline allows it to end in time.
    TooLate,
    /// By the way that misses the least.
    Unfit(KeyId, Fitness),
    /// The cluster has too few licences, whoever holds them.
    Unlicensed,
    /// Limits hold it.
    Limited(Causes),
    /// Components that do not start now, none of them.
    Together(Box<Together>),
}

#[derive(Debug)]
pub struct Outcome {
    pub wait: Wait,
    pub started: usize,
}

impl Outcome {
    /// Tasks that were planned or started before say more.
    fn be_limited(&mut self, causes: Causes) {
        if matches!(self.wait, Wait::No) {
            self.wait = Wait::Limited(causes);
        }
    }
}

/// Walks `queue` in its order until `depth` starts are planned; then, if there are `lengths`, tries the shortest of the rest first.
/// Claims go before everything, then suspended jobs, unless they yield to those that may preempt them.
/// The outcomes are in the order of the queue.
pub fn walk(pass: &mut Pass<'_>, queue: &[Queued], depth: usize, lengths: Option<&[Micros]>, starts: &mut Vec<Start>) -> Vec<Outcome> {
    let mut planned = 0;
    let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(queue.len());
    let mut order: Vec<usize> = (0..queue.len()).collect();
    order.sort_by_key(|i| queue[*i].claim.is_none());
    let mut is_sorted = lengths.is_none();
    for at in 0..order.len() {
        if let Some(lengths) = lengths.filter(|_| !is_sorted && planned >= depth) {
            order[at..].sort_by_key(|i| lengths[*i]);
            is_sorted = true;
        }
        let i = order[at];
        if queue[i].claim.is_none() {
            pass.bring_back(Some(queue[i].job));
        }
        outcomes.push((i, consider(pass, &queue[i], depth, &mut planned, starts)));
    }
    pass.bring_back(None);
    outcomes.sort_unstable_by_key(|(i, _)| *i);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Starts or plans one job, or the tasks of one array. `planned` counts planned starts up to `depth`.
pub fn consider(pass: &mut Pass<'_>, queued: &Queued, depth: usize, planned: &mut usize, starts: &mut Vec<Start>) -> Outcome {
    if !queued.components.is_empty() {
        return components::consider(pass, queued, depth, planned, starts);
    }
    let mut outcome = Outcome { wait: Wait::No, started: 0 };
    let ways = pass.ways(queued);
    if let Some((key, fitness)) = ways.unfit() {
        outcome.wait = Wait::Unfit(key, fitness);
        return outcome;
    }
    if !ways.all().any(|(key, fit)| fit.fitness == Fitness::Fits && pass.may_have_licenses(key)) {
        outcome.wait = Wait::Unlicensed;
        return outcome;
    }
    let plain: Option<Option<u32>> = queued.tasks.is_none().then_some(None);
    let tasks = queued.tasks.iter().flat_map(|tasks| tasks.pending.iter().take(tasks.most).map(Some));
    let mut reserved = 0;
    for (i, index) in plain.into_iter().chain(tasks).enumerate() {
        if pass.is_throttled(queued) {
            // Other tasks of the array have taken what was left. An array hears so; a task by itself with the next plan.
            if queued.tasks.is_none() {
                outcome.wait = Wait::NotNow;
            }
            break;
        }
        let claim = queued.claim.as_ref().filter(|_| i == 0);
        let causes = pass.limits(queued);
        if !causes.is_empty() {
            outcome.be_limited(causes);
            break;
        }
        let by_deadline = queued.deadline.map_or(NEVER, |deadline| deadline.saturating_sub(queued.length));
        let latest = if *planned >= depth || reserved >= ARRAY_DEPTH { pass.now.min(by_deadline) } else { by_deadline };
        let kept = claim.map_or(Kept::Void, |claim| keep(pass, queued, claim, &ways));
        let found = match kept {
            Kept::Ready(found) => Some(found),
            Kept::Waits(wait) => {
                outcome.wait = wait;
                break;
            }
            Kept::Void => pass.find_way(queued, &ways, latest),
        };
        if pass.preempting.is_some() && found.as_ref().is_none_or(|found| found.at > pass.now) && reserved == 0 {
            let planned = found.as_ref().map(|found| found.at);
            let mut fitting = ways.all().filter(|(_, fit)| fit.fitness == Fitness::Fits);
            if let Some(wait) = fitting.find_map(|(key, fit)| pass.preempt(queued, key, fit, planned, by_deadline)) {
                outcome.wait = wait;
                break;
            }
        }
        match found {
            Some(found) if found.at == pass.now => match pass.start(queued, index, ways.fit(found.key), &found) {
                Ok(start) => {
                    starts.push(start);
                    outcome.started += 1;
                }
                Err(causes) => {
                    outcome.be_limited(causes);
                    break;
                }
            },
            Some(found) => {
                pass.reserve(queued.job, ways.fit(found.key), &found, queued.length);
                *planned += 1;
                reserved += 1;
                keep_first(&mut outcome.wait, &found);
            }
            None => {
                if matches!(outcome.wait, Wait::No) {
                    outcome.wait = if latest == by_deadline && latest < NEVER { Wait::TooLate } else { Wait::NotNow };
                }
                break;
            }
        }
    }
    outcome
}

/// Where a job's claim stands, by the way that it was made for.
fn keep(pass: &mut Pass<'_>, queued: &Queued, claim: &Claim, ways: &Ways) -> Kept {
    for (key, fit) in ways.all().filter(|(_, fit)| fit.fitness == Fitness::Fits) {
        match pass.keep(queued, claim, key, fit) {
            Kept::Void => {}
            kept => return kept,
        }
    }
    Kept::Void
}

/// Makes the planned start of an even gang, whose time has come, on the nodes it has; or puts it off until their holders end.
pub fn claim(pass: &mut Pass<'_>, queued: &Queued, fit: &Fit, starts: &mut Vec<Start>) -> Outcome {
    let found = pass.claim(queued.job, queued.key);
    if pass.is_throttled(queued) {
        return Outcome { wait: Wait::NotNow, started: 0 };
    }
    let causes = pass.limits(queued);
    if !causes.is_empty() {
        return Outcome { wait: Wait::Limited(causes), started: 0 };
    }
    let deadline = queued.deadline.map_or(NEVER, |deadline| deadline.saturating_sub(queued.length));
    if found.at > deadline {
        return Outcome { wait: Wait::TooLate, started: 0 };
    }
    if found.at > pass.now {
        pass.reserve(queued.job, fit, &found, queued.length);
        let nodes = found.parts.iter().map(|(node, _)| *node).collect();
        return Outcome { wait: Wait::Planned { at: found.at, nodes }, started: 0 };
    }
    let mut outcome = Outcome { wait: Wait::No, started: 0 };
    match pass.start(queued, None, fit, &found) {
        Ok(start) => {
            starts.push(start);
            outcome.started = 1;
        }
        Err(causes) => outcome.be_limited(causes),
    }
    outcome
}

/// An array is shown with the planned start of its first waiting task.
fn keep_first(wait: &mut Wait, found: &Found) {
    if matches!(wait, Wait::No) {
        *wait = Wait::Planned { at: found.at, nodes: found.parts.iter().map(|(node, _)| *node).collect() };
    }
}
