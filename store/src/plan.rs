//! What the leader writes: starts, verdicts, ends of jobs that must not run, nodes that are lost. Every transaction is fenced by the
//! lease's epoch.

use std::collections::BTreeMap;

use berth_model::layout;
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;
use berth_model::step::{NodeStep, StopReason, deciding_step};
use berth_model::tres::Charge;
use berth_model::verdict::{Decision, JobVerdict};
use berth_model::{JobId, Name, RunId};

use crate::db::At;
use crate::events::{self, NewEvent};
use crate::jobs::array::{self, SplitTask};
use crate::lease::Epoch;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A start to commit.
#[derive(Clone, Debug)]
pub struct NewAttempt {
    pub job: JobId,
    /// The task of an array that starts; it becomes a job of its own.
    pub array_index: Option<u32>,
    pub nodes: Vec<NodeAllocation>,
    pub charge: Charge,
    /// In which it runs.
    pub reservation: Option<Name>,
    pub run_id: RunId,
}

/// What became of a plan's starts.
#[derive(Debug, Default)]
pub struct Committed {
    /// Indices of the starts that hold now, with the id of the job that runs (for an array's task its own).
    pub started: Vec<(usize, JobId)>,
    /// Indices of those refused because the job was no longer pending.
    pub conflicts: Vec<usize>,
}

impl Db {
    /// Moves jobs from pending to allocated, with their assignments and first steps. One transaction; jobs that are no longer
    /// pending, or not all of whose components are, come back as conflicts, untouched. `Fenced` if the epoch has passed.
    pub async fn commit_starts(&self, epoch: Epoch, decision: &Decision, starts: &[NewAttempt]) -> Result<Committed, StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        let mut committed = Committed::default();
        settle::lock_jobs(&mut tx, &starts.iter().map(|s| s.job.0 as i64).collect::<Vec<_>>()).await?;
        let plain: Vec<usize> = (0..starts.len()).filter(|i| starts[*i].array_index.is_none()).collect();
        let moved: Vec<SplitTask> = sqlx::query_as(
            "update jobs j set state = 'allocated', attempt = attempt + 1, is_expedited = false, reason = null, claim = null, version = version + 1
             where job_id = any($1) and state = 'pending' and hold is null
                 and not exists (select from jobs o where o.het_job_id = j.het_job_id
                     and (o.state <> 'pending' or o.hold is not null or o.job_id <> all($1)))
             returning j.job_id, j.array_index, j.het_offset, j.attempt, j.spec->>'script' is not null as is_script, j.spec->'resources'->>'cpus_per_task' as cpus_per_task,
                 j.spec->'resources'->'gpus_per_task'->>'count' as gpus_per_task, j.tenant",
        )
        .bind(plain.iter().map(|i| starts[*i].job.0 as i64).collect::<Vec<_>>())
        .fetch_all(&mut *tx)
        .await?;
        let moved: BTreeMap<i64, SplitTask> = moved.into_iter().map(|m| (m.job_id, m)).collect();
        let mut rows = Vec::new();
        for index in plain {
            match moved.get(&(starts[index].job.0 as i64)) {
                Some(row) => rows.push((index, row.clone())),
                None => committed.conflicts.push(index),
            }
        }
        let mut arrays: BTreeMap<i64, BTreeMap<u32, usize>> = BTreeMap::new();
        for (index, start) in starts.iter().enumerate() {
            if let Some(task) = start.array_index {
                arrays.entry(start.job.0 as i64).or_default().insert(task, index);
            }
        }
        for (array, mut tasks) in arrays {
            let wanted = tasks.keys().copied().collect();
            for row in array::split(&mut tx, array, &wanted, true).await? {
                rows.extend(row.array_index.and_then(|task| tasks.remove(&(task as u32))).map(|index| (index, row)));
            }
            committed.conflicts.extend(tasks.into_values());
        }
        let mut nodes = write_attempts(&mut tx, decision, starts, &rows).await?;
        settle::bump_nodes(&mut tx, &mut nodes).await?;
        let news: Vec<NewEvent> = rows
            .iter()
            .map(|(index, row)| NewEvent {
                kind: "job.allocated",
                tenant: Some(row.tenant.clone()),
                job_id: Some(row.job_id),
                attempt: Some(row.attempt),
                detail: Some(serde_json::json!({ "nodes": starts[*index].nodes.iter().map(|n| &n.node).collect::<Vec<_>>() })),
                ..NewEvent::default()
            })
            .collect();
        events::append(&mut tx, &news).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        committed.started = rows.iter().map(|(index, row)| (*index, JobId(row.job_id as u64))).collect();
        Ok(committed)
    }

    /// Writes the verdicts that changed.
    pub async fn write_verdicts(&self, epoch: Epoch, now: jiff::Timestamp, verdicts: &[JobVerdict]) -> Result<(), StoreError> {
        if verdicts.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin_fenced(epoch).await?;
        sqlx::query(
            "insert into job_verdicts (job_id, verdict, priority, planned_start, as_of)
             select u.job_id, u.verdict::jsonb, u.priority, u.planned_start, $5
             from unnest($1::bigint[], $2::text[], $3::bigint[], $4::timestamptz[]) as u (job_id, verdict, priority, planned_start)
             on conflict (job_id) do update set verdict = excluded.verdict, priority = excluded.priority,
                 planned_start = excluded.planned_start, as_of = excluded.as_of",
        )
        .bind(verdicts.iter().map(|v| v.job.0 as i64).collect::<Vec<_>>())
        .bind(verdicts.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?)
        .bind(verdicts.iter().map(|v| v.priority.total).collect::<Vec<_>>())
        .bind(verdicts.iter().map(|v| v.planned_start.as_ref().map(|p| At(p.at))).collect::<Vec<_>>())
        .bind(At(now))
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// Removes pending jobs whose deadline cannot be met any more.
    pub async fn expire_jobs(&self, epoch: Epoch, jobs: &[JobId]) -> Result<(), StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        settle::lock_jobs(&mut tx, &jobs.iter().map(|job| job.0 as i64).collect::<Vec<_>>()).await?;
        for job in jobs {
            settle::end_without_attempt(&mut tx, job.0 as i64, JobState::Deadline, "its deadline passed before it could start").await?;
        }
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Stops attempts that the scheduler sees beyond their time limit.
    pub async fn stop_overdue(&self, epoch: Epoch, jobs: &[JobId], grace_seconds: u64) -> Result<(), StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        let mut nodes = Vec::new();
        settle::lock_jobs(&mut tx, &jobs.iter().map(|job| job.0 as i64).collect::<Vec<_>>()).await?;
        for job in jobs {
            let attempt: Option<i32> =
                sqlx::query_scalar("select attempt from jobs where job_id = $1 and state in ('allocated', 'running', 'suspended')")
                    .bind(job.0 as i64)
                    .fetch_optional(&mut *tx)
                    .await?;
            if let Some(attempt) = attempt {
                nodes.extend(settle::stop_attempt(&mut tx, job.0 as i64, attempt, StopReason::TimeLimit, grace_seconds).await?);
            }
        }
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Makes sure that the months around now have their partition of `events`.
    pub async fn ensure_partitions(&self) -> Result<(), StoreError> {
        sqlx::query(
            "do $$ declare m date; begin
                 for m in select generate_series(date_trunc('month', now()) + interval '1 month', date_trunc('month', now()) + interval '2 months', interval '1 month') loop
                     execute format('create table if not exists events_%s partition of events for values from (%L) to (%L)',
                         to_char(m, 'YYYYMM'), m, m + interval '1 month');
                 end loop; end $$",
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

/// Writes attempts, assignments, first steps and their parts on nodes, each as one statement. Returns the nodes concerned.
async fn write_attempts(
    tx: &mut sqlx::PgConnection,
    decision: &Decision,
    starts: &[NewAttempt],
    rows: &[(usize, SplitTask)],
) -> Result<Vec<String>, StoreError> {
    let mut attempts = AttemptColumns::default();
    let mut assignments = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut steps = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut parts = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, row) in rows {
        let start = &starts[*index];
        let names: Vec<&str> = start.nodes.iter().map(|n| n.node.as_str()).collect();
        attempts.0.push(row.job_id);
        attempts.1.push(row.attempt);
        attempts.2.push(start.run_id.to_string());
        attempts.3.push(serde_json::to_string(&names)?);
        attempts.4.push(serde_json::to_string(&start.nodes)?);
        attempts.5.push(serde_json::to_string(&start.charge)?);
        attempts.6.push(start.reservation.as_ref().map(|name| name.as_str().to_owned()));
        // A gang of one is ready when its only node is: it goes without asking. Components are one gang.
        let phase = if start.nodes.len() == 1 && row.het_offset.is_none() { "go" } else { "prepare" };
        for (position, node) in start.nodes.iter().enumerate() {
            assignments.0.push(node.node.as_str().to_owned());
            assignments.1.push(row.job_id);
            assignments.2.push(row.attempt);
            assignments.3.push(position as i32);
            assignments.4.push(phase);
            assignments.5.push(serde_json::to_string(node)?);
        }
        // A further component runs nothing before the leader's script opens steps there.
        if row.het_offset.is_some_and(|offset| offset > 0) {
            continue;
        }
        let step = deciding_step(row.is_script);
        let layout = first_step(row, &start.nodes);
        steps.0.push(row.job_id);
        steps.1.push(row.attempt);
        steps.2.push(step.as_i32());
        steps.3.push(layout.iter().map(|n| n.tasks.len() as i32).sum::<i32>());
        steps.4.push(i32::from(master_port(row.job_id, step.as_i32())));
        for (position, here) in layout.iter().enumerate() {
            parts.0.push(row.job_id);
            parts.1.push(row.attempt);
            parts.2.push(step.as_i32());
            parts.3.push(here.node.as_str().to_owned());
            parts.4.push(position as i32);
            parts.5.push(phase);
            parts.6.push(serde_json::to_string(here)?);
        }
    }
    if attempts.0.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = assignments.0.clone();
    sqlx::query(
        "insert into attempts (job_id, attempt, run_id, nodes, allocation, charge, reservation, decision)
         select u.job_id, u.attempt, u.run_id, array(select json_array_elements_text(u.nodes::json)), u.allocation::jsonb, u.charge::jsonb, u.reservation, $8
         from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
             as u (job_id, attempt, run_id, nodes, allocation, charge, reservation)",
    )
    .bind(attempts.0)
    .bind(attempts.1)
    .bind(attempts.2)
    .bind(attempts.3)
    .bind(attempts.4)
    .bind(attempts.5)
    .bind(attempts.6)
    .bind(sqlx::types::Json(decision))
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "insert into assignments (node, job_id, attempt, node_index, phase, allocation)
         select u.node, u.job_id, u.attempt, u.node_index, u.phase, u.allocation::jsonb
         from unnest($1::text[], $2::bigint[], $3::int[], $4::int[], $5::text[], $6::text[]) as u (node, job_id, attempt, node_index, phase, allocation)",
    )
    .bind(assignments.0)
    .bind(assignments.1)
    .bind(assignments.2)
    .bind(assignments.3)
    .bind(assignments.4)
    .bind(assignments.5)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "insert into steps (job_id, attempt, step, name, task_count, master_port)
         select u.job_id, u.attempt, u.step, case when u.step < 0 then 'batch' else 'main' end, u.task_count, u.master_port
         from unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[]) as u (job_id, attempt, step, task_count, master_port)",
    )
    .bind(steps.0)
    .bind(steps.1)
    .bind(steps.2)
    .bind(steps.3)
    .bind(steps.4)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "insert into step_nodes (job_id, attempt, step, node, position, phase, here)
         select u.job_id, u.attempt, u.step, u.node, u.position, u.phase, u.here::jsonb
         from unnest($1::bigint[], $2::int[], $3::int[], $4::text[], $5::int[], $6::text[], $7::text[]) as u (job_id, attempt, step, node, position, phase, here)",
    )
    .bind(parts.0)
    .bind(parts.1)
    .bind(parts.2)
    .bind(parts.3)
    .bind(parts.4)
    .bind(parts.5)
    .bind(parts.6)
    .execute(&mut *tx)
    .await?;
    Ok(nodes)
}

type AttemptColumns = (Vec<i64>, Vec<i32>, Vec<String>, Vec<String>, Vec<String>, Vec<String>, Vec<Option<String>>);

fn first_step(row: &SplitTask, nodes: &[NodeAllocation]) -> Vec<NodeStep> {
    if row.is_script {
        vec![layout::place_batch(&nodes[0])]
    } else {
        let number = |text: &Option<String>| text.as_deref().and_then(|t| t.parse::<u32>().ok());
        layout::place_job_command(nodes, number(&row.cpus_per_task).unwrap_or(1), number(&row.gpus_per_task))
    }
}

/// A port for `MASTER_PORT`: spread over 20000–29999 by job and step, below Linux's range of ephemeral ports.
pub(crate) fn master_port(job: i64, step: i32) -> u16 {
    (20_000 + (job.unsigned_abs().wrapping_mul(31).wrapping_add(u64::from((step + 1) as u32)) % 10_000)) as u16
}
