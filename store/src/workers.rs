//! The worker's side of the store: join tokens, registration, contact, desired state.

use berth_model::job::JobSpec;
use berth_model::resources::NodeAllocation;
use berth_model::step::{NodeStep, StepSpec};
use berth_model::worker::{
    ArrayContext, Assignment, JobContext, NodeContext, Phase, Register, SignalOrder, StepAssignment, StopOrder, WorkerSettings,
};
use berth_model::{JobId, StepId};
use sqlx::FromRow;
use sqlx::types::{Json, Uuid};

use crate::db::At;
use crate::feed::node_name;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A join token as listed; the secret itself is shown once, at creation.
#[derive(Clone, Debug, FromRow)]
pub struct JoinTokenRow {
    pub id: Uuid,
    pub node_pattern: String,
    pub uses_left: i32,
    pub expires_at: At,
    pub created_by: String,
    pub created_at: At,
}

/// What a node is to be told.
pub struct Desired {
    pub cursor: i64,
    pub is_draining: bool,
    pub reboot: bool,
    pub assignments: Vec<Assignment>,
}

impl Db {
    /// Stores a join token by its hash.
    pub async fn add_join_token(
        &self,
        id: Uuid,
        hash: &[u8],
        node_pattern: &str,
        uses: u32,
        expires_at: jiff::Timestamp,
        by: &str,
    ) -> Result<JoinTokenRow, StoreError> {
        Ok(sqlx::query_as(
            "insert into join_tokens (id, token_hash, node_pattern, uses_left, expires_at, created_by) values ($1, $2, $3, $4, $5, $6)
             returning id, node_pattern, uses_left, expires_at, created_by, created_at",
        )
        .bind(id)
        .bind(hash)
        .bind(node_pattern)
        .bind(uses as i32)
        .bind(At(expires_at))
        .bind(by)
        .fetch_one(&self.pool)
        .await?)
    }

    pub async fn join_tokens(&self) -> Result<Vec<JoinTokenRow>, StoreError> {
        Ok(sqlx::query_as(
            "select id, node_pattern, uses_left, expires_at, created_by, created_at from join_tokens order by created_at, id",
        )
        .fetch_all(&self.pool)
        .await?)
    }

    pub async fn revoke_join_token(&self, id: Uuid) -> Result<(), StoreError> {
        match sqlx::query("delete from join_tokens where id = $1").bind(id).execute(&self.pool).await?.rows_affected() {
            0 => Err(StoreError::NotFound(format!("join token {id}"))),
            _ => Ok(()),
        }
    }

    /// Uses a join token once for `node`. `false` if it is unknown, expired, used up or for other nodes.
    pub async fn use_join_token(&self, hash: &[u8], node: &str) -> Result<bool, StoreError> {
        let used = sqlx::query(
            "update join_tokens set uses_left = uses_left - 1
             where token_hash = $1 and uses_left > 0 and expires_at > now()
               and $2 like replace(replace(replace(replace(node_pattern, '\\', '\\\\'), '%', '\\%'), '_', '\\_'), '*', '%')",
        )
        .bind(hash)
        .bind(node)
        .execute(&self.pool)
        .await?;
        Ok(used.rows_affected() == 1)
    }

    /// Registers a node or takes its new inventory. A node that was down because it was silent is up again.
    pub async fn register_node(&self, register: &Register, clock_skew_ms: i64) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        // In the order of a report, which may be under way from an earlier process of the node.
        sqlx::query("select from node_contacts where node = $1 for update").bind(register.node.as_str()).execute(&mut *tx).await?;
        let known_boot: Option<String> = sqlx::query_scalar("select machine_boot from nodes where name = $1")
            .bind(register.node.as_str())
            .fetch_optional(&mut *tx)
            .await?;
        let is_new_boot = known_boot.is_none_or(|known| known != register.machine_boot);
        sqlx::query(
            "insert into nodes as n (name, inventory, features, address, drivers, worker_version, clock_skew_ms, machine_boot)
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (name) do update set inventory = $2, features = case when cardinality($3) > 0 then $3 else n.features end, address = $4,
                 drivers = $5, worker_version = $6, clock_skew_ms = $7, registered_at = now(), version = n.version + 1, machine_boot = $8,
                 provider = case when n.provider = 'cloud' then 'cloud' else 'worker' end,
                 is_down = n.is_down and not n.reason_is_health,
                 reason = case when n.is_down and n.reason_is_health then n.drain_reason else n.reason end",
        )
        .bind(register.node.as_str())
        .bind(Json(&register.inventory))
        .bind(register.features.iter().cloned().collect::<Vec<_>>())
        .bind(&register.address)
        .bind(&register.drivers)
        .bind(&register.version)
        .bind(clock_skew_ms)
        .bind(&register.machine_boot)
        .execute(&mut *tx)
        .await?;
        sqlx::query(
            "insert into node_contacts (node, last_seen, boot_id, last_report) values ($1, now(), $2, 0)
             on conflict (node) do update set last_seen = now(), boot_id = $2,
                 last_report = case when node_contacts.boot_id = $2 then node_contacts.last_report else 0 end",
        )
        .bind(register.node.as_str())
        .bind(&register.boot_id)
        .execute(&mut *tx)
        .await?;
        sqlx::query("insert into node_cursors (node) values ($1) on conflict do nothing")
            .bind(register.node.as_str())
            .execute(&mut *tx)
            .await?;
        crate::power::arrived(&mut tx, register.node.as_str(), is_new_boot).await?;
        crate::lost::forgive(&mut tx, register.node.as_str()).await?;
        crate::nodes::tell(&mut tx, "node.registered", register.node.as_str(), serde_json::json!({ "version": register.version })).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Notes that the node was heard of, and returns the cursor of what it should do. `NotFound` if it must register again. A node that
    /// was taken for dead is up again: it has killed what it ran, or is told to by what it now reads.
    pub async fn touch_node(&self, node: &str) -> Result<i64, StoreError> {
        let row: Option<(i64, bool, bool)> = sqlx::query_as(
            "with contact as (update node_contacts set last_seen = now() where node = $1 returning node)
             select c.cursor, n.is_down and n.reason_is_health, n.flags @> array['powering_up']
             from contact t join node_cursors c on c.node = t.node join nodes n on n.name = t.node",
        )
        .bind(node)
        .fetch_optional(&self.pool)
        .await?;
        let (cursor, was_lost, is_awaited) = row.ok_or_else(|| StoreError::NotFound(format!("node {node}")))?;
        if is_awaited {
            // It was never powered down in truth: its worker goes on without registering again.
            let mut tx = self.pool.begin().await?;
            crate::power::arrived(&mut tx, node, false).await?;
            crate::nodes::tell(&mut tx, "node.returned", node, serde_json::json!({})).await?;
            tx.commit().await?;
            self.wake.notify(Topic::Events);
        }
        if was_lost {
            let mut tx = self.pool.begin().await?;
            sqlx::query(
                "update nodes set is_down = false, reason = drain_reason, version = version + 1
                 where name = $1 and is_down and reason_is_health",
            )
            .bind(node)
            .execute(&mut *tx)
            .await?;
            crate::lost::forgive(&mut tx, node).await?;
            crate::nodes::tell(&mut tx, "node.returned", node, serde_json::json!({})).await?;
            tx.commit().await?;
            self.wake.notify(Topic::Events);
        }
        Ok(cursor)
    }

    /// What workers must know of the policy.
    pub async fn worker_settings(&self) -> Result<WorkerSettings, StoreError> {
        let policy: Json<berth_model::policy::Policy> = sqlx::query_scalar("select spec from policy").fetch_one(&self.pool).await?;
        let timeout = policy.0.node_timeout_seconds.max(1);
        Ok(WorkerSettings {
            heartbeat_seconds: (timeout / 4).clamp(1, 15),
            node_timeout_seconds: timeout,
            kill_wait_seconds: policy.0.kill_wait_seconds,
        })
    }

    /// All that should be on `node`, with the cursor at which that was so; not yet what waits for other nodes to be powered up. Job tokens are left empty: the caller signs them.
    pub async fn desired_state(&self, node: &str) -> Result<Desired, StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("set transaction isolation level repeatable read read only").execute(&mut *tx).await?;
        let (cursor, is_draining, reboot): (i64, bool, bool) = sqlx::query_as(
            "select c.cursor, n.flags @> array['drain'], n.flags @> array['reboot_issued'] from node_cursors c join nodes n on n.name = c.node where c.node = $1",
        )
        .bind(node)
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(|| StoreError::NotFound(format!("node {node}")))?;
        let assignments: Vec<AssignmentRow> = sqlx::query_as(
            "select s.job_id, s.attempt, s.node_index, s.phase, s.stop_reason, s.grace_seconds, s.suspend, s.allocation as here,
                 a.run_id, a.allocation, a.reservation, j.tenant, j.account, j.user_name, j.partition, j.qos, j.spec, j.submit_time, j.time_limit, j.restarts,
                 j.array_job_id, j.array_index,
                 (select p.spec->>'array' from jobs p where p.job_id = j.array_job_id) as array_spec,
                 (select array_agg(n.address order by o.ord) from unnest(a.nodes) with ordinality o(name, ord) left join nodes n on n.name = o.name) as addresses
             from assignments s join attempts a on a.job_id = s.job_id and a.attempt = s.attempt join jobs j on j.job_id = s.job_id
             where s.node = $1 and (s.phase = 'stop' or not exists (select from nodes o where o.name = any(a.nodes)
                 and o.flags && array['powering_down', 'powered_down', 'powering_up']))
             order by s.job_id, s.attempt",
        )
        .bind(node)
        .fetch_all(&mut *tx)
        .await?;
        let steps: Vec<StepRow> = sqlx::query_as(
            "select p.job_id, p.attempt, p.step, p.phase, p.here, t.spec, t.task_count, t.master_port,
                 (select jsonb_agg(jsonb_build_array(o.node, jsonb_array_length(o.here->'tasks')) order by o.position) from step_nodes o
                  where o.job_id = p.job_id and o.attempt = p.attempt and o.step = p.step) as nodes
             from assignments s join step_nodes p on p.job_id = s.job_id and p.attempt = s.attempt and p.node = s.node
             join steps t on t.job_id = p.job_id and t.attempt = p.attempt and t.step = p.step
             where s.node = $1 and p.result is null order by p.job_id, p.attempt, p.step",
        )
        .bind(node)
        .fetch_all(&mut *tx)
        .await?;
        let signals: Vec<SignalFields> = sqlx::query_as(
            "select g.job_id, g.attempt, g.id, g.signal, g.step, g.is_full from assignments s
             join job_signals g on g.job_id = s.job_id and g.attempt = s.attempt where s.node = $1 order by g.id",
        )
        .bind(node)
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        let mut result = Vec::with_capacity(assignments.len());
        for row in assignments {
            result.push(row.assignment(&steps, &signals)?);
        }
        Ok(Desired { cursor, is_draining, reboot, assignments: result })
    }

    /// Tells a node to look again at what it should do.
    pub async fn bump_node(&self, node: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        settle::bump_nodes(&mut tx, &mut vec![node.to_owned()]).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Node(node.to_owned()));
        Ok(())
    }
}

/// Job, attempt, id, signal, step, whether the batch shell gets it too.
type SignalFields = (i64, i32, i64, i32, Option<i32>, bool);

#[derive(FromRow)]
struct AssignmentRow {
    job_id: i64,
    attempt: i32,
    node_index: i32,
    phase: String,
    stop_reason: Option<String>,
    grace_seconds: i64,
    suspend: Option<i32>,
    here: Json<NodeAllocation>,
    run_id: String,
    allocation: Json<Vec<NodeAllocation>>,
    tenant: String,
    account: String,
    user_name: String,
    partition: String,
    qos: String,
    spec: Json<JobSpec>,
    reservation: Option<String>,
    submit_time: At,
    time_limit: i64,
    restarts: i32,
    array_job_id: Option<i64>,
    array_index: Option<i32>,
    array_spec: Option<String>,
    addresses: Option<Vec<Option<String>>>,
}

#[derive(FromRow)]
struct StepRow {
    job_id: i64,
    attempt: i32,
    step: i32,
    phase: String,
    here: Json<NodeStep>,
    spec: Option<Json<StepSpec>>,
    task_count: i32,
    master_port: i32,
    nodes: Json<Vec<(String, u32)>>,
}

impl AssignmentRow {
    fn assignment(self, steps: &[StepRow], signals: &[SignalFields]) -> Result<Assignment, StoreError> {
        let stop = match self.stop_reason.as_deref().and_then(settle::stop_reason) {
            Some(reason) => Some(StopOrder { reason, grace_seconds: self.grace_seconds.max(0) as u64 }),
            None => None,
        };
        let addresses = self.addresses.unwrap_or_default();
        let nodes = self
            .allocation
            .0
            .iter()
            .enumerate()
            .map(|(i, n)| NodeContext {
                name: n.node.clone(),
                address: addresses.get(i).cloned().flatten().filter(|a| !a.is_empty()).unwrap_or_else(|| n.node.to_string()),
                cpus: n.cpus.len() as u32,
                tasks: n.tasks,
                gpus: n.gpus.len() as u32,
            })
            .collect();
        Ok(Assignment {
            job_id: JobId(self.job_id as u64),
            attempt: self.attempt as u32,
            run_id: self.run_id.parse().map_err(|_| StoreError::Corrupt(self.run_id.clone()))?,
            phase: phase(&self.phase)?,
            stop,
            context: JobContext {
                tenant: self.tenant,
                account: self.account,
                user: self.user_name,
                partition: self.partition,
                qos: self.qos,
                // Of those that it names, or that attracted it: the one it runs in.
                spec: JobSpec { reservation: self.reservation, ..self.spec.0 },
                submit_time: self.submit_time.0,
                time_limit_seconds: self.time_limit.max(0) as u64,
                restarts: self.restarts as u32,
                array: array_context(self.array_job_id, self.array_index, self.array_spec.as_deref()),
                nodes,
            },
            allocation: self.here.0,
            node_index: self.node_index as u32,
            job_token: String::new(),
            steps: steps
                .iter()
                .filter(|s| s.job_id == self.job_id && s.attempt == self.attempt)
                .map(StepRow::assignment)
                .collect::<Result<Vec<_>, _>>()?,
            signals: signals
                .iter()
                .filter(|(job, attempt, ..)| *job == self.job_id && *attempt == self.attempt)
                .map(|(_, _, id, signal, step, is_full)| SignalOrder {
                    id: *id as u64,
                    signal: *signal,
                    step: step.map(StepId::from_i32),
                    is_full: *is_full,
                })
                .collect(),
            suspend: self.suspend.map(|number| number as u32),
        })
    }
}

impl StepRow {
    fn assignment(&self) -> Result<StepAssignment, StoreError> {
        let nodes = self.nodes.0.iter().map(|(name, tasks)| Ok((node_name(name)?, *tasks))).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(StepAssignment {
            step: StepId::from_i32(self.step),
            phase: phase(&self.phase)?,
            spec: self.spec.as_ref().map(|s| s.0.clone()),
            task_count: self.task_count as u32,
            nodes,
            here: self.here.0.clone(),
            master_port: self.master_port as u16,
        })
    }
}

fn phase(text: &str) -> Result<Phase, StoreError> {
    match text {
        "prepare" => Ok(Phase::Prepare),
        "go" => Ok(Phase::Go),
        "stop" => Ok(Phase::Stop),
        other => Err(StoreError::Corrupt(format!("phase {other:?}"))),
    }
}

fn array_context(array: Option<i64>, index: Option<i32>, spec: Option<&str>) -> Option<ArrayContext> {
    let indices = spec?.parse::<berth_model::array::ArraySpec>().ok()?.indices;
    Some(ArrayContext {
        job_id: JobId(array? as u64),
        task_id: index? as u32,
        task_count: indices.len() as u32,
        task_min: indices.first()?,
        task_max: indices.last()?,
        task_step: indices.iter().nth(1).zip(indices.first()).map_or(1, |(second, first)| second - first),
    })
}

impl Db {
    /// The cursor of what a node should do, without counting as contact.
    pub async fn node_cursor(&self, node: &str) -> Result<i64, StoreError> {
        let cursor: Option<i64> =
            sqlx::query_scalar("select cursor from node_cursors where node = $1").bind(node).fetch_optional(&self.pool).await?;
        cursor.ok_or_else(|| StoreError::NotFound(format!("node {node}")))
    }

    /// Whether the attempt was given to the node.
    pub async fn ran_on(&self, job: u64, attempt: u32, node: &str) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            // Of a node that was given back only its steps tell.
            "select exists (select from attempts where job_id = $1 and attempt = $2 and nodes @> array[$3])
                 or exists (select from step_nodes where job_id = $1 and attempt = $2 and node = $3)",
        )
        .bind(job as i64)
        .bind(attempt as i32)
        .bind(node)
        .fetch_one(&self.pool)
        .await?)
    }
}
