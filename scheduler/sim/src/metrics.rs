//! What a schedule was worth to those who waited, and to those who own the machines.
//!
//! run = min(run time, walltime). wait = start − submit. Bounded slowdown = max(1, (wait + run) ÷ max(run, 10 s)). Utilisation: busy
//! unit-seconds between the first and the last submission ÷ (capacity × that time). Large jobs: units at least the trace's 99th
//! percentile. Users: the largest of their mean bounded slowdowns ÷ the mean of them, of users with at least ten jobs. Percentiles interpolate between neighbours.
//! Jobs that can never fit count as rejected, and nowhere else.

use std::collections::BTreeMap;

use berth_model::Name;
use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::Workload;
use crate::run::Schedule;

/// Runs shorter than this count as so long in a slowdown, in seconds.
const SHORTEST: f64 = 10.0;

/// A user with fewer jobs is left out of the comparison of users: one unlucky job would decide it.
const FEWEST_JOBS: f64 = 10.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    pub jobs: usize,
    pub rejected: usize,
    pub preemptions: usize,
    pub mean_wait_seconds: f64,
    pub p95_wait_seconds: f64,
    pub mean_bounded_slowdown: f64,
    pub median_bounded_slowdown: f64,
    pub utilisation: f64,
    pub large_jobs: usize,
    /// Nothing if none of the large jobs was run.
    pub large_job_mean_wait_seconds: Option<f64>,
    pub user_max_over_mean: f64,
}

/// How one job fared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fared {
    pub wait: f64,
    pub bounded_slowdown: f64,
}

impl Metrics {
    /// The figures, and how each job that ran fared in order of their ends.
    pub fn of(workload: &Workload, schedule: &Schedule) -> (Metrics, Vec<Fared>) {
        let large = percentile(&mut workload.units.clone(), 0.99);
        let window = (workload.jobs.first().map(|j| j.job.submit_time), workload.jobs.last().map(|j| j.job.submit_time));
        let mut fared = Vec::with_capacity(schedule.outcomes.len());
        let mut users: BTreeMap<(&Name, &Name), (f64, f64)> = BTreeMap::new();
        let mut large_waits = Vec::new();
        let mut busy = 0.0;
        for outcome in &schedule.outcomes {
            let at = outcome.job.0 as usize - 1;
            let wait = seconds(outcome.submitted, outcome.started);
            let run = seconds(outcome.started, outcome.ended);
            let one = Fared { wait, bounded_slowdown: ((wait + run) / run.max(SHORTEST)).max(1.0) };
            let job = &workload.jobs[at].job;
            let user = users.entry((&job.tenant, &job.user)).or_default();
            *user = (user.0 + one.bounded_slowdown, user.1 + 1.0);
            if workload.units[at] >= large {
                large_waits.push(wait);
            }
            if let (Some(first), Some(last)) = window {
                busy += workload.units[at] * seconds(outcome.started.max(first), outcome.ended.min(last)).max(0.0);
            }
            fared.push(one);
        }
        let span = window.0.zip(window.1).map_or(0.0, |(first, last)| seconds(first, last));
        let mut waits: Vec<f64> = fared.iter().map(|f| f.wait).collect();
        let mut slowdowns: Vec<f64> = fared.iter().map(|f| f.bounded_slowdown).collect();
        let by_user: Vec<f64> = users.values().filter(|(_, jobs)| *jobs >= FEWEST_JOBS).map(|(sum, jobs)| sum / jobs).collect();
        let metrics = Metrics {
            jobs: workload.jobs.len(),
            rejected: schedule.never_started.len(),
            preemptions: 0,
            mean_wait_seconds: mean(&waits),
            p95_wait_seconds: percentile(&mut waits, 0.95),
            mean_bounded_slowdown: mean(&slowdowns),
            median_bounded_slowdown: percentile(&mut slowdowns, 0.5),
            utilisation: if span > 0.0 { busy / (workload.capacity * span) } else { 0.0 },
            large_jobs: large_waits.len(),
            large_job_mean_wait_seconds: (!large_waits.is_empty()).then(|| mean(&large_waits)),
            user_max_over_mean: ratio(by_user.iter().copied().fold(0.0, f64::max), mean(&by_user)),
        };
        (metrics, fared)
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Sorts `values`; between two of them the value in proportion.
pub(crate) fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let at = part * last as f64;
    let below = at.floor() as usize;
    values[below] + (values[(below + 1).min(last)] - values[below]) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let mut values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(percentile(&mut values, 0.5), 25.0);
        assert_eq!(percentile(&mut values, 1.0), 40.0);
        assert_eq!(percentile(&mut values, 0.25), 17.5);
        assert_eq!(percentile(&mut [], 0.95), 0.0);
    }
}
