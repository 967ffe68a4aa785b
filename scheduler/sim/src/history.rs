//! Recorded history replayed: the jobs that a service ran, under policies that it did not have.
//!
//! The jobs come when they came, with the limits and lengths that they had, on the nodes that there are now, all of them in service.
//! What they depended on is not replayed, and an attempt that was lost is not run again: a job runs once, as long as its last attempt
//! did. The first row of a comparison is what was recorded.

use std::collections::BTreeMap;

use berth_engine::Settings;
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::Policy;
use berth_model::resources::{GpuDemand, Shape};
use berth_model::{JobId, Name};
use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::Workload;
use crate::metrics::Metrics;
use crate::replay::Replay;
use crate::run::{Outcome, Schedule, SimJob, simulate};

/// A job that ran.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// As it was submitted.
    pub job: JobSnapshot,
    pub started: Timestamp,
    pub ended: Timestamp,
    /// Attempts before the last one, and the seconds for which they ran.
    pub restarts: u32,
    pub lost_seconds: u64,
}

/// A period laid on the cluster.
#[derive(Clone, Debug)]
pub struct History {
    workload: Workload,
    recorded: Schedule,
    restarts: usize,
    lost_unit_seconds: f64,
}

/// How a period went under one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub replay: Replay,
    /// Unit-seconds of attempts that were run again.
    pub lost_unit_seconds: f64,
    pub accounts: Vec<AccountReport>,
}

/// How an account's jobs fared, and what they took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountReport {
    pub tenant: Name,
    pub account: Name,
    pub jobs: usize,
    pub mean_wait_seconds: f64,
    /// GPUs if any job asked for some, else CPUs, times hours.
    pub unit_hours: f64,
}

impl History {
    /// `cluster`: policy, partitions, QOS and nodes; `jobs` in order of submission.
    pub fn of(cluster: Vec<Event>, jobs: Vec<Recorded>) -> History {
        let has_gpus = jobs.iter().any(|past| gpus(&past.job.shape) > 0);
        let units = |shape: &Shape| if has_gpus { gpus(shape) } else { shape.tasks * shape.cpus_per_task };
        let world: Vec<Event> = cluster.into_iter().map(in_service).collect();
        let size = |event: &Event| match event {
            Event::Node(node) if has_gpus => node.inventory.gpus.len(),
            Event::Node(node) => node.inventory.cpus.len(),
            _ => 0,
        };
        let capacity = world.iter().map(size).sum::<usize>() as f64;
        let numbered: Vec<(Recorded, JobId)> = jobs.into_iter().zip((1..).map(JobId)).collect();
        let mut outcomes: Vec<Outcome> = numbered.iter().map(|(past, id)| outcome(past, *id)).collect();
        outcomes.sort_by_key(|outcome| (outcome.ended, outcome.job));
        let lost = |(past, _): &(Recorded, JobId)| past.lost_seconds as f64 * f64::from(units(&past.job.shape));
        History {
            restarts: numbered.iter().map(|(past, _)| past.restarts as usize).sum(),
            lost_unit_seconds: numbered.iter().map(lost).sum(),
            workload: Workload {
                world,
                units: numbered.iter().map(|(past, _)| f64::from(units(&past.job.shape))).collect(),
                jobs: numbered.into_iter().map(|(past, id)| sim_job(past, id)).collect(),
                capacity,
                rounded_up: 0,
            },
            recorded: Schedule { outcomes, never_started: Vec::new(), plans: 0 },
        }
    }

    /// Jobs in the period.
    pub fn jobs(&self) -> usize {
        self.workload.jobs.len()
    }

    /// What was recorded.
    pub fn recorded(&self) -> Report {
        let mut report = self.report("recorded".to_owned(), &self.recorded);
        report.replay.metrics.preemptions = self.restarts;
        report.lost_unit_seconds = self.lost_unit_seconds;
        report
    }

    /// The period under `policy`. `watch` is told after each plan how many jobs have ended.
    pub fn replay(&self, name: String, policy: Policy, watch: &mut dyn FnMut(usize)) -> Report {
        let world = self.workload.world.iter().map(|event| match event {
            Event::Policy(_) => Event::Policy(policy.clone()),
            other => other.clone(),
        });
        let schedule = simulate(Settings::default(), world.collect(), self.workload.jobs.clone(), watch);
        self.report(name, &schedule)
    }

    fn report(&self, policy: String, schedule: &Schedule) -> Report {
        let (metrics, fared) = Metrics::of(&self.workload, schedule);
        let replay = Replay { policy, metrics, plans: schedule.plans, fared };
        Report { replay, lost_unit_seconds: 0.0, accounts: self.accounts(schedule) }
    }

    fn accounts(&self, schedule: &Schedule) -> Vec<AccountReport> {
        let mut accounts: BTreeMap<(&Name, &Name), (usize, f64, f64)> = BTreeMap::new();
        for outcome in &schedule.outcomes {
            let at = outcome.job.0 as usize - 1;
            let job = &self.workload.jobs[at].job;
            let sums = accounts.entry((&job.tenant, &job.account)).or_default();
            sums.0 += 1;
            sums.1 += outcome.wait().as_secs_f64();
            sums.2 += self.workload.units[at] * outcome.ended.duration_since(outcome.started).as_secs_f64() / 3600.0;
        }
        let report = |((tenant, account), (jobs, waits, unit_hours)): ((&Name, &Name), (usize, f64, f64))| AccountReport {
            tenant: tenant.clone(),
            account: account.clone(),
            jobs,
            mean_wait_seconds: waits / jobs as f64,
            unit_hours,
        };
        accounts.into_iter().map(report).collect()
    }
}

/// A node that is down or drained now was not so then, as far as anybody knows.
fn in_service(event: Event) -> Event {
    match event {
        Event::Node(mut node) => {
            node.is_down = false;
            node.flags.clear();
            Event::Node(node)
        }
        other => other,
    }
}

fn sim_job(past: Recorded, id: JobId) -> SimJob {
    let runtime = past.ended.duration_since(past.started).as_secs().max(0).unsigned_abs();
    SimJob { job: JobSnapshot { id, ..past.job }, runtime }
}

fn outcome(past: &Recorded, id: JobId) -> Outcome {
    let (submitted, started, ended) = (past.job.submit_time, past.started, past.ended);
    Outcome { job: id, submitted, started, ended, nodes: Vec::new(), is_timed_out: false }
}

fn gpus(shape: &Shape) -> u32 {
    match &shape.gpus {
        GpuDemand::None | GpuDemand::Share(_) => 0,
        GpuDemand::Total(gpus) => gpus.count,
        GpuDemand::PerNode(gpus) => shape.min_nodes * gpus.count,
        GpuDemand::PerTask(gpus) => shape.tasks * gpus.count,
    }
}
