//! Power and reboots: the steps in which a node goes down and comes up again. Who presses the button is the scheduler's business; here
//! is what is known of each node, so that a new leader goes on where the last one was.

use berth_model::state::NodeFlag;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::lease::Epoch;
use crate::wake::Topic;
use crate::{Db, StoreError, settle};

/// A reboot that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReboot {
    /// It was drained for it, and is resumed after it.
    pub asap: bool,
    /// It stays down after it.
    pub stays_down: bool,
    pub reason: String,
}

/// A node as power saving looks at it.
#[derive(Clone, Debug, FromRow)]
pub struct PowerNode {
    pub name: String,
    pub features: Vec<String>,
    pub flags: Vec<String>,
    pub is_down: bool,
    /// Jobs that hold something there.
    pub jobs: Vec<i64>,
}

impl PowerNode {
    pub fn has(&self, flag: NodeFlag) -> bool {
        self.flags.iter().any(|known| known == flag.as_str())
    }
}

const SELECT: &str = "select n.name, n.features, n.flags, n.is_down,
         coalesce((select array_agg(a.job_id order by a.job_id) from assignments a where a.node = n.name), '{}') as jobs
     from nodes n";

impl Db {
    /// All nodes, or those that are powered down, or on the way there or back, or to be rebooted.
    pub async fn power_nodes(&self, only_in_motion: bool) -> Result<Vec<PowerNode>, StoreError> {
        let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new(SELECT);
        if only_in_motion {
            query.push(
                " where n.flags && array['power_down', 'power_up', 'powering_down', 'powering_up', 'powered_down', 'reboot', 'reboot_issued']",
            );
        }
        Ok(query.push(" order by n.name").build_query_as().fetch_all(&self.pool).await?)
    }

    /// Those of `nodes` that are powered down or on their way down or up, by name.
    pub async fn nodes_not_up(&self, nodes: &[String]) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "select name from nodes where name = any($1) and flags && array['powering_down', 'powered_down', 'powering_up'] order by name",
        )
        .bind(nodes)
        .fetch_all(&self.pool)
        .await?)
    }

    /// Begins to power down those of `nodes` that hold nothing. Returns them.
    pub async fn begin_power_down(&self, epoch: Epoch, nodes: &[String]) -> Result<Vec<String>, StoreError> {
        self.move_nodes(
            epoch,
            nodes,
            "flags = array_append(array_remove(array_remove(array_remove(flags, 'power_down'), 'power_up'), 'powering_up'), 'powering_down')",
            // One that is on its way up turns round only if it was asked to.
            "not n.flags && array['powering_down', 'powered_down'] and not (n.flags @> array['powering_up'] and not n.flags @> array['power_down'])
                 and not exists (select from assignments a where a.node = n.name)",
            "node.powering_down",
        )
        .await
    }

    /// Those that have been powering down for `timeout_ms` are powered down. Returns them.
    pub async fn end_power_down(&self, epoch: Epoch, timeout_ms: i64) -> Result<Vec<String>, StoreError> {
        let over: Vec<String> = sqlx::query_scalar(
            "select name from nodes where flags @> array['powering_down'] and power_since < now() - $1 * interval '1 millisecond' order by 1",
        )
        .bind(timeout_ms)
        .fetch_all(&self.pool)
        .await?;
        let steps = "flags = array_append(array_remove(flags, 'powering_down'), 'powered_down')";
        self.move_nodes(epoch, &over, steps, "n.flags @> array['powering_down']", "node.powered_down").await
    }

    /// Begins to power up those of `nodes` that are powered down. Returns them.
    pub async fn begin_power_up(&self, epoch: Epoch, nodes: &[String]) -> Result<Vec<String>, StoreError> {
        let steps = "flags = array_append(array_remove(array_remove(flags, 'powered_down'), 'power_up'), 'powering_up')";
        self.move_nodes(epoch, nodes, steps, "n.flags @> array['powered_down']", "node.powering_up").await
    }

    /// Tells those of `nodes` to reboot that are to and hold nothing. Returns them.
    pub async fn issue_reboots(&self, epoch: Epoch, nodes: &[String]) -> Result<Vec<String>, StoreError> {
        let is_due = "n.flags @> array['reboot'] and not n.flags @> array['reboot_issued'] and not exists (select from assignments a where a.node = n.name)";
        self.move_nodes(epoch, nodes, "flags = array_append(flags, 'reboot_issued')", is_due, "node.reboot_issued").await
    }

    async fn move_nodes(
        &self,
        epoch: Epoch,
        nodes: &[String],
        set: &str,
        is_due: &str,
        kind: &'static str,
    ) -> Result<Vec<String>, StoreError> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = self.begin_fenced(epoch).await?;
        let sql = format!(
            "update nodes n set {set}, power_since = now(), version = version + 1 where n.name = any($1) and {is_due} returning n.name"
        );
        let mut moved: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(nodes).fetch_all(&mut *tx).await?;
        moved.sort();
        settle::bump_nodes(&mut tx, &mut moved.clone()).await?;
        for node in &moved {
            crate::nodes::tell(&mut tx, kind, node, serde_json::json!({})).await?;
        }
        tx.commit().await?;
        self.wake.notify_nodes(moved.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
        Ok(moved)
    }

    /// Asks for a node to be powered down once it is idle (`up` false), or up. `Conflict` if it is already, or on its way.
    pub async fn ask_power(&self, name: &str, up: bool, by: &str) -> Result<(), StoreError> {
        let is_off = "flags && array['powered_down', 'powering_down']";
        let (set, is_due, kind) = match up {
            // An order to go down that nobody has begun to follow is taken back.
            true => (
                "case when flags @> array['power_down'] then array_remove(flags, 'power_down') else array_append(flags, 'power_up') end",
                format!("({is_off} and not flags @> array['power_up'] or flags @> array['power_down'])"),
                "node.power_up_asked",
            ),
            false => {
                ("array_append(flags, 'power_down')", format!("not {is_off} and not flags @> array['power_down']"), "node.power_down_asked")
            }
        };
        let sql = format!("update nodes set flags = {set}, version = version + 1 where name = $1 and {is_due}");
        let conflict = || StoreError::Conflict {
            code: "wrong_state",
            detail: format!("node {name} is {} already, or on its way", if up { "up" } else { "powered down" }),
            help: "berth nodes shows its state".to_owned(),
        };
        self.ask(name, sqlx::query(sqlx::AssertSqlSafe(sql)).bind(name), kind, by, conflict).await
    }

    /// Asks for a reboot once the node is idle; `asap` drains it for that. `Conflict` if one was asked for already, or the node is not up.
    pub async fn ask_reboot(&self, name: &str, reboot: &NodeReboot, by: &str) -> Result<(), StoreError> {
        let query = sqlx::query(
            // One that was drained before stays so afterwards.
            "update nodes set flags = array_append(case when $3 and not flags @> array['drain'] then array_append(flags, 'drain') else flags end, 'reboot'),
                 reboot = $2 || jsonb_build_object('asap', $3 and not flags @> array['drain']),
                 drain_reason = case when $3 and not flags @> array['drain'] then $4 else drain_reason end,
                 reason = case when $3 and not flags @> array['drain'] then $4 else reason end, version = version + 1
             where name = $1 and not flags && array['reboot', 'powered_down', 'powering_down', 'powering_up']",
        )
        .bind(name)
        .bind(Json(reboot))
        .bind(reboot.asap)
        .bind(&reboot.reason);
        let conflict = || StoreError::Conflict {
            code: "wrong_state",
            detail: format!("node {name} is to be rebooted already, or is not up"),
            help: "berth nodes shows its state".to_owned(),
        };
        self.ask(name, query, "node.reboot_asked", by, conflict).await
    }

    async fn ask(
        &self,
        name: &str,
        query: sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments>,
        kind: &'static str,
        by: &str,
        conflict: impl FnOnce() -> StoreError,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let is_known: bool = sqlx::query_scalar("select exists (select from nodes where name = $1)").bind(name).fetch_one(&mut *tx).await?;
        if !is_known {
            return Err(StoreError::NotFound(format!("node {name}")));
        }
        if query.execute(&mut *tx).await?.rows_affected() == 0 {
            return Err(conflict());
        }
        settle::bump_nodes(&mut tx, &mut vec![name.to_owned()]).await?;
        crate::nodes::tell(&mut tx, kind, name, serde_json::json!({ "by": by })).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Node(name.to_owned()));
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Writes down a node that does not exist yet: it is powered down, and is powered up when a job needs it. `Conflict` if it is known.
    pub async fn declare_node(
        &self,
        name: &str,
        inventory: &berth_model::resources::Inventory,
        features: &[String],
        weight: u32,
        by: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let made = sqlx::query(
            "insert into nodes (name, inventory, features, weight, provider, flags, power_since) values ($1, $2, $3, $4, 'cloud', '{powered_down}', now())
             on conflict do nothing",
        )
        .bind(name)
        .bind(Json(inventory))
        .bind(features)
        .bind(weight as i32)
        .execute(&mut *tx)
        .await?;
        if made.rows_affected() == 0 {
            return Err(StoreError::Conflict {
                code: "already_exists",
                detail: format!("there is a node {name}"),
                help: "choose another name, or change that node".to_owned(),
            });
        }
        crate::nodes::tell(&mut tx, "node.declared", name, serde_json::json!({ "by": by })).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }
}

/// Ends an attempt that was told to stop while it waited for nodes to power up: none of its nodes was told of it yet. The caller holds the
/// job's row.
pub(crate) async fn drop_waiting(tx: &mut PgConnection, job: i64, attempt: i32) -> Result<(), StoreError> {
    let dropped = sqlx::query(
        "delete from assignments s using attempts a where a.job_id = $1 and a.attempt = $2 and s.job_id = $1 and s.attempt = $2
             and a.started_at is null and exists (select from nodes n where n.name = any(a.nodes)
                 and n.flags && array['powering_down', 'powered_down', 'powering_up'])",
    )
    .bind(job)
    .bind(attempt)
    .execute(&mut *tx)
    .await?;
    if dropped.rows_affected() > 0 {
        settle::settle_attempts(tx, &[(job, attempt)]).await?;
    }
    Ok(())
}

/// A node has registered: it is up. `is_new_boot`: its machine has been started since it last did.
pub(crate) async fn arrived(tx: &mut PgConnection, node: &str, is_new_boot: bool) -> Result<(), StoreError> {
    sqlx::query(
        "update nodes set power_since = null, flags = array_remove(array_remove(array_remove(flags, 'powering_up'), 'powered_down'), 'power_up')
         where name = $1 and flags && array['powering_up', 'powered_down']",
    )
    .bind(node)
    .execute(&mut *tx)
    .await?;
    if is_new_boot {
        sqlx::query(
            "update nodes set power_since = null, reboot = null,
                 is_down = is_down or coalesce((reboot->>'stays_down')::boolean, false),
                 reason = case when (reboot->>'stays_down')::boolean then reboot->>'reason' when (reboot->>'asap')::boolean then null else reason end,
                 drain_reason = case when (reboot->>'asap')::boolean then null else drain_reason end,
                 flags = array_remove(array_remove(case when (reboot->>'asap')::boolean then array_remove(flags, 'drain') else flags end,
                     'reboot'), 'reboot_issued')
             where name = $1 and flags @> array['reboot_issued']",
        )
        .bind(node)
        .execute(&mut *tx)
        .await?;
    }
    // What waited for it is now told to all its nodes.
    let mut nodes: Vec<String> = sqlx::query_scalar(
        "select distinct o.node from assignments a join assignments o on o.job_id = a.job_id and o.attempt = a.attempt where a.node = $1 order by 1",
    )
    .bind(node)
    .fetch_all(&mut *tx)
    .await?;
    settle::bump_nodes(tx, &mut nodes).await
}
