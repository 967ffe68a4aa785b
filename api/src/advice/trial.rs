//! Trying changes: when would the job start as it is, and when otherwise?

use berth_engine::DryRun;
use berth_model::Seconds;
use berth_model::event::JobSnapshot;
use berth_model::verdict::PlannedStart;
use jiff::Timestamp;

use super::nearby::Family;

/// What a plan makes of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `None`: nothing tells when.
    pub start: Option<PlannedStart>,
    /// What holds it first.
    pub code: Option<String>,
}

impl Outcome {
    pub fn of(answer: &DryRun, now: Timestamp) -> Outcome {
        let code = answer.verdict.as_ref().and_then(|verdict| verdict.verdicts.first()).map(|verdict| verdict.code.clone());
        Outcome { start: answer.planned_start(now), code }
    }
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub struct Tried {
    /// Of each change, the start with it if that is sooner.
    pub others: Vec<Option<PlannedStart>>,
    /// The longest time limit with which it starts as soon as with a very short one, if that is sooner.
    pub shorter: Option<(Seconds, PlannedStart)>,
    /// There was no time to try all.
    pub is_partial: bool,
}

/// A limit is found to the minute, or to this part of what is found.
const GRAIN: Seconds = 16;

/// Compares. `ask` makes a plan; `None` says that the time is over.
pub fn compare(
    job: &JobSnapshot,
    others: Vec<(JobSnapshot, Family)>,
    out_of_reach: &[&str],
    ask: &mut impl FnMut(JobSnapshot) -> Option<Outcome>,
) -> Tried {
    let mut tried = Tried { others: vec![None; others.len()], ..Tried::default() };
    let Some(as_is) = ask(job.clone()) else { return Tried { is_partial: true, ..tried } };
    if as_is.code.as_deref().is_none_or(|code| out_of_reach.contains(&code)) {
        return tried;
    }
    let is_sooner = |start: &PlannedStart| as_is.start.as_ref().is_none_or(|planned| start.at < planned.at);
    let mut fewest: Option<usize> = None;
    for (i, (other, family)) in others.into_iter().enumerate() {
        let Some(outcome) = ask(other) else { return Tried { is_partial: true, ..tried } };
        let Some(start) = outcome.start.filter(is_sooner) else { continue };
        if family == Family::FewerNodes {
            // Taking more away is only told if it helps more.
            if let Some(before) = fewest.and_then(|i| tried.others[i].as_ref())
                && before.at <= start.at
            {
                continue;
            }
            if let Some(before) = fewest.replace(i) {
                tried.others[before] = None;
            }
        }
        tried.others[i] = Some(start);
    }
    match shorter(job, &is_sooner, ask) {
        Ok(shorter) => tried.shorter = shorter,
        Err(found) => {
            tried.shorter = found;
            tried.is_partial = true;
        }
    }
    tried
}

type Limit = Option<(Seconds, PlannedStart)>;

/// `Err`: there was no time to find the longest.
fn shorter(
    job: &JobSnapshot,
    is_sooner: &impl Fn(&PlannedStart) -> bool,
    ask: &mut impl FnMut(JobSnapshot) -> Option<Outcome>,
) -> Result<Limit, Limit> {
    let mut with = |limit: Seconds| ask(JobSnapshot { time_limit: limit, ..job.clone() });
    let minutes = |seconds: Seconds| seconds / 60 * 60;
    let (mut long, mut short) = (job.time_limit, minutes(job.time_limit / 32).max(60));
    if short >= long {
        return Ok(None);
    }
    let Some(outcome) = with(short) else { return Err(None) };
    let Some(mut start) = outcome.start.filter(is_sooner) else { return Ok(None) };
    while long - short > (short / GRAIN).max(60) {
        let middle = minutes(short + (long - short) / 2).max(short + 60);
        match with(middle) {
            None => return Err(Some((short, start))),
            Some(Outcome { start: Some(found), .. }) if found.at <= start.at => (short, start) = (middle, found),
            Some(_) => long = middle,
        }
    }
    Ok(Some((short, start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> PlannedStart {
        PlannedStart { at: Timestamp::from_second(seconds).unwrap(), nodes: "n1".to_owned() }
    }

    fn job(time_limit: Seconds) -> JobSnapshot {
        serde_json::from_value(serde_json::json!({
            "id": 7, "tenant": "acme", "account": "ml", "user": "ann", "partition": "main", "qos": "normal", "name": "a", "state": "pending",
            "submit_time": "2026-12-01T00:00:00Z", "time_limit": time_limit, "nice": 0, "site_factor": 0, "excluded_nodes": [], "required_nodes": [],
            "dependencies": [], "dependency_any": false, "is_singleton": false, "is_expedited": false,
            "shape": { "min_nodes": 1, "max_nodes": 1, "tasks": 1, "tasks_per_node": null, "cpus_per_task": 1, "memory": { "per_node": 1 },
                "gpus": "none", "exclusive": false }
        }))
        .unwrap()
    }

    fn waits(start: PlannedStart) -> Option<Outcome> {
        Some(Outcome { start: Some(start), code: Some("resources".to_owned()) })
    }

    #[test]
    fn the_longest_limit_that_helps_is_found_to_a_sixteenth() {
        // A gap of 47 minutes, now.
        let mut asked = 0;
        let tried = compare(&job(4 * 3600), Vec::new(), &[], &mut |job| {
            asked += 1;
            waits(if job.time_limit <= 47 * 60 { at(0) } else { at(9000) })
        });
        let (limit, start) = tried.shorter.unwrap();
        assert_eq!((start, tried.is_partial), (at(0), false));
        assert!((44 * 60..=47 * 60).contains(&limit), "{limit} s");
        assert!(asked <= 10, "{asked} plans");
    }

    #[test]
    fn only_what_helps_is_told() {
        let fewer = |nodes: u32| {
            let mut job = job(60);
            job.shape.min_nodes = nodes;
            (job, Family::FewerNodes)
        };
        let starts = |job: JobSnapshot| waits(at(if job.shape.min_nodes >= 4 { 900 } else { 300 }));
        let tried = compare(&fewer(8).0, vec![fewer(4), fewer(2), fewer(1), (job(60), Family::None)], &[], &mut |job| starts(job));
        assert_eq!(tried.others, [None, Some(at(300)), None, Some(at(300))]);
        let held = compare(&job(600), vec![(job(60), Family::None)], &["held_user"], &mut |_| {
            Some(Outcome { start: None, code: Some("held_user".to_owned()) })
        });
        assert_eq!(held, Tried { others: vec![None], ..Tried::default() });
    }

    #[test]
    fn what_there_was_no_time_for_is_said() {
        let mut left = 3;
        let tried = compare(&job(4 * 3600), Vec::new(), &[], &mut |job| {
            left -= 1;
            (left >= 0).then(|| waits(if job.time_limit <= 3600 { at(0) } else { at(9000) })).flatten()
        });
        assert_eq!(tried.shorter.unwrap().0, 420, "a thirty-second is known to help");
        assert!(tried.is_partial);
    }
}
