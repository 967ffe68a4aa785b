//! Associations: which user may charge which account, and who manages it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Name;
use berth_store::entity::association;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, Params};
use crate::paging::Page;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Association {
    pub tenant: String,
    pub account: String,
    pub user: String,
    /// May act on all jobs of the account.
    pub is_manager: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutAssociation {
    pub account: Name,
    pub user: Name,
    #[serde(default)]
    pub is_manager: bool,
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
    Association { tenant: row.tenant, account: row.account, user: row.user_name, is_manager: row.is_manager }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, put, delete))
}

/// List associations, of one account or user if named.
#[utoipa::path(get, path = "/v1/associations", operation_id = "associations_list", tag = "associations", params(Which),
    responses((status = 200, body = Page<Association>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<Json<Page<Association>>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let rows = app.db.associations(&tenant, q.account.as_deref(), q.user.as_deref()).await?;
    Ok(Json(Page { items: rows.into_iter().map(show).collect(), next_page_token: None }))
}

/// Let a user charge an account. Tenant admins, and managers for their accounts.
#[utoipa::path(put, path = "/v1/associations", operation_id = "associations_put", tag = "associations", params(super::tenants::TenantParam), request_body = PutAssociation,
    responses((status = 200, body = Association), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Params(q): Params<super::tenants::TenantParam>,
    Body(body): Body<PutAssociation>,
) -> Answer<Json<Association>> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    require_manager(&app, &caller, &tenant, body.account.as_str()).await?;
    let row = app.db.put_association(&tenant, body.account.as_str(), body.user.as_str(), body.is_manager).await?;
    app.catalog.forget_members();
    Ok(Json(show(row)))
}

/// Take the right back.
#[utoipa::path(delete, path = "/v1/associations", operation_id = "associations_delete", tag = "associations", params(Which),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Params(q): Params<Which>) -> Answer<StatusCode> {
    let tenant = caller.tenant_to_use(q.tenant.as_deref())?;
    let required = |value: Option<String>, field: &str| {
        value.ok_or_else(|| {
            Problem::from(berth_model::Fault::new("parameter_required", field, "the parameter is missing", "name both account and user"))
        })
    };
    let (account, user) = (required(q.account, "account")?, required(q.user, "user")?);
    require_manager(&app, &caller, &tenant, &account).await?;
    app.db.delete_association(&tenant, &account, &user).await?;
    app.catalog.forget_members();
    Ok(StatusCode::NO_CONTENT)
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
