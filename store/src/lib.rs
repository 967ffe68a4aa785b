//! Every query Berth makes. The only crate that knows SQL.
//!
//! Objects that administrators write go through sea-orm entities ([`entity`]); sets of jobs, assignments and events go through
//! set-based SQL, one function a transaction, with the guards in the WHERE clause. [`wake`] tells waiting readers that something
//! changed; it is never the data.

pub mod admin;
pub mod db;
pub mod decisions;
pub mod entity;
pub mod error;
pub mod events;
pub mod feed;
pub mod history;
pub mod jobs;
pub mod keys;
pub mod lease;
pub mod licenses;
pub mod logs;
mod lost;
pub mod nodes;
pub mod plan;
pub mod power;
pub mod preempt;
pub mod reports;
pub mod reservations;
pub mod settle;
pub mod shares;
pub mod simulations;
pub mod steps;
pub mod suspend;
pub mod usage;
pub mod wake;
pub mod workers;

pub use db::Db;
pub use error::StoreError;
