//! Feature expressions, all of Slurm's: `a&b|c` with parentheses, matching ORs `[a|b]`, counts `[a*2&b*4]`. Turned into choices.
//!
//! Source: sbatch manual, `--constraint`. Where it is silent: an OR beside a bracket or a count chooses for the job as a whole, as one in
//! brackets does; counts may stand outside brackets, too.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Fault;

/// Most alternatives that an expression may come to.
pub const MAX_ALTERNATIVES: usize = 64;
/// Most choices for a job as a whole.
pub const MAX_CHOICES: usize = 16;
/// Most features with counts in one choice.
pub const MAX_COUNTS: usize = 8;
const MAX_COUNT: u32 = 1_000_000;
const MAX_BYTES: usize = 4096;
const MAX_DEPTH: usize = 32;

const HELP: &str = "join features with & (and) and | (or), with parentheses where needed; [a|b] for one of them on all nodes alike, \
                    [a*2&b*4] for so many nodes of each; for example h100&(ib|roce)";

type Alternatives = Vec<BTreeSet<String>>;

/// So many nodes, each with all features of one of these sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeCount {
    pub any_of: Alternatives,
    pub count: u32,
}

/// One choice of nodes for a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Choice {
    /// Each node has all features of one of these sets.
    pub any_of: Alternatives,
    /// Different nodes for each of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<NodeCount>,
}

impl Choice {
    fn any() -> Choice {
        Choice { any_of: vec![BTreeSet::new()], counts: Vec::new() }
    }

    /// Both hold.
    fn and(&self, other: &Choice) -> Result<Choice, Fault> {
        within("alternatives", self.any_of.len() * other.any_of.len(), MAX_ALTERNATIVES)?;
        let mut any_of: Alternatives =
            self.any_of.iter().flat_map(|l| other.any_of.iter().map(move |r| l.union(r).cloned().collect())).collect();
        any_of.sort();
        any_of.dedup();
        let counts: Vec<NodeCount> = self.counts.iter().chain(&other.counts).cloned().collect();
        within("features with counts", counts.len(), MAX_COUNTS)?;
        Ok(Choice { any_of, counts })
    }

    /// The nodes that it counts.
    pub fn counted(&self) -> u32 {
        self.counts.iter().fold(0, |sum, one| sum.saturating_add(one.count))
    }
}

/// Parses a feature expression that is about each node by itself into alternatives, each a set of features that must all be there. `&` binds
/// closer than `|`.
pub fn parse_constraint(text: &str) -> Result<Alternatives, Fault> {
    match parse_choices(text)?.as_slice() {
        [only] if only.counts.is_empty() => Ok(only.any_of.clone()),
        _ => Err(Fault::new(
            "constraint_unsupported",
            "constraint",
            "brackets and counts within an expression are for jobs",
            "join features with & and |; for example h100&(ib|roce)",
        )),
    }
}

/// Parses all of Slurm's grammar into choices, of which a job gets one.
pub fn parse_choices(text: &str) -> Result<Vec<Choice>, Fault> {
    if text.len() > MAX_BYTES {
        return Err(fault("constraint_too_complex", format!("the expression has {} bytes; at most {MAX_BYTES} are read", text.len())));
    }
    let mut reader = Reader { text, at: 0, depth: 0, is_in_brackets: false };
    let choices = reader.any()?;
    match reader.peek() {
        None => Ok(choices.all),
        Some(_) => Err(reader.unexpected("the end, & or |")),
    }
}

/// What a job prefers goes first, within what it must have.
pub fn preferred(prefer: Option<&str>, constraint: Option<&str>) -> Result<Vec<Choice>, Fault> {
    let must = constraint.map(parse_choices).transpose()?;
    let Some(prefer) = prefer else { return Ok(must.unwrap_or_default()) };
    let in_prefer = |fault: Fault| Fault { field: "prefer".to_owned(), ..fault };
    let mut must = must.unwrap_or_else(|| vec![Choice::any()]);
    let mut all = Vec::new();
    for wish in parse_choices(prefer).map_err(in_prefer)? {
        for choice in &must {
            all.push(wish.and(choice).map_err(in_prefer)?);
        }
    }
    all.append(&mut must);
    within("choices", all.len(), MAX_CHOICES).map_err(in_prefer)?;
    Ok(all)
}

fn fault(code: &str, detail: String) -> Fault {
    Fault::new(code, "constraint", detail, HELP)
}

fn within(what: &str, count: usize, most: usize) -> Result<(), Fault> {
    if count <= most {
        return Ok(());
    }
    Err(fault("constraint_too_complex", format!("the expression comes to more than {most} {what}")))
}

/// What a part of an expression comes to.
struct Part {
    all: Vec<Choice>,
    /// It is about each node by itself: no brackets, no counts.
    is_plain: bool,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_in_brackets: bool,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.at += wanted.len_utf8();
        }
        is_there
    }

    /// `'x' at character 3`.
    fn place(&mut self) -> String {
        match self.peek() {
            Some(c) => format!("'{c}' at character {}", self.text[..self.at].chars().count() + 1),
            None => "the expression ends".to_owned(),
        }
    }

    fn unexpected(&mut self, wanted: &str) -> Fault {
        let place = self.place();
        fault("invalid_constraint", format!("{place} where {wanted} should be"))
    }

    fn any(&mut self) -> Result<Part, Fault> {
        let mut parts = vec![self.all()?];
        while self.takes('|') {
            parts.push(self.all()?);
        }
        if let [_] = parts.as_slice() {
            return Ok(parts.remove(0));
        }
        if parts.iter().all(|part| part.is_plain) && !self.is_in_brackets {
            let mut any_of: Alternatives = parts.into_iter().flat_map(|part| part.all).flat_map(|choice| choice.any_of).collect();
            any_of.sort();
            any_of.dedup();
            within("alternatives", any_of.len(), MAX_ALTERNATIVES)?;
            return Ok(Part { all: vec![Choice { any_of, counts: Vec::new() }], is_plain: true });
        }
        let mut all: Vec<Choice> = Vec::new();
        for choice in parts.into_iter().flat_map(|part| part.all) {
            if !all.contains(&choice) {
                all.push(choice);
            }
        }
        within("choices", all.len(), MAX_CHOICES)?;
        Ok(Part { all, is_plain: false })
    }

    fn all(&mut self) -> Result<Part, Fault> {
        let mut left = self.one()?;
        while self.takes('&') {
            let right = self.one()?;
            within("choices", left.all.len() * right.all.len(), MAX_CHOICES)?;
            let all = left.all.iter().flat_map(|l| right.all.iter().map(move |r| l.and(r))).collect::<Result<Vec<_>, _>>()?;
            left = Part { all, is_plain: left.is_plain && right.is_plain };
        }
        Ok(left)
    }

    /// A feature, a group or brackets, with a count if there is one.
    fn one(&mut self) -> Result<Part, Fault> {
        let part = self.unit()?;
        if self.peek() != Some('*') {
            return Ok(part);
        }
        let ([Choice { any_of, counts }], true) = (part.all.as_slice(), part.is_plain) else {
            let place = self.place();
            return Err(fault("invalid_constraint", format!("{place} counts what has brackets or counts of its own")));
        };
        debug_assert!(counts.is_empty(), "what is plain counts nothing");
        self.takes('*');
        self.peek();
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let count = self.text[self.at..self.at + digits].parse::<u32>().ok().filter(|n| (1..=MAX_COUNT).contains(n));
        let Some(count) = count else { return Err(self.unexpected("a number of nodes")) };
        self.at += digits;
        Ok(Part { all: vec![Choice { counts: vec![NodeCount { any_of: any_of.clone(), count }], ..Choice::any() }], is_plain: false })
    }

    fn unit(&mut self) -> Result<Part, Fault> {
        if self.takes('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(fault("constraint_too_complex", format!("parentheses are nested more than {MAX_DEPTH} deep")));
            }
            let is_in_brackets = std::mem::take(&mut self.is_in_brackets);
            let inner = self.any()?;
            self.is_in_brackets = is_in_brackets;
            self.depth -= 1;
            return if self.takes(')') { Ok(inner) } else { Err(self.unexpected("& or | or )")) };
        }
        if self.peek() == Some('[') {
            if self.is_in_brackets || self.depth > 0 {
                return Err(self.unexpected("a feature or ( (brackets stand in nothing else)"));
            }
            self.takes('[');
            self.is_in_brackets = true;
            let inner = self.any()?;
            self.is_in_brackets = false;
            return if self.takes(']') { Ok(Part { is_plain: false, ..inner }) } else { Err(self.unexpected("& or | or ]")) };
        }
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-:=/+".contains(c))).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.unexpected("a feature or ("));
        }
        self.at += end;
        Ok(Part { all: vec![Choice { any_of: vec![BTreeSet::from([rest[..end].to_owned()])], counts: Vec::new() }], is_plain: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(any_of: &Alternatives) -> String {
        any_of.iter().map(|set| set.iter().cloned().collect::<Vec<_>>().join("&")).collect::<Vec<_>>().join("|")
    }

    fn alternatives(text: &str) -> Vec<String> {
        parse_constraint(text).unwrap().into_iter().map(|set| set.into_iter().collect::<Vec<_>>().join("&")).collect()
    }

    /// `all nodes; counts`.
    fn choice(choice: &Choice) -> String {
        let counts = choice.counts.iter().map(|one| format!("; {}*{}", written(&one.any_of), one.count)).collect::<String>();
        format!("{}{counts}", written(&choice.any_of))
    }

    fn choices(text: &str) -> Vec<String> {
        parse_choices(text).unwrap().iter().map(choice).collect()
    }

    #[test]
    fn expressions_become_alternatives() {
        assert_eq!(alternatives("h100"), ["h100"]);
        assert_eq!(alternatives("a&b|c"), ["a&b", "c"]);
        assert_eq!(alternatives("a & (b|c)"), ["a&b", "a&c"]);
        assert_eq!(alternatives("(a|b)&(c|d)"), ["a&c", "a&d", "b&c", "b&d"]);
        assert_eq!(alternatives("a|a&a"), ["a"]);
    }

    /// Expressions of the manual, and their relatives.
    #[test]
    fn brackets_choose_for_all_nodes_and_counts_for_some() {
        assert_eq!(choices("[rack1|rack2|rack3]"), ["rack1", "rack2", "rack3"]);
        assert_eq!(choices("[rack1|rack2]&ib"), ["ib&rack1", "ib&rack2"]);
        assert_eq!(choices("graphics*4"), ["; graphics*4"]);
        assert_eq!(choices("[rack1*2&rack2*4]"), ["; rack1*2; rack2*4"]);
        assert_eq!(choices("[(knl&snc4&flat)*4&haswell*1]"), ["; flat&knl&snc4*4; haswell*1"]);
        assert_eq!(choices("[(a|b)|c]"), ["a|b", "c"]);
        assert_eq!(choices("[a*2|b*1]"), ["; a*2", "; b*1"]);
        assert_eq!(choices("ib&a*2"), ["ib; a*2"]);
        assert_eq!(choices("(a|b)*2"), ["; a|b*2"]);
        assert_eq!(choices("[a]"), ["a"]);
        assert_eq!(choices("[a|a]"), ["a"]);
        assert_eq!(choices("c|[a|b]"), ["c", "a", "b"]);
    }

    #[test]
    fn what_is_preferred_goes_first_within_what_must_be() {
        let all = |prefer: &str, constraint| preferred(Some(prefer), constraint).unwrap().iter().map(choice).collect::<Vec<_>>();
        assert_eq!(all("ib", Some("h100")), ["h100&ib", "h100"]);
        assert_eq!(all("ib", None), ["ib", ""]);
        assert_eq!(all("ib", Some("[a|b]")), ["a&ib", "b&ib", "a", "b"]);
        assert_eq!(preferred(None, None), Ok(Vec::new()));
        assert_eq!(preferred(Some("a&"), Some("b")).unwrap_err().field, "prefer");
        assert_eq!(preferred(Some("a"), Some("b&")).unwrap_err().field, "constraint");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, place) in [
            ("a&&b", "'&' at character 3 where a feature or ( should be"),
            ("[a|b", "the expression ends where & or | or ] should be"),
            ("a]", "']' at character 2 where the end, & or | should be"),
            ("[a|[b]]", "'[' at character 4 where a feature or ( (brackets stand in nothing else) should be"),
            ("a*", "the expression ends where a number of nodes should be"),
            ("a*0", "'0' at character 3 where a number of nodes should be"),
            ("[a|b]*2", "'*' at character 6 counts what has brackets or counts of its own"),
            ("a*2*3", "'*' at character 4 where the end, & or | should be"),
            ("!a", "'!' at character 1 where a feature or ( should be"),
        ] {
            assert_eq!(parse_choices(text).expect_err(text).detail, place, "{text}");
        }
    }

    #[test]
    fn what_is_not_an_expression_is_refused() {
        let wide = (0..7).map(|i| format!("(a{i}|b{i})")).collect::<Vec<_>>().join("&");
        let deep = format!("{}a{}", "(".repeat(40), ")".repeat(40));
        let many = format!("[{}]", (0..17).map(|i| format!("a{i}")).collect::<Vec<_>>().join("|"));
        let counted = (0..9).map(|i| format!("a{i}*1")).collect::<Vec<_>>().join("&");
        for (text, code) in [
            ("", "invalid_constraint"),
            ("a&", "invalid_constraint"),
            ("|a", "invalid_constraint"),
            ("(a", "invalid_constraint"),
            ("a)", "invalid_constraint"),
            ("a b", "invalid_constraint"),
            ("a,b", "invalid_constraint"),
            ("é", "invalid_constraint"),
            ("a*99999999999", "invalid_constraint"),
            (&wide, "constraint_too_complex"),
            (&deep, "constraint_too_complex"),
            (&many, "constraint_too_complex"),
            (&counted, "constraint_too_complex"),
            (&"a".repeat(5000), "constraint_too_complex"),
        ] {
            let fault = parse_choices(text).expect_err(text);
            assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, "constraint"), "{text}");
            assert!(fault.help.contains("for example"));
        }
        for text in ["[rack1|rack2]", "a*2"] {
            assert_eq!(parse_constraint(text).expect_err(text).code, "constraint_unsupported", "{text}");
        }
    }
}
