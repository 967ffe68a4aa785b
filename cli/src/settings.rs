//! Settings, by one rule: a flag wins over its environment variable, that over the configuration file, that over the default.
//!
//! Each flag with an environment variable `BERTH_<NAME>` is `<name>` in the file, in lower case: `BERTH_DATABASE_URL` is
//! `database_url`. The file is `--config`, else `$BERTH_CONFIG`, else `~/.config/berth/config.toml`, else `/etc/berth/config.toml`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Command;

/// The file to read, and whether it must be there.
fn file() -> (Option<PathBuf>, bool) {
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--config" {
            return (args.next().map(PathBuf::from), true);
        }
        if let Some(path) = arg.to_str().and_then(|a| a.strip_prefix("--config=")) {
            return (Some(path.into()), true);
        }
        if arg == "--" {
            break;
        }
    }
    if let Some(path) = std::env::var_os("BERTH_CONFIG").filter(|p| !p.is_empty()) {
        return (Some(path.into()), true);
    }
    let candidates = [user_file(), Some(PathBuf::from("/etc/berth/config.toml"))];
    (candidates.into_iter().flatten().find(|p| p.exists()), false)
}

/// The user's own configuration file.
pub fn user_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("berth").join("config.toml"))
}

/// Gives each argument the file's value as its default.
pub fn with_file(command: Command) -> anyhow::Result<Command> {
    let (Some(path), must_exist) = file() else { return Ok(command) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if !must_exist && error.kind() == std::io::ErrorKind::NotFound => return Ok(command),
        Err(error) => bail!("the configuration file {} cannot be read: {error}", path.display()),
    };
    let table: toml::Table = text.parse().with_context(|| format!("the configuration file {}", path.display()))?;
    let mut unknown: BTreeSet<String> = table.keys().cloned().collect();
    let command = apply(command, &table, &mut unknown)?;
    if let Some(name) = unknown.first() {
        bail!("the configuration file {} sets {name:?}, which is no setting; `berth help worker` and the like list them", path.display());
    }
    Ok(command)
}

fn apply(command: Command, table: &toml::Table, unknown: &mut BTreeSet<String>) -> anyhow::Result<Command> {
    let mut fault = None;
    let command = command.mut_args(|arg| {
        let name = arg.get_env().and_then(|e| e.to_str()).and_then(|e| e.strip_prefix("BERTH_")).map(str::to_ascii_lowercase);
        let Some((name, value)) = name.and_then(|n| table.get(&n).map(|v| (n, v))) else { return arg };
        unknown.remove(&name);
        match values(value) {
            Some(values) => arg.default_values(values).required(false),
            None => {
                fault = Some(name);
                arg
            }
        }
    });
    if let Some(name) = fault {
        bail!("the setting {name} takes a text, a number, true, false or a list of these");
    }
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().try_fold(command, |command, name| {
        let mut outcome = Ok(());
        let command = command.mut_subcommand(&name, |sub| match apply(sub.clone(), table, unknown) {
            Ok(sub) => sub,
            Err(error) => {
                outcome = Err(error);
                sub
            }
        });
        outcome.map(|()| command)
    })
}

fn values(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Boolean(flag) => Some(vec![flag.to_string()]),
        toml::Value::Array(items) => items.iter().map(|item| values(item).and_then(|v| v.into_iter().next())).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn command() -> Command {
        let level = Arg::new("level").long("level").env("BERTH_TEST_SETTING_LEVEL").default_value("1");
        let names = Arg::new("names").long("name").env("BERTH_TEST_SETTING_NAMES").action(ArgAction::Append);
        Command::new("x").subcommand(Command::new("y").args([level, names]))
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let table: toml::Table = "test_setting_level = 2\ntest_setting_names = ['a', 'b']".parse().unwrap();
        let mut unknown = table.keys().cloned().collect();
        let with_file = apply(command(), &table, &mut unknown).unwrap();
        assert!(unknown.is_empty());
        let level = |line: &[&str], command: Command| -> String {
            let matches = command.get_matches_from(line);
            matches.subcommand().unwrap().1.get_one::<String>("level").unwrap().clone()
        };
        assert_eq!(level(&["x", "y"], command()), "1");
        assert_eq!(level(&["x", "y"], with_file.clone()), "2");
        assert_eq!(level(&["x", "y", "--level", "3"], with_file.clone()), "3");
        let matches = with_file.get_matches_from(["x", "y"]);
        let names: Vec<&String> = matches.subcommand().unwrap().1.get_many("names").unwrap().collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_is_no_setting_is_named() {
        let table: toml::Table = "colour = 'blue'".parse().unwrap();
        let mut unknown = table.keys().cloned().collect();
        apply(command(), &table, &mut unknown).unwrap();
        assert_eq!(unknown.first().map(String::as_str), Some("colour"));
    }
}
