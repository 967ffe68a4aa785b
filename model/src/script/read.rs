//! Pairs of option and value from the words of a directive, as getopt_long reads them.

use super::options::{self, OptionInfo, ValueKind};
use crate::Fault;

/// An option with its value, or what is wrong with the word.
pub(super) type Given = Result<(&'static OptionInfo, Option<String>), Fault>;

/// Reads `--name=value`, `--name value`, `-x value`, `-xvalue`, `-x=value` and clusters of flags.
pub(super) fn options_of(words: &[String]) -> Vec<Given> {
    let mut given = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if matches!(word.as_str(), "hetjob" | "packjob") {
            given.push(Err(Fault::new(
                "component_separator",
                word.as_str(),
                format!("{word} stands among options"),
                "it parts two components and has a line of its own: #SBATCH hetjob",
            )));
        } else if word == "--" {
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
            match options::find_option(&format!("--{name}")).filter(|o| o.long == name) {
                Some(option) => given.push(with_value(option, value, &mut rest)),
                None => given.push(Err(unknown(word))),
            }
        } else if let Some(shorts) = word.strip_prefix('-').filter(|s| !s.is_empty()) {
            read_shorts(shorts, word, &mut rest, &mut given);
        } else {
            given.push(Err(unknown(word)));
        }
    }
    given
}

fn read_shorts<'a>(shorts: &str, word: &str, rest: &mut impl Iterator<Item = &'a String>, given: &mut Vec<Given>) {
    for (at, short) in shorts.char_indices() {
        let Some(option) = options::all_options().iter().find(|o| o.short == Some(short)) else {
            given.push(Err(unknown(word)));
            return;
        };
        let attached = &shorts[at + short.len_utf8()..];
        let attached = attached.strip_prefix('=').unwrap_or(attached);
        if option.value == ValueKind::Required {
            let value = (!attached.is_empty()).then(|| attached.to_owned());
            given.push(with_value(option, value, rest));
            return;
        }
        given.push(Ok((option, None)));
    }
}

fn with_value<'a>(option: &'static OptionInfo, value: Option<String>, rest: &mut impl Iterator<Item = &'a String>) -> Given {
    let value = match (option.value, value) {
        (ValueKind::Required, None) => rest.next().cloned(),
        (_, value) => value,
    };
    checked(option, value)
}

/// Whether the option may have, or lack, this value.
pub(super) fn checked(option: &'static OptionInfo, value: Option<String>) -> Given {
    let field = format!("--{}", option.long);
    match (option.value, &value) {
        (ValueKind::Required, None) => {
            Err(Fault::new("missing_value", &field, "the value is missing", format!("write {}", example(option.long))))
        }
        (ValueKind::Required, Some(text)) if text.starts_with("--") => Err(Fault::new(
            "missing_value",
            &field,
            format!("the value is missing: \"{text:.60}\" is another option"),
            format!("write {}", example(option.long)),
        )),
        (ValueKind::None, Some(text)) => Err(Fault::new(
            "unexpected_value",
            &field,
            format!("\"{text:.60}\" is given, but {field} takes no value"),
            format!("write {field} alone"),
        )),
        _ => Ok((option, value)),
    }
}

pub(super) fn unknown(word: &str) -> Fault {
    let name = word.split('=').next().unwrap_or(word);
    let shown: String = name.chars().take(60).collect();
    let help = match name.strip_prefix("--").and_then(options::nearest) {
        Some(meant) => format!("did you mean --{meant}? For example {}", example(meant)),
        None if name.starts_with('-') => "see the list of directives in the documentation; for example --time=1:00:00".to_owned(),
        None => {
            "a directive is an option that begins with - or --; quote values with spaces, for example --comment=\"two words\"".to_owned()
        }
    };
    // An empty word (`""`, `=5`, a backslash at the line's end) has no name to be the field.
    let field = if shown.is_empty() { "#SBATCH".to_owned() } else { shown.clone() };
    Fault::new("unknown_directive", field, format!("\"{shown}\" is not an option of sbatch"), help)
}

/// A right use of the option.
pub(super) fn example(long: &str) -> String {
    let value = match long {
        "job-name" => "llama-finetune",
        "partition" => "h100",
        "account" => "nlp",
        "qos" => "normal",
        "nodes" | "ntasks" => "4",
        "ntasks-per-node" | "cpus-per-task" | "cpus-per-gpu" => "8",
        "mem" | "mem-per-cpu" | "mem-per-gpu" => "64G",
        "gpus" | "gpus-per-node" => "h100:8",
        "gpus-per-task" => "1",
        "exclusive" => "user",
        "sockets-per-node" => "2",
        "cores-per-socket" => "32",
        "threads-per-core" | "ntasks-per-core" => "1",
        "extra-node-info" => "2:32",
        "hint" => "nomultithread",
        "gres" => "gpu:h100:8",
        "time" | "time-min" => "1:30:00",
        "begin" => "2026-01-31T08:00",
        "deadline" => "now+2days",
        "output" | "error" | "input" => "logs/%x-%j.out",
        "open-mode" => "append",
        "array" => "0-15%4",
        "dependency" => "afterok:1201",
        "constraint" | "prefer" => "h100&ib",
        "exclude" | "nodelist" => "n[1-4]",
        "requeue" => "expedite",
        "signal" => "B:USR1@120",
        "comment" => "\"second try\"",
        "export" => "ALL,NCCL_DEBUG=INFO",
        "chdir" => "/home/ada/run1",
        "nice" => "100",
        "wckey" => "chip-design",
        "licenses" => "matlab:2",
        "reservation" => "friday",
        "container" | "container-image" => "registry.example/torch:2.9",
        "container-mounts" => "/data:/data:ro",
        _ => {
            let has_value = options::find_option(long).is_some_and(|o| o.value == ValueKind::Required);
            return if has_value { format!("--{long}=value") } else { format!("--{long}") };
        }
    };
    format!("--{long}={value}")
}
