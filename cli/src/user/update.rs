//! `berth update`: sbatch's options as a merge patch of a job.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use berth_model::script::parse_script_at;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::{control, job_line, submit};

pub async fn update(client: &Client, jobs: &str, line: Vec<String>) -> anyhow::Result<ExitCode> {
    let (throttle, line) = throttle(line)?;
    let line = job_line::parse(line)?;
    if let Some(stray) = line.rest.first() {
        bail!("{stray:?} is no option; jobs come first, separated by commas: berth update 12,13 --time=30");
    }
    let mut patch = patch(&line.options)?;
    patch.extend(throttle.map(|most| ("array_throttle".to_owned(), json!(most))));
    if patch.is_empty() {
        bail!("there is nothing to change; name an option of sbatch, for example --time=30");
    }
    let patch = Value::Object(patch);
    let jobs = jobs.split(',').filter(|job| !job.is_empty()).map(str::to_owned).collect();
    control::each(jobs, "changed", async |path| client.patch(&path, &[], &patch).await).await
}

/// Takes `--array-throttle=N` off the line: sbatch has it only as `%N`.
fn throttle(line: Vec<String>) -> anyhow::Result<(Option<u32>, Vec<String>)> {
    const NAME: &str = "--array-throttle";
    let mut most = None;
    let mut rest = Vec::with_capacity(line.len());
    let mut words = line.into_iter();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(NAME) {
            Some("") => words.next().unwrap_or_default(),
            Some(value) if value.starts_with('=') => value[1..].to_owned(),
            _ => {
                rest.push(word);
                continue;
            }
        };
        let number =
            value.parse().map_err(|_| anyhow!("{NAME}: {value:?} is not a number of tasks at once; 0 is for as many as there are"))?;
        most = Some(number);
    }
    Ok((most, rest))
}

type Options = [(String, Option<String>)];

/// What takes an option back when its value is empty.
const CLEARED: [(&[&str], &str); 8] = [
    (&["dependency", "d"], "dependencies"),
    (&["constraint", "C"], "constraint"),
    (&["prefer"], "prefer"),
    (&["nodelist", "w"], "nodelist"),
    (&["exclude", "x"], "exclude"),
    (&["licenses", "L"], "licenses"),
    (&["reservation"], "reservation"),
    (&["comment"], "comment"),
];

/// Of ways to ask for the same thing only one holds: what is now given takes back the others.
const RIVALS: [&[&str]; 2] =
    [&["memory_per_node_bytes", "memory_per_cpu_bytes", "memory_per_gpu_bytes"], &["gpus", "gpus_per_node", "gpus_per_task"]];

/// What the options change of a job without any.
fn patch(options: &Options) -> anyhow::Result<Map<String, Value>> {
    let mut cleared = Map::new();
    let mut set = Vec::new();
    for (name, value) in options {
        let plain = name.trim_start_matches('-');
        match CLEARED.iter().find(|(names, _)| names.contains(&plain)) {
            Some((_, field)) if value.as_deref() == Some("") => _ = cleared.insert((*field).to_owned(), Value::Null),
            _ => set.push((name.clone(), value.clone())),
        }
    }
    let with = spec(&set)?;
    let without = spec(&[])?;
    let mut patch: Map<String, Value> = with.into_iter().filter(|(field, value)| without.get(field) != Some(value)).collect();
    for fixed in [
        "script",
        "command",
        "container",
        "environment",
        "array",
        "working_directory",
        "stdout",
        "stderr",
        "stdin",
        "signal",
        "open_mode",
        "hold",
    ] {
        if patch.contains_key(fixed) {
            bail!("{fixed} cannot be changed; cancel the job and submit it anew");
        }
    }
    if let Some(Value::Object(resources)) = patch.get_mut("resources") {
        resources.retain(|field, value| without["resources"].get(field) != Some(value));
        if resources.contains_key("nodes") {
            resources.entry("max_nodes").or_insert(Value::Null);
        }
        for rivals in RIVALS {
            if rivals.iter().any(|field| resources.contains_key(*field)) {
                rivals.iter().for_each(|field| _ = resources.entry(*field).or_insert(Value::Null));
            }
        }
    }
    // A bare --requeue is the default, and yet a change.
    if options.iter().any(|(name, _)| name.trim_start_matches('-') == "requeue") {
        patch.insert("requeue".to_owned(), json!({ "mode": "requeue" }));
    }
    patch.extend(cleared);
    Ok(patch)
}

fn spec(options: &Options) -> anyhow::Result<Map<String, Value>> {
    let parsed = parse_script_at("#!/bin/sh\n", options, submit::here()).map_err(submit::faults)?;
    for warning in &parsed.warnings {
        eprintln!("warning: {}; {}", warning.detail, warning.help);
    }
    match serde_json::to_value(&parsed.spec)? {
        Value::Object(spec) => Ok(spec),
        other => Err(anyhow!("a job that is no object: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)]) -> Value {
        let options: Vec<_> = options.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect();
        Value::Object(patch(&options).unwrap())
    }

    #[test]
    fn options_change_what_they_name_and_nothing_else() {
        assert_eq!(of(&[("time", "30"), ("p", "debug")]), json!({ "time_limit_seconds": 1800, "partition": "debug" }));
        assert_eq!(of(&[("nodes", "2")]), json!({ "resources": { "nodes": 2, "max_nodes": null } }));
        assert_eq!(
            of(&[("gpus", "4"), ("mem", "1G")]),
            json!({ "resources": { "gpus": { "count": 4 }, "gpus_per_node": null, "gpus_per_task": null,
                "memory_per_node_bytes": 1 << 30, "memory_per_cpu_bytes": null, "memory_per_gpu_bytes": null } })
        );
        assert_eq!(of(&[("dependency", ""), ("d", "afterok:4")]), json!({ "dependencies": null }), "the later empties it");
        assert_eq!(of(&[("comment", "x")]), json!({ "comment": "x" }));
        assert_eq!(of(&[("comment", "")]), json!({ "comment": null }));
    }

    #[test]
    fn a_throttle_is_taken_off_the_line() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(throttle(words("--array-throttle=5 --nice=3")).unwrap(), (Some(5), words("--nice=3")));
        assert_eq!(throttle(words("--nice=3 --array-throttle 0")).unwrap(), (Some(0), words("--nice=3")));
        assert!(throttle(words("--array-throttle=x")).unwrap_err().to_string().contains("\"x\""));
    }

    #[test]
    fn what_cannot_change_is_refused() {
        let error = patch(&[("array".to_owned(), Some("0-3".to_owned()))]).unwrap_err();
        assert_eq!(error.to_string(), "array cannot be changed; cancel the job and submit it anew");
    }
}
