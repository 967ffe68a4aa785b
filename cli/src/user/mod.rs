//! What people type.

mod accounts;
pub mod args;
mod cancel;
mod client;
mod control;
mod explain;
mod history;
mod input;
mod job_line;
mod licenses;
mod logs;
mod nodes;
mod policy;
mod queue;
mod replay;
mod reservations;
mod settings_line;
mod share;
mod show;
mod signals;
mod simulate;
mod submit;
mod table;
mod token;
mod top;
mod update;

use std::process::ExitCode;

use args::{ClientArgs, Direction, Format, UserCommand};
use berth_model::state::JobState;
use client::Client;
use serde_json::{Value, json};
use settings_line::Of;

/// A reader that goes away (`| head`) ends the command quietly, as it does any other.
pub fn end_with_its_reader() {
    // Safety: the default action replaces the runtime's choice to ignore the signal; nothing of ours handles it.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Runs one command.
pub async fn run(command: UserCommand, settings: ClientArgs) -> anyhow::Result<ExitCode> {
    end_with_its_reader();
    let format = settings.format;
    if let UserCommand::Token(args) = &command
        && !args.join
    {
        println!("{}", token::mint(args)?);
        return Ok(ExitCode::SUCCESS);
    }
    // Help needs no service.
    if let UserCommand::Submit { line } | UserCommand::Run { line } = &command
        && job_line::wants_help(line)
    {
        print!("{}", job_line::help(matches!(command, UserCommand::Submit { .. })));
        return Ok(ExitCode::SUCCESS);
    }
    if let UserCommand::Simulate(args) = &command
        && args.history.is_none()
    {
        return done(simulate::simulate(format, args));
    }
    let client = Client::new(&settings)?;
    match command {
        UserCommand::Simulate(args) => done(history::simulate(&client, format, &args).await),
        UserCommand::Submit { line } => submit::submit(&client, format, line).await,
        UserCommand::Run { line } => submit::run(&client, format, line).await,
        UserCommand::Queue(args) => done(queue::queue(&client, format, args).await),
        UserCommand::Show { what } => done(show::show(&client, format, &what).await),
        UserCommand::Explain { job, brief } => done(explain::explain(&client, format, &job, brief).await),
        UserCommand::Update { jobs, line } => update::update(&client, &jobs, line).await,
        UserCommand::Replay(args) => done(replay::show(&client, format, &args).await),
        UserCommand::Cancel(args) => cancel::cancel(&client, args).await,
        UserCommand::Hold { jobs } => control::order(&client, jobs, "hold", &Value::Null, "held").await,
        UserCommand::Release { jobs } => control::order(&client, jobs, "release", &Value::Null, "released").await,
        UserCommand::Requeue { jobs, hold } => {
            control::order(&client, jobs, "requeue", &serde_json::json!({ "hold": hold }), "requeued").await
        }
        UserCommand::Suspend { jobs } => control::order(&client, jobs, "suspend", &Value::Null, "is suspended").await,
        UserCommand::Checkpoint { jobs } => control::order(&client, jobs, "checkpoint", &Value::Null, "has a checkpoint").await,
        UserCommand::Logs(args) => logs::logs(&client, args).await,
        UserCommand::Nodes { command: None } => done(queue::nodes(&client, format).await),
        UserCommand::Nodes { command: Some(command) } => nodes::change(&client, command).await,
        UserCommand::Down { node, reason } => nodes::each(&client, &[node], "down", &json!({ "reason": reason }), "is down").await,
        UserCommand::Power { direction: Direction::Up, nodes } => {
            nodes::each(&client, &nodes, "powerUp", &json!({}), "will be powered up").await
        }
        UserCommand::Power { direction: Direction::Down, nodes } => {
            nodes::each(&client, &nodes, "powerDown", &json!({}), "will be powered down once nothing runs there").await
        }
        UserCommand::Reboot { nodes, reason, asap, stays_down } => {
            let body = json!({ "reason": reason, "asap": asap, "stays_down": stays_down });
            nodes::each(&client, &nodes, "reboot", &body, "will be rebooted once nothing runs there").await
        }
        UserCommand::Drain { node, reason } => done(control::drain(&client, &node, &reason).await),
        UserCommand::Resume { what } => control::resume(&client, what).await,
        UserCommand::Top { watch } => done(top::top(&client, format, watch).await),
        UserCommand::Share(args) => done(share::share(&client, format, args).await),
        UserCommand::Prio(args) => done(share::prio(&client, format, args).await),
        UserCommand::Accounts(args) => done(accounts::accounts(&client, format, args).await),
        UserCommand::Tenants(args) => done(accounts::tenants(&client, format, args).await),
        UserCommand::Qos { command } => done(policy::named(&client, format, Of::Qos, command).await),
        UserCommand::Partitions { command } => done(policy::named(&client, format, Of::Partition, command).await),
        UserCommand::Reservations { command } => done(reservations::reservations(&client, format, command).await),
        UserCommand::Licenses { command } => done(licenses::licenses(&client, format, command).await),
        UserCommand::Policy { command } => done(policy::policy(&client, format, command).await),
        UserCommand::Token(args) => done(token::join(&client, format, &args).await),
        UserCommand::Whoami => done(show::whoami(&client, format).await),
    }
}

fn done(outcome: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Prints what scripts read. `true` if that was asked for.
fn print_data(format: Format, value: &impl serde::Serialize) -> anyhow::Result<bool> {
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(value)?),
        Format::Yaml => print!("{}", serde_yaml_ng::to_string(value)?),
        Format::Table | Format::Wide => return Ok(false),
    }
    Ok(true)
}

/// A path segment of the user's own text, so that it names one object and nothing else.
fn segment(text: &str) -> anyhow::Result<&str> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.+".contains(&b)) && !text.starts_with('.');
    let help = if text.contains('[') { "; this order takes one job or task (12, 12_3), `berth cancel` takes ranges, too" } else { "" };
    if is_plain { Ok(text) } else { anyhow::bail!("{text:?} is neither a number nor a name{help}") }
}

/// States of jobs that are not over.
fn open_states() -> impl Iterator<Item = JobState> {
    JobState::ALL.iter().copied().filter(|state| !state.is_end())
}

/// The job's state is one of its ends, or one that this version does not know.
fn is_over(job: &Value) -> bool {
    job["state"].as_str().and_then(|state| state.parse::<JobState>().ok()).is_none_or(JobState::is_end)
}

/// `1 task`, `2 tasks`.
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A field as text: empty if absent.
fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
