//! Steps inside an allocation: opened by `srun` through the api, read by users.

use berth_model::layout;
use berth_model::resources::NodeAllocation;
use berth_model::step::{NodeStep, StepResult, StepSpec};
use berth_model::{Fault, StepId};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::At;
use crate::plan::master_port;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A step as stored.
#[derive(Clone, Debug, FromRow)]
pub struct StepRow {
    pub job_id: i64,
    pub attempt: i32,
    pub step: i32,
    pub name: String,
    pub state: String,
    pub task_count: i32,
    pub created_at: At,
    pub started_at: Option<At>,
    pub ended_at: Option<At>,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<i32>,
    pub cpu_usec: i64,
    pub memory_peak_bytes: i64,
    pub nodes: Vec<String>,
}

const COLUMNS: &str = "select t.job_id, t.attempt, t.step, t.name, t.state, t.task_count, t.created_at, t.started_at, t.ended_at, t.exit_code, t.exit_signal,
    t.cpu_usec, t.memory_peak_bytes,
    coalesce((select array_agg(p.node order by p.position) from step_nodes p where p.job_id = t.job_id and p.attempt = t.attempt and p.step = t.step), '{}') as nodes
    from steps t";

/// Most steps of one attempt (Slurm's MaxStepCount).
const MAX_STEPS: i32 = 40_000;

impl Db {
    /// Opens a step inside the running attempt of a job and tells its nodes to run it. `Conflict` with code `step_busy` if it must wait
    /// for other steps, `wrong_state` if the job does not run any more.
    pub async fn open_step(&self, job: u64, attempt: u32, spec: &StepSpec) -> Result<StepRow, StoreError> {
        let (job, attempt) = (job as i64, attempt as i32);
        let mut tx = self.pool.begin().await?;
        let running: Option<bool> =
            sqlx::query_scalar("select state in ('allocated', 'running') from jobs where job_id = $1 and attempt = $2 for update")
                .bind(job)
                .bind(attempt)
                .fetch_optional(&mut *tx)
                .await?;
        if running != Some(true) {
            return Err(StoreError::Conflict {
                code: "wrong_state",
                detail: format!("job {job} does not run (any more)"),
                help: "a step can be opened while its job runs".to_owned(),
            });
        }
        let allocation: Json<Vec<NodeAllocation>> =
            sqlx::query_scalar("select allocation from attempts where job_id = $1 and attempt = $2")
                .bind(job)
                .bind(attempt)
                .fetch_one(&mut *tx)
                .await?;
        // The batch script's own part does not count: its steps are what it is there for.
        let busy: Vec<Json<NodeStep>> = sqlx::query_scalar(
            "select p.here from step_nodes p join steps t on t.job_id = p.job_id and t.attempt = p.attempt and t.step = p.step
             where p.job_id = $1 and p.attempt = $2 and p.step >= 0 and p.result is null and not coalesce((t.spec->>'overlap')::boolean, false)",
        )
        .bind(job)
        .bind(attempt)
        .fetch_all(&mut *tx)
        .await?;
        let busy: Vec<NodeStep> = busy.into_iter().map(|b| b.0).collect();
        let Some(layout) = layout::place_step(&allocation.0, spec, &busy)? else {
            return Err(StoreError::Conflict {
                code: "step_busy",
                detail: "other steps of the job use what this step needs".to_owned(),
                help: "it starts when they end; --overlap shares CPUs and GPUs with them".to_owned(),
            });
        };
        let step: i32 = sqlx::query_scalar("select coalesce(max(step), -1) + 1 from steps where job_id = $1 and attempt = $2")
            .bind(job)
            .bind(attempt)
            .fetch_one(&mut *tx)
            .await?;
        if step >= MAX_STEPS {
            return Err(StoreError::Refused(Fault::new(
                "too_many_steps",
                "",
                format!("the job has {step} steps already"),
                "start fewer steps, each with more tasks",
            )));
        }
        let name =
            spec.name.clone().or_else(|| spec.command.first().map(|c| c.rsplit('/').next().unwrap_or(c).to_owned())).unwrap_or_default();
        sqlx::query("insert into steps (job_id, attempt, step, name, spec, task_count, master_port) values ($1, $2, $3, $4, $5, $6, $7)")
            .bind(job)
            .bind(attempt)
            .bind(step)
            .bind(name)
            .bind(Json(spec))
            .bind(layout.iter().map(|n| n.tasks.len() as i32).sum::<i32>())
            .bind(i32::from(master_port(job, step)))
            .execute(&mut *tx)
            .await?;
        for (position, here) in layout.iter().enumerate() {
            sqlx::query(
                "insert into step_nodes (job_id, attempt, step, node, position, phase, here) values ($1, $2, $3, $4, $5, 'go', $6)",
            )
            .bind(job)
            .bind(attempt)
            .bind(step)
            .bind(here.node.as_str())
            .bind(position as i32)
            .bind(Json(here))
            .execute(&mut *tx)
            .await?;
        }
        let mut nodes: Vec<String> = layout.iter().map(|n| n.node.to_string()).collect();
        settle::bump_nodes(&mut tx, &mut nodes).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Job(job as u64));
        self.step(job as u64, attempt as u32, StepId::from_i32(step)).await
    }

    /// Stops a step: its tasks get SIGTERM, and SIGKILL after the cluster's kill wait.
    pub async fn stop_step(&self, job: u64, attempt: u32, step: StepId) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("select from jobs where job_id = $1 for update").bind(job as i64).execute(&mut *tx).await?;
        sqlx::query("update step_nodes set phase = 'stop' where job_id = $1 and attempt = $2 and step = $3 and result is null")
            .bind(job as i64)
            .bind(attempt as i32)
            .bind(step.as_i32())
            .execute(&mut *tx)
            .await?;
        let nodes = settle::bump_attempt(&mut tx, job as i64, attempt as i32).await?;
        tx.commit().await?;
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        Ok(())
    }

    pub async fn step(&self, job: u64, attempt: u32, step: StepId) -> Result<StepRow, StoreError> {
        let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new(COLUMNS);
        query.push(" where t.job_id = ").push_bind(job as i64).push(" and t.attempt = ").push_bind(attempt as i32);
        query.push(" and t.step = ").push_bind(step.as_i32());
        query.build_query_as().fetch_optional(&self.pool).await?.ok_or_else(|| StoreError::NotFound(format!("step {job}.{step}")))
    }

    /// All steps of a job, by attempt and number.
    pub async fn steps(&self, job: u64) -> Result<Vec<StepRow>, StoreError> {
        let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new(COLUMNS);
        query.push(" where t.job_id = ").push_bind(job as i64).push(" order by t.attempt, t.step");
        Ok(query.build_query_as().fetch_all(&self.pool).await?)
    }

    /// The results of a step that nodes have reported so far.
    pub async fn step_results(&self, job: u64, attempt: u32, step: StepId) -> Result<Vec<StepResult>, StoreError> {
        let rows: Vec<Json<StepResult>> = sqlx::query_scalar(
            "select result from step_nodes where job_id = $1 and attempt = $2 and step = $3 and result is not null order by position",
        )
        .bind(job as i64)
        .bind(attempt as i32)
        .bind(step.as_i32())
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|r| r.0).collect())
    }
}
