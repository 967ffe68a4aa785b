//! Names of output files: `%A_%a`, `%4j` and the like.

/// What patterns stand for in one task (or batch script). Source: sbatch manual, "filename pattern".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternFields {
    /// `%j`: the job's number; of an array task, the task's own.
    pub job_id: u64,
    /// `%A`: the array's number, or the job's.
    pub array_job_id: u64,
    /// `%a`: index in the array.
    pub array_index: Option<u32>,
    /// `%s`: the step, `batch` or a number.
    pub step: String,
    /// `%x`.
    pub job_name: String,
    /// `%u`.
    pub user: String,
    /// `%N`: short host name.
    pub node: String,
    /// `%n`: the node's place in the job.
    pub node_index: u32,
    /// `%t`: rank of the task.
    pub task: u32,
}

/// Longest padding: Slurm takes one or two digits and caps them at 10.
const MAX_WIDTH: usize = 10;

/// The value of `%a` outside arrays: Slurm's NO_VAL.
const NO_ARRAY_INDEX: u64 = 4_294_967_294;

/// Fills in the patterns; `%%` is a percent sign, an unknown one stays as it is. A backslash anywhere switches patterns off.
pub fn expand_pattern(pattern: &str, fields: &PatternFields) -> String {
    if pattern.contains('\\') {
        return pattern.replace('\\', "");
    }
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Some(letter) = after[digits..].chars().next() else {
            text.push_str(&rest[at..]);
            return text;
        };
        let end = at + 1 + digits + letter.len_utf8();
        match value(letter, fields) {
            Some(Value::Number(n)) => {
                let width = after[..digits].parse().unwrap_or(if digits > 0 { MAX_WIDTH } else { 0 }).min(MAX_WIDTH);
                text.push_str(&format!("{n:0width$}"));
            }
            Some(Value::Text(value)) => text.push_str(&value),
            None => text.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
    }
    text + rest
}

enum Value {
    Number(u64),
    Text(String),
}

fn value(letter: char, fields: &PatternFields) -> Option<Value> {
    let array_index = fields.array_index.map(u64::from);
    Some(match letter {
        '%' => Value::Text("%".to_owned()),
        'A' => Value::Number(fields.array_job_id),
        'a' => Value::Number(array_index.unwrap_or(NO_ARRAY_INDEX)),
        'b' => Value::Number(array_index.unwrap_or(0) % 10),
        'j' => Value::Number(fields.job_id),
        // The step is left out in the batch script.
        'J' if fields.step.parse::<u32>().is_ok() => Value::Text(format!("{}.{}", fields.job_id, fields.step)),
        'J' => Value::Number(fields.job_id),
        'N' => Value::Text(fields.node.split('.').next().unwrap_or("").to_owned()),
        'n' => Value::Number(u64::from(fields.node_index)),
        's' => match fields.step.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::Text(fields.step.clone()),
        },
        't' => Value::Number(u64::from(fields.task)),
        'u' => Value::Text(fields.user.clone()),
        'x' => Value::Text(fields.job_name.clone()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(pattern: &str) -> String {
        let fields = PatternFields {
            job_id: 42,
            array_job_id: 36,
            array_index: Some(17),
            step: "3".into(),
            job_name: "train".into(),
            user: "ada".into(),
            node: "n1.cluster".into(),
            node_index: 2,
            task: 5,
        };
        expand_pattern(pattern, &fields)
    }

    #[test]
    fn patterns_have_their_documented_values() {
        for (pattern, expected) in [
            ("slurm-%A_%a.out", "slurm-36_17.out"),
            ("%x-%j.%N.%u", "train-42.n1.ada"),
            ("%4j_%3t_%02n_%b", "0042_005_02_7"),
            ("job%J.out", "job42.3.out"),
            ("%s", "3"),
            ("100%%", "100%"),
            ("%z %", "%z %"),
            ("%999j", "0000000042"),
            ("%99999999999999999999j", "0000000042"),
            ("%5x", "train"),
            ("\\%j", "%j"),
            ("é%jé", "é42é"),
            ("%é", "%é"),
            ("", ""),
        ] {
            assert_eq!(expand(pattern), expected, "{pattern}");
        }
        let plain = PatternFields { job_id: 7, array_job_id: 7, step: "batch".into(), ..PatternFields::default() };
        assert_eq!(expand_pattern("%A_%a %J %s", &plain), "7_4294967294 7 batch");
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_makes_it_panic(pattern in "[%0-9a-zA-Z\\\\é]{0,30}") {
            expand(&pattern);
        }
    }
}
