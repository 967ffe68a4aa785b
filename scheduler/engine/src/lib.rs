//! Berth's planner: events and a clock reading in, a plan with reasons out.
//!
//! Pure: no I/O, no wall clock, no randomness. The same events and the same instants give the same plans. The policy is Slurm's
//! (backfill over a profile of free resources); where it differs, time is half-open intervals and devices are planned singly.
//!
//! The rooms, in the order of a plan: [`eligible`], [`priority`], [`shape`] and [`fit`], [`profile`] and [`search`], [`backfill`],
//! [`place`], [`explain`]. [`fleet`] keeps the nodes, [`engine`] the state that events change.

mod amount;
mod backfill;
mod eligible;
mod engine;
mod explain;
mod fit;
mod fleet;
mod keys;
mod pass;
mod place;
mod plan;
mod priority;
mod profile;
mod search;
mod shape;
mod timeline;

pub use engine::{Engine, Settings};
pub use plan::{Plan, Start};
