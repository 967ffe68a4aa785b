//! One step's life on this node: prepare, wait for the go, start, wait for its end, upload what it wrote, report.

use std::sync::Arc;
use std::time::Duration;

use berth_model::step::{StepFailure, StepResult, StopReason, TaskEnd};
use berth_model::worker::Fact;
use berth_model::{Bytes, JobId, StepId};
use berth_runtime::{LaunchCause, LaunchError, LaunchSpec, Runtime, StepExit, StepPhase, TaskExit, TaskSpec};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::input::Input;
use crate::launch;
use crate::metrics::WorkerMetrics;
use crate::output::{self, Source, Uploads};
use crate::reports::Outbox;

/// What the attempt wants of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    pub go: bool,
    pub stop: Option<Stop>,
    /// It is frozen: its time limit does not come nearer.
    pub is_still: bool,
}

/// An order to end. The strictest of several holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nobody need be told: what decides the job has ended, or it does not belong here any more.
    Over,
    /// By the job's user or `srun`.
    Cancelled,
    TimeLimit,
    Preempted,
    /// Another node of the gang failed.
    NodeFail,
    /// The node could not reach the service for too long.
    CutOff,
}

/// What a step tells its attempt.
#[derive(Debug)]
pub enum StepEvent {
    Prepared,
    Started,
    /// Over on this node; nothing of it runs. `ran`: it was reported as ended.
    Over {
        ran: bool,
    },
    /// It could not be prepared, and nothing of it is left.
    Failed(LaunchError),
}

/// All that a step needs.
pub struct Step {
    pub id: StepId,
    pub job: JobId,
    pub attempt: u32,
    /// The step whose failure to launch is the attempt's.
    pub is_first: bool,
    pub spec: LaunchSpec,
    pub time_limit: Option<Duration>,
    pub runtime: Arc<dyn Runtime>,
    pub outbox: Arc<Outbox>,
    pub uploads: Uploads,
    pub metrics: Arc<WorkerMetrics>,
    /// Its standard input, if that is passed on.
    pub input: Option<Input>,
    pub orders: watch::Receiver<Orders>,
    pub events: mpsc::UnboundedSender<(StepId, StepEvent)>,
    /// Number of the report of its end.
    pub reported: Option<u64>,
}

impl From<StopReason> for Why {
    fn from(reason: StopReason) -> Why {
        match reason {
            StopReason::Finished | StopReason::LaunchFailed => Why::Over,
            StopReason::Cancelled | StopReason::Requeued => Why::Cancelled,
            StopReason::TimeLimit => Why::TimeLimit,
            StopReason::Preempted => Why::Preempted,
            StopReason::NodeFail => Why::NodeFail,
        }
    }
}

impl Step {
    /// Brings the step to its end. Also takes up a step that an earlier worker process started.
    pub async fn run(mut self) {
        let event = self.live().await;
        let reported = self.reported;
        if reported.is_none() {
            self.delete().await;
        }
        self.tell(event);
        // What tells that the step has run must outlive this process until the service knows: else a restart would run it again.
        if let Some(seq) = reported {
            self.outbox.until_taken(seq).await;
            self.delete().await;
        }
    }

    async fn delete(&self) {
        if let Err(error) = self.runtime.delete(&self.spec.key).await {
            tracing::warn!(job = %self.job, step = %self.id, %error, "the step's remains could not be removed");
        }
    }

    fn tell(&self, event: StepEvent) {
        let _ = self.events.send((self.id, event));
    }

    async fn live(&mut self) -> StepEvent {
        let seen_at = Instant::now();
        if let Err(error) = self.runtime.prepare(&self.spec).await {
            return self.failed_to_launch(error);
        }
        self.tell(StepEvent::Prepared);
        let orders = self.orders.wait_for(|o| o.go || o.stop.is_some()).await.map(|o| *o).ok();
        let Some(orders) = orders else { return StepEvent::Over { ran: false } };
        if let Some(stop) = orders.stop.filter(|_| !orders.go)
            && !self.has_been_started().await
        {
            return self.ended_before_the_go(stop.why);
        }
        if let Err(error) = self.runtime.start(&self.spec.key).await {
            return self.failed_to_launch(error);
        }
        self.outbox.push(Fact::StepStarted { job_id: self.job, attempt: self.attempt, step: self.id });
        self.tell(StepEvent::Started);
        self.metrics.launched("started");
        self.metrics.launch.observe(seen_at.elapsed().as_secs_f64());
        self.metrics.running.inc();
        let (ended, seen) = watch::channel(false);
        let files = launch::streams(&self.spec).into_iter().map(|(task, stream, path)| (task, stream, path.to_owned())).collect();
        let source = Source { job: self.job, attempt: self.attempt, step: self.id };
        let follower = tokio::spawn(output::follow(source, files, self.uploads.clone(), seen));
        let input = self.input.take().map(|input| tokio::spawn(input.gather()));
        let (exit, why) = self.wait().await;
        if let Some(gathering) = input {
            gathering.abort();
        }
        if exit.oom_killed {
            self.say(&format!("Detected an out-of-memory kill in {}. Some of its processes have been killed.", self.name()));
        }
        self.metrics.running.dec();
        ended.send_replace(true);
        let _ = follower.await;
        self.report_end(exit, why);
        StepEvent::Over { ran: true }
    }

    /// An earlier process of the worker has let it go.
    async fn has_been_started(&self) -> bool {
        let known = self.runtime.list().await.unwrap_or_default();
        known.iter().any(|found| found.key == self.spec.key && found.phase != StepPhase::Created)
    }

    /// A step of `srun` that is stopped while it waits (another node's part of it failed at once) has an end too, for which `srun` waits.
    fn ended_before_the_go(&mut self, why: Why) -> StepEvent {
        if self.is_first || why == Why::Over {
            return StepEvent::Over { ran: false };
        }
        let ended = |task: &TaskSpec| TaskExit { rank: task.rank, code: None, signal: Some(libc::SIGTERM) };
        let tasks = self.spec.tasks.iter().map(ended).collect();
        self.report_end(StepExit { tasks, ..StepExit::default() }, Some(why));
        StepEvent::Over { ran: true }
    }

    /// The attempt's own launch fails as a whole; a step of `srun` fails alone.
    fn failed_to_launch(&mut self, error: LaunchError) -> StepEvent {
        self.metrics.launched(&cause_text(error.cause));
        if !self.is_first {
            let exit = StepExit { failure: Some(error.clone()), ..StepExit::default() };
            self.report_end(exit, None);
            return StepEvent::Over { ran: true };
        }
        StepEvent::Failed(error)
    }

    /// Waits for the end, and sees to it that an order to stop is followed: SIGTERM, grace, SIGKILL.
    async fn wait(&mut self) -> (StepExit, Option<Why>) {
        let runtime = self.runtime.clone();
        let key = self.spec.key.clone();
        let mut end = std::pin::pin!(runtime.wait(&key));
        let mut limit = self.time_limit.map(|limit| Instant::now() + limit);
        let mut still_since: Option<Instant> = None;
        let mut stopped: Option<Stop> = None;
        let mut kill_at: Option<Instant> = None;
        let mut orders = self.orders.clone();
        loop {
            let Orders { stop: asked, is_still, .. } = *orders.borrow_and_update();
            match (still_since, is_still) {
                (None, true) => still_since = Some(Instant::now()),
                (Some(since), false) => {
                    limit = limit.map(|limit| limit + since.elapsed());
                    still_since = None;
                }
                _ => {}
            }
            let wanted = match (asked, limit.filter(|_| !is_still)) {
                (None, Some(limit)) if Instant::now() >= limit => Some(Stop { grace: GRACE, why: Why::TimeLimit }),
                (asked, _) => asked,
            };
            if let Some(stop) = wanted
                && stopped.is_none_or(|s| stop.grace < s.grace)
            {
                let until = Instant::now() + stop.grace;
                kill_at = Some(kill_at.map_or(until, |at| at.min(until)));
                if stopped.is_none() {
                    self.tell_stop(stop.why);
                }
                if stopped.is_none() && !stop.grace.is_zero() {
                    // A stopped process could not react to the SIGTERM.
                    let _ = runtime.signal(&key, libc::SIGCONT, true).await;
                    let _ = runtime.signal(&key, libc::SIGTERM, true).await;
                }
                stopped = Some(Stop { why: stopped.map_or(stop.why, |s| s.why), ..stop });
            }
            let next_look = [kill_at, limit.filter(|_| stopped.is_none() && !is_still)].into_iter().flatten().min();
            let timer = async {
                match next_look {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                exit = &mut end => {
                    let exit = exit.unwrap_or_else(|error| StepExit { failure: Some(error), ..StepExit::default() });
                    return (exit, stopped.map(|s| s.why));
                }
                () = timer => {}
                changed = orders.changed() => if changed.is_err() {
                    // The attempt is gone without an order: the worker ends, the step goes on.
                    std::future::pending::<()>().await;
                },
            }
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                let _ = runtime.kill(&key).await;
                kill_at = Some(Instant::now() + KILL_AGAIN);
            }
        }
    }

    /// `JOB 12` or `STEP 12.0`.
    fn name(&self) -> String {
        if self.is_first { format!("JOB {}", self.job) } else { format!("STEP {}.{}", self.job, self.id) }
    }

    /// The line that Slurm leaves in the output of what it ends.
    fn tell_stop(&self, why: Why) {
        let cause = match why {
            Why::Over => return,
            Why::Cancelled => "",
            Why::TimeLimit => " DUE TO TIME LIMIT",
            Why::Preempted => " DUE TO PREEMPTION",
            Why::NodeFail => " DUE TO NODE FAILURE",
            Why::CutOff => " DUE TO NODE FAILURE: THE SERVICE CANNOT BE REACHED",
        };
        let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S");
        let node = self.spec.hostname.as_deref().unwrap_or_default();
        self.say(&format!("*** {} ON {node} CANCELLED AT {now}{cause} ***", self.name()));
    }

    /// Writes a line where the first task's errors go: the log, and the file that the user named, unless that is a container's.
    fn say(&self, text: &str) {
        let Some(task) = self.spec.tasks.first() else { return };
        let line = format!("berth: error: {text}\n");
        let write = |file: std::io::Result<std::fs::File>| file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
        let mut said = write(std::fs::OpenOptions::new().create(true).append(true).open(&task.stderr));
        if let (Some(copy), None) = (&task.tee_stderr, &self.spec.image) {
            let cwd = self.spec.cwd.as_ref().or(self.spec.scratch_dir.as_ref());
            let path = cwd.map_or_else(|| copy.clone(), |dir| dir.join(copy));
            said = said.and(write(berth_runtime::files::append(&path, self.spec.user)));
        }
        if let Err(error) = said {
            tracing::warn!(job = %self.job, step = %self.id, %error, "a line could not be left in the output");
        }
    }

    fn report_end(&mut self, exit: StepExit, why: Option<Why>) {
        let mut result = StepResult {
            tasks: exit.tasks.iter().map(|t| TaskEnd { rank: t.rank, code: t.code, signal: t.signal }).collect(),
            is_oom_killed: exit.oom_killed,
            is_timed_out: why == Some(Why::TimeLimit),
            failure: exit.failure.map(|error| self.failure(error)),
            cpu_usec: exit.usage.cpu_usec,
            memory_peak_bytes: Bytes(exit.usage.memory_peak_bytes),
            elapsed_ms: exit.elapsed_ms,
        };
        if why == Some(Why::CutOff) {
            let detail = "the node could not reach the service for longer than node_timeout".to_owned();
            result.failure = Some(StepFailure { cause: "cut_off".to_owned(), detail, is_nodes_fault: true });
        }
        // The shell's codes: for a program that is not there, and for a redirection that fails.
        let code = match result.failure.as_ref().map(|f| f.cause.as_str()) {
            Some("exec_not_found") => Some(127),
            Some("file_error") => Some(1),
            _ => None,
        };
        if code.is_some() && result.tasks.is_empty() {
            result.tasks = self.spec.tasks.iter().map(|t| TaskEnd { rank: t.rank, code, signal: None }).collect();
        }
        self.reported = Some(self.outbox.push(Fact::StepEnded { job_id: self.job, attempt: self.attempt, step: self.id, result }));
    }

    fn failure(&self, error: LaunchError) -> StepFailure {
        StepFailure { cause: cause_text(error.cause), is_nodes_fault: is_nodes_fault(error.cause), detail: error.detail }
    }
}

/// Between SIGTERM and SIGKILL where nobody says otherwise: Slurm's default KillWait.
const GRACE: Duration = Duration::from_secs(30);
/// A kill that left something behind is repeated.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// The cause's stable identifier.
pub fn cause_text(cause: LaunchCause) -> String {
    serde_json::to_value(cause).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Whom to blame: the node is drained and the job placed elsewhere, or the job ends.
pub fn is_nodes_fault(cause: LaunchCause) -> bool {
    match cause {
        LaunchCause::ImageUnavailable
        | LaunchCause::ExecNotFound
        | LaunchCause::BadSpec
        | LaunchCause::RegistryError
        | LaunchCause::FileError => false,
        LaunchCause::DeviceError | LaunchCause::NodeError | LaunchCause::Lost | LaunchCause::CutOff => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_runtime::Limits;
    use berth_runtime::sim::Sim;

    fn spec() -> LaunchSpec {
        let task = |rank| {
            serde_json::json!({ "rank": rank, "env": {}, "cores": [], "gpus": [], "stdout": "/dev/null", "stderr": "/dev/null",
                "tee_stdout": null, "tee_stderr": null, "tee_truncate": false, "stdin": null, "stdin_spool": null })
        };
        let spec = serde_json::json!({ "key": { "job": 1, "attempt": 1, "step": "2" }, "hostname": null, "argv": ["true"], "script": null,
            "env": {}, "tasks": [task(2), task(3)], "cwd": null, "user": null, "image": null, "mounts": [], "limits": Limits::default(), "job_limits": Limits::default(),
            "gpus": [], "no_network": false, "tools_dir": null, "agent_socket": null, "scratch_dir": null, "read_only_root": false,
            "cgroup_parent": "berth/n1", "lease": null, "kill_on_bad_exit": true });
        serde_json::from_value(spec).unwrap()
    }

    /// What is reported of a step that is told to stop before it is told to go.
    async fn stopped_before_the_go(is_first: bool, why: Why, has_been_started: bool) -> (StepEvent, Vec<Fact>) {
        let outbox = Arc::new(Outbox::new("boot".to_owned()));
        let (events, _inbox) = mpsc::unbounded_channel();
        let stop = Some(Stop { grace: Duration::ZERO, why });
        let (_orders, seen) = watch::channel(Orders { stop, ..Orders::default() });
        let runtime = Arc::new(Sim::default());
        if has_been_started {
            runtime.prepare(&spec()).await.unwrap();
            runtime.start(&spec().key).await.unwrap();
        }
        let mut step = Step {
            id: StepId::Number(2),
            job: JobId(1),
            attempt: 1,
            is_first,
            spec: spec(),
            time_limit: None,
            runtime,
            outbox: outbox.clone(),
            uploads: Uploads::new().0,
            metrics: Arc::default(),
            input: None,
            orders: seen,
            events,
            reported: None,
        };
        let event = step.live().await;
        (event, outbox.waiting())
    }

    #[tokio::test]
    async fn a_step_of_srun_that_never_went_has_an_end() {
        let (event, facts) = stopped_before_the_go(false, Why::Cancelled, false).await;
        assert!(matches!(event, StepEvent::Over { ran: true }));
        let [Fact::StepEnded { result, .. }] = facts.as_slice() else { panic!("{facts:?}") };
        let ends: Vec<_> = result.tasks.iter().map(|task| (task.rank, task.code, task.signal)).collect();
        assert_eq!(ends, [(2, None, Some(15)), (3, None, Some(15))]);
        // What an earlier process let go is seen to its end.
        let (_, facts) = stopped_before_the_go(false, Why::Cancelled, true).await;
        assert!(matches!(facts.as_slice(), [Fact::StepStarted { .. }, Fact::StepEnded { .. }]), "{facts:?}");
        // Nobody waits for these.
        for (is_first, why) in [(true, Why::Cancelled), (false, Why::Over)] {
            let (event, facts) = stopped_before_the_go(is_first, why, false).await;
            assert!(matches!(event, StepEvent::Over { ran: false }) && facts.is_empty(), "{facts:?}");
        }
    }
}
