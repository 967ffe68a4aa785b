//! Eligibility: what policy alone holds against a job, before any node is looked at.
//!
//! Every cause is reported, in the order in which they bind: holds, dependencies, times, the partition, limits, reservations, the array's throttle.

use std::collections::BTreeMap;

use berth_model::Name;
use berth_model::dependency::DependencyProgress;
use berth_model::event::JobSnapshot;
use berth_model::policy::{Partition, Qos};
use berth_model::resources::{GpuDemand, MemoryDemand};
use berth_model::state::{Hold, PartitionState};
use berth_model::verdict::Verdict;
use berth_model::{JobId, amount::format_time_limit};

use crate::amount::{Micros, micros, span, timestamp};
use crate::explain::{Words, say};
use crate::queue::Throttle;
use crate::reserved;
use crate::shape::{NodeLimits, even_share, node_range};
use crate::ways::Reservations;

pub struct Rules<'a> {
    pub partitions: &'a BTreeMap<Name, Partition>,
    pub qos: &'a BTreeMap<Name, Qos>,
    pub reservations: &'a Reservations,
    pub now: Micros,
}

impl Rules<'_> {
    /// All that holds `job`; empty: it may be placed. `elder` is the first job that a singleton waits for.
    pub fn causes(&self, job: &JobSnapshot, elder: Option<JobId>, throttle: Option<Throttle>) -> Vec<Verdict> {
        let mut causes = Vec::new();
        self.holds(job, &mut causes);
        self.dependencies(job, elder, &mut causes);
        self.times(job, &mut causes);
        match self.partitions.get(&job.partition) {
            Some(partition) => self.partition(job, partition, &mut causes),
            None => causes.push(
                say("partition_down", "a job runs in a partition that exists", format!("partition/{}", job.partition))
                    .have("no such partition")
                    .advice("move the job to another partition, or ask an administrator to restore this one"),
            ),
        }
        self.qos_limits(job, &mut causes);
        causes.extend(reserved::refused(self.reservations, job, timestamp(self.now)));
        causes.extend(throttle.filter(|throttle| throttle.left() == 0).map(|t| throttled(t.array, t.running, t.most)));
        causes
    }

    fn holds(&self, job: &JobSnapshot, causes: &mut Vec<Verdict>) {
        let held = |code, advice| say(code, "a held job does not start", format!("job/{}", job.id)).advice(advice);
        match job.hold {
            Some(Hold::User) => causes.push(held("held_user", "release the job when it should run")),
            Some(Hold::Admin) => causes.push(held("held_admin", "an administrator holds this job and must release it")),
            None => {}
        }
    }

    fn dependencies(&self, job: &JobSnapshot, elder: Option<JobId>, causes: &mut Vec<Verdict>) {
        let count = |progress| job.dependencies.iter().filter(|d| d.progress == progress).count();
        let is_met = if job.dependency_any {
            job.dependencies.is_empty() || count(DependencyProgress::Satisfied) > 0
        } else {
            count(DependencyProgress::Satisfied) == job.dependencies.len()
        };
        let is_hopeless = if job.dependency_any { count(DependencyProgress::Never) == job.dependencies.len() } else { true };
        if !is_met {
            let mut waiting = Vec::new();
            for status in &job.dependencies {
                let object = format!("job/{}", status.on.job);
                match status.progress {
                    DependencyProgress::Satisfied => {}
                    DependencyProgress::Waiting => waiting.push(
                        say("dependency", "all dependencies must be satisfied, or any with dependency_any", object.clone())
                            .need(status.on.to_string())
                            .holders(vec![object])
                            .advice("nothing to do: the job becomes eligible when that job gets there"),
                    ),
                    DependencyProgress::Never if is_hopeless => causes.push(
                        say("dependency_never", "a dependency that can no longer be satisfied keeps the job for ever", object)
                            .need(status.on.to_string())
                            .advice("cancel the job, or change its dependencies"),
                    ),
                    DependencyProgress::Never => {}
                }
            }
            causes.append(&mut waiting);
        }
        if let Some(elder) = elder {
            causes.push(
                say("dependency", "a singleton waits for all earlier jobs of its user and name", format!("job/{elder}"))
                    .need("singleton")
                    .holders(vec![format!("job/{elder}")])
                    .advice("nothing to do: the job becomes eligible when the earlier ones have ended"),
            );
        }
    }

    fn times(&self, job: &JobSnapshot, causes: &mut Vec<Verdict>) {
        if let Some(begin) = job.not_before.filter(|begin| micros(*begin) > self.now) {
            // A pending job that has had an attempt waits out the delay of its requeue.
            let (code, rule, advice) = match job.restarts {
                1.. => ("launch_backoff", "a requeued job waits before it starts again", "nothing to do: the job becomes eligible then"),
                0 => (
                    "begin_time",
                    "a job does not start before its begin time",
                    "nothing to do: the job becomes eligible then; or give it an earlier begin time",
                ),
            };
            causes.push(say(code, rule, format!("job/{}", job.id)).need(begin.to_string()).clears(begin).advice(advice));
        }
        if let Some(deadline) = job.deadline
            && self.now.saturating_add(span(job.time_limit)) > micros(deadline)
        {
            causes.push(
                say("deadline_unreachable", "a job must be able to end by its deadline", format!("job/{}", job.id))
                    .have(format!("would end at {} if it started now", timestamp(self.now.saturating_add(span(job.time_limit)))))
                    .need(deadline.to_string())
                    .advice("lower the time limit or move the deadline"),
            );
        }
    }

    fn partition(&self, job: &JobSnapshot, partition: &Partition, causes: &mut Vec<Verdict>) {
        let object = || format!("partition/{}", partition.name);
        if matches!(partition.state, PartitionState::Down | PartitionState::Inactive) {
            causes.push(
                say("partition_down", "a partition that is down or inactive starts nothing", object())
                    .have(partition.state.as_str())
                    .need("up")
                    .advice("wait until an administrator sets it up, or move the job to another partition"),
            );
        }
        if let Some(most) = partition.max_time_seconds.filter(|most| job.time_limit > *most) {
            causes.push(over_time(job, most, object()));
        }
        let (least, most) = node_range(&job.shape, job.required_nodes.len());
        let limit = "the nodes of a job lie within its partition's limits";
        if let Some(max) = partition.max_nodes.filter(|max| least > *max) {
            causes.push(
                say("node_count_limit", limit, object())
                    .have(format!("at most {max} nodes"))
                    .need(format!("{least} nodes"))
                    .advice("ask for fewer nodes, or use another partition"),
            );
        }
        if let Some(min) = partition.min_nodes.filter(|min| most < *min) {
            causes.push(
                say("node_count_limit", limit, object())
                    .have(format!("at least {min} nodes"))
                    .need(format!("{most} nodes"))
                    .advice("ask for more nodes, or use another partition"),
            );
        }
        per_node_limits(job, NodeLimits::of(partition), most, object(), causes);
    }

    fn qos_limits(&self, job: &JobSnapshot, causes: &mut Vec<Verdict>) {
        let Some(qos) = self.qos.get(&job.qos) else { return };
        if let Some(most) = qos.max_time_seconds.filter(|most| job.time_limit > *most) {
            causes.push(over_time(job, most, format!("qos/{}", qos.name)));
        }
    }
}

fn over_time(job: &JobSnapshot, most: u64, object: String) -> Verdict {
    say("time_limit", "a job's time limit is at most its partition's and its QOS's", object)
        .have(format!("at most {}", format_time_limit(most)))
        .need(format_time_limit(job.time_limit))
        .advice("lower the job's time limit")
}

/// The least that one node must give with the widest spread is more than the partition allows.
fn per_node_limits(job: &JobSnapshot, limits: NodeLimits, most_nodes: u32, object: String, causes: &mut Vec<Verdict>) {
    let share = even_share(&job.shape, most_nodes.max(1), 0);
    let cpus = share.tasks.saturating_mul(job.shape.cpus_per_task).max(1);
    let gpus = match &job.shape.gpus {
        GpuDemand::None | GpuDemand::Share(_) => 0,
        GpuDemand::Total(_) => share.gpus,
        GpuDemand::PerNode(gpus) => gpus.count,
        GpuDemand::PerTask(gpus) => gpus.count.saturating_mul(share.tasks),
    };
    let memory = match job.shape.memory {
        MemoryDemand::WholeNode => 0,
        MemoryDemand::PerNode(bytes) => bytes.0,
        MemoryDemand::PerCpu(bytes) => bytes.0.saturating_mul(u64::from(cpus)),
        MemoryDemand::PerGpu(bytes) => bytes.0.saturating_mul(u64::from(gpus)),
    };
    let mut over = |have: String, need: String| {
        causes.push(
            say("partition_limit", "a job takes no more of a node than its partition allows", object.clone())
                .have(have)
                .need(need)
                .advice("ask for less on each node, spread over more nodes, or use another partition"),
        );
    };
    if let Some(most) = limits.cpus.filter(|most| cpus > *most) {
        over(format!("at most {most} CPUs a node"), format!("{cpus} CPUs"));
    }
    if let Some(most) = limits.memory.filter(|most| memory > *most) {
        over(format!("at most {} a node", berth_model::Bytes(most)), berth_model::Bytes(memory).to_string());
    }
}

pub fn throttled(job: JobId, running: u32, most: u32) -> Verdict {
    say("array_throttle", "an array runs at most as many tasks at once as its throttle says", format!("job/{job}"))
        .have(format!("{running} tasks run"))
        .need(format!("fewer than {most}"))
        .advice("wait for a task to end, or raise the throttle")
}
