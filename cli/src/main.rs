//! The one binary. [`service`] holds what runs as a service (`up`, `api`, `scheduler`, `worker`, `migrate`), [`user`] what people type
//! (`submit`, `queue`, `logs`, …), [`settings`] where settings come from.

mod args;
mod service;
mod settings;
mod user;

use std::process::ExitCode;

use clap::FromArgMatches as _;

use args::{Args, Command};

fn main() -> ExitCode {
    let command = match settings::with_file(args::command()) {
        Ok(command) => command,
        Err(error) => return fail(&error),
    };
    let parsed = Args::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit());
    // The shim is one small thread, not a runtime.
    if let Command::Shim { dir } = &parsed.command {
        return match berth_runtime::shim::run(dir) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.into()),
        };
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let outcome = runtime.block_on(run(parsed));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome.unwrap_or_else(|error| fail(&error))
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Up(up) => service::up::run(up).await.map(|()| ExitCode::SUCCESS),
        Command::Api(api) => service::api(api).await.map(|()| ExitCode::SUCCESS),
        Command::Scheduler(scheduler) => service::scheduler(scheduler).await.map(|()| ExitCode::SUCCESS),
        Command::Worker(worker) => service::worker::run(worker, args.client.server).await.map(|()| ExitCode::SUCCESS),
        Command::Migrate(database) => service::migrate(database).await.map(|()| ExitCode::SUCCESS),
        Command::Openapi => {
            println!("{}", serde_json::to_string_pretty(&berth_api::openapi::document())?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut args::command(), "berth", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Shim { .. } => Ok(ExitCode::SUCCESS),
        Command::User(command) => user::run(command, args.client).await,
    }
}

/// One line that says what went wrong, and one that says what to do, if the error knows.
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("berth: {error:#}");
    ExitCode::FAILURE
}
