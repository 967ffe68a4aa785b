//! Arrays: one row, with its waiting tasks as runs of indices, until a task starts or something is asked of it by itself: then it is split
//! off as a job of its own. Waiting tasks that are cancelled together never get rows: the array keeps their indices.

use berth_model::Indices;
use berth_model::state::JobState;
use sqlx::postgres::PgConnection;

use crate::events::{self, NewEvent};
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A task just split off, or a plain job.
#[derive(Clone, sqlx::FromRow)]
pub(crate) struct SplitTask {
    pub job_id: i64,
    pub array_index: Option<i32>,
    /// Of a component of a heterogeneous job.
    pub het_offset: Option<i32>,
    pub attempt: i32,
    pub is_script: bool,
    pub cpus_per_task: Option<String>,
    pub gpus_per_task: Option<String>,
    pub tenant: String,
}

/// A task split off so that something can be done to it does not start within this time: what is to be done follows in a transaction of
/// its own.
const EMBARGO_SECONDS: i32 = 2;

/// Indices as stored.
pub(crate) fn indices_of(text: &str) -> Result<Indices, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(format!("array indices {text:.40?}")))
}

/// Splits those of `wanted` that still wait off their array: as jobs that have just been allocated (`starts`), or as pending ones. None,
/// if they are to start and the array is held. The caller holds the array's row.
pub(crate) async fn split(tx: &mut PgConnection, array: i64, wanted: &Indices, starts: bool) -> Result<Vec<SplitTask>, StoreError> {
    let waiting: Option<String> = sqlx::query_scalar(
        "select array_pending from jobs where job_id = $1 and state = 'pending' and (hold is null or not $2) for update",
    )
    .bind(array)
    .bind(starts)
    .fetch_optional(&mut *tx)
    .await?
    .flatten();
    let (taken, left) = indices_of(&waiting.unwrap_or_default())?.divide(wanted);
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(
        "update jobs set array_pending = $2, array_left = $3, claim = case when $4 then null else claim end, version = version + 1
         where job_id = $1",
    )
    .bind(array)
    .bind(left.to_string())
    .bind(left.len() as i32)
    .bind(starts)
    .execute(&mut *tx)
    .await?;
    let tasks = insert_tasks(tx, array, &taken, if starts { JobState::Allocated } else { JobState::Pending }).await?;
    if !starts {
        let ids: Vec<i64> = tasks.iter().map(|task| task.job_id).collect();
        sqlx::query(
            "insert into job_dependencies (job_id, on_job_id, kind, delay_minutes, progress)
             select t.job_id, on_job_id, kind, delay_minutes, progress from job_dependencies d, unnest($2::bigint[]) t (job_id) where d.job_id = $1",
        )
        .bind(array)
        .bind(&ids)
        .execute(&mut *tx)
        .await?;
        let event = |job| NewEvent { kind: "job.split_off", job_id: Some(job), ..NewEvent::default() };
        events::append(tx, &ids.into_iter().map(event).collect::<Vec<_>>()).await?;
    }
    // The last task to leave turns the array's row from waiting to running.
    settle_array(tx, array).await?;
    Ok(tasks)
}

/// Makes rows of tasks, in order of their indices.
async fn insert_tasks(tx: &mut PgConnection, array: i64, indices: &Indices, state: JobState) -> Result<Vec<SplitTask>, StoreError> {
    Ok(sqlx::query_as(
        "insert into jobs (job_id, tenant, account, user_name, partition, qos, name, state, hold, spec, planning, labels, time_limit, nice,
             site_factor, submit_time, accrues_since, not_before, deadline, attempt, end_time, array_job_id, array_index)
         select nextval('job_ids'), tenant, account, user_name, partition, qos, name, $3, hold, spec,
             planning, labels, time_limit, nice, site_factor, submit_time, accrues_since,
             case when $3 = 'pending' then greatest(not_before, now() + $4 * interval '1 second') else not_before end,
             deadline, case when $3 = 'allocated' then 1 else 0 end, case when $3 = 'cancelled' then now() end, job_id, t.array_index
         from jobs, unnest($2::int[]) with ordinality t (array_index, place) where job_id = $1 order by t.place
         returning job_id, array_index, het_offset, attempt, spec->>'script' is not null as is_script, spec->'resources'->>'cpus_per_task' as cpus_per_task,
             spec->'resources'->'gpus_per_task'->>'count' as gpus_per_task, tenant",
    )
    .bind(array)
    .bind(indices.iter().map(|index| index as i32).collect::<Vec<_>>())
    .bind(state.as_str())
    .bind(EMBARGO_SECONDS)
    .fetch_all(tx)
    .await?)
}

/// Splits one task off: a waiting one, or one that was cancelled while it waited.
pub(crate) async fn split_one(tx: &mut PgConnection, array: i64, index: u32) -> Result<Option<i64>, StoreError> {
    let wanted = Indices::from_iter([index]);
    if let Some(task) = split(tx, array, &wanted, false).await?.first() {
        return Ok(Some(task.job_id));
    }
    let cancelled: Option<String> =
        sqlx::query_scalar("select array_cancelled from jobs where job_id = $1").bind(array).fetch_optional(&mut *tx).await?.flatten();
    let (taken, left) = indices_of(&cancelled.unwrap_or_default())?.divide(&wanted);
    if taken.is_empty() {
        return Ok(None);
    }
    sqlx::query("update jobs set array_cancelled = $2 where job_id = $1").bind(array).bind(left.to_string()).execute(&mut *tx).await?;
    Ok(insert_tasks(tx, array, &taken, JobState::Cancelled).await?.first().map(|task| task.job_id))
}

/// Cancels tasks that wait: those of `only`, or all, and with them the array. The caller holds the array's row.
pub(crate) async fn cancel_waiting(tx: &mut PgConnection, array: i64, only: Option<&Indices>, by: &str) -> Result<(), StoreError> {
    let row: Option<(String, Option<String>)> = sqlx::query_as(
        "select array_pending, array_cancelled from jobs where job_id = $1 and state in ('pending', 'running') and array_pending is not null",
    )
    .bind(array)
    .fetch_optional(&mut *tx)
    .await?;
    let Some((waiting, cancelled)) = row else { return Ok(()) };
    let waiting = indices_of(&waiting)?;
    let (taken, left) = only.map_or((waiting.clone(), Indices::default()), |only| waiting.divide(only));
    sqlx::query(
        "update jobs set array_pending = $2, array_left = $3, array_cancelled = nullif($4, ''), reason = coalesce($5, reason), version = version + 1
         where job_id = $1",
    )
    .bind(array)
    .bind(left.to_string())
    .bind(left.len() as i32)
    .bind(indices_of(&cancelled.unwrap_or_default())?.union(&taken).to_string())
    .bind(only.is_none().then(|| format!("cancelled by {by}")))
    .execute(&mut *tx)
    .await?;
    let detail = serde_json::json!({ "by": by, "tasks": taken });
    events::append(tx, &[NewEvent { kind: "job.cancel_requested", job_id: Some(array), detail: Some(detail), ..NewEvent::default() }])
        .await?;
    settle_array(tx, array).await
}

/// Ends an array's own row once no task is left to start and none is live. The caller holds the row.
pub(crate) async fn settle_array(tx: &mut PgConnection, array: i64) -> Result<(), StoreError> {
    let open: Option<(bool, bool, bool)> = sqlx::query_as(
        "select array_left = 0, coalesce(reason like 'cancelled by %', false), array_cancelled is not null
         from jobs where job_id = $1 and state in ('pending', 'running') for update",
    )
    .bind(array)
    .fetch_optional(&mut *tx)
    .await?;
    // The engine counts the array's running tasks anew in any case.
    events::append(tx, &[NewEvent { kind: "job.array_progress", job_id: Some(array), ..NewEvent::default() }]).await?;
    let Some((true, is_cancelled, are_some_cancelled)) = open else { return Ok(()) };
    let is_live: bool = sqlx::query_scalar(
        "select exists (select from jobs where array_job_id = $1 and state in ('pending', 'allocated', 'running', 'suspended', 'completing'))",
    )
    .bind(array)
    .fetch_one(&mut *tx)
    .await?;
    if is_live {
        sqlx::query("update jobs set state = 'running', version = version + 1 where job_id = $1 and state = 'pending'")
            .bind(array)
            .execute(tx)
            .await?;
        return Ok(());
    }
    let (ran, unsuccessful, worst): (i64, i64, Option<i32>) = sqlx::query_as(
        "select count(*) filter (where state <> 'cancelled'), count(*) filter (where state <> 'completed'), max(exit_code)
         from jobs where array_job_id = $1",
    )
    .bind(array)
    .fetch_one(&mut *tx)
    .await?;
    let state = match () {
        () if is_cancelled || ran == 0 => JobState::Cancelled,
        () if unsuccessful > 0 || are_some_cancelled => JobState::Failed,
        () => JobState::Completed,
    };
    sqlx::query("update jobs set state = $2, end_time = now(), exit_code = $3, version = version + 1 where job_id = $1")
        .bind(array)
        .bind(state.as_str())
        .bind(worst)
        .execute(&mut *tx)
        .await?;
    settle::after_end(tx, array, state).await
}

impl Db {
    /// Makes a task that has not started a job of its own, so that it can be held, changed or cancelled without the others. `None`: it is
    /// not waiting in its array any more.
    pub async fn split_off(&self, array: u64, index: u32) -> Result<Option<i64>, StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[array as i64]).await?;
        let task = split_one(&mut tx, array as i64, index).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(task)
    }
}
