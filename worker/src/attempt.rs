//! An attempt's part on this node, from its prolog to its epilog. One actor for each attempt; its input is the desired state.

mod journal;
mod suspend;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use berth_model::job::{JobKind, signal_number};
use berth_model::worker::{Assignment, Fact, Phase, StepAssignment};
use berth_model::{JobId, StepId};
use berth_runtime::fence::since_boot;
use berth_runtime::{LaunchError, Runtime};
use tokio::sync::{mpsc, watch};

use crate::agent::Shared;
use crate::hooks;
use crate::input::Input;
use crate::launch::{self, AttemptDirs};
use crate::socket::JobSocket;
use crate::step::{Orders, Step, StepEvent, Stop, Why, cause_text, is_nodes_fault};
use journal::Journal;
use suspend::Standing;

/// What the service wants of an attempt.
#[derive(Clone, Debug)]
pub enum Wish {
    /// As it says.
    Assigned(Arc<Assignment>),
    /// The service could not be reached for too long: end all at once, and say so when it answers again.
    CutOff(Arc<Assignment>),
    /// It is not on the list: nothing of it may run.
    Gone,
}

/// The actor.
pub struct Attempt {
    shared: Arc<Shared>,
    job: JobId,
    attempt: u32,
    wish: watch::Receiver<Wish>,
    dirs: AttemptDirs,
    journal: Journal,
    steps: BTreeMap<StepId, Running>,
    /// Steps that are over here, until the service stops listing them.
    over: Vec<StepId>,
    events: mpsc::UnboundedSender<(StepId, StepEvent)>,
    inbox: mpsc::UnboundedReceiver<(StepId, StepEvent)>,
    is_prepared: bool,
    is_warned: bool,
    standing: Standing,
    /// The attempt's own step has ended, or could not begin.
    is_decided: bool,
}

struct Running {
    orders: watch::Sender<Orders>,
    runtime: Arc<dyn Runtime>,
    key: berth_runtime::StepKey,
    has_started: bool,
}

impl Attempt {
    pub fn new(shared: Arc<Shared>, first: &Assignment, wish: watch::Receiver<Wish>) -> Attempt {
        let (job, attempt) = (first.job_id, first.attempt);
        let root = attempt_dir(&shared, job, attempt);
        let dirs = AttemptDirs { scratch: root.join("scratch"), socket: shared.sockets.join(format!("{job}-{attempt}.sock")), root };
        let (events, inbox) = mpsc::unbounded_channel();
        Attempt {
            journal: Journal::open(&dirs.root),
            shared,
            job,
            attempt,
            wish,
            dirs,
            steps: BTreeMap::new(),
            over: Vec::new(),
            events,
            inbox,
            is_prepared: false,
            is_warned: false,
            standing: Standing::default(),
            is_decided: false,
        }
    }

    /// Runs to the end and reports it.
    pub async fn run(mut self) {
        let mut socket = None;
        let first = self.wish.borrow().clone();
        if let Wish::Assigned(assignment) = first
            && assignment.phase != Phase::Stop
        {
            match self.set_up(&assignment).await {
                Ok(opened) => socket = Some(opened),
                Err(failure) => self.report_failure(&failure.0, failure.1, true),
            }
        }
        loop {
            let wish = self.wish.borrow_and_update().clone();
            let assignment = match &wish {
                Wish::Assigned(assignment) | Wish::CutOff(assignment) => Some(assignment.clone()),
                Wish::Gone => None,
            };
            if let Some(assignment) = &assignment {
                if let Some(socket) = &socket {
                    JobSocket::set_token(socket, &assignment.job_token);
                }
                self.reconcile(assignment).await;
                self.warn_if_due(assignment).await;
            }
            let stop = self.stop(&wish);
            if let Some(assignment) = &assignment {
                self.follow_suspension(assignment, stop.is_some()).await;
            }
            if stop.is_some() {
                self.order_all(|orders| orders.stop = stricter(orders.stop, stop));
            }
            if self.steps.is_empty() && (stop.is_some() || assignment.as_ref().is_none_or(|a| self.is_over(a))) {
                break;
            }
            let pause = [assignment.and_then(|a| self.until_timer(&a)), self.until_frozen()].into_iter().flatten().min();
            tokio::select! {
                changed = self.wish.changed() => if changed.is_err() {
                    // The worker ends; what runs goes on without it.
                    return;
                },
                event = self.inbox.recv() => if let Some((step, event)) = event {
                    self.take(step, event);
                },
                () = sleep_for(pause) => {}
            }
        }
        drop(socket);
        self.finish().await;
    }

    /// Folders, the job's socket, the prolog.
    async fn set_up(&mut self, assignment: &Assignment) -> Result<JobSocket, (String, String)> {
        let failed = |e: std::io::Error| ("node_error".to_owned(), format!("{}: {e}", self.dirs.root.display()));
        std::fs::create_dir_all(&self.dirs.scratch).map_err(failed)?;
        if let Some(user) = self.shared.node.run_as {
            std::os::unix::fs::chown(&self.dirs.scratch, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        let socket = JobSocket::open(&self.dirs.socket, self.job, &assignment.job_token, self.shared.clone(), self.shared.node.run_as)
            .map_err(failed)?;
        if let Some(prolog) = &self.shared.hooks.prolog
            && !self.journal.data.is_prolog_done
        {
            hooks::run(prolog, &hook_environment(assignment)).await.map_err(|detail| ("prolog".to_owned(), detail))?;
            self.journal.update(|j| j.is_prolog_done = true);
        }
        Ok(socket)
    }

    fn report_failure(&mut self, cause: &str, detail: String, is_nodes_fault: bool) {
        self.is_decided = true;
        tracing::warn!(job = %self.job, attempt = self.attempt, cause, detail, "the attempt cannot start here");
        self.shared.outbox.push(Fact::PrepareFailed {
            job_id: self.job,
            attempt: self.attempt,
            cause: cause.to_owned(),
            detail,
            is_nodes_fault,
        });
    }

    /// Starts what is new, passes on orders and signals.
    async fn reconcile(&mut self, assignment: &Assignment) {
        self.over.retain(|step| assignment.steps.iter().any(|s| s.step == *step));
        // Nothing of its own starts a component's clock.
        if assignment.phase == Phase::Go && is_component(assignment) && self.journal.data.started_ms.is_none() {
            self.journal.update(|j| j.started_ms = Some(since_boot().as_millis() as u64));
        }
        if assignment.phase != Phase::Stop && !self.is_decided {
            for step in &assignment.steps {
                self.reconcile_step(assignment, step);
            }
            if assignment.phase == Phase::Prepare && assignment.steps.is_empty() {
                self.report_prepared();
            }
        }
        for signal in &assignment.signals {
            if signal.id > self.journal.data.last_signal {
                self.signal(signal.signal, signal.step, signal.is_full).await;
                self.journal.update(|j| j.last_signal = signal.id);
            }
        }
    }

    fn reconcile_step(&mut self, assignment: &Assignment, step: &StepAssignment) {
        if self.over.contains(&step.step) {
            return;
        }
        if !self.steps.contains_key(&step.step) {
            // Even if it is to stop: an earlier worker process may have started it.
            let start = self.start();
            let spec = launch::launch_spec(assignment, step, &self.dirs, &self.shared.node, start);
            let running = self.launch(assignment, step, spec);
            self.steps.insert(step.step, running);
        }
        let Some(running) = self.steps.get(&step.step) else { return };
        let stop = (step.phase == Phase::Stop).then(|| Stop { grace: self.shared.kill_wait(), why: Why::Cancelled });
        running.orders.send_if_modified(|orders| {
            let before = *orders;
            orders.go |= step.phase == Phase::Go && assignment.suspend.is_none();
            orders.stop = stricter(orders.stop, stop);
            *orders != before
        });
    }

    async fn signal(&self, signal: i32, step: Option<StepId>, is_full: bool) {
        for (id, running) in &self.steps {
            // Slurm's scancel --signal: all steps but the batch shell, unless it says --full.
            let is_meant = step.map_or(is_full || *id != StepId::Batch, |step| step == *id);
            if is_meant && running.has_started {
                let _ = running.runtime.signal(&running.key, signal, is_full).await;
            }
        }
    }

    /// Why all must end now, if it must.
    fn stop(&self, wish: &Wish) -> Option<Stop> {
        match wish {
            Wish::Gone => Some(Stop { grace: Duration::ZERO, why: Why::Over }),
            Wish::CutOff(_) => Some(Stop { grace: Duration::ZERO, why: Why::CutOff }),
            Wish::Assigned(assignment) if assignment.phase == Phase::Stop => {
                let grace = assignment.stop.map_or(0, |s| s.grace_seconds);
                let why = assignment.stop.map_or(Why::Over, |s| s.reason.into());
                Some(Stop { grace: Duration::from_secs(grace), why })
            }
            Wish::Assigned(_) if self.is_decided => Some(Stop { grace: Duration::ZERO, why: Why::Over }),
            Wish::Assigned(assignment) if self.left(assignment).is_some_and(|left| left.is_zero()) => {
                Some(Stop { grace: self.shared.kill_wait(), why: Why::TimeLimit })
            }
            Wish::Assigned(_) => None,
        }
    }

    /// When the attempt's own step began here; now, if it has not. Written down with the start of the step, which follows.
    fn start(&mut self) -> jiff::Timestamp {
        let began = self.journal.data.started_ms.map_or_else(since_boot, Duration::from_millis);
        *self.journal.data.told_start.get_or_insert_with(|| jiff::Timestamp::now() - since_boot().saturating_sub(began))
    }

    /// Time left until the limit, once it has started.
    fn left(&self, assignment: &Assignment) -> Option<Duration> {
        let started = self.journal.data.started_ms?;
        let limit = Duration::from_secs(assignment.context.time_limit_seconds) + self.stood_still();
        Some((Duration::from_millis(started) + limit).saturating_sub(since_boot()))
    }

    /// Until the time limit or its warning, whichever comes next; `None` once the limit has passed or before the start.
    fn until_timer(&self, assignment: &Assignment) -> Option<Duration> {
        if self.journal.data.suspended.is_some() {
            return None;
        }
        let left = self.left(assignment).filter(|left| !left.is_zero())?;
        let warning = assignment.context.spec.signal.as_ref().filter(|_| !self.is_warned);
        Some(warning.map_or(left, |w| left.saturating_sub(Duration::from_secs(w.seconds_before))))
    }

    /// `--signal`: sent once, before the time limit.
    async fn warn_if_due(&mut self, assignment: &Assignment) {
        let Some(warning) = &assignment.context.spec.signal else { return };
        let lead = Duration::from_secs(warning.seconds_before);
        if !self.is_warned && self.left(assignment).is_some_and(|left| left <= lead) {
            self.is_warned = true;
            let signal = signal_number(&warning.signal).unwrap_or(libc::SIGUSR1);
            let is_batch_only = warning.batch_only.then_some(StepId::Batch);
            self.signal(signal, is_batch_only, false).await;
        }
    }

    fn order_all(&self, order: impl Fn(&mut Orders)) {
        for running in self.steps.values() {
            running.orders.send_if_modified(|orders| {
                let before = *orders;
                order(orders);
                *orders != before
            });
        }
    }

    fn take(&mut self, step: StepId, event: StepEvent) {
        match event {
            StepEvent::Prepared => self.report_prepared(),
            StepEvent::Started => {
                if let Some(running) = self.steps.get_mut(&step) {
                    running.has_started = true;
                }
                if self.journal.data.started_ms.is_none() {
                    self.journal.update(|j| j.started_ms = Some(since_boot().as_millis() as u64));
                }
            }
            StepEvent::Over { ran } => {
                self.steps.remove(&step);
                self.over.push(step);
                let is_deciding = match &*self.wish.borrow() {
                    Wish::Assigned(a) => step == StepId::Batch || a.context.spec.script.is_none() && !is_component(a),
                    _ => false,
                };
                self.is_decided |= ran && is_deciding;
            }
            StepEvent::Failed(LaunchError { cause, detail }) => {
                self.steps.remove(&step);
                self.over.push(step);
                self.report_failure(&cause_text(cause), detail, is_nodes_fault(cause));
            }
        }
    }

    /// Once, when the gang's go is waited for.
    fn report_prepared(&mut self) {
        let waits = matches!(&*self.wish.borrow(), Wish::Assigned(a) if a.phase == Phase::Prepare);
        if waits && !self.is_prepared && !self.is_decided {
            self.is_prepared = true;
            self.shared.outbox.push(Fact::Prepared { job_id: self.job, attempt: self.attempt });
        }
    }

    /// The attempt's own step has ended here, in this process or, as the service knows, in an earlier one.
    fn is_over(&self, assignment: &Assignment) -> bool {
        let has_own_step = (assignment.context.spec.script.is_none() || assignment.node_index == 0) && !is_component(assignment);
        let is_listed = assignment.steps.iter().any(|s| s.spec.is_none());
        self.is_decided || (assignment.phase == Phase::Go && has_own_step && !is_listed)
    }

    /// Epilog, folders, the last report.
    async fn finish(self) {
        let mut epilog_failed = None;
        if let Some(epilog) = &self.shared.hooks.epilog {
            let env = match &*self.wish.borrow() {
                Wish::Assigned(a) | Wish::CutOff(a) => hook_environment(a),
                Wish::Gone => BTreeMap::from([("SLURM_JOB_ID".to_owned(), self.job.to_string())]),
            };
            epilog_failed = hooks::run(epilog, &env).await.err();
        }
        self.shared.outbox.push(Fact::Finished { job_id: self.job, attempt: self.attempt, epilog_failed });
        let _ = std::fs::remove_dir_all(&self.dirs.root);
    }
}

/// A further component of a heterogeneous job: it holds its nodes until it is told to stop, and runs what the leader's script opens there.
fn is_component(assignment: &Assignment) -> bool {
    assignment.context.spec.kind == JobKind::Component
}

/// For ever if there is nothing to wait for.
async fn sleep_for(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

impl Attempt {
    fn launch(&self, assignment: &Assignment, step: &StepAssignment, spec: berth_runtime::LaunchSpec) -> Running {
        let runtime = self.shared.runtime_for(spec.image.is_some());
        let (orders, seen) = watch::channel(Orders::default());
        let key = spec.key.clone();
        let job = assignment.job_id;
        let input = spec.tasks.iter().find_map(|t| t.stdin_spool.clone()).map(|spool| Input {
            shared: self.shared.clone(),
            path: match &step.spec {
                Some(_) => format!("/v1/jobs/{job}/steps/{}/stdin", step.step),
                None => format!("/v1/jobs/{job}/stdin"),
            },
            job_token: assignment.job_token.clone(),
            spool,
        });
        let step = Step {
            id: step.step,
            job: assignment.job_id,
            attempt: assignment.attempt,
            is_first: step.spec.is_none(),
            spec,
            time_limit: step.spec.as_ref().and_then(|s| s.time_limit_seconds).map(Duration::from_secs),
            runtime: runtime.clone(),
            outbox: self.shared.outbox.clone(),
            uploads: self.shared.uploads.clone(),
            metrics: self.shared.metrics.clone(),
            input,
            orders: seen,
            events: self.events.clone(),
            reported: None,
        };
        tokio::spawn(step.run());
        Running { orders, runtime, key, has_started: false }
    }
}

/// Of two orders the one that leaves less time.
fn stricter(old: Option<Stop>, new: Option<Stop>) -> Option<Stop> {
    match (old, new) {
        (Some(old), Some(new)) if new.grace < old.grace => Some(Stop { why: old.why, ..new }),
        (Some(old), _) => Some(old),
        (None, new) => new,
    }
}

/// What prolog and epilog are told: the batch script's variables.
fn hook_environment(assignment: &Assignment) -> BTreeMap<String, String> {
    berth_model::environment::batch_environment(assignment)
}

pub fn attempt_dir(shared: &Shared, job: JobId, attempt: u32) -> PathBuf {
    shared.jobs.join(format!("{job}-{attempt}"))
}
