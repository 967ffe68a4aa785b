//! Licences: what the whole cluster has a number of, wherever a job runs. A job holds its own while it runs.
//!
//! A job asks for all of `matlab:2,ansys`, or for any one of `matlab:2|comsol`. Source: sbatch manual, `--licenses`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tres::{Tres, TresCounts};
use crate::{Fault, Name};

/// Most licences that a job may name.
const MAX_NAMED: usize = 32;
const MAX_BYTES: usize = 4096;

const HELP: &str = "write names with optional counts: all of matlab:2,ansys or any one of matlab:2|comsol";

/// A licence, and how many of it there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct License {
    pub name: Name,
    /// All that running jobs may hold at once. Less than they hold now: what runs goes on, and nothing starts with it until enough has ended.
    pub total: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// So many of each. Never zero.
pub type LicenseCounts = BTreeMap<Name, u32>;

/// Reads `matlab:2,ansys` into one set of counts, `matlab:2|comsol` into several of which one suffices.
pub fn parse_licenses(text: &str) -> Result<Vec<LicenseCounts>, Fault> {
    let fault = |detail: String| Fault::new("invalid_licenses", "licenses", detail, HELP);
    if text.len() > MAX_BYTES {
        return Err(fault(format!("the list has {} bytes; at most {MAX_BYTES} are read", text.len())));
    }
    let is_any = text.contains('|');
    if is_any && text.contains([',', ';']) {
        return Err(fault(format!("{text:?} joins licences by both , and |: all of them, or any one of them?")));
    }
    let items: Vec<&str> = text.split([',', ';', '|']).map(str::trim).collect();
    if items.len() > MAX_NAMED {
        return Err(fault(format!("{} licences are named; at most {MAX_NAMED} are read", items.len())));
    }
    let mut ways: Vec<LicenseCounts> = Vec::new();
    for item in items {
        let (name, count) = item.split_once(':').unwrap_or((item, "1"));
        if name.contains('@') {
            return Err(fault(format!("{item:?} names a server: the cluster's licences have plain names")));
        }
        let name: Name = name.parse().map_err(|_| fault(format!("{item:?} is not a license or license:count")))?;
        let count = Some(count).filter(|count| count.bytes().all(|b| b.is_ascii_digit())).and_then(|count| count.parse::<u32>().ok());
        let count = count.filter(|n| *n > 0).ok_or_else(|| fault(format!("{item:?} is not a license or license:count")))?;
        if is_any || ways.is_empty() {
            ways.push(LicenseCounts::new());
        }
        let sum = ways.last_mut().expect("one was just made").entry(name).or_insert(0);
        *sum = sum.saturating_add(count);
    }
    let mut seen: Vec<LicenseCounts> = Vec::new();
    ways.retain(|way| {
        !seen.contains(way) && {
            seen.push(way.clone());
            true
        }
    });
    Ok(ways)
}

/// `matlab:2,ansys:1`.
pub fn words(counts: &LicenseCounts) -> String {
    counts.iter().map(|(name, count)| format!("{name}:{count}")).collect::<Vec<_>>().join(",")
}

/// The licences among what a job is charged for: those it holds.
pub fn held(tres: &TresCounts) -> LicenseCounts {
    let held = tres.iter().filter_map(|(tres, count)| match tres {
        Tres::License(name) => Some((Name::new(name.as_str()).ok()?, u32::try_from(*count).unwrap_or(u32::MAX))),
        _ => None,
    });
    held.filter(|(_, count)| *count > 0).collect()
}

/// Adds them to what a job is charged for.
pub fn charge(counts: &LicenseCounts, tres: &mut TresCounts) {
    tres.extend(counts.iter().map(|(name, count)| (Tres::License(name.to_string()), u64::from(*count))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(text: &str) -> Result<Vec<String>, String> {
        parse_licenses(text).map(|ways| ways.iter().map(words).collect()).map_err(|fault| fault.detail)
    }

    #[test]
    fn all_or_any_one() {
        assert_eq!(ways("matlab:2,ansys").unwrap(), ["ansys:1,matlab:2"]);
        assert_eq!(ways("matlab:2; ansys").unwrap(), ["ansys:1,matlab:2"]);
        assert_eq!(ways("matlab:2|comsol").unwrap(), ["matlab:2", "comsol:1"]);
        assert_eq!(ways("a,a:2").unwrap(), ["a:3"], "the same twice is summed");
        assert_eq!(ways("a|a").unwrap(), ["a:1"]);
    }

    #[test]
    fn what_is_not_a_list_is_refused() {
        for wrong in ["", "a,", "a::b", "a:0", "a:-1", "a:4294967296", "a b", "a,b|c", "ansys@flex1"] {
            assert!(ways(wrong).is_err(), "{wrong}");
        }
        assert!(ways("a,b|c").unwrap_err().contains("all of them, or any one"));
        assert!(ways("ansys@flex1:2").unwrap_err().contains("names a server"));
    }

    #[test]
    fn what_is_charged_is_held() {
        let counts = LicenseCounts::from([(Name::new("matlab").unwrap(), 2)]);
        let mut tres = TresCounts::from([(Tres::Cpu, 4)]);
        charge(&counts, &mut tres);
        assert_eq!(tres[&Tres::License("matlab".to_owned())], 2);
        assert_eq!(held(&tres), counts);
    }
}
