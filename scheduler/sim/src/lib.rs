//! A discrete-event simulator around the real engine, and replay of workload traces. The same input gives the same schedule, bit for
//! bit.
//!
//! The rooms: [`trace`] reads a trace, [`cluster`] lays it on a cluster, [`policy`] says how the engine is set, [`run`] is the loop,
//! [`metrics`] measures the schedule, [`mod@replay`] puts these together, [`plot`] draws how jobs fared;
//! [`history`] replays what a service recorded.

pub mod cluster;
pub mod history;
pub mod metrics;
pub mod plot;
pub mod policy;
pub mod replay;
pub mod run;
pub mod trace;

pub use run::{Outcome, Schedule, SimJob, simulate};
