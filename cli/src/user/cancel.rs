//! `berth cancel`: of few or of many.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use berth_model::{Indices, JobId, JobSet};
use futures::StreamExt;
use serde_json::{Value, json};

use super::args::CancelArgs;
use super::client::Client;
use super::control::about;
use super::{counted, is_over, open_states, segment, text};

/// Requests under way at once.
const AT_ONCE: usize = 16;
/// More than this many are counted, not listed.
const LISTED: usize = 20;
/// Most jobs of a filter.
const MOST: usize = 100_000;

/// What became of one.
enum Outcome {
    Done,
    /// It had ended before, in this state.
    Over(String),
}

pub async fn cancel(client: &Client, args: CancelArgs) -> anyhow::Result<ExitCode> {
    let is_filtered = args.me || [&args.user, &args.name, &args.states, &args.partition, &args.account].iter().any(|f| !f.is_empty());
    // Tasks are cancelled together; signalled, or matched with filters, one by one.
    let are_unfolded = is_filtered || args.signal.is_some();
    let named = if are_unfolded {
        args.jobs.iter().map(|job| unfold(job)).collect::<anyhow::Result<Vec<_>>>()?.concat()
    } else {
        args.jobs.clone()
    };
    let jobs = if is_filtered { matching(client, &args, &named).await? } else { named };
    if jobs.is_empty() {
        println!("No job matches");
        return Ok(ExitCode::SUCCESS);
    }
    let done = if args.signal.is_some() { "signalled" } else { "cancelled" };
    let order = &args;
    let mut outcomes = futures::stream::iter(&jobs).map(|job| async move { (job, one(client, order, job).await) }).buffered(AT_ONCE);
    let (begun, is_watched) = (Instant::now(), std::io::stderr().is_terminal());
    let (mut good, mut over, mut bad) = (0, 0, 0);
    while let Some((job, outcome)) = outcomes.next().await {
        match outcome {
            Ok(Outcome::Done) => {
                good += 1;
                if jobs.len() <= LISTED {
                    println!("Job {job} {done}");
                }
            }
            Ok(Outcome::Over(state)) => {
                over += 1;
                if jobs.len() <= LISTED {
                    println!("Job {job} had ended already ({state})");
                }
            }
            Err(error) => {
                bad += 1;
                eprintln!("berth: {}", about(job, &error));
            }
        }
        if is_watched && jobs.len() > LISTED && begun.elapsed() > Duration::from_secs(1) {
            eprint!("\r{} of {} jobs", good + over + bad, jobs.len());
            let _ = std::io::stderr().flush();
        }
    }
    if is_watched && jobs.len() > LISTED && begun.elapsed() > Duration::from_secs(1) {
        eprintln!();
    }
    if jobs.len() > LISTED {
        println!("{} {done}, {over} had ended already, {bad} failed", counted(good, "job"));
    }
    Ok(if bad > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn one(client: &Client, args: &CancelArgs, job: &str) -> anyhow::Result<Outcome> {
    let job = match job_set(job)? {
        Some((array, indices)) => format!("{array}_%5B{indices}%5D"),
        None => segment(job)?.to_owned(),
    };
    let (verb, body) = match &args.signal {
        Some(signal) => ("signal", json!({ "signal": signal, "full": args.full })),
        None => ("cancel", args.grace.map_or_else(|| json!({}), |grace| json!({ "grace_seconds": grace }))),
    };
    // Both may be repeated: what has ended stays as it is.
    let key = args.signal.is_none().then(|| uuid::Uuid::new_v4().to_string());
    let answer = client.post(&format!("/v1/jobs/{job}:{verb}"), &body, key.as_deref()).await?;
    let has_ended = args.signal.is_none() && is_over(&answer) && answer["state"] != "cancelled";
    Ok(if has_ended { Outcome::Over(text(&answer, "state")) } else { Outcome::Done })
}

/// `123_[5-6,9]` names three tasks.
fn unfold(job: &str) -> anyhow::Result<Vec<String>> {
    Ok(match job_set(job)? {
        Some((array, indices)) => indices.iter().map(|index| format!("{array}_{index}")).collect(),
        None => vec![job.to_owned()],
    })
}

/// An array and several of its tasks; `None`: it names one job.
fn job_set(job: &str) -> anyhow::Result<Option<(JobId, Indices)>> {
    match job.contains("_[").then(|| job.parse::<JobSet>()).transpose() {
        Ok(Some(JobSet::Tasks { array, indices })) => Ok(Some((array, indices))),
        Ok(_) => Ok(None),
        Err(fault) => bail!("{}; {}", fault.detail, fault.help),
    }
}

/// Jobs that wait or run and match all filters, and are among `named` if any are.
async fn matching(client: &Client, args: &CancelArgs, named: &[String]) -> anyhow::Result<Vec<String>> {
    let mut query: Vec<(&str, String)> = vec![("page_size", "1000".to_owned())];
    let states: Vec<String> = match args.states.as_slice() {
        [] => open_states().map(|s| s.to_string()).collect(),
        given => given.iter().map(|s| s.to_ascii_lowercase()).collect(),
    };
    query.extend(states.into_iter().map(|s| ("state", s)));
    let mut users = args.user.clone();
    if args.me {
        users = vec![text(&client.get("/v1/whoami", &[]).await?, "user")];
    }
    for (field, values) in [("user", &users), ("name", &args.name), ("partition", &args.partition), ("account", &args.account)] {
        query.extend(values.iter().map(|value| (field, value.clone())));
    }
    let jobs = client.list("/v1/jobs", &query, MOST).await?;
    let is_named = |job: &Value| {
        let names = [text(job, "name_ref"), text(job, "job_id"), text(job, "array_job_id")];
        named.is_empty() || names.iter().any(|name| named.contains(name))
    };
    Ok(jobs.iter().filter(|job| is_named(job)).map(|job| text(job, "job_id")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_tasks_unfold() {
        assert_eq!(unfold("12").unwrap(), ["12"]);
        assert_eq!(unfold("12_[5-6,9]").unwrap(), ["12_5", "12_6", "12_9"]);
        assert!(unfold("12_[5-").unwrap_err().to_string().contains("closing bracket"));
        assert!(unfold("12_[x]").is_err());
    }
}
