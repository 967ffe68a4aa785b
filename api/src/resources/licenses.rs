//! Licences: counted resources of the whole cluster. Administrators of the platform say how many there are, all see how many are in use.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::license::License;
use berth_model::{Fault, Name};
use berth_store::licenses::LicenseRow;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Segment, Tagged};
use crate::paging::Page;
use crate::patch::merge;
use crate::problem::{Answer, Problem};

const MAX_DESCRIPTION_BYTES: usize = 4096;

/// A licence and its use.
#[derive(Debug, Serialize, ToSchema)]
pub struct LicenseState {
    pub name: String,
    /// How many there are.
    pub total: u32,
    /// How many running jobs hold; more than there are, if the total was lowered since.
    pub used: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl From<LicenseRow> for LicenseState {
    fn from(row: LicenseRow) -> Self {
        let License { name, total, description } = row.license;
        LicenseState { name: name.to_string(), total, used: row.used, description }
    }
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, update, delete))
}

/// List all licences, with what is in use.
#[utoipa::path(get, path = "/v1/licenses", operation_id = "licenses_list", tag = "licenses",
    responses((status = 200, body = Page<LicenseState>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, _caller: Caller) -> Answer<Json<Page<LicenseState>>> {
    let items = app.db.licenses().await?.into_iter().map(LicenseState::from).collect();
    Ok(Json(Page { items, next_page_token: None }))
}

/// Get a licence.
#[utoipa::path(get, path = "/v1/licenses/{license}", operation_id = "licenses_get", tag = "licenses", params(("license" = String, Path)),
    responses((status = 200, body = LicenseState), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, _caller: Caller, Segment(name): Segment<Name>) -> Answer<Tagged<LicenseState>> {
    answer(&app, &name).await
}

/// Create or replace a licence.
#[utoipa::path(put, path = "/v1/licenses/{license}", operation_id = "licenses_put", tag = "licenses", params(("license" = String, Path)), request_body = License,
    responses((status = 200, body = LicenseState), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(body): Body<License>,
) -> Answer<Tagged<LicenseState>> {
    caller.require_platform_admin("policy:write")?;
    store(&app, &name, version, body).await
}

/// Change a licence (a merge patch: `null` takes a field back). A total below what is in use stops nothing: it only lets nothing start.
#[utoipa::path(patch, path = "/v1/licenses/{license}", operation_id = "licenses_update", tag = "licenses", params(("license" = String, Path)), request_body = Object,
    responses((status = 200, body = LicenseState), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<LicenseState>> {
    caller.require_platform_admin("policy:write")?;
    let found = app.db.license(name.as_str()).await?;
    let version = version.or(Some(found.version));
    store(&app, &name, version, merge(&found.license, patch)?).await
}

/// Delete a licence that no live job asks for.
#[utoipa::path(delete, path = "/v1/licenses/{license}", operation_id = "licenses_delete", tag = "licenses", params(("license" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<StatusCode> {
    caller.require_platform_admin("policy:write")?;
    app.db.delete_license(name.as_str()).await?;
    app.catalog.forget_rules();
    Ok(StatusCode::NO_CONTENT)
}

async fn store(app: &App, name: &Name, version: Option<i64>, body: License) -> Answer<Tagged<LicenseState>> {
    let fault = |code: &str, field: &str, detail: String, help: String| Fault::new(code, field, detail, help);
    if body.name != *name {
        let detail = format!("the body names {}, the path {name}", body.name);
        return Err(fault("name_mismatch", "name", detail, "use the same name in both".to_owned()).into());
    }
    if let Some(text) = body.description.as_ref().filter(|text| text.len() > MAX_DESCRIPTION_BYTES) {
        let detail = format!("the description has {} bytes", text.len());
        return Err(fault("invalid_description", "description", detail, format!("write at most {MAX_DESCRIPTION_BYTES} bytes")).into());
    }
    app.db.put_license(&body, version).await?;
    app.catalog.forget_rules();
    answer(app, name).await
}

async fn answer(app: &App, name: &Name) -> Answer<Tagged<LicenseState>> {
    let found = app.db.license(name.as_str()).await?;
    let version = found.version;
    Ok(Tagged(found.into(), version))
}
