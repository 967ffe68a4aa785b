//! Appending to and reading the `events` table as a job's history.

use serde::Serialize;
use sqlx::postgres::PgConnection;

use crate::db::At;
use crate::{Db, StoreError};

/// An event to append. `kind` is a stable identifier: `job.submitted`, `node.drained`, …
#[derive(Clone, Debug, Default)]
pub(crate) struct NewEvent {
    pub kind: &'static str,
    pub tenant: Option<String>,
    pub job_id: Option<i64>,
    pub attempt: Option<i32>,
    pub node: Option<String>,
    pub detail: Option<serde_json::Value>,
}

pub(crate) async fn append(tx: &mut PgConnection, events: &[NewEvent]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into events (kind, tenant, job_id, attempt, node, detail)
         select * from unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[], $6::json[])",
    )
    .bind(events.iter().map(|e| e.kind).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.tenant.clone()).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.job_id).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.attempt).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.node.clone()).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.detail.clone()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// An event as shown to users.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct EventRow {
    pub seq: i64,
    pub at: At,
    pub kind: String,
    pub attempt: Option<i32>,
    pub node: Option<String>,
    pub detail: Option<serde_json::Value>,
}

impl Db {
    /// A job's events after `after` (an event's `seq`), oldest first, those of its transactions that are surely complete.
    pub async fn job_events(&self, job: u64, after: i64, limit: i64) -> Result<Vec<EventRow>, StoreError> {
        Ok(sqlx::query_as(
            "select seq, at, kind, attempt, node, detail from events
             where job_id = $1 and seq > $2 and xid < pg_snapshot_xmin(pg_current_snapshot())
             order by seq limit $3",
        )
        .bind(job as i64)
        .bind(after)
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }
}
