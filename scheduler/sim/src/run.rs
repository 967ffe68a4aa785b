//! The loop: jobs come at their submit times, run as long as they really would, and time jumps from one event to the next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use berth_engine::{Engine, Settings};
use berth_model::event::{Event, JobSnapshot, RecentRuns, RunningAttempt};
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;
use berth_model::tres::Charge;
use berth_model::{JobId, Name, Seconds};
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

/// Runs `jobs` on the world that `world` describes (policy, QOS, partitions, nodes) until nothing happens any more, with a full plan
/// at each instant at which something does. `watch` is told after each plan how many jobs have ended.
pub fn simulate(settings: Settings, world: Vec<Event>, jobs: Vec<SimJob>, watch: &mut dyn FnMut(usize)) -> Schedule {
    let mut engine = Engine::with_settings(settings);
    world.into_iter().for_each(|event| engine.apply(event));
    let queue = jobs.iter().map(|j| Reverse((j.job.submit_time, Happening::Submit(j.job.id)))).collect();
    let jobs = jobs.into_iter().map(|j| (j.job.id, j)).collect();
    let mut run = Run {
        engine,
        jobs,
        queue,
        running: BTreeMap::new(),
        waiting: BTreeSet::new(),
        recent: BTreeMap::new(),
        schedule: Schedule::default(),
    };
    let mut wake_at: Option<Timestamp> = None;
    loop {
        let next_event = run.queue.peek().map(|Reverse((at, _))| *at);
        // Time alone may start a job (a begin time); with nothing waiting it cannot.
        let Some(now) = [next_event, wake_at.filter(|_| !run.waiting.is_empty())].into_iter().flatten().min() else { break };
        wake_at = run.step(now);
        watch(run.schedule.outcomes.len());
    }
    run.schedule.never_started.extend(run.waiting);
    run.schedule
}

struct Run {
    engine: Engine,
    jobs: BTreeMap<JobId, SimJob>,
    queue: BinaryHeap<Reverse<(Timestamp, Happening)>>,
    running: BTreeMap<JobId, Outcome>,
    waiting: BTreeSet<JobId>,
    /// By tenant and user.
    recent: BTreeMap<(Name, Name), RecentRuns>,
    schedule: Schedule,
}

impl Run {
    /// All that happens at one instant, and the plan that answers it. Returns when the plan wants to be made anew.
    fn step(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some(Reverse((_, happening))) = self.queue.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.queue.pop();
            match happening {
                Happening::End(id) => self.end(id),
                Happening::Submit(id) => {
                    self.engine.apply(Event::Job(Box::new(self.jobs[&id].job.clone())));
                    self.waiting.insert(id);
                }
            }
        }
        let plan = self.engine.plan(now);
        self.schedule.plans += 1;
        for start in plan.starts {
            self.engine.confirm(start.job, start.array_index);
            self.start(start.job, now, start.nodes, start.charge);
        }
        for id in plan.expired {
            self.engine.apply(Event::JobGone(id));
            self.waiting.remove(&id);
            self.schedule.never_started.push(id);
        }
        plan.wake_at.filter(|at| *at > now)
    }

    fn start(&mut self, id: JobId, now: Timestamp, nodes: Vec<NodeAllocation>, charge: Charge) {
        let sim = &self.jobs[&id];
        self.waiting.remove(&id);
        let attempt = RunningAttempt {
            number: 1,
            allocated_at: now,
            started_at: Some(now),
            charge,
            nodes: nodes.clone(),
            past: Vec::new(),
            checkpoint_at: None,
            is_requeueable: true,
            preempted: None,
            reservation: None,
            suspension: None,
            suspended_ms: 0,
        };
        let snapshot = JobSnapshot { state: JobState::Running, attempt: Some(attempt), ..sim.job.clone() };
        self.engine.apply(Event::Job(Box::new(snapshot)));
        let length = sim.runtime.min(sim.job.time_limit);
        let ended = now + SignedDuration::from_secs(length as i64);
        self.queue.push(Reverse((ended, Happening::End(id))));
        let outcome =
            Outcome { job: id, submitted: sim.job.submit_time, started: now, ended, nodes, is_timed_out: sim.runtime > sim.job.time_limit };
        self.running.insert(id, outcome);
    }

    fn end(&mut self, id: JobId) {
        let Some(outcome) = self.running.remove(&id) else { return };
        let job = &self.jobs[&id].job;
        let runs = self.recent.entry((job.tenant.clone(), job.user.clone())).or_insert_with(|| RecentRuns {
            tenant: job.tenant.clone(),
            user: job.user.clone(),
            seconds: Vec::new(),
        });
        runs.seconds.insert(0, outcome.ended.duration_since(outcome.started).as_secs().unsigned_abs());
        runs.seconds.truncate(RecentRuns::KEPT);
        self.engine.apply(Event::JobGone(id));
        self.engine.apply(Event::RecentRuns(runs.clone()));
        self.schedule.outcomes.push(outcome);
    }
}
