//! Suspension: jobs are told to stand still, their nodes say that they do, and they are told to go on.
//!
//! A suspension is an order with a number, at the attempt and at each of its nodes' parts. When all parts that there still are have said
//! that they stand still, the job is `suspended`, and its CPUs are for others. The leader lets it go on when there are CPUs for it again;
//! these may be others, and then its steps' parts are written anew.

use std::collections::BTreeMap;

use berth_model::JobId;
use berth_model::preemption::Suspension;
use berth_model::resources::NodeAllocation;
use berth_model::step::NodeStep;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::events::{self, NewEvent};
use crate::jobs::control::not_in_state;
use crate::lease::Epoch;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A suspended job that is to go on.
#[derive(Clone, Debug)]
pub struct NewResume {
    pub job: JobId,
    pub attempt: u32,
    pub suspension: u32,
    /// What it has on each node from now on.
    pub nodes: Vec<NodeAllocation>,
}

impl Db {
    /// Tells a running job to stand still until a person says otherwise. One that does so already, or stands still for another job, stays
    /// so until then. `Conflict` if it does not run.
    pub async fn suspend_job(&self, job: u64, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = job as i64;
        settle::lock_jobs(&mut tx, &[id]).await?;
        let is_component: Option<bool> =
            sqlx::query_scalar("select het_job_id is not null from jobs where job_id = $1").bind(id).fetch_optional(&mut *tx).await?;
        if is_component == Some(true) {
            return Err(StoreError::Conflict {
                code: "hetjob_not_suspended",
                detail: format!("job {job} is a component of a heterogeneous job"),
                help: "such jobs are not suspended; cancel or requeue the whole of it".to_owned(),
            });
        }
        let found: Option<(i32, bool)> = sqlx::query_as(
            "select j.attempt, a.suspension is not null from jobs j join attempts a on a.job_id = j.job_id and a.attempt = j.attempt
             where j.job_id = $1 and j.state in ('running', 'suspended') and a.started_at is not null and a.stop_reason is null",
        )
        .bind(id)
        .fetch_optional(&mut *tx)
        .await?;
        let nodes = match found {
            None => return Err(not_in_state(&mut tx, job, "running").await?),
            Some((attempt, true)) => {
                hold_back(&mut tx, id, attempt, true, by).await?;
                Vec::new()
            }
            Some((attempt, false)) => order(&mut tx, &[Order { job: id, attempt, for_job: None, by: Some(by) }]).await?,
        };
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Lets a suspended job go on as soon as there are CPUs for it. `Conflict` if it is not suspended.
    pub async fn resume_job(&self, job: u64, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[job as i64]).await?;
        let attempt: Option<i32> = sqlx::query_scalar(
            "select j.attempt from jobs j join attempts a on a.job_id = j.job_id and a.attempt = j.attempt
             where j.job_id = $1 and j.state in ('running', 'suspended') and a.suspension is not null",
        )
        .bind(job as i64)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(attempt) = attempt else {
            return Err(not_in_state(&mut tx, job, "suspended").await?);
        };
        hold_back(&mut tx, job as i64, attempt, false, by).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Lets suspended jobs go on. One transaction; a job that is no longer suspended, or was suspended anew, is left alone. Returns the
    /// number of those that go on. `Fenced` if the epoch has passed.
    pub async fn commit_resumes(&self, epoch: Epoch, resumes: &[NewResume]) -> Result<usize, StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        settle::lock_jobs(&mut tx, &resumes.iter().map(|resume| resume.job.0 as i64).collect::<Vec<_>>()).await?;
        let mut nodes = Vec::new();
        let mut count = 0;
        for resume in resumes {
            if go_on(&mut tx, resume).await? {
                count += 1;
                nodes.extend(resume.nodes.iter().map(|held| held.node.as_str().to_owned()));
            }
        }
        settle::bump_nodes(&mut tx, &mut nodes).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        Ok(count)
    }

    /// The jobs that were suspended for a job, the last first, each once, at most `most`.
    pub async fn suspended_for(&self, job: u64, most: i64) -> Result<Vec<(u64, jiff::Timestamp)>, StoreError> {
        let rows: Vec<(i64, crate::db::At)> = sqlx::query_as(
            "select job_id, max(at) as at from suspensions where for_job = $1 group by job_id order by at desc, job_id limit $2",
        )
        .bind(job as i64)
        .bind(most)
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|(victim, at)| (victim as u64, at.0)).collect())
    }
}

/// An attempt that is to stand still, and why: for another job, or by a person.
pub(crate) struct Order<'a> {
    pub job: i64,
    pub attempt: i32,
    pub for_job: Option<i64>,
    pub by: Option<&'a str>,
}

/// Tells running attempts to stand still. The caller holds the jobs' rows and knows that they are not suspended. Returns the nodes to wake.
pub(crate) async fn order(tx: &mut PgConnection, orders: &[Order<'_>]) -> Result<Vec<String>, StoreError> {
    let (jobs, attempts): (Vec<i64>, Vec<i32>) = orders.iter().map(|order| (order.job, order.attempt)).unzip();
    let mut nodes: Vec<String> = sqlx::query_scalar(
        "with told as (select t.*, 1 + coalesce((select max(s.number) from suspensions s where s.job_id = t.job_id and s.attempt = t.attempt), 0) as number
             from unnest($1::bigint[], $2::int[], $3::bigint[], $4::text[]) t (job_id, attempt, for_job, by_user)),
         noted as (insert into suspensions (job_id, attempt, number, for_job, by_user) select job_id, attempt, number, for_job, by_user from told),
         marked as (update attempts a set suspension = jsonb_strip_nulls(jsonb_build_object('number', t.number, 'at', now(), 'for_job', t.for_job,
                 'is_held', t.for_job is null)) from told t where a.job_id = t.job_id and a.attempt = t.attempt),
         seen as (update jobs j set version = j.version + 1 from told t where j.job_id = t.job_id)
         update assignments s set suspend = t.number from told t where s.job_id = t.job_id and s.attempt = t.attempt returning s.node",
    )
    .bind(&jobs)
    .bind(&attempts)
    .bind(orders.iter().map(|order| order.for_job).collect::<Vec<_>>())
    .bind(orders.iter().map(|order| order.by).collect::<Vec<_>>())
    .fetch_all(&mut *tx)
    .await?;
    settle::bump_nodes(tx, &mut nodes).await?;
    let news: Vec<NewEvent> = orders
        .iter()
        .map(|order| NewEvent {
            kind: "job.suspending",
            job_id: Some(order.job),
            attempt: Some(order.attempt),
            detail: Some(serde_json::json!({ "for_job": order.for_job, "by": order.by })),
            ..NewEvent::default()
        })
        .collect();
    events::append(tx, &news).await?;
    Ok(nodes)
}

/// A person holds a suspended job back, or no longer does.
async fn hold_back(tx: &mut PgConnection, job: i64, attempt: i32, is_held: bool, by: &str) -> Result<(), StoreError> {
    sqlx::query(
        "with changed as (update attempts set suspension = suspension || jsonb_build_object('is_held', $3) where job_id = $1 and attempt = $2)
         update jobs set version = version + 1 where job_id = $1",
    )
    .bind(job)
    .bind(attempt)
    .bind(is_held)
    .execute(&mut *tx)
    .await?;
    let kind = if is_held { "job.suspending" } else { "job.resume_requested" };
    let detail = Some(serde_json::json!({ "by": by }));
    events::append(tx, &[NewEvent { kind, job_id: Some(job), attempt: Some(attempt), detail, ..NewEvent::default() }]).await
}

/// A node says that its part stands still. `false`: that is not asked for any more.
pub(crate) async fn stands_still(tx: &mut PgConnection, node: &str, job: i64, attempt: i32, number: u32) -> Result<bool, StoreError> {
    let noted = sqlx::query("update assignments set suspended = $4 where node = $1 and job_id = $2 and attempt = $3 and suspend = $4")
        .bind(node)
        .bind(job)
        .bind(attempt)
        .bind(number as i32)
        .execute(tx)
        .await?;
    Ok(noted.rows_affected() > 0)
}

/// Those of `attempts` of which all parts stand still are suspended now. The caller holds the jobs' rows. Returns them.
pub(crate) async fn settle_suspensions(tx: &mut PgConnection, attempts: &[(i64, i32)]) -> Result<Vec<(i64, i32)>, StoreError> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let (jobs, numbers): (Vec<i64>, Vec<i32>) = attempts.iter().copied().unzip();
    let still: Vec<(i64, i32)> = sqlx::query_as(
        "with still as (select a.job_id, a.attempt, (a.suspension->>'number')::int as number from unnest($1::bigint[], $2::int[]) t (job_id, attempt)
             join attempts a on a.job_id = t.job_id and a.attempt = t.attempt join jobs j on j.job_id = a.job_id and j.attempt = a.attempt
             where a.suspension is not null and not a.suspension ? 'since' and j.state = 'running'
                 and exists (select from assignments s where s.job_id = a.job_id and s.attempt = a.attempt)
                 and not exists (select from assignments s where s.job_id = a.job_id and s.attempt = a.attempt
                     and s.suspended is distinct from (a.suspension->>'number')::int)),
         noted as (update suspensions s set since = now() from still t where s.job_id = t.job_id and s.attempt = t.attempt and s.number = t.number),
         marked as (update attempts a set suspension = a.suspension || jsonb_build_object('since', now()) from still t
             where a.job_id = t.job_id and a.attempt = t.attempt)
         update jobs j set state = 'suspended', version = j.version + 1 from still t where j.job_id = t.job_id returning j.job_id, j.attempt",
    )
    .bind(jobs)
    .bind(numbers)
    .fetch_all(&mut *tx)
    .await?;
    let event = |(job, attempt): &(i64, i32)| NewEvent {
        kind: "job.suspended",
        job_id: Some(*job),
        attempt: Some(*attempt),
        ..NewEvent::default()
    };
    events::append(tx, &still.iter().map(event).collect::<Vec<_>>()).await?;
    Ok(still)
}

/// `false`: it is not as the leader saw it.
async fn go_on(tx: &mut PgConnection, resume: &NewResume) -> Result<bool, StoreError> {
    let (job, attempt) = (resume.job.0 as i64, resume.attempt as i32);
    let found: Option<(Json<Suspension>, Json<Vec<NodeAllocation>>)> = sqlx::query_as(
        "select a.suspension, a.allocation from attempts a join jobs j on j.job_id = a.job_id and j.attempt = a.attempt
         where a.job_id = $1 and a.attempt = $2 and a.suspension ? 'since' and j.state = 'suspended' for update of a",
    )
    .bind(job)
    .bind(attempt)
    .fetch_optional(&mut *tx)
    .await?;
    let is_meant = |suspension: &Suspension| suspension.number == resume.suspension && !suspension.is_held;
    let Some(mut allocation) = found.and_then(|(suspension, allocation)| is_meant(&suspension).then_some(allocation)) else {
        return Ok(false);
    };
    let moves = move_cpus(&mut allocation.0, &resume.nodes);
    sqlx::query(
        "with marked as (update attempts a set suspension = null, allocation = $3, suspended_ms = stood_still_ms(a)
             where job_id = $1 and attempt = $2),
         noted as (update suspensions set until = now() where job_id = $1 and attempt = $2 and until is null),
         parts as (update assignments s set suspend = null, suspended = null, allocation = n.part
             from jsonb_array_elements($4::jsonb) n (part) where s.job_id = $1 and s.attempt = $2 and s.node = n.part->>'node')
         update jobs set state = 'running', version = version + 1 where job_id = $1",
    )
    .bind(job)
    .bind(attempt)
    .bind(&allocation)
    .bind(Json(&resume.nodes))
    .execute(&mut *tx)
    .await?;
    move_steps(tx, job, attempt, &moves).await?;
    let event = NewEvent { kind: "job.resumed", job_id: Some(job), attempt: Some(attempt), ..NewEvent::default() };
    events::append(tx, &[event]).await?;
    Ok(true)
}

/// For each node on which a job goes on on other CPUs: which takes the place of which.
type Moves = BTreeMap<String, BTreeMap<u32, u32>>;

fn move_cpus(allocation: &mut [NodeAllocation], nodes: &[NodeAllocation]) -> Moves {
    let mut moves = Moves::new();
    for new in nodes {
        let Some(old) = allocation.iter_mut().find(|old| old.node == new.node) else { continue };
        let left = old.cpus.iter().filter(|cpu| !new.cpus.contains(cpu));
        let came = new.cpus.iter().filter(|cpu| !old.cpus.contains(cpu));
        let moved: BTreeMap<u32, u32> = left.copied().zip(came.copied()).collect();
        if !moved.is_empty() {
            moves.insert(new.node.as_str().to_owned(), moved);
        }
        old.cpus.clone_from(&new.cpus);
        old.idle_cpus.clone_from(&new.idle_cpus);
    }
    moves
}

/// The steps that go on there get the new CPUs in the place of the old.
async fn move_steps(tx: &mut PgConnection, job: i64, attempt: i32, moves: &Moves) -> Result<(), StoreError> {
    if moves.is_empty() {
        return Ok(());
    }
    let parts: Vec<(i32, String, Json<NodeStep>)> = sqlx::query_as(
        "select step, node, here from step_nodes where job_id = $1 and attempt = $2 and result is null and node = any($3) order by step, node",
    )
    .bind(job)
    .bind(attempt)
    .bind(moves.keys().collect::<Vec<_>>())
    .fetch_all(&mut *tx)
    .await?;
    for (step, node, Json(mut here)) in parts {
        let moved = &moves[&node];
        let change = |cpus: &mut Vec<u32>| {
            cpus.iter_mut().for_each(|cpu| *cpu = moved.get(cpu).copied().unwrap_or(*cpu));
            cpus.sort_unstable();
        };
        change(&mut here.cpus);
        here.tasks.iter_mut().for_each(|task| change(&mut task.cpus));
        sqlx::query("update step_nodes set here = $5 where job_id = $1 and attempt = $2 and step = $3 and node = $4")
            .bind(job)
            .bind(attempt)
            .bind(step)
            .bind(&node)
            .bind(Json(&here))
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, NodeName};

    fn part(cpus: &[u32]) -> NodeAllocation {
        let node = NodeName::new("n1").unwrap();
        NodeAllocation { node, cpus: cpus.to_vec(), idle_cpus: Vec::new(), memory_bytes: Bytes(1), gpus: vec![2], share: None, tasks: 1 }
    }

    #[test]
    fn cpus_that_are_gone_have_others_in_their_place() {
        let mut held = vec![part(&[0, 1, 2, 3])];
        let moves = move_cpus(&mut held, &[part(&[0, 1, 6, 7])]);
        assert_eq!(moves, BTreeMap::from([("n1".to_owned(), BTreeMap::from([(2, 6), (3, 7)]))]));
        assert_eq!(held, [part(&[0, 1, 6, 7])]);
        assert!(move_cpus(&mut held, &[part(&[0, 1, 6, 7])]).is_empty());
    }
}
