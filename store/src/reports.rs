//! Workers' facts, each applied at most once and in order, one transaction a batch.

use std::collections::BTreeSet;

use berth_model::StepId;
use berth_model::step::{StepResult, StopReason};
use berth_model::worker::{Fact, ReportBatch, ReportsApplied};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::events::{self, NewEvent};
use crate::nodes;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// What a batch of reports set in motion, for metrics.
#[derive(Debug, Default)]
pub struct Applied {
    pub answer: ReportsApplied,
    /// Causes of failed launches.
    pub launch_failures: Vec<String>,
}

impl Db {
    /// Applies a worker's reports above the last number applied for its boot. `Conflict` (`boot_superseded`) if another process of
    /// the node has registered since.
    pub async fn apply_reports(&self, node: &str, batch: &ReportBatch) -> Result<Applied, StoreError> {
        let mut tx = self.pool.begin().await?;
        lock_jobs(&mut tx, batch).await?;
        // The row's lock makes the reports of one node take turns.
        let contact: Option<(String, i64)> = sqlx::query_as("select boot_id, last_report from node_contacts where node = $1 for update")
            .bind(node)
            .fetch_optional(&mut *tx)
            .await?;
        let (boot_id, last_report) = contact.ok_or_else(|| StoreError::NotFound(format!("node {node}")))?;
        if boot_id != batch.boot_id {
            return Err(StoreError::Conflict {
                code: "boot_superseded",
                detail: format!("another worker process has registered as {node}"),
                help: "register again; two workers must not share a node name".to_owned(),
            });
        }
        let mut desk =
            Desk { tx: &mut tx, node, wake: BTreeSet::new(), jobs: BTreeSet::new(), is_event: false, applied: Applied::default() };
        let mut last = last_report;
        for report in &batch.reports {
            if report.seq as i64 <= last {
                continue;
            }
            if !desk.apply(&report.fact).await? {
                desk.applied.answer.stale.push(report.seq);
            }
            last = report.seq as i64;
        }
        let Desk { mut applied, wake, jobs, is_event, .. } = desk;
        applied.answer.applied = last as u64;
        sqlx::query("update node_contacts set last_seen = now(), last_report = $2 where node = $1")
            .bind(node)
            .bind(last)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        self.wake.notify_nodes(wake.iter().map(String::as_str));
        for job in jobs {
            self.wake.notify(Topic::Job(job as u64));
        }
        if is_event {
            self.wake.notify(Topic::Events);
        }
        Ok(applied)
    }
}

/// Locks all jobs of the batch in order of id, as everything else that locks several does.
async fn lock_jobs(tx: &mut PgConnection, batch: &ReportBatch) -> Result<(), StoreError> {
    let jobs: BTreeSet<i64> = batch.reports.iter().filter_map(|r| job_of(&r.fact)).map(|id| id as i64).collect();
    if !jobs.is_empty() {
        sqlx::query("select from jobs where job_id = any($1) order by job_id for update")
            .bind(jobs.into_iter().collect::<Vec<_>>())
            .execute(tx)
            .await?;
    }
    Ok(())
}

fn job_of(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Prepared { job_id, .. }
        | Fact::PrepareFailed { job_id, .. }
        | Fact::StepStarted { job_id, .. }
        | Fact::StepEnded { job_id, .. }
        | Fact::Finished { job_id, .. } => Some(job_id.0),
        Fact::InventoryChanged { .. } | Fact::Unhealthy { .. } | Fact::Healthy | Fact::Sample { .. } => None,
    }
}

/// One transaction's work on one node's reports.
struct Desk<'a> {
    tx: &'a mut PgConnection,
    node: &'a str,
    wake: BTreeSet<String>,
    jobs: BTreeSet<i64>,
    is_event: bool,
    applied: Applied,
}

impl Desk<'_> {
    /// `false`: the fact is about something that is over.
    async fn apply(&mut self, fact: &Fact) -> Result<bool, StoreError> {
        match fact {
            Fact::Prepared { job_id, attempt } => self.prepared(job_id.0 as i64, *attempt as i32).await,
            Fact::PrepareFailed { job_id, attempt, cause, detail, is_nodes_fault } => {
                self.prepare_failed(job_id.0 as i64, *attempt as i32, cause, detail, *is_nodes_fault).await
            }
            Fact::StepStarted { job_id, attempt, step } => self.step_started(job_id.0 as i64, *attempt as i32, *step).await,
            Fact::StepEnded { job_id, attempt, step, result } => self.step_ended(job_id.0 as i64, *attempt as i32, *step, result).await,
            Fact::Finished { job_id, attempt, epilog_failed } => {
                self.finished(job_id.0 as i64, *attempt as i32, epilog_failed.as_deref()).await
            }
            Fact::InventoryChanged { inventory } => {
                sqlx::query("update nodes set inventory = $2, version = version + 1 where name = $1")
                    .bind(self.node)
                    .bind(Json(inventory))
                    .execute(&mut *self.tx)
                    .await?;
                self.tell_node("node.inventory_changed", serde_json::json!({})).await?;
                Ok(true)
            }
            Fact::Unhealthy { reason } => {
                nodes::drain(self.tx, self.node, reason, true).await?;
                self.tell_node("node.drained", serde_json::json!({ "by": "health", "reason": reason })).await?;
                Ok(true)
            }
            Fact::Healthy => self.healthy().await,
            Fact::Sample { job_id, attempt, step, cpu_usec, memory_bytes, .. } => {
                sqlx::query(
                    "update steps set cpu_usec = greatest(cpu_usec, $4), memory_peak_bytes = greatest(memory_peak_bytes, $5)
                     where job_id = $1 and attempt = $2 and step = $3 and ended_at is null",
                )
                .bind(job_id.0 as i64)
                .bind(*attempt as i32)
                .bind(step.as_i32())
                .bind(*cpu_usec as i64)
                .bind(memory_bytes.0 as i64)
                .execute(&mut *self.tx)
                .await?;
                Ok(true)
            }
        }
    }

    /// The node still has something of the attempt.
    async fn holds(&mut self, job: i64, attempt: i32) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("select exists (select from assignments where node = $1 and job_id = $2 and attempt = $3)")
            .bind(self.node)
            .bind(job)
            .bind(attempt)
            .fetch_one(&mut *self.tx)
            .await?)
    }

    async fn tell_node(&mut self, kind: &'static str, detail: serde_json::Value) -> Result<(), StoreError> {
        self.is_event = true;
        nodes::tell(self.tx, kind, self.node, detail).await
    }

    async fn tell_job(&mut self, kind: &'static str, job: i64, attempt: i32, detail: Option<serde_json::Value>) -> Result<(), StoreError> {
        self.is_event = true;
        self.jobs.insert(job);
        let event =
            NewEvent { kind, job_id: Some(job), attempt: Some(attempt), node: Some(self.node.to_owned()), detail, ..NewEvent::default() };
        events::append(self.tx, &[event]).await
    }

    /// When the last node of a gang is ready, all go. (The job's row is locked, so two last ones cannot miss each other.)
    async fn prepared(&mut self, job: i64, attempt: i32) -> Result<bool, StoreError> {
        let mine = sqlx::query("update assignments set is_prepared = true where node = $1 and job_id = $2 and attempt = $3")
            .bind(self.node)
            .bind(job)
            .bind(attempt)
            .execute(&mut *self.tx)
            .await?;
        if mine.rows_affected() == 0 {
            return Ok(false);
        }
        let gone = sqlx::query(
            "update assignments set phase = 'go' where job_id = $1 and attempt = $2 and phase = 'prepare'
             and not exists (select from assignments o where o.job_id = $1 and o.attempt = $2 and (not o.is_prepared or o.phase = 'stop'))",
        )
        .bind(job)
        .bind(attempt)
        .execute(&mut *self.tx)
        .await?;
        if gone.rows_affected() > 0 {
            sqlx::query("update step_nodes set phase = 'go' where job_id = $1 and attempt = $2 and phase = 'prepare'")
                .bind(job)
                .bind(attempt)
                .execute(&mut *self.tx)
                .await?;
            let nodes = settle::bump_attempt(self.tx, job, attempt).await?;
            self.wake.extend(nodes);
        }
        Ok(true)
    }

    /// One node could not prepare: the gang stops, and if the node is to blame it is drained and the job avoids it.
    async fn prepare_failed(
        &mut self,
        job: i64,
        attempt: i32,
        cause: &str,
        detail: &str,
        is_nodes_fault: bool,
    ) -> Result<bool, StoreError> {
        if !self.holds(job, attempt).await? {
            return Ok(false);
        }
        self.applied.launch_failures.push(cause.to_owned());
        let failure = format!("{cause} on {}: {detail}", self.node);
        sqlx::query("update attempts set failure = coalesce(failure, $3) where job_id = $1 and attempt = $2")
            .bind(job)
            .bind(attempt)
            .bind(&failure)
            .execute(&mut *self.tx)
            .await?;
        if is_nodes_fault {
            let reason = format!("could not start job {job}: {cause}: {detail}");
            nodes::drain(self.tx, self.node, &reason, false).await?;
            self.tell_node("node.drained", serde_json::json!({ "by": "launch", "reason": reason })).await?;
            sqlx::query(
                "update jobs set failed_nodes = array_append(failed_nodes, $2) where job_id = $1 and not failed_nodes @> array[$2]",
            )
            .bind(job)
            .bind(self.node)
            .execute(&mut *self.tx)
            .await?;
        } else {
            // The job's own fault: it must not be placed again, whatever nodes failed it before.
            sqlx::query("update jobs set failed_nodes = '{}' where job_id = $1").bind(job).execute(&mut *self.tx).await?;
        }
        self.tell_job("job.launch_failed", job, attempt, Some(serde_json::json!({ "cause": cause, "detail": detail }))).await?;
        let nodes = settle::stop_attempt(self.tx, job, attempt, StopReason::LaunchFailed, 0).await?;
        self.wake.extend(nodes);
        Ok(true)
    }

    async fn step_started(&mut self, job: i64, attempt: i32, step: StepId) -> Result<bool, StoreError> {
        if !self.holds(job, attempt).await? {
            return Ok(false);
        }
        sqlx::query(
            "update steps set state = 'running', started_at = coalesce(started_at, now()) where job_id = $1 and attempt = $2 and step = $3 and state = 'pending'",
        )
        .bind(job)
        .bind(attempt)
        .bind(step.as_i32())
        .execute(&mut *self.tx)
        .await?;
        let started = sqlx::query(
            "update attempts set state = 'running', started_at = now() where job_id = $1 and attempt = $2 and started_at is null",
        )
        .bind(job)
        .bind(attempt)
        .execute(&mut *self.tx)
        .await?;
        if started.rows_affected() > 0 {
            sqlx::query("update jobs set state = 'running', start_time = now(), version = version + 1 where job_id = $1 and attempt = $2 and state = 'allocated'")
                .bind(job)
                .bind(attempt)
                .execute(&mut *self.tx)
                .await?;
            let waiting: Vec<i64> = sqlx::query_scalar(
                "update job_dependencies set progress = 'satisfied' where on_job_id = $1 and kind = 'after' and progress = 'waiting' returning job_id",
            )
            .bind(job)
            .fetch_all(&mut *self.tx)
            .await?;
            settle::tell_dependants(self.tx, waiting).await?;
            self.tell_job("job.started", job, attempt, None).await?;
        }
        self.jobs.insert(job);
        Ok(true)
    }

    async fn step_ended(&mut self, job: i64, attempt: i32, step: StepId, result: &StepResult) -> Result<bool, StoreError> {
        if !self.holds(job, attempt).await? {
            return Ok(false);
        }
        let stored = sqlx::query(
            "update step_nodes set result = $5, phase = 'stop' where job_id = $1 and attempt = $2 and step = $3 and node = $4 and result is null",
        )
        .bind(job)
        .bind(attempt)
        .bind(step.as_i32())
        .bind(self.node)
        .bind(Json(result))
        .execute(&mut *self.tx)
        .await?;
        if stored.rows_affected() == 0 {
            return Ok(false);
        }
        self.jobs.insert(job);
        // A node that was cut off has done what it must; nothing is wrong with it.
        if let Some(failure) = result.failure.as_ref().filter(|f| f.is_nodes_fault && f.cause != "cut_off") {
            let reason = format!("lost a step of job {job}: {}: {}", failure.cause, failure.detail);
            nodes::drain(self.tx, self.node, &reason, false).await?;
            self.tell_node("node.drained", serde_json::json!({ "by": "launch", "reason": reason })).await?;
            sqlx::query(
                "update jobs set failed_nodes = array_append(failed_nodes, $2) where job_id = $1 and not failed_nodes @> array[$2]",
            )
            .bind(job)
            .bind(self.node)
            .execute(&mut *self.tx)
            .await?;
        }
        let results: Vec<Option<Json<StepResult>>> =
            sqlx::query_scalar("select result from step_nodes where job_id = $1 and attempt = $2 and step = $3 order by position")
                .bind(job)
                .bind(attempt)
                .bind(step.as_i32())
                .fetch_all(&mut *self.tx)
                .await?;
        if results.iter().all(Option::is_some) {
            let results: Vec<StepResult> = results.into_iter().flatten().map(|r| r.0).collect();
            self.close_step(job, attempt, step, &results).await?;
        } else {
            self.stop_rest_if_asked(job, attempt, step, result).await?;
        }
        if step == StepId::Batch {
            // The script is over: whatever else runs of the job ends with it, on all its nodes.
            let nodes = settle::stop_attempt(self.tx, job, attempt, StopReason::Finished, 0).await?;
            self.wake.extend(nodes);
            self.is_event = true;
        }
        Ok(true)
    }

    async fn close_step(&mut self, job: i64, attempt: i32, step: StepId, results: &[StepResult]) -> Result<(), StoreError> {
        let end = berth_model::step::judge_attempt(None, results);
        sqlx::query(
            "update steps set state = $4, ended_at = now(), exit_code = $5, exit_signal = $6, cpu_usec = $7, memory_peak_bytes = $8
             where job_id = $1 and attempt = $2 and step = $3 and ended_at is null",
        )
        .bind(job)
        .bind(attempt)
        .bind(step.as_i32())
        .bind(end.state.as_str())
        .bind(end.exit_code)
        .bind(end.signal)
        .bind(results.iter().map(|r| r.cpu_usec as i64).sum::<i64>())
        .bind(results.iter().map(|r| r.memory_peak_bytes.0 as i64).max().unwrap_or(0))
        .execute(&mut *self.tx)
        .await?;
        // A step that waited for these CPUs or GPUs may be asked for again.
        self.jobs.insert(job);
        Ok(())
    }

    /// `srun --kill-on-bad-exit`: the first bad end takes the other nodes' tasks with it.
    async fn stop_rest_if_asked(&mut self, job: i64, attempt: i32, step: StepId, result: &StepResult) -> Result<(), StoreError> {
        if result.tasks.iter().all(|t| t.exit_code() == 0) && result.failure.is_none() {
            return Ok(());
        }
        let stopped = sqlx::query(
            "update step_nodes p set phase = 'stop' from steps t
             where p.job_id = $1 and p.attempt = $2 and p.step = $3 and p.result is null and p.phase <> 'stop'
               and t.job_id = p.job_id and t.attempt = p.attempt and t.step = p.step and ((t.spec->>'kill_on_bad_exit')::boolean or $4)",
        )
        .bind(job)
        .bind(attempt)
        .bind(step.as_i32())
        .bind(result.failure.is_some())
        .execute(&mut *self.tx)
        .await?;
        if stopped.rows_affected() > 0 {
            let nodes = settle::bump_attempt(self.tx, job, attempt).await?;
            self.wake.extend(nodes);
        }
        Ok(())
    }

    async fn finished(&mut self, job: i64, attempt: i32, epilog_failed: Option<&str>) -> Result<bool, StoreError> {
        let released = sqlx::query("delete from assignments where node = $1 and job_id = $2 and attempt = $3")
            .bind(self.node)
            .bind(job)
            .bind(attempt)
            .execute(&mut *self.tx)
            .await?;
        if released.rows_affected() == 0 {
            return Ok(false);
        }
        if let Some(detail) = epilog_failed {
            let reason = format!("epilog of job {job} failed: {detail}");
            nodes::drain(self.tx, self.node, &reason, false).await?;
            self.tell_node("node.drained", serde_json::json!({ "by": "epilog", "reason": reason })).await?;
        }
        self.wake.insert(self.node.to_owned());
        settle::bump_nodes(self.tx, &mut vec![self.node.to_owned()]).await?;
        if !settle::settle_attempt(self.tx, job, attempt).await? {
            sqlx::query(
                // While the job's own command runs on other nodes, the job does.
                "update jobs set state = 'completing', version = version + 1 where job_id = $1 and state in ('allocated', 'running')
                 and not exists (select from step_nodes n join assignments s on s.job_id = n.job_id and s.attempt = n.attempt and s.node = n.node
                     where n.job_id = $1 and n.attempt = $2 and n.step = 0 and n.result is null and s.phase <> 'stop')",
            )
            .bind(job)
            .bind(attempt)
            .execute(&mut *self.tx)
            .await?;
            self.tell_job("job.node_released", job, attempt, None).await?;
        }
        self.is_event = true;
        self.jobs.insert(job);
        Ok(true)
    }

    async fn healthy(&mut self) -> Result<bool, StoreError> {
        let cleared = sqlx::query(
            "update nodes set flags = array_remove(flags, 'drain'), reason = null, reason_is_health = false, version = version + 1
             where name = $1 and reason_is_health and flags @> array['drain']",
        )
        .bind(self.node)
        .execute(&mut *self.tx)
        .await?;
        if cleared.rows_affected() > 0 {
            settle::bump_nodes(self.tx, &mut vec![self.node.to_owned()]).await?;
            self.wake.insert(self.node.to_owned());
            self.tell_node("node.resumed", serde_json::json!({ "by": "health" })).await?;
        }
        Ok(true)
    }
}
