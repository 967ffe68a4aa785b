//! QOS: priorities and limits that jobs choose by name.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::policy::Qos;
use berth_model::{Fault, Name};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::policy::check_times;
use super::terms::check_qos;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Segment, Tagged};
use crate::paging::Page;
use crate::patch::merge;
use crate::problem::{Answer, Problem};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, update, delete))
}

/// List all qos.
#[utoipa::path(get, path = "/v1/qos", operation_id = "qos_list", tag = "qos",
    responses((status = 200, body = Page<Qos>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, _caller: Caller) -> Answer<Json<Page<Qos>>> {
    let items = app.db.qos_list().await?.into_iter().map(|v| v.value).collect();
    Ok(Json(Page { items, next_page_token: None }))
}

/// Get a qos.
#[utoipa::path(get, path = "/v1/qos/{qos}", operation_id = "qos_get", tag = "qos", params(("qos" = String, Path)),
    responses((status = 200, body = Qos), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, _caller: Caller, Segment(name): Segment<Name>) -> Answer<Tagged<Qos>> {
    let found = app.db.qos(name.as_str()).await?;
    Ok(Tagged(found.value, found.version))
}

/// Create or replace a qos.
#[utoipa::path(put, path = "/v1/qos/{qos}", operation_id = "qos_put", tag = "qos", params(("qos" = String, Path)), request_body = Qos,
    responses((status = 200, body = Qos), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(body): Body<Qos>,
) -> Answer<Tagged<Qos>> {
    caller.require_platform_admin("policy:write")?;
    store(&app, &name, version, body).await
}

/// Change a qos (a merge patch: `null` takes a field back to its default).
#[utoipa::path(patch, path = "/v1/qos/{qos}", operation_id = "qos_update", tag = "qos", params(("qos" = String, Path)), request_body = Object,
    responses((status = 200, body = Qos), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Qos>> {
    caller.require_platform_admin("policy:write")?;
    let found = app.db.qos(name.as_str()).await?;
    let version = version.or(Some(found.version));
    store(&app, &name, version, merge(&found.value, patch)?).await
}

async fn store(app: &App, name: &Name, version: Option<i64>, body: Qos) -> Answer<Tagged<Qos>> {
    if body.name != *name {
        return Err(Fault::new(
            "name_mismatch",
            "name",
            format!("the body names {}, the path {name}", body.name),
            "use the same name in both",
        )
        .into());
    }
    check(&body)?;
    let stored = app.db.put_qos(&body, version).await?;
    app.catalog.forget_rules();
    Ok(Tagged(stored.value, stored.version))
}

/// Delete a qos that no live job uses.
#[utoipa::path(delete, path = "/v1/qos/{qos}", operation_id = "qos_delete", tag = "qos", params(("qos" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<StatusCode> {
    caller.require_platform_admin("policy:write")?;
    app.db.delete_qos(name.as_str()).await?;
    app.catalog.forget_rules();
    Ok(StatusCode::NO_CONTENT)
}

fn check(spec: &Qos) -> Result<(), Fault> {
    check_qos(spec)?;
    check_times(&[("max_time_seconds", spec.max_time_seconds), ("limits.max_wall_seconds", spec.limits.max_wall_seconds)])
}
