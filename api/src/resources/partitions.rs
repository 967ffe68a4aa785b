//! Partitions: sets of nodes with limits of their own.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::policy::Partition;
use berth_model::{Fault, Name};
use berth_store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::policy::{check_grace, check_times, check_weights};
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Segment, Tagged};
use crate::paging::Page;
use crate::patch::merge;
use crate::problem::{Answer, Problem};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, update, delete))
}

/// List all partitions.
#[utoipa::path(get, path = "/v1/partitions", operation_id = "partitions_list", tag = "partitions",
    responses((status = 200, body = Page<Partition>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, _caller: Caller) -> Answer<Json<Page<Partition>>> {
    let items = app.db.partitions().await?.into_iter().map(|v| v.value).collect();
    Ok(Json(Page { items, next_page_token: None }))
}

/// Get a partition.
#[utoipa::path(get, path = "/v1/partitions/{partition}", operation_id = "partitions_get", tag = "partitions", params(("partition" = String, Path)),
    responses((status = 200, body = Partition), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, _caller: Caller, Segment(name): Segment<Name>) -> Answer<Tagged<Partition>> {
    let found = app.db.partition(name.as_str()).await?;
    Ok(Tagged(found.value, found.version))
}

/// Create or replace a partition.
#[utoipa::path(put, path = "/v1/partitions/{partition}", operation_id = "partitions_put", tag = "partitions", params(("partition" = String, Path)), request_body = Partition,
    responses((status = 200, body = Partition), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(body): Body<Partition>,
) -> Answer<Tagged<Partition>> {
    caller.require_platform_admin("policy:write")?;
    store(&app, &name, version, body).await
}

/// Change a partition (a merge patch: `null` takes a field back to its default).
#[utoipa::path(patch, path = "/v1/partitions/{partition}", operation_id = "partitions_update", tag = "partitions", params(("partition" = String, Path)), request_body = Object,
    responses((status = 200, body = Partition), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Partition>> {
    caller.require_platform_admin("policy:write")?;
    let found = app.db.partition(name.as_str()).await?;
    let version = version.or(Some(found.version));
    store(&app, &name, version, merge(&found.value, patch)?).await
}

async fn store(app: &App, name: &Name, version: Option<i64>, body: Partition) -> Answer<Tagged<Partition>> {
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
    if let Some(qos) = &body.qos {
        app.db.qos(qos.as_str()).await.map_err(|error| match error {
            StoreError::NotFound(_) => {
                Fault::new("qos_not_found", "qos", format!("there is no QOS {qos}"), "GET /v1/qos lists them").into()
            }
            other => Problem::from(other),
        })?;
    }
    let stored = app.db.put_partition(&body, version).await?;
    app.catalog.forget_rules();
    Ok(Tagged(stored.value, stored.version))
}

/// Delete a partition that no live job uses.
#[utoipa::path(delete, path = "/v1/partitions/{partition}", operation_id = "partitions_delete", tag = "partitions", params(("partition" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<StatusCode> {
    caller.require_platform_admin("policy:write")?;
    app.db.delete_partition(name.as_str()).await?;
    app.catalog.forget_rules();
    Ok(StatusCode::NO_CONTENT)
}

fn check(spec: &Partition) -> Result<(), Fault> {
    if spec.nodes != "ALL" && !spec.nodes.is_empty() {
        berth_model::hostlist::expand(&spec.nodes).map_err(|fault| Fault { field: "nodes".to_owned(), ..fault })?;
    }
    if spec.min_nodes.zip(spec.max_nodes).is_some_and(|(least, most)| least > most) {
        return Err(Fault::new("invalid_limit", "min_nodes", "min_nodes is more than max_nodes", "use a lower min_nodes"));
    }
    check_grace(spec.grace_seconds)?;
    check_weights("billing_weights", &spec.billing_weights, true)?;
    check_times(&[("max_time_seconds", spec.max_time_seconds), ("default_time_seconds", spec.default_time_seconds)])
}
