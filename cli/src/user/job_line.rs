//! `berth submit` and `berth run` take sbatch's options: this reads them off the line.

use anyhow::{Context, bail};
use berth_model::script::{ValueKind, all_options, find_option};

/// A command line taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JobLine {
    /// sbatch options as given, long names.
    pub options: Vec<(String, Option<String>)>,
    /// `--wrap`: a command to make a script of.
    pub wrap: Option<String>,
    /// `--wait`: until the job has ended.
    pub wait: bool,
    /// `--parsable`: print the number alone.
    pub parsable: bool,
    /// `--test-only`: ask when it would start, and submit nothing.
    pub test_only: bool,
    /// The script or command with its arguments.
    pub rest: Vec<String>,
}

pub fn wants_help(line: &[String]) -> bool {
    line.iter().take_while(|word| word.starts_with('-') && *word != "--").any(|word| word == "--help" || word == "-h")
}

/// Options come before the script; what follows it is the script's own.
pub fn parse(line: Vec<String>) -> anyhow::Result<JobLine> {
    let mut parsed = JobLine::default();
    let mut words = line.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.rest.extend(words.by_ref());
        } else if word == ":" {
            // What follows is of the next component.
            parsed.options.push(("hetjob".to_owned(), None));
        } else if word == "-" || !word.starts_with('-') {
            parsed.rest.push(word);
            parsed.rest.extend(words.by_ref());
        } else {
            parsed.take(&word, &mut words)?;
        }
    }
    Ok(parsed)
}

impl JobLine {
    fn take(&mut self, word: &str, words: &mut impl Iterator<Item = String>) -> anyhow::Result<()> {
        let (name, mut value) = match word.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            },
            None => {
                let mut letters = word[1..].chars();
                let letter = letters.next().map(String::from).unwrap_or_default();
                let glued = letters.as_str().strip_prefix('=').unwrap_or(letters.as_str());
                (letter, (!glued.is_empty()).then(|| glued.to_owned()))
            }
        };
        match name.as_str() {
            "wrap" => {
                self.wrap = Some(value.or_else(|| words.next()).context("--wrap needs a command")?);
                return Ok(());
            }
            "wait" | "W" => {
                self.wait = true;
                return Ok(());
            }
            "parsable" => {
                self.parsable = true;
                return Ok(());
            }
            "test-only" => {
                self.test_only = true;
                return Ok(());
            }
            _ => {}
        }
        let Some(option) = find_option(&name) else {
            bail!("there is no option {word}; `berth submit --help` lists them");
        };
        if option.value == ValueKind::Required && value.is_none() {
            value = Some(words.next().with_context(|| format!("--{} needs a value", option.long))?);
        }
        self.options.push((option.long.to_owned(), value));
        Ok(())
    }
}

/// What the options are and what each sets.
pub fn help(is_submit: bool) -> String {
    let mut text = if is_submit {
        "Submit a batch script (or a job as JSON).\n\n\
         Usage: berth submit [OPTIONS] SCRIPT [ARGS…]\n       berth submit [OPTIONS] --wrap='COMMAND'\n       berth submit job.json\n\n\
         A script's #SBATCH lines are honoured; options on the line win over them. `-`, or no\n\
         script where standard input is a file or a pipe, reads that. Times of day are local, a relative --chdir starts here.\n\n\
         \x20     --wait      wait for the end; the exit code is then the job's\n\
         \x20     --parsable  print the job's number alone\n\
         \x20     --wrap=COMMAND  make a script of a shell command\n\
         \x20     --test-only  tell when and where it would start, and submit nothing\n"
            .to_owned()
    } else {
        "Run a command as a job, show its output, and end as it ended. Ctrl-C cancels it.\n\n\
         Usage: berth run [OPTIONS] COMMAND [ARGS…]\n\n\
         The command runs once for each task.\n\n\
         \x20     --test-only  tell when and where it would start, and run nothing\n"
            .to_owned()
    };
    text.push_str("\nOptions, as sbatch has them, and the field of the job that each sets:\n\n");
    for option in all_options() {
        let Some(sets) = option.sets else { continue };
        let short = option.short.map_or("    ".to_owned(), |s| format!("-{s}, "));
        let value = match option.value {
            ValueKind::None => "",
            ValueKind::Optional => "[=VALUE]",
            ValueKind::Required => "=VALUE",
        };
        text.push_str(&format!("  {short}{:<28} {sets}\n", format!("--{}{value}", option.long)));
    }
    let ignored: Vec<&str> = all_options().iter().filter(|o| o.sets.is_none() && o.refused.is_none()).map(|o| o.long).collect();
    text.push_str(&format!("\nKnown and ignored with a warning: {}\n", ignored.join(", ")));
    let refused: Vec<&str> = all_options().iter().filter(|o| o.refused.is_some() && o.long != "test-only").map(|o| o.long).collect();
    text.push_str(&format!("\nKnown and refused, with what to do instead: {}\n", refused.join(", ")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_end_at_the_script() {
        let parsed = parse(words("-N2 --time 10 -n=4 --test-only --gpus=h100:2 --hold train.sh --time=5 -x --parsable")).unwrap();
        assert!(parsed.test_only && !parsed.parsable);
        let options: Vec<(&str, Option<&str>)> = parsed.options.iter().map(|(n, v)| (n.as_str(), v.as_deref())).collect();
        assert_eq!(options, [("nodes", Some("2")), ("time", Some("10")), ("ntasks", Some("4")), ("gpus", Some("h100:2")), ("hold", None)]);
        assert_eq!(parsed.rest, ["train.sh", "--time=5", "-x", "--parsable"]);
    }

    #[test]
    fn a_colon_parts_components() {
        let parsed = parse(words("-N2 -p gpu : -n4 : -p cpu coupled.sh : x")).unwrap();
        let names: Vec<&str> = parsed.options.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["nodes", "partition", "hetjob", "ntasks", "hetjob", "partition"]);
        assert_eq!(parsed.rest, ["coupled.sh", ":", "x"], "behind the script all is the script's own");
    }

    #[test]
    fn a_mistyped_option_is_named() {
        assert!(parse(words("--tiem=5 x.sh")).unwrap_err().to_string().contains("--tiem=5"));
        assert!(parse(words("--time")).unwrap_err().to_string().contains("--time needs a value"));
        assert!(wants_help(&words("-N 2 --help")) || wants_help(&words("--help")));
        assert!(!wants_help(&words("prog --help")));
    }
}
