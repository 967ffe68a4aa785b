//! `berth submit` and `berth run`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use berth_model::Fault;
use berth_model::job::JobSpec;
use berth_model::script::{ExportMode, Place, parse_script_at};
use serde_json::Value;

use super::args::Format;
use super::client::Client;
use super::job_line::{self, JobLine};
use super::queue::zone;
use super::show::in_local_time;
use super::{input, logs, print_data, signals};

/// Submits a script or a job as JSON.
pub async fn submit(client: &Client, format: Format, line: Vec<String>) -> anyhow::Result<ExitCode> {
    let line = job_line::parse(line)?;
    let (wait, parsable, test_only) = (line.wait, line.parsable, line.test_only);
    let spec = read_job(line)?;
    if test_only {
        return dry_run(client, format, &spec).await;
    }
    let answer = post(client, &spec).await?;
    let job = answer["job_id"].to_string();
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        eprintln!("warning: {}", warning["detail"].as_str().unwrap_or_default());
    }
    if parsable {
        println!("{job}");
    } else if !print_data(format, &answer)? {
        println!("Submitted batch job {job}");
    }
    if wait { logs::wait(client, &job).await } else { Ok(ExitCode::SUCCESS) }
}

/// Tells when and where the job would start.
async fn dry_run(client: &Client, format: Format, spec: &JobSpec) -> anyhow::Result<ExitCode> {
    let answer = client.post("/v1/jobs:dryRun", &serde_json::to_value(spec)?, None).await?;
    if print_data(format, &answer)? {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", in_local_time(answer["summary"].as_str().unwrap_or_default()));
    println!("  place {} in the queue; nothing was submitted; times in {}", answer["rank"], zone());
    Ok(ExitCode::SUCCESS)
}

async fn post(client: &Client, spec: &JobSpec) -> anyhow::Result<Value> {
    let key = uuid::Uuid::new_v4().to_string();
    client.post("/v1/jobs", &serde_json::to_value(spec)?, Some(&key)).await
}

fn read_job(line: JobLine) -> anyhow::Result<JobSpec> {
    if let Some(command) = &line.wrap {
        if !line.rest.is_empty() {
            bail!("--wrap and a script contradict each other: give one of them");
        }
        let script = format!("#!/bin/sh\n# made by berth submit --wrap\n{command}\n");
        return from_script(&script, Some("wrap"), &line);
    }
    let path = match line.rest.first() {
        Some(path) => path.as_str(),
        // As sbatch: what comes by standard input is the script.
        None if berth_runtime::files::has_input() => "-",
        None => bail!("there is no script to submit; name one, or give a command with --wrap='COMMAND'"),
    };
    let text = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
        text
    } else {
        std::fs::read_to_string(path).with_context(|| format!("the script {path}"))?
    };
    if path.ends_with(".json") || text.trim_start().starts_with('{') {
        if !line.options.is_empty() {
            bail!("options go with a script; in a job as JSON they are fields");
        }
        return serde_json::from_str(&text).with_context(|| format!("the job {path}"));
    }
    let name = std::path::Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned()).filter(|_| path != "-");
    from_script(&text, name.as_deref().or(Some("sbatch")), &line)
}

fn from_script(text: &str, name: Option<&str>, line: &JobLine) -> anyhow::Result<JobSpec> {
    let parsed = parse_script_at(text, &line.options, here()).map_err(faults)?;
    for warning in &parsed.warnings {
        eprintln!("warning: {}; {}", warning.detail, warning.help);
    }
    let mut spec = parsed.spec;
    spec.script_args = line.rest.iter().skip(1).cloned().collect();
    spec.name = spec.name.or(name.map(str::to_owned));
    add_environment(&mut spec, &parsed.export);
    Ok(spec)
}

/// Times of day are this machine's, and a relative folder is relative to where we are.
pub fn here() -> Place {
    let directory = std::env::current_dir().ok().map(|dir| dir.display().to_string());
    Place { now: jiff::Zoned::now(), directory }
}

pub fn faults(faults: Vec<Fault>) -> anyhow::Error {
    let lines: Vec<String> = faults.iter().map(|f| format!("{}; {}", f.detail, f.help)).collect();
    anyhow!(lines.join("\n  "))
}

/// What never goes along: secrets of this client, and what is the shell's own.
const PRIVATE: [&str; 9] =
    ["BERTH_TOKEN", "BERTH_JOIN_TOKEN", "BERTH_DATABASE_URL", "BERTH_DEV_KEY", "_", "SHLVL", "PWD", "OLDPWD", "TERM"];

/// sbatch's `--export`: by default all variables go along. Into a container none do, since its paths are not this machine's.
fn add_environment(spec: &mut JobSpec, export: &ExportMode) {
    let mine: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| !PRIVATE.contains(&name.as_str())).collect();
    let wanted: BTreeMap<String, String> = match export {
        ExportMode::All if spec.container.is_some() => BTreeMap::new(),
        ExportMode::All => mine,
        ExportMode::None => BTreeMap::new(),
        ExportMode::Names(names) => names.iter().filter_map(|n| Some((n.clone(), mine.get(n)?.clone()))).collect(),
    };
    for (name, value) in wanted {
        spec.environment.entry(name).or_insert(value);
    }
    if let Ok(dir) = std::env::current_dir() {
        spec.environment.insert("SLURM_SUBMIT_DIR".to_owned(), dir.display().to_string());
    }
    if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        spec.environment.insert("SLURM_SUBMIT_HOST".to_owned(), host.trim().to_owned());
    }
}

/// Runs a command as a job in the foreground.
pub async fn run(client: &Client, format: Format, line: Vec<String>) -> anyhow::Result<ExitCode> {
    let line = job_line::parse(line)?;
    if line.rest.is_empty() {
        bail!("there is no command to run; for example `berth run hostname`");
    }
    // An empty script carries the options.
    let parsed = parse_script_at("#!/bin/sh\n:\n", &line.options, here()).map_err(faults)?;
    for warning in &parsed.warnings {
        eprintln!("warning: {}; {}", warning.detail, warning.help);
    }
    let mut spec = JobSpec { script: None, command: Some(line.rest.clone()), ..parsed.spec };
    spec.name = spec.name.or_else(|| std::path::Path::new(&line.rest[0]).file_name().map(|n| n.to_string_lossy().into_owned()));
    add_environment(&mut spec, &parsed.export);
    if line.test_only {
        return dry_run(client, format, &spec).await;
    }
    // As with srun, what we read the job's tasks read.
    if spec.stdin.as_deref() == Some("all") {
        spec.stdin = None;
    }
    spec.stream_stdin = spec.stdin.is_none() && spec.array.is_none() && berth_runtime::files::has_input();
    // Before the job is there, so that none is left behind.
    let mut signals = signals::ends()?;
    let answer = post(client, &spec).await?;
    let job = answer["job_id"].to_string();
    tokio::select! {
        outcome = logs::follow(client, &job, None, true) => outcome,
        error = input::pass_on(client, &job, spec.stream_stdin) => {
            // Half an input is worse than none.
            cancel(client, &job).await?;
            Err(error.context("standard input"))
        }
        Some(number) = signals.recv() => {
            cancel(client, &job).await?;
            Ok(ExitCode::from(128 + number))
        }
    }
}

async fn cancel(client: &Client, job: &str) -> anyhow::Result<()> {
    eprintln!("berth: cancelling job {job}");
    let key = uuid::Uuid::new_v4().to_string();
    client.post(&format!("/v1/jobs/{job}:cancel"), &serde_json::json!({}), Some(&key)).await.map(|_| ())
}
