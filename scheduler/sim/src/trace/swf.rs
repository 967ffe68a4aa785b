//! The Standard Workload Format of the Parallel Workloads Archive: `;` begins a comment, else 18 numbers a line, −1 for unknown.
//! <https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>
//!
//! A job's nodes are its processors (requested, else allocated), one CPU each. A missing requested time is the run time. Records
//! without processors or run time were never run, and records with status 2, 3 or 4 are parts of a job whose whole is a record of
//! its own: both are skipped.

use super::{BadLine, Trace, TraceJob, check_seconds};

const FIELDS: usize = 18;

pub fn parse(text: &str) -> Result<Trace, BadLine> {
    let mut jobs = Vec::new();
    let mut skipped = 0;
    for (line, number) in text.lines().zip(1..) {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match record(line).map_err(|detail| BadLine { line: number, detail })? {
            Some(job) => jobs.push(job),
            None => skipped += 1,
        }
    }
    Ok(Trace::of(jobs, skipped))
}

fn record(line: &str) -> Result<Option<TraceJob>, String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if fields.len() != FIELDS {
        return Err(format!("{} fields, but a record has {FIELDS}", fields.len()));
    }
    let number = |at: usize| {
        let text = fields[at];
        text.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(|| format!("field {}: {text:?} is not a number", at + 1))
    };
    let numbers = (0..FIELDS).map(number).collect::<Result<Vec<f64>, String>>()?;
    let known = |at: usize| Some(numbers[at]).filter(|n| *n > 0.0).map(|n| n as u64);
    let (processors, runtime) = (known(7).or(known(4)), known(3));
    let is_part = matches!(numbers[10] as i64, 2..=4);
    let (Some(processors), Some(runtime)) = (processors, runtime) else { return Ok(None) };
    if is_part {
        return Ok(None);
    }
    let id = |prefix: &str, at: usize| format!("{prefix}{}", numbers[at].max(0.0) as u64);
    Ok(Some(TraceJob {
        submit: check_seconds("submit time", numbers[1].max(0.0) as u64)?,
        user: id("u", 11),
        account: id("g", 12),
        nodes: u32::try_from(processors).map_err(|_| format!("{processors} processors are too many"))?,
        cpus: 1,
        gpus: 0.0,
        gpu_types: Vec::new(),
        memory_mib: 0,
        runtime: check_seconds("run time", runtime)?,
        walltime: check_seconds("requested time", known(8).unwrap_or(runtime))?,
    }))
}
