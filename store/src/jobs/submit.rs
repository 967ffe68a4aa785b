//! Submission: many jobs in one statement, so that requests which arrive together share one commit.

use std::collections::BTreeSet;

use berth_model::array::ArraySpec;
use berth_model::dependency::{Dependency, DependencyKind};
use berth_model::job::JobSpec;
use berth_model::license::LicenseCounts;
use berth_model::limit::Bound;
use berth_model::resources::Shape;
use berth_model::state::Hold;
use berth_model::validate::Choice;
use berth_model::{Fault, JobId, Name, NodeName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnection;

use super::accrual::accrue;
use super::quota;
use crate::db::At;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// What the engine needs of a spec, parsed once at submission and stored beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planning {
    pub shape: Shape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Vec<BTreeSet<String>>>,
    /// Of a constraint that is not about each node by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub required_nodes: BTreeSet<NodeName>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub excluded_nodes: BTreeSet<NodeName>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dependency_any: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_singleton: bool,
    /// `%n` of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<u32>,
    /// Reservations to run in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Name>,
    /// Licences to hold: any one of these sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licenses: Vec<LicenseCounts>,
}

/// A job that passed all checks.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub tenant: String,
    pub account: String,
    pub user: String,
    pub partition: String,
    pub qos: String,
    pub name: String,
    pub spec: JobSpec,
    pub planning: Planning,
    pub time_limit: u64,
    pub hold: Option<Hold>,
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub array: Option<ArraySpec>,
    /// Of a component of a heterogeneous job. The components of one follow one another, the leader first.
    pub component: Option<Component>,
    pub dependencies: Vec<Dependency>,
    /// Limits on submitted jobs that bind it.
    pub submit_limits: Vec<Bound>,
}

/// A new job's place among the components of a heterogeneous job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    pub offset: u32,
    pub size: u32,
}

/// What the database made of a new job.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    pub job_id: JobId,
    pub submit_time: Timestamp,
}

impl Db {
    /// Stores `jobs`, all or none, and returns their ids in order. Committed when it returns. `Refused` if a dependency names a
    /// job that is not there, or if a limit on submitted jobs is reached.
    pub async fn submit_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let submitted = if jobs.iter().all(|job| job.dependencies.is_empty() && job.submit_limits.is_empty()) {
            let mut connection = self.pool.acquire().await?;
            insert(&mut connection, jobs).await?
        } else {
            let mut tx = self.pool.begin().await?;
            let submitted = insert_checked(&mut tx, jobs).await?;
            tx.commit().await?;
            submitted
        };
        self.wake.notify(Topic::Events);
        Ok(submitted)
    }

    /// As [`Db::submit_jobs`], once for each (`subject`, `key`): a repeat gets the first one's answer. `make_answer` turns the ids
    /// into what is kept and given again.
    pub async fn submit_jobs_once(
        &self,
        once: &Once,
        jobs: &[NewJob],
        make_answer: impl FnOnce(&[Submitted]) -> serde_json::Value + Send,
    ) -> Result<serde_json::Value, StoreError> {
        let mut tx = self.pool.begin().await?;
        if let Some(answer) = once.claim(&mut tx).await? {
            return Ok(answer);
        }
        let submitted = insert_checked(&mut tx, jobs).await?;
        let answer = make_answer(&submitted);
        once.keep(&mut tx, &answer).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(answer)
    }
}

/// An idempotency key with the hash of its request.
#[derive(Clone, Debug)]
pub struct Once {
    pub tenant: String,
    pub subject: String,
    pub key: String,
    pub request_hash: Vec<u8>,
}

impl Once {
    /// Claims the key within `tx`. `Some`: it was used before with the same request, and this was the answer. A request that still
    /// runs with this key is waited for, since its claim holds the row.
    async fn claim(&self, tx: &mut PgConnection) -> Result<Option<serde_json::Value>, StoreError> {
        let claimed = sqlx::query(
            "insert into idempotency_keys as k (tenant, subject, key, request_hash) values ($1, $2, $3, $4)
             on conflict (tenant, subject, key) do update set request_hash = $4, answer = null, created_at = now()
             where k.created_at < now() - interval '24 hours'",
        )
        .bind(&self.tenant)
        .bind(&self.subject)
        .bind(&self.key)
        .bind(&self.request_hash)
        .execute(&mut *tx)
        .await?;
        if claimed.rows_affected() == 1 {
            return Ok(None);
        }
        let (hash, answer): (Vec<u8>, Option<serde_json::Value>) =
            sqlx::query_as("select request_hash, answer from idempotency_keys where tenant = $1 and subject = $2 and key = $3")
                .bind(&self.tenant)
                .bind(&self.subject)
                .bind(&self.key)
                .fetch_one(&mut *tx)
                .await?;
        if hash != self.request_hash {
            return Err(StoreError::Refused(Fault::new(
                "idempotency_key_reused",
                "Idempotency-Key",
                "this key was used before with another request",
                "use a new key for each new request, and the same key only to repeat one",
            )));
        }
        Ok(answer)
    }

    async fn keep(&self, tx: &mut PgConnection, answer: &serde_json::Value) -> Result<(), StoreError> {
        sqlx::query("update idempotency_keys set answer = $4 where tenant = $1 and subject = $2 and key = $3")
            .bind(&self.tenant)
            .bind(&self.subject)
            .bind(&self.key)
            .bind(answer)
            .execute(tx)
            .await?;
        Ok(())
    }
}

async fn insert_checked(tx: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
    quota::heed(tx, jobs).await?;
    let submitted = insert(tx, jobs).await?;
    let mut depend = Vec::new();
    for (job, row) in jobs.iter().zip(&submitted).filter(|(job, _)| !job.dependencies.is_empty()) {
        add_dependencies(tx, job, row.job_id).await?;
        depend.push(row.job_id.0 as i64);
    }
    if !depend.is_empty() {
        accrue(tx, &depend).await?;
    }
    Ok(submitted)
}

/// One round trip: ids, rows and events in one statement.
pub(super) async fn insert(connection: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
    let specs = jobs.iter().map(|j| serde_json::to_string(&j.spec)).collect::<Result<Vec<_>, _>>()?;
    let plannings = jobs.iter().map(|j| serde_json::to_string(&j.planning)).collect::<Result<Vec<_>, _>>()?;
    let labels = jobs
        .iter()
        .map(|j| if j.spec.labels.is_empty() { Ok("{}".to_owned()) } else { serde_json::to_string(&j.spec.labels) })
        .collect::<Result<Vec<_>, _>>()?;
    let ids = component_ids(connection, jobs).await?;
    let leaders: Vec<Option<i64>> = jobs.iter().zip(&ids).map(|(job, id)| Some((*id)? - i64::from(job.component?.offset))).collect();
    let rows: Vec<(i64, At)> = sqlx::query_as(
        "with new as materialized (
             select coalesce(own_id, nextval('job_ids')) as job_id, u.* from unnest(
                 $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                 $11::bigint[], $12::int[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::int[], $17::bool[],
                 $18::bigint[], $19::bigint[], $20::int[], $21::int[])
             with ordinality as u (tenant, account, user_name, partition, qos, name, hold, spec, planning, labels,
                 time_limit, nice, not_before, deadline, array_pending, array_total, depends, own_id, het_job_id, het_offset, het_size, ord)
             order by ord
         ), stored as (
             insert into jobs (job_id, tenant, account, user_name, partition, qos, name, hold, spec, planning, labels,
                 time_limit, nice, not_before, deadline, array_pending, array_total, array_left, het_job_id, het_offset, het_size, accrues_since)
             select job_id, tenant, account, user_name, partition, qos, name, hold, spec::json, planning::jsonb, labels::jsonb,
                 time_limit, nice, not_before, deadline, array_pending, array_total, array_total,
                 het_job_id, het_offset, het_size,
                 case when hold is null and not depends then greatest(now(), not_before) end from new
         ), told as (
             insert into events (kind, tenant, job_id) select 'job.submitted', tenant, job_id from new order by ord
         )
         select job_id, now() from new order by ord",
    )
    .bind(column(jobs, |j| j.tenant.as_str()))
    .bind(column(jobs, |j| j.account.as_str()))
    .bind(column(jobs, |j| j.user.as_str()))
    .bind(column(jobs, |j| j.partition.as_str()))
    .bind(column(jobs, |j| j.qos.as_str()))
    .bind(column(jobs, |j| j.name.as_str()))
    .bind(column(jobs, |j| j.hold.map(Hold::as_str)))
    .bind(specs)
    .bind(plannings)
    .bind(labels)
    .bind(column(jobs, |j| j.time_limit as i64))
    .bind(column(jobs, |j| j.spec.nice))
    .bind(column(jobs, |j| j.not_before.map(At)))
    .bind(column(jobs, |j| j.deadline.map(At)))
    .bind(column(jobs, |j| j.array.as_ref().map(|a| a.indices.to_string())))
    .bind(column(jobs, |j| j.array.as_ref().map(|a| a.indices.len() as i32)))
    .bind(column(jobs, |j| !j.dependencies.is_empty()))
    .bind(ids)
    .bind(leaders)
    .bind(column(jobs, |j| j.component.map(|c| c.offset as i32)))
    .bind(column(jobs, |j| j.component.map(|c| c.size as i32)))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|(id, at)| Submitted { job_id: JobId(id as u64), submit_time: at.0 }).collect())
}

/// Ids of components, which follow one another; those of other jobs are drawn with their rows.
async fn component_ids(connection: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Option<i64>>, StoreError> {
    let mut ids = vec![None; jobs.len()];
    for (i, job) in jobs.iter().enumerate() {
        let Some(size) = job.component.filter(|component| component.offset == 0).map(|component| component.size) else { continue };
        let first = following_ids(connection, size).await?;
        ids[i..].iter_mut().zip(first..first + i64::from(size)).for_each(|(slot, id)| *slot = Some(id));
    }
    Ok(ids)
}

/// Draws ids until as many as asked for follow one another, and returns the first: others draw at the same time. Those in vain mean no job.
async fn following_ids(connection: &mut PgConnection, count: u32) -> Result<i64, StoreError> {
    for _ in 0..MOST_DRAWS {
        let (first, last): (i64, i64) =
            sqlx::query_as("select min(id), max(id) from (select nextval('job_ids') as id from generate_series(1, $1)) drawn")
                .bind(count as i32)
                .fetch_one(&mut *connection)
                .await?;
        if last - first + 1 == i64::from(count) {
            return Ok(first);
        }
    }
    Err(StoreError::Unavailable("too many jobs are being submitted for ids that follow one another".to_owned()))
}

/// Many more than were ever needed.
const MOST_DRAWS: usize = 1000;

fn column<'a, T>(jobs: &'a [NewJob], of: impl Fn(&'a NewJob) -> T) -> Vec<T> {
    jobs.iter().map(of).collect()
}

/// Adds a new job's dependencies with how they stand now. The jobs depended upon are locked, so that one which is just ending
/// either is seen as ended here or sees this job when it ends.
pub(super) async fn add_dependencies(tx: &mut PgConnection, job: &NewJob, job_id: JobId) -> Result<(), StoreError> {
    let on: BTreeSet<i64> = job.dependencies.iter().map(|d| d.job.0 as i64).collect();
    if on.is_empty() {
        return Ok(());
    }
    let found: Vec<i64> =
        sqlx::query_scalar("select job_id from jobs where job_id = any($1) and tenant = $2 order by job_id for no key update")
            .bind(on.into_iter().collect::<Vec<_>>())
            .bind(&job.tenant)
            .fetch_all(&mut *tx)
            .await?;
    for dependency in &job.dependencies {
        let missing = || {
            StoreError::Refused(Fault::new(
                "dependency_not_found",
                "dependencies",
                format!("there is no job {dependency}"),
                "name jobs of your tenant that were submitted before this one",
            ))
        };
        let on = dependency.job.0 as i64;
        if !found.contains(&on) {
            return Err(missing());
        }
        let on = match dependency.task {
            Some(index) => task_of(tx, on, index).await?.ok_or_else(missing)?,
            None => on,
        };
        let (state, started): (String, Option<At>) =
            sqlx::query_as("select state, start_time from jobs where job_id = $1").bind(on).fetch_one(&mut *tx).await?;
        // Between arrays the feed looks task by task.
        let is_by_task = dependency.kind == DependencyKind::AfterCorr && job.array.is_some();
        let progress = if is_by_task { "waiting" } else { progress(dependency.kind, &state, started.is_some()) };
        sqlx::query(
            "insert into job_dependencies (job_id, on_job_id, kind, delay_minutes, progress) values ($1, $2, $3, $4, $5)
             on conflict (job_id, on_job_id, kind) do update set delay_minutes = greatest(job_dependencies.delay_minutes, excluded.delay_minutes)",
        )
        .bind(job_id.0 as i64)
        .bind(on)
        .bind(dependency.kind.as_str())
        .bind(dependency.delay_minutes as i32)
        .bind(progress)
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// The job of an array's task, which is split off if it has none yet.
async fn task_of(tx: &mut PgConnection, array: i64, index: u32) -> Result<Option<i64>, StoreError> {
    let started: Option<i64> =
        sqlx::query_scalar("select job_id from jobs where array_job_id = $1 and array_index = $2 order by job_id desc limit 1")
            .bind(array)
            .bind(index as i32)
            .fetch_optional(&mut *tx)
            .await?;
    match started {
        Some(job) => Ok(Some(job)),
        None => super::array::split_one(tx, array, index).await,
    }
}

/// How a dependency stands, given the state of the job depended upon.
pub(crate) fn progress(kind: DependencyKind, state: &str, has_started: bool) -> &'static str {
    let state: berth_model::state::JobState = state.parse().expect("the store holds known states");
    let (ended, succeeded) = (state.is_end(), state == berth_model::state::JobState::Completed);
    match kind {
        DependencyKind::After if has_started || ended => "satisfied",
        DependencyKind::AfterAny if ended => "satisfied",
        DependencyKind::AfterOk | DependencyKind::AfterCorr if ended => {
            if succeeded {
                "satisfied"
            } else {
                "never"
            }
        }
        DependencyKind::AfterNotOk if ended => {
            if succeeded {
                "never"
            } else {
                "satisfied"
            }
        }
        _ => "waiting",
    }
}
