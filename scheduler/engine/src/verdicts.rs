//! From outcomes to the words of a plan, as little as can be worked out for each job: what jobs of one key share is made once.

use std::collections::HashMap;
use std::sync::Arc;

use berth_model::JobId;
use berth_model::event::JobSnapshot;
use berth_model::verdict::{JobVerdict, PlannedStart, Verdict};

use crate::amount::timestamp;
use crate::backfill::{Outcome, Queued, Wait};
use crate::eligible::throttled;
use crate::explain::{self, Common, Ground, Words, say};
use crate::filling::Filling;
use crate::fit::{Candidates, Fit};
use crate::fleet::Fleet;
use crate::keys::{KeyId, Keys};
use crate::plan::Plan;
use crate::priority::{Scale, Score};

/// What is said of grounds, by their address: kept from a full plan for the quick ones after it. The ground kept beside it keeps the
/// address from being given to another.
pub type Grounds = HashMap<usize, (Arc<Candidates>, Ground)>;

pub struct Writer<'a> {
    pub fleet: &'a Fleet,
    pub filling: &'a Filling,
    pub keys: &'a Keys,
    pub scale: &'a Scale<'a>,
    pub grounds: &'a mut Grounds,
    common: HashMap<KeyId, (Arc<Fit>, Common)>,
}

impl<'a> Writer<'a> {
    pub fn new(fleet: &'a Fleet, filling: &'a Filling, keys: &'a Keys, scale: &'a Scale<'a>, grounds: &'a mut Grounds) -> Self {
        Writer { fleet, filling, keys, scale, grounds, common: HashMap::new() }
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
        plan.verdicts.push(JobVerdict { job: job.id, verdicts: vec![verdict], priority, ahead: ahead.to_vec(), planned_start });
        true
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
                (self.common(queued.key)?.1.waits(ahead, Some(*at)), Some(planned))
            }
            Wait::NotNow => (self.common(queued.key)?.1.waits(ahead, None), None),
            Wait::TooLate => {
                let verdict = say("deadline_unreachable", "a job must be able to end by its deadline", format!("job/{}", job.id))
                    .need(explain::words(&job.shape))
                    .advice("lower the time limit, ask for less, or move the deadline");
                (verdict, None)
            }
            Wait::Limited(_) => return None,
            Wait::Unfit(fitness) => (explain::unfit(self.fleet, job, &self.common(queued.key)?.0.clone(), *fitness), None),
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
