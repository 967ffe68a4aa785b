//! Checks of a job spec that need nothing but the spec.
//!
//! Each fault has a stable code, the JSON path, what was found and what would be right. Limits that depend on who asks or on the
//! cluster (partitions, quotas, roles) are checked elsewhere.

use std::collections::BTreeSet;

use crate::amount::{MAX_SECONDS, format_time_limit};
use crate::array::ArraySpec;
use crate::dependency::Condition;
use crate::job::{JobKind, JobSpec, signal_number};
use crate::{Fault, hostlist};

mod components;
mod constraint;
mod place;
mod resources;
mod text;

pub use constraint::{Choice, NodeCount, parse_choices, parse_constraint, preferred};

pub const MAX_SCRIPT_BYTES: usize = 4 << 20;
pub const MAX_ENVIRONMENT_BYTES: usize = 1 << 20;
/// Linux takes no longer string: name, `=`, value and the NUL at its end.
pub const MAX_VARIABLE_BYTES: usize = 128 << 10;
pub const MAX_ARGUMENT_BYTES: usize = 128 << 10;
pub const MAX_COMMENT_BYTES: usize = 4 << 10;
pub const MAX_NAME_CHARS: usize = 200;
pub const MAX_LABELS: usize = 64;
pub const MAX_NICE: i32 = 10_000_000;
pub const MAX_RESTARTS: u32 = 1000;
pub const MAX_DEPENDENCIES: usize = 1000;
pub const MAX_SIGNAL_LEAD_SECONDS: u64 = 65_535;

/// All that is wrong with `spec` by itself, in field order; empty means well-formed.
pub fn validate(spec: &JobSpec) -> Vec<Fault> {
    let mut faults = Faults::default();
    text::check_name(spec, &mut faults);
    check_program(spec, &mut faults);
    place::check_container(spec, &mut faults);
    check_request(spec, &mut faults);
    text::check_environment(spec, &mut faults);
    text::check_labels(spec, &mut faults);
    place::check_files(spec, &mut faults);
    components::check_components(spec, &mut faults);
    faults.0
}

/// What components say each for itself.
fn check_request(spec: &JobSpec, faults: &mut Faults) {
    resources::check_resources(spec, faults);
    check_times(spec, faults);
    check_nodes(spec, faults);
    check_array_and_dependencies(spec, faults);
    check_run(spec, faults);
    text::check_notes(spec, faults);
}

/// What was found so far.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, code: &str, field: impl Into<String>, detail: impl Into<String>, help: impl Into<String>) {
        self.0.push(Fault::new(code, field, detail, help));
    }

    /// Keeps the value, or the fault under this field.
    fn take<T>(&mut self, field: &str, parsed: Result<T, Fault>) -> Option<T> {
        parsed.map_err(|fault| self.0.push(Fault { field: field.to_owned(), ..fault })).ok()
    }
}

/// A user's text for a message: quoted, control characters escaped, cut when long.
fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

fn check_program(spec: &JobSpec, faults: &mut Faults) {
    match (&spec.script, &spec.command) {
        (None, None) if spec.kind == JobKind::Batch => faults.add(
            "script_or_command_required",
            "script",
            "the job has neither a script nor a command",
            "give one of them; for example \"command\": [\"python\", \"train.py\"] or \"script\": \"#!/bin/bash\\npython train.py\\n\"",
        ),
        (Some(_), Some(_)) => faults.add(
            "script_and_command",
            "command",
            "the job has both a script and a command",
            "keep one: a script runs once on the first node, a command once for each task",
        ),
        _ => {}
    }
    if let Some(script) = &spec.script {
        check_script(script, faults);
    }
    check_arguments("script_args", &spec.script_args, faults);
    if !spec.script_args.is_empty() && spec.script.is_none() {
        faults.add(
            "script_args_without_script",
            "script_args",
            "there are script_args but no script",
            "put arguments of a command into command itself; for example [\"python\", \"train.py\", \"--lr=0.1\"]",
        );
    }
    if let Some(command) = &spec.command {
        if command.first().is_none_or(String::is_empty) {
            faults.add(
                "empty_command",
                "command",
                "the command names no program",
                "write the program and its arguments; for example [\"python\", \"train.py\"]",
            );
        }
        check_arguments("command", command, faults);
    }
}

fn check_script(script: &str, faults: &mut Faults) {
    let first = script.lines().next().unwrap_or("");
    if script.len() > MAX_SCRIPT_BYTES {
        faults.add(
            "script_too_large",
            "script",
            format!("the script has {} bytes", script.len()),
            format!("a script has at most {MAX_SCRIPT_BYTES} bytes; keep data in files and have the script read them"),
        );
    }
    if !script.starts_with("#!") {
        faults.add(
            "script_without_interpreter",
            "script",
            format!("the script begins with {}", quoted(first)),
            "the first line names the interpreter; for example #!/bin/bash",
        );
    } else if first[2..].trim().is_empty() {
        faults.add(
            "script_without_interpreter",
            "script",
            "nothing follows #! in the first line",
            "name the interpreter; for example #!/bin/bash",
        );
    } else if script.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r')) {
        faults.add("script_line_ends", "script", "the script has Windows line ends", "end lines with \\n alone; dos2unix converts a file");
    }
    if script.contains('\0') {
        faults.add(
            "script_with_nul",
            "script",
            "the script holds a NUL character",
            "submit text, not a binary; a job of one program is a command: for example [\"./a.out\"]",
        );
    }
}

fn check_arguments(field: &str, arguments: &[String], faults: &mut Faults) {
    let bytes: usize = arguments.iter().map(|a| a.len() + 1).sum();
    if bytes > MAX_ARGUMENT_BYTES {
        faults.add(
            "arguments_too_large",
            field,
            format!("the arguments have {bytes} bytes"),
            format!("arguments have at most {MAX_ARGUMENT_BYTES} bytes together; pass long lists in a file"),
        );
    }
    if let Some(i) = arguments.iter().position(|a| a.contains('\0')) {
        faults.add(
            "argument_with_nul",
            format!("{field}[{i}]"),
            "the argument holds a NUL character",
            "write arguments as plain text; for example \"--lr=0.1\"",
        );
    }
}

fn check_times(spec: &JobSpec, faults: &mut Faults) {
    for (field, value) in [("time_limit_seconds", spec.time_limit_seconds), ("time_min_seconds", spec.time_min_seconds)] {
        match value {
            Some(0) => faults.add(
                "invalid_time",
                field,
                "the time is 0",
                "write at least one second, or leave it out for the partition's default; for example 3600 for an hour",
            ),
            Some(seconds) if seconds > MAX_SECONDS => faults.add(
                "invalid_time",
                field,
                format!("{seconds} seconds are more than ten years"),
                format!("write at most {MAX_SECONDS}; for example 86400 for a day"),
            ),
            _ => {}
        }
    }
    if let (Some(least), Some(limit)) = (spec.time_min_seconds, spec.time_limit_seconds)
        && least > limit
    {
        faults.add(
            "time_min_above_limit",
            "time_min_seconds",
            format!("the least time {} is above the limit {}", format_time_limit(least), format_time_limit(limit)),
            "make time_min_seconds at most time_limit_seconds; for example 1800 and 3600",
        );
    }
    let Some(deadline) = spec.deadline else { return };
    let Some(begin) = spec.begin else { return };
    let least = spec.time_min_seconds.or(spec.time_limit_seconds).unwrap_or(1).min(MAX_SECONDS);
    if deadline.as_second().saturating_sub(begin.as_second()) < least as i64 {
        faults.add(
            "deadline_too_early",
            "deadline",
            format!("a job of {} that begins at {begin} cannot end by {deadline}", format_time_limit(least)),
            "set the deadline to begin plus the time limit or later, or lower the time limit",
        );
    }
}

/// Nodes that are counted by their features are among the job's.
fn check_counts(spec: &JobSpec, choices: &[Choice], faults: &mut Faults) {
    let Some(most) = spec.resources.max_nodes.or(spec.resources.nodes) else { return };
    if let Some(over) = choices.iter().map(Choice::counted).find(|counted| *counted > most) {
        faults.add(
            "invalid_constraint",
            "constraint",
            format!("the expression counts {over} nodes, and the job has {most} at most"),
            "lower the counts, or ask for more nodes",
        );
    }
}

fn check_nodes(spec: &JobSpec, faults: &mut Faults) {
    match preferred(spec.prefer.as_deref(), spec.constraint.as_deref()) {
        Err(fault) => faults.0.push(fault),
        Ok(choices) => check_counts(spec, &choices, faults),
    }
    let mut listed = |field: &str, text: &Option<String>| {
        let names = faults.take(field, hostlist::expand(text.as_ref()?))?;
        Some(names.into_iter().collect::<BTreeSet<_>>())
    };
    let (wanted, avoided) = (listed("nodelist", &spec.nodelist), listed("exclude", &spec.exclude));
    if let (Some(wanted), Some(avoided)) = (&wanted, &avoided) {
        let both: Vec<_> = wanted.intersection(avoided).take(20).collect();
        if !both.is_empty() {
            faults.add(
                "nodelist_excluded",
                "exclude",
                format!("{} is both wanted and excluded", hostlist::fold(both)),
                "name a node in nodelist or in exclude, not in both",
            );
        }
    }
    let most = spec.resources.max_nodes.or(spec.resources.nodes);
    if let (Some(wanted), Some(most)) = (&wanted, most)
        && wanted.len() > most as usize
    {
        faults.add(
            "nodelist_too_long",
            "nodelist",
            format!("nodelist names {} nodes and the job asks for {most}", wanted.len()),
            "all nodes of the list are used: ask for as many nodes, or leave resources.nodes out",
        );
    }
}

fn check_array_and_dependencies(spec: &JobSpec, faults: &mut Faults) {
    if let Some(text) = &spec.array {
        faults.take("array", text.parse::<ArraySpec>());
    }
    let mut jobs = 0;
    for (i, text) in spec.dependencies.iter().enumerate().take(MAX_DEPENDENCIES + 1) {
        let field = format!("dependencies[{i}]");
        match faults.take(&field, text.parse::<Condition>()) {
            Some(Condition::On(on)) => jobs += on.len(),
            Some(Condition::Singleton) | None => jobs += 1,
        }
    }
    if jobs > MAX_DEPENDENCIES {
        faults.add(
            "too_many_dependencies",
            "dependencies",
            format!("the job depends on {jobs} jobs or more"),
            format!("a job depends on at most {MAX_DEPENDENCIES} jobs; depend on an array, or chain through a job of its own"),
        );
    }
}

fn check_run(spec: &JobSpec, faults: &mut Faults) {
    if spec.requeue.max_restarts > MAX_RESTARTS {
        faults.add(
            "invalid_max_restarts",
            "requeue.max_restarts",
            format!("{} restarts", spec.requeue.max_restarts),
            format!("write 0 to {MAX_RESTARTS}; for example 5"),
        );
    }
    if let Some(signal) = &spec.signal {
        if signal_number(&signal.signal).is_none() {
            faults.add(
                "invalid_signal",
                "signal.signal",
                format!("{} is not a signal", quoted(&signal.signal)),
                "write a name or a number from 1 to 64; for example USR1 or 10",
            );
        }
        if signal.seconds_before > MAX_SIGNAL_LEAD_SECONDS {
            faults.add(
                "invalid_signal",
                "signal.seconds_before",
                format!("{} seconds before the time limit", signal.seconds_before),
                format!("write 0 to {MAX_SIGNAL_LEAD_SECONDS}; for example 60"),
            );
        }
    }
    if spec.nice.unsigned_abs() > MAX_NICE.unsigned_abs() {
        faults.add(
            "invalid_nice",
            "nice",
            format!("nice is {}", spec.nice),
            format!("write -{MAX_NICE} to {MAX_NICE}; for example 100 to let others go first"),
        );
    }
}

#[cfg(test)]
mod tests;
