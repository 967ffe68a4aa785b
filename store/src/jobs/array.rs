//! Arrays: one row until a task starts, or until something is asked of one task; the task is then split off as a job of its own.

use berth_model::state::JobState;
use sqlx::postgres::PgConnection;

use crate::events::{self, NewEvent};
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A task just split off.
#[derive(Clone, sqlx::FromRow)]
pub(crate) struct SplitTask {
    pub job_id: i64,
    pub attempt: i32,
    pub is_script: bool,
    pub cpus_per_task: Option<String>,
    pub gpus_per_task: Option<String>,
    pub tenant: String,
}

/// A task split off so that something can be done to it does not start within this time: what is to be done follows in a transaction of
/// its own.
const EMBARGO_SECONDS: i32 = 2;

/// Splits task `index` off its array: as a job that has just been allocated (`starts`), or as a pending one. `None` if the index is not
/// pending any more, or if it is to start and the array is held. The caller holds the array's row.
pub(crate) async fn split(tx: &mut PgConnection, array: i64, index: i32, starts: bool) -> Result<Option<SplitTask>, StoreError> {
    let taken = sqlx::query(
        "update jobs set array_pending = array_pending - int4multirange(int4range($2, $2 + 1)), claim = case when $3 then null else claim end,
             version = version + 1
         where job_id = $1 and state = 'pending' and (hold is null or not $3) and array_pending @> $2",
    )
    .bind(array)
    .bind(index)
    .bind(starts)
    .execute(&mut *tx)
    .await?;
    if taken.rows_affected() == 0 {
        return Ok(None);
    }
    let task: SplitTask = sqlx::query_as(
        "insert into jobs (job_id, tenant, account, user_name, partition, qos, name, state, hold, spec, planning, labels, time_limit, nice,
             site_factor, submit_time, accrues_since, not_before, deadline, attempt, array_job_id, array_index)
         select nextval('job_ids'), tenant, account, user_name, partition, qos, name, case when $3 then 'allocated' else 'pending' end, hold, spec,
             planning, labels, time_limit, nice, site_factor, submit_time, accrues_since,
             case when $3 then not_before else greatest(not_before, now() + $4 * interval '1 second') end,
             deadline, case when $3 then 1 else 0 end, job_id, $2
         from jobs where job_id = $1
         returning job_id, attempt, spec->>'script' is not null as is_script, spec->'resources'->>'cpus_per_task' as cpus_per_task,
             spec->'resources'->'gpus_per_task'->>'count' as gpus_per_task, tenant",
    )
    .bind(array)
    .bind(index)
    .bind(starts)
    .bind(EMBARGO_SECONDS)
    .fetch_one(&mut *tx)
    .await?;
    if !starts {
        sqlx::query(
            "insert into job_dependencies (job_id, on_job_id, kind, delay_minutes, progress)
             select $2, on_job_id, kind, delay_minutes, progress from job_dependencies where job_id = $1",
        )
        .bind(array)
        .bind(task.job_id)
        .execute(&mut *tx)
        .await?;
        let event = NewEvent { kind: "job.split_off", job_id: Some(task.job_id), ..NewEvent::default() };
        events::append(tx, &[event]).await?;
    }
    // The last task to leave turns the array's row from waiting to running.
    settle_array(tx, array).await?;
    Ok(Some(task))
}

/// Ends an array's own row once no task is left to start and none is live. The caller holds the row.
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
    settle::after_end(tx, array, state).await
}

impl Db {
    /// Makes a task that has not started a job of its own, so that it can be held, changed or cancelled without the others. `None`: it is
    /// not waiting in its array any more.
    pub async fn split_off(&self, array: u64, index: u32) -> Result<Option<i64>, StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[array as i64]).await?;
        let task = split(&mut tx, array as i64, index as i32, false).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(task.map(|t| t.job_id))
    }
}
