//! The directives of a script as words: `#SBATCH` lines up to the first line that is neither blank nor comment.

use crate::Fault;

/// The words of one `#SBATCH` line, or why it cannot be split.
pub(super) struct Line {
    pub number: u32,
    pub words: Result<Vec<String>, Fault>,
}

impl Line {
    /// `#SBATCH hetjob`: what follows is of the next component.
    pub fn parts_components(&self) -> bool {
        matches!(self.words.as_deref(), Ok([word]) if super::is_separator(word))
    }
}

const PREFIX: &str = "#SBATCH";
/// Warnings of one kind are not repeated more often.
const MAX_REPEATS: usize = 20;

/// Drops the `\r` of Windows line ends, with a warning.
pub(super) fn with_unix_line_ends(text: &str, warnings: &mut Vec<Fault>) -> String {
    if !text.contains("\r\n") {
        return text.to_owned();
    }
    warnings.push(
        Fault::new(
            "windows_line_ends",
            "script",
            "the script has Windows line ends; they were removed",
            "save it with Unix line ends; dos2unix converts a file",
        )
        .at_line(1),
    );
    text.replace("\r\n", "\n")
}

pub(super) fn directives(text: &str, warnings: &mut Vec<Fault>) -> Vec<Line> {
    let mut found = Vec::new();
    let mut lines = (1u32..).zip(text.lines());
    for (number, line) in lines.by_ref() {
        let trimmed = line.trim_start();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            break;
        }
        if let Some(rest) = directive(line) {
            found.push(Line { number, words: split(rest).map_err(|fault| fault.at_line(number)) });
        }
    }
    let late = lines.filter(|(_, line)| directive(line).is_some()).take(MAX_REPEATS);
    warnings.extend(late.map(|(number, line)| {
        let help = "directives are read up to the first command; move this line above it";
        Fault::new("late_directive", PREFIX, format!("\"{:.80}\" comes after the first command and was not read", line.trim()), help)
            .at_line(number)
    }));
    found
}

fn directive(line: &str) -> Option<&str> {
    line.strip_prefix(PREFIX).filter(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '-'))
}

/// Splits at blanks as a shell does: quotes, backslashes, and a comment from a `#` that begins a word.
fn split(text: &str) -> Result<Vec<String>, Fault> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"')) => match chars.next() {
                Some(escaped @ ('"' | '\\')) => word.get_or_insert_default().push(escaped),
                Some(other) => word.get_or_insert_default().extend(['\\', other]),
                None => break,
            },
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None) => word.get_or_insert_default().extend(chars.next()),
            ('#', None) if word.is_none() => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(open) => Err(Fault::new(
            "unclosed_quote",
            PREFIX,
            format!("a {open} is not closed"),
            "close the quote on the same line; for example --comment=\"two words\"",
        )),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_as_in_a_shell() {
        for (text, expected) in [
            (" -N 4  -n8", vec!["-N", "4", "-n8"]),
            (" --comment=\"a b\" -J 'x \"y\"' # rest", vec!["--comment=a b", "-J", "x \"y\""]),
            (" --job-name=a#b", vec!["--job-name=a#b"]),
            (r#" -J a\ b --x="q\"r\s""#, vec!["-J", "a b", "--x=q\"r\\s"]),
            (" -J ''", vec!["-J", ""]),
            ("", vec![]),
        ] {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        assert_eq!(split(" -J 'x").unwrap_err().code, "unclosed_quote");
    }

    #[test]
    fn directives_end_at_the_first_command() {
        let mut warnings = Vec::new();
        let text =
            "#!/bin/sh\n\n# note\n##SBATCH -N9\n# SBATCH -N9\n#SBATCHX\n  # indented\n#SBATCH -N1\n#SBATCH--time=5\nset -e\n#SBATCH -N2\n";
        let lines = directives(text, &mut warnings);
        let read: Vec<_> = lines.into_iter().map(|l| (l.number, l.words.unwrap())).collect();
        assert_eq!(read, [(8, vec!["-N1".to_owned()]), (9, vec!["--time=5".to_owned()])]);
        assert_eq!((warnings[0].code.as_str(), warnings[0].line), ("late_directive", Some(11)));
    }
}
