//! Preemption as the leader writes it, checkpoints as jobs report them, and who was preempted for whom.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::JobId;
use berth_model::preemption::{Claim, PreemptMode, Preempted};
use berth_model::step::StopReason;
use sqlx::types::Json;

use crate::db::At;
use crate::events::{self, NewEvent};
use crate::lease::Epoch;
use crate::settle;
use crate::suspend::{self, Order};
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A running attempt that must make room.
#[derive(Clone, Debug)]
pub struct NewVictim {
    pub job: JobId,
    pub attempt: u32,
    pub preempted: Preempted,
}

impl Db {
    /// Tells victims to stop, or to stand still, and writes what for. One transaction. Nobody is stopped for a job that is no longer pending,
    /// and an attempt that is ending already is left alone. Returns the number of victims. `Fenced` if the epoch has passed.
    pub async fn commit_preemptions(&self, epoch: Epoch, claims: &[(JobId, Claim)], victims: &[NewVictim]) -> Result<usize, StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        let all = claims.iter().map(|(job, _)| job.0 as i64).chain(victims.iter().map(|victim| victim.job.0 as i64));
        settle::lock_jobs(&mut tx, &all.collect::<Vec<_>>()).await?;
        let claimed: Vec<i64> = sqlx::query_scalar(
            "update jobs j set claim = t.claim::jsonb, version = j.version + 1 from unnest($1::bigint[], $2::text[]) t (job_id, claim)
             where j.job_id = t.job_id and j.state = 'pending' and j.hold is null returning j.job_id",
        )
        .bind(claims.iter().map(|(job, _)| job.0 as i64).collect::<Vec<_>>())
        .bind(claims.iter().map(|(_, claim)| serde_json::to_string(claim)).collect::<Result<Vec<_>, _>>()?)
        .fetch_all(&mut *tx)
        .await?;
        let claimed: BTreeSet<i64> = claimed.into_iter().collect();
        let meant: Vec<&NewVictim> = victims.iter().filter(|v| claimed.contains(&(v.preempted.for_job.0 as i64))).collect();
        let (to_suspend, to_stop): (Vec<&NewVictim>, Vec<&NewVictim>) =
            meant.into_iter().partition(|v| v.preempted.mode == PreemptMode::Suspend);
        let (still, mut nodes) = suspend_victims(&mut tx, &to_suspend).await?;
        let told: Vec<i64> = sqlx::query_scalar(
            "update attempts a set preempted = t.preempted::jsonb from unnest($1::bigint[], $2::int[], $3::text[]) t (job_id, attempt, preempted), jobs j
             where a.job_id = t.job_id and a.attempt = t.attempt and a.ended_at is null and a.stop_reason is null
                 and j.job_id = t.job_id and j.state in ('allocated', 'running', 'suspended') returning a.job_id",
        )
        .bind(to_stop.iter().map(|v| v.job.0 as i64).collect::<Vec<_>>())
        .bind(to_stop.iter().map(|v| v.attempt as i32).collect::<Vec<_>>())
        .bind(to_stop.iter().map(|v| serde_json::to_string(&v.preempted)).collect::<Result<Vec<_>, _>>()?)
        .fetch_all(&mut *tx)
        .await?;
        let told: BTreeSet<i64> = told.into_iter().collect();
        let mut by_grace: BTreeMap<u64, Vec<(i64, i32)>> = BTreeMap::new();
        let mut news = Vec::new();
        for victim in to_stop.into_iter().filter(|victim| told.contains(&(victim.job.0 as i64))) {
            // The plan counts in microseconds, its clock in nanoseconds.
            let grace = (victim.preempted.kill_at.as_microsecond() - victim.preempted.at.as_microsecond()) / 1_000_000;
            let grace = grace.max(0) as u64;
            let attempt = (victim.job.0 as i64, victim.attempt as i32);
            by_grace.entry(grace).or_default().push(attempt);
            news.push(NewEvent {
                kind: "job.preempted",
                job_id: Some(attempt.0),
                attempt: Some(attempt.1),
                detail: Some(serde_json::to_value(&victim.preempted)?),
                ..NewEvent::default()
            });
        }
        for (job, claim) in claims.iter().filter(|(job, _)| claimed.contains(&(job.0 as i64))) {
            let detail = Some(serde_json::to_value(claim)?);
            news.push(NewEvent { kind: "job.preempting", job_id: Some(job.0 as i64), detail, ..NewEvent::default() });
        }
        for (grace, attempts) in by_grace {
            nodes.extend(settle::stop_attempts(&mut tx, &attempts, StopReason::Preempted, grace).await?);
        }
        events::append(&mut tx, &news).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(told.len() + still)
    }

    /// Notes that a running job has made a checkpoint now, at the instant of the database. `Conflict` if it does not run.
    pub async fn note_checkpoint(&self, job: u64) -> Result<jiff::Timestamp, StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::lock_jobs(&mut tx, &[job as i64]).await?;
        let noted: Option<(i32, At)> = sqlx::query_as(
            "update attempts a set checkpoint_at = now() from jobs j
             where j.job_id = $1 and a.job_id = j.job_id and a.attempt = j.attempt and a.ended_at is null and a.started_at is not null
                 and j.state in ('running', 'suspended', 'completing')
             returning a.attempt, a.checkpoint_at",
        )
        .bind(job as i64)
        .fetch_optional(&mut *tx)
        .await?;
        let Some((attempt, at)) = noted else {
            return Err(crate::jobs::control::not_in_state(&mut tx, job, "running").await?);
        };
        let event = NewEvent { kind: "job.checkpointed", job_id: Some(job as i64), attempt: Some(attempt), ..NewEvent::default() };
        events::append(&mut tx, &[event]).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(at.0)
    }

    /// The attempts that were preempted for a job, the last first, at most `most`.
    pub async fn preempted_for(&self, job: u64, most: i64) -> Result<Vec<(u64, Preempted)>, StoreError> {
        let rows: Vec<(i64, Json<Preempted>)> = sqlx::query_as(
            "select job_id, preempted from attempts where preempted is not null and (preempted->>'for_job')::bigint = $1
             order by allocated_at desc, job_id limit $2",
        )
        .bind(job as i64)
        .bind(most)
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|(victim, preempted)| (victim as u64, preempted.0)).collect())
    }
}

/// Tells victims that are running to stand still. Returns their number and the nodes to wake.
async fn suspend_victims(tx: &mut sqlx::PgConnection, victims: &[&NewVictim]) -> Result<(usize, Vec<String>), StoreError> {
    if victims.is_empty() {
        return Ok((0, Vec::new()));
    }
    let running: Vec<(i64, i32)> = sqlx::query_as(
        "select a.job_id, a.attempt from unnest($1::bigint[], $2::int[]) t (job_id, attempt)
         join attempts a on a.job_id = t.job_id and a.attempt = t.attempt join jobs j on j.job_id = a.job_id and j.attempt = a.attempt
         where j.state = 'running' and a.started_at is not null and a.stop_reason is null and a.suspension is null order by a.job_id",
    )
    .bind(victims.iter().map(|v| v.job.0 as i64).collect::<Vec<_>>())
    .bind(victims.iter().map(|v| v.attempt as i32).collect::<Vec<_>>())
    .fetch_all(&mut *tx)
    .await?;
    let for_job = |job: i64| victims.iter().find(|v| v.job.0 as i64 == job).map(|v| v.preempted.for_job.0 as i64);
    let orders: Vec<Order> =
        running.iter().map(|(job, attempt)| Order { job: *job, attempt: *attempt, for_job: for_job(*job), by: None }).collect();
    Ok((orders.len(), suspend::order(tx, &orders).await?))
}
