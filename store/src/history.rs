//! Recorded history: jobs that ran and ended, as a replay needs them.

use berth_model::event::JobSnapshot;
use berth_model::state::JobState;
use berth_model::{JobId, Name};
use jiff::Timestamp;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::At;
use crate::jobs::submit::Planning;
use crate::{Db, StoreError};

/// A job that ran, with its last attempt.
#[derive(Clone, Debug)]
pub struct PastJob {
    /// As it was submitted: pending, without the jobs it depended on.
    pub job: JobSnapshot,
    pub started: Timestamp,
    pub ended: Timestamp,
    /// Attempts before the last one, and the seconds for which they ran.
    pub restarts: u32,
    pub lost_seconds: u64,
}

#[derive(FromRow)]
struct PastRow {
    job_id: i64,
    tenant: String,
    account: String,
    user_name: String,
    partition: String,
    qos: String,
    name: String,
    planning: Json<Planning>,
    time_limit: i64,
    nice: i32,
    site_factor: i32,
    submit_time: At,
    not_before: Option<At>,
    start_time: At,
    end_time: At,
    restarts: i32,
    lost: i64,
}

impl Db {
    /// Jobs submitted within [`from`, `to`) that ran and have ended, in order of submission, at most `most`. Tasks of arrays are jobs of
    /// their own.
    pub async fn history(&self, from: Timestamp, to: Timestamp, most: usize) -> Result<Vec<PastJob>, StoreError> {
        let rows: Vec<PastRow> = sqlx::query_as(
            "select job_id, tenant, account, user_name, partition, qos, name, planning, time_limit, nice, site_factor, submit_time, not_before,
                 start_time, end_time, restarts,
                 coalesce((select sum(greatest(extract(epoch from a.ended_at - a.started_at), 0)) from attempts a
                     where a.job_id = j.job_id and a.attempt < j.attempt), 0)::bigint as lost
             from jobs j where submit_time >= $1 and submit_time < $2 and end_time is not null and start_time is not null
                 and array_total is null
             order by submit_time, job_id limit $3",
        )
        .bind(At(from))
        .bind(At(to))
        .bind(most as i64)
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(PastRow::past).collect()
    }
}

impl PastRow {
    fn past(self) -> Result<PastJob, StoreError> {
        let name = |text: &str| Name::new(text).map_err(|_| StoreError::Corrupt(format!("name {text:?}")));
        let planning = self.planning.0;
        let job = JobSnapshot {
            id: JobId(self.job_id as u64),
            tenant: name(&self.tenant)?,
            account: name(&self.account)?,
            user: name(&self.user_name)?,
            partition: name(&self.partition)?,
            qos: name(&self.qos)?,
            name: self.name,
            state: JobState::Pending,
            hold: None,
            shape: planning.shape,
            time_limit: self.time_limit.max(1) as u64,
            submit_time: self.submit_time.0,
            accrues_since: Some(self.submit_time.0),
            not_before: self.not_before.map(|at| at.0).filter(|at| *at <= self.start_time.0),
            deadline: None,
            nice: self.nice,
            site_factor: self.site_factor,
            constraint: planning.constraint,
            choices: planning.choices,
            required_nodes: planning.required_nodes,
            excluded_nodes: planning.excluded_nodes,
            is_expedited: false,
            restarts: 0,
            dependencies: Vec::new(),
            dependency_any: false,
            is_singleton: false,
            array: None,
            task_of: None,
            component_of: None,
            attempt: None,
            claim: None,
            reservations: Vec::new(),
            licenses: planning.licenses,
        };
        let (started, ended) = (self.start_time.0, self.end_time.0.max(self.start_time.0));
        Ok(PastJob { job, started, ended, restarts: self.restarts.max(0) as u32, lost_seconds: self.lost.max(0) as u64 })
    }
}
