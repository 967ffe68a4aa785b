//! Predicted run times: the mean of the user's last two jobs, at most the time limit (Tsafrir, Etsion, Feitelson 2007, the predictor of
//! EASY++).
//!
//! A prediction only decides in which order jobs are tried. Planned starts and the ends of what runs go by time limits, so a wrong
//! prediction delays no planned start and ends no job.

use std::collections::BTreeMap;

use berth_model::Name;
use berth_model::event::{JobSnapshot, RecentRuns};

use crate::amount::{Micros, span};

#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// Mean run time by tenant and by user.
    means: BTreeMap<Name, BTreeMap<Name, Micros>>,
}

impl Predictions {
    pub fn learn(&mut self, runs: RecentRuns) {
        let known: Vec<Micros> = runs.seconds.iter().take(RecentRuns::KEPT).map(|seconds| span(*seconds)).collect();
        let sum = known.iter().fold(0, |sum: Micros, length| sum.saturating_add(*length));
        let users = self.means.entry(runs.tenant).or_default();
        match known.len() {
            0 => users.remove(&runs.user),
            count => users.insert(runs.user, sum / count as Micros),
        };
    }

    /// How long the job will probably run. Of a user who has run nothing: its time limit.
    pub fn length(&self, job: &JobSnapshot) -> Micros {
        let limit = span(job.time_limit);
        self.means.get(&job.tenant).and_then(|users| users.get(&job.user)).map_or(limit, |mean| limit.min(*mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_changes_nothing_and_nothing_told_is_forgotten() {
        let name = |text: &str| Name::new(text).unwrap();
        let told = |seconds: &[u64]| RecentRuns { tenant: name("acme"), user: name("ann"), seconds: seconds.to_vec() };
        let mut predictions = Predictions::default();
        for (seconds, mean) in [(&[60, 120][..], Some(90)), (&[60, 120], Some(90)), (&[30], Some(30)), (&[], None)] {
            predictions.learn(told(seconds));
            assert_eq!(predictions.means[&name("acme")].get(&name("ann")).copied(), mean.map(span));
        }
    }
}
