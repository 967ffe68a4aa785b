//! Batch scripts: `#SBATCH` directives read into a [`JobSpec`](crate::job::JobSpec).
//!
//! `words` splits the script's directives into words, `options` knows every option of sbatch, `read` pairs options with values,
//! `apply` puts each into the spec with the help of `values`, `mounts` and `when`, and `finish` settles what several options say
//! together. `pattern` expands the names of output files. Source of all rules: sbatch manual.

mod apply;
mod containers;
mod finish;
mod options;
pub mod pattern;
mod read;
mod values;
mod when;
mod words;

pub use options::{OptionInfo, ValueKind, all_options, find_option};
pub use pattern::{PatternFields, expand_pattern};
pub use when::instant;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::Fault;
use crate::job::JobSpec;
use crate::validate::{MAX_SCRIPT_BYTES, validate};

/// What a script and the command line ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedScript {
    pub spec: JobSpec,
    pub export: ExportMode,
    /// What was understood but not done as written. Nothing in here stops the job.
    pub warnings: Vec<Fault>,
}

/// Which variables of the submitting environment the job gets; only the client knows their values. Variables given with a
/// value are in the spec's `environment` already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExportMode {
    #[default]
    All,
    None,
    Names(Vec<String>),
}

/// More faults than this are not collected.
const MAX_FAULTS: usize = 200;

/// Reads a script's directives. `overrides` are options of the command line (`time`, `-t` or `--time`, and the value if there is
/// one); they win over directives. `now` is what `--begin=now+1hour` counts from. All faults are told, each with its line.
/// Times of day are UTC's and folders are absolute; [`parse_script_at`] knows better.
pub fn parse_script(text: &str, overrides: &[(String, Option<String>)], now: Timestamp) -> Result<ParsedScript, Vec<Fault>> {
    parse_script_at(text, overrides, Place { now: now.to_zoned(TimeZone::UTC), directory: None })
}

/// Where and when a job is submitted.
#[derive(Clone, Debug)]
pub struct Place {
    /// In the zone whose times of day are meant.
    pub now: Zoned,
    /// What a relative `--chdir` is relative to.
    pub directory: Option<String>,
}

/// [`parse_script`], for a submitter who is somewhere.
pub fn parse_script_at(text: &str, overrides: &[(String, Option<String>)], place: Place) -> Result<ParsedScript, Vec<Fault>> {
    if text.len() > MAX_SCRIPT_BYTES {
        return Err(vec![Fault::new(
            "script_too_large",
            "script",
            format!("the script has {} bytes", text.len()),
            format!("a script has at most {MAX_SCRIPT_BYTES} bytes; keep data in files and have the script read them"),
        )]);
    }
    let mut draft = apply::Draft::new(place);
    let text = words::with_unix_line_ends(text, &mut draft.warnings);
    for line in words::directives(&text, &mut draft.warnings) {
        draft.apply_line(&line);
    }
    draft.begin_overrides();
    for (name, value) in overrides {
        draft.apply_override(name, value.as_deref());
    }
    draft.spec.script = Some(text);
    finish::settle(&mut draft);
    let invalid: Vec<Fault> = validate(&draft.spec).into_iter().map(|fault| draft.at_origin(fault)).collect();
    draft.faults.extend(invalid);
    if draft.faults.is_empty() {
        return Ok(ParsedScript { spec: draft.spec, export: draft.export, warnings: draft.warnings });
    }
    // Faults of the command line have no line and come first.
    draft.faults.sort_by_key(|fault| fault.line);
    draft.faults.truncate(MAX_FAULTS);
    Err(draft.faults)
}

#[cfg(test)]
mod tests;
