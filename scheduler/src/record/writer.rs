//! The engine with a pen: whatever it is told goes into the record first.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use berth_engine::{Engine, Plan};
use berth_model::JobId;
use berth_model::event::Event;
use berth_store::decisions::DecisionChunk;
use jiff::Timestamp;
use zstd::stream::write::Encoder;

use super::{PlanRecord, StartRecord, Step, digest};

/// How hard to compress: the leader's time is dearer than space.
const LEVEL: i32 = 1;
/// A chunk with news is handed over after this time, or at this size; one that only says that nothing happened, later.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(15);
const LARGE: usize = 4 << 20;

/// The leader's engine, with its record.
pub struct Recorder {
    engine: Engine,
    epoch: i64,
    /// Number of the next chunk, and of the last plan.
    chunk: i64,
    plans: u64,
    is_on: bool,
    open: Option<Open>,
}

/// A chunk that is being written.
struct Open {
    lines: BufWriter<Encoder<'static, Vec<u8>>>,
    is_checkpoint: bool,
    has_news: bool,
    first_at: Timestamp,
    last_at: Timestamp,
    since: Instant,
}

impl Recorder {
    /// Begins a record of the term `epoch`. `is_on`: policy wants one.
    pub fn new(epoch: i64, is_on: bool) -> Recorder {
        Recorder { engine: Engine::new(), epoch, chunk: 0, plans: 0, is_on, open: None }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine anew; the events that follow must tell it everything. What was not yet handed over is returned.
    pub fn checkpoint(&mut self, now: Timestamp, is_on: bool) -> io::Result<Option<DecisionChunk>> {
        let rest = self.take()?;
        self.engine = Engine::new();
        self.is_on = is_on;
        self.write(now, &Step::Checkpoint { at: now, version: env!("CARGO_PKG_VERSION").to_owned(), epoch: self.epoch }, true)?;
        if let Some(open) = &mut self.open {
            open.is_checkpoint = true;
        }
        Ok(rest)
    }

    pub fn apply(&mut self, event: Event) -> io::Result<()> {
        let step = Step::Event { event: Box::new(event) };
        self.write(Timestamp::now(), &step, true)?;
        if let Step::Event { event } = step {
            self.engine.apply(*event);
        }
        Ok(())
    }

    /// The database took a start.
    pub fn confirm(&mut self, job: JobId, array_index: Option<u32>) -> io::Result<()> {
        self.engine.confirm(job, array_index);
        self.write(Timestamp::now(), &Step::Settled { job, array_index }, true)
    }

    /// The database refused a start.
    pub fn retract(&mut self, job: JobId, array_index: Option<u32>) -> io::Result<()> {
        self.engine.retract(job, array_index);
        self.write(Timestamp::now(), &Step::Settled { job, array_index }, true)
    }

    /// Plans, and returns the plan's number in this term.
    pub fn plan(&mut self, now: Timestamp, is_quick: bool) -> io::Result<(Plan, u64)> {
        let plan = if is_quick { self.engine.quick_plan(now) } else { self.engine.plan(now) };
        self.plans += 1;
        if self.is_on {
            let starts = plan.starts.iter().map(|s| StartRecord { job: s.job, array_index: s.array_index }).collect();
            let record = PlanRecord { number: self.plans, at: now, is_quick, starts, sha256: digest(&plan) };
            let has_news = !plan.starts.is_empty();
            self.write(now, &Step::Plan(record), has_news)?;
        }
        Ok((plan, self.plans))
    }

    /// The chunk that is due.
    pub fn due(&mut self) -> io::Result<Option<DecisionChunk>> {
        let is_due = self.open.as_ref().is_some_and(|open| {
            open.since.elapsed() >= if open.has_news { SOON } else { LATER } || open.lines.get_ref().get_ref().len() >= LARGE
        });
        if is_due { self.take() } else { Ok(None) }
    }

    /// What is not handed over yet.
    pub fn take(&mut self) -> io::Result<Option<DecisionChunk>> {
        let Some(open) = self.open.take() else { return Ok(None) };
        let encoder = open.lines.into_inner().map_err(io::IntoInnerError::into_error)?;
        let body = encoder.finish()?;
        let chunk =
            DecisionChunk { number: self.chunk, is_checkpoint: open.is_checkpoint, first_at: open.first_at, last_at: open.last_at, body };
        self.chunk += 1;
        Ok(Some(chunk))
    }

    fn write(&mut self, at: Timestamp, step: &Step, is_news: bool) -> io::Result<()> {
        if !self.is_on {
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let lines = BufWriter::new(Encoder::new(Vec::new(), LEVEL)?);
                let open = Open { lines, is_checkpoint: false, has_news: false, first_at: at, last_at: at, since: Instant::now() };
                self.open.insert(open)
            }
        };
        open.has_news |= is_news;
        open.last_at = open.last_at.max(at);
        serde_json::to_writer(&mut open.lines, step)?;
        open.lines.write_all(b"\n")
    }
}
