//! Batch scripts: `#SBATCH` directives read into a [`JobSpec`](crate::job::JobSpec).
//!
//! `words` splits the script's directives into words, `options` knows every option of sbatch, `read` pairs options with values,
//! `apply` puts each into the spec with the help of `values`, `mounts` and `when`, and `finish` settles what several options say
//! together. `pattern` expands the names of output files. Source of all rules: sbatch manual.

mod apply;
mod components;
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

use self::words::Line;
use crate::Fault;
use crate::component::MAX_COMPONENTS;
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
///
/// Components of a heterogeneous job are parted by a line `#SBATCH hetjob`, and in `overrides` by the option `hetjob`: those of the
/// command line win over the script's in their order.
pub fn parse_script_at(text: &str, overrides: &[(String, Option<String>)], place: Place) -> Result<ParsedScript, Vec<Fault>> {
    if text.len() > MAX_SCRIPT_BYTES {
        return Err(vec![Fault::new(
            "script_too_large",
            "script",
            format!("the script has {} bytes", text.len()),
            format!("a script has at most {MAX_SCRIPT_BYTES} bytes; keep data in files and have the script read them"),
        )]);
    }
    let mut warnings = Vec::new();
    let text = words::with_unix_line_ends(text, &mut warnings);
    let lines = words::directives(&text, &mut warnings);
    let of_script: Vec<&[Line]> = lines.split(Line::parts_components).collect();
    let of_line: Vec<&[(String, Option<String>)]> = overrides.split(|(name, _)| is_separator(name)).collect();
    let count = of_script.len().max(of_line.len());
    if count > MAX_COMPONENTS {
        let help = format!("a job has at most {MAX_COMPONENTS}");
        return Err(vec![Fault::new("too_many_components", "hetjob", format!("the job has {count} components"), help)]);
    }
    let read = |i: usize| {
        let mut draft = apply::Draft::new(place.clone());
        of_script.get(i).into_iter().copied().flatten().for_each(|line| draft.apply_line(line));
        draft.begin_overrides();
        of_line.get(i).into_iter().copied().flatten().for_each(|(name, value)| draft.apply_override(name, value.as_deref()));
        if i == 0 {
            draft.spec.script = Some(text.clone());
        }
        finish::settle(&mut draft);
        draft
    };
    let mut draft = read(0);
    draft.warnings.splice(0..0, warnings);
    let mut others: Vec<apply::Draft> = (1..count).map(read).collect();
    draft.spec.components = others.iter_mut().map(components::component).collect();
    let invalid: Vec<Fault> = validate(&draft.spec).into_iter().map(|fault| components::at_origin(fault, &draft, &others)).collect();
    draft.faults.extend(invalid);
    for other in others {
        draft.faults.extend(other.faults);
        draft.warnings.extend(other.warnings);
    }
    if draft.faults.is_empty() {
        return Ok(ParsedScript { spec: draft.spec, export: draft.export, warnings: draft.warnings });
    }
    // Faults of the command line have no line and come first.
    draft.faults.sort_by_key(|fault| fault.line);
    draft.faults.truncate(MAX_FAULTS);
    Err(draft.faults)
}

/// Slurm's word between components, and the one that it had before.
pub(crate) fn is_separator(word: &str) -> bool {
    matches!(word, "hetjob" | "packjob")
}

#[cfg(test)]
mod tests;
