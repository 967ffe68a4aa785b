//! From outcomes to the words of a plan, as little as can be worked out for each job: what jobs of one key share is made once.

use std::collections::HashMap;
use std::sync::Arc;

use berth_model::JobId;
use berth_model::event::JobSnapshot;
use berth_model::verdict::{JobVerdict, PlannedStart, Verdict};

use crate::amount::{Micros, timestamp};
use crate::backfill::{Outcome, Queued, Wait};
use crate::components;
use crate::eligible::throttled;
use crate::explain::{self, Common, Ground, Words, say};
use crate::filling::Filling;
use crate::fit::{Candidates, Fit, Fitness};
use crate::fleet::Fleet;
use crate::keys::{KeyId, Keys};
use crate::licenses::Licenses;
use crate::plan::Plan;
use crate::priority::{Scale, Score};
use crate::reserved::Reserved;

/// What is said of grounds, by their address: kept from a full plan for the quick ones after it. The ground kept beside it keeps the
/// address from being given to another.
pub type Grounds = HashMap<usize, (Arc<Candidates>, Ground)>;

pub struct Writer<'a> {
    pub fleet: &'a Fleet,
    pub filling: &'a Filling,
    pub keys: &'a Keys,
    pub scale: &'a Scale<'a>,
    words: Reserved<'a>,
    licenses: &'a Licenses,
    pub grounds: &'a mut Grounds,
    /// By key and time limit.
    kept_out: HashMap<(KeyId, Micros), Option<Verdict>>,
    common: HashMap<KeyId, (Arc<Fit>, Common)>,
}

impl<'a> Writer<'a> {
    pub fn new(
        fleet: &'a Fleet,
        filling: &'a Filling,
        keys: &'a Keys,
        scale: &'a Scale<'a>,
        words: Reserved<'a>,
        licenses: &'a Licenses,
        grounds: &'a mut Grounds,
    ) -> Self {
        Writer { fleet, filling, keys, scale, words, licenses, grounds, kept_out: HashMap::new(), common: HashMap::new() }
    }

    /// A job that policy holds.
    pub fn held(&self, job: &JobSnapshot, causes: Vec<Verdict>, score: &Score, rank: u32, ahead: &[JobId], plan: &mut Plan) {
        let priority = self.scale.explain(job, score, rank);
        plan.verdicts.push(JobVerdict { job: job.id, verdicts: causes, priority, ahead: ahead.to_vec(), planned_start: None });
    }

    /// A job that the walk has met. `false`: it has started, nothing is left to say.
    #[allow(clippy::too_many_arguments)]
    pub fn met(
        &mut self,
        job: &JobSnapshot,
        queued: &Queued,
        outcome: &Outcome,
        score: &Score,
        rank: u32,
        ahead: &[JobId],
        plan: &mut Plan,
    ) -> bool {
        if let Wait::Limited(causes) = &outcome.wait {
            self.held(job, causes.iter().map(|(_, verdict)| verdict.clone()).collect(), score, rank, ahead, plan);
            return true;
        }
        let Some((verdict, planned_start)) = self.say(job, queued, outcome, ahead) else { return false };
        if let Some(planned) = &planned_start {
            plan.wake_by(planned.at);
        }
        let priority = self.scale.explain(job, score, rank);
        let verdicts = self.with_licenses(queued, &outcome.wait, verdict);
        plan.verdicts.push(JobVerdict { job: job.id, verdicts, priority, ahead: ahead.to_vec(), planned_start });
        true
    }

    /// A component of a heterogeneous job that the walk has met with the others: all of them are told the same, and each its own nodes.
    /// `all` are the components in their order. `false`: they have started.
    #[allow(clippy::too_many_arguments)]
    pub fn met_together(
        &mut self,
        all: &[&JobSnapshot],
        at: usize,
        queued: &Queued,
        outcome: &Outcome,
        score: &Score,
        rank: u32,
        ahead: &[JobId],
        plan: &mut Plan,
    ) -> bool {
        let Wait::Together(together) = &outcome.wait else { return false };
        let planned_start = together
            .planned
            .as_ref()
            .map(|(from, nodes)| PlannedStart { at: timestamp(*from), nodes: explain::names(self.fleet, &nodes[at]) });
        let mut verdicts = Vec::new();
        for (i, wait) in &together.told {
            let (Some(job), Some(part)) = (all.get(*i), queued.parts().nth(*i)) else { continue };
            let own = match wait {
                Wait::Limited(causes) => causes.iter().map(|(_, verdict)| verdict.clone()).collect(),
                _ => {
                    let outcome = Outcome { wait: wait.clone(), started: 0 };
                    let said = self.say(job, part, &outcome, ahead);
                    said.map(|(verdict, _)| self.with_licenses(part, wait, verdict)).unwrap_or_default()
                }
            };
            verdicts.extend(components::of_component(*i, own));
        }
        if let Some(planned) = &planned_start {
            plan.wake_by(planned.at);
        }
        let priority = self.scale.explain(all[at], score, rank);
        plan.verdicts.push(JobVerdict { job: all[at].id, verdicts, priority, ahead: ahead.to_vec(), planned_start });
        true
    }

    /// The licences that are missing now, of the way that misses the fewest; none if those of some way are free.
    fn missing(&self, queued: &Queued, at: Option<Micros>) -> Vec<Verdict> {
        let sets = queued.keys().map(|key| &self.keys.entries[key as usize].key.licenses);
        let missing = sets.map(|set| self.licenses.short(queued.job, set, self.words.now, queued.length, at));
        missing.min_by_key(Vec::len).unwrap_or_default()
    }

    /// What binds goes first: licences, if they are free no sooner than it is planned to start.
    fn with_licenses(&self, queued: &Queued, wait: &Wait, verdict: Verdict) -> Vec<Verdict> {
        let at = match wait {
            Wait::Planned { at, .. } => Some(*at),
            Wait::NotNow | Wait::TooLate => None,
            _ => return vec![verdict],
        };
        let missing = self.missing(queued, at);
        if missing.is_empty() {
            return vec![verdict];
        }
        if verdict.code == "priority" {
            return missing;
        }
        let clears = missing.iter().filter_map(|verdict| verdict.clears_at).max();
        let are_last = at.is_none_or(|at| clears.is_none_or(|clears| clears >= timestamp(at)));
        if are_last { missing.into_iter().chain([verdict]).collect() } else { [verdict].into_iter().chain(missing).collect() }
    }

    fn say(&mut self, job: &JobSnapshot, queued: &Queued, outcome: &Outcome, ahead: &[JobId]) -> Option<(Verdict, Option<PlannedStart>)> {
        Some(match &outcome.wait {
            Wait::No => {
                // Some tasks are left, which the throttle keeps back.
                let array = job.array.as_ref().filter(|array| array.pending.len() > outcome.started)?;
                (throttled(job.id, array.running + outcome.started as u32, array.throttle.unwrap_or(0)), None)
            }
            Wait::Planned { at, nodes } => {
                let planned = PlannedStart { at: timestamp(*at), nodes: explain::names(self.fleet, nodes) };
                (self.waits(job, queued, &outcome.wait, ahead, Some(*at))?, Some(planned))
            }
            Wait::Preempting { at, nodes, victims } => {
                let planned = PlannedStart { at: timestamp(*at), nodes: explain::names(self.fleet, nodes) };
                (explain::preempting(job, victims, &planned), Some(planned))
            }
            Wait::NotNow => (self.waits(job, queued, &outcome.wait, ahead, None)?, None),
            Wait::TooLate => {
                let verdict = say("deadline_unreachable", "a job must be able to end by its deadline", format!("job/{}", job.id))
                    .need(explain::words(&job.shape))
                    .advice("lower the time limit, ask for less, or move the deadline");
                (verdict, None)
            }
            Wait::Limited(_) | Wait::Together(_) => return None,
            Wait::Unlicensed => (self.missing(queued, None).into_iter().next()?, None),
            Wait::Unfit(key, fitness) => (self.unfit(job, *key, *fitness)?, None),
        })
    }

    /// Of a job that is not given all it needs now.
    fn waits(&mut self, job: &JobSnapshot, queued: &Queued, wait: &Wait, ahead: &[JobId], at: Option<Micros>) -> Option<Verdict> {
        if !job.reservations.is_empty()
            && let Some(verdict) =
                self.words.within(job, wait, self.keys.entries[queued.key as usize].fit.as_deref(), explain::words(&job.shape))
        {
            return Some(verdict);
        }
        if job.reservations.is_empty() && !self.fleet.reservations.is_empty() {
            let outside = queued.others.last().copied().unwrap_or(queued.key);
            let index = (outside, queued.length);
            let verdict = match self.kept_out.get(&index) {
                Some(known) => known.clone(),
                None => {
                    let fit = self.keys.entries[outside as usize].fit.clone();
                    let verdict = fit.and_then(|fit| self.words.kept_out(job, &fit));
                    self.kept_out.insert(index, verdict.clone());
                    verdict
                }
            };
            if verdict.is_some() {
                return verdict;
            }
        }
        Some(self.common(queued.key)?.1.waits(ahead, at))
    }

    fn unfit(&mut self, job: &JobSnapshot, key: KeyId, fitness: Fitness) -> Option<Verdict> {
        let ground = &self.keys.entries[key as usize].key.ground;
        let (fences, reservation) = (&ground.fences, ground.reservation.clone().filter(|_| !job.reservations.is_empty()));
        if let Some(verdict) = self.words.fenced(job, fences) {
            return Some(verdict);
        }
        let fit = self.common(key)?.0.clone();
        let verdict = explain::unfit(self.fleet, job, &fit, fitness);
        Some(match reservation {
            Some(name) if fitness != Fitness::NodesUnavailable => Verdict {
                object: format!("reservation/{name}"),
                advice: Some("ask for what the reservation has on nodes of the job's partition, or leave the reservation out".to_owned()),
                ..verdict
            },
            _ => verdict,
        })
    }

    fn common(&mut self, key: KeyId) -> Option<&(Arc<Fit>, Common)> {
        let entry = &self.keys.entries[key as usize];
        let fit = entry.fit.as_ref()?;
        let (address, candidates) = (Arc::as_ptr(&fit.candidates) as usize, &fit.candidates);
        let (_, ground) =
            self.grounds.entry(address).or_insert_with(|| (candidates.clone(), explain::ground(self.fleet, self.filling, candidates)));
        Some(self.common.entry(key).or_insert_with(|| {
            let has_room = explain::has_room(self.fleet, self.filling, fit);
            (fit.clone(), Common::of(&entry.key.ground.partition, &entry.key.shape, ground, has_room))
        }))
    }
}
