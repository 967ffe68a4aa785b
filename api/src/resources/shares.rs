//! The tree of shares: who is given what, and what was used of it.

use axum::Json;
use axum::extract::State;
use berth_model::association::Share;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::Params;
use crate::problem::{Answer, Problem};

/// The tree, parents before their children.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Shares {
    pub items: Vec<Share>,
    /// When the scheduler wrote the oldest of it. Parts that hardly move are not written again. Absent: it has written nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Only this account and its users.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    account: Option<String>,
    /// Only this user's places.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    user: Option<String>,
    /// The tenant meant; only platform admins name another than their own.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    tenant: Option<String>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The tree of shares with usage and fair-share factors; of the caller's tenant, or of all for administrators of the platform.
#[utoipa::path(get, path = "/v1/shares", operation_id = "shares_list", tag = "shares", params(Which),
    responses((status = 200, body = Shares), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<Json<Shares>> {
    let tenant = caller.tenant_to_read(q.tenant.as_deref())?;
    let trees = app.db.shares(tenant.as_deref()).await?;
    let as_of = trees.iter().map(|(_, at)| *at).min();
    let is = |name: &Option<berth_model::Name>, wanted: &str| name.as_ref().is_some_and(|name| name.as_str() == wanted);
    let is_meant = |line: &Share| {
        q.account.as_deref().is_none_or(|account| is(&line.account, account)) && q.user.as_deref().is_none_or(|user| is(&line.user, user))
    };
    let items = trees.into_iter().flat_map(|(lines, _)| lines).filter(is_meant).collect();
    Ok(Json(Shares { items, as_of }))
}
