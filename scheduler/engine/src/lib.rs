//! Berth's planner: events and a clock reading in, a plan with reasons out.
//!
//! Pure: no I/O, no wall clock, no randomness. The same events and the same instants give the same plans. The policy is Slurm's
//! (backfill over a profile of free resources); where it differs, time is half-open intervals and devices are planned singly.
//!
//! The rooms, in the order of a plan: [`eligible`] and [`priority`] ([`queue`], [`order`], [`predict`]), [`shape`] and [`fit`] ([`counted`]), [`profile`] ([`timeline`],
//! [`gaps`], [`filling`]) and [`search`] ([`singles`], [`floors`], [`licenses`], [`sharing`], [`shared_gpus`]), [`backfill`], [`preempt`] ([`victims`], [`claims`]), [`suspended`], [`place`], [`explain`] ([`verdicts`], [`features`]). [`fleet`] keeps the
//! nodes and what reservations keep of them ([`views`], [`ways`], [`reserved`]), [`accounts`] who asks ([`shares`], [`usage`]) and what limits count ([`ledger`], [`limits`]), [`engine`] the state that events change, [`full`] and [`quick`] the two plans, [`dry_run`] a plan that is only asked about, and [`choose`] which nodes a reservation gets.

mod accounts;
mod amount;
mod backfill;
mod bookings;
mod choose;
mod claims;
mod cohorts;
mod components;
mod counted;
mod dry_run;
mod eligible;
mod engine;
mod explain;
mod features;
mod filling;
mod fit;
mod fleet;
mod floors;
mod full;
mod gaps;
mod keys;
mod ledger;
mod licenses;
mod limits;
mod order;
mod pass;
mod place;
mod plan;
mod predict;
mod preempt;
mod priority;
mod profile;
mod queue;
mod quick;
mod reserved;
mod search;
mod shape;
mod shared_gpus;
mod shares;
mod sharing;
mod singles;
mod standing;
mod suspended;
mod tiers;
mod timeline;
mod usage;
mod verdicts;
mod victims;
mod views;
mod ways;

pub use choose::{Shortage, choose_nodes, replace_nodes};
pub use dry_run::DryRun;
pub use engine::{Engine, Settings};
pub use fleet::Membership;
pub use order::{Order, Rest};
pub use plan::{NewClaim, Plan, Preemption, Resume, Start};
pub use usage::fold as fold_usage;
