//! Workers' facts, each applied at most once and in order, one transaction a batch.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::step::{StepResult, StopReason};
use berth_model::worker::{Fact, Report, ReportBatch, ReportsApplied};
use berth_model::{JobId, StepId};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::events::{self, NewEvent};
use crate::nodes;
use crate::settle;
use crate::suspend;
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
        let jobs: BTreeSet<i64> = batch.reports.iter().filter_map(|r| job_of(&r.fact)).map(|id| id as i64).collect();
        let jobs: Vec<i64> = jobs.into_iter().collect();
        settle::lock_jobs(&mut tx, &jobs).await?;
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
        let held = held_attempts(&mut tx, node, &jobs).await?;
        let mut desk =
            Desk { tx: &mut tx, node, held, wake: BTreeSet::new(), jobs: BTreeSet::new(), is_event: false, applied: Applied::default() };
        let news: Vec<&Report> = batch.reports.iter().filter(|r| r.seq as i64 > last_report).collect();
        let last = news.iter().map(|r| r.seq as i64).max().unwrap_or(last_report);
        desk.take(&news).await?;
        let Desk { mut applied, wake, jobs, is_event, .. } = desk;
        applied.answer.applied = last as u64;
        applied.answer.stale.sort_unstable();
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

fn job_of(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Prepared { job_id, .. }
        | Fact::PrepareFailed { job_id, .. }
        | Fact::StepStarted { job_id, .. }
        | Fact::StepEnded { job_id, .. }
        | Fact::Suspended { job_id, .. }
        | Fact::Finished { job_id, .. } => Some(job_id.0),
        Fact::InventoryChanged { .. } | Fact::Unhealthy { .. } | Fact::Healthy | Fact::Sample { .. } => None,
    }
}

/// The attempts of these jobs of which the node still has something.
async fn held_attempts(tx: &mut PgConnection, node: &str, jobs: &[i64]) -> Result<BTreeSet<(i64, i32)>, StoreError> {
    if jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let held: Vec<(i64, i32)> = sqlx::query_as("select job_id, attempt from assignments where node = $1 and job_id = any($2)")
        .bind(node)
        .bind(jobs)
        .fetch_all(tx)
        .await?;
    Ok(held.into_iter().collect())
}

/// One transaction's work on one node's reports.
///
/// What most reports say (a step started, a step ended, the attempt is finished here) is written for all of the batch at once, each kind
/// in few statements. That changes the order of facts about different steps alone: those of one step keep theirs.
struct Desk<'a> {
    tx: &'a mut PgConnection,
    node: &'a str,
    held: BTreeSet<(i64, i32)>,
    wake: BTreeSet<String>,
    jobs: BTreeSet<i64>,
    is_event: bool,
    applied: Applied,
}

/// A step that a report is about: job, attempt, step.
type StepKey = (i64, i32, i32);

impl Desk<'_> {
    async fn take(&mut self, news: &[&Report]) -> Result<(), StoreError> {
        let mut started: Vec<StepKey> = Vec::new();
        let mut ended: Vec<(u64, StepKey, &StepResult)> = Vec::new();
        let mut finished: Vec<(i64, i32, Option<&str>)> = Vec::new();
        for report in news {
            let is_held = |job: &JobId, attempt: &u32| self.held.contains(&(job.0 as i64, *attempt as i32));
            let is_current = match &report.fact {
                Fact::StepStarted { job_id, attempt, step } if is_held(job_id, attempt) => {
                    started.push((job_id.0 as i64, *attempt as i32, step.as_i32()));
                    true
                }
                Fact::StepEnded { job_id, attempt, step, result } if is_held(job_id, attempt) => {
                    ended.push((report.seq, (job_id.0 as i64, *attempt as i32, step.as_i32()), result));
                    true
                }
                Fact::Finished { job_id, attempt, epilog_failed } if is_held(job_id, attempt) => {
                    finished.push((job_id.0 as i64, *attempt as i32, epilog_failed.as_deref()));
                    true
                }
                Fact::StepStarted { .. } | Fact::StepEnded { .. } | Fact::Finished { .. } => false,
                other => self.apply(other).await?,
            };
            if !is_current {
                self.applied.answer.stale.push(report.seq);
            }
        }
        self.steps_started(&started).await?;
        self.steps_ended(&ended).await?;
        self.finished(&finished).await
    }

    /// A fact of the seldom kinds. `false`: it is about something that is over.
    async fn apply(&mut self, fact: &Fact) -> Result<bool, StoreError> {
        match fact {
            Fact::Prepared { job_id, attempt } => self.prepared(job_id.0 as i64, *attempt as i32).await,
            Fact::PrepareFailed { job_id, attempt, cause, detail, is_nodes_fault } => {
                self.prepare_failed(job_id.0 as i64, *attempt as i32, cause, detail, *is_nodes_fault).await
            }
            // Gathered by `take`.
            Fact::StepStarted { .. } | Fact::StepEnded { .. } | Fact::Finished { .. } => Ok(true),
            Fact::Suspended { job_id, attempt, suspension } => {
                let (job, attempt) = (job_id.0 as i64, *attempt as i32);
                let is_asked = suspend::stands_still(self.tx, self.node, job, attempt, *suspension).await?;
                self.settle_suspensions(&[(job, attempt)]).await?;
                Ok(is_asked)
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

    /// Jobs of which all parts stand still are suspended.
    async fn settle_suspensions(&mut self, attempts: &[(i64, i32)]) -> Result<(), StoreError> {
        let still = suspend::settle_suspensions(self.tx, attempts).await?;
        self.is_event |= !still.is_empty();
        self.jobs.extend(still.iter().map(|(job, _)| *job));
        Ok(())
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

    /// An event of the same kind for each attempt.
    async fn tell_jobs(&mut self, kind: &'static str, attempts: impl Iterator<Item = (i64, i32)>) -> Result<(), StoreError> {
        let news: Vec<NewEvent> = attempts
            .map(|(job, attempt)| NewEvent {
                kind,
                job_id: Some(job),
                attempt: Some(attempt),
                node: Some(self.node.to_owned()),
                ..NewEvent::default()
            })
            .collect();
        self.is_event |= !news.is_empty();
        events::append(self.tx, &news).await
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
        let gang = settle::components_of(self.tx, job).await?;
        let gone = sqlx::query(
            "update assignments set phase = 'go' where job_id = any($1) and attempt = $2 and phase = 'prepare'
             and not exists (select from assignments o where o.job_id = any($1) and o.attempt = $2 and (not o.is_prepared or o.phase = 'stop'))",
        )
        .bind(&gang)
        .bind(attempt)
        .execute(&mut *self.tx)
        .await?;
        if gone.rows_affected() > 0 {
            sqlx::query("update step_nodes set phase = 'go' where job_id = any($1) and attempt = $2 and phase = 'prepare'")
                .bind(&gang)
                .bind(attempt)
                .execute(&mut *self.tx)
                .await?;
            let nodes = settle::bump_attempts(self.tx, &gang, attempt).await?;
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
        if !self.held.contains(&(job, attempt)) {
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
            self.avoid_node(job).await?;
        } else {
            // The job's own fault: it must not be placed again, whatever nodes failed it before.
            let components = settle::components_of(self.tx, job).await?;
            sqlx::query("update jobs set failed_nodes = '{}' where job_id = any($1)").bind(components).execute(&mut *self.tx).await?;
        }
        self.tell_job("job.launch_failed", job, attempt, Some(serde_json::json!({ "cause": cause, "detail": detail }))).await?;
        let nodes = settle::stop_attempt(self.tx, job, attempt, StopReason::LaunchFailed, 0).await?;
        self.wake.extend(nodes);
        Ok(true)
    }

    /// An attempt's first step starts the attempt and its job, with all components; jobs that wait for that start hear of it.
    async fn steps_started(&mut self, started: &[StepKey]) -> Result<(), StoreError> {
        if started.is_empty() {
            return Ok(());
        }
        self.jobs.extend(started.iter().map(|(job, ..)| *job));
        let (jobs, attempts, steps) = columns(started.iter().copied());
        let moved: Vec<(i64, Option<i32>)> = sqlx::query_as(
            "with told as (select * from unnest($1::bigint[], $2::int[], $3::int[]) t (job_id, attempt, step)),
             running as (update steps s set state = 'running', started_at = coalesce(s.started_at, now()) from told t
                 where s.job_id = t.job_id and s.attempt = t.attempt and s.step = t.step and s.state = 'pending'),
             begun as (update attempts a set state = 'running', started_at = now() from (select job_id, attempt from told union
                     select o.job_id, t.attempt from told t join jobs o on o.het_job_id = t.job_id) t
                 where a.job_id = t.job_id and a.attempt = t.attempt and a.started_at is null returning a.job_id, a.attempt),
             live as (update jobs j set state = 'running', start_time = now(), version = j.version + 1 from begun b
                 where j.job_id = b.job_id and j.attempt = b.attempt and j.state = 'allocated'),
             freed as (update job_dependencies d set progress = 'satisfied' from begun b
                 where d.on_job_id = b.job_id and d.kind = 'after' and d.progress = 'waiting' returning d.job_id)
             select job_id, attempt from begun union all select job_id, null from freed",
        )
        .bind(jobs)
        .bind(attempts)
        .bind(steps)
        .fetch_all(&mut *self.tx)
        .await?;
        let freed = moved.iter().filter(|(_, attempt)| attempt.is_none()).map(|(job, _)| *job).collect();
        settle::tell_dependants(self.tx, freed).await?;
        self.tell_jobs("job.started", moved.iter().filter_map(|(job, attempt)| Some((*job, (*attempt)?)))).await
    }

    async fn steps_ended(&mut self, ended: &[(u64, StepKey, &StepResult)]) -> Result<(), StoreError> {
        if ended.is_empty() {
            return Ok(());
        }
        let (jobs, attempts, steps) = columns(ended.iter().map(|(_, key, _)| *key));
        let results = ended.iter().map(|(.., result)| serde_json::to_string(result)).collect::<Result<Vec<_>, _>>()?;
        let stored: Vec<StepKey> = sqlx::query_as(
            "update step_nodes n set result = t.result::jsonb, phase = 'stop'
             from unnest($1::bigint[], $2::int[], $3::int[], $4::text[]) t (job_id, attempt, step, result)
             where n.job_id = t.job_id and n.attempt = t.attempt and n.step = t.step and n.node = $5 and n.result is null
             returning n.job_id, n.attempt, n.step",
        )
        .bind(jobs)
        .bind(attempts)
        .bind(steps)
        .bind(results)
        .bind(self.node)
        .fetch_all(&mut *self.tx)
        .await?;
        let stored: BTreeSet<StepKey> = stored.into_iter().collect();
        self.applied.answer.stale.extend(ended.iter().filter(|(_, key, _)| !stored.contains(key)).map(|(seq, ..)| *seq));
        self.jobs.extend(stored.iter().map(|(job, ..)| *job));
        for (_, key, result) in ended.iter().filter(|(_, key, _)| stored.contains(key)) {
            self.blame_node(key.0, result).await?;
        }
        let open = self.close_steps(&stored).await?;
        for (_, key, result) in ended.iter().filter(|(_, key, _)| open.contains(key)) {
            self.stop_rest_if_asked(*key, result).await?;
        }
        // The script is over: whatever else runs of the job ends with it, on all its nodes.
        let scripts: Vec<(i64, i32)> =
            stored.iter().filter(|(.., step)| *step == StepId::Batch.as_i32()).map(|(job, attempt, _)| (*job, *attempt)).collect();
        self.is_event |= !scripts.is_empty();
        self.wake.extend(settle::stop_attempts(self.tx, &scripts, StopReason::Finished, 0).await?);
        Ok(())
    }

    /// A step that was lost by the node's fault drains it. A node that was cut off has done what it must; nothing is wrong with it.
    async fn blame_node(&mut self, job: i64, result: &StepResult) -> Result<(), StoreError> {
        let Some(failure) = result.failure.as_ref().filter(|f| f.is_nodes_fault && f.cause != "cut_off") else { return Ok(()) };
        let reason = format!("lost a step of job {job}: {}: {}", failure.cause, failure.detail);
        nodes::drain(self.tx, self.node, &reason, false).await?;
        self.tell_node("node.drained", serde_json::json!({ "by": "launch", "reason": reason })).await?;
        self.avoid_node(job).await
    }

    /// The job is not placed here again.
    async fn avoid_node(&mut self, job: i64) -> Result<(), StoreError> {
        sqlx::query("update jobs set failed_nodes = array_append(failed_nodes, $2) where job_id = $1 and not failed_nodes @> array[$2]")
            .bind(job)
            .bind(self.node)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// Ends those of `steps` that all nodes have told the end of; gives the others.
    async fn close_steps(&mut self, steps: &BTreeSet<StepKey>) -> Result<BTreeSet<StepKey>, StoreError> {
        let (jobs, attempts, numbers) = columns(steps.iter().copied());
        let rows: Vec<(i64, i32, i32, Option<Json<StepResult>>)> = sqlx::query_as(
            "select n.job_id, n.attempt, n.step, n.result from unnest($1::bigint[], $2::int[], $3::int[]) t (job_id, attempt, step)
             join step_nodes n on n.job_id = t.job_id and n.attempt = t.attempt and n.step = t.step
             order by n.job_id, n.attempt, n.step, n.position",
        )
        .bind(jobs)
        .bind(attempts)
        .bind(numbers)
        .fetch_all(&mut *self.tx)
        .await?;
        let mut results: BTreeMap<StepKey, Option<Vec<StepResult>>> = BTreeMap::new();
        for (job, attempt, step, result) in rows {
            let all = results.entry((job, attempt, step)).or_insert_with(|| Some(Vec::new()));
            match result {
                Some(Json(result)) => all.iter_mut().for_each(|all| all.push(result.clone())),
                None => *all = None,
            }
        }
        let open = results.iter().filter(|(_, all)| all.is_none()).map(|(key, _)| *key).collect();
        let closed: Vec<(StepKey, Vec<StepResult>)> = results.into_iter().filter_map(|(key, all)| Some((key, all?))).collect();
        let ends: Vec<_> = closed.iter().map(|(_, all)| berth_model::step::judge_attempt(None, all)).collect();
        let (jobs, attempts, numbers) = columns(closed.iter().map(|(key, _)| *key));
        sqlx::query(
            "update steps s set state = t.state, ended_at = now(), exit_code = t.exit_code, exit_signal = t.exit_signal, cpu_usec = t.cpu_usec,
                 memory_peak_bytes = t.memory_peak
             from unnest($1::bigint[], $2::int[], $3::int[], $4::text[], $5::int[], $6::int[], $7::bigint[], $8::bigint[])
                 t (job_id, attempt, step, state, exit_code, exit_signal, cpu_usec, memory_peak)
             where s.job_id = t.job_id and s.attempt = t.attempt and s.step = t.step and s.ended_at is null",
        )
        .bind(jobs)
        .bind(attempts)
        .bind(numbers)
        .bind(ends.iter().map(|end| end.state.as_str()).collect::<Vec<_>>())
        .bind(ends.iter().map(|end| end.exit_code).collect::<Vec<_>>())
        .bind(ends.iter().map(|end| end.signal).collect::<Vec<_>>())
        .bind(closed.iter().map(|(_, all)| all.iter().map(|r| r.cpu_usec as i64).sum()).collect::<Vec<i64>>())
        .bind(closed.iter().map(|(_, all)| all.iter().map(|r| r.memory_peak_bytes.0 as i64).max().unwrap_or(0)).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(open)
    }

    /// `srun --kill-on-bad-exit`: the first bad end takes the other nodes' tasks with it.
    async fn stop_rest_if_asked(&mut self, (job, attempt, step): StepKey, result: &StepResult) -> Result<(), StoreError> {
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
        .bind(step)
        .bind(result.failure.is_some())
        .execute(&mut *self.tx)
        .await?;
        if stopped.rows_affected() > 0 {
            let nodes = settle::bump_attempt(self.tx, job, attempt).await?;
            self.wake.extend(nodes);
        }
        Ok(())
    }

    /// The node has nothing of these attempts any more. Those that no node has anything of are over.
    async fn finished(&mut self, finished: &[(i64, i32, Option<&str>)]) -> Result<(), StoreError> {
        if finished.is_empty() {
            return Ok(());
        }
        let attempts: Vec<(i64, i32)> = finished.iter().map(|(job, attempt, _)| (*job, *attempt)).collect();
        let (jobs, numbers): (Vec<i64>, Vec<i32>) = attempts.iter().copied().unzip();
        let unasked: Vec<(i64, i32, bool)> = sqlx::query_as(
            "with gone as (delete from assignments s using unnest($2::bigint[], $3::int[]) t (job_id, attempt)
                 where s.node = $1 and s.job_id = t.job_id and s.attempt = t.attempt returning s.job_id, s.attempt, s.phase)
             select g.job_id, g.attempt, coalesce(a.started_at + (j.time_limit - 1) * interval '1 second' <= now(), false)
             from gone g join jobs j on j.job_id = g.job_id and j.het_offset > 0 join attempts a on a.job_id = g.job_id and a.attempt = g.attempt
             where g.phase <> 'stop'",
        )
        .bind(self.node)
        .bind(jobs)
        .bind(numbers)
        .fetch_all(&mut *self.tx)
        .await?;
        // A further component ends by itself only when its time limit passes or its node is cut off. The others end with it.
        for (job, attempt, is_late) in unasked {
            let reason = if is_late { StopReason::TimeLimit } else { StopReason::NodeFail };
            self.wake.extend(settle::stop_attempt(self.tx, job, attempt, reason, 0).await?);
        }
        for (job, _, epilog_failed) in finished {
            if let Some(detail) = epilog_failed {
                let reason = format!("epilog of job {job} failed: {detail}");
                nodes::drain(self.tx, self.node, &reason, false).await?;
                self.tell_node("node.drained", serde_json::json!({ "by": "epilog", "reason": reason })).await?;
            }
        }
        self.wake.insert(self.node.to_owned());
        settle::bump_nodes(self.tx, &mut vec![self.node.to_owned()]).await?;
        let settled = settle::settle_attempts(self.tx, &attempts).await?;
        self.is_event = true;
        self.jobs.extend(attempts.iter().map(|(job, _)| *job));
        let rest: Vec<(i64, i32)> = attempts.into_iter().filter(|attempt| !settled.contains(attempt)).collect();
        self.completing(&rest).await?;
        // The others may have waited for this one to stand still.
        self.settle_suspensions(&rest).await
    }

    /// This node is done, others are not. While the job's own command runs there, the job does; and so it does if it gave the node back.
    async fn completing(&mut self, attempts: &[(i64, i32)]) -> Result<(), StoreError> {
        for (job, attempt) in attempts {
            sqlx::query(
                "update jobs set state = 'completing', version = version + 1 where job_id = $1 and state in ('allocated', 'running')
                 and exists (select from attempts a where a.job_id = $1 and a.attempt = $2 and a.nodes @> array[$3])
                 and not exists (select from step_nodes n join assignments s on s.job_id = n.job_id and s.attempt = n.attempt and s.node = n.node
                     where n.job_id = $1 and n.attempt = $2 and n.step = 0 and n.result is null and s.phase <> 'stop')",
            )
            .bind(job)
            .bind(attempt)
            .bind(self.node)
            .execute(&mut *self.tx)
            .await?;
        }
        self.tell_jobs("job.node_released", attempts.iter().copied()).await
    }

    async fn healthy(&mut self) -> Result<bool, StoreError> {
        let cleared = sqlx::query(
            "update nodes set flags = array_remove(flags, 'drain'), reason = case when is_down then reason end, drain_reason = null,
                 drained_by_health = false, version = version + 1
             where name = $1 and drained_by_health and flags @> array['drain']",
        )
        .bind(self.node)
        .execute(&mut *self.tx)
        .await?;
        if cleared.rows_affected() > 0 {
            settle::bump_nodes(self.tx, &mut vec![self.node.to_owned()]).await?;
            crate::lost::forgive(self.tx, self.node).await?;
            self.wake.insert(self.node.to_owned());
            self.tell_node("node.resumed", serde_json::json!({ "by": "health" })).await?;
        }
        Ok(true)
    }
}

/// Keys as the columns of a statement.
fn columns(keys: impl Iterator<Item = StepKey>) -> (Vec<i64>, Vec<i32>, Vec<i32>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (job, attempt, step) in keys {
        columns.0.push(job);
        columns.1.push(attempt);
        columns.2.push(step);
    }
    columns
}
