//! Reading jobs: one by reference, many by filter and page.

use berth_model::job::JobSpec;
use berth_model::preemption::{Preempted, Suspension};
use berth_model::state::{Hold, JobState};
use berth_model::verdict::{Decision, JobVerdict};
use berth_model::{Indices, JobRef};
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder};

use super::array::indices_of;
use crate::db::At;
use crate::{Db, StoreError};

/// A job as stored, without its spec.
#[derive(Clone, Debug, FromRow)]
pub struct JobRow {
    pub job_id: i64,
    pub tenant: String,
    pub account: String,
    pub user_name: String,
    pub partition: String,
    pub qos: String,
    pub name: String,
    pub state: String,
    pub hold: Option<String>,
    pub labels: Json<std::collections::BTreeMap<String, String>>,
    pub time_limit: i64,
    pub nice: i32,
    pub submit_time: At,
    pub not_before: Option<At>,
    pub deadline: Option<At>,
    pub start_time: Option<At>,
    pub end_time: Option<At>,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<i32>,
    pub reason: Option<String>,
    pub attempt: i32,
    pub restarts: i32,
    pub is_expedited: bool,
    pub array_pending: Option<String>,
    /// Tasks that were cancelled together while they waited.
    pub array_cancelled: Option<String>,
    pub array_left: Option<i32>,
    pub array_throttle: Option<i64>,
    pub array_total: Option<i32>,
    pub array_job_id: Option<i64>,
    pub array_index: Option<i32>,
    /// Of a component of a heterogeneous job: the leader, its place behind it, and how many there are.
    pub het_job_id: Option<i64>,
    pub het_offset: Option<i32>,
    pub het_size: Option<i32>,
    pub version: i64,
    pub nodes: Option<Vec<String>>,
    pub run_id: Option<String>,
    pub stop_reason: Option<String>,
    /// For how long the attempt has stood still up to now.
    pub suspended_ms: Option<i64>,
    pub priority: Option<i64>,
    pub planned_start: Option<At>,
    /// Codes of the last verdicts, the binding one first.
    pub pending_reasons: Option<Vec<String>>,
}

impl JobRow {
    pub fn state(&self) -> Result<JobState, StoreError> {
        self.state.parse().map_err(|_| StoreError::Corrupt(format!("job {} has state {:?}", self.job_id, self.state)))
    }

    pub fn hold(&self) -> Option<Hold> {
        self.hold.as_deref().and_then(|h| h.parse().ok())
    }

    /// Indices of an array that have not started.
    pub fn pending_indices(&self) -> Result<Option<Indices>, StoreError> {
        self.array_pending.as_deref().map(indices_of).transpose()
    }

    /// The array as it stands for one of its tasks that has no row: one that waits, or was cancelled while it waited.
    fn of_task(self, index: u32) -> Result<Option<JobRow>, StoreError> {
        if self.pending_indices()?.is_some_and(|waiting| waiting.contains(index)) {
            return Ok(Some(self));
        }
        let is_cancelled = indices_of(self.array_cancelled.as_deref().unwrap_or_default())?.contains(index);
        let state = JobState::Cancelled.to_string();
        Ok(is_cancelled.then_some(JobRow { state, array_job_id: Some(self.job_id), array_index: Some(index as i32), ..self }))
    }
}

const COLUMNS: &str = "j.job_id, j.tenant, j.account, j.user_name, j.partition, j.qos, j.name, j.state, j.hold, j.labels, j.time_limit, j.nice,
    j.submit_time, j.not_before, j.deadline, j.start_time, j.end_time, j.exit_code, j.exit_signal, j.reason, j.attempt, j.restarts,
    j.is_expedited, j.array_pending, j.array_cancelled, j.array_left,
    case when j.array_total is not null then (j.planning->>'throttle')::bigint end as array_throttle, j.array_total, j.array_job_id, j.array_index, j.het_job_id, j.het_offset, j.het_size, j.version,
    a.nodes, a.run_id, a.stop_reason,
    stood_still_ms(a) as suspended_ms, v.priority, v.planned_start,
    (select array_agg(x->>'code' order by n) from jsonb_array_elements(v.verdict->'verdicts') with ordinality as t(x, n)) as pending_reasons";

const FROM: &str = " from jobs j
    left join attempts a on a.job_id = j.job_id and a.attempt = j.attempt
    left join job_verdicts v on v.job_id = j.job_id and j.state = 'pending'";

/// Which jobs to list. Empty sets mean any.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// `None`: all tenants (platform admins).
    pub tenant: Option<String>,
    pub states: Vec<String>,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub qos: Vec<String>,
    pub users: Vec<String>,
    /// Shell-like patterns: `train*`.
    pub names: Vec<String>,
    pub labels: Vec<(String, String)>,
    pub submitted_after: Option<jiff::Timestamp>,
    pub submitted_before: Option<jiff::Timestamp>,
    pub node: Option<String>,
    pub array_job_id: Option<i64>,
    /// Components of this heterogeneous job.
    pub het_job_id: Option<i64>,
}

/// Orders a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSort {
    JobId,
    SubmitTime,
    StartTime,
    EndTime,
    Priority,
}

impl JobSort {
    fn expression(self) -> &'static str {
        match self {
            JobSort::JobId => "j.job_id",
            JobSort::SubmitTime => "(extract(epoch from j.submit_time) * 1000000)::bigint",
            JobSort::StartTime => "coalesce((extract(epoch from j.start_time) * 1000000)::bigint, 9223372036854775807)",
            JobSort::EndTime => "coalesce((extract(epoch from j.end_time) * 1000000)::bigint, 9223372036854775807)",
            JobSort::Priority => "coalesce(v.priority, 0)",
        }
    }
}

/// A page: the sort value and id of the last row seen.
#[derive(Clone, Copy, Debug)]
pub struct After {
    pub value: i64,
    pub job_id: i64,
}

impl Db {
    /// A job by reference, within `tenant` if given. A task of an array that has not started is represented by the array,
    /// whose `job_id` the row then has.
    pub async fn job(&self, tenant: Option<&str>, job: JobRef) -> Result<JobRow, StoreError> {
        let mut query = QueryBuilder::<Postgres>::new("select ");
        query.push(COLUMNS).push(FROM);
        match job {
            JobRef::Job(id) => query.push(" where j.job_id = ").push_bind(id.0 as i64),
            JobRef::Task { array, index } => query
                .push(" where ((j.array_job_id = ")
                .push_bind(array.0 as i64)
                .push(" and j.array_index = ")
                .push_bind(index as i32)
                .push(") or j.job_id = ")
                .push_bind(array.0 as i64)
                .push(")"),
            JobRef::Component { leader, offset } => {
                query.push(" where j.het_job_id = ").push_bind(leader.0 as i64).push(" and j.het_offset = ").push_bind(i64::from(offset))
            }
        };
        if let Some(tenant) = tenant {
            query.push(" and j.tenant = ").push_bind(tenant);
        }
        query.push(" order by j.array_index nulls last limit 1");
        let row: Option<JobRow> = query.build_query_as().fetch_optional(&self.pool).await?;
        let row = match (row, job) {
            (Some(row), JobRef::Task { index, .. }) if row.array_index.is_none() => row.of_task(index)?,
            (row, _) => row,
        };
        row.ok_or_else(|| StoreError::NotFound(format!("job {job}")))
    }

    /// Up to `limit` jobs that pass `filter`, in the given order, after `after`; each with its sort value.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        sort: JobSort,
        descending: bool,
        after: Option<After>,
        limit: i64,
    ) -> Result<Vec<(i64, JobRow)>, StoreError> {
        let mut query = QueryBuilder::<Postgres>::new("select ");
        query.push(sort.expression()).push(" as sort_value, ").push(COLUMNS).push(FROM).push(" where true");
        push_filter(&mut query, filter);
        let (order, beyond) = if descending { (" desc", " < ") } else { (" asc", " > ") };
        if let Some(after) = after {
            query.push(" and (").push(sort.expression()).push(", j.job_id)").push(beyond).push("(");
            query.push_bind(after.value).push(", ").push_bind(after.job_id).push(")");
        }
        query.push(" order by ").push(sort.expression()).push(order).push(", j.job_id").push(order).push(" limit ").push_bind(limit);
        #[derive(FromRow)]
        struct Sorted {
            sort_value: i64,
            #[sqlx(flatten)]
            job: JobRow,
        }
        let rows: Vec<Sorted> = query.build_query_as().fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|row| (row.sort_value, row.job)).collect())
    }

    /// A job's spec as submitted, defaults filled in.
    pub async fn job_spec(&self, job: u64) -> Result<JobSpec, StoreError> {
        let spec: Option<Json<JobSpec>> =
            sqlx::query_scalar("select spec from jobs where job_id = $1").bind(job as i64).fetch_optional(&self.pool).await?;
        Ok(spec.ok_or_else(|| StoreError::NotFound(format!("job {job}")))?.0)
    }

    /// What the last plan said of a pending job, and when.
    pub async fn job_verdict(&self, job: u64) -> Result<Option<(JobVerdict, At)>, StoreError> {
        let row: Option<(Json<JobVerdict>, At)> =
            sqlx::query_as("select verdict, as_of from job_verdicts where job_id = $1").bind(job as i64).fetch_optional(&self.pool).await?;
        Ok(row.map(|(verdict, as_of)| (verdict.0, as_of)))
    }

    /// Which of `jobs` waited at `at` and were not started then.
    pub async fn jobs_left_waiting(&self, jobs: &[u64], at: At) -> Result<Vec<u64>, StoreError> {
        let rows: Vec<i64> = sqlx::query_scalar(
            "select job_id from jobs j where job_id = any($1) and submit_time <= $2 and (end_time is null or end_time > $2)
                 and not exists (select from attempts a where a.job_id = j.job_id and a.allocated_at <= $2) order by 1",
        )
        .bind(jobs.iter().map(|job| *job as i64).collect::<Vec<_>>())
        .bind(at)
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|job| job as u64).collect())
    }

    /// A job's attempts, oldest first.
    pub async fn attempts(&self, job: u64) -> Result<Vec<AttemptRow>, StoreError> {
        Ok(sqlx::query_as(
            "select attempt, run_id, state, nodes, allocation, allocated_at, started_at, ended_at, stop_reason, exit_code, exit_signal, failure, decision,
                 checkpoint_at, preempted, suspension,
                 stood_still_ms(attempts) as suspended_ms
             from attempts where job_id = $1 order by attempt",
        )
        .bind(job as i64)
        .fetch_all(&self.pool)
        .await?)
    }

    /// Number of jobs by state and partition, live ones and ends of the last day, for metrics.
    pub async fn job_counts(&self) -> Result<Vec<(String, String, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "select state, partition, count(*) from jobs
             where state in ('pending', 'allocated', 'running', 'suspended', 'completing') group by 1, 2 order by 1, 2",
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

/// An attempt as stored.
#[derive(Clone, Debug, FromRow)]
pub struct AttemptRow {
    pub attempt: i32,
    pub run_id: String,
    pub state: String,
    pub nodes: Vec<String>,
    pub allocation: Json<Vec<berth_model::resources::NodeAllocation>>,
    pub allocated_at: At,
    pub started_at: Option<At>,
    pub ended_at: Option<At>,
    pub stop_reason: Option<String>,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<i32>,
    pub failure: Option<String>,
    /// The plan that started it; unknown of those started by an older version.
    pub decision: Option<Json<Decision>>,
    pub checkpoint_at: Option<At>,
    pub preempted: Option<Json<Preempted>>,
    pub suspension: Option<Json<Suspension>>,
    pub suspended_ms: i64,
}

fn push_filter(query: &mut QueryBuilder<Postgres>, filter: &JobFilter) {
    if let Some(tenant) = &filter.tenant {
        query.push(" and j.tenant = ").push_bind(tenant.clone());
    }
    for (column, values) in [
        ("j.state", &filter.states),
        ("j.account", &filter.accounts),
        ("j.partition", &filter.partitions),
        ("j.qos", &filter.qos),
        ("j.user_name", &filter.users),
    ] {
        if !values.is_empty() {
            query.push(" and ").push(column).push(" = any(").push_bind(values.clone()).push(")");
        }
    }
    if !filter.names.is_empty() {
        let patterns: Vec<String> = filter.names.iter().map(|n| like_pattern(n)).collect();
        query.push(" and j.name like any(").push_bind(patterns).push(")");
    }
    for (key, value) in &filter.labels {
        query.push(" and j.labels->>").push_bind(key.clone()).push(" = ").push_bind(value.clone());
    }
    if let Some(after) = filter.submitted_after {
        query.push(" and j.submit_time > ").push_bind(At(after));
    }
    if let Some(before) = filter.submitted_before {
        query.push(" and j.submit_time < ").push_bind(At(before));
    }
    if let Some(node) = &filter.node {
        query
            .push(" and j.state in ('allocated', 'running', 'suspended', 'completing') and a.nodes @> array[")
            .push_bind(node.clone())
            .push("]");
    }
    if let Some(array) = filter.array_job_id {
        query.push(" and j.array_job_id = ").push_bind(array);
    }
    if let Some(leader) = filter.het_job_id {
        query.push(" and j.het_job_id = ").push_bind(leader);
    }
}

/// `train*` and `tr?in` as LIKE patterns.
fn like_pattern(glob: &str) -> String {
    let mut pattern = String::with_capacity(glob.len() + 4);
    for c in glob.chars() {
        match c {
            '*' => pattern.push('%'),
            '?' => pattern.push('_'),
            '%' | '_' | '\\' => {
                pattern.push('\\');
                pattern.push(c);
            }
            c => pattern.push(c),
        }
    }
    pattern
}

impl Db {
    /// Those of `jobs` that belong to `tenant`.
    pub async fn jobs_of_tenant(&self, tenant: &str, jobs: &[u64]) -> Result<Vec<u64>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let own: Vec<i64> = sqlx::query_scalar("select job_id from jobs where job_id = any($1) and tenant = $2 order by 1")
            .bind(jobs.iter().map(|j| *j as i64).collect::<Vec<_>>())
            .bind(tenant)
            .fetch_all(&self.pool)
            .await?;
        Ok(own.into_iter().map(|j| j as u64).collect())
    }
}
