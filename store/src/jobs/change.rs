//! Changes to a job: to all of a pending one, which is admitted anew, and to little of one that runs.

use berth_model::JobId;
use berth_model::job::JobSpec;
use berth_model::resize::Keep;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use super::accrual::accrue;
use super::array::indices_of;
use super::control::not_in_state;
use super::quota;
use super::resize;
use super::submit::{NewJob, add_dependencies};
use crate::db::At;
use crate::events::{self, NewEvent};
use crate::wake::Topic;
use crate::{Db, StoreError, settle};

/// A job as it shall be.
#[derive(Clone, Debug)]
pub struct JobChange {
    pub spec: JobSpec,
    pub name: String,
    pub time_limit: u64,
    /// An operator's own part of the priority; `None` leaves it.
    pub site_factor: Option<i32>,
    /// Most tasks of an array at once, 0 for as many as there are; `None` leaves it.
    pub array_throttle: Option<u32>,
    /// What a running job keeps of its nodes; `None`: all.
    pub keep: Option<Keep>,
    /// The job admitted anew, if more changes than a name, a comment, labels, `nice` and a running job's time limit. Only a pending job
    /// can be changed so.
    pub admitted: Option<Box<Admitted>>,
}

/// A pending job admitted anew.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub job: NewJob,
    /// Its dependencies are others than before.
    pub depends_anew: bool,
    /// Its begin time is another than before. Otherwise the delay of a requeue stays.
    pub begins_anew: bool,
}

impl Db {
    /// Changes a job as the caller saw it at `version`; `StaleVersion` if it is another now. `Conflict` if it is in no state to be changed
    /// so, or if it runs and its time limit would grow without `may_extend`. `Refused` as by a submission.
    pub async fn change_job(&self, job: u64, version: i64, change: &JobChange, may_extend: bool) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let nodes = apply(&mut tx, job, version, change, may_extend).await?;
        events::append(&mut tx, &[NewEvent { kind: "job.updated", job_id: Some(job as i64), ..NewEvent::default() }]).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(())
    }
}

/// Returns the nodes to wake.
pub(super) async fn apply(
    tx: &mut PgConnection,
    job: u64,
    expected: i64,
    change: &JobChange,
    may_extend: bool,
) -> Result<Vec<String>, StoreError> {
    let id = job as i64;
    let row: Option<(String, i64, i64, i32)> =
        sqlx::query_as("select state, version, time_limit, attempt from jobs where job_id = $1 for update")
            .bind(id)
            .fetch_optional(&mut *tx)
            .await?;
    let (state, version, time_limit, attempt) = row.ok_or_else(|| StoreError::NotFound(format!("job {job}")))?;
    if expected != version {
        return Err(StoreError::StaleVersion(format!("job {job}")));
    }
    let is_running = matches!(state.as_str(), "allocated" | "running" | "suspended");
    if state != "pending" && (change.admitted.is_some() || !is_running) {
        return Err(not_in_state(tx, job, if change.admitted.is_some() { "pending" } else { "pending or running" }).await?);
    }
    if is_running && !may_extend && change.time_limit as i64 > time_limit {
        return Err(StoreError::Conflict {
            code: "time_limit_extension",
            detail: format!("job {job} runs; its time limit of {time_limit} s can only be lowered"),
            help: "ask an administrator of the platform to extend a running job".to_owned(),
        });
    }
    sqlx::query(
        "update jobs set name = $2, spec = $3, labels = $4, nice = $5, time_limit = $6, site_factor = coalesce($7, site_factor),
             version = version + 1 where job_id = $1",
    )
    .bind(id)
    .bind(&change.name)
    .bind(Json(&change.spec))
    .bind(Json(&change.spec.labels))
    .bind(change.spec.nice)
    .bind(change.time_limit as i64)
    .bind(change.site_factor)
    .execute(&mut *tx)
    .await?;
    if let Some(admitted) = &change.admitted {
        replan(tx, id, admitted).await?;
    }
    if let Some(throttle) = change.array_throttle {
        sqlx::query(
            "update jobs set planning = case when $2 > 0 then jsonb_set(planning, '{throttle}', to_jsonb($2)) else planning - 'throttle' end
             where job_id = $1 and array_total is not null",
        )
        .bind(id)
        .bind(i64::from(throttle))
        .execute(&mut *tx)
        .await?;
    }
    if let Some(keep) = &change.keep {
        resize::shrink(tx, id, attempt, &state, keep).await?;
    }
    if is_running { settle::bump_attempt(tx, id, attempt).await } else { Ok(Vec::new()) }
}

/// What the engine needs of a pending job, made anew.
async fn replan(tx: &mut PgConnection, id: i64, admitted: &Admitted) -> Result<(), StoreError> {
    let Admitted { job: admitted, depends_anew, begins_anew } = admitted;
    let (moves, waiting): (bool, Option<String>) =
        sqlx::query_as("select (account, qos, partition) <> ($2, $3, $4), array_pending from jobs where job_id = $1")
            .bind(id)
            .bind(&admitted.account)
            .bind(&admitted.qos)
            .bind(&admitted.partition)
            .fetch_one(&mut *tx)
            .await?;
    // Where it comes to, it counts as a job more, or as many as tasks of it wait; it is not yet counted there.
    if moves && !admitted.submit_limits.is_empty() {
        let mut moved = admitted.clone();
        if let (Some(array), Some(waiting)) = (&mut moved.array, waiting) {
            array.indices = indices_of(&waiting)?;
        }
        quota::heed(tx, &[moved]).await?;
    }
    sqlx::query("update jobs set account = $2, partition = $3, qos = $4, planning = $5, deadline = $6 where job_id = $1")
        .bind(id)
        .bind(&admitted.account)
        .bind(&admitted.partition)
        .bind(&admitted.qos)
        .bind(Json(&admitted.planning))
        .bind(admitted.deadline.map(At))
        .execute(&mut *tx)
        .await?;
    if *begins_anew {
        // Its age begins with it, unless that counts already.
        sqlx::query(
            "update jobs set accrues_since = greatest(least(accrues_since, now()), case when accrues_since is not null then $2 end),
                 not_before = $2 where job_id = $1",
        )
        .bind(id)
        .bind(admitted.not_before.map(At))
        .execute(&mut *tx)
        .await?;
    }
    if *depends_anew {
        sqlx::query("delete from job_dependencies where job_id = $1").bind(id).execute(&mut *tx).await?;
        if admitted.dependencies.iter().any(|dependency| dependency.job.0 as i64 == id) {
            return Err(StoreError::Refused(berth_model::Fault::new(
                "dependency_not_found",
                "dependencies",
                format!("job {id} cannot wait for itself"),
                "name other jobs of your tenant",
            )));
        }
        add_dependencies(tx, admitted, JobId(id as u64)).await?;
    }
    accrue(tx, &[id]).await
}
