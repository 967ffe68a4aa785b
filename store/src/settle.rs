//! How attempts are stopped and how they end. Whoever learns the last fact (an api replica from a worker's report, or the leader
//! when a node is lost) settles the attempt in the same transaction, so no state between "all nodes are done" and "ended" exists.
//!
//! Locks are taken in one order everywhere: the job's row, then its attempt, then an array's own row.

use berth_model::job::{RequeueMode, RequeueSpec};
use berth_model::state::JobState;
use berth_model::step::{AttemptEnd, StepResult, StopReason, judge_attempt};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::StoreError;
use crate::events::{self, NewEvent};

/// Launch failures of one job that are blamed on nodes before it is held for a person to look at (Slurm's MaxBatchRequeue).
const MAX_LAUNCH_FAILURES: usize = 5;

/// The reason's identifier, as stored.
pub(crate) fn stop_reason_text(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Finished => "finished",
        StopReason::Cancelled => "cancelled",
        StopReason::TimeLimit => "time_limit",
        StopReason::Preempted => "preempted",
        StopReason::NodeFail => "node_fail",
        StopReason::LaunchFailed => "launch_failed",
        StopReason::Requeued => "requeued",
    }
}

pub(crate) fn stop_reason(text: &str) -> Option<StopReason> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).ok()
}

/// Tells all nodes of an attempt to stop. The first reason stands, except that a cancellation wins over all others. The caller holds
/// the job's row. Returns the nodes to wake.
pub(crate) async fn stop_attempt(
    tx: &mut PgConnection,
    job: i64,
    attempt: i32,
    reason: StopReason,
    grace_seconds: u64,
) -> Result<Vec<String>, StoreError> {
    let text = stop_reason_text(reason);
    sqlx::query("update attempts set stop_reason = $3 where job_id = $1 and attempt = $2 and ended_at is null and (stop_reason is null or $3 = 'cancelled')")
        .bind(job)
        .bind(attempt)
        .bind(text)
        .execute(&mut *tx)
        .await?;
    sqlx::query("update assignments set phase = 'stop', stop_reason = $3, grace_seconds = $4 where job_id = $1 and attempt = $2 and phase <> 'stop'")
        .bind(job)
        .bind(attempt)
        .bind(text)
        .bind(grace_seconds as i64)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "update jobs set state = 'completing', version = version + 1 where job_id = $1 and state in ('allocated', 'running', 'suspended')",
    )
    .bind(job)
    .execute(&mut *tx)
    .await?;
    bump_attempt(tx, job, attempt).await
}

/// Raises the cursors of all nodes that still have something of the attempt, and returns them, to be woken after the commit.
pub(crate) async fn bump_attempt(tx: &mut PgConnection, job: i64, attempt: i32) -> Result<Vec<String>, StoreError> {
    let mut nodes: Vec<String> = sqlx::query_scalar("select node from assignments where job_id = $1 and attempt = $2")
        .bind(job)
        .bind(attempt)
        .fetch_all(&mut *tx)
        .await?;
    bump_nodes(tx, &mut nodes).await?;
    Ok(nodes)
}

/// Raises the cursors of `nodes`. Rows are locked in order of name, so that two transactions cannot wait for each other.
pub(crate) async fn bump_nodes(tx: &mut PgConnection, nodes: &mut Vec<String>) -> Result<(), StoreError> {
    nodes.sort();
    nodes.dedup();
    if nodes.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "with locked as (select node from node_cursors where node = any($1) order by node for update)
         update node_cursors c set cursor = cursor + 1 from locked where c.node = locked.node",
    )
    .bind(&*nodes)
    .execute(tx)
    .await?;
    Ok(())
}

/// Ends a job that holds no nodes.
pub(crate) async fn end_without_attempt(tx: &mut PgConnection, job: i64, state: JobState, reason: &str) -> Result<(), StoreError> {
    let array: Option<Option<i64>> = sqlx::query_scalar(
        "update jobs set state = $2, reason = $3, end_time = now(), array_pending = case when array_pending is null then null else '{}'::int4multirange end,
             version = version + 1
         where job_id = $1 and state = 'pending' returning array_job_id",
    )
    .bind(job)
    .bind(state.as_str())
    .bind(reason)
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(array) = array {
        after_end(tx, job, state).await?;
        if let Some(array) = array {
            settle_array(tx, array).await?;
        }
    }
    Ok(())
}

/// Ends the attempt if no node has anything of it left. The caller holds the job's row. `true` if it ended now.
pub(crate) async fn settle_attempt(tx: &mut PgConnection, job: i64, attempt: i32) -> Result<bool, StoreError> {
    let open: Option<(Option<String>, Option<String>)> = sqlx::query_as(
        "select stop_reason, failure from attempts a where job_id = $1 and attempt = $2 and ended_at is null
         and not exists (select from assignments s where s.job_id = $1 and s.attempt = $2) for update",
    )
    .bind(job)
    .bind(attempt)
    .fetch_optional(&mut *tx)
    .await?;
    let Some((stop, failure)) = open else { return Ok(false) };
    let results: Vec<Option<Json<StepResult>>> = sqlx::query_scalar(
        "select n.result from step_nodes n where n.job_id = $1 and n.attempt = $2
         and n.step = (select min(step) from steps s where s.job_id = $1 and s.attempt = $2) order by n.position",
    )
    .bind(job)
    .bind(attempt)
    .fetch_all(&mut *tx)
    .await?;
    let results: Vec<StepResult> = results.into_iter().flatten().map(|r| r.0).collect();
    let stop = stop.as_deref().and_then(stop_reason);
    let end = judge_attempt(stop, &results);
    let failure = failure.or_else(|| results.iter().find_map(|r| r.failure.as_ref()).map(|f| format!("{}: {}", f.cause, f.detail)));
    close_steps(tx, job, attempt).await?;
    sqlx::query("update attempts set state = $3, ended_at = now(), exit_code = $4, exit_signal = $5, failure = $6 where job_id = $1 and attempt = $2")
        .bind(job)
        .bind(attempt)
        .bind(end.state.as_str())
        .bind(end.exit_code)
        .bind(end.signal)
        .bind(&failure)
        .execute(&mut *tx)
        .await?;
    let row: JobOfAttempt =
        sqlx::query_as("select spec::json->'requeue' as requeue, restarts, array_job_id, failed_nodes, reason from jobs where job_id = $1")
            .bind(job)
            .fetch_one(&mut *tx)
            .await?;
    match next_run(stop, end, &row) {
        Next::End => finish(tx, job, attempt, end, failure, row).await?,
        Next::Again { delayed, expedite, hold } => {
            sqlx::query(
                "update jobs set state = 'pending', restarts = restarts + 1, start_time = null, reason = $2, is_expedited = $3,
                     hold = coalesce(hold, case when $4 then 'admin' end),
                     not_before = case when $5 then now() + interval '1 second' *
                         coalesce((select (spec->>'requeue_delay_seconds')::double precision from policy), 5) end,
                     version = version + 1
                 where job_id = $1",
            )
            .bind(job)
            .bind(failure.unwrap_or_else(|| end.state.to_string()))
            .bind(expedite)
            .bind(hold)
            .bind(delayed)
            .execute(&mut *tx)
            .await?;
            let detail = serde_json::json!({ "attempt_ended": end.state });
            events::append(
                tx,
                &[NewEvent {
                    kind: "job.requeued",
                    job_id: Some(job),
                    attempt: Some(attempt),
                    detail: Some(detail),
                    ..NewEvent::default()
                }],
            )
            .await?;
        }
    }
    Ok(true)
}

#[derive(sqlx::FromRow)]
struct JobOfAttempt {
    requeue: Option<Json<RequeueSpec>>,
    restarts: i32,
    array_job_id: Option<i64>,
    failed_nodes: Vec<String>,
    reason: Option<String>,
}

enum Next {
    End,
    Again { delayed: bool, expedite: bool, hold: bool },
}

/// Whether the job runs again. A failure of nodes or a preemption is not the job's own; its own end is final.
fn next_run(stop: Option<StopReason>, end: AttemptEnd, job: &JobOfAttempt) -> Next {
    let requeue = job.requeue.as_ref().map(|r| r.0).unwrap_or_default();
    let again = |delayed| Next::Again { delayed, expedite: requeue.mode == RequeueMode::Expedite, hold: false };
    if stop == Some(StopReason::Requeued) {
        return Next::Again { delayed: false, expedite: false, hold: false };
    }
    let may_restart = requeue.mode != RequeueMode::Never && (job.restarts as u32) < requeue.max_restarts;
    match end.state {
        // A launch that failed by a node's fault ran nothing, so it is placed elsewhere whatever the job says about requeues.
        JobState::LaunchFailed if stop == Some(StopReason::LaunchFailed) && !job.failed_nodes.is_empty() => {
            Next::Again { delayed: false, expedite: false, hold: job.failed_nodes.len() >= MAX_LAUNCH_FAILURES }
        }
        JobState::NodeFail if may_restart => again(requeue.mode != RequeueMode::Expedite),
        JobState::Preempted if may_restart => again(true),
        _ => Next::End,
    }
}

async fn finish(
    tx: &mut PgConnection,
    job: i64,
    attempt: i32,
    end: AttemptEnd,
    failure: Option<String>,
    row: JobOfAttempt,
) -> Result<(), StoreError> {
    let reason = match end.state {
        JobState::Completed => None,
        JobState::Cancelled => row.reason,
        JobState::Failed => failure.or_else(|| Some(exit_words(end))),
        JobState::Timeout => Some("the time limit passed".to_owned()),
        JobState::OutOfMemory => Some("the kernel ended it for using more memory than it asked for".to_owned()),
        _ => failure,
    };
    sqlx::query("update jobs set state = $2, end_time = now(), exit_code = $3, exit_signal = $4, reason = $5, version = version + 1 where job_id = $1")
        .bind(job)
        .bind(end.state.as_str())
        .bind(end.exit_code)
        .bind(end.signal)
        .bind(&reason)
        .execute(&mut *tx)
        .await?;
    let detail = serde_json::json!({ "state": end.state, "exit_code": end.exit_code, "signal": end.signal, "reason": reason });
    events::append(
        tx,
        &[NewEvent { kind: "job.ended", job_id: Some(job), attempt: Some(attempt), detail: Some(detail), ..NewEvent::default() }],
    )
    .await?;
    release_dependants(tx, job, end.state).await?;
    if let Some(array) = row.array_job_id {
        settle_array(tx, array).await?;
    }
    Ok(())
}

fn exit_words(end: AttemptEnd) -> String {
    match end.signal {
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("exit code {}", end.exit_code),
    }
}

/// Steps that were still open end with their attempt.
async fn close_steps(tx: &mut PgConnection, job: i64, attempt: i32) -> Result<(), StoreError> {
    sqlx::query("update steps set state = 'cancelled', ended_at = now() where job_id = $1 and attempt = $2 and ended_at is null")
        .bind(job)
        .bind(attempt)
        .execute(tx)
        .await?;
    Ok(())
}

async fn after_end(tx: &mut PgConnection, job: i64, state: JobState) -> Result<(), StoreError> {
    let detail = serde_json::json!({ "state": state });
    events::append(tx, &[NewEvent { kind: "job.ended", job_id: Some(job), detail: Some(detail), ..NewEvent::default() }]).await?;
    release_dependants(tx, job, state).await
}

/// Settles the dependencies of others on a job that ended, and tells the scheduler about those jobs.
async fn release_dependants(tx: &mut PgConnection, job: i64, state: JobState) -> Result<(), StoreError> {
    let succeeded = state == JobState::Completed;
    let dependants: Vec<i64> = sqlx::query_scalar(
        "update job_dependencies set progress = case
             when kind in ('after', 'afterany') then 'satisfied'
             when kind in ('afterok', 'aftercorr') then case when $2 then 'satisfied' else 'never' end
             when kind = 'afternotok' then case when $2 then 'never' else 'satisfied' end
             else progress end
         where on_job_id = $1 and progress = 'waiting' returning job_id",
    )
    .bind(job)
    .bind(succeeded)
    .fetch_all(&mut *tx)
    .await?;
    tell_dependants(tx, dependants).await
}

pub(crate) async fn tell_dependants(tx: &mut PgConnection, jobs: Vec<i64>) -> Result<(), StoreError> {
    let events: Vec<NewEvent> =
        jobs.into_iter().map(|job| NewEvent { kind: "job.dependency_changed", job_id: Some(job), ..NewEvent::default() }).collect();
    events::append(tx, &events).await
}

/// Ends an array's own row once no task is left to start and none is live.
pub(crate) async fn settle_array(tx: &mut PgConnection, array: i64) -> Result<(), StoreError> {
    let open: Option<(bool, bool)> = sqlx::query_as(
        "select isempty(array_pending), coalesce(reason like 'cancelled by %', false) from jobs where job_id = $1 and state in ('pending', 'running') for update",
    )
    .bind(array)
    .fetch_optional(&mut *tx)
    .await?;
    // The engine counts the array's running tasks anew in any case.
    events::append(tx, &[NewEvent { kind: "job.array_progress", job_id: Some(array), ..NewEvent::default() }]).await?;
    let Some((true, is_cancelled)) = open else { return Ok(()) };
    let (live, unsuccessful, worst): (i64, i64, Option<i32>) = sqlx::query_as(
        "select count(*) filter (where state in ('pending', 'allocated', 'running', 'suspended', 'completing')),
                count(*) filter (where state not in ('pending', 'allocated', 'running', 'suspended', 'completing', 'completed')),
                max(exit_code)
         from jobs where array_job_id = $1",
    )
    .bind(array)
    .fetch_one(&mut *tx)
    .await?;
    if live > 0 {
        sqlx::query("update jobs set state = 'running', version = version + 1 where job_id = $1 and state = 'pending'")
            .bind(array)
            .execute(tx)
            .await?;
        return Ok(());
    }
    let state = match () {
        () if is_cancelled => JobState::Cancelled,
        () if unsuccessful > 0 => JobState::Failed,
        () => JobState::Completed,
    };
    sqlx::query("update jobs set state = $2, end_time = now(), exit_code = $3, version = version + 1 where job_id = $1")
        .bind(array)
        .bind(state.as_str())
        .bind(worst)
        .execute(&mut *tx)
        .await?;
    after_end(tx, array, state).await
}
