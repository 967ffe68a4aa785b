//! Which verdicts to write. In a long queue each start and each cancelled job moves the ranks of all behind it: to write all of that would
//! cost the database more than the jobs themselves. What a user acts upon (what holds the job, when it is planned to start) is written at
//! once; ranks and counts follow as far as a budget goes, those that waited longest first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use berth_model::JobId;
use berth_model::verdict::JobVerdict;
use jiff::{SignedDuration, Timestamp};

/// Verdicts a second that are written for their ranks and counts alone.
const BUDGET: usize = 500;
/// A planned start that has moved by less, and by less than a tenth of the wait, is no news.
const SLACK: SignedDuration = SignedDuration::from_secs(60);

/// Verdicts as last written.
#[derive(Default)]
pub struct Written {
    verdicts: BTreeMap<JobId, (JobVerdict, Instant)>,
    /// What is left of the budget, and since when.
    left: usize,
    since: Option<Instant>,
}

impl Written {
    pub fn forget(&mut self, job: JobId) {
        self.verdicts.remove(&job);
    }

    /// Those of `verdicts` that are to be written now, which then count as written.
    pub fn take(&mut self, verdicts: &[JobVerdict], now: Timestamp, clock: Instant) -> Vec<JobVerdict> {
        if self.since.is_none_or(|since| clock.duration_since(since) >= Duration::from_secs(1)) {
            (self.left, self.since) = (BUDGET, Some(clock));
        }
        let mut chosen: Vec<&JobVerdict> = Vec::new();
        let mut minor: Vec<(Instant, &JobVerdict)> = Vec::new();
        for verdict in verdicts {
            match self.verdicts.get(&verdict.job) {
                Some((old, _)) if !differs(old, verdict) => {}
                Some((old, at)) if !is_news(old, verdict, now) => minor.push((*at, verdict)),
                _ => chosen.push(verdict),
            }
        }
        minor.sort_by_key(|(at, verdict)| (*at, verdict.job));
        minor.truncate(self.left);
        self.left -= minor.len();
        chosen.extend(minor.into_iter().map(|(_, verdict)| verdict));
        let chosen: Vec<JobVerdict> = chosen.into_iter().cloned().collect();
        self.verdicts.extend(chosen.iter().map(|verdict| (verdict.job, (verdict.clone(), clock))));
        chosen
    }
}

/// Ages and usage move every priority a little with every plan; less than a hundredth of it is not written.
fn differs(old: &JobVerdict, new: &JobVerdict) -> bool {
    (old.priority.total - new.priority.total).abs().saturating_mul(100) > old.priority.total.abs()
        || old.verdicts != new.verdicts
        || old.planned_start != new.planned_start
        || old.priority.rank != new.priority.rank
        || old.ahead != new.ahead
}

/// Something else holds the job, or its planned start has come, gone or moved by much.
fn is_news(old: &JobVerdict, new: &JobVerdict, now: Timestamp) -> bool {
    let holds = |v: &JobVerdict| v.verdicts.iter().map(|v| (v.code.clone(), v.object.clone())).collect::<Vec<_>>();
    let has_moved = match (&old.planned_start, &new.planned_start) {
        (Some(old), Some(new)) => {
            let wait = new.at.duration_since(now).max(SignedDuration::ZERO);
            old.at.duration_since(new.at).abs() > SLACK.max(wait / 10)
        }
        (old, new) => old.is_some() != new.is_some(),
    };
    has_moved || holds(old) != holds(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::verdict::{PlannedStart, Priority, Verdict};

    fn verdict(job: u64, code: &str, rank: u32, start: Option<&str>) -> JobVerdict {
        let priority = Priority { total: 1, rank, factors: Vec::new() };
        let verdict = Verdict {
            component: None,
            code: code.to_owned(),
            rule: String::new(),
            object: "partition/main".to_owned(),
            have: None,
            need: None,
            holders: Vec::new(),
            clears_at: None,
            advice: None,
        };
        let planned_start = start.map(|at| PlannedStart { at: at.parse().unwrap(), nodes: "n1".to_owned() });
        JobVerdict { job: JobId(job), verdicts: vec![verdict], priority, ahead: Vec::new(), planned_start }
    }

    #[test]
    fn what_users_act_upon_is_written_at_once_and_ranks_as_the_budget_allows() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let clock = Instant::now();
        let mut written = Written::default();
        let at = |rank: u32, code, start| (1..=2000).map(|job| verdict(job, code, rank + job as u32, start)).collect::<Vec<_>>();
        let hour = Some("2026-01-01T13:00:00Z");
        assert_eq!(written.take(&at(1, "resources", hour), now, clock).len(), 2000, "all are new");
        assert_eq!(written.take(&at(1, "resources", hour), now, clock).len(), 0);
        assert_eq!(written.take(&at(2, "resources", hour), now, clock).len(), BUDGET);
        assert_eq!(written.take(&at(2, "resources", hour), now, clock).len(), 0, "no more in this second");
        let later = clock + Duration::from_secs(1);
        let next = written.take(&at(2, "resources", hour), now, later);
        assert_eq!((next.len(), next[0].job), (BUDGET, JobId(501)), "those that waited longest");
        assert_eq!(written.take(&at(2, "resources", Some("2026-01-01T13:05:00Z")), now, later).len(), 0, "five minutes of an hour");
        assert_eq!(written.take(&at(2, "resources", Some("2026-01-01T14:00:00Z")), now, later).len(), 2000);
        assert_eq!(written.take(&at(2, "held_user", None), now, later).len(), 2000);
    }
}
