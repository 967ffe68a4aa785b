//! Array specs: `0-15:4,20%2`.

use std::fmt;

use crate::Fault;

/// The indices of an array, ascending and without repeats, and its throttle (`%n`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    pub indices: Vec<u32>,
    pub throttle: Option<u32>,
}

/// Most tasks of one array, and one more than the highest index.
pub const MAX_ARRAY_TASKS: u32 = 1_000_000;

const HELP: &str = "write indices, ranges with an optional step, and %n for at most n tasks at once; for example 0-15:4,20%2";

impl std::str::FromStr for ArraySpec {
    type Err = Fault;
    /// Source: sbatch manual, `--array`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let (list, throttle) = match text.split_once('%') {
            Some((list, limit)) => (list, Some(throttle(limit)?)),
            None => (text, None),
        };
        let ranges = list.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
        let total: u64 = ranges.iter().map(|(low, high, step)| u64::from((high - low) / step) + 1).sum();
        if total > u64::from(MAX_ARRAY_TASKS) {
            return Err(Fault::new(
                "array_too_large",
                "array",
                format!("the array names {total} tasks"),
                format!("an array has at most {MAX_ARRAY_TASKS} tasks; for example 0-{}", MAX_ARRAY_TASKS - 1),
            ));
        }
        let mut indices = Vec::with_capacity(total as usize);
        for (low, high, step) in ranges {
            indices.extend((low..=high).step_by(step as usize));
        }
        indices.sort_unstable();
        indices.dedup();
        Ok(ArraySpec { indices, throttle })
    }
}

fn fault(detail: String) -> Fault {
    Fault::new("invalid_array", "array", detail, HELP)
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn throttle(text: &str) -> Result<u32, Fault> {
    match number(text) {
        Some(0) => Err(fault("\"%0\" would let no task run".to_owned())),
        Some(limit) => Ok(limit),
        None => Err(fault(format!("\"%{text}\" is not a number of tasks at once"))),
    }
}

/// `low-high:step`, `low-high` or `index`, as (low, high, step).
fn range(text: &str) -> Result<(u32, u32, u32), Fault> {
    let text = text.trim();
    let not_indices =
        || fault(if text.is_empty() { "an index is missing".to_owned() } else { format!("\"{text}\" is not an index or range") });
    let (bounds, step) = match text.split_once(':') {
        Some((bounds, step)) if bounds.contains('-') => (bounds, number(step).ok_or_else(not_indices)?),
        Some(_) => return Err(fault(format!("\"{text}\" has a step but no range"))),
        None => (text, 1),
    };
    let (low, high) = bounds.split_once('-').unwrap_or((bounds, bounds));
    let (low, high) = (index(low).ok_or_else(not_indices)??, index(high).ok_or_else(not_indices)??);
    match (low <= high, step) {
        (false, _) => Err(fault(format!("the range \"{text}\" goes backwards"))),
        (_, 0) => Err(fault(format!("the step of \"{text}\" is 0"))),
        (true, step) => Ok((low, high, step)),
    }
}

/// `None` if it is no number at all; a fault if it is too high.
fn index(text: &str) -> Option<Result<u32, Fault>> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(match number(text) {
        Some(n) if n < MAX_ARRAY_TASKS => Ok(n),
        _ => Err(Fault::new(
            "array_too_large",
            "array",
            format!("the index {text:.20} is too high"),
            format!("the highest index is {}; for example 0-{0}%100", MAX_ARRAY_TASKS - 1),
        )),
    })
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fold_indices(&self.indices))?;
        match self.throttle {
            Some(limit) => write!(f, "%{limit}"),
            None => Ok(()),
        }
    }
}

/// Writes ascending indices as Slurm does, for `36_[3-9,12]`: neighbours as ranges, three or more at one distance with a step.
pub fn fold_indices(indices: &[u32]) -> String {
    let mut parts = Vec::new();
    let mut rest = indices;
    while let [first, tail @ ..] = rest {
        let step = tail.first().map_or(0, |second| second.saturating_sub(*first));
        let run = 1 + rest.windows(2).take_while(|pair| step > 0 && pair[1].checked_sub(pair[0]) == Some(step)).count();
        let taken = if step == 1 || run >= 3 { run } else { 1 };
        let last = rest[taken - 1];
        parts.push(match (taken, step) {
            (1, _) => first.to_string(),
            (_, 1) => format!("{first}-{last}"),
            (_, step) => format!("{first}-{last}:{step}"),
        });
        rest = &rest[taken..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrays_read_as_slurm_writes_them() {
        for (text, indices, throttle) in [
            ("1-7:2", vec![1, 3, 5, 7], None),
            ("0-15:4,20%2", vec![0, 4, 8, 12, 20], Some(2)),
            ("5", vec![5], None),
            ("3,1,2,2-3", vec![1, 2, 3], None),
            ("0-3:9", vec![0], None),
            ("999999", vec![999_999], None),
        ] {
            assert_eq!(text.parse::<ArraySpec>().unwrap(), ArraySpec { indices, throttle }, "{text}");
        }
    }

    #[test]
    fn bad_arrays_are_refused_before_they_are_built() {
        for (text, code, part) in [
            ("", "invalid_array", "missing"),
            ("1,", "invalid_array", "missing"),
            ("x", "invalid_array", "\"x\""),
            ("-1", "invalid_array", "\"-1\""),
            ("5-1", "invalid_array", "backwards"),
            ("1-5:0", "invalid_array", "step"),
            ("5:2", "invalid_array", "no range"),
            ("1-5:x", "invalid_array", "\"1-5:x\""),
            ("1-5%0", "invalid_array", "%0"),
            ("1-5%", "invalid_array", "\"%\""),
            ("1-5%2%3", "invalid_array", "%2%3"),
            ("1000000", "array_too_large", "1000000"),
            ("0-4294967295", "array_too_large", "4294967295"),
            ("99999999999", "array_too_large", "99999999999"),
            ("0-999999,0-999999", "array_too_large", "2000000 tasks"),
        ] {
            let fault = text.parse::<ArraySpec>().expect_err(text);
            assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, "array"), "{text}");
            assert!(fault.detail.contains(part), "{text}: {}", fault.detail);
            assert!(fault.help.contains("for example"));
        }
    }

    #[test]
    fn indices_fold_back() {
        assert_eq!(fold_indices(&[3, 4, 5, 6, 7, 8, 9, 12]), "3-9,12");
        assert_eq!(fold_indices(&[1, 3, 5, 7]), "1-7:2");
        assert_eq!(fold_indices(&[1, 3, 4]), "1,3-4");
        assert_eq!(fold_indices(&[]), "");
        assert_eq!("0-15:4,20%2".parse::<ArraySpec>().unwrap().to_string(), "0-12:4,20%2");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(indices in proptest::collection::btree_set(0u32..300, 1..80), throttle in proptest::option::of(1u32..50)) {
            let spec = ArraySpec { indices: indices.into_iter().collect(), throttle };
            prop_assert_eq!(spec.to_string().parse::<ArraySpec>().unwrap(), spec);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9,:%\\- é]{0,24}") {
            let _ = text.parse::<ArraySpec>();
        }
    }
}
