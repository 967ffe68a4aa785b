//! Users of a tenant. A user need not be written down to submit: one that is not charges the account `default`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Name;
use berth_store::entity::user;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tenants::TenantParam;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Segment, Tagged};
use crate::paging::{self, Page, PageParams};
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct User {
    pub tenant: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_account: Option<String>,
    /// A suspended user cannot submit.
    pub is_suspended: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutUser {
    #[serde(default)]
    pub default_account: Option<Name>,
    #[serde(default)]
    pub is_suspended: bool,
}

fn show(row: user::Model) -> User {
    User { tenant: row.tenant, name: row.name, default_account: row.default_account, is_suspended: row.is_suspended }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, delete))
}

/// List the tenant's users.
#[utoipa::path(get, path = "/v1/users", operation_id = "users_list", tag = "users", params(PageParams),
    responses((status = 200, body = Page<User>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(page): Params<PageParams>) -> Answer<Json<Page<User>>> {
    let tenant = caller.tenant_to_use(page.tenant.as_deref())?;
    let size = paging::page_size(page.page_size)?;
    let after: String = page.page_token.map(|t| app.page_tokens.read(&t)).transpose()?.unwrap_or_default();
    let rows = app.db.users(&tenant, &after, size as u64 + 1).await?;
    Ok(Json(paging::cut(rows, size, &app.page_tokens, |r| r.name.clone(), show)))
}

/// Get a user.
#[utoipa::path(get, path = "/v1/users/{user}", operation_id = "users_get", tag = "users", params(("user" = String, Path), TenantParam),
    responses((status = 200, body = User), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>, Params(q): Params<TenantParam>) -> Answer<Tagged<User>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let row = app.db.user(&tenant, name.as_str()).await?;
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Create or replace a user.
#[utoipa::path(put, path = "/v1/users/{user}", operation_id = "users_put", tag = "users", params(("user" = String, Path), TenantParam), request_body = PutUser,
    responses((status = 200, body = User), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
    IfMatch(version): IfMatch,
    Body(body): Body<PutUser>,
) -> Answer<Tagged<User>> {
    caller.require_tenant_admin("users:write")?;
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    app.db.tenant(&tenant).await?;
    let row = app.db.put_user(&tenant, name.as_str(), version, body.default_account.map(Name::into_string), body.is_suspended).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Delete a user with its associations. Its jobs stay.
#[utoipa::path(delete, path = "/v1/users/{user}", operation_id = "users_delete", tag = "users", params(("user" = String, Path), TenantParam),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
) -> Answer<StatusCode> {
    caller.require_tenant_admin("users:write")?;
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    app.db.delete_user(&tenant, name.as_str()).await?;
    app.catalog.forget_members();
    Ok(StatusCode::NO_CONTENT)
}
