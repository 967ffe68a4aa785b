//! Priorities of pending jobs, as the last plan wrote them.

use berth_model::verdict::JobVerdict;
use sqlx::types::Json;

use crate::db::At;
use crate::{Db, StoreError};

/// Whose; nothing means any.
#[derive(Clone, Debug, Default)]
pub struct PriorityFilter {
    pub tenant: Option<String>,
    pub user: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
}

#[derive(Debug, sqlx::FromRow)]
pub struct PriorityRow {
    pub job_id: i64,
    pub tenant: String,
    pub account: String,
    pub user_name: String,
    pub partition: String,
    pub qos: String,
    pub priority: i64,
    pub verdict: Json<JobVerdict>,
    pub as_of: At,
}

impl Db {
    /// The highest first, of equal ones the older; after the (priority, job) given.
    pub async fn priorities(&self, filter: &PriorityFilter, after: Option<(i64, i64)>, limit: i64) -> Result<Vec<PriorityRow>, StoreError> {
        Ok(sqlx::query_as(
            "select j.job_id, j.tenant, j.account, j.user_name, j.partition, j.qos, v.priority, v.verdict, v.as_of
             from jobs j join job_verdicts v on v.job_id = j.job_id
             where j.state = 'pending' and ($1::text is null or j.tenant = $1) and ($2::text is null or j.user_name = $2)
                 and ($3::text is null or j.account = $3) and ($4::text is null or j.partition = $4)
                 and ($5::bigint is null or (-v.priority, j.job_id) > (-$5, $6))
             order by v.priority desc, j.job_id limit $7",
        )
        .bind(&filter.tenant)
        .bind(&filter.user)
        .bind(&filter.account)
        .bind(&filter.partition)
        .bind(after.map(|(priority, _)| priority))
        .bind(after.map_or(0, |(_, job)| job))
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }
}
