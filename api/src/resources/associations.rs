//! Associations: which user may charge which account, and who manages it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Name;
use berth_model::association::Terms;
use berth_store::StoreError;
use berth_store::entity::association;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::terms;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Tagged};
use crate::paging::Page;
use crate::patch::merge;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Association {
    pub tenant: String,
    pub account: String,
    pub user: String,
    /// May act on all jobs of the account.
    pub is_manager: bool,
    /// The user's share of the account's, and limits.
    pub terms: Terms,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutAssociation {
    pub account: Name,
    pub user: Name,
    #[serde(default)]
    pub is_manager: bool,
    #[serde(default)]
    pub terms: Terms,
}

/// The fields that a merge patch may change.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changeable {
    #[serde(default)]
    is_manager: bool,
    #[serde(default)]
    terms: Terms,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    account: Option<String>,
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    user: Option<String>,
    /// The tenant meant; only platform admins name another than their own.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    tenant: Option<String>,
}

fn show(row: association::Model) -> Association {
    let terms = terms::read(row.terms);
    Association { tenant: row.tenant, account: row.account, user: row.user_name, is_manager: row.is_manager, terms }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, put, update, delete))
}

/// List associations, of one account or user if named.
#[utoipa::path(get, path = "/v1/associations", operation_id = "associations_list", tag = "associations", params(Which),
    responses((status = 200, body = Page<Association>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<Json<Page<Association>>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let rows = app.db.associations(&tenant, q.account.as_deref(), q.user.as_deref()).await?;
    Ok(Json(Page { items: rows.into_iter().map(show).collect(), next_page_token: None }))
}

/// Let a user charge an account, with a share and limits. Tenant admins, and managers for their accounts.
#[utoipa::path(put, path = "/v1/associations", operation_id = "associations_put", tag = "associations", params(super::tenants::TenantParam), request_body = PutAssociation,
    responses((status = 200, body = Association), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Params(q): Params<super::tenants::TenantParam>,
    IfMatch(version): IfMatch,
    Body(body): Body<PutAssociation>,
) -> Answer<Tagged<Association>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    require_manager(&app, &caller, &tenant, body.account.as_str()).await?;
    let known = match app.db.association(&tenant, body.account.as_str(), body.user.as_str()).await {
        Ok(row) => terms::read(row.terms),
        Err(StoreError::NotFound(_)) => Terms::default(),
        Err(error) => return Err(error.into()),
    };
    terms::check(&caller, &known, &body.terms)?;
    let (account, user) = (body.account.as_str(), body.user.as_str());
    let row = app.db.put_association(&tenant, account, user, version, body.is_manager, &body.terms).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Change an association: the user's share and limits, or whether it manages the account (a merge patch: `null` takes back).
#[utoipa::path(patch, path = "/v1/associations", operation_id = "associations_update", tag = "associations", params(Which), request_body = Object,
    responses((status = 200, body = Association), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Params(q): Params<Which>,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Association>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let (account, user) = (required(q.account, "account")?, required(q.user, "user")?);
    require_manager(&app, &caller, &tenant, &account).await?;
    let row = app.db.association(&tenant, &account, &user).await?;
    let known = terms::read(row.terms);
    let changed = merge(&Changeable { is_manager: row.is_manager, terms: known.clone() }, patch)?;
    terms::check(&caller, &known, &changed.terms)?;
    let version = version.or(Some(row.version));
    let row = app.db.put_association(&tenant, &account, &user, version, changed.is_manager, &changed.terms).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Take the right back.
#[utoipa::path(delete, path = "/v1/associations", operation_id = "associations_delete", tag = "associations", params(Which),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<StatusCode> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let (account, user) = (required(q.account, "account")?, required(q.user, "user")?);
    require_manager(&app, &caller, &tenant, &account).await?;
    app.db.delete_association(&tenant, &account, &user).await?;
    app.catalog.forget_members();
    Ok(StatusCode::NO_CONTENT)
}

fn required(value: Option<String>, field: &str) -> Answer<String> {
    value.ok_or_else(|| {
        berth_model::Fault::new("parameter_required", field, "the parameter is missing", "name both account and user").into()
    })
}

async fn require_manager(app: &App, caller: &Caller, tenant: &str, account: &str) -> Answer<()> {
    caller.require_scope("accounts:write")?;
    if caller.is_tenant_admin() {
        return Ok(());
    }
    let member = app.catalog.membership(tenant, caller.subject.as_str()).await?;
    if member.accounts.iter().any(|(name, is_manager)| name == account && *is_manager) {
        Ok(())
    } else {
        Err(Problem::forbidden(format!("this needs the role tenant_admin, or to manage the account {account}")))
    }
}
