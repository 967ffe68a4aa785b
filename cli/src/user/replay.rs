//! `berth replay`: a past plan made again from the record of decisions, and compared with what was decided.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, bail};
use berth_model::verdict::JobVerdict;
use berth_model::{JobId, hostlist};
use berth_scheduler::record::replay::{Replayed, Target, replay};
use futures::TryStreamExt;
use serde_json::Value;

use super::args::{Format, ReplayArgs};
use super::client::Client;
use super::{counted, print_data, segment, text};

/// Jobs of a plan that are printed.
const SHOWN: usize = 20;

pub async fn show(client: &Client, format: Format, args: &ReplayArgs) -> anyhow::Result<()> {
    let (target, query) = match (&args.job, args.at) {
        (Some(job), _) => {
            let job = client.get(&format!("/v1/jobs/{}", segment(job)?), &[]).await?;
            let id = job["job_id"].as_u64().context("the service's answer has no job_id")?;
            // The engine knows a task by its array.
            let target = match (job["array_job_id"].as_u64(), job["array_index"].as_u64()) {
                (Some(array), Some(index)) => Target::Start { job: JobId(array), array_index: Some(index as u32) },
                _ => Target::Start { job: JobId(id), array_index: None },
            };
            (target, vec![("job", id.to_string())])
        }
        (None, at) => {
            let at = at.unwrap_or_else(jiff::Timestamp::now);
            (Target::At(at), vec![("at", at.to_string())])
        }
    };
    let found = match &args.record {
        Some(path) => {
            let file = std::fs::File::open(path).with_context(|| format!("the record {}", path.display()))?;
            tokio::task::spawn_blocking(move || read(file, target)).await??
        }
        None => {
            let response = client.text("/v1/decisions/record", &query).await?;
            let bytes = response.bytes_stream().map_err(std::io::Error::other);
            let reader = tokio_util::io::SyncIoBridge::new(tokio_util::io::StreamReader::new(bytes));
            tokio::task::spawn_blocking(move || read(reader, target)).await??
        }
    };
    if !print_data(format, &found)? {
        print(&found, args.job.as_deref());
    }
    if let Some(differs) = &found.differs_at {
        bail!(
            "plan {} of {} came out otherwise than it was recorded by version {}; this is version {}",
            differs.number,
            differs.at,
            found.version,
            env!("CARGO_PKG_VERSION")
        );
    }
    Ok(())
}

fn read(record: impl Read, target: Target) -> anyhow::Result<Replayed> {
    let lines: Box<dyn BufRead> = Box::new(BufReader::new(zstd::stream::read::Decoder::new(record)?));
    Ok(replay(lines, target)?)
}

fn print(found: &Replayed, job: Option<&str>) {
    let same = if found.differs_at.is_none() { "each the same as recorded, to the byte" } else { "not all as recorded" };
    println!(
        "From the checkpoint of {} (term {}): {}, {}, {same}.",
        found.checkpoint,
        found.epoch,
        counted(found.events, "event"),
        counted(found.plans, "plan")
    );
    let kind = if found.plan.is_full { "full" } else { "quick" };
    println!("\nPlan {} of {}, {kind}, sha256 {}", found.record.number, found.record.at, &found.record.sha256[..16]);
    for start in found.plan.starts.iter().take(SHOWN) {
        let name = start.array_index.map_or_else(|| start.job.to_string(), |index| format!("{}_{index}", start.job));
        println!("  starts job {name} on {}", hostlist::fold(start.nodes.iter().map(|n| &n.node)));
    }
    more(found.plan.starts.len(), "start");
    if let Some(job) = job {
        if let Some(before) = &found.before {
            println!("\nBefore it, job {job} had place {} in the queue:", before.priority.rank);
            waits(before);
        }
        if !found.passed.is_empty() {
            println!("\nAhead of it in the queue, and left waiting:");
            found.passed.iter().for_each(waits);
        }
        return;
    }
    for verdict in found.plan.verdicts.iter().take(SHOWN) {
        waits(verdict);
    }
    more(found.plan.verdicts.len(), "waiting job");
}

fn waits(verdict: &JobVerdict) {
    let reasons: Vec<String> = verdict.verdicts.iter().map(|v| format!("{} ({})", v.code, v.object)).collect();
    let planned = verdict.planned_start.as_ref().map(|p| format!("; planned for {} on {}", p.at, p.nodes)).unwrap_or_default();
    println!("  job {} waits: {}{planned}", verdict.job, reasons.join(", "));
}

fn more(count: usize, what: &str) {
    if count > SHOWN {
        println!("  … and {}", counted((count - SHOWN) as u64, what));
    }
}

/// What `explain` adds for a job that has started.
pub fn print_start(start: &Value) {
    let decision = &start["decision"];
    if decision.is_object() {
        let at = super::show::in_local_time(&text(decision, "at"));
        println!("\n  decided by plan {} of term {} at {at}", decision["plan"], decision["epoch"]);
    }
    if let Some(rank) = start["priority"]["rank"].as_u64() {
        println!("  place {rank} in the queue when it was last looked at, priority {}", start["priority"]["total"]);
    }
    for passed in start["passed"].as_array().into_iter().flatten() {
        let whose = if passed["own"] == true { "" } else { " (another tenant's)" };
        println!("  went before job {}{whose}", passed["job"]);
    }
}
