//! Verdicts as sentences.

use berth_model::preemption::Suspension;
use berth_model::state::JobState;
use berth_model::verdict::{JobVerdict, Verdict};

/// All that a plan says of a job, in a sentence or two.
pub fn summary(verdict: &JobVerdict) -> String {
    let mut summary = verdict.verdicts.first().map_or_else(|| "It waits for its turn.".to_owned(), headline);
    if let Some(planned) = &verdict.planned_start {
        summary.push_str(&format!(" Planned to start at {} on {}.", planned.at, planned.nodes));
    }
    summary
}

/// A state as people say it.
pub fn it_is(state: JobState) -> &'static str {
    match state {
        JobState::Pending => "It waits",
        JobState::Allocated => "It has its nodes and starts",
        JobState::Running => "It runs",
        JobState::Suspended => "It is suspended",
        JobState::Completing => "It is ending",
        JobState::Completed => "It has completed",
        JobState::Failed => "It has failed",
        JobState::Cancelled => "It was cancelled",
        JobState::Timeout => "It ran into its time limit",
        JobState::OutOfMemory => "It ran out of memory",
        JobState::NodeFail => "It ended as its node failed",
        JobState::Preempted => "It was preempted",
        JobState::Deadline => "It missed its deadline",
        JobState::LaunchFailed => "It could not be launched",
        JobState::BootFail => "Its nodes did not come up",
    }
}

/// Who has a job suspended, and when it goes on. `is_own`: the other job is of its own tenant.
pub fn suspended(suspension: &Suspension, is_own: bool) -> String {
    let who = match suspension.for_job {
        Some(job) if is_own => format!("to make room for job {job}"),
        Some(_) => "to make room for a job of another tenant".to_owned(),
        None => "by an administrator".to_owned(),
    };
    let then = match suspension.is_held {
        true => "it goes on when an administrator resumes it",
        false => "it goes on as soon as there are CPUs for it on all its nodes",
    };
    format!(" It was suspended at {} {who}; {then}.", suspension.at)
}

/// The reason in a sentence: who or what is waited for.
pub fn headline(verdict: &Verdict) -> String {
    let object = spaced(&verdict.object);
    let need = verdict.need.as_deref().unwrap_or_default();
    let have = there(verdict.have.as_deref().unwrap_or_default());
    let condition = need.split(':').next().unwrap_or_default();
    let holders = verdict.holders.iter().map(|h| spaced(h)).collect::<Vec<_>>().join(", ");
    let until = verdict.clears_at.map(|at| format!(" until {at}")).unwrap_or_default();
    match verdict.code.as_str() {
        "dependency" => format!("It waits for {object} ({condition})."),
        "dependency_never" => format!("It will never start: {object} cannot satisfy {condition} any more."),
        "begin_time" => format!("It waits for its begin time{until}."),
        "launch_backoff" => format!("It waits{until} before it starts again."),
        "array_throttle" => format!("It waits for other tasks of its array to end ({need}).").replace(" ()", ""),
        "preempting" => format!("It preempted {holders} and waits{until} at the latest; its nodes are held for it."),
        "priority" if !holders.is_empty() => format!("It waits behind {holders}, planned ahead of it."),
        "resources" if !holders.is_empty() => {
            let uses = if verdict.holders.len() == 1 { "uses" } else { "use" };
            format!("It waits for resources that {holders} {uses}: it needs {need}; {have}.")
        }
        "resources" => format!("It waits for resources: it needs {need}; {have}."),
        "nodes_unavailable" => format!("It waits for {object}: {have}."),
        "reservation_not_started" => format!("It waits for {object} to begin{until}."),
        "reservation_nodes_busy" => format!("It waits for nodes of {object}{until}: it needs {need}; {have}."),
        "reservation_too_short" => format!("It does not fit into {object}: it asks for {need}, and {have}."),
        "reservation_not_allowed" | "reservation_over" => format!("It cannot start in {object}: {have}."),
        "reserved" if holders.is_empty() => format!("It stays out: {have}."),
        "reserved" => format!("It stays out of {holders}: {have}."),
        code if code.starts_with("held") => {
            format!("It is held; {}.", verdict.advice.as_deref().unwrap_or(&verdict.rule).trim_end_matches('.'))
        }
        _ => {
            let need = if need.is_empty() { String::new() } else { format!("it needs {need}") };
            let parts: Vec<&str> = [have.as_str(), need.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
            let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) };
            format!("It cannot start: {}{parts}.", verdict.rule)
        }
    }
}

/// What there is, as a clause: amounts get their verb, sentences have one.
fn there(have: &str) -> String {
    let first = have.split(' ').next().unwrap_or_default();
    let is_time = first.contains(':');
    match first.split(['-', ':']).next().unwrap_or_default().parse::<u64>() {
        Ok(1) => format!("there is {have}"),
        Ok(_) if is_time => format!("there is {have}"),
        Ok(_) => format!("there are {have}"),
        Err(_) => have.to_owned(),
    }
}

/// A headline of something that is over.
pub fn past(headline: &str) -> String {
    let words = [
        ("It waits", "it waited"),
        ("It preempted", "it preempted"),
        (" and waits until", " and waited until"),
        ("It is held", "it was held"),
        ("It cannot start", "it could not start"),
        ("It stays", "it stayed"),
        ("It does not fit", "it did not fit"),
        ("It will never start", "it would never have started"),
        (" cannot satisfy", " could not satisfy"),
        ("it needs", "it needed"),
        ("it asks for", "it asked for"),
        ("there is", "there was"),
        ("there are", "there were"),
        (" keeps nodes ", " kept nodes "),
        (" uses: ", " used: "),
        (" use: ", " used: "),
    ];
    words.iter().fold(headline.to_owned(), |text, (now, then)| text.replace(now, then))
}

/// `job/118` as people say it.
fn spaced(object: &str) -> String {
    object.replacen('/', " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_the_reason() {
        let verdict = |value: serde_json::Value| {
            let mut whole = serde_json::json!({ "rule": "all must hold", "object": "job/118" });
            whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            headline(&serde_json::from_value(whole).unwrap())
        };
        for (value, expected) in [
            (serde_json::json!({ "code": "dependency", "need": "afterok:118" }), "It waits for job 118 (afterok)."),
            (serde_json::json!({ "code": "dependency", "need": "singleton" }), "It waits for job 118 (singleton)."),
            (
                serde_json::json!({ "code": "priority", "holders": ["job/3", "job/4"] }),
                "It waits behind job 3, job 4, planned ahead of it.",
            ),
            (
                serde_json::json!({ "code": "begin_time", "clears_at": "2026-12-02T10:00:00Z" }),
                "It waits for its begin time until 2026-12-02T10:00:00Z.",
            ),
            (serde_json::json!({ "code": "new_rule", "have": "1 node" }), "It cannot start: all must hold (there is 1 node)."),
            (
                serde_json::json!({ "code": "new_rule", "have": "3 CPUs", "need": "4 CPUs" }),
                "It cannot start: all must hold (there are 3 CPUs; it needs 4 CPUs).",
            ),
            (
                serde_json::json!({ "code": "reservation_not_allowed", "object": "reservation/r", "have": "it is not for this user" }),
                "It cannot start in reservation r: it is not for this user.",
            ),
            (
                serde_json::json!({ "code": "reservation_too_short", "object": "reservation/r", "have": "00:10:00 until r ends", "need": "01:00:00" }),
                "It does not fit into reservation r: it asks for 01:00:00, and there is 00:10:00 until r ends.",
            ),
            (
                serde_json::json!({ "code": "resources", "holders": ["job/3", "job/4"], "need": "2 CPUs", "have": "0 CPUs free on 1 node" }),
                "It waits for resources that job 3, job 4 use: it needs 2 CPUs; there are 0 CPUs free on 1 node.",
            ),
            (
                serde_json::json!({ "code": "reserved", "object": "reservation", "have": "another reservation keeps nodes from 1 until 2" }),
                "It stays out: another reservation keeps nodes from 1 until 2.",
            ),
        ] {
            assert_eq!(verdict(value), expected);
        }
        let resources = serde_json::json!({ "code": "resources", "holders": ["job/3"], "need": "2 CPUs", "have": "1 CPU" });
        assert_eq!(past(&verdict(resources)), "it waited for resources that job 3 used: it needed 2 CPUs; there was 1 CPU.");
        let reserved = serde_json::json!({ "code": "reserved", "holders": ["reservation/r"], "have": "r keeps nodes from 1 until 2" });
        assert_eq!(past(&verdict(reserved)), "it stayed out of reservation r: r kept nodes from 1 until 2.");
    }
}
