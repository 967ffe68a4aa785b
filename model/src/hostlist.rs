//! Host-list notation: `n[1-3,7]`, as Slurm writes sets of nodes.

use std::collections::HashSet;

use crate::{Fault, NodeName};

/// Most names that one host-list may stand for.
pub const MAX_NAMES: usize = 100_000;

/// Digits of one number in a bracket; longer ones could not be counted through.
const MAX_DIGITS: usize = 18;

const HELP: &str = "write names separated by commas, with ranges in brackets; for example n[1-3,7],gpu[01-16]";

fn fault(detail: String) -> Fault {
    Fault::new("invalid_nodelist", "nodelist", detail, HELP)
}

/// Reads `n[1-3,7],gpu02`, in order, with repeats removed. At most 100,000 names.
pub fn expand(text: &str) -> Result<Vec<NodeName>, Fault> {
    let terms = terms(text)?;
    let total = terms.iter().fold(0u64, |sum, term| sum.saturating_add(count(term)));
    if total > MAX_NAMES as u64 {
        return Err(Fault::new(
            "invalid_nodelist",
            "nodelist",
            format!("the host-list stands for {total} names"),
            format!("a host-list may stand for at most {MAX_NAMES} names; for example n[1-{MAX_NAMES}]"),
        ));
    }
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for term in &terms {
        product(term, &mut String::new(), &mut |name| {
            let name = NodeName::new(name).map_err(|bad| fault(bad.detail))?;
            if seen.insert(name.clone()) {
                names.push(name);
            }
            Ok(())
        })?;
    }
    Ok(names)
}

/// A stretch of a term: literal text, or the ranges of a bracket.
enum Part<'a> {
    Text(&'a str),
    Ranges(Vec<Range>),
}

/// `low..=high`, written with at least `width` digits.
struct Range {
    low: u64,
    high: u64,
    width: usize,
}

fn terms(text: &str) -> Result<Vec<Vec<Part<'_>>>, Fault> {
    let mut terms = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if is_inside => return Err(fault(format!("a bracket inside a bracket at character {}", at + 1))),
            '[' => is_inside = true,
            ']' if !is_inside => return Err(fault(format!("a closing bracket without an opening one at character {}", at + 1))),
            ']' => is_inside = false,
            ',' if !is_inside => {
                terms.push(term(&text[start..at], start)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(fault("a bracket is not closed".to_owned()));
    }
    terms.push(term(&text[start..], start)?);
    Ok(terms)
}

/// Reads one name with its brackets, which are known to be balanced. `offset` is where it begins in the whole text.
fn term(text: &str, offset: usize) -> Result<Vec<Part<'_>>, Fault> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(fault(format!("a name is missing at character {}", offset + 1)));
    }
    let mut parts = Vec::new();
    let mut rest = trimmed;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']').unwrap_or((after, ""));
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(Part::Ranges(inside.split(',').map(range).collect::<Result<_, _>>()?));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    // A name of 63 characters has no room for more, and the recursion over them stays shallow.
    if parts.len() > 63 {
        return Err(fault(format!("too many brackets in the name at character {}", offset + 1)));
    }
    Ok(parts)
}

fn range(text: &str) -> Result<Range, Fault> {
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.len() <= MAX_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
        if is_number { digits.parse::<u64>().ok() } else { None }
    };
    let text = text.trim();
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (number(low), number(high)) {
        (Some(from), Some(to)) if from <= to => Ok(Range { low: from, high: to, width: low.len() }),
        (Some(_), Some(_)) => Err(fault(format!("the range \"{text}\" goes backwards"))),
        _ => Err(fault(format!("\"{text}\" in brackets is not a number or range of numbers"))),
    }
}

fn count(term: &[Part]) -> u64 {
    term.iter().fold(1, |product: u64, part| match part {
        Part::Text(_) => product,
        Part::Ranges(ranges) => product.saturating_mul(ranges.iter().fold(0, |sum: u64, r| sum.saturating_add(r.high - r.low + 1))),
    })
}

fn product(parts: &[Part], name: &mut String, emit: &mut dyn FnMut(&str) -> Result<(), Fault>) -> Result<(), Fault> {
    let Some((first, rest)) = parts.split_first() else { return emit(name) };
    let kept = name.len();
    match first {
        Part::Text(text) => {
            name.push_str(text);
            product(rest, name, emit)?;
        }
        Part::Ranges(ranges) => {
            for range in ranges {
                for n in range.low..=range.high {
                    name.push_str(&format!("{n:0width$}", width = range.width));
                    product(rest, name, emit)?;
                    name.truncate(kept);
                }
            }
        }
    }
    name.truncate(kept);
    Ok(())
}

/// Folds names into a short host-list: `n1, n2, n3, n7` → `n[1-3,7]`. Numeric order within a prefix, repeats removed; zero
/// padding is kept.
pub fn fold<'a>(names: impl IntoIterator<Item = &'a NodeName>) -> String {
    let mut split: Vec<Numbered> = names.into_iter().map(|name| numbered(name.as_str())).collect();
    split.sort();
    split.dedup();
    fold_numbered(&split)
}

/// Folds names in the order given, so that the list lines up with other lists of the same nodes.
pub fn fold_in_order<'a>(names: impl IntoIterator<Item = &'a NodeName>) -> String {
    fold_numbered(&names.into_iter().map(|name| numbered(name.as_str())).collect::<Vec<_>>())
}

/// A name split at its last number. The order of the fields is the order of names in a folded list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Numbered<'a> {
    prefix: &'a str,
    suffix: &'a str,
    /// Padded numbers first, so that 08, 09, 10 stay neighbours.
    is_unpadded: bool,
    number: u64,
    digits: &'a str,
}

fn numbered(name: &str) -> Numbered<'_> {
    let end = name.rfind(|c: char| c.is_ascii_digit()).map_or(0, |last| last + 1);
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |before| before + 1);
    let digits = &name[start..end];
    match digits.parse() {
        Ok(number) if digits.len() <= MAX_DIGITS => {
            let is_unpadded = digits.len() == 1 || !digits.starts_with('0');
            Numbered { prefix: &name[..start], suffix: &name[end..], is_unpadded, number, digits }
        }
        _ => Numbered { prefix: name, suffix: "", is_unpadded: false, number: 0, digits: "" },
    }
}

fn fold_numbered(names: &[Numbered]) -> String {
    let mut text = String::new();
    for group in names.chunk_by(|a, b| (a.prefix, a.suffix) == (b.prefix, b.suffix) && !a.digits.is_empty() && !b.digits.is_empty()) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(group[0].prefix);
        let ranges: Vec<String> = group.chunk_by(follows).filter_map(written).collect();
        match group {
            [one] => text.push_str(one.digits),
            _ => text.push_str(&format!("[{}]", ranges.join(","))),
        }
        text.push_str(group[0].suffix);
    }
    text
}

fn follows(a: &Numbered, b: &Numbered) -> bool {
    // Within a range the width is the first number's: 08-11 but not 8-011.
    let is_same_width = b.digits.len() == a.digits.len() || (b.is_unpadded && b.digits.len() > a.digits.len());
    b.number == a.number + 1 && is_same_width
}

fn written(run: &[Numbered]) -> Option<String> {
    match run {
        [] => None,
        [one] => Some(one.digits.to_owned()),
        [first, .., last] => Some(format!("{}-{}", first.digits, last.digits)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        expand(text).unwrap().into_iter().map(NodeName::into_string).collect()
    }

    fn folded(list: &[&str]) -> String {
        fold(&list.iter().map(|n| NodeName::new(*n).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn lists_expand_in_order_without_repeats() {
        assert_eq!(names("n[1-3,7]"), ["n1", "n2", "n3", "n7"]);
        assert_eq!(names("gpu[08-10]a, login"), ["gpu08a", "gpu09a", "gpu10a", "login"]);
        assert_eq!(names("r[1-2]n[1-2]"), ["r1n1", "r1n2", "r2n1", "r2n2"]);
        assert_eq!(names("b,a,b,n[2,1,2]"), ["b", "a", "n2", "n1"]);
        assert_eq!(names("[0-1]x"), ["0x", "1x"]);
        assert_eq!(names("n[99-101]"), ["n99", "n100", "n101"]);
    }

    #[test]
    fn bad_lists_say_what_and_where() {
        for (text, part) in [
            ("", "missing at character 1"),
            ("n1,,n2", "missing at character 4"),
            ("n[1-3", "not closed"),
            ("n1]", "character 3"),
            ("n[[1]]", "character 3"),
            ("n[]", "\"\" in brackets"),
            ("n[3-1]", "backwards"),
            ("n[a-b]", "\"a-b\""),
            ("n[1-99999999999999999999]", "not a number"),
            ("N1", "\"N1\""),
            ("n[1-200000]", "200000 names"),
            ("n[1-999999999999999999],n[1-999999999999999999]", "names"),
            ("n[0-999]a[0-999]b[0-999]", "1000000000 names"),
        ] {
            let fault = expand(text).expect_err(text);
            assert_eq!(fault.code, "invalid_nodelist");
            assert!(fault.detail.contains(part), "{text}: {}", fault.detail);
            assert!(!fault.help.is_empty());
        }
    }

    #[test]
    fn names_fold_into_ranges() {
        assert_eq!(folded(&["n7", "n3", "n1", "n2", "n1"]), "n[1-3,7]");
        assert_eq!(folded(&["n9", "n10", "n11"]), "n[9-11]");
        assert_eq!(folded(&["gpu10a", "gpu08a", "gpu09a"]), "gpu[08-10]a");
        assert_eq!(folded(&["n098", "n099", "n100"]), "n[098-100]");
        assert_eq!(folded(&["login", "n1"]), "login,n1");
        assert_eq!(folded(&["r1n1", "r1n2", "r2n1"]), "r1n[1-2],r2n1");
        assert_eq!(folded(&[]), "");
        let order = ["n3", "n1", "n2"].map(|n| NodeName::new(n).unwrap());
        assert_eq!(fold_in_order(&order), "n[3,1-2]");
    }

    proptest! {
        #[test]
        fn what_is_folded_expands_again(list in proptest::collection::btree_set("(n|gpu|r1-)?[0-9]{1,3}[ab]?|x[0-9]{17,22}", 1..60)) {
            let list: BTreeSet<NodeName> = list.into_iter().map(|n| NodeName::new(n).unwrap()).collect();
            let expanded = expand(&fold(&list)).unwrap();
            prop_assert_eq!(expanded.len(), list.len());
            prop_assert_eq!(expanded.into_iter().collect::<BTreeSet<_>>(), list);
        }

        #[test]
        fn order_is_kept_when_asked(list in proptest::collection::btree_set("n[0-9]{1,2}", 1..30).prop_map(|s| s.into_iter().collect::<Vec<_>>()).prop_shuffle()) {
            let list: Vec<NodeName> = list.into_iter().map(|n| NodeName::new(n).unwrap()).collect();
            prop_assert_eq!(expand(&fold_in_order(&list)).unwrap(), list);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[n0-9\\[\\],\\- é]{0,40}") {
            let _ = expand(&text);
        }
    }
}
