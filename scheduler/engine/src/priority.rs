//! Priority: Slurm's weighted sum, each factor kept, and the order of the queue.
//!
//! P = site + Wage·A + Wassoc·AS + Wfs·F + Wsize·J + Wpart·PT + Wqos·Q + Σ Wtres·T − nice, truncated, from 1 to 2³² − 1. A held job has 0.
//! A = time since it was eligible ÷ max age, at most 1; AS, PT, Q: the association's, the partition's, the QOS's number ÷ the greatest of
//! all; F: see [`shares`](crate::shares); J: part of nodes and CPUs of the cluster; T: part of the partition's total of a resource.
//! A requeue keeps the job's age (Slurm's loses it). Equal priorities go by the [order](crate::order), then by submit time.
//!
//! Example: weights age 1000, fair share 10000, size 1000, partition 1000, QOS 2000, gres/gpu 3000; 100 nodes, 6400 CPUs; 10 nodes with 640
//! CPUs and 80 of 800 GPUs; eligible for 1 of 7 days, F = 0.75, partition 20 of 50, QOS 50 of 200, nice 100:
//! 142.857 + 7500 + 100 + 400 + 500 + 300 − 100 = 8842.857, so 8842.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use berth_model::component::ComponentOf;
use berth_model::event::JobSnapshot;
use berth_model::gres::ShareKind;
use berth_model::policy::{HetjobPriority, Policy};
use berth_model::resources::Shape;
use berth_model::tres::{Tres, TresCounts};
use berth_model::verdict::{Priority, PriorityFactor};
use berth_model::{JobId, Name};

use crate::accounts::{Accounts, Factors};
use crate::amount::{Micros, micros, span};
use crate::engine::{Entry, World};
use crate::fleet::Fleet;
use crate::order::{Cluster, Order, Turn};

/// The walk's order: ascending is first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    is_ordinary: bool,
    /// It names no reservation.
    is_outside: bool,
    tier: Reverse<u32>,
    priority: Reverse<i64>,
    turn: Turn,
    submitted: Micros,
    /// Tasks go in the order of their indices, those that wait in their array as well as those by themselves.
    task: (JobId, u32),
    pub job: JobId,
}

impl Place {
    /// That of a component of a heterogeneous job, given those that the components would have by themselves: it stands with the others, in
    /// their order.
    pub fn together(leader: Place, all: &[Place], mode: HetjobPriority, (first, offset): (JobId, u32), job: JobId) -> Place {
        let tiers = || all.iter().map(|place| place.tier.0);
        let priorities = || all.iter().map(|place| place.priority.0);
        let count = all.len().max(1) as i64;
        let (tier, priority) = match mode {
            HetjobPriority::Leader => (leader.tier.0, leader.priority.0),
            HetjobPriority::Min => (tiers().min().unwrap_or(leader.tier.0), priorities().min().unwrap_or(leader.priority.0)),
            HetjobPriority::Avg => ((tiers().map(i64::from).sum::<i64>() / count) as u32, priorities().sum::<i64>() / count),
            HetjobPriority::Max => (tiers().max().unwrap_or(leader.tier.0), priorities().max().unwrap_or(leader.priority.0)),
        };
        Place { tier: Reverse(tier), priority: Reverse(priority), task: (first, offset), job, ..leader }
    }
}

/// What all jobs of a pass are measured by.
pub struct Scale<'a> {
    world: &'a World,
    /// By party.
    factors: Vec<Factors>,
    most_partition: u32,
    most_qos: u32,
    totals: Totals,
    order: Order,
    cluster: Cluster,
    now: Micros,
}

/// What there is, as far as the weights ask.
#[derive(Debug, Default)]
struct Totals {
    nodes: f64,
    cpus: f64,
    partitions: BTreeMap<Name, TresCounts>,
}

/// The raw factors, 0 to 1, and their sum.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    age: f64,
    fairshare: f64,
    size: f64,
    association: f64,
    partition: f64,
    qos: f64,
    turn: Turn,
    pub total: i64,
}

impl<'a> Scale<'a> {
    pub fn new(world: &'a World, accounts: &Accounts, fleet: &Fleet, now: Micros) -> Self {
        let most_partition = world.partitions.values().map(|p| p.priority_job_factor).max().unwrap_or(0).max(1);
        let most_qos = world.qos.values().map(|q| q.priority).max().unwrap_or(0);
        let totals = Totals::of(&world.policy, fleet);
        let (order, cluster) = (Order::Submission, Cluster::default());
        Scale { world, factors: accounts.factors(), most_partition, most_qos, totals, order, cluster, now }
    }

    /// Jobs of equal priority go by `order`.
    pub fn ordered(self, order: Order, fleet: &Fleet) -> Self {
        let cluster = if order == Order::Submission { Cluster::default() } else { Cluster::of(fleet) };
        Scale { order, cluster, ..self }
    }

    pub fn score(&self, entry: &Entry) -> Score {
        let (job, policy) = (&entry.job, &self.world.policy);
        let waited = job.accrues_since.map_or(0, |since| self.now.saturating_sub(micros(since)).max(0));
        let partition = self.world.partitions.get(&job.partition).map_or(0, |p| p.priority_job_factor);
        let qos = self.world.qos.get(&job.qos).map_or(0, |q| q.priority);
        let factors = self.factors.get(entry.party as usize).copied().unwrap_or_default();
        let mut score = Score {
            age: ratio(waited as f64, span(policy.max_age_seconds) as f64).min(1.0),
            fairshare: factors.fairshare,
            size: if policy.weight_job_size > 0 { self.totals.size(policy, &job.shape, self.minutes(job)) } else { 0.0 },
            association: factors.association,
            partition: ratio(f64::from(partition), f64::from(self.most_partition)),
            qos: ratio(f64::from(qos), f64::from(self.most_qos)),
            turn: self.order.turn(&self.cluster, job, waited),
            total: 0,
        };
        let weighted: f64 = self.weighted(&score).iter().map(|(_, raw, weight)| raw * weight).sum();
        let resources: f64 = self.resources(job).map(|(_, raw, weight)| raw * weight).sum();
        let sum = f64::from(job.site_factor) + weighted + resources - f64::from(job.nice);
        score.total = if job.hold.is_some() { 0 } else { sum.clamp(1.0, f64::from(u32::MAX)) as i64 };
        score
    }

    pub fn place(&self, job: &JobSnapshot, score: &Score) -> Place {
        Place {
            is_ordinary: !job.is_expedited,
            is_outside: job.reservations.is_empty(),
            tier: Reverse(self.world.partitions.get(&job.partition).map_or(0, |p| p.priority_tier)),
            priority: Reverse(score.total),
            turn: score.turn,
            submitted: micros(job.submit_time),
            task: match (&job.array, job.task_of) {
                (Some(array), _) => (job.id, array.pending.iter().next().unwrap_or(0)),
                (None, Some(task)) => (task.array, task.index),
                (None, None) => (job.id, 0),
            },
            job: job.id,
        }
    }

    /// The place of a component, with its fellows.
    pub fn place_together(&self, job: &JobSnapshot, of: ComponentOf) -> Place {
        let fellows = of.jobs().filter_map(|id| self.world.jobs.get(&id));
        let places: Vec<(JobId, Place)> = fellows.map(|entry| (entry.job.id, self.place(&entry.job, &self.score(entry)))).collect();
        let all: Vec<Place> = places.iter().map(|(_, place)| *place).collect();
        let own = places.iter().find(|(id, _)| *id == of.leader).or(places.first()).map(|(_, place)| *place);
        let leader = own.unwrap_or_else(|| unreachable!("a component is among its fellows"));
        Place::together(leader, &all, self.world.policy.hetjob_priority, (of.leader, of.offset), job.id)
    }

    /// All terms that have a weight, or that the job has of its own.
    pub fn explain(&self, job: &JobSnapshot, score: &Score, rank: u32) -> Priority {
        let factor = |name: Cow<'static, str>, raw: f64, weight: f64| PriorityFactor { name, raw, weight, value: raw * weight };
        let weighted = self.weighted(score).into_iter().filter(|(_, _, weight)| *weight > 0.0);
        let mut factors: Vec<PriorityFactor> = Vec::with_capacity(5);
        factors.extend(weighted.map(|(name, raw, weight)| factor(Cow::Borrowed(name), raw, weight)));
        factors.extend(self.resources(job).map(|(tres, raw, weight)| factor(Cow::Owned(format!("tres/{tres}")), raw, weight)));
        for (name, raw, sign) in [("site", job.site_factor, 1.0), ("nice", job.nice, -1.0)] {
            if raw != 0 {
                factors.push(factor(Cow::Borrowed(name), f64::from(raw), sign));
            }
        }
        if self.order != Order::Submission {
            // Orders jobs of equal totals and is no part of the sum.
            factors.push(factor(Cow::Borrowed("urgency"), score.turn.urgency(), 0.0));
        }
        Priority { total: score.total, rank, factors }
    }

    fn weighted(&self, score: &Score) -> [(&'static str, f64, f64); 6] {
        let policy = &self.world.policy;
        [
            ("age", score.age, policy.weight_age.into()),
            ("fairshare", score.fairshare, policy.weight_fairshare.into()),
            ("job_size", score.size, policy.weight_job_size.into()),
            ("association", score.association, policy.weight_association.into()),
            ("partition", score.partition, policy.weight_partition.into()),
            ("qos", score.qos, policy.weight_qos.into()),
        ]
    }

    /// Parts of the partition's resources that have a weight.
    fn resources(&self, job: &JobSnapshot) -> impl Iterator<Item = (&Tres, f64, f64)> {
        let weights = &self.world.policy.weight_tres;
        let asked = if weights.is_empty() { TresCounts::new() } else { job.shape.least_counts() };
        let all = self.totals.partitions.get(&job.partition);
        weights.iter().map(move |(tres, weight)| {
            let count = |counts: &TresCounts| counts.get(tres).copied().unwrap_or(0) as f64;
            (tres, ratio(count(&asked), all.map_or(0.0, count)).min(1.0), weight.per_unit(&Tres::Cpu))
        })
    }

    /// The time limit for the factor of size.
    fn minutes(&self, job: &JobSnapshot) -> f64 {
        job.time_limit as f64 / 60.0
    }
}

impl Totals {
    fn of(policy: &Policy, fleet: &Fleet) -> Self {
        let mut totals = Totals::default();
        if policy.weight_job_size == 0 && policy.weight_tres.is_empty() {
            return totals;
        }
        let mut nodes = vec![0u64; fleet.classes.len()];
        fleet.nodes.iter().filter(|node| node.is_usable && node.via.is_none()).for_each(|node| nodes[node.class as usize] += 1);
        for (class, nodes) in fleet.classes.iter().zip(nodes).filter(|(_, nodes)| *nodes > 0) {
            totals.nodes += nodes as f64;
            totals.cpus += nodes as f64 * f64::from(class.total.cpus);
            for partition in &class.partitions {
                let sums = totals.partitions.entry(partition.clone()).or_default();
                let mut add = |tres: Tres, count: u64| *sums.entry(tres).or_insert(0) += count * nodes;
                add(Tres::Node, 1);
                add(Tres::Cpu, class.total.cpus.into());
                add(Tres::Mem, class.total.memory >> 20);
                for (kind, count) in class.kinds.iter().zip(class.total.gpus) {
                    add(Tres::Gpu, count.into());
                    add(Tres::GpuType(kind.clone()), count.into());
                }
                for of in ShareKind::ALL {
                    add(of.tres(), class.shares_in_all(*of));
                }
            }
        }
        totals
    }

    /// Large by default: the mean of the parts of nodes and CPUs; small: of what is left. Relative to time: CPUs, or what so many nodes
    /// have of them, ÷ minutes ÷ all CPUs.
    fn size(&self, policy: &Policy, shape: &Shape, minutes: f64) -> f64 {
        if self.nodes == 0.0 || self.cpus == 0.0 {
            return 0.0;
        }
        let asked = shape.least_counts();
        let count = |tres: &Tres| asked.get(tres).copied().unwrap_or(0) as f64;
        let (nodes, cpus) = (count(&Tres::Node), count(&Tres::Cpu));
        let size = if policy.small_relative_to_time {
            let large = (nodes * self.cpus / self.nodes).max(cpus) / minutes.max(1.0) / self.cpus;
            if policy.favor_small { 1.0 - large } else { large }
        } else if policy.favor_small {
            (((self.nodes - nodes) / self.nodes).max(0.0) + (self.cpus - cpus) / self.cpus) / 2.0
        } else {
            (nodes / self.nodes + cpus / self.cpus) / 2.0
        };
        size.clamp(0.0, 1.0)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
