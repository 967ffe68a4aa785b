//! The engine: the state that events change. [`full`](crate::full) and [`quick`](crate::quick) plan from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::association::{Association, AssociationKey, Share};
use berth_model::event::{Event, JobSnapshot, RunningAttempt, TaskOf};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos, QueueOrder};
use berth_model::reservation::Reservation;
use berth_model::resources::NodeAllocation;
use berth_model::state::{JobState, NodeState};
use berth_model::tres::Charge;
use berth_model::{JobId, Name, NodeName, license};

use crate::accounts::{Accounts, PartyId};
use crate::amount::{Micros, micros, span};
use crate::bookings::Bookings;
use crate::fleet::{Fleet, Holding, NodeIdx};
use crate::keys::{KeyId, Keys};
use crate::ledger::ScopeId;
use crate::licenses::Licenses;
use crate::order::{Order, Rest};
use crate::plan::Plan;
use crate::predict::Predictions;
use crate::profile::Profile;
use crate::sharing::Sharer;
use crate::standing::Standing;
use crate::suspended;
use crate::ways;

/// How far the engine goes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Planned starts made in a full plan, at the most: 1 is EASY backfill. Jobs beyond are only tried now. All by default.
    pub depth: usize,
    /// Time past its limit after which a running job is called overdue.
    pub grace_seconds: u64,
    /// Who goes first among jobs of equal priority.
    pub order: Order,
    /// In which order jobs beyond `depth` are tried.
    pub rest: Rest,
    /// Jobs are taken to run as long as the user's last ones (told by [`Event::RecentRuns`]) where [`Rest::Shortest`] compares them.
    pub is_predicted: bool,
}

impl Settings {
    /// Our own policy, explained in the room `order`: urgent jobs first, the head with a planned start.
    pub fn urgency() -> Self {
        Settings { depth: 1, order: Order::Urgency { patience_seconds: 30 * 86_400 }, ..Settings::default() }
    }
}

impl Settings {
    /// What is in force under a policy: its walk of the queue if it names one.
    fn under(self, policy: &Policy) -> Settings {
        let Some(queue) = policy.queue else { return self };
        let order = match queue.order {
            QueueOrder::Submission => Order::Submission,
            QueueOrder::Urgency => Order::Urgency { patience_seconds: queue.patience_seconds },
        };
        Settings { depth: queue.depth.map_or(usize::MAX, |jobs| jobs as usize), order, rest: Rest::InOrder, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings { depth: usize::MAX, grace_seconds: 30, order: Order::Submission, rest: Rest::InOrder, is_predicted: false }
    }
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub job: JobSnapshot,
    pub key: KeyId,
    /// Its other [ways](crate::ways), to be tried after the first.
    pub others: Vec<KeyId>,
    pub party: PartyId,
}

impl Entry {
    /// Its ways, the first to be tried first.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        std::iter::once(self.key).chain(self.others.iter().copied())
    }
}

/// A start that the loop has neither confirmed nor retracted.
#[derive(Clone)]
pub(crate) struct Unconfirmed {
    pub end: Micros,
    pub nodes: Vec<NodeAllocation>,
    pub charge: Charge,
    pub reservation: Option<Name>,
}

/// When a running job is overdue.
pub(crate) fn limit_of(job: &JobSnapshot, settings: &Settings) -> Option<Micros> {
    let attempt = job.attempt.as_ref().filter(|_| job.state == JobState::Running)?;
    attempt.started_at?;
    Some(time_out(job, attempt).saturating_add(span(settings.grace_seconds)))
}

/// The keys of a job's ways, taken: the first, and the others.
fn acquire(keys: &mut Keys, reservations: &ways::Reservations, job: &JobSnapshot) -> (KeyId, Vec<KeyId>) {
    let (first, others) = ways::keys(reservations, job);
    (keys.acquire(first), others.into_iter().map(|key| keys.acquire(key)).collect())
}

/// An attempt's time limit. Time for which it was suspended does not count.
pub(crate) fn time_out(job: &JobSnapshot, attempt: &RunningAttempt) -> Micros {
    let suspended = i64::try_from(attempt.suspended_ms).unwrap_or(i64::MAX).saturating_mul(1000);
    micros(attempt.started_at.unwrap_or(attempt.allocated_at)).saturating_add(span(job.time_limit)).saturating_add(suspended)
}

/// When an attempt holds nothing any more: at its limit, or when its grace ends if it was preempted.
fn end_of(job: &JobSnapshot, attempt: &RunningAttempt) -> Micros {
    let limit = time_out(job, attempt);
    attempt.preempted.as_ref().map_or(limit, |preempted| limit.min(micros(preempted.kill_at)))
}

/// What an attempt holds, and until when.
fn held_by(job: &JobSnapshot, attempt: &RunningAttempt) -> Vec<(Micros, Vec<NodeAllocation>)> {
    match &attempt.suspension {
        Some(suspension) => suspended::held_by(job, attempt, suspension, end_of(job, attempt)),
        None => vec![(end_of(job, attempt), attempt.nodes.clone())],
    }
}

/// What events have changed since the last plan.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Pending jobs that came or changed.
    pub arrived: BTreeSet<JobId>,
    /// Nodes on which something was given back.
    pub freed: BTreeSet<NodeIdx>,
    /// Those whose limits may let more run.
    pub relieved: BTreeSet<ScopeId>,
    /// Licences of which something was given back.
    pub licenses: BTreeSet<Name>,
    /// Something else: only a full plan answers it.
    pub is_large: bool,
}

/// What the engine was told, and what it has started since.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub policy: Policy,
    pub partitions: BTreeMap<Name, Partition>,
    pub qos: BTreeMap<Name, Qos>,
    pub associations: BTreeMap<AssociationKey, Association>,
    pub reservations: BTreeMap<Name, Reservation>,
    pub nodes: BTreeMap<NodeName, Arc<Node>>,
    pub jobs: BTreeMap<JobId, Entry>,
    pub unconfirmed: BTreeMap<(JobId, Option<u32>), Unconfirmed>,
    /// Of arrays: tasks with numbers of their own that hold nodes, or are about to.
    pub tasks: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Jobs that are suspended, or about to be.
    pub suspended: BTreeSet<JobId>,
    pub predictions: Predictions,
}

impl World {
    /// A task that holds nodes counts against its array's throttle.
    fn add_task(&mut self, job: JobId, task_of: Option<TaskOf>) {
        if let Some(task) = task_of {
            self.tasks.entry(task.array).or_default().insert(job);
        }
    }

    fn drop_task(&mut self, job: JobId, task_of: Option<TaskOf>) {
        if let Some(task) = task_of
            && let Some(tasks) = self.tasks.get_mut(&task.array)
        {
            tasks.remove(&job);
            if tasks.is_empty() {
                self.tasks.remove(&task.array);
            }
        }
    }
}

/// The planner's state.
#[derive(Default)]
pub struct Engine {
    /// What the engine was made with.
    given: Settings,
    /// What is in force: as given, or as the policy says.
    pub(crate) settings: Settings,
    pub(crate) world: World,
    pub(crate) keys: Keys,
    pub(crate) accounts: Accounts,
    pub(crate) fleet: Fleet,
    pub(crate) profile: Profile,
    pub(crate) bookings: Bookings,
    pub(crate) licenses: Licenses,
    pub(crate) news: News,
    /// What the last full plan left for quick ones; nothing before the first.
    pub(crate) standing: Option<Standing>,
    /// The clock of the last plan.
    pub(crate) clock: Micros,
    /// Jobs in state pending.
    pending: usize,
    is_fleet_stale: bool,
}

impl Engine {
    pub fn new() -> Self {
        Engine::default()
    }

    pub fn with_settings(settings: Settings) -> Self {
        Engine { given: settings, settings, ..Engine::default() }
    }

    /// An engine of the same state, for full plans: it has nothing that quick ones go on from.
    pub(crate) fn fork(&self) -> Engine {
        Engine {
            given: self.given,
            settings: self.settings,
            world: self.world.clone(),
            keys: self.keys.clone(),
            accounts: self.accounts.clone(),
            fleet: self.fleet.clone(),
            licenses: self.licenses.clone(),
            clock: self.clock,
            pending: self.pending,
            is_fleet_stale: self.is_fleet_stale,
            ..Engine::default()
        }
    }

    /// Takes in a change. Repeating one changes nothing.
    pub fn apply(&mut self, event: Event) {
        let is_policy = matches!(
            event,
            Event::Policy(_)
                | Event::Qos(_)
                | Event::QosRemoved(_)
                | Event::Partition(_)
                | Event::PartitionRemoved(_)
                | Event::Associations { .. }
        );
        if is_policy {
            self.accounts.forget();
        }
        self.news.is_large |= is_policy || matches!(event, Event::Node(_) | Event::NodeRemoved(_));
        match event {
            Event::Policy(policy) => {
                self.settings = self.given.under(&policy);
                self.world.policy = policy;
            }
            Event::Qos(qos) => {
                self.world.qos.insert(qos.name.clone(), qos);
            }
            Event::QosRemoved(name) => {
                self.world.qos.remove(&name);
            }
            Event::Partition(partition) => {
                self.world.partitions.insert(partition.name.clone(), partition);
                self.is_fleet_stale = true;
            }
            Event::PartitionRemoved(name) => self.is_fleet_stale |= self.world.partitions.remove(&name).is_some(),
            Event::Associations { tenant, places } => {
                self.world.associations.retain(|key, _| key.tenant != tenant);
                self.world.associations.extend(places.into_iter().map(|place| (place.key.clone(), place)));
            }
            Event::Usage { rows, counted } => self.accounts.usage.take_rows(rows, &counted),
            Event::Node(node) => self.set_node(Arc::from(node)),
            Event::NodeRemoved(name) => self.is_fleet_stale |= self.world.nodes.remove(&name).is_some(),
            Event::Job(job) => self.set_job(*job),
            Event::JobGone(job) => self.remove_job(job),
            Event::RecentRuns(runs) => self.world.predictions.learn(runs),
            Event::Reservations(reservations) => self.set_reservations(reservations),
            Event::Licenses(licenses) => {
                self.licenses.set_totals(&licenses);
                self.news.is_large = true;
            }
        }
    }

    /// Nodes get other views, and jobs other ways.
    fn set_reservations(&mut self, reservations: Vec<Reservation>) {
        let reservations: BTreeMap<Name, Reservation> = reservations.into_iter().map(|r| (r.name.clone(), r)).collect();
        if reservations == self.world.reservations {
            return;
        }
        self.world.reservations = reservations;
        self.is_fleet_stale = true;
        self.news.is_large = true;
        for entry in self.world.jobs.values_mut() {
            let before: Vec<KeyId> = entry.keys().collect();
            (entry.key, entry.others) = acquire(&mut self.keys, &self.world.reservations, &entry.job);
            before.into_iter().for_each(|key| self.keys.release(key));
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
        if let Some(start) = self.world.unconfirmed.remove(&(job, array_index)) {
            let counted = self.accounts.ledger.remove(&(job, array_index, true));
            self.relieve(&counted);
            self.release(job, array_index, true, &start.nodes);
            self.news.licenses.extend(self.licenses.release((job, array_index, true)));
            if array_index.is_none() {
                let task_of = self.world.jobs.get(&job).and_then(|entry| entry.job.task_of);
                self.world.drop_task(job, task_of);
            }
        }
    }

    fn set_node(&mut self, node: Arc<Node>) {
        let known = self.fleet.find(&node.name).filter(|at| !self.is_fleet_stale && !self.fleet.is_reserved(*at));
        match known {
            Some(at) => {
                self.fleet.replace(at, node.clone());
                self.keys.forget_fits();
            }
            None => self.is_fleet_stale = true,
        }
        self.world.nodes.insert(node.name.clone(), node);
    }

    fn set_job(&mut self, job: JobSnapshot) {
        self.forget(job.id, None);
        self.remove_job(job.id);
        if let Some(attempt) = job.attempt.as_ref().filter(|_| job.state.is_active()) {
            self.hold_attempt(&job, attempt);
            self.world.add_task(job.id, job.task_of);
            if attempt.suspension.is_some() {
                self.world.suspended.insert(job.id);
            }
        }
        if job.state == JobState::Pending {
            self.pending += 1;
            self.news.arrived.insert(job.id);
        }
        let (key, others) = acquire(&mut self.keys, &self.world.reservations, &job);
        let (party, is_new) = self.accounts.acquire(&self.world, &job);
        self.news.is_large |= is_new;
        if let Some(attempt) = job.attempt.as_ref().filter(|_| job.state.is_active()) {
            self.accounts.begin(party, &job, attempt);
        }
        self.world.jobs.insert(job.id, Entry { job, key, others, party });
    }

    fn hold_attempt(&mut self, job: &JobSnapshot, attempt: &RunningAttempt) {
        let held = held_by(job, attempt);
        for (end, nodes) in &held {
            self.hold((job.id, None, false), *end, nodes, attempt.reservation.as_ref(), &Sharer::of(job));
        }
        let end = held.iter().map(|(end, _)| *end).max().unwrap_or(self.clock);
        self.licenses.hold((job.id, None, false), license::held(&attempt.charge.tres), end);
    }

    /// When suspended jobs go on is for each full plan to find out: what they keep has no end again.
    pub(crate) fn forget_returns(&mut self) {
        for id in self.world.suspended.clone() {
            let Some(job) = self.world.jobs.get(&id).map(|entry| entry.job.clone()) else { continue };
            if let Some(attempt) = &job.attempt {
                self.release(id, None, false, &attempt.nodes);
                self.hold_attempt(&job, attempt);
            }
        }
    }

    fn remove_job(&mut self, id: JobId) {
        if let Some(entry) = self.world.jobs.remove(&id) {
            self.world.drop_task(id, entry.job.task_of);
            self.world.suspended.remove(&id);
            entry.keys().for_each(|key| self.keys.release(key));
            self.accounts.release(&self.world, entry.party);
            self.pending -= usize::from(entry.job.state == JobState::Pending);
            self.news.arrived.remove(&id);
            self.unbook(id);
            if let Some(attempt) = &entry.job.attempt {
                let counted = self.accounts.end(id, attempt.number);
                self.relieve(&counted);
                self.release(id, None, false, &attempt.nodes);
                self.news.licenses.extend(self.licenses.release((id, None, false)));
            }
        }
    }

    fn relieve(&mut self, scopes: &[ScopeId]) {
        self.news.relieved.extend(scopes);
    }

    /// Takes a job's planned starts off the profile.
    pub(crate) fn unbook(&mut self, job: JobId) {
        for at in self.bookings.remove(job) {
            self.profile.unbook(&self.fleet, at, job, self.clock);
        }
        self.licenses.unbook(job);
    }

    /// `who`: the job, its task, and whether it is a start that is not confirmed yet.
    fn hold(
        &mut self,
        who: (JobId, Option<u32>, bool),
        end: Micros,
        nodes: &[NodeAllocation],
        reservation: Option<&Name>,
        sharer: &Option<Arc<Sharer>>,
    ) {
        if self.is_fleet_stale {
            return;
        }
        let (job, index, is_provisional) = who;
        let via = reservation.and_then(|name| self.fleet.via(name));
        for allocation in nodes {
            if let Some(real) = self.fleet.find(&allocation.node) {
                // A reservation may have lost the node that its job still holds.
                let at = self.fleet.seen_by(real, via).unwrap_or(real);
                self.fleet.hold(at, Holding::of(job, index, is_provisional, end, allocation).shared_by(sharer.clone()));
                self.redraw(at);
            }
        }
    }

    fn release(&mut self, job: JobId, index: Option<u32>, is_provisional: bool, nodes: &[NodeAllocation]) {
        if self.is_fleet_stale {
            return;
        }
        for allocation in nodes {
            if let Some(at) = self.fleet.find(&allocation.node) {
                self.fleet.release(at, |h| h.owner == job && h.array_index == index && h.is_provisional == is_provisional);
                self.redraw(at);
                self.news.freed.insert(at);
            }
        }
    }

    /// The profile is only kept up while a quick plan may go on from it.
    fn redraw(&mut self, at: NodeIdx) {
        if self.standing.is_some() && !self.news.is_large {
            self.profile.redraw(&self.fleet, at, self.clock);
        }
    }

    /// Numbers the nodes anew and puts everything held back in its place.
    pub(crate) fn refresh_fleet(&mut self) {
        if !self.is_fleet_stale {
            return;
        }
        self.fleet = Fleet::build(&self.world.nodes, &self.world.partitions, &self.world.reservations);
        self.bookings.clear();
        self.licenses.clear_booked();
        self.is_fleet_stale = false;
        self.keys.forget_fits();
        let mut held = Vec::new();
        for entry in self.world.jobs.values() {
            if let Some(attempt) = entry.job.attempt.as_ref().filter(|_| entry.job.state.is_active()) {
                for (end, nodes) in held_by(&entry.job, attempt) {
                    held.push(((entry.job.id, None, false), end, nodes, attempt.reservation.clone(), Sharer::of(&entry.job)));
                }
            }
        }
        for ((job, index), start) in &self.world.unconfirmed {
            let sharer = self.world.jobs.get(job).and_then(|entry| Sharer::of(&entry.job));
            held.push(((*job, *index, true), start.end, start.nodes.clone(), start.reservation.clone(), sharer));
        }
        for (who, end, nodes, reservation, sharer) in held {
            self.hold(who, end, &nodes, reservation.as_ref(), &sharer);
        }
    }

    pub(crate) fn remember_starts(&mut self, now: Micros, plan: &Plan) {
        for start in &plan.starts {
            let length = self.world.jobs.get(&start.job).map_or(0, |e| span(e.job.time_limit));
            let (nodes, charge, reservation) = (start.nodes.clone(), start.charge.clone(), start.reservation.clone());
            let kept = Unconfirmed { end: now.saturating_add(length), nodes, charge, reservation };
            self.world.unconfirmed.insert((start.job, start.array_index), kept);
            if start.array_index.is_none() {
                let task_of = self.world.jobs.get(&start.job).and_then(|entry| entry.job.task_of);
                self.world.add_task(start.job, task_of);
            }
        }
    }

    /// The tree of shares, parents before their children, with usage and factors as of the last full plan.
    pub fn shares(&self) -> Vec<Share> {
        self.accounts.shares()
    }

    /// Number of jobs that wait.
    pub fn queue_depth(&self) -> usize {
        let is_pending = |job: &JobId| self.world.jobs.get(job).is_some_and(|e| e.job.state == JobState::Pending);
        self.pending - self.world.unconfirmed.keys().filter(|(job, index)| index.is_none() && is_pending(job)).count()
    }

    /// A node's base state, as far as the engine knows.
    pub fn node_state(&self, name: &NodeName) -> NodeState {
        let Some(node) = self.world.nodes.get(name) else { return NodeState::Unknown };
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
