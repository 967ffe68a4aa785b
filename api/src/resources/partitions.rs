//! Partitions: sets of nodes with limits of their own.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::policy::Partition;
use berth_model::{Fault, Name};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::policy::check_times;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Segment, Tagged};
use crate::paging::Page;
use crate::problem::{Answer, Problem};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, delete))
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
    if body.name != name {
        return Err(Fault::new(
            "name_mismatch",
            "name",
            format!("the body names {}, the path {name}", body.name),
            "use the same name in both",
        )
        .into());
    }
    check(&body)?;
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
    check_times(&[("max_time_seconds", spec.max_time_seconds), ("default_time_seconds", spec.default_time_seconds)])
}
