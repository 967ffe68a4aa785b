//! The record of decisions: all that the engine was told, in order, and what it answered. Since the engine is a pure function, the
//! record is enough to make any past plan again, to the byte.
//!
//! [`Recorder`] is the engine as the leader holds it; [`replay`] goes through a record and compares.

pub mod replay;
mod writer;

use berth_engine::Plan;
use berth_model::JobId;
use berth_model::event::Event;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use writer::Recorder;

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// A new engine. The events that follow tell it everything.
    Checkpoint {
        at: Timestamp,
        /// Berth's, since another version may decide otherwise.
        version: String,
        /// The leader's term.
        epoch: i64,
    },
    Event {
        event: Box<Event>,
    },
    /// The database took a start or refused it; either way the job's events say what it holds.
    Settled {
        job: JobId,
        array_index: Option<u32>,
    },
    Plan(PlanRecord),
}

/// A plan as recorded: what it started, and a digest of the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Counted from 1 in each term.
    pub number: u64,
    /// The clock that the engine was given.
    pub at: Timestamp,
    /// A quick plan was asked for. The engine may still have made a full one.
    pub is_quick: bool,
    pub starts: Vec<StartRecord>,
    /// SHA-256 of the plan's JSON, in hexadecimal.
    pub sha256: String,
}

/// A start as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    pub job: JobId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_index: Option<u32>,
}

/// SHA-256 of a plan's JSON, in hexadecimal: equal for plans that are equal to the byte.
pub fn digest(plan: &Plan) -> String {
    let mut hash = Hashing(Sha256::new());
    // A plan has string keys and finite numbers alone, and hashing does not fail.
    serde_json::to_writer(&mut hash, plan).unwrap_or_default();
    hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Hashing(Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
