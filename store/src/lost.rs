//! Nodes that are given up: silent ones, those that did not come up, and those that an operator sets down.

use berth_model::step::StopReason;
use sqlx::postgres::PgConnection;

use crate::events::{self, NewEvent};
use crate::lease::Epoch;
use crate::wake::Topic;
use crate::{Db, StoreError, settle};

/// Attempts by job and number.
type Held = Vec<(i64, i32)>;

impl Db {
    /// Marks nodes not heard of for `silence_ms` as down, and ends what ran there: those nodes have killed it themselves by now. The other
    /// nodes of the attempts are told to stop. Returns the nodes lost. Of nodes that are powering up or down, or rebooting, nothing is
    /// expected to be heard.
    pub async fn lose_silent_nodes(&self, epoch: Epoch, silence_ms: i64) -> Result<Vec<String>, StoreError> {
        let silent: Vec<String> = sqlx::query_scalar(
            "select n.name from nodes n join node_contacts c on c.node = n.name
             where (not n.is_down or exists (select from assignments a where a.node = n.name))
                 and not n.flags && array['powering_down', 'powered_down', 'powering_up', 'reboot_issued']
                 and c.last_seen < now() - $1 * interval '1 millisecond' order by 1",
        )
        .bind(silence_ms)
        .fetch_all(&self.pool)
        .await?;
        let mut lost = Vec::new();
        for node in silent {
            let mut tx = self.begin_fenced(epoch).await?;
            let held = lock(&mut tx, &node).await?;
            // The contact's row is locked: a heartbeat that is just arriving either counts here or waits until the node is down.
            let still_silent: Option<bool> = sqlx::query_scalar(
                "select last_seen < now() - $2 * interval '1 millisecond' from node_contacts where node = $1 for update",
            )
            .bind(&node)
            .bind(silence_ms)
            .fetch_optional(&mut *tx)
            .await?;
            if still_silent != Some(true) {
                continue;
            }
            let wake = give_up(&mut tx, &node, held, "not responding").await?;
            tx.commit().await?;
            self.wake_for(&wake);
            lost.push(node);
        }
        Ok(lost)
    }

    /// Gives up nodes that are in motion (of `flag`) for longer than `timeout_ms`. Returns them.
    pub async fn lose_late_nodes(&self, epoch: Epoch, flag: &str, timeout_ms: i64, reason: &str) -> Result<Vec<String>, StoreError> {
        let is_late = "is_down is false and flags @> array[$1] and power_since < now() - $2 * interval '1 millisecond'";
        let late: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select name from nodes where {is_late} order by 1")))
            .bind(flag)
            .bind(timeout_ms)
            .fetch_all(&self.pool)
            .await?;
        let mut lost = Vec::new();
        for node in late {
            let mut tx = self.begin_fenced(epoch).await?;
            let held = lock(&mut tx, &node).await?;
            let still_late: Option<bool> =
                sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select {is_late} from nodes where name = $3 for update")))
                    .bind(flag)
                    .bind(timeout_ms)
                    .bind(&node)
                    .fetch_optional(&mut *tx)
                    .await?;
            if still_late != Some(true) {
                continue;
            }
            sqlx::query("update nodes set flags = array_remove(array_remove(flags, $2), 'reboot'), reboot = null where name = $1")
                .bind(&node)
                .bind(flag)
                .execute(&mut *tx)
                .await?;
            let wake = give_up(&mut tx, &node, held, reason).await?;
            tx.commit().await?;
            self.wake_for(&wake);
            lost.push(node);
        }
        Ok(lost)
    }

    /// Sets a node down by hand: what runs there is ended and requeued where its jobs allow, and nothing new starts until it is resumed.
    pub async fn down_node(&self, name: &str, reason: &str, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let held = lock(&mut tx, name).await?;
        let found =
            sqlx::query("update nodes set is_down = true, reason = $2, reason_is_health = false, version = version + 1 where name = $1")
                .bind(name)
                .bind(reason)
                .execute(&mut *tx)
                .await?;
        if found.rows_affected() == 0 {
            return Err(StoreError::NotFound(format!("node {name}")));
        }
        let mut wake = vec![name.to_owned()];
        // Its worker, if there is one, ends them and says so; if there is none, its silence is noticed.
        for (job, attempt) in held {
            if !is_kept(&mut tx, job, attempt, name).await? {
                continue;
            }
            wake.extend(settle::stop_attempt(&mut tx, job, attempt, StopReason::NodeFail, 0).await?);
            sqlx::query("update attempts set failure = coalesce(failure, $3) where job_id = $1 and attempt = $2")
                .bind(job)
                .bind(attempt)
                .bind(format!("node {name} was set down: {reason}"))
                .execute(&mut *tx)
                .await?;
        }
        crate::nodes::tell(&mut tx, "node.down", name, serde_json::json!({ "by": by, "reason": reason })).await?;
        tx.commit().await?;
        self.wake_for(&wake);
        Ok(())
    }

    fn wake_for(&self, nodes: &[String]) {
        self.wake.notify_nodes(nodes.iter().map(String::as_str));
        self.wake.notify(Topic::Events);
    }
}

/// A node is in service again: jobs that avoided it, since it had failed them, may be placed there again. Those that were requeued ahead of
/// everything keep away from it.
pub(crate) async fn forgive(tx: &mut PgConnection, node: &str) -> Result<(), StoreError> {
    let jobs: Vec<i64> = sqlx::query_scalar(
        "update jobs set failed_nodes = array_remove(failed_nodes, $1), version = version + 1
         where failed_nodes <> '{}' and failed_nodes @> array[$1] and end_time is null and not is_expedited returning job_id",
    )
    .bind(node)
    .fetch_all(&mut *tx)
    .await?;
    let news = jobs.into_iter().map(|job| NewEvent {
        kind: "job.node_returned",
        job_id: Some(job),
        node: Some(node.to_owned()),
        ..NewEvent::default()
    });
    events::append(tx, &news.collect::<Vec<_>>()).await
}

/// Locks the jobs that hold something on the node; returns their attempts.
async fn lock(tx: &mut PgConnection, node: &str) -> Result<Held, StoreError> {
    let held: Held =
        sqlx::query_as("select job_id, attempt from assignments where node = $1 order by job_id").bind(node).fetch_all(&mut *tx).await?;
    settle::lock_jobs(tx, &held.iter().map(|(job, _)| *job).collect::<Vec<_>>()).await?;
    Ok(held)
}

/// The attempt has not given the node back.
async fn is_kept(tx: &mut PgConnection, job: i64, attempt: i32, node: &str) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar("select exists (select from attempts where job_id = $1 and attempt = $2 and nodes @> array[$3])")
        .bind(job)
        .bind(attempt)
        .bind(node)
        .fetch_one(tx)
        .await?)
}

/// Marks a node of which nothing is heard as down, and ends what it held. Returns the nodes to wake.
async fn give_up(tx: &mut PgConnection, node: &str, held: Held, reason: &str) -> Result<Vec<String>, StoreError> {
    // What an operator has set down stays so when it is heard again.
    sqlx::query(
        "update nodes set reason = case when is_down then reason else coalesce(drain_reason || '; ', '') || $2 end, reason_is_health = case when is_down then reason_is_health else true end,
             is_down = true, version = version + 1 where name = $1",
    )
    .bind(node)
    .bind(reason)
    .execute(&mut *tx)
    .await?;
    // What ended while the locks were waited for is no concern any more.
    let held: Held = sqlx::query_as("select job_id, attempt from assignments where node = $1 and job_id = any($2) order by job_id")
        .bind(node)
        .bind(held.iter().map(|(job, _)| *job).collect::<Vec<_>>())
        .fetch_all(&mut *tx)
        .await?;
    let mut wake = Vec::new();
    for (job, attempt) in held {
        let is_kept = is_kept(tx, job, attempt, node).await?;
        if is_kept {
            wake.extend(settle::stop_attempt(tx, job, attempt, StopReason::NodeFail, 0).await?);
        }
        sqlx::query("delete from assignments where node = $1 and job_id = $2 and attempt = $3")
            .bind(node)
            .bind(job)
            .bind(attempt)
            .execute(&mut *tx)
            .await?;
        if !is_kept {
            settle::settle_attempts(tx, &[(job, attempt)]).await?;
            let event = NewEvent { kind: "job.node_released", job_id: Some(job), node: Some(node.to_owned()), ..NewEvent::default() };
            events::append(tx, &[event]).await?;
            continue;
        }
        sqlx::query("update jobs set failed_nodes = array_append(failed_nodes, $2) where job_id = $1 and not failed_nodes @> array[$2]")
            .bind(job)
            .bind(node)
            .execute(&mut *tx)
            .await?;
        sqlx::query(
            "update attempts set failure = coalesce(failure, 'node ' || $3 || case when $4 = 'not responding' then ' does not respond' else ': ' || $4 end)
             where job_id = $1 and attempt = $2",
        )
        .bind(job)
        .bind(attempt)
        .bind(node)
        .bind(reason)
        .execute(&mut *tx)
        .await?;
        settle::settle_attempts(tx, &[(job, attempt)]).await?;
    }
    events::append(tx, &[NewEvent { kind: "node.down", node: Some(node.to_owned()), ..NewEvent::default() }]).await?;
    Ok(wake)
}
