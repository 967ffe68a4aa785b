//! The node agent. It asks the service what should run on its node, makes it so, and reports what happened.
//!
//! A job's way through here: [`agent`] polls the desired state and keeps an actor for each attempt; [`attempt`] brings the node's
//! part of an attempt from its prolog to its epilog, with a [`step`] for each step; [`launch`] turns an assignment into what a driver
//! is given; [`output`] uploads what tasks write; [`reports`] sends facts, numbered, until they are taken. [`socket`] lets `srun`
//! inside a job speak to the service. Nothing is kept but on disk and in the drivers, so a restarted agent goes on where it was.

mod agent;
mod attempt;
mod client;
mod config;
mod discover;
mod hooks;
mod input;
mod launch;
mod metrics;
mod output;
mod reports;
mod socket;
mod step;

pub use agent::run;
pub use config::{Containers, Declared, Hooks, WorkerConfig};
pub use discover::discover;
pub use metrics::WorkerMetrics;

/// What ends a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("{0}")]
    Config(String),
    #[error("the service refused this node: {0}")]
    Refused(String),
    #[error("another worker has registered as {0}; two must not share a node name")]
    Superseded(String),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
}

/// Names what was being done when the disk failed.
pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> WorkerError {
    let what = what.into();
    move |source| WorkerError::Io { what, source }
}

/// Waits until the worker is told to stop.
pub(crate) async fn stopped(stopping: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}
