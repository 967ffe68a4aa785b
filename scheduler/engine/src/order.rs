//! The order of the queue, and of what is tried beyond the planned starts.
//!
//! Slurm's way, the default: by priority, then submit time, and the same order throughout. [`Order::Urgency`] with a depth of 1 is ours,
//! made to bring down waits and slowdowns together, without making large jobs or the machines pay for it:
//!
//! 1. Of equal priority the most urgent goes first: urgency = wait³ × share⁴ ÷ limit², wait and time limit in hours, share of the
//!    cluster. Short jobs grow urgent fast, wide ones too: a wide job soon comes to the head, where nobody behind it may delay its
//!    planned start, and narrow ones fill the gaps beside it. (The idea of WFP3 = (wait ÷ limit)³ × size, Tang et al. 2009, with
//!    the exponents that replays of traces chose: docs/benchmarks.md.) Who becomes more urgent than the head takes its place.
//! 2. Whoever has waited for `patience_seconds` goes ahead of all that have not, in order of submission. From then on nobody that
//!    came later is ahead of it, so nothing starves.
//!
//! Beyond the planned starts the rest are tried in the same order, or as [`Rest`] says. None of them may delay a planned start: that is
//! kept by time limits, never by predictions.
//!
//! The share is the largest of the shares in CPUs, memory, GPUs and, for whole nodes, nodes. Example: on 100 nodes of one CPU a job of
//! 50 nodes with a limit of an hour has after two hours an urgency of 2³ × 0.5⁴ ÷ 1² = 0.5; one of 25 nodes and a quarter of an hour
//! has after two hours 2³ × 0.25⁴ ÷ 0.25² = 0.5, too.
//!
//! Ages make priorities differ, so a policy that means to order by urgency has a `weight_age` of 0. Weights of partitions and QOS, nice
//! and tiers hold as ever. Quick plans know none of this: with it, or with a depth, every plan is a full one.

use std::cmp::Reverse;

use berth_model::event::JobSnapshot;
use berth_model::resources::{GpuDemand, MemoryDemand};
use berth_model::{Bytes, Seconds};

use crate::amount::{Micros, SECOND, span};
use crate::backfill::Queued;
use crate::engine::World;
use crate::fleet::Fleet;

/// Who goes first among jobs of equal priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The first that was submitted.
    #[default]
    Submission,
    /// Whoever has waited as long as this, by submission; then the most urgent.
    Urgency { patience_seconds: Seconds },
}

/// In which order jobs are tried when as many planned starts are made as [`Settings::depth`](crate::Settings) allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// In that of the queue.
    #[default]
    InOrder,
    /// The shortest first; of equal lengths in the order of the queue.
    Shortest,
}

/// Shares count in millionths of millionths.
const ONE: u128 = 1_000_000_000_000;

const HOUR: f64 = 3600.0 * SECOND as f64;

/// A job's turn among those of equal priority. Ascending: first to last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    has_patience: bool,
    /// Bits of a float that is not negative: such are in the order of their bits.
    urgency: Reverse<u64>,
}

impl Turn {
    pub fn urgency(&self) -> f64 {
        f64::from_bits(self.urgency.0)
    }
}

/// What shares are of: all nodes in service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cluster {
    nodes: u128,
    cpus: u128,
    memory: u128,
    gpus: u128,
}

impl Cluster {
    pub fn of(fleet: &Fleet) -> Self {
        let usable = fleet.nodes.iter().filter(|node| node.is_usable && node.via.is_none());
        usable.fold(Cluster::default(), |sum, node| {
            let total = &fleet.classes[node.class as usize].total;
            Cluster {
                nodes: sum.nodes + 1,
                cpus: sum.cpus + u128::from(total.cpus),
                memory: sum.memory + u128::from(total.memory),
                gpus: sum.gpus + u128::from(total.gpu_count()),
            }
        })
    }

    /// The largest of a job's shares (of one task, for an array), at most 1, in units of [`ONE`].
    fn share(&self, job: &JobSnapshot) -> u128 {
        let shape = &job.shape;
        let (nodes, tasks) = (u128::from(shape.min_nodes), u128::from(shape.tasks));
        let cpus = tasks * u128::from(shape.cpus_per_task);
        let gpus = match &shape.gpus {
            GpuDemand::None | GpuDemand::Share(_) => 0,
            GpuDemand::Total(gpus) => u128::from(gpus.count),
            GpuDemand::PerNode(gpus) => nodes * u128::from(gpus.count),
            GpuDemand::PerTask(gpus) => tasks * u128::from(gpus.count),
        };
        let times = |bytes: Bytes, count: u128| u128::from(bytes.0) * count;
        let memory = match shape.memory {
            MemoryDemand::WholeNode => 0,
            MemoryDemand::PerNode(bytes) => times(bytes, nodes),
            MemoryDemand::PerCpu(bytes) => times(bytes, cpus),
            MemoryDemand::PerGpu(bytes) => times(bytes, gpus),
        };
        let whole = if shape.exclusive || shape.memory == MemoryDemand::WholeNode { nodes } else { 0 };
        let part = |need: u128, all: u128| need.saturating_mul(ONE).checked_div(all).map_or(0, |part| part.min(ONE));
        [part(cpus, self.cpus), part(memory, self.memory), part(gpus, self.gpus), part(whole, self.nodes)].into_iter().fold(0, u128::max)
    }
}

impl Order {
    /// The turn of a job that has waited so long.
    pub fn turn(&self, cluster: &Cluster, job: &JobSnapshot, waited: Micros) -> Turn {
        match self {
            Order::Urgency { patience_seconds } if waited < span(*patience_seconds) => {
                // Products and quotients alone: each machine rounds them alike.
                let (wait, limit) = (waited.max(0) as f64 / HOUR, span(job.time_limit).max(SECOND) as f64 / HOUR);
                let (per_limit, share) = (wait / limit, cluster.share(job) as f64 / ONE as f64);
                let urgency = per_limit * per_limit * wait * (share * share) * (share * share);
                Turn { has_patience: true, urgency: Reverse(urgency.to_bits()) }
            }
            _ => Turn::default(),
        }
    }
}

/// How long each job of the queue is taken to run, if the rest are tried by that.
pub fn lengths(world: &World, queue: &[Queued], rest: Rest, is_predicted: bool) -> Option<Vec<Micros>> {
    let length = |queued: &Queued| match world.jobs.get(&queued.job).filter(|_| is_predicted) {
        Some(entry) => world.predictions.length(&entry.job),
        None => queued.length,
    };
    (rest == Rest::Shortest).then(|| queue.iter().map(length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;
    use berth_model::Name;
    use berth_model::resources::Shape;
    use berth_model::state::JobState;
    use std::collections::BTreeSet;

    fn job(nodes: u32, minutes: u64) -> JobSnapshot {
        let name = |text: &str| Name::new(text).unwrap();
        JobSnapshot {
            id: JobId(1),
            tenant: name("acme"),
            account: name("default"),
            user: name("ann"),
            partition: name("main"),
            qos: name("normal"),
            name: String::new(),
            state: JobState::Pending,
            hold: None,
            shape: Shape {
                min_nodes: nodes,
                max_nodes: nodes,
                tasks: nodes,
                tasks_per_node: Some(1),
                cpus_per_task: 1,
                memory: MemoryDemand::PerNode(Bytes(0)),
                gpus: GpuDemand::None,
                exclusive: false,
                exclusive_user: false,
                sockets: Default::default(),
                cores: Default::default(),
            },
            time_limit: minutes * 60,
            submit_time: jiff::Timestamp::UNIX_EPOCH,
            accrues_since: Some(jiff::Timestamp::UNIX_EPOCH),
            not_before: None,
            deadline: None,
            nice: 0,
            site_factor: 0,
            constraint: None,
            required_nodes: BTreeSet::new(),
            excluded_nodes: BTreeSet::new(),
            is_expedited: false,
            restarts: 0,
            dependencies: Vec::new(),
            dependency_any: false,
            is_singleton: false,
            array: None,
            task_of: None,
            component_of: None,
            attempt: None,
            claim: None,
            reservations: Vec::new(),
            licenses: Vec::new(),
            choices: Vec::new(),
        }
    }

    #[test]
    fn the_example_of_the_room() {
        let cluster = Cluster { nodes: 100, cpus: 100, memory: 0, gpus: 0 };
        let order = Order::Urgency { patience_seconds: 86_400 };
        let wide = order.turn(&cluster, &job(50, 60), span(2 * 3600));
        let short = order.turn(&cluster, &job(25, 15), span(2 * 3600));
        assert_eq!((wide.urgency(), short.urgency()), (0.5, 0.5));
        let longer = order.turn(&cluster, &job(50, 60), span(2 * 3600 + 1));
        assert!(longer < wide, "who has waited longer is more urgent, and goes first");
        let patient = order.turn(&cluster, &job(100, 1), span(86_399));
        assert!(order.turn(&cluster, &job(1, 10_000), span(86_400)) < patient, "who has waited long enough goes first");
    }
}
