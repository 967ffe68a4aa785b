//! What Berth puts inside a job, as one static program. Called `srun` it opens a parallel step; as `init` it is
//! process 1 of a step's container.

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
        _ => {
            eprintln!("This program is part of Berth and runs as srun inside a job.");
            ExitCode::FAILURE
        }
    }
}
