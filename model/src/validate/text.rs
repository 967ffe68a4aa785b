//! Checks of a spec's texts: name, environment, labels, comment and the like.

use super::{Faults, MAX_COMMENT_BYTES, MAX_ENVIRONMENT_BYTES, MAX_LABELS, MAX_NAME_CHARS, MAX_VARIABLE_BYTES, quoted};
use crate::job::JobSpec;
use crate::license::parse_licenses;

pub(super) fn check_name(spec: &JobSpec, faults: &mut Faults) {
    let Some(name) = &spec.name else { return };
    let flaw = match name {
        _ if name.is_empty() => "is empty",
        _ if name.chars().any(char::is_control) => "holds control characters",
        _ if name.chars().count() > MAX_NAME_CHARS => "is too long",
        _ => return,
    };
    faults.add(
        "invalid_job_name",
        "name",
        format!("the name {} {flaw}", quoted(name)),
        format!("a job's name has 1 to {MAX_NAME_CHARS} characters and no control characters; for example llama-finetune"),
    );
}

pub(super) fn check_environment(spec: &JobSpec, faults: &mut Faults) {
    let bytes: usize = spec.environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > MAX_ENVIRONMENT_BYTES {
        faults.add(
            "environment_too_large",
            "environment",
            format!("the environment has {bytes} bytes; the largest variables are {}", largest(spec)),
            format!("it may have {MAX_ENVIRONMENT_BYTES} bytes; put long values into files, or submit with --export=NONE"),
        );
        return;
    }
    for (name, value) in &spec.environment {
        // Shells export functions under names such as `BASH_FUNC_module%%`; whatever execve can carry is let through.
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() && b != b'=') {
            faults.add(
                "invalid_environment_name",
                "environment",
                format!("{} is not the name of a variable", quoted(name)),
                "write letters, digits and underscore, without = or spaces; for example NCCL_DEBUG",
            );
        } else if name.len() + value.len() + 2 > MAX_VARIABLE_BYTES {
            faults.add(
                "environment_too_large",
                format!("environment.{name:.80}"),
                format!("the variable has {} bytes", value.len()),
                format!("Linux takes {MAX_VARIABLE_BYTES} bytes in one; put long values into files"),
            );
        } else if value.contains('\0') {
            faults.add(
                "invalid_environment_value",
                format!("environment.{name:.80}"),
                "the value holds a NUL character",
                "write plain text; for example \"INFO\"",
            );
        }
    }
}

/// The three largest variables, with their sizes.
fn largest(spec: &JobSpec) -> String {
    let mut sizes: Vec<(usize, &String)> = spec.environment.iter().map(|(name, value)| (value.len(), name)).collect();
    sizes.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
    sizes.iter().take(3).map(|(size, name)| format!("{name:.60} ({size})")).collect::<Vec<_>>().join(", ")
}

pub(super) fn check_labels(spec: &JobSpec, faults: &mut Faults) {
    if spec.labels.len() > MAX_LABELS {
        faults.add(
            "too_many_labels",
            "labels",
            format!("there are {} labels", spec.labels.len()),
            format!("a job has at most {MAX_LABELS} labels"),
        );
        return;
    }
    for (key, value) in &spec.labels {
        if !is_label_key(key) {
            faults.add("invalid_label", "labels", format!("{} is not a valid key", quoted(key)), "a key has 1 to 63 letters, digits, dots, slashes, underscores or hyphens, beginning with a letter or digit; for example team or example.com/run");
        } else if value.chars().count() > 255 || value.chars().any(char::is_control) {
            faults.add(
                "invalid_label",
                format!("labels.{key}"),
                format!("the value {} is too long or holds control characters", quoted(value)),
                "a value has at most 255 characters and no control characters; for example nlp",
            );
        }
    }
}

fn is_label_key(key: &str) -> bool {
    (1..=63).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b))
        && key.as_bytes()[0].is_ascii_alphanumeric()
}

pub(super) fn check_notes(spec: &JobSpec, faults: &mut Faults) {
    if let Some(comment) = &spec.comment
        && (comment.len() > MAX_COMMENT_BYTES || comment.contains('\0'))
    {
        faults.add(
            "invalid_comment",
            "comment",
            format!("the comment has {} bytes, or a NUL character", comment.len()),
            format!("a comment is text of at most {MAX_COMMENT_BYTES} bytes"),
        );
    }
    for (field, name, example) in [("wckey", &spec.wckey, "chip-design"), ("reservation", &spec.reservation, "friday-maintenance")] {
        let Some(name) = name else { continue };
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
            faults.add(
                &format!("invalid_{field}"),
                field,
                format!("{} is not a name", quoted(name)),
                format!("write 1 to {MAX_NAME_CHARS} characters without spaces; for example {example}"),
            );
        }
    }
    if let Some(text) = &spec.licenses {
        faults.take("licenses", parse_licenses(text));
    }
}
