//! Feature expressions: `a&b|c`, with parentheses, turned into alternatives.

use std::collections::BTreeSet;

use crate::Fault;

/// Most alternatives that an expression may come to.
pub const MAX_ALTERNATIVES: usize = 64;
const MAX_BYTES: usize = 4096;
const MAX_DEPTH: usize = 32;

const HELP: &str = "join features with & (and) and | (or), with parentheses where needed; for example h100&(ib|roce)";

type Alternatives = Vec<BTreeSet<String>>;

/// Parses a feature expression (`a&b|c`, parentheses allowed) into alternatives, each a set of features that must all be there.
/// `&` binds closer than `|`.
pub fn parse_constraint(text: &str) -> Result<Alternatives, Fault> {
    if text.len() > MAX_BYTES {
        return Err(fault("constraint_too_complex", format!("the expression has {} bytes; at most {MAX_BYTES} are read", text.len())));
    }
    if let Some((at, c)) = text.char_indices().find(|(_, c)| matches!(c, '[' | ']' | '*' | '!' | '{' | '}')) {
        return Err(Fault::new(
            "constraint_unsupported",
            "constraint",
            format!("'{c}' at character {}: counts, brackets and negation are not supported", text[..at].chars().count() + 1),
            "a constraint applies to each node of the job: join features with & and |; for example h100&(ib|roce)",
        ));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let alternatives = reader.any()?;
    match reader.peek() {
        None => Ok(alternatives),
        Some(_) => Err(reader.unexpected("the end, & or |")),
    }
}

fn fault(code: &str, detail: String) -> Fault {
    Fault::new(code, "constraint", detail, HELP)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
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

    fn unexpected(&mut self, wanted: &str) -> Fault {
        let place = match self.peek() {
            Some(c) => format!("'{c}' at character {}", self.text[..self.at].chars().count() + 1),
            None => "the expression ends".to_owned(),
        };
        fault("invalid_constraint", format!("{place} where {wanted} should be"))
    }

    fn any(&mut self) -> Result<Alternatives, Fault> {
        let mut alternatives = self.all()?;
        while self.takes('|') {
            alternatives.extend(self.all()?);
            alternatives.sort();
            alternatives.dedup();
            within_cap(alternatives.len())?;
        }
        Ok(alternatives)
    }

    fn all(&mut self) -> Result<Alternatives, Fault> {
        let mut left = self.one()?;
        while self.takes('&') {
            let right = self.one()?;
            within_cap(left.len() * right.len())?;
            left = left.iter().flat_map(|l| right.iter().map(move |r| l.union(r).cloned().collect())).collect();
            left.sort();
            left.dedup();
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Alternatives, Fault> {
        if self.takes('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(fault("constraint_too_complex", format!("parentheses are nested more than {MAX_DEPTH} deep")));
            }
            let inner = self.any()?;
            self.depth -= 1;
            return if self.takes(')') { Ok(inner) } else { Err(self.unexpected("& or | or )")) };
        }
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-:=/+".contains(c))).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.unexpected("a feature or ("));
        }
        self.at += end;
        Ok(vec![BTreeSet::from([rest[..end].to_owned()])])
    }
}

fn within_cap(count: usize) -> Result<(), Fault> {
    if count <= MAX_ALTERNATIVES {
        return Ok(());
    }
    Err(fault("constraint_too_complex", format!("the expression comes to more than {MAX_ALTERNATIVES} alternatives")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alternatives(text: &str) -> Vec<String> {
        parse_constraint(text).unwrap().into_iter().map(|set| set.into_iter().collect::<Vec<_>>().join("&")).collect()
    }

    #[test]
    fn expressions_become_alternatives() {
        assert_eq!(alternatives("h100"), ["h100"]);
        assert_eq!(alternatives("a&b|c"), ["a&b", "c"]);
        assert_eq!(alternatives("a & (b|c)"), ["a&b", "a&c"]);
        assert_eq!(alternatives("(a|b)&(c|d)"), ["a&c", "a&d", "b&c", "b&d"]);
        assert_eq!(alternatives("a|a&a"), ["a"]);
    }

    #[test]
    fn what_is_not_an_expression_is_refused() {
        let wide = (0..7).map(|i| format!("(a{i}|b{i})")).collect::<Vec<_>>().join("&");
        let deep = format!("{}a{}", "(".repeat(40), ")".repeat(40));
        for (text, code) in [
            ("", "invalid_constraint"),
            ("a&", "invalid_constraint"),
            ("|a", "invalid_constraint"),
            ("(a", "invalid_constraint"),
            ("a)", "invalid_constraint"),
            ("a b", "invalid_constraint"),
            ("a,b", "invalid_constraint"),
            ("é", "invalid_constraint"),
            ("[rack1|rack2]", "constraint_unsupported"),
            ("a*2", "constraint_unsupported"),
            (&wide, "constraint_too_complex"),
            (&deep, "constraint_too_complex"),
            (&"a".repeat(5000), "constraint_too_complex"),
        ] {
            let fault = parse_constraint(text).expect_err(text);
            assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, "constraint"), "{text}");
            assert!(fault.help.contains("for example"));
        }
    }
}
