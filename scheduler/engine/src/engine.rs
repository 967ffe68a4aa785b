//! The engine: the state that events change, and the order of a plan.

use std::collections::{BTreeMap, HashMap, VecDeque};

use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::NodeAllocation;
use berth_model::state::{JobState, NodeState};
use berth_model::verdict::JobVerdict;
use berth_model::{JobId, Name, NodeName};
use jiff::Timestamp;

use crate::amount::{Micros, SECOND, micros, span, timestamp};
use crate::backfill::{self, Outcome, Queued, Wait};
use crate::eligible::{Rules, throttled};
use crate::explain::{self, Ground, Words, say};
use crate::fleet::{Fleet, Holding};
use crate::keys::{Key, KeyId, Keys};
use crate::pass::Pass;
use crate::plan::Plan;
use crate::priority::{Place, Scale, Score};
use crate::profile::Profile;

/// How far the engine goes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Jobs that get planned starts in a pass. Those beyond are only tried now.
    pub depth: usize,
    /// Time past its limit after which a running job is called overdue.
    pub grace_seconds: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { depth: 10_000, grace_seconds: 30 }
    }
}

/// Jobs ahead that a verdict names, at most.
const MOST_AHEAD: usize = 10;

struct Entry {
    job: JobSnapshot,
    key: KeyId,
}

/// A start that the loop has neither confirmed nor retracted.
struct Unconfirmed {
    end: Micros,
    nodes: Vec<NodeAllocation>,
}

/// The planner's state.
#[derive(Default)]
pub struct Engine {
    settings: Settings,
    policy: Policy,
    partitions: BTreeMap<Name, Partition>,
    qos: BTreeMap<Name, Qos>,
    nodes: BTreeMap<NodeName, Node>,
    jobs: BTreeMap<JobId, Entry>,
    unconfirmed: BTreeMap<(JobId, Option<u32>), Unconfirmed>,
    keys: Keys,
    fleet: Fleet,
    profile: Profile,
    /// Raised when the fleet changes: what was worked out for keys is void.
    epoch: u64,
    is_fleet_stale: bool,
}

impl Engine {
    pub fn new() -> Self {
        Engine::default()
    }

    pub fn with_settings(settings: Settings) -> Self {
        Engine { settings, ..Engine::default() }
    }

    /// Takes in a change. Repeating one changes nothing.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Policy(policy) => self.policy = policy,
            Event::Qos(qos) => {
                self.qos.insert(qos.name.clone(), qos);
            }
            Event::QosRemoved(name) => {
                self.qos.remove(&name);
            }
            Event::Partition(partition) => {
                self.partitions.insert(partition.name.clone(), partition);
                self.is_fleet_stale = true;
            }
            Event::PartitionRemoved(name) => self.is_fleet_stale |= self.partitions.remove(&name).is_some(),
            Event::Node(node) => self.set_node(*node),
            Event::NodeRemoved(name) => self.is_fleet_stale |= self.nodes.remove(&name).is_some(),
            Event::Job(job) => self.set_job(*job),
            Event::JobGone(job) => self.remove_job(job),
        }
    }

    /// The database took the start: the job's own events say from now on what it holds.
    pub fn confirm(&mut self, job: JobId, array_index: Option<u32>) {
        self.forget(job, array_index);
    }

    /// The database refused the start: what it held is free again.
    pub fn retract(&mut self, job: JobId, array_index: Option<u32>) {
        self.forget(job, array_index);
    }

    fn forget(&mut self, job: JobId, array_index: Option<u32>) {
        if let Some(start) = self.unconfirmed.remove(&(job, array_index)) {
            self.release(job, array_index, true, &start.nodes);
        }
    }

    fn set_node(&mut self, node: Node) {
        let known = self.fleet.find(&node.name).filter(|_| !self.is_fleet_stale);
        match known {
            Some(at) => {
                self.fleet.replace(at, node.clone());
                self.profile.rebuild(&self.fleet, at, Micros::MIN);
                self.epoch += 1;
            }
            None => self.is_fleet_stale = true,
        }
        self.nodes.insert(node.name.clone(), node);
    }

    fn set_job(&mut self, job: JobSnapshot) {
        self.forget(job.id, None);
        self.remove_job(job.id);
        if let Some(attempt) = job.attempt.as_ref().filter(|_| job.state.is_active()) {
            let end = micros(attempt.started_at.unwrap_or(attempt.allocated_at)).saturating_add(span(job.time_limit));
            self.hold(job.id, None, false, end, &attempt.nodes);
        }
        let key = self.keys.acquire(Key::of(&job));
        self.jobs.insert(job.id, Entry { job, key });
    }

    fn remove_job(&mut self, id: JobId) {
        if let Some(entry) = self.jobs.remove(&id) {
            self.keys.release(entry.key);
            if let Some(attempt) = &entry.job.attempt {
                self.release(id, None, false, &attempt.nodes);
            }
        }
    }

    fn hold(&mut self, job: JobId, index: Option<u32>, is_provisional: bool, end: Micros, nodes: &[NodeAllocation]) {
        if self.is_fleet_stale {
            return;
        }
        for allocation in nodes {
            if let Some(at) = self.fleet.find(&allocation.node) {
                self.fleet.nodes[at as usize].holdings.push(Holding::of(job, index, is_provisional, end, allocation));
                self.profile.rebuild(&self.fleet, at, Micros::MIN);
            }
        }
    }

    fn release(&mut self, job: JobId, index: Option<u32>, is_provisional: bool, nodes: &[NodeAllocation]) {
        if self.is_fleet_stale {
            return;
        }
        for allocation in nodes {
            if let Some(at) = self.fleet.find(&allocation.node) {
                let holdings = &mut self.fleet.nodes[at as usize].holdings;
                holdings.retain(|h| h.owner != job || h.array_index != index || h.is_provisional != is_provisional);
                self.profile.rebuild(&self.fleet, at, Micros::MIN);
            }
        }
    }

    /// Numbers the nodes anew and puts everything held back in its place.
    fn rebuild_fleet(&mut self) {
        self.fleet = Fleet::build(&self.nodes, &self.partitions);
        self.profile = Profile::of(&self.fleet);
        self.is_fleet_stale = false;
        self.epoch += 1;
        let mut held = Vec::new();
        for entry in self.jobs.values() {
            if let Some(attempt) = entry.job.attempt.as_ref().filter(|_| entry.job.state.is_active()) {
                let end = micros(attempt.started_at.unwrap_or(attempt.allocated_at)).saturating_add(span(entry.job.time_limit));
                held.push((entry.job.id, None, false, end, attempt.nodes.clone()));
            }
        }
        for ((job, index), start) in &self.unconfirmed {
            held.push((*job, *index, true, start.end, start.nodes.clone()));
        }
        for (job, index, is_provisional, end, nodes) in held {
            self.hold(job, index, is_provisional, end, &nodes);
        }
    }

    /// Decides. Starts count as held until they are confirmed or retracted.
    pub fn plan(&mut self, at: Timestamp) -> Plan {
        if self.is_fleet_stale {
            self.rebuild_fleet();
        }
        let now = micros(at);
        let mut plan = Plan::at(at);
        self.watch_running(now, &mut plan);
        let ranked = self.rank(now);
        let (queue, held) = self.divide(&ranked, now, &mut plan);
        let outcomes = self.walk(&queue, now, &mut plan);
        self.explain(&ranked, &queue, &outcomes, held, now, &mut plan);
        self.profile.settle(&self.fleet);
        self.remember_starts(now, &plan);
        plan
    }

    /// Running jobs past their limit, and nodes whose holders should have ended by now.
    fn watch_running(&mut self, now: Micros, plan: &mut Plan) {
        let grace = span(self.settings.grace_seconds);
        for entry in self.jobs.values().filter(|e| e.job.state == JobState::Running) {
            if let Some(started) = entry.job.attempt.as_ref().and_then(|a| a.started_at) {
                let end = micros(started).saturating_add(span(entry.job.time_limit)).saturating_add(grace);
                if end <= now {
                    plan.overdue.push(entry.job.id);
                } else {
                    plan.wake_by(timestamp(end));
                }
            }
        }
        for index in 0..self.fleet.nodes.len() {
            if self.fleet.nodes[index].holdings.iter().any(|h| h.end <= now) {
                self.profile.rebuild(&self.fleet, index as u32, now);
                self.profile.touch(index as u32);
                plan.wake_by(timestamp(now.saturating_add(SECOND)));
            }
        }
    }

    fn is_waiting(&self, job: &JobSnapshot) -> bool {
        job.state == JobState::Pending && !self.unconfirmed.contains_key(&(job.id, None))
    }

    /// All pending jobs, first to last.
    fn rank(&self, now: Micros) -> Vec<(Place, Score)> {
        let scale = Scale::new(&self.policy, &self.partitions, &self.qos, now);
        let mut ranked: Vec<(Place, Score)> = self
            .jobs
            .values()
            .filter(|e| self.is_waiting(&e.job))
            .map(|e| {
                let score = scale.score(&e.job);
                (scale.place(&e.job, &score), score)
            })
            .collect();
        ranked.sort_unstable_by_key(|(place, _)| *place);
        ranked
    }

    /// The jobs that policy lets start, and the causes that hold the others.
    fn divide(
        &self,
        ranked: &[(Place, Score)],
        now: Micros,
        plan: &mut Plan,
    ) -> (Vec<Queued>, BTreeMap<JobId, Vec<berth_model::verdict::Verdict>>) {
        let rules = Rules { partitions: &self.partitions, qos: &self.qos, now };
        let elders = self.elders();
        let mut queue = Vec::new();
        let mut held = BTreeMap::new();
        for (place, _) in ranked {
            let entry = &self.jobs[&place.job];
            let job = &entry.job;
            let length = span(job.time_limit);
            if job.deadline.is_some_and(|deadline| now.saturating_add(length) > micros(deadline)) {
                plan.expired.push(job.id);
            }
            if let Some(begin) = job.not_before {
                plan.wake_by(begin);
            }
            let elder =
                elders.get(&(&job.tenant, &job.user, job.name.as_str())).copied().filter(|elder| job.is_singleton && *elder < job.id);
            let running = self.running_tasks(job);
            let causes = rules.causes(job, elder, running);
            if !causes.is_empty() {
                held.insert(job.id, causes);
                continue;
            }
            let tasks = job.array.as_ref().map(|array| {
                let room = array.throttle.map_or(usize::MAX, |most| most.saturating_sub(running) as usize);
                array.pending.iter().copied().filter(|i| !self.unconfirmed.contains_key(&(job.id, Some(*i)))).take(room).collect()
            });
            queue.push(Queued { job: job.id, key: entry.key, length, deadline: job.deadline.map(micros), tasks });
        }
        plan.expired.sort_unstable();
        (queue, held)
    }

    fn running_tasks(&self, job: &JobSnapshot) -> u32 {
        let Some(array) = &job.array else { return 0 };
        let starting = self.unconfirmed.range((job.id, Some(0))..=(job.id, Some(u32::MAX))).count();
        array.running + starting as u32
    }

    /// The first live job of each user and name, if anybody asks for it.
    fn elders(&self) -> HashMap<(&Name, &Name, &str), JobId> {
        if !self.jobs.values().any(|e| e.job.is_singleton) {
            return HashMap::new();
        }
        let mut elders = HashMap::new();
        for entry in self.jobs.values() {
            elders.entry((&entry.job.tenant, &entry.job.user, entry.job.name.as_str())).or_insert(entry.job.id);
        }
        elders
    }

    fn walk(&mut self, queue: &[Queued], now: Micros, plan: &mut Plan) -> Vec<Outcome> {
        let mut pass = Pass::new(now, &mut self.fleet, &mut self.profile, &mut self.keys, &self.partitions, self.epoch);
        backfill::walk(&mut pass, queue, self.settings.depth, &mut plan.starts)
    }

    fn explain(
        &mut self,
        ranked: &[(Place, Score)],
        queue: &[Queued],
        outcomes: &[Outcome],
        mut held: BTreeMap<JobId, Vec<berth_model::verdict::Verdict>>,
        now: Micros,
        plan: &mut Plan,
    ) {
        let outcomes: BTreeMap<JobId, (&Queued, &Outcome)> = queue.iter().zip(outcomes).map(|(q, o)| (q.job, (q, o))).collect();
        let scale = Scale::new(&self.policy, &self.partitions, &self.qos, now);
        let mut grounds: HashMap<KeyId, Ground> = HashMap::new();
        let mut ahead: BTreeMap<&Name, VecDeque<JobId>> = BTreeMap::new();
        for (rank, (place, score)) in ranked.iter().enumerate() {
            let entry = &self.jobs[&place.job];
            let job = &entry.job;
            let before = ahead.entry(&job.partition).or_default();
            let nearest: Vec<JobId> = before.iter().copied().collect();
            let mut planned_start = None;
            let verdicts = match (held.remove(&job.id), outcomes.get(&job.id)) {
                (Some(causes), _) => causes,
                (None, Some((queued, outcome))) => {
                    let fit = self.keys.entries[queued.key as usize].fit.as_ref().map(|(_, fit)| fit.clone());
                    let mut wait = |is_room_now, at| match &fit {
                        Some(fit) => {
                            let ground = grounds.entry(queued.key).or_insert_with(|| explain::ground(&self.fleet, fit));
                            vec![explain::waits(job, ground, is_room_now, &nearest, at)]
                        }
                        None => Vec::new(),
                    };
                    match &outcome.wait {
                        Wait::No => match &job.array {
                            // Some tasks are left, which the throttle keeps back.
                            Some(array) if array.pending.len() > outcome.started => {
                                vec![throttled(job.id, array.running + outcome.started as u32, array.throttle.unwrap_or(0))]
                            }
                            _ => continue,
                        },
                        Wait::Planned { at, nodes } => {
                            planned_start = Some(explain::planned(&self.fleet, *at, nodes));
                            plan.wake_by(timestamp(*at));
                            wait(outcome.is_room_now, Some(*at))
                        }
                        Wait::NotNow => wait(outcome.is_room_now, None),
                        Wait::TooLate => vec![
                            say("deadline_unreachable", "a job must be able to end by its deadline", format!("job/{}", job.id))
                                .need(explain::words(&job.shape))
                                .advice("lower the time limit, ask for less, or move the deadline"),
                        ],
                        Wait::Unfit(fitness) => fit.iter().map(|fit| explain::unfit(&self.fleet, job, fit, *fitness)).collect(),
                    }
                }
                (None, None) => continue,
            };
            let priority = scale.explain(score, rank as u32 + 1);
            plan.verdicts.push(JobVerdict { job: job.id, verdicts, priority, ahead: nearest, planned_start });
            before.push_back(job.id);
            if before.len() > MOST_AHEAD {
                before.pop_front();
            }
        }
    }

    fn remember_starts(&mut self, now: Micros, plan: &Plan) {
        for start in &plan.starts {
            let length = self.jobs.get(&start.job).map_or(0, |e| span(e.job.time_limit));
            let kept = Unconfirmed { end: now.saturating_add(length), nodes: start.nodes.clone() };
            self.unconfirmed.insert((start.job, start.array_index), kept);
        }
    }

    /// Number of jobs that wait.
    pub fn queue_depth(&self) -> usize {
        self.jobs.values().filter(|e| self.is_waiting(&e.job)).count()
    }

    /// A node's base state, as far as the engine knows.
    pub fn node_state(&self, name: &NodeName) -> NodeState {
        let Some(node) = self.nodes.get(name) else { return NodeState::Unknown };
        if node.is_down {
            return NodeState::Down;
        }
        let held: usize = self.fleet.find(name).map_or(0, |at| self.fleet.nodes[at as usize].holdings.iter().map(|h| h.cpus.len()).sum());
        match held {
            0 => NodeState::Idle,
            held if held >= node.inventory.cpus.len() => NodeState::Allocated,
            _ => NodeState::Mixed,
        }
    }
}
