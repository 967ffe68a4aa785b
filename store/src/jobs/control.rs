//! What users ask of jobs: cancel, hold, release, requeue, signal, change. Each is one transaction with guards.

use berth_model::state::Hold;
use berth_model::step::StopReason;
use berth_model::{Indices, StepId};
use sqlx::postgres::PgConnection;

use crate::events::{self, NewEvent};
use crate::jobs::accrual::accrue;
use crate::jobs::array;
use crate::power;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

impl Db {
    /// Cancels a job: a pending one ends at once, one that holds nodes is stopped with `grace_seconds` between SIGTERM and SIGKILL.
    /// For an array all its tasks, for a component of a heterogeneous job all of them. A job that has ended is left as it is.
    pub async fn cancel_job(&self, job: u64, by: &str, grace_seconds: u64) -> Result<(), StoreError> {
        self.cancel(job, None, by, grace_seconds).await
    }

    /// Cancels some tasks of an array: those that wait end without ever having rows. Tasks that have ended, or never were, are passed over.
    pub async fn cancel_tasks(&self, array: u64, tasks: &Indices, by: &str, grace_seconds: u64) -> Result<(), StoreError> {
        self.cancel(array, Some(tasks), by, grace_seconds).await
    }

    async fn cancel(&self, job: u64, only: Option<&Indices>, by: &str, grace_seconds: u64) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = job as i64;
        // With the array's row in hand no further task can leave it.
        settle::lock_jobs(&mut tx, &[id]).await?;
        let tasks: Vec<(i64, i32)> = sqlx::query_as(
            "select job_id, array_index from jobs where array_job_id = $1 and state in ('pending', 'allocated', 'running', 'suspended', 'completing') order by job_id for update",
        )
        .bind(id)
        .fetch_all(&mut *tx)
        .await?;
        let mut nodes = Vec::new();
        for (task, _) in tasks.iter().filter(|(_, index)| only.is_none_or(|only| only.contains(*index as u32))) {
            nodes.extend(cancel_one(&mut tx, *task, by, grace_seconds).await?);
        }
        match only {
            None => {
                for component in settle::components_of(&mut tx, id).await? {
                    nodes.extend(cancel_one(&mut tx, component, by, grace_seconds).await?);
                }
            }
            Some(_) => array::cancel_waiting(&mut tx, id, only, by).await?,
        }
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        self.wake.notify(Topic::Job(job));
        Ok(())
    }

    /// Holds a pending job. `Conflict` if it is not pending.
    pub async fn hold_job(&self, job: u64, hold: Hold, by: &str) -> Result<(), StoreError> {
        self.set_hold(job, Some(hold), by, true).await
    }

    /// Releases a held job. An admin's hold is released only `as_admin`.
    pub async fn release_job(&self, job: u64, by: &str, as_admin: bool) -> Result<(), StoreError> {
        let row: Option<(Option<String>, String, bool)> = sqlx::query_as(
            "select hold, state, exists (select from jobs t where (t.array_job_id = $1 or t.het_job_id = $1) and t.state = 'pending' and t.hold is not null)
             from jobs where job_id = $1",
        )
        .bind(job as i64)
        .fetch_optional(&self.pool)
        .await?;
        let (held, state, are_tasks_held) = row.ok_or_else(|| StoreError::NotFound(format!("job {job}")))?;
        match held.as_deref() {
            None if are_tasks_held => self.set_hold(job, None, by, as_admin).await,
            None if state == "pending" => Ok(()),
            None => Err(wrong_state(job, &state, "pending")),
            Some("admin") if !as_admin => Err(StoreError::Conflict {
                code: "held_by_admin",
                detail: format!("job {job} is held by an administrator"),
                help: "ask an administrator of your tenant to release it".to_owned(),
            }),
            Some(_) => self.set_hold(job, None, by, as_admin).await,
        }
    }

    /// Only `as_admin` an administrator's hold is changed.
    async fn set_hold(&self, job: u64, hold: Option<Hold>, by: &str, as_admin: bool) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[job as i64]).await?;
        // Tasks that wait outside of their array's row (they were split off, or run again) are held with it, and components with the leader.
        let changed: Vec<i64> = sqlx::query_scalar(
            "update jobs set hold = $2, version = version + 1 where (job_id = $1 or array_job_id = $1 or het_job_id = $1) and state = 'pending'
                 and ($3 or hold is distinct from 'admin') returning job_id",
        )
        .bind(job as i64)
        .bind(hold.map(Hold::as_str))
        .bind(as_admin)
        .fetch_all(&mut *tx)
        .await?;
        if changed.is_empty() {
            return Err(not_in_state(&mut tx, job, "pending").await?);
        }
        accrue(&mut tx, &changed).await?;
        let kind = if hold.is_some() { "job.held" } else { "job.released" };
        let event = |job| NewEvent { kind, job_id: Some(job), detail: Some(serde_json::json!({ "by": by })), ..NewEvent::default() };
        events::append(&mut tx, &changed.into_iter().map(event).collect::<Vec<_>>()).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Stops what runs of a job, with all its components, and puts it back into the queue. `Conflict` if it holds no nodes, is ending or was
    /// submitted with `--no-requeue`.
    pub async fn requeue_job(&self, job: u64, by: &str, grace_seconds: u64, hold: bool) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[job as i64]).await?;
        let found: Option<(i32, bool)> = sqlx::query_as(
            "select attempt, coalesce(spec->'requeue'->>'mode', 'requeue') <> 'never' from jobs
             where job_id = $1 and state in ('allocated', 'running', 'suspended')",
        )
        .bind(job as i64)
        .fetch_optional(&mut *tx)
        .await?;
        let Some((attempt, may_run_again)) = found else {
            return Err(not_in_state(&mut tx, job, "running").await?);
        };
        if !may_run_again {
            return Err(StoreError::Conflict {
                code: "requeue_disabled",
                detail: format!("job {job} was submitted not to be requeued"),
                help: "let it be requeued first (PATCH requeue.mode; berth update --requeue), or cancel it and submit it anew".to_owned(),
            });
        }
        let components = settle::components_of(&mut tx, job as i64).await?;
        if hold {
            sqlx::query("update jobs set hold = 'user' where job_id = any($1)").bind(&components).execute(&mut *tx).await?;
        }
        let nodes = settle::stop_attempt(&mut tx, job as i64, attempt, StopReason::Requeued, grace_seconds).await?;
        for component in components {
            let event = NewEvent {
                kind: "job.requeue_requested",
                job_id: Some(component),
                attempt: Some(attempt),
                detail: Some(serde_json::json!({ "by": by })),
                ..NewEvent::default()
            };
            events::append(&mut tx, &[event]).await?;
            power::drop_waiting(&mut tx, component, attempt).await?;
        }
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Sends a signal to a running job's steps. `Conflict` if it does not run.
    pub async fn signal_job(&self, job: u64, signal: i32, step: Option<StepId>, is_full: bool) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let running: Option<i32> = sqlx::query_scalar("select attempt from jobs where job_id = $1 and state in ('running', 'completing')")
            .bind(job as i64)
            .fetch_optional(&mut *tx)
            .await?;
        let Some(attempt) = running else {
            return Err(not_in_state(&mut tx, job, "running").await?);
        };
        sqlx::query("insert into job_signals (job_id, attempt, signal, step, is_full) values ($1, $2, $3, $4, $5)")
            .bind(job as i64)
            .bind(attempt)
            .bind(signal)
            .bind(step.map(StepId::as_i32))
            .bind(is_full)
            .execute(&mut *tx)
            .await?;
        let nodes = settle::bump_attempt(&mut tx, job as i64, attempt).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        Ok(())
    }
}

/// Returns the nodes to wake.
async fn cancel_one(tx: &mut PgConnection, job: i64, by: &str, grace_seconds: u64) -> Result<Vec<String>, StoreError> {
    let row: Option<(String, i32, bool)> =
        sqlx::query_as("select state, attempt, array_total is not null from jobs where job_id = $1 for update")
            .bind(job)
            .fetch_optional(&mut *tx)
            .await?;
    let (state, attempt, is_array) = row.ok_or_else(|| StoreError::NotFound(format!("job {job}")))?;
    let event = |kind| NewEvent { kind, job_id: Some(job), detail: Some(serde_json::json!({ "by": by })), ..NewEvent::default() };
    match state.as_str() {
        _ if is_array => {
            array::cancel_waiting(tx, job, None, by).await?;
            Ok(Vec::new())
        }
        "pending" => {
            settle::end_without_attempt(tx, job, berth_model::state::JobState::Cancelled, &format!("cancelled by {by}")).await?;
            Ok(Vec::new())
        }
        "allocated" | "running" | "suspended" => {
            events::append(tx, &[event("job.cancel_requested")]).await?;
            sqlx::query("update jobs set reason = $2 where job_id = $1")
                .bind(job)
                .bind(format!("cancelled by {by}"))
                .execute(&mut *tx)
                .await?;
            let nodes = settle::stop_attempt(tx, job, attempt, StopReason::Cancelled, grace_seconds).await?;
            power::drop_waiting(tx, job, attempt).await?;
            Ok(nodes)
        }
        // Completing or ended: there is nothing left to cancel. But an attempt that is being stopped in order to run again must not.
        "completing" => {
            sqlx::query("update attempts set stop_reason = 'cancelled' where job_id = $1 and attempt = $2 and stop_reason in ('preempted', 'requeued', 'node_fail', 'launch_failed')")
                .bind(job)
                .bind(attempt)
                .execute(&mut *tx)
                .await?;
            Ok(Vec::new())
        }
        _ => Ok(Vec::new()),
    }
}

pub(crate) async fn not_in_state(tx: &mut PgConnection, job: u64, wanted: &str) -> Result<StoreError, StoreError> {
    let state: Option<String> = sqlx::query_scalar("select state from jobs where job_id = $1").bind(job as i64).fetch_optional(tx).await?;
    Ok(match state {
        None => StoreError::NotFound(format!("job {job}")),
        Some(state) => wrong_state(job, &state, wanted),
    })
}

/// What is asked cannot be done while the job is in `state`.
pub fn wrong_state(job: u64, state: &str, wanted: &str) -> StoreError {
    StoreError::Conflict {
        code: "wrong_state",
        detail: format!("job {job} is {state}, not {wanted}"),
        help: format!("this can be done while the job is {wanted}"),
    }
}
