//! The full plan: every pending job is ranked, judged and placed anew on a profile of what is held now.

use std::collections::{BTreeMap, VecDeque};

use berth_model::state::JobState;
use berth_model::{JobId, Name};
use jiff::Timestamp;

use crate::amount::{Amount, Micros, SECOND, micros, span, timestamp};
use crate::backfill::{self, Queued};
use crate::engine::Engine;
use crate::fit::Fitness;
use crate::keys::KeyId;
use crate::pass::Pass;
use crate::plan::Plan;
use crate::priority::Scale;
use crate::queue::{self, Standing};
use crate::quick;
use crate::verdicts::{Grounds, Writer};

/// Jobs ahead that a verdict names, at most.
pub const MOST_AHEAD: usize = 10;

impl Engine {
    /// Decides about every pending job. Starts count as held until they are confirmed or retracted.
    pub fn plan(&mut self, at: Timestamp) -> Plan {
        let now = micros(at);
        let mut plan = Plan::at(at);
        self.refresh_fleet();
        self.clock = now;
        self.watch_running(now, &mut plan);
        let scale = Scale::new(&self.world.policy, &self.world.partitions, &self.world.qos, now);
        let ranked = queue::rank(&self.world, &scale);
        let (rules, elders) = (queue::rules(&self.world, now), queue::elders(&self.world));
        let mut queue: Vec<Queued> = Vec::with_capacity(ranked.len());
        // For each ranked job: its place in the queue, or what holds it.
        let judged: Vec<_> = ranked
            .iter()
            .map(|ranked| match queue::judge(&self.world, &rules, ranked.entry, &elders, &mut plan) {
                Standing::Held(causes) => Err(causes),
                Standing::Queued(queued) => {
                    queue.push(queued);
                    Ok(queue.len() - 1)
                }
            })
            .collect();
        plan.expired.sort_unstable();
        // By time alone, a full plan is due then; planned starts that come due are for quick plans too.
        let full_at = plan.wake_at;

        let mut pass = Pass::new(now, &mut self.fleet, &mut self.profile, &mut self.bookings, &mut self.keys, &self.world.partitions);
        pass.bookings.clear();
        let needs = needs(&mut pass, &queue);
        pass.profile.begin(pass.fleet, &needs, now);
        if pass.profile.clamp_overdue(pass.fleet, now) {
            plan.wake_by(timestamp(now.saturating_add(SECOND)));
        }
        let outcomes = backfill::walk(&mut pass, &queue, self.settings.depth, &mut plan.starts);

        let mut grounds = Grounds::new();
        let mut writer = Writer::new(&self.fleet, &self.profile.filling, &self.keys, &scale, &mut grounds);
        let mut ahead: BTreeMap<&Name, VecDeque<JobId>> = BTreeMap::new();
        for ((ranked, judged), rank) in ranked.iter().zip(judged).zip(1..) {
            let job = &ranked.entry.job;
            let before = ahead.entry(&job.partition).or_default();
            let nearest = before.make_contiguous();
            let is_told = match judged {
                Err(causes) => {
                    writer.held(job.id, causes, &ranked.score, rank, nearest, &mut plan);
                    true
                }
                Ok(i) => writer.met(job, &queue[i], &outcomes[i], &ranked.score, rank, nearest, &mut plan),
            };
            if is_told {
                before.push_back(job.id);
                if before.len() > MOST_AHEAD {
                    before.pop_front();
                }
            }
        }
        let places = ranked.iter().map(|ranked| (ranked.place, ranked.entry));
        let standing = quick::Standing::of(places, &queue, grounds, full_at.map(micros));
        self.standing = Some(standing);
        self.news = Default::default();
        self.remember_starts(now, &plan);
        plan
    }

    /// Running jobs past their limit.
    fn watch_running(&self, now: Micros, plan: &mut Plan) {
        let grace = span(self.settings.grace_seconds);
        for entry in self.world.jobs.values().filter(|e| e.job.state == JobState::Running) {
            if let Some(started) = entry.job.attempt.as_ref().and_then(|a| a.started_at) {
                let end = micros(started).saturating_add(span(entry.job.time_limit)).saturating_add(grace);
                if end <= now {
                    plan.overdue.push(entry.job.id);
                } else {
                    plan.wake_by(timestamp(end));
                }
            }
        }
    }
}

/// What the queue will ask of each class, with the number of jobs that do.
fn needs(pass: &mut Pass<'_>, queue: &[Queued]) -> Vec<BTreeMap<Amount, u32>> {
    let mut by_key: BTreeMap<KeyId, u32> = BTreeMap::new();
    for queued in queue {
        *by_key.entry(queued.key).or_default() += 1;
    }
    let mut needs = vec![BTreeMap::new(); pass.fleet.classes.len()];
    for (key, jobs) in by_key {
        let fit = pass.fit(key);
        if fit.fitness == Fitness::Fits
            && let Some(variant) = fit.variants.first()
        {
            for class in &fit.candidates.classes {
                if let Some(need) = variant.needs[*class as usize] {
                    *needs[*class as usize].entry(need).or_insert(0) += jobs;
                }
            }
        }
    }
    needs
}
