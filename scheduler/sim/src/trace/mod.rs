//! Workload traces: jobs that were submitted once, with what they asked for and how long they ran.
//!
//! Two formats: [`csv`] and the Standard Workload Format, [`swf`]; either may be compressed with gzip. A line that cannot be read is
//! an error that names it. Lines that are well-formed but describe no job that ran are counted in [`Trace::skipped`].

mod csv;
mod swf;

use std::io::Read;
use std::path::{Path, PathBuf};

use berth_model::Seconds;

/// A job of a trace. Sizes are per node.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceJob {
    /// Seconds since the trace began.
    pub submit: Seconds,
    pub user: String,
    pub account: String,
    pub nodes: u32,
    pub cpus: u32,
    /// May be a part of one.
    pub gpus: f64,
    /// Types that will do; empty: any.
    pub gpu_types: Vec<String>,
    pub memory_mib: u64,
    pub runtime: Seconds,
    pub walltime: Seconds,
}

impl TraceJob {
    /// How long it runs: it is stopped at its walltime.
    pub fn run(&self) -> Seconds {
        self.runtime.min(self.walltime)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// In order of submission; of equal instants in the order of the file.
    pub jobs: Vec<TraceJob>,
    /// Records of jobs that never ran, or of none at all.
    pub skipped: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: line {line}: {detail}", path.display())]
    BadLine { path: PathBuf, line: usize, detail: String },
    #[error("{}: no jobs", .0.display())]
    Empty(PathBuf),
}

impl Trace {
    /// Reads a file: `.swf` or `.swf.gz` in the Standard Workload Format, anything else as CSV.
    pub fn read(path: &Path) -> Result<Trace, TraceError> {
        let unreadable = |source| TraceError::Unreadable { path: path.to_owned(), source };
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let mut text = String::new();
        let is_compressed = bytes.starts_with(&[0x1f, 0x8b]);
        let read = if is_compressed {
            flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)
        } else {
            bytes.as_slice().read_to_string(&mut text)
        };
        read.map_err(unreadable)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        let is_swf = name.trim_end_matches(".gz").ends_with(".swf");
        let parsed = if is_swf { swf::parse(&text) } else { csv::parse(&text) };
        let trace = parsed.map_err(|bad| TraceError::BadLine { path: path.to_owned(), line: bad.line, detail: bad.detail })?;
        if trace.jobs.is_empty() { Err(TraceError::Empty(path.to_owned())) } else { Ok(trace) }
    }

    /// The trace in a text of CSV.
    pub fn from_csv(text: &str) -> Result<Trace, BadLine> {
        csv::parse(text)
    }

    /// The trace in a text of the Standard Workload Format.
    pub fn from_swf(text: &str) -> Result<Trace, BadLine> {
        swf::parse(text)
    }

    /// Puts the jobs in order, the first at instant 0.
    fn of(mut jobs: Vec<TraceJob>, skipped: usize) -> Trace {
        jobs.sort_by_key(|job| job.submit);
        let begin = jobs.first().map_or(0, |job| job.submit);
        jobs.iter_mut().for_each(|job| job.submit -= begin);
        Trace { jobs, skipped }
    }
}

/// A line that cannot be read, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {detail}")]
pub struct BadLine {
    pub line: usize,
    pub detail: String,
}

/// A day-count of centuries: what is above is a mistake, and would overflow the clock.
const MOST_SECONDS: u64 = 100 * 365 * 86_400;

/// A number of seconds that a clock can hold.
fn check_seconds(column: &str, seconds: u64) -> Result<u64, String> {
    if seconds > MOST_SECONDS { Err(format!("{column}: {seconds} s is over a hundred years")) } else { Ok(seconds) }
}
