//! Tenants: the platform's customers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Name;
use berth_model::association::Terms;
use berth_store::entity::tenant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::terms;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Segment, Tagged};
use crate::paging::{self, Page, PageParams};
use crate::patch::merge;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// A suspended tenant's tokens are refused; what runs goes on.
    pub is_suspended: bool,
    /// Its share of the cluster, and limits.
    pub terms: Terms,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTenant {
    pub name: Name,
    #[serde(default)]
    #[schema(max_length = 200)]
    pub display_name: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTenant {
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>)]
    pub display_name: Option<Option<String>>,
    #[serde(default)]
    pub is_suspended: Option<bool>,
    /// A merge patch of the tenant's share and limits.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub terms: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The tenant meant, for platform admins.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TenantParam {
    /// The tenant meant; only platform admins name another than their own.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    pub tenant: Option<String>,
}

/// In a merge patch `null` removes, absence leaves.
pub(crate) fn some<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(d).map(Some)
}

fn show(row: tenant::Model) -> Tenant {
    Tenant { name: row.name, display_name: row.display_name, is_suspended: row.is_suspended, terms: terms::read(row.terms) }
}

/// Text for people: at most `most` characters, no control characters.
pub(crate) fn check_text(field: &str, text: Option<&str>, most: usize) -> Answer<()> {
    match text {
        Some(text) if text.chars().count() > most || text.chars().any(|c| c.is_control() && c != '\n') => Err(berth_model::Fault::new(
            "invalid_text",
            field,
            "the text is too long or has control characters",
            format!("use at most {most} printable characters"),
        )
        .into()),
        _ => Ok(()),
    }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, update, delete))
}

/// List tenants. Platform administrators see all, others their own.
#[utoipa::path(get, path = "/v1/tenants", operation_id = "tenants_list", tag = "tenants", params(PageParams),
    responses((status = 200, body = Page<Tenant>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(page): Params<PageParams>) -> Answer<Json<Page<Tenant>>> {
    let size = paging::page_size(page.page_size)?;
    let named = page.tenant.as_deref().or(caller.is_platform_admin().then_some("-"));
    if let Some(own) = caller.tenant_to_read(named)? {
        let items = match app.db.tenant(&own).await {
            Ok(row) => vec![show(row)],
            Err(berth_store::StoreError::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        return Ok(Json(Page { items, next_page_token: None }));
    }
    let after: String = page.page_token.map(|t| app.page_tokens.read(&t)).transpose()?.unwrap_or_default();
    let rows = app.db.tenants(&after, size as u64 + 1).await?;
    Ok(Json(paging::cut(rows, size, &app.page_tokens, |r| r.name.clone(), show)))
}

/// Create a tenant.
#[utoipa::path(post, path = "/v1/tenants", operation_id = "tenants_create", tag = "tenants", request_body = CreateTenant,
    responses((status = 201, body = Tenant), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn create(State(app): State<App>, caller: Caller, Body(body): Body<CreateTenant>) -> Answer<(StatusCode, Tagged<Tenant>)> {
    caller.require_platform_admin("tenants:write")?;
    check_text("display_name", body.display_name.as_deref(), 200)?;
    let row = app.db.create_tenant(body.name.as_str(), body.display_name.as_deref()).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok((StatusCode::CREATED, Tagged(show(row), version)))
}

/// Get a tenant.
#[utoipa::path(get, path = "/v1/tenants/{tenant}", operation_id = "tenants_get", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 200, body = Tenant), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<Tagged<Tenant>> {
    let name = caller.tenant_to_use(Some(name.as_str()))?;
    let row = app.db.tenant(&name).await?;
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Change a tenant.
#[utoipa::path(patch, path = "/v1/tenants/{tenant}", operation_id = "tenants_update", tag = "tenants", params(("tenant" = String, Path)), request_body = UpdateTenant,
    responses((status = 200, body = Tenant), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(body): Body<UpdateTenant>,
) -> Answer<Tagged<Tenant>> {
    caller.tenant_to_use(Some(name.as_str()))?;
    caller.require_platform_admin("tenants:write")?;
    check_text("display_name", body.display_name.as_ref().and_then(|d| d.as_deref()), 200)?;
    let terms = match body.terms {
        Some(patch) => {
            let known = terms::read(app.db.tenant(name.as_str()).await?.terms);
            let merged = merge(&known, patch)?;
            terms::check_tenant(&caller, &known, &merged)?;
            Some(merged)
        }
        None => None,
    };
    let row = app.db.update_tenant(name.as_str(), version, body.display_name, body.is_suspended, terms.as_ref()).await?;
    app.catalog.forget_members();
    let version = row.version;
    Ok(Tagged(show(row), version))
}

/// Delete a tenant that never submitted a job.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}", operation_id = "tenants_delete", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<StatusCode> {
    caller.tenant_to_use(Some(name.as_str()))?;
    caller.require_platform_admin("tenants:write")?;
    app.db.delete_tenant(name.as_str()).await?;
    app.catalog.forget_members();
    Ok(StatusCode::NO_CONTENT)
}
