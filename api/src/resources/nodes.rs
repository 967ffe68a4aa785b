//! Nodes: what they have, what runs there, and the operator's orders.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::NodeName;
use berth_model::gres::SharedGpu;
use berth_model::node::MAX_WEIGHT;
use berth_model::resources::Inventory;
use berth_model::state::{NodeFlag, NodeState};
use berth_store::nodes::NodeRow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::reservations;
use super::tenants::check_text;
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Segment, Tagged};
use crate::paging::{self, Page, PageParams};
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: String,
    pub state: NodeState,
    /// State and flags in one word, as operators say it: `mixed`, `draining`, `drained`, `powered_down`, …
    pub status: String,
    /// On top of the state: `drain`, `fail`, …; `reserved` or `maintenance` while a reservation of it lasts; `planned` of an idle one on which a
    /// pending job is planned to start.
    pub flags: Vec<String>,
    /// Reservations of it that last, as far as the caller may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Why it is drained or down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub features: Vec<String>,
    /// Lower is filled first.
    pub weight: u32,
    pub inventory: Inventory,
    pub allocated_cpus: u32,
    pub allocated_memory_bytes: u64,
    /// Indices of GPUs in use.
    pub allocated_gpus: Vec<u32>,
    /// Of GPUs that are shared: how many shares jobs hold, by `shard` and `mps`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated_shares: BTreeMap<String, u64>,
    /// Jobs that hold something here; of other tenants only their number is told, in `other_jobs`.
    pub jobs: Vec<u64>,
    pub other_jobs: u32,
    pub address: String,
    pub drivers: Vec<String>,
    pub worker_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
    /// The node's clock minus the service's, in milliseconds.
    pub clock_skew_ms: i64,
    pub registered_at: Timestamp,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// Shown to users whose jobs wait for the node.
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateNode {
    #[serde(default)]
    #[schema(maximum = 1000000)]
    pub weight: Option<u32>,
    #[serde(default)]
    pub features: Option<Vec<String>>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, update))
        .routes(routes!(drain))
        .routes(routes!(resume))
        .routes(routes!(delete))
}

async fn show(app: &App, caller: &Caller, row: NodeRow) -> Answer<Node> {
    let state = row.state();
    let jobs: Vec<u64> = row.jobs.iter().map(|j| *j as u64).collect();
    let own = match caller.tenant_to_read(None)? {
        None => jobs.clone(),
        Some(tenant) => app.db.jobs_of_tenant(&tenant, &jobs).await?,
    };
    let other_jobs = (jobs.len() - own.len()) as u32;
    let (flags, reservation) = standing(app, caller, &row).await?;
    let status = row.status(&flags);
    let mut allocated_shares: BTreeMap<String, u64> = BTreeMap::new();
    for share in row.allocated_shares.iter().filter_map(|text| text.parse::<SharedGpu>().ok()) {
        *allocated_shares.entry(share.of.to_string()).or_default() += u64::from(share.count);
    }
    Ok(Node {
        name: row.name,
        state,
        status: status.to_owned(),
        flags,
        reservation,
        reason: row.reason,
        features: row.features,
        weight: row.weight.max(0) as u32,
        inventory: row.inventory.0,
        allocated_cpus: row.allocated_cpus as u32,
        allocated_memory_bytes: row.allocated_memory as u64,
        allocated_gpus: row.allocated_gpus.iter().map(|g| *g as u32).collect(),
        allocated_shares,
        jobs: own,
        other_jobs,
        address: row.address,
        drivers: row.drivers,
        worker_version: row.worker_version,
        last_seen: row.last_seen.map(|at| at.0),
        clock_skew_ms: row.clock_skew_ms,
        registered_at: row.registered_at.0,
    })
}

/// The node's flags with those of reservations that last and of planned starts, and the names of the reservations.
async fn standing(app: &App, caller: &Caller, row: &NodeRow) -> Answer<(Vec<String>, Option<String>)> {
    let rules = app.catalog.rules().await?;
    let now = Timestamp::now();
    let (mut flags, mut names) = (row.flags.clone(), Vec::new());
    let known = row.name.parse::<NodeName>().ok().and_then(|name| rules.reserved.get(&name));
    let known = known.into_iter().flatten().filter_map(|at| rules.reservations.get(*at));
    for reservation in known.filter(|reservation| reservation.lasts_at(now)) {
        let flag = reservations::node_flag(reservation).as_str().to_owned();
        if !flags.contains(&flag) {
            flags.push(flag);
        }
        if reservations::concerns(app, caller, reservation).await? {
            names.push(reservation.spec.name.to_string());
        }
    }
    let is_planned = match (row.jobs.is_empty(), row.name.parse::<NodeName>()) {
        (true, Ok(name)) => app.catalog.planned().await?.contains(&name),
        _ => false,
    };
    flags.extend(is_planned.then(|| NodeFlag::Planned.as_str().to_owned()));
    Ok((flags, Some(names.join(",")).filter(|names| !names.is_empty())))
}

/// List nodes.
#[utoipa::path(get, path = "/v1/nodes", operation_id = "nodes_list", tag = "nodes", params(PageParams),
    responses((status = 200, body = Page<Node>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(page): Params<PageParams>) -> Answer<Json<Page<Node>>> {
    caller.require_scope("nodes:read")?;
    let size = paging::page_size(page.page_size)?;
    let after: String = page.page_token.map(|t| app.page_tokens.read(&t)).transpose()?.unwrap_or_default();
    let rows = app.db.nodes(&after, size + 1).await?;
    let page = paging::cut(rows, size, &app.page_tokens, |r| r.name.clone(), |r| r);
    let mut items = Vec::with_capacity(page.items.len());
    for row in page.items {
        items.push(show(&app, &caller, row).await?);
    }
    Ok(Json(Page { items, next_page_token: page.next_page_token }))
}

/// Get a node.
#[utoipa::path(get, path = "/v1/nodes/{node}", operation_id = "nodes_get", tag = "nodes", params(("node" = String, Path)),
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Segment(name): Segment<NodeName>) -> Answer<Tagged<Node>> {
    caller.require_scope("nodes:read")?;
    answer(&app, &caller, &name).await
}

pub(super) async fn answer(app: &App, caller: &Caller, name: &NodeName) -> Answer<Tagged<Node>> {
    let row = app.db.node(name.as_str()).await?;
    let version = row.version;
    Ok(Tagged(show(app, caller, row).await?, version))
}

pub(super) fn check_features(features: &[String]) -> Answer<()> {
    for feature in features {
        let is_word =
            !feature.is_empty() && feature.len() <= 63 && feature.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if !is_word {
            return Err(berth_model::Fault::new(
                "invalid_feature",
                "features",
                format!("{feature:?} is not a feature"),
                "use letters, digits, dot, underscore and hyphen; for example nvlink",
            )
            .into());
        }
    }
    Ok(())
}

/// A reason is for people.
pub(super) fn check_reason(reason: &str) -> Answer<()> {
    check_text("reason", Some(reason), 500)?;
    if reason.trim().is_empty() {
        return Err(berth_model::Fault::new(
            "reason_required",
            "reason",
            "the reason is empty",
            "say why, for those who find the node so; for example \"bad fan\"",
        )
        .into());
    }
    Ok(())
}

/// Change a node's weight and features.
#[utoipa::path(patch, path = "/v1/nodes/{node}", operation_id = "nodes_update", tag = "nodes", params(("node" = String, Path)), request_body = UpdateNode,
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<NodeName>,
    IfMatch(version): IfMatch,
    Body(body): Body<UpdateNode>,
) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    if body.weight.is_some_and(|w| w > MAX_WEIGHT) {
        return Err(berth_model::Fault::new("invalid_value", "weight", "the weight is too high", "use 0 to 1000000").into());
    }
    check_features(body.features.as_deref().unwrap_or_default())?;
    app.db.update_node(name.as_str(), version, body.weight, body.features).await?;
    answer(&app, &caller, &name).await
}

/// Drain a node: what runs goes on, nothing new starts.
#[utoipa::path(post, path = "/v1/nodes/{node}/~drain", operation_id = "nodes_drain", tag = "nodes", params(("node" = String, Path)), request_body = DrainNode,
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn drain(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<NodeName>,
    Body(body): Body<DrainNode>,
) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    check_reason(&body.reason)?;
    app.db.drain_node(name.as_str(), &body.reason, caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}

/// Take back drain, fail and down. 409 `wrong_state` if there is nothing to take back.
#[utoipa::path(post, path = "/v1/nodes/{node}/~resume", operation_id = "nodes_resume", tag = "nodes", params(("node" = String, Path)),
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn resume(State(app): State<App>, caller: Caller, Segment(name): Segment<NodeName>) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    app.db.resume_node(name.as_str(), caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}

/// Delete a node that runs nothing and whose worker has stopped (409 `node_alive` otherwise: it would register again).
#[utoipa::path(post, path = "/v1/nodes/{node}/~delete", operation_id = "nodes_delete", tag = "nodes", params(("node" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<NodeName>) -> Answer<StatusCode> {
    caller.require_platform_admin("nodes:write")?;
    app.db.delete_node(name.as_str(), caller.subject.as_str()).await?;
    Ok(StatusCode::NO_CONTENT)
}
