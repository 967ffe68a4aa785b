//! Simulations as stored: what was asked, how far it is, what came of it.

use serde_json::Value;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::At;
use crate::{Db, StoreError};

#[derive(Clone, Debug, FromRow)]
pub struct SimulationRow {
    pub simulation_id: i64,
    pub requested_by: String,
    pub request: Json<Value>,
    /// `running`, `done` or `failed`.
    pub state: String,
    pub done: i64,
    pub total: i64,
    pub result: Option<Json<Value>>,
    pub failure: Option<String>,
    pub created_at: At,
    pub ended_at: Option<At>,
}

impl Db {
    /// Notes that a simulation of `total` replayed jobs begins, and returns its number.
    pub async fn begin_simulation(&self, requested_by: &str, request: &Value, total: u64) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("insert into simulations (requested_by, request, total) values ($1, $2, $3) returning simulation_id")
            .bind(requested_by)
            .bind(Json(request))
            .bind(total as i64)
            .fetch_one(&self.pool)
            .await?)
    }

    /// Notes how far it is.
    pub async fn touch_simulation(&self, simulation: i64, done: u64) -> Result<(), StoreError> {
        sqlx::query("update simulations set done = $2, touched_at = now() where simulation_id = $1 and state = 'running'")
            .bind(simulation)
            .bind(done as i64)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Notes what came of it: a result, or why there is none.
    pub async fn end_simulation(&self, simulation: i64, outcome: Result<&Value, &str>) -> Result<(), StoreError> {
        sqlx::query(
            "update simulations set state = case when $3::text is null then 'done' else 'failed' end, result = $2, failure = $3,
                 done = case when $3::text is null then total else done end, touched_at = now(), ended_at = now()
             where simulation_id = $1 and state = 'running'",
        )
        .bind(simulation)
        .bind(outcome.ok().map(Json))
        .bind(outcome.err())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// `NotFound` if there is none. One that has not moved for a minute was left by a replica that stopped: it has failed.
    pub async fn simulation(&self, simulation: i64) -> Result<SimulationRow, StoreError> {
        let found = sqlx::query_as(
            "select simulation_id, requested_by, request, done, total, result, created_at, ended_at,
                 case when is_lost then 'failed' else state end as state,
                 case when is_lost then 'the replica that ran it has stopped; ask again' else failure end as failure
             from (select *, state = 'running' and touched_at < now() - interval '1 minute' as is_lost from simulations) s
             where simulation_id = $1",
        )
        .bind(simulation)
        .fetch_optional(&self.pool)
        .await?;
        found.ok_or_else(|| StoreError::NotFound(format!("simulation {simulation}")))
    }
}
