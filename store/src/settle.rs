//! How attempts are stopped and how they end. Whoever learns the last fact (an api replica from a worker's report, or the leader
//! when a node is lost) settles the attempt in the same transaction, so no state between "all nodes are done" and "ended" exists.
//!
//! Locks are taken in one order everywhere: jobs by [`lock_jobs`], then their attempts, then nodes' contacts, nodes' cursors last.

mod components;

use std::collections::{BTreeMap, BTreeSet};

use berth_model::job::{RequeueMode, RequeueSpec};
use berth_model::preemption::{PreemptMode, Preempted};
use berth_model::state::JobState;
use berth_model::step::{AttemptEnd, StepResult, StopReason, judge_attempt};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::StoreError;
use crate::events::{self, NewEvent};
use crate::jobs::accrual::accrue;
use crate::jobs::array::settle_array;

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

/// Locks jobs, the arrays that they are tasks of, and all components of those that are components, in order of id: two transactions that
/// both do so cannot wait for each other.
pub(crate) async fn lock_jobs(tx: &mut PgConnection, jobs: &[i64]) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "select from jobs where job_id = any($1)
             or job_id = any(array(select array_job_id from jobs where job_id = any($1) and array_job_id is not null))
             or het_job_id = any(array(select het_job_id from jobs where job_id = any($1) and het_job_id is not null))
         order by job_id for update",
    )
    .bind(jobs)
    .execute(tx)
    .await?;
    Ok(())
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
    stop_attempts(tx, &[(job, attempt)], reason, grace_seconds).await
}

/// [`stop_attempt`] for many attempts in one statement. What stops one component of a heterogeneous job stops all.
pub(crate) async fn stop_attempts(
    tx: &mut PgConnection,
    attempts: &[(i64, i32)],
    reason: StopReason,
    grace_seconds: u64,
) -> Result<Vec<String>, StoreError> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let (jobs, numbers): (Vec<i64>, Vec<i32>) = attempts.iter().copied().unzip();
    let mut nodes: Vec<String> = sqlx::query_scalar(
        "with named as (select * from unnest($1::bigint[], $2::int[]) t (job_id, attempt)),
         told as (select * from named union select o.job_id, n.attempt from named n join jobs j on j.job_id = n.job_id join jobs o on o.het_job_id = j.het_job_id),
         stopped as (update attempts a set stop_reason = $3 from told t
             where a.job_id = t.job_id and a.attempt = t.attempt and a.ended_at is null and (a.stop_reason is null or $3 = 'cancelled')),
         ordered as (update assignments s set phase = 'stop', stop_reason = $3, grace_seconds = $4 from told t
             where s.job_id = t.job_id and s.attempt = t.attempt and s.phase <> 'stop'),
         completing as (update jobs j set state = 'completing', version = j.version + 1 from told t
             where j.job_id = t.job_id and j.state in ('allocated', 'running', 'suspended'))
         select distinct s.node from assignments s join told t on t.job_id = s.job_id and t.attempt = s.attempt",
    )
    .bind(jobs)
    .bind(numbers)
    .bind(stop_reason_text(reason))
    .bind(grace_seconds as i64)
    .fetch_all(&mut *tx)
    .await?;
    bump_nodes(tx, &mut nodes).await?;
    Ok(nodes)
}

/// Raises the cursors of all nodes that still have something of the attempt, and returns them, to be woken after the commit.
pub(crate) async fn bump_attempt(tx: &mut PgConnection, job: i64, attempt: i32) -> Result<Vec<String>, StoreError> {
    bump_attempts(tx, &[job], attempt).await
}

/// The same for attempts of one number of several jobs.
pub(crate) async fn bump_attempts(tx: &mut PgConnection, jobs: &[i64], attempt: i32) -> Result<Vec<String>, StoreError> {
    let mut nodes: Vec<String> = sqlx::query_scalar("select node from assignments where job_id = any($1) and attempt = $2")
        .bind(jobs)
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

/// The components of a heterogeneous job of which this is one, the leader first; of any other job, itself.
pub(crate) async fn components_of(tx: &mut PgConnection, job: i64) -> Result<Vec<i64>, StoreError> {
    let all: Vec<i64> = sqlx::query_scalar(
        "select o.job_id from jobs j join jobs o on o.het_job_id = j.het_job_id where j.job_id = $1 order by o.het_offset",
    )
    .bind(job)
    .fetch_all(tx)
    .await?;
    Ok(if all.is_empty() { vec![job] } else { all })
}

/// Ends a job that holds no nodes, with all its components if it has some. The caller holds their rows.
pub(crate) async fn end_without_attempt(tx: &mut PgConnection, job: i64, state: JobState, reason: &str) -> Result<(), StoreError> {
    for component in components_of(tx, job).await? {
        end_one_without_attempt(tx, component, state, reason).await?;
    }
    Ok(())
}

async fn end_one_without_attempt(tx: &mut PgConnection, job: i64, state: JobState, reason: &str) -> Result<(), StoreError> {
    let array: Option<Option<i64>> = sqlx::query_scalar(
        "update jobs set state = $2, reason = $3, end_time = now(), array_pending = case when array_pending is not null then '' end,
             array_left = case when array_left is not null then 0 end,
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

/// Ends those of `attempts` of which no node has anything left, and returns them; of a heterogeneous job all components together, once no
/// node has anything of any. The caller holds the jobs' rows.
pub(crate) async fn settle_attempts(tx: &mut PgConnection, attempts: &[(i64, i32)]) -> Result<Vec<(i64, i32)>, StoreError> {
    let (jobs, numbers): (Vec<i64>, Vec<i32>) = attempts.iter().copied().unzip();
    let open: Vec<OpenAttempt> = sqlx::query_as(
        "select a.job_id, a.attempt, a.stop_reason, a.failure, j.spec::json->'requeue' as requeue, j.restarts, j.array_job_id,
             j.failed_nodes, j.reason, a.preempted, j.het_job_id
         from (select distinct coalesce(o.job_id, n.job_id) as job_id, n.attempt from unnest($1::bigint[], $2::int[]) n (job_id, attempt)
             join jobs k on k.job_id = n.job_id left join jobs o on o.het_job_id = k.het_job_id) t
         join attempts a on a.job_id = t.job_id and a.attempt = t.attempt join jobs j on j.job_id = t.job_id
         where a.ended_at is null and not exists (select from assignments s where s.job_id = t.job_id and s.attempt = t.attempt)
             and not exists (select from jobs o join assignments s on s.job_id = o.job_id and s.attempt = t.attempt where o.het_job_id = j.het_job_id)
         order by a.job_id, a.attempt for update of a",
    )
    .bind(jobs)
    .bind(numbers)
    .fetch_all(&mut *tx)
    .await?;
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let mut results = deciding_results(tx, &open).await?;
    let mut judged: Vec<(OpenAttempt, AttemptEnd)> = open
        .into_iter()
        .map(|mut attempt| {
            let results = results.remove(&attempt.key()).unwrap_or_default();
            let end = judge_attempt(attempt.stop(), &results);
            let said = results.iter().find_map(|r| r.failure.as_ref()).map(|f| format!("{}: {}", f.cause, f.detail));
            // Of components the leader alone has a step that decides.
            attempt.failure = attempt.failure.take().or(said.filter(|_| attempt.het_job_id.is_none_or(|leader| leader == attempt.job_id)));
            (attempt, end)
        })
        .collect();
    components::share_ends(&mut judged);
    close_attempts(tx, &judged).await?;
    let settled = judged.iter().map(|(attempt, _)| attempt.key()).collect();
    let mut ended = Vec::new();
    for (attempt, end) in judged {
        match next_run(end, &attempt) {
            Next::End => ended.push((attempt, end)),
            Next::Again(again) => run_again(tx, &attempt, end, again).await?,
        }
    }
    finish(tx, &ended).await?;
    Ok(settled)
}

/// What the nodes told of the step that decides: the batch script or the job's command.
async fn deciding_results(tx: &mut PgConnection, open: &[OpenAttempt]) -> Result<BTreeMap<(i64, i32), Vec<StepResult>>, StoreError> {
    let (jobs, numbers): (Vec<i64>, Vec<i32>) = open.iter().map(OpenAttempt::key).unzip();
    let rows: Vec<(i64, i32, Option<Json<StepResult>>)> = sqlx::query_as(
        "select n.job_id, n.attempt, n.result from unnest($1::bigint[], $2::int[]) t (job_id, attempt)
         join step_nodes n on n.job_id = t.job_id and n.attempt = t.attempt
         where n.step = (select min(step) from steps s where s.job_id = t.job_id and s.attempt = t.attempt)
         order by n.job_id, n.attempt, n.position",
    )
    .bind(jobs)
    .bind(numbers)
    .fetch_all(tx)
    .await?;
    let mut results: BTreeMap<(i64, i32), Vec<StepResult>> = BTreeMap::new();
    for (job, attempt, result) in rows {
        results.entry((job, attempt)).or_default().extend(result.map(|r| r.0));
    }
    Ok(results)
}

/// Writes the attempts' ends. Steps that were still open end with them.
async fn close_attempts(tx: &mut PgConnection, judged: &[(OpenAttempt, AttemptEnd)]) -> Result<(), StoreError> {
    let (jobs, numbers): (Vec<i64>, Vec<i32>) = judged.iter().map(|(a, _)| a.key()).unzip();
    sqlx::query(
        "with told as (select * from unnest($1::bigint[], $2::int[], $3::text[], $4::int[], $5::int[], $6::text[])
             t (job_id, attempt, state, exit_code, exit_signal, failure)),
         went_on as (update suspensions s set until = now() from told t where s.job_id = t.job_id and s.attempt = t.attempt and s.until is null),
         cut as (update steps s set state = 'cancelled', ended_at = now() from told t
             where s.job_id = t.job_id and s.attempt = t.attempt and s.ended_at is null)
         update attempts a set state = t.state, ended_at = now(), exit_code = t.exit_code, exit_signal = t.exit_signal, failure = t.failure,
             suspended_ms = stood_still_ms(a),
             suspension = null
         from told t where a.job_id = t.job_id and a.attempt = t.attempt",
    )
    .bind(jobs)
    .bind(numbers)
    .bind(judged.iter().map(|(_, end)| end.state.as_str()).collect::<Vec<_>>())
    .bind(judged.iter().map(|(_, end)| end.exit_code).collect::<Vec<_>>())
    .bind(judged.iter().map(|(_, end)| end.signal).collect::<Vec<_>>())
    .bind(judged.iter().map(|(attempt, _)| attempt.failure.as_deref()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// An attempt that can be ended, with what decides whether its job runs again.
#[derive(sqlx::FromRow)]
struct OpenAttempt {
    job_id: i64,
    attempt: i32,
    stop_reason: Option<String>,
    failure: Option<String>,
    requeue: Option<Json<RequeueSpec>>,
    restarts: i32,
    array_job_id: Option<i64>,
    failed_nodes: Vec<String>,
    reason: Option<String>,
    preempted: Option<Json<Preempted>>,
    /// Of a component: the leader.
    het_job_id: Option<i64>,
}

impl OpenAttempt {
    fn key(&self) -> (i64, i32) {
        (self.job_id, self.attempt)
    }

    fn is_cancelled_by_preemption(&self) -> bool {
        self.preempted.as_ref().is_some_and(|preempted| preempted.mode == PreemptMode::Cancel)
    }

    fn stop(&self) -> Option<StopReason> {
        self.stop_reason.as_deref().and_then(stop_reason)
    }
}

enum Next {
    End,
    Again(Again),
}

struct Again {
    /// Requeue delays to wait.
    delays: u32,
    expedite: bool,
    hold: bool,
}

/// Whether the job runs again. A failure of nodes or a preemption is not the job's own; its own end is final.
fn next_run(end: AttemptEnd, job: &OpenAttempt) -> Next {
    let stop = job.stop();
    let requeue = job.requeue.as_ref().map(|r| r.0).unwrap_or_default();
    let again = |delays| Next::Again(Again { delays, expedite: requeue.mode == RequeueMode::Expedite, hold: false });
    if stop == Some(StopReason::Requeued) {
        return Next::Again(Again { delays: 0, expedite: false, hold: false });
    }
    let may_restart = requeue.mode != RequeueMode::Never && (job.restarts as u32) < requeue.max_restarts;
    match end.state {
        // A launch that failed by a node's fault ran nothing, so it is placed elsewhere whatever the job says about requeues.
        JobState::LaunchFailed if stop == Some(StopReason::LaunchFailed) && !job.failed_nodes.is_empty() => {
            let failures = job.failed_nodes.len();
            Next::Again(Again { delays: launch_delays(failures), expedite: false, hold: failures >= MAX_LAUNCH_FAILURES })
        }
        JobState::NodeFail if may_restart => again(u32::from(requeue.mode != RequeueMode::Expedite)),
        JobState::Preempted if may_restart && !job.is_cancelled_by_preemption() => again(1),
        _ => Next::End,
    }
}

/// Requeue delays that a job waits after so many nodes have failed to start it: none after the first, whose place another takes; then
/// one, two, four…
fn launch_delays(failures: usize) -> u32 {
    failures.checked_sub(2).map_or(0, |doublings| 1 << doublings.min(16))
}

/// Puts the job back into the queue.
async fn run_again(tx: &mut PgConnection, attempt: &OpenAttempt, end: AttemptEnd, again: Again) -> Result<(), StoreError> {
    sqlx::query(
        "update jobs set state = 'pending', restarts = restarts + 1, start_time = null, reason = $2, is_expedited = $3,
             claim = null, hold = coalesce(hold, case when $4 then 'admin' end),
             accrues_since = case when hold is null and not $4 then accrues_since end,
             not_before = case when $5 > 0 then now() + interval '1 second' * $5 *
                 coalesce((select (spec->>'requeue_delay_seconds')::double precision from policy), 5) end,
             version = version + 1
         where job_id = $1",
    )
    .bind(attempt.job_id)
    .bind(match end.state {
        JobState::Preempted => preempted_in_words(attempt),
        state => attempt.failure.clone().unwrap_or_else(|| state.to_string()),
    })
    .bind(again.expedite)
    .bind(again.hold)
    .bind(again.delays as i32)
    .execute(&mut *tx)
    .await?;
    let detail = serde_json::json!({ "attempt_ended": end.state });
    let event = NewEvent {
        kind: "job.requeued",
        job_id: Some(attempt.job_id),
        attempt: Some(attempt.attempt),
        detail: Some(detail),
        ..NewEvent::default()
    };
    events::append(tx, &[event]).await
}

/// Ends the jobs of these attempts.
async fn finish(tx: &mut PgConnection, ended: &[(OpenAttempt, AttemptEnd)]) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let reasons: Vec<Option<String>> = ended.iter().map(|(attempt, end)| reason_in_words(attempt, *end)).collect();
    sqlx::query(
        "update jobs j set state = t.state, end_time = now(), exit_code = t.exit_code, exit_signal = t.exit_signal, reason = t.reason,
             version = j.version + 1
         from unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::text[]) t (job_id, state, exit_code, exit_signal, reason)
         where j.job_id = t.job_id",
    )
    .bind(ended.iter().map(|(attempt, _)| attempt.job_id).collect::<Vec<_>>())
    .bind(ended.iter().map(|(_, end)| end.state.as_str()).collect::<Vec<_>>())
    .bind(ended.iter().map(|(_, end)| end.exit_code).collect::<Vec<_>>())
    .bind(ended.iter().map(|(_, end)| end.signal).collect::<Vec<_>>())
    .bind(&reasons)
    .execute(&mut *tx)
    .await?;
    let mut news: Vec<NewEvent> = Vec::new();
    for ((attempt, end), reason) in ended.iter().zip(&reasons) {
        let detail = serde_json::json!({ "state": end.state, "exit_code": end.exit_code, "signal": end.signal, "reason": reason });
        news.push(NewEvent {
            kind: "job.ended",
            job_id: Some(attempt.job_id),
            attempt: Some(attempt.attempt),
            detail: Some(detail),
            ..NewEvent::default()
        });
    }
    events::append(tx, &news).await?;
    release_dependants(tx, &ended.iter().map(|(attempt, end)| (attempt.job_id, end.state)).collect::<Vec<_>>()).await?;
    for array in ended.iter().filter_map(|(attempt, _)| attempt.array_job_id).collect::<BTreeSet<_>>() {
        settle_array(tx, array).await?;
    }
    Ok(())
}

/// Why a job ended as it did, for people; `None` if all went well.
fn reason_in_words(attempt: &OpenAttempt, end: AttemptEnd) -> Option<String> {
    match end.state {
        JobState::Completed => None,
        JobState::Cancelled => attempt.reason.clone(),
        JobState::Failed => attempt.failure.clone().or_else(|| Some(exit_words(end))),
        JobState::Timeout => Some("the time limit passed".to_owned()),
        JobState::OutOfMemory => Some("the kernel ended it for using more memory than it asked for".to_owned()),
        JobState::Preempted => Some(preempted_in_words(attempt)),
        _ => attempt.failure.clone(),
    }
}

fn preempted_in_words(attempt: &OpenAttempt) -> String {
    match &attempt.preempted {
        Some(preempted) => format!("preempted by job {}", preempted.for_job),
        None => "preempted".to_owned(),
    }
}

fn exit_words(end: AttemptEnd) -> String {
    match end.signal {
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("exit code {}", end.exit_code),
    }
}

pub(crate) async fn after_end(tx: &mut PgConnection, job: i64, state: JobState) -> Result<(), StoreError> {
    let detail = serde_json::json!({ "state": state });
    events::append(tx, &[NewEvent { kind: "job.ended", job_id: Some(job), detail: Some(detail), ..NewEvent::default() }]).await?;
    release_dependants(tx, &[(job, state)]).await
}

/// Settles the dependencies of others on jobs that ended, and tells the scheduler about those.
async fn release_dependants(tx: &mut PgConnection, ended: &[(i64, JobState)]) -> Result<(), StoreError> {
    let dependants: Vec<i64> = sqlx::query_scalar(
        "update job_dependencies d set progress = case
             when d.kind in ('after', 'afterany') then 'satisfied'
             when d.kind in ('afterok', 'aftercorr') then case when t.is_ok then 'satisfied' else 'never' end
             when d.kind = 'afternotok' then case when t.is_ok then 'never' else 'satisfied' end
             else d.progress end
         from unnest($1::bigint[], $2::bool[]) t (job_id, is_ok)
         where d.on_job_id = t.job_id and d.progress = 'waiting'
             and not (d.kind = 'aftercorr' and exists (select from jobs j where j.job_id = d.job_id and (j.array_total is not null or j.array_index is not null)))
         returning d.job_id",
    )
    .bind(ended.iter().map(|(job, _)| *job).collect::<Vec<_>>())
    .bind(ended.iter().map(|(_, state)| *state == JobState::Completed).collect::<Vec<_>>())
    .fetch_all(&mut *tx)
    .await?;
    let corresponding: Vec<i64> = sqlx::query_scalar(
        "select distinct d.job_id from jobs t join job_dependencies d on d.on_job_id = t.array_job_id and d.kind = 'aftercorr'
         where t.job_id = any($1)",
    )
    .bind(ended.iter().map(|(job, _)| *job).collect::<Vec<_>>())
    .fetch_all(&mut *tx)
    .await?;
    tell_dependants(tx, dependants.into_iter().chain(corresponding).collect()).await
}

pub(crate) async fn tell_dependants(tx: &mut PgConnection, jobs: Vec<i64>) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    accrue(tx, &jobs).await?;
    let events: Vec<NewEvent> =
        jobs.into_iter().map(|job| NewEvent { kind: "job.dependency_changed", job_id: Some(job), ..NewEvent::default() }).collect();
    events::append(tx, &events).await
}

#[cfg(test)]
mod tests {
    #[test]
    fn launches_back_off() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(super::launch_delays), [0, 0, 1, 2, 4, 8]);
    }
}
