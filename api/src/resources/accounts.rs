//! Accounts: a tenant's tree of who pays.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Name;
use berth_model::association::Terms;
use berth_store::StoreError;
use berth_store::entity::account;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tenants::TenantParam;
use super::tenants::check_text;
use super::terms;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Segment, Tagged};
use crate::paging::{self, Page, PageParams};
use crate::patch::merge;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    pub tenant: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its share of the parent's, and limits.
    pub terms: Terms,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutAccount {
    #[serde(default)]
    pub parent: Option<Name>,
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    #[serde(default)]
    pub terms: Terms,
}

fn show(row: account::Model) -> Account {
    let terms = terms::read(row.terms);
    Account { tenant: row.tenant, name: row.name, parent: row.parent, description: row.description, terms }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, update, delete))
}

/// List the tenant's accounts.
#[utoipa::path(get, path = "/v1/accounts", operation_id = "accounts_list", tag = "accounts", params(PageParams),
    responses((status = 200, body = Page<Account>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(page): Params<PageParams>) -> Answer<Json<Page<Account>>> {
    let tenant = caller.tenant_to_use(page.tenant.as_deref())?;
    let size = paging::page_size(page.page_size)?;
    let after: String = page.page_token.map(|t| app.page_tokens.read(&t)).transpose()?.unwrap_or_default();
    let rows = app.db.accounts(&tenant, &after, size as u64 + 1).await?;
    Ok(Json(paging::cut(rows, size, &app.page_tokens, |r| r.name.clone(), show)))
}

/// Get an account.
#[utoipa::path(get, path = "/v1/accounts/{account}", operation_id = "accounts_get", tag = "accounts", params(("account" = String, Path), TenantParam),
    responses((status = 200, body = Account), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
) -> Answer<Tagged<Account>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let row = app.db.account(&tenant, name.as_str()).await?;
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Create or replace an account.
#[utoipa::path(put, path = "/v1/accounts/{account}", operation_id = "accounts_put", tag = "accounts", params(("account" = String, Path), TenantParam), request_body = PutAccount,
    responses((status = 200, body = Account), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
    IfMatch(version): IfMatch,
    Body(body): Body<PutAccount>,
) -> Answer<Tagged<Account>> {
    caller.require_tenant_admin("accounts:write")?;
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    app.db.tenant(&tenant).await?;
    let known = match app.db.account(&tenant, name.as_str()).await {
        Ok(row) => terms::read(row.terms),
        Err(StoreError::NotFound(_)) => Terms::default(),
        Err(error) => return Err(error.into()),
    };
    store(&app, &caller, &tenant, &name, version, &known, body).await
}

/// Change an account: its parent, its description, its share, its limits (a merge patch: `null` takes back).
#[utoipa::path(patch, path = "/v1/accounts/{account}", operation_id = "accounts_update", tag = "accounts", params(("account" = String, Path), TenantParam), request_body = Object,
    responses((status = 200, body = Account), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Account>> {
    caller.require_tenant_admin("accounts:write")?;
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let row = app.db.account(&tenant, name.as_str()).await?;
    let known = terms::read(row.terms);
    let parent = row.parent.map(|parent| parent.parse()).transpose()?;
    let current = PutAccount { parent, description: row.description, terms: known.clone() };
    let body = merge(&current, patch)?;
    store(&app, &caller, &tenant, &name, version.or(Some(row.version)), &known, body).await
}

async fn store(
    app: &App,
    caller: &Caller,
    tenant: &str,
    name: &Name,
    version: Option<i64>,
    known: &Terms,
    body: PutAccount,
) -> Answer<Tagged<Account>> {
    check_text("description", body.description.as_deref(), 1000)?;
    terms::check(caller, known, &body.terms)?;
    let parent = body.parent.map(Name::into_string);
    let row = app.db.put_account(tenant, name.as_str(), version, parent, body.description, &body.terms).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Delete an account that was never used.
#[utoipa::path(delete, path = "/v1/accounts/{account}", operation_id = "accounts_delete", tag = "accounts", params(("account" = String, Path), TenantParam),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    Params(q): Params<TenantParam>,
) -> Answer<StatusCode> {
    caller.require_tenant_admin("accounts:write")?;
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    app.db.delete_account(&tenant, name.as_str()).await?;
    app.catalog.forget_members();
    Ok(StatusCode::NO_CONTENT)
}
