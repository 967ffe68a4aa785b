//! Array specs: `0-15:4,20%2`.

use std::fmt;

use crate::Fault;
use crate::indices::{Indices, fault, number};

/// The indices of an array and its throttle (`%n`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    pub indices: Indices,
    pub throttle: Option<u32>,
}

/// Most tasks of one array, and one more than the highest index.
pub const MAX_ARRAY_TASKS: u32 = 1_000_000;

impl std::str::FromStr for ArraySpec {
    type Err = Fault;
    /// Source: sbatch manual, `--array`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let (list, throttle) = match text.split_once('%') {
            Some((list, limit)) => (list, Some(throttle(limit)?)),
            None => (text, None),
        };
        if list.is_empty() {
            return Err(fault("an index is missing".to_owned()));
        }
        Ok(ArraySpec { indices: list.parse()?, throttle })
    }
}

fn throttle(text: &str) -> Result<u32, Fault> {
    match number(text) {
        Some(0) => Err(fault("\"%0\" would let no task run".to_owned())),
        Some(limit) => Ok(limit),
        None => Err(fault(format!("\"%{text}\" is not a number of tasks at once"))),
    }
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.indices.fmt(f)?;
        match self.throttle {
            Some(limit) => write!(f, "%{limit}"),
            None => Ok(()),
        }
    }
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
            let indices = indices.into_iter().collect();
            assert_eq!(text.parse::<ArraySpec>().unwrap(), ArraySpec { indices, throttle }, "{text}");
        }
        assert_eq!("0-15:4,20%2".parse::<ArraySpec>().unwrap().to_string(), "0-12:4,20%2");
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
