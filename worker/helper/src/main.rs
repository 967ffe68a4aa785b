//! What Berth puts inside a job, as one static program. Called `srun` it opens a parallel step.

mod agent;
mod options;
mod srun;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args();
    let name = args.next().unwrap_or_default();
    match name.rsplit('/').next() {
        Some("srun") => srun::main(args.collect()),
        _ => {
            eprintln!("This program is part of Berth and runs as srun inside a job.");
            ExitCode::FAILURE
        }
    }
}
