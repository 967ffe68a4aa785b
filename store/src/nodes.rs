//! Nodes as operators see and change them.

use berth_model::resources::Inventory;
use berth_model::state::{NodeFlag, NodeState};
use sqlx::FromRow;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::db::At;
use crate::events::{self, NewEvent};
use crate::lost;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A node as stored, with what runs there.
#[derive(Clone, Debug, FromRow)]
pub struct NodeRow {
    pub name: String,
    pub inventory: Json<Inventory>,
    pub features: Vec<String>,
    pub weight: i32,
    pub provider: String,
    pub address: String,
    pub drivers: Vec<String>,
    pub worker_version: String,
    pub is_down: bool,
    pub flags: Vec<String>,
    pub reason: Option<String>,
    pub clock_skew_ms: i64,
    pub registered_at: At,
    pub version: i64,
    pub last_seen: Option<At>,
    pub allocated_cpus: i64,
    pub allocated_memory: i64,
    /// GPU indices in use.
    pub allocated_gpus: Vec<i64>,
    /// Shares of GPUs that jobs hold: `shard:2`.
    pub allocated_shares: Vec<String>,
    pub jobs: Vec<i64>,
    /// How many of them are being cleaned up.
    pub completing: i64,
}

impl NodeRow {
    /// The base state: down, or derived from what runs there.
    pub fn state(&self) -> NodeState {
        if self.is_down {
            NodeState::Down
        } else if self.jobs.is_empty() {
            NodeState::Idle
        } else if self.allocated_cpus >= self.inventory.cpus.len() as i64 {
            NodeState::Allocated
        } else {
            NodeState::Mixed
        }
    }

    /// State and `flags` (its own and those that follow from reservations and plans) in one word, that which matters most to an operator.
    pub fn status(&self, flags: &[String]) -> &'static str {
        let has = |flag: NodeFlag| flags.iter().any(|known| known == flag.as_str());
        let is_busy = !self.jobs.is_empty();
        match () {
            () if self.is_down => "down",
            // Of one that is drained as well as powered down, the first is what an operator has to take back.
            () if has(NodeFlag::Fail) && is_busy => "failing",
            () if has(NodeFlag::Fail) => "fail",
            () if has(NodeFlag::Drain) && is_busy && !has(NodeFlag::RebootIssued) => "draining",
            () if has(NodeFlag::Drain) && !has(NodeFlag::RebootIssued) => "drained",
            () if has(NodeFlag::PoweringDown) => "powering_down",
            () if has(NodeFlag::PoweringUp) => "powering_up",
            () if has(NodeFlag::PoweredDown) => "powered_down",
            () if has(NodeFlag::RebootIssued) => "rebooting",
            () if has(NodeFlag::Maintenance) => "maintenance",
            () if self.last_seen.is_none() => "unknown",
            () if self.completing == self.jobs.len() as i64 && is_busy => "completing",
            () if has(NodeFlag::Reserved) && !is_busy => "reserved",
            () if has(NodeFlag::Planned) && !is_busy => "planned",
            () => self.state().as_str(),
        }
    }
}

const SELECT: &str = "select n.name, n.inventory, n.features, n.weight, n.provider, n.address, n.drivers, n.worker_version, n.is_down, n.flags, n.reason,
        n.clock_skew_ms, n.registered_at, n.version, c.last_seen,
        coalesce(u.cpus, 0)::bigint as allocated_cpus, coalesce(u.memory, 0)::bigint as allocated_memory,
        coalesce(g.gpus, '{}') as allocated_gpus, coalesce(u.shares, '{}') as allocated_shares, coalesce(u.jobs, '{}') as jobs, coalesce(u.completing, 0)::bigint as completing
     from nodes n left join node_contacts c on c.node = n.name
     left join lateral (select sum(jsonb_array_length(allocation->'cpus') + coalesce(jsonb_array_length(allocation->'idle_cpus'), 0)) as cpus, sum((allocation->>'memory_bytes')::bigint) as memory,
             array_agg(job_id order by job_id) as jobs, array_agg(allocation->>'share') filter (where allocation->>'share' is not null) as shares, count(*) filter (where phase = 'stop') as completing from assignments a where a.node = n.name) u on true
     left join lateral (select array_agg(distinct x::bigint order by x::bigint) as gpus from assignments a, jsonb_array_elements_text(a.allocation->'gpus') x
             where a.node = n.name) g on true";

impl Db {
    /// All nodes after `after` by name, up to `limit`.
    pub async fn nodes(&self, after: &str, limit: i64) -> Result<Vec<NodeRow>, StoreError> {
        let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new(SELECT);
        query.push(" where n.name > ").push_bind(after).push(" order by n.name limit ").push_bind(limit);
        Ok(query.build_query_as().fetch_all(&self.pool).await?)
    }

    pub async fn node(&self, name: &str) -> Result<NodeRow, StoreError> {
        let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new(SELECT);
        query.push(" where n.name = ").push_bind(name);
        query.build_query_as().fetch_optional(&self.pool).await?.ok_or_else(|| StoreError::NotFound(format!("node {name}")))
    }

    /// Drains a node: what runs goes on, nothing new starts.
    pub async fn drain_node(&self, name: &str, reason: &str, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        if !drain(&mut tx, name, reason, false).await? {
            return Err(StoreError::NotFound(format!("node {name}")));
        }
        tell(&mut tx, "node.drained", name, serde_json::json!({ "by": by, "reason": reason })).await?;
        tx.commit().await?;
        self.node_changed(name);
        Ok(())
    }

    /// Takes back drain, fail and down. A node that is truly silent goes down again by itself. `Conflict` if there is nothing to take back.
    pub async fn resume_node(&self, name: &str, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let is_out: Option<bool> =
            sqlx::query_scalar("select is_down or flags && array['drain', 'fail'] from nodes where name = $1 for update")
                .bind(name)
                .fetch_optional(&mut *tx)
                .await?;
        if !is_out.ok_or_else(|| StoreError::NotFound(format!("node {name}")))? {
            return Err(StoreError::Conflict {
                code: "wrong_state",
                detail: format!("node {name} is not down, drained or failing"),
                help: "berth nodes shows its state; there is nothing to take back".to_owned(),
            });
        }
        sqlx::query(
            "update nodes set is_down = false, flags = array_remove(array_remove(flags, 'drain'), 'fail'), reason = null, reason_is_health = false,
                 drain_reason = null, drained_by_health = false, version = version + 1 where name = $1",
        )
        .bind(name)
        .execute(&mut *tx)
        .await?;
        let mut nodes = vec![name.to_owned()];
        settle::bump_nodes(&mut tx, &mut nodes).await?;
        lost::forgive(&mut tx, name).await?;
        tell(&mut tx, "node.resumed", name, serde_json::json!({ "by": by })).await?;
        tx.commit().await?;
        self.node_changed(name);
        Ok(())
    }

    /// Changes a node's weight and features.
    pub async fn update_node(
        &self,
        name: &str,
        expected_version: Option<i64>,
        weight: Option<u32>,
        features: Option<Vec<String>>,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let version: Option<i64> =
            sqlx::query_scalar("select version from nodes where name = $1 for update").bind(name).fetch_optional(&mut *tx).await?;
        let version = version.ok_or_else(|| StoreError::NotFound(format!("node {name}")))?;
        if expected_version.is_some_and(|expected| expected != version) {
            return Err(StoreError::StaleVersion(format!("node {name}")));
        }
        sqlx::query(
            "update nodes set weight = coalesce($2, weight), features = coalesce($3, features), version = version + 1 where name = $1",
        )
        .bind(name)
        .bind(weight.map(|w| w as i32))
        .bind(features)
        .execute(&mut *tx)
        .await?;
        tell(&mut tx, "node.updated", name, serde_json::json!({})).await?;
        tx.commit().await?;
        self.node_changed(name);
        Ok(())
    }

    /// Removes a node that runs nothing. `Conflict` if jobs still hold it, or its worker lives and would register it again.
    pub async fn delete_node(&self, name: &str, by: &str) -> Result<(), StoreError> {
        let silence = 2 * self.worker_settings().await?.heartbeat_seconds as i64;
        let mut tx = self.pool.begin().await?;
        let found: Option<String> =
            sqlx::query_scalar("select name from nodes where name = $1 for update").bind(name).fetch_optional(&mut *tx).await?;
        if found.is_none() {
            return Err(StoreError::NotFound(format!("node {name}")));
        }
        let held: bool =
            sqlx::query_scalar("select exists (select from assignments where node = $1)").bind(name).fetch_one(&mut *tx).await?;
        if held {
            return Err(StoreError::Conflict {
                code: "node_in_use",
                detail: format!("jobs still run on node {name}"),
                help: "drain the node and delete it when its jobs have ended".to_owned(),
            });
        }
        let heard_seconds: Option<i64> =
            sqlx::query_scalar("select extract(epoch from now() - last_seen)::bigint from node_contacts where node = $1")
                .bind(name)
                .fetch_optional(&mut *tx)
                .await?;
        if let Some(seconds) = heard_seconds.filter(|seconds| *seconds <= silence) {
            return Err(StoreError::Conflict {
                code: "node_alive",
                detail: format!("the worker of node {name} was heard {seconds} seconds ago and would register it again"),
                help: format!("stop the worker first; {silence} seconds later the node can be deleted"),
            });
        }
        sqlx::query("delete from nodes where name = $1").bind(name).execute(&mut *tx).await?;
        tell(&mut tx, "node.deleted", name, serde_json::json!({ "by": by })).await?;
        tx.commit().await?;
        self.node_changed(name);
        Ok(())
    }

    /// Nodes, in folded lists, that pending jobs are planned to start on, those that start soonest first; of at most `limit` jobs.
    pub async fn planned_nodes(&self, limit: i64) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "select verdict->'planned_start'->>'nodes' from job_verdicts v join jobs j on j.job_id = v.job_id
             where j.state = 'pending' and v.planned_start is not null order by v.planned_start, v.job_id limit $1",
        )
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }

    fn node_changed(&self, name: &str) {
        self.wake.notify(Topic::Events);
        self.wake.notify(Topic::Node(name.to_owned()));
    }

    /// Nodes by state and flags, for metrics: (is_down, flags, busy, count).
    pub async fn node_counts(&self) -> Result<Vec<(String, i64)>, StoreError> {
        let maintained = self.maintained_nodes().await?;
        Ok(sqlx::query_as(
            "select case when is_down then 'down' when flags @> array['drain'] then 'drain' when name = any($1) then 'maint'
                     when exists (select from assignments a where a.node = n.name) then 'busy' else 'idle' end, count(*)
             from nodes n group by 1 order by 1",
        )
        .bind(maintained)
        .fetch_all(&self.pool)
        .await?)
    }

    /// GPUs by type: (type, all, allocated, on nodes that are down or drained or faulty).
    pub async fn gpu_counts(&self) -> Result<Vec<(String, i64, i64, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "select g->>'type', count(*),
                 count(*) filter (where exists (select from assignments a where a.node = n.name and a.allocation->'gpus' @> (g->'index'))),
                 count(*) filter (where n.is_down or n.flags @> array['drain'] or g->>'fault' is not null)
             from nodes n, jsonb_array_elements(n.inventory->'gpus') g group by 1 order by 1",
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

/// Sets the drain flag. `false` if there is no such node. `by_health`: the node asked for it itself and may take it back.
pub(crate) async fn drain(tx: &mut PgConnection, node: &str, reason: &str, by_health: bool) -> Result<bool, StoreError> {
    let found = sqlx::query(
        "update nodes set drained_by_health = case when flags @> array[$3] then drained_by_health and $4 else $4 end,
             flags = case when flags @> array[$3] then flags else array_append(flags, $3) end, drain_reason = $2,
             reason = case when is_down and reason <> $2 then $2 || '; ' || reason else $2 end, version = version + 1 where name = $1",
    )
    .bind(node)
    .bind(reason)
    .bind(NodeFlag::Drain.as_str())
    .bind(by_health)
    .execute(&mut *tx)
    .await?;
    let mut nodes = vec![node.to_owned()];
    settle::bump_nodes(tx, &mut nodes).await?;
    Ok(found.rows_affected() > 0)
}

pub(crate) async fn tell(tx: &mut PgConnection, kind: &'static str, node: &str, detail: serde_json::Value) -> Result<(), StoreError> {
    events::append(tx, &[NewEvent { kind, node: Some(node.to_owned()), detail: Some(detail), ..NewEvent::default() }]).await
}
