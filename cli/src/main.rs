//! The one binary. [`service`] holds what runs as a service (`up`, `api`, `scheduler`, `worker`, `migrate`), [`user`] what people type
//! (`submit`, `queue`, `logs`, …), [`settings`] where settings come from.

mod args;
mod service;
mod settings;
mod user;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use args::{Args, Command};

fn main() -> ExitCode {
    let command = match settings::with_file(args::command()) {
        Ok(command) => command,
        Err(error) => return fail(&error),
    };
    let parsed = Args::from_arg_matches(&command.get_matches_from(protect(std::env::args_os()))).unwrap_or_else(|error| error.exit());
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
            user::end_with_its_reader();
            println!("{}", serde_json::to_string_pretty(&berth_api::openapi::document())?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Completion { shell } => {
            user::end_with_its_reader();
            clap_complete::generate(shell, &mut args::command(), "berth", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Shim { .. } => Ok(ExitCode::SUCCESS),
        Command::User(command) => user::run(command, args.client).await,
    }
}

/// What follows `submit` and `run` is sbatch's language, in which `-o` names a file: none of it is for us to read.
fn protect(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const WITH_VALUE: [&str; 6] = ["--config", "--server", "--token", "--token-file", "--format", "-o"];
    let mut kept: Vec<OsString> = Vec::new();
    let mut is_value = true;
    let mut is_past = false;
    for arg in args {
        let text = arg.to_str().unwrap_or_default().to_owned();
        kept.push(arg);
        // The first is this program's own name.
        if is_past || std::mem::replace(&mut is_value, WITH_VALUE.contains(&text.as_str())) || text.starts_with('-') {
            continue;
        }
        is_past = true;
        if text == "submit" || text == "run" {
            kept.push("--".into());
        }
    }
    kept
}

/// One line that says what went wrong, and one that says what to do, if the error knows.
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("berth: {error:#}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sbatchs_options_are_left_alone() {
        let protected = |line: &str| {
            let words = protect(line.split(' ').map(OsString::from)).into_iter().map(|w| w.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(protected("berth submit -o x.out s.sh"), "berth submit -- -o x.out s.sh");
        assert_eq!(protected("berth -o json --server http://x run -n2 run"), "berth -o json --server http://x run -- -n2 run");
        assert_eq!(protected("berth --server=run queue -o wide"), "berth --server=run queue -o wide");
        assert_eq!(protected("berth --token submit queue"), "berth --token submit queue");
    }
}
