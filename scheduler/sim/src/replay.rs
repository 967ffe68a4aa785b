//! A trace replayed under one policy, and what came of it.

use serde::Serialize;

use crate::cluster::Workload;
use crate::metrics::{Fared, Metrics};
use crate::policy::Policy;
use crate::run::simulate;

/// One row of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Replay {
    pub policy: String,
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Plans that the engine made.
    pub plans: u64,
    /// How each job that ran fared.
    #[serde(skip)]
    pub fared: Vec<Fared>,
}

/// `watch` is told, after each plan, how many jobs have ended.
pub fn replay(workload: &Workload, policy: &Policy, watch: &mut dyn FnMut(usize)) -> Replay {
    let schedule = simulate(policy.settings, workload.world.clone(), workload.jobs.clone(), watch);
    let (metrics, fared) = Metrics::of(workload, &schedule);
    Replay { policy: policy.name.clone(), metrics, plans: schedule.plans, fared }
}
