//! The full plan: every pending job is ranked, judged and placed anew on a profile of what is held now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use berth_model::event::JobSnapshot;
use berth_model::verdict::Verdict;
use berth_model::{JobId, Name};
use jiff::Timestamp;

use crate::amount::{Amount, Micros, SECOND, micros, timestamp};
use crate::backfill::{self, Queued, Wait};
use crate::claims::Preempting;
use crate::components;
use crate::engine::{Engine, limit_of};
use crate::fit::Fitness;
use crate::keys::KeyId;
use crate::order;
use crate::pass::Pass;
use crate::plan::Plan;
use crate::priority::Scale;
use crate::queue::{self, Judged};
use crate::reserved::Reserved;
use crate::standing::{Alarm, Standing};
use crate::suspended;
use crate::verdicts::Writer;
use crate::victims;

/// Jobs ahead that a verdict names, at most.
pub const MOST_AHEAD: usize = 10;

impl Engine {
    /// Decides about every pending job. Starts count as held until they are confirmed or retracted.
    pub fn plan(&mut self, at: Timestamp) -> Plan {
        let now = micros(at);
        let mut plan = Plan::at(at);
        self.refresh_fleet();
        self.forget_returns();
        self.clock = now;
        let mut standing = Standing::default();
        self.watch_running(now, &mut plan, &mut standing);
        self.accounts.settle(&self.world, now);
        let scale = Scale::new(&self.world, &self.accounts, &self.fleet, now).ordered(self.settings.order, &self.fleet);
        let ranked = queue::rank(&self.world, &scale);
        let (rules, elders) = (queue::rules(&self.world, now), queue::elders(&self.world));
        let mut queue: Vec<Queued> = Vec::with_capacity(ranked.len());
        // For each ranked job: its place in the queue, or what holds it. Components have one place, which the leader is given.
        let mut wholes: BTreeMap<JobId, Result<usize, Vec<Verdict>>> = BTreeMap::new();
        let mut judged: Vec<_> = ranked
            .iter()
            .map(|ranked| {
                let mut enqueue = |queued: Queued| {
                    queue.push(queued);
                    queue.len() - 1
                };
                if let Some(of) = ranked.entry.job.component_of {
                    let judge = || components::judge(&self.world, &rules, of, &elders, &mut plan).map(enqueue);
                    return wholes.entry(of.leader).or_insert_with(judge).clone();
                }
                match queue::judge(&self.world, &rules, ranked.entry, &elders, &mut plan) {
                    Judged::Held(causes) => Err(causes),
                    Judged::Queued(queued) => Ok(enqueue(queued)),
                }
            })
            .collect();
        plan.expired.sort_unstable();
        for ranked in &ranked {
            standing.add_place(&ranked.entry.job.partition, ranked.place);
            let begin = ranked.entry.job.not_before.map(micros).filter(|begin| *begin > now);
            standing.alarms.extend(begin.map(|begin| Reverse((begin, Alarm::Begin(ranked.place.job)))));
        }

        let mut pass = Pass::new(
            now,
            &mut self.fleet,
            &mut self.profile,
            &mut self.bookings,
            &mut self.keys,
            &mut self.accounts,
            &mut self.licenses,
            &self.world.partitions,
        );
        pass.preempting = victims::Rules::new(&self.world, now, !pass.accounts.cohorts.is_empty()).map(Preempting::new);
        pass.returning = suspended::returning(&self.world);
        pass.bookings.clear();
        pass.licenses.clear_booked();
        pass.licenses.clamp_overdue(now);
        let needs = needs(&mut pass, &queue);
        pass.profile.begin(pass.fleet, &needs, now);
        if pass.profile.clamp_overdue(pass.fleet, now) {
            plan.wake_by(timestamp(now.saturating_add(SECOND)));
        }
        let lengths = order::lengths(&self.world, &queue, self.settings.rest, self.settings.is_predicted);
        let outcomes = backfill::walk(&mut pass, &queue, self.settings.depth, lengths.as_deref(), &mut plan.starts);
        if let Some(preempting) = pass.preempting.take() {
            preempting.tell(&mut plan);
        }
        plan.resumes = std::mem::take(&mut pass.resumes);

        // What is held otherwise may be held by limits too.
        for (ranked, judged) in ranked.iter().zip(&mut judged).filter(|(ranked, _)| ranked.entry.job.component_of.is_none()) {
            if let Err(causes) = judged {
                let limits = pass.limits(&Queued::of(ranked.entry));
                causes.extend(limits.iter().map(|(_, verdict)| verdict.clone()));
            }
        }
        for (ranked, judged) in ranked.iter().zip(&judged) {
            if let Ok(i) = judged
                && let Wait::Limited(causes) = &outcomes[*i].wait
            {
                standing.add_limited(ranked.place, causes);
            }
        }
        // Quick plans leave components to the next full one.
        let plain = ranked.iter().zip(&judged).filter(|(ranked, _)| ranked.entry.job.component_of.is_none());
        let in_queue = plain.filter_map(|(ranked, judged)| Some((&queue[*judged.as_ref().ok()?], ranked.place)));
        standing.group(in_queue, &self.keys, &self.accounts);
        standing.boundary = self.fleet.next_boundary(now);
        standing.boundary.iter().for_each(|at| plan.wake_by(timestamp(*at)));
        let words = Reserved { reservations: &self.world.reservations, fleet: &self.fleet, filling: &self.profile.filling, now };
        let mut writer = Writer::new(&self.fleet, &self.profile.filling, &self.keys, &scale, words, &self.licenses, &mut standing.grounds);
        let mut ahead: BTreeMap<&Name, VecDeque<JobId>> = BTreeMap::new();
        for ((ranked, judged), rank) in ranked.iter().zip(judged).zip(1..) {
            let job = &ranked.entry.job;
            let before = ahead.entry(&job.partition).or_default();
            let nearest = before.make_contiguous();
            let is_told = match judged {
                Err(causes) => {
                    writer.held(job, causes, &ranked.score, rank, nearest, &mut plan);
                    true
                }
                Ok(i) if job.component_of.is_some() => {
                    let all: Vec<&JobSnapshot> = queue[i].parts().filter_map(|part| Some(&self.world.jobs.get(&part.job)?.job)).collect();
                    let at = job.component_of.map_or(0, |of| of.offset as usize);
                    writer.met_together(&all, at, &queue[i], &outcomes[i], &ranked.score, rank, nearest, &mut plan)
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
        self.standing = Some(standing);
        self.news = Default::default();
        self.remember_starts(now, &plan);
        plan
    }

    /// Running jobs past their limit.
    fn watch_running(&self, now: Micros, plan: &mut Plan, standing: &mut Standing) {
        for entry in self.world.jobs.values() {
            match limit_of(&entry.job, &self.settings) {
                Some(limit) if limit <= now => plan.overdue.push(entry.job.id),
                Some(limit) => {
                    plan.wake_by(timestamp(limit));
                    standing.alarms.push(Reverse((limit, Alarm::Limit(entry.job.id))));
                }
                None => {}
            }
        }
    }
}

/// What the queue will ask of each class, with the number of jobs that do.
fn needs(pass: &mut Pass<'_>, queue: &[Queued]) -> Vec<BTreeMap<Amount, u32>> {
    let mut by_key: BTreeMap<KeyId, u32> = BTreeMap::new();
    for queued in queue.iter().flat_map(Queued::parts) {
        for key in queued.keys() {
            *by_key.entry(key).or_default() += 1;
        }
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
