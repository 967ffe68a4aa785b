//! What Berth starts for each step, as one small static program: linked with nothing, it starts in a fraction of a millisecond and runs
//! in any image. Called `srun` it opens a parallel step, as `init` it is process 1 of a step's container, as `shim` it looks after a step
//! on the host.

mod agent;
mod options;
mod srun;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args();
    let name = args.next().unwrap_or_default();
    match name.rsplit('/').next() {
        Some("srun") => srun::main(args.collect()),
        Some("init") => match args.next() {
            // Process 1 of a container.
            Some(dir) => berth_runtime::container::init::run(dir.as_ref()),
            // A container that does nothing, by which a runtime is tried.
            None => ExitCode::SUCCESS,
        },
        Some("shim") => match args.next() {
            Some(dir) => shim(dir.as_ref()),
            None => ExitCode::FAILURE,
        },
        _ => {
            eprintln!("This program is part of Berth and runs as srun inside a job.");
            ExitCode::FAILURE
        }
    }
}

/// Looks after the step in `dir`. What went wrong is left there, since nobody reads our output.
fn shim(dir: &std::path::Path) -> ExitCode {
    match berth_runtime::shim::run(dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::fs::write(dir.join("shim.error"), error.to_string());
            ExitCode::FAILURE
        }
    }
}
