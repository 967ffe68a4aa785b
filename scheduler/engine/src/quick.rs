//! The quick plan: what events since the last plan change, on the profile as it stands, with all planned starts in it.
//!
//! The rule: a quick plan only takes what no planned start has. Each job that it looks at gives up its own planned start first and
//! then gets the earliest instant that the profile, with everybody else's planned starts, allows: its old one at the latest. So no
//! planned start is delayed by another job, whatever the order of the events.
//!
//! A planned start whose time has come is made on its own nodes. If the plan itself comes late, or a holder overran, the jobs planned
//! behind slip by as much and keep their nodes: nobody takes their place, and the next full plan packs anew.
//!
//! It looks at jobs that came or changed, at planned starts whose time has come, at begin times, and, where nodes were freed, at the
//! jobs planned next on these nodes and at the first job of each key and length for which there is room (of each party, where limits
//! bind it); where a limit counts less than before, at the first jobs that it held; where a
//! licence was given back, at the first jobs that need it. That is all that can start
//! now because of the events, but for chains: a job that starts early leaves its planned place to nobody until the next full plan,
//! which ranks everything anew and lets a new job of high priority go ahead of planned starts behind it.
//!
//! Changes of nodes, partitions, QOS and policy, singletons, components of heterogeneous jobs, and other orders than Slurm's, are left to a full plan. The caller decides how often that is
//! made besides.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use berth_model::JobId;
use berth_model::state::JobState;
use berth_model::verdict::Verdict;
use jiff::Timestamp;

use crate::amount::{Amount, Micros, SECOND, micros, span, timestamp};
use crate::backfill::{self, Outcome, Queued, Wait};
use crate::engine::{Engine, Entry, News, World, limit_of};
use crate::explain;
use crate::fit::Fitness;
use crate::fleet::{Fleet, NodeIdx};
use crate::keys::KeyId;
use crate::order::Order;
use crate::pass::Pass;
use crate::plan::Plan;
use crate::priority::{Place, Scale};
use crate::profile::{Booking, Profile};
use crate::queue::{self, Judged};
use crate::reserved::Reserved;
use crate::standing::{Alarm, Group, Standing};
use crate::verdicts::Writer;

/// Freed nodes that are looked at, and kinds of room among them: more are left to the full plan.
const MOST_FREED: usize = 64;
const MOST_ROOMS: usize = 16;
/// Jobs planned next on freed nodes that are tried.
const MOST_NEXT: usize = 8;
/// Groups whose first job is tried, those first in the queue.
const MOST_GROUPS: usize = 256;
/// Jobs tried in vain.
const MOST_TRIES: usize = 64;

/// Whom to look at. The order is that of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Candidate {
    Job,
    /// The first of a group.
    Head(usize),
}

impl Engine {
    /// Decides about what has changed since the last plan; a full plan if it must be one.
    pub fn quick_plan(&mut self, at: Timestamp) -> Plan {
        let now = micros(at);
        let may_be_quick = self.is_quick_enough(now);
        let is_before = |standing: &Standing| standing.boundary.is_none_or(|boundary| now < boundary);
        let Some(mut standing) = self.standing.take().filter(|standing| may_be_quick && is_before(standing)) else { return self.plan(at) };
        let mut plan = Plan { is_full: false, ..Plan::at(at) };
        self.clock = now;
        let news = std::mem::take(&mut self.news);
        self.licenses.clamp_overdue(now);
        if self.profile.clamp_overdue(&self.fleet, now) {
            plan.wake_by(timestamp(now.saturating_add(SECOND)));
        }
        let due = self.bookings.due(now);
        // Components start with all others: the full plan looks for the place of all.
        if due.iter().any(|job| self.is_component(*job)) {
            return self.plan(at);
        }
        let arrived = self.look_at(&news, &mut standing, now, &mut plan);
        self.accounts.refresh(&self.world, now);
        let scale = Scale::new(&self.world, &self.accounts, &self.fleet, now);

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
        let mut quick = Quick { world: &self.world, scale: &scale, pass: &mut pass, told: Vec::new(), met: BTreeSet::new(), tries: 0 };
        quick.claim(&due, &mut plan);
        quick.run(arrived, &news, &mut standing, &mut plan);
        let told = quick.told;

        let mut grounds = std::mem::take(&mut standing.grounds);
        let words = Reserved { reservations: &self.world.reservations, fleet: &self.fleet, filling: &self.profile.filling, now };
        let mut writer = Writer::new(&self.fleet, &self.profile.filling, &self.keys, &scale, words, &self.licenses, &mut grounds);
        for (place, told) in told {
            let Some(entry) = self.world.jobs.get(&place.job) else { continue };
            let (rank, ahead) = standing.around(&entry.job.partition, place);
            let score = scale.score(entry);
            match told {
                Told::Held(causes) => writer.held(&entry.job, causes, &score, rank, &ahead, &mut plan),
                Told::Met(queued, outcome) => _ = writer.met(&entry.job, &queued, &outcome, &score, rank, &ahead, &mut plan),
            }
        }
        standing.grounds = grounds;
        let next = [self.bookings.next_at(), standing.boundary, standing.alarms.peek().map(|Reverse((at, _))| *at)];
        next.into_iter().flatten().for_each(|at| plan.wake_by(timestamp(at)));
        plan.expired.sort_unstable();
        self.standing = Some(standing);
        self.remember_starts(now, &plan);
        plan
    }

    fn is_quick_enough(&self, now: Micros) -> bool {
        let is_in_order = self.settings.order == Order::Submission && self.settings.depth == usize::MAX;
        // Suspended jobs go on by full plans.
        let is_suspended = |at: &NodeIdx| self.fleet.holdings(*at).iter().any(|held| self.world.suspended.contains(&held.owner));
        let frees_suspended = !self.world.suspended.is_empty() && self.news.freed.iter().any(is_suspended);
        is_in_order
            && !frees_suspended
            && !self.news.is_large
            && now >= self.clock
            && !self.news.arrived.iter().any(|job| self.is_left(*job))
    }

    fn is_component(&self, job: JobId) -> bool {
        self.world.jobs.get(&job).is_some_and(|e| e.job.component_of.is_some())
    }

    /// Singletons and components are for a full plan.
    fn is_left(&self, job: JobId) -> bool {
        self.world.jobs.get(&job).is_some_and(|e| e.job.is_singleton) || self.is_component(job)
    }

    /// Jobs that came or changed, or whose begin time has come.
    fn look_at(&mut self, news: &News, standing: &mut Standing, now: Micros, plan: &mut Plan) -> BTreeSet<JobId> {
        let mut jobs = news.arrived.clone();
        for alarm in standing.due(now) {
            match alarm {
                Alarm::Begin(job) if self.is_left(job) => self.news.is_large = true,
                Alarm::Begin(job) => _ = jobs.insert(job),
                Alarm::Limit(job) => {
                    let limit = self.world.jobs.get(&job).and_then(|e| limit_of(&e.job, &self.settings));
                    match limit {
                        Some(limit) if limit <= now => plan.overdue.push(job),
                        Some(limit) => standing.alarms.push(Reverse((limit, alarm))),
                        None => {}
                    }
                }
            }
        }
        plan.overdue.sort_unstable();
        for job in &news.arrived {
            let begin = self.world.jobs.get(job).and_then(|e| e.job.not_before).map(micros).filter(|begin| *begin > now);
            standing.alarms.extend(begin.map(|begin| Reverse((begin, Alarm::Begin(*job)))));
        }
        jobs
    }
}

/// What is to be said of a job.
enum Told {
    Held(Vec<Verdict>),
    Met(Queued, Outcome),
}

struct Quick<'a, 'p> {
    world: &'a World,
    scale: &'a Scale<'a>,
    pass: &'a mut Pass<'p>,
    told: Vec<(Place, Told)>,
    /// Each job is looked at once.
    met: BTreeSet<JobId>,
    tries: usize,
}

impl Quick<'_, '_> {
    fn run(&mut self, arrived: BTreeSet<JobId>, news: &News, standing: &mut Standing, plan: &mut Plan) {
        self.keep_claims(&arrived, plan);
        let freed: Vec<NodeIdx> =
            news.freed.iter().copied().filter(|at| self.pass.fleet.nodes[*at as usize].is_usable).take(MOST_FREED).collect();
        let freed: Vec<NodeIdx> = freed.into_iter().flat_map(|at| self.pass.fleet.faces(at)).collect();
        let mut jobs = arrived.clone();
        jobs.extend(self.planned_next(&freed));
        let relieved = news.relieved.iter().flat_map(|scope| standing.relieved(*scope, MOST_NEXT));
        jobs.extend(relieved.map(|place| place.job));
        let is_waiting = |place: &Place| self.place(place.job).is_some_and(|now| now == *place);
        let licensed = news.licenses.iter().flat_map(|name| standing.licensed(name, MOST_NEXT, is_waiting));
        jobs.extend(licensed.map(|place| place.job));
        let mut turn: BinaryHeap<Reverse<(Place, Candidate)>> =
            jobs.iter().filter_map(|job| Some(Reverse((self.place(*job)?, Candidate::Job)))).collect();
        let mut groups = self.groups_with_room(&freed, &standing.groups);
        if groups.len() > MOST_GROUPS {
            groups.select_nth_unstable(MOST_GROUPS);
            groups.truncate(MOST_GROUPS);
        }
        turn.extend(groups.into_iter().map(|(first, at)| Reverse((first, Candidate::Head(at)))));
        while let Some(Reverse((place, candidate))) = turn.pop() {
            let Candidate::Head(at) = candidate else {
                self.consider(place, plan);
                continue;
            };
            let group = &mut standing.groups[at];
            let (now, length) = (self.pass.now, group.length);
            if self.tries == MOST_TRIES || !freed.iter().any(|node| self.pass.profile.fits(*node, &group.least, now, length)) {
                continue;
            }
            let head = self.head(group);
            if head != Some(place) {
                turn.extend(head.map(|place| Reverse((place, candidate))));
            } else if self.can_start(group, place.job) {
                self.consider(place, plan);
                turn.extend(self.head(group).map(|place| Reverse((place, candidate))));
            }
        }
        // In time for the next quick plan: whoever came now is behind those of its kind until a full plan.
        self.enqueue(&arrived, standing);
    }

    /// Jobs that have just got nodes by preemption go before all others.
    fn keep_claims(&mut self, arrived: &BTreeSet<JobId>, plan: &mut Plan) {
        let has_claim = |job: &&JobId| self.world.jobs.get(job).is_some_and(|entry| entry.job.claim.is_some());
        let mut places: Vec<Place> = arrived.iter().filter(has_claim).filter_map(|job| self.place(*job)).collect();
        places.sort_unstable();
        places.into_iter().for_each(|place| self.consider(place, plan));
    }

    /// Planned starts that have come: on their own nodes, now or when the holders there have ended.
    fn claim(&mut self, due: &[JobId], plan: &mut Plan) {
        let mut places: Vec<Place> = due.iter().filter_map(|job| self.place(*job)).collect();
        places.sort_unstable();
        for place in places {
            let entry = &self.world.jobs[&place.job];
            let rules = queue::rules(self.world, self.pass.now);
            let fit = self.pass.fit(entry.key);
            match queue::judge(self.world, &rules, entry, &HashMap::new(), plan) {
                Judged::Queued(queued) if queued.tasks.is_none() && queued.claim.is_none() && !fit.is_loose && !self.has_choice(entry) => {
                    self.met.insert(place.job);
                    let outcome = backfill::claim(self.pass, &queued, &fit, &mut plan.starts);
                    self.told.push((place, Told::Met(queued, outcome)));
                }
                // Tasks of an array, uneven gangs, those with licences and those beside reservations, which none may run into, are placed anew;
                // claims are looked at.
                _ => self.consider(place, plan),
            }
        }
    }

    /// The job has several ways, holds licences, shares nodes with its own kind alone or a GPU, or is planned where reservations keep something.
    fn has_choice(&self, entry: &Entry) -> bool {
        let key = &self.pass.keys.entries[entry.key as usize].key;
        let is_choosy = !key.licenses.is_empty() || key.sharer.is_some() || key.shape.gpu_share().is_some();
        is_choosy || !entry.others.is_empty() || self.pass.bookings.nodes(entry.job.id).iter().any(|at| self.pass.fleet.is_reserved(*at))
    }

    fn place(&self, job: JobId) -> Option<Place> {
        let entry = self.world.jobs.get(&job).filter(|e| queue::is_waiting(&e.job, &self.world.unconfirmed))?;
        // Components are left to the full plan.
        if entry.job.component_of.is_some() {
            return None;
        }
        Some(queue::ranked(entry, self.scale).place)
    }

    /// Jobs whose planned start is the next on a freed node, where there is room now if nobody had planned starts.
    fn planned_next(&mut self, freed: &[NodeIdx]) -> BTreeSet<JobId> {
        let profile = &self.pass.profile;
        let next = freed.iter().filter_map(|at| profile.bookings(*at).iter().min_by_key(|b| (b.held.from, b.job)));
        // With the first of them all may go that share the node with it.
        let shares = |booking: &&Booking| booking.shared.is_some() || booking.part.is_some();
        let sharing = freed.iter().flat_map(|at| profile.bookings(*at)).filter(shares);
        let jobs: BTreeSet<JobId> = next.chain(sharing).map(|booking| booking.job).collect();
        let keys = jobs.into_iter().filter_map(|job| Some((job, self.world.jobs.get(&job)?.keys().collect::<Vec<_>>())));
        let keys: Vec<_> = keys.take(MOST_NEXT).collect();
        let has_room = |(_, keys): &(JobId, Vec<KeyId>)| {
            keys.iter().any(|key| {
                let fit = self.pass.fit(*key);
                // Where its own kind leave it room is not seen from outside.
                let key = &self.pass.keys.entries[*key as usize].key;
                (key.sharer.is_some() || key.shape.gpu_share().is_some())
                    || explain::has_room(self.pass.fleet, &self.pass.profile.filling, &fit)
            })
        };
        keys.into_iter().filter(has_room).map(|(job, _)| job).collect()
    }

    /// Groups whose jobs find room for one share at least on a freed node.
    fn groups_with_room(&self, freed: &[NodeIdx], groups: &[Group]) -> Vec<(Place, usize)> {
        let rooms = rooms(self.pass.fleet, self.pass.profile, freed, self.pass.now);
        let Some(most) = rooms.iter().map(|(_, free)| *free).reduce(|a, b| a.most(&b)) else { return Vec::new() };
        let now = self.pass.now;
        let has_room = |group: &Group| {
            most.covers(&group.least) && rooms.iter().any(|(at, _)| self.pass.profile.fits(*at, &group.least, now, group.length))
        };
        groups.iter().zip(0..).filter(|(group, _)| has_room(group)).map(|(group, at)| (group.first, at)).collect()
    }

    /// The first of a group that still waits and has not been met yet.
    fn head(&self, group: &mut Group) -> Option<Place> {
        let is_waiting = |place: &Place| {
            let entry = self.world.jobs.get(&place.job).filter(|e| queue::is_waiting(&e.job, &self.world.unconfirmed));
            entry.is_some_and(|e| e.keys().any(|key| key == group.key) && span(e.job.time_limit) == group.length)
        };
        while group.jobs.front().is_some_and(|first| !is_waiting(first)) {
            group.jobs.pop_front();
        }
        group.first = group.jobs.front().copied().unwrap_or(group.first);
        group.jobs.iter().find(|place| !self.met.contains(&place.job) && is_waiting(place)).copied()
    }

    /// A job of the group finds a place now, even with its own planned start in the way.
    fn can_start(&mut self, group: &Group, job: JobId) -> bool {
        let rules = queue::rules(self.world, self.pass.now);
        let is_held = matches!(
            queue::judge(self.world, &rules, &self.world.jobs[&job], &HashMap::new(), &mut Plan::at(timestamp(self.pass.now))),
            Judged::Held(_)
        );
        let fit = self.pass.fit(group.key);
        let now = self.pass.now;
        let is_limited = !self.pass.limits(&Queued::of(&self.world.jobs[&job])).is_empty();
        let can = !is_held
            && !is_limited
            && fit.fitness == Fitness::Fits
            && self.pass.find(group.key, &fit, group.length, now).is_some_and(|found| found.at == now);
        self.tries += usize::from(!can);
        can
    }

    /// Gives a job its earliest start on the profile as it stands.
    fn consider(&mut self, place: Place, plan: &mut Plan) {
        let Some(entry) = self.world.jobs.get(&place.job).filter(|_| self.met.insert(place.job)) else { return };
        let rules = queue::rules(self.world, self.pass.now);
        let judged = queue::judge(self.world, &rules, entry, &HashMap::new(), plan);
        self.pass.unbook(place.job);
        let told = match judged {
            Judged::Held(causes) => Told::Held(causes),
            Judged::Queued(queued) => {
                let outcome = backfill::consider(self.pass, &queued, usize::MAX, &mut 0, &mut plan.starts);
                Told::Met(queued, outcome)
            }
        };
        self.told.push((place, told));
    }

    fn enqueue(&self, arrived: &BTreeSet<JobId>, standing: &mut Standing) {
        let queued = self.told.iter().filter(|(place, _)| arrived.contains(&place.job)).filter_map(|(place, told)| match told {
            Told::Met(queued, _) if self.world.jobs[&place.job].job.state == JobState::Pending => Some((queued, *place)),
            _ => None,
        });
        standing.group(queued, self.pass.keys, self.pass.accounts);
        for (place, told) in &self.told {
            if let Told::Met(_, Outcome { wait: Wait::Limited(causes), .. }) = told {
                standing.add_limited(*place, causes);
            }
        }
    }
}

/// Freed nodes of different room, each with what it has free now.
fn rooms(fleet: &Fleet, profile: &Profile, freed: &[NodeIdx], now: Micros) -> Vec<(NodeIdx, Amount)> {
    let mut rooms: Vec<(NodeIdx, Amount)> = Vec::new();
    let mut seen = BTreeSet::new();
    for at in freed {
        let free = *profile.lines[*at as usize].free_at(now);
        let until = profile.lines[*at as usize].steps_after(now).next();
        if free.cpus > 0 && rooms.len() < MOST_ROOMS && seen.insert((fleet.nodes[*at as usize].class, free, until)) {
            rooms.push((*at, free));
        }
    }
    rooms
}
