//! Priorities of pending jobs, factor by factor, as the last plan saw them.

use axum::Json;
use axum::extract::State;
use berth_model::verdict::PriorityFactor;
use berth_store::jobs::priorities::{PriorityFilter, PriorityRow};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::Params;
use crate::paging::{self, Page};
use crate::problem::{Answer, Problem};

/// A pending job's priority.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct JobPriority {
    pub job_id: u64,
    pub tenant: String,
    pub account: String,
    pub user: String,
    pub partition: String,
    pub qos: String,
    pub total: i64,
    /// Its place among all pending jobs; 1 is first.
    pub rank: u32,
    pub factors: Vec<PriorityFactor>,
    pub as_of: Timestamp,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    user: Option<String>,
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    account: Option<String>,
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    partition: Option<String>,
    /// Items a page, 1 to 1000; 100 if absent.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    #[param(minimum = 1, maximum = 1000)]
    page_size: Option<u32>,
    /// `next_page_token` of the page before.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    page_token: Option<String>,
    /// The tenant meant; only platform admins name another than their own.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    tenant: Option<String>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Priorities of pending jobs, the highest first.
#[utoipa::path(get, path = "/v1/priorities", operation_id = "priorities_list", tag = "priorities", params(Which),
    responses((status = 200, body = Page<JobPriority>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<Json<Page<JobPriority>>> {
    let filter =
        PriorityFilter { tenant: caller.tenant_to_read(q.tenant.as_deref())?, user: q.user, account: q.account, partition: q.partition };
    let size = paging::page_size(q.page_size)?;
    let after: Option<(i64, i64)> = q.page_token.map(|t| app.page_tokens.read(&t)).transpose()?;
    let mut rows = app.db.priorities(&filter, after, size + 1).await?;
    let is_partial = rows.len() as i64 > size;
    rows.truncate(size as usize);
    let next = rows.last().filter(|_| is_partial).map(|last| app.page_tokens.make(&(last.priority, last.job_id)));
    Ok(Json(Page { items: rows.into_iter().map(show).collect(), next_page_token: next }))
}

fn show(row: PriorityRow) -> JobPriority {
    let priority = row.verdict.0.priority;
    JobPriority {
        job_id: row.job_id as u64,
        tenant: row.tenant,
        account: row.account,
        user: row.user_name,
        partition: row.partition,
        qos: row.qos,
        total: priority.total,
        rank: priority.rank,
        factors: priority.factors,
        as_of: row.as_of.0,
    }
}
