//! Going through a record: the engine is told the same and must answer the same.

use std::io::{self, BufRead};

use berth_engine::{Engine, Plan};
use berth_model::JobId;
use berth_model::verdict::JobVerdict;
use jiff::Timestamp;
use serde::Serialize;

use super::{PlanRecord, StartRecord, Step, digest};

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The last plan made at or before this time.
    At(Timestamp),
    /// The plan that started a job or, of an array, a task.
    Start { job: JobId, array_index: Option<u32> },
}

/// What a replay found.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// When the record's checkpoint was made, of which term, by which version.
    pub checkpoint: Timestamp,
    pub epoch: i64,
    pub version: String,
    pub events: u64,
    pub plans: u64,
    /// The first plan that came out otherwise than recorded. There should be none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs_at: Option<PlanRecord>,
    /// The plan asked for, as recorded and as made again.
    pub record: PlanRecord,
    pub plan: Plan,
    /// Of the job asked for: what the last plan before said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<JobVerdict>,
    /// Of the job asked for: jobs ahead of it in the queue, at most ten, that this plan left waiting, with what held them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<JobVerdict>,
}

/// Why a record cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    Read(io::Error),
    /// A line of it is no step that this version knows.
    Line(u64, serde_json::Error),
    /// It does not begin with a checkpoint.
    NoCheckpoint,
    /// It ends before the plan asked for.
    NotReached,
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Read(error) => write!(f, "the record cannot be read: {error}"),
            ReplayError::Line(line, error) => write!(f, "line {line} of the record is none that this version knows: {error}"),
            ReplayError::NoCheckpoint => write!(f, "the record does not begin with a checkpoint"),
            ReplayError::NotReached => write!(f, "the record has no such plan"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// The state in the middle of a replay.
struct Run {
    engine: Engine,
    checkpoint: (Timestamp, i64, String),
    events: u64,
    plans: u64,
    differs_at: Option<PlanRecord>,
    /// What plans last said of the job asked for and of those ahead of it.
    before: Option<JobVerdict>,
    last: Option<(PlanRecord, Plan)>,
}

/// Replays JSON lines up to `target`.
pub fn replay(record: impl BufRead, target: Target) -> Result<Replayed, ReplayError> {
    let mut run: Option<Run> = None;
    for (number, line) in record.lines().enumerate() {
        let line = line.map_err(ReplayError::Read)?;
        let step: Step = serde_json::from_str(&line).map_err(|error| ReplayError::Line(number as u64 + 1, error))?;
        match (step, &mut run) {
            (Step::Checkpoint { at, version, epoch }, run) => {
                if matches!(target, Target::At(until) if at > until) {
                    break;
                }
                let last = run.take().and_then(|run| run.last);
                let checkpoint = (at, epoch, version);
                let begun = Run { engine: Engine::new(), checkpoint, events: 0, plans: 0, differs_at: None, before: None, last };
                *run = Some(begun);
            }
            (_, None) => return Err(ReplayError::NoCheckpoint),
            (Step::Event { event }, Some(run)) => {
                run.events += 1;
                run.engine.apply(*event);
            }
            (Step::Settled { job, array_index }, Some(run)) => run.engine.confirm(job, array_index),
            (Step::Plan(record), Some(run)) => {
                if matches!(target, Target::At(until) if record.at > until) {
                    break;
                }
                run.plan(record, target);
                if run.is_reached(target) {
                    break;
                }
            }
        }
    }
    run.and_then(|run| run.finish(target)).ok_or(ReplayError::NotReached)
}

impl Run {
    fn plan(&mut self, record: PlanRecord, target: Target) {
        if let (Target::Start { job, .. }, Some((_, plan))) = (target, &mut self.last)
            && let Some(at) = plan.verdicts.iter().position(|v| v.job == job)
        {
            self.before = Some(plan.verdicts.swap_remove(at));
        }
        let plan = if record.is_quick { self.engine.quick_plan(record.at) } else { self.engine.plan(record.at) };
        self.plans += 1;
        if self.differs_at.is_none() && digest(&plan) != record.sha256 {
            self.differs_at = Some(record.clone());
        }
        self.last = Some((record, plan));
    }

    fn is_reached(&self, target: Target) -> bool {
        match (target, &self.last) {
            (Target::Start { job, array_index }, Some((record, _))) => record.starts.contains(&StartRecord { job, array_index }),
            _ => false,
        }
    }

    fn finish(self, target: Target) -> Option<Replayed> {
        if matches!(target, Target::Start { .. }) && !self.is_reached(target) {
            return None;
        }
        let (record, plan) = self.last?;
        let (checkpoint, epoch, version) = self.checkpoint;
        let ahead = self.before.as_ref().map(|v| v.ahead.clone()).unwrap_or_default();
        let passed = plan.verdicts.iter().filter(|v| ahead.contains(&v.job)).cloned().collect();
        let (events, plans, differs_at, before) = (self.events, self.plans, self.differs_at, self.before);
        Some(Replayed { checkpoint, epoch, version, events, plans, differs_at, record, plan, before, passed })
    }
}
