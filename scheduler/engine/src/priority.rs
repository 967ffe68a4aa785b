//! Priority: Slurm's weighted sum, each factor kept, and the order of the queue.
//!
//! P = weight_age·A + weight_partition·PT + weight_qos·Q − nice, truncated. A = (now − eligible since) ÷ max age, at most 1;
//! PT = the partition's factor ÷ the greatest of all; Q = the QOS's priority ÷ the greatest of all. A held job has P = 0.
//! Equal priorities go by the [order](crate::order), then by submit time.
//!
//! Example (weights 1000, 1000, 2000): eligible for 1 of 7 days, partition 20 of 50, QOS 50 of 200, nice 100:
//! 142.857 + 400 + 500 − 100 = 942.857, so 942.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use berth_model::event::JobSnapshot;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::verdict::{Priority, PriorityFactor};
use berth_model::{JobId, Name};

use crate::amount::{Micros, micros, span};
use crate::fleet::Fleet;
use crate::order::{Cluster, Order, Turn};

/// The walk's order: ascending is first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    is_ordinary: bool,
    tier: Reverse<u32>,
    priority: Reverse<i64>,
    turn: Turn,
    submitted: Micros,
    pub job: JobId,
}

/// What all jobs of a pass are measured by.
pub struct Scale<'a> {
    policy: &'a Policy,
    partitions: &'a BTreeMap<Name, Partition>,
    qos: &'a BTreeMap<Name, Qos>,
    most_partition: u32,
    most_qos: u32,
    order: Order,
    cluster: Cluster,
    now: Micros,
}

/// The raw factors, 0 to 1, and their sum.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    age: f64,
    partition: f64,
    qos: f64,
    nice: i32,
    turn: Turn,
    pub total: i64,
}

impl<'a> Scale<'a> {
    pub fn new(policy: &'a Policy, partitions: &'a BTreeMap<Name, Partition>, qos: &'a BTreeMap<Name, Qos>, now: Micros) -> Self {
        let most_partition = partitions.values().map(|p| p.priority_job_factor).max().unwrap_or(0).max(1);
        let most_qos = qos.values().map(|q| q.priority).max().unwrap_or(0);
        Scale { policy, partitions, qos, most_partition, most_qos, order: Order::Submission, cluster: Cluster::default(), now }
    }

    /// Jobs of equal priority go by `order`.
    pub fn ordered(self, order: Order, fleet: &Fleet) -> Self {
        let cluster = if order == Order::Submission { Cluster::default() } else { Cluster::of(fleet) };
        Scale { order, cluster, ..self }
    }

    pub fn score(&self, job: &JobSnapshot) -> Score {
        let since = job.not_before.map_or(i64::MIN, micros).max(micros(job.submit_time));
        let waited = self.now.saturating_sub(since).max(0);
        let age = ratio(waited as f64, span(self.policy.max_age_seconds) as f64).min(1.0);
        let partition = self.partitions.get(&job.partition).map_or(0, |p| p.priority_job_factor);
        let qos = self.qos.get(&job.qos).map_or(0, |q| q.priority);
        let mut score = Score {
            age,
            partition: ratio(f64::from(partition), f64::from(self.most_partition)),
            qos: ratio(f64::from(qos), f64::from(self.most_qos)),
            nice: job.nice,
            turn: self.order.turn(&self.cluster, job, waited),
            total: 0,
        };
        let weighted = f64::from(self.policy.weight_age) * score.age
            + f64::from(self.policy.weight_partition) * score.partition
            + f64::from(self.policy.weight_qos) * score.qos;
        score.total = if job.hold.is_some() { 0 } else { (weighted - f64::from(job.nice)) as i64 };
        score
    }

    pub fn place(&self, job: &JobSnapshot, score: &Score) -> Place {
        Place {
            is_ordinary: !job.is_expedited,
            tier: Reverse(self.partitions.get(&job.partition).map_or(0, |p| p.priority_tier)),
            priority: Reverse(score.total),
            turn: score.turn,
            submitted: micros(job.submit_time),
            job: job.id,
        }
    }

    pub fn explain(&self, score: &Score, rank: u32) -> Priority {
        let factor = |name: &str, raw: f64, weight: u32| PriorityFactor {
            name: name.to_owned(),
            raw,
            weight: i64::from(weight),
            value: raw * f64::from(weight),
        };
        let mut factors = vec![
            factor("age", score.age, self.policy.weight_age),
            factor("partition", score.partition, self.policy.weight_partition),
            factor("qos", score.qos, self.policy.weight_qos),
        ];
        if score.nice != 0 {
            let nice = f64::from(score.nice);
            factors.push(PriorityFactor { name: "nice".to_owned(), raw: nice, weight: -1, value: -nice });
        }
        if self.order != Order::Submission {
            // Orders jobs of equal totals and is no part of the sum.
            factors.push(PriorityFactor { name: "urgency".to_owned(), raw: score.turn.urgency(), weight: 0, value: 0.0 });
        }
        Priority { total: score.total, rank, factors }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
