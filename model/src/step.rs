//! Steps: what `srun` asks for, where its tasks go, how a step and a whole attempt ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resources::Gpus;
use crate::state::JobState;
use crate::{Bytes, NodeName, Seconds, StepId};

/// A parallel step to open inside a job's allocation. Absent counts come from the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StepSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Program and arguments, run once for each task.
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_node: Option<Gpus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_task: Option<Gpus>,
    /// Bytes on each node; absent: the job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<Seconds>,
    /// Host-list within the allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelist: Option<String>,
    pub environment: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Standard input comes in pieces to `/v1/jobs/{job_id}/steps/{step}/stdin`.
    pub stream_stdin: bool,
    /// With `stream_stdin`: rank of the only task that gets it; absent: all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_task: Option<u32>,
    /// Share CPUs and GPUs with other steps of the job.
    pub overlap: bool,
    pub exclusive: bool,
    /// Kill the other tasks when one ends with a code other than 0.
    pub kill_on_bad_exit: bool,
}

/// One task of a step on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlacement {
    /// Rank in the step.
    pub rank: u32,
    /// CPU ids; empty: all of the step's on this node.
    pub cpus: Vec<u32>,
    /// GPU indices on the node that this task sees.
    pub gpus: Vec<u32>,
}

/// A step's part on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStep {
    pub node: NodeName,
    pub tasks: Vec<TaskPlacement>,
    /// CPU ids of the step here.
    pub cpus: Vec<u32>,
    /// GPU indices of the step here.
    pub gpus: Vec<u32>,
    pub memory_bytes: Bytes,
}

/// How one task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskEnd {
    pub rank: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl TaskEnd {
    /// The shell's convention: the code, or 128 + signal.
    pub fn exit_code(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 0,
        }
    }
}

/// Who is to blame that a step could not start or was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFailure {
    /// Stable: `image_unavailable`, `exec_not_found`, `file_error`, `bad_spec`, `registry_error`, `device_error`, `node_error`, `lost`, `prolog`.
    pub cause: String,
    pub detail: String,
    /// The node is drained and the job placed elsewhere.
    pub is_nodes_fault: bool,
}

/// How one node's part of a step ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct StepResult {
    pub tasks: Vec<TaskEnd>,
    pub is_oom_killed: bool,
    /// Ended by its or the job's time limit.
    pub is_timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<StepFailure>,
    pub cpu_usec: u64,
    pub memory_peak_bytes: Bytes,
    pub elapsed_ms: u64,
}

/// Why an attempt is being stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The batch script ended; other nodes clean up.
    Finished,
    Cancelled,
    /// The scheduler saw the time limit pass.
    TimeLimit,
    Preempted,
    /// Another node of the gang failed.
    NodeFail,
    /// A node of the gang could not prepare.
    LaunchFailed,
    /// An operator or the owner asked to run it again.
    Requeued,
}

/// How an attempt ended as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    pub state: JobState,
    pub exit_code: i32,
    pub signal: Option<i32>,
}

/// Judges an attempt: `stop` is why it was stopped from outside, if it was; `results` those of the deciding step (batch, or step 0
/// of a command job) on all its nodes.
///
/// What happened to the job wins over what its processes said while they were being killed.
pub fn judge_attempt(stop: Option<StopReason>, results: &[StepResult]) -> AttemptEnd {
    let worst = results.iter().flat_map(|r| &r.tasks).max_by_key(|t| t.exit_code());
    let exit_code = worst.map_or(0, |t| t.exit_code());
    let signal = worst.and_then(|t| t.signal);
    let failure = results.iter().find_map(|r| r.failure.as_ref());
    let state = match stop {
        Some(StopReason::Cancelled) => JobState::Cancelled,
        Some(StopReason::Preempted) => JobState::Preempted,
        Some(StopReason::NodeFail) => JobState::NodeFail,
        Some(StopReason::LaunchFailed) => JobState::LaunchFailed,
        Some(StopReason::TimeLimit) => JobState::Timeout,
        Some(StopReason::Requeued) => JobState::Cancelled,
        Some(StopReason::Finished) | None => match failure {
            Some(failure) if failure.is_nodes_fault => JobState::NodeFail,
            Some(failure) if matches!(failure.cause.as_str(), "exec_not_found" | "file_error") => JobState::Failed,
            Some(_) => JobState::LaunchFailed,
            None if results.iter().any(|r| r.is_timed_out) => JobState::Timeout,
            // A program that lived through the kill of a child and ended with 0 has succeeded (Slurm calls it OUT_OF_MEMORY too,
            // because a step whose helper was killed has rarely computed what it should).
            None if results.iter().any(|r| r.is_oom_killed) => JobState::OutOfMemory,
            None if exit_code != 0 => JobState::Failed,
            None => JobState::Completed,
        },
    };
    AttemptEnd { state, exit_code, signal }
}

/// Which step decides how the job ends.
pub fn deciding_step(is_script: bool) -> StepId {
    if is_script { StepId::Batch } else { StepId::Number(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32) -> StepResult {
        StepResult { tasks: vec![TaskEnd { rank: 0, code: Some(code), signal: None }], ..StepResult::default() }
    }

    #[test]
    fn an_attempt_ends_as_its_worst_task_did() {
        assert_eq!(judge_attempt(None, &[ended(0), ended(0)]).state, JobState::Completed);
        let end = judge_attempt(None, &[ended(0), ended(3)]);
        assert_eq!((end.state, end.exit_code), (JobState::Failed, 3));
        let killed = StepResult { tasks: vec![TaskEnd { rank: 0, code: None, signal: Some(11) }], ..StepResult::default() };
        let end = judge_attempt(None, &[killed]);
        assert_eq!((end.state, end.exit_code, end.signal), (JobState::Failed, 139, Some(11)));
    }

    #[test]
    fn what_happened_to_the_job_wins_over_its_exit_codes() {
        let oom = StepResult { is_oom_killed: true, ..ended(137) };
        assert_eq!(judge_attempt(None, std::slice::from_ref(&oom)).state, JobState::OutOfMemory);
        assert_eq!(judge_attempt(Some(StopReason::Cancelled), &[oom]).state, JobState::Cancelled);
        let failure = StepFailure { cause: "file_error".to_owned(), detail: String::new(), is_nodes_fault: false };
        assert_eq!(judge_attempt(None, &[StepResult { failure: Some(failure), ..ended(1) }]).state, JobState::Failed);
        let late = StepResult { is_timed_out: true, ..ended(143) };
        assert_eq!(judge_attempt(None, &[late]).state, JobState::Timeout);
        assert_eq!(judge_attempt(Some(StopReason::Finished), &[ended(0)]).state, JobState::Completed);
    }
}
