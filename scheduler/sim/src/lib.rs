//! A discrete-event simulator around the real engine: jobs come at their submit times, run as long as they really would, and time
//! jumps from one event to the next. The same input gives the same schedule, bit for bit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use berth_engine::Engine;
use berth_model::event::{Event, JobSnapshot, RunningAttempt};
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;
use berth_model::{JobId, Seconds};
use jiff::{SignedDuration, Timestamp};

/// A job with what only the simulator knows.
#[derive(Clone, Debug)]
pub struct SimJob {
    /// Pending, with its submit time.
    pub job: JobSnapshot,
    /// How long it would run if nothing stopped it. The time limit does.
    pub runtime: Seconds,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub job: JobId,
    pub submitted: Timestamp,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub nodes: Vec<NodeAllocation>,
    pub is_timed_out: bool,
}

impl Outcome {
    /// Time in the queue.
    pub fn wait(&self) -> SignedDuration {
        self.started.duration_since(self.submitted)
    }
}

/// A finished simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// In order of their ends.
    pub outcomes: Vec<Outcome>,
    /// Jobs that no time would start.
    pub never_started: Vec<JobId>,
    /// Plans made.
    pub plans: u64,
}

/// What happens at an instant. Ends come before submissions, so that a job sees what was just freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    End(JobId),
    Submit(JobId),
}

/// Runs `jobs` on the world that `world` describes (policy, QOS, partitions, nodes) until nothing happens any more.
pub fn simulate(world: Vec<Event>, jobs: Vec<SimJob>) -> Schedule {
    let mut engine = Engine::new();
    world.into_iter().for_each(|event| engine.apply(event));
    let mut queue: BinaryHeap<Reverse<(Timestamp, Happening)>> =
        jobs.iter().map(|j| Reverse((j.job.submit_time, Happening::Submit(j.job.id)))).collect();
    let jobs: BTreeMap<JobId, SimJob> = jobs.into_iter().map(|j| (j.job.id, j)).collect();
    let mut running: BTreeMap<JobId, Outcome> = BTreeMap::new();
    let mut waiting: BTreeSet<JobId> = BTreeSet::new();
    let mut schedule = Schedule::default();
    let mut wake_at: Option<Timestamp> = None;
    loop {
        let next_event = queue.peek().map(|Reverse((at, _))| *at);
        // Time alone may start a job (a begin time); with nothing waiting it cannot.
        let Some(now) = [next_event, wake_at.filter(|_| !waiting.is_empty())].into_iter().flatten().min() else { break };
        while queue.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            match queue.pop() {
                Some(Reverse((_, Happening::End(id)))) => {
                    engine.apply(Event::JobGone(id));
                    schedule.outcomes.extend(running.remove(&id));
                }
                Some(Reverse((_, Happening::Submit(id)))) => {
                    engine.apply(Event::Job(Box::new(jobs[&id].job.clone())));
                    waiting.insert(id);
                }
                None => {}
            }
        }
        let plan = engine.plan(now);
        schedule.plans += 1;
        wake_at = plan.wake_at.filter(|at| *at > now);
        for start in plan.starts {
            let sim = &jobs[&start.job];
            engine.confirm(start.job, start.array_index);
            waiting.remove(&start.job);
            let attempt = RunningAttempt { number: 1, allocated_at: now, started_at: Some(now), nodes: start.nodes.clone() };
            let snapshot = JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..sim.job.clone() };
            engine.apply(Event::Job(Box::new(snapshot)));
            let length = sim.runtime.min(sim.job.time_limit);
            let ended = now + SignedDuration::from_secs(length as i64);
            queue.push(Reverse((ended, Happening::End(start.job))));
            let outcome = Outcome {
                job: start.job,
                submitted: sim.job.submit_time,
                started: now,
                ended,
                nodes: start.nodes,
                is_timed_out: sim.runtime > sim.job.time_limit,
            };
            running.insert(start.job, outcome);
        }
        for id in plan.expired {
            engine.apply(Event::JobGone(id));
            waiting.remove(&id);
            schedule.never_started.push(id);
        }
    }
    schedule.never_started.extend(waiting);
    schedule
}
