//! Nodes' power, reboots, and setting them down: the operator's orders that take a node away for a while, and nodes that do not exist yet.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::StatusCode;
use berth_model::gres::{DeclaredShares, MAX_GPU_KINDS};
use berth_model::node::MAX_WEIGHT;
use berth_model::resources::{Gpu, Gpus, Inventory, NumaNode};
use berth_model::{Bytes, Fault, NodeName};
use berth_store::power::NodeReboot;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::nodes::{Node, answer, check_features, check_reason};
use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, Segment, Tagged};
use crate::problem::{Answer, Problem};

/// A node that does not exist yet. It is powered down, and powered up when a job needs it; what its worker then finds holds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclareNode {
    pub name: NodeName,
    #[schema(minimum = 1, maximum = 65536)]
    pub cpus: u32,
    /// Threads of each core: jobs get whole cores.
    #[serde(default = "one_thread")]
    #[schema(minimum = 1, maximum = 64)]
    pub threads_per_core: u32,
    pub memory_bytes: Bytes,
    /// By type; each with its type.
    #[serde(default)]
    #[schema(max_items = 4)]
    pub gpus: Vec<Gpus>,
    /// How its GPUs may be shared: `shard:64` or `mps:800` over all of them, `mps:1300+1200` each by itself.
    #[serde(default)]
    pub gres: Vec<String>,
    #[serde(default)]
    pub features: Vec<String>,
    /// Lower is filled first; 1 if absent.
    #[serde(default = "one")]
    #[schema(maximum = 1000000)]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DownNode {
    /// Shown to users whose jobs wait for the node.
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebootNode {
    /// Shown to users whose jobs wait for the node.
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// Let nothing new start there until then. Otherwise it reboots when it happens to be idle.
    #[serde(default)]
    pub asap: bool,
    /// Leave it down afterwards.
    #[serde(default)]
    pub stays_down: bool,
}

fn one_thread() -> u32 {
    1
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(declare))
        .routes(routes!(down))
        .routes(routes!(power_up))
        .routes(routes!(power_down))
        .routes(routes!(reboot))
}

/// Declare a node that does not exist yet, for an autoscaler to make.
#[utoipa::path(post, path = "/v1/nodes", operation_id = "nodes_declare", tag = "nodes", request_body = DeclareNode,
    responses((status = 201, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn declare(State(app): State<App>, caller: Caller, Body(body): Body<DeclareNode>) -> Answer<(StatusCode, Tagged<Node>)> {
    caller.require_platform_admin("nodes:write")?;
    let fault = |field: &str, detail: String, help: &str| Err(Fault::new("invalid_inventory", field, detail, help).into());
    if !(1..=65_536).contains(&body.cpus) {
        return fault("cpus", format!("{} CPUs", body.cpus), "use 1 to 65536");
    }
    if !(1..=64).contains(&body.threads_per_core) || !body.cpus.is_multiple_of(body.threads_per_core) {
        let found = format!("{} CPUs of {} threads a core", body.cpus, body.threads_per_core);
        return fault("threads_per_core", found, "use 1 to 64, of which cpus is a multiple; for example 64 CPUs and 2 threads");
    }
    if body.memory_bytes.0 == 0 || body.memory_bytes.0 > 1 << 50 {
        return fault("memory_bytes", format!("{} bytes of memory", body.memory_bytes.0), "use at least 1 byte, and at most 1 PiB");
    }
    if body.weight > MAX_WEIGHT {
        return fault("weight", "the weight is too high".to_owned(), "use 0 to 1000000");
    }
    let count: u64 = body.gpus.iter().map(|gpus| u64::from(gpus.count)).sum();
    if count > 1024 || body.gpus.iter().any(|gpus| gpus.kind.is_none() || gpus.count == 0) {
        return fault("gpus", format!("{count} GPUs"), "use 1 to 1024, each with its type (h100:8); leave gpus out where there are none");
    }
    let kinds: BTreeSet<&str> = body.gpus.iter().filter_map(|gpus| gpus.kind.as_deref()).collect();
    if kinds.len() > MAX_GPU_KINDS {
        let most = format!("use at most {MAX_GPU_KINDS} types on one node");
        return fault("gpus", format!("{} types of GPU", kinds.len()), &most);
    }
    check_features(&body.features)?;
    let mut inventory = inventory(&body);
    for text in &body.gres {
        let shares = text.parse::<DeclaredShares>().and_then(|declared| Ok((declared.of, declared.over(&inventory.gpus)?)));
        match shares {
            Ok((of, shares)) => _ = inventory.gpu_shares.insert(of, shares),
            Err(wrong) => return fault("gres", wrong, "write shard:64 for all GPUs together, or mps:100+100 for each"),
        }
    }
    app.db.declare_node(body.name.as_str(), &inventory, &body.features, body.weight, caller.subject.as_str()).await?;
    Ok((StatusCode::CREATED, answer(&app, &caller, &body.name).await?))
}

/// What a plan needs to know of it.
fn inventory(node: &DeclareNode) -> Inventory {
    let kinds = node.gpus.iter().flat_map(|gpus| std::iter::repeat_n(gpus.kind.clone().unwrap_or_default(), gpus.count as usize));
    let gpu = |(index, kind): (u32, String)| Gpu {
        index,
        uuid: format!("{}-{index}", node.name),
        kind,
        memory_bytes: Bytes(0),
        numa: Some(0),
        fault: None,
    };
    let cpus: Vec<u32> = (0..node.cpus).collect();
    let cores = cpus.chunks(node.threads_per_core.max(1) as usize).map(<[u32]>::to_vec).collect();
    Inventory {
        cpus: (0..node.cpus).collect(),
        numa: vec![NumaNode { id: 0, cpus: (0..node.cpus).collect() }],
        sockets: 1,
        threads_per_core: node.threads_per_core,
        cores: if node.threads_per_core > 1 { cores } else { Vec::new() },
        memory_bytes: node.memory_bytes,
        gpus: (0..).zip(kinds).map(gpu).collect(),
        gpu_shares: BTreeMap::new(),
        facts: BTreeMap::new(),
    }
}

/// Set a node down: what runs there is ended, and requeued where its job allows.
#[utoipa::path(post, path = "/v1/nodes/{node}/~down", operation_id = "nodes_down", tag = "nodes", params(("node" = String, Path)), request_body = DownNode,
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn down(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<NodeName>,
    Body(body): Body<DownNode>,
) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    check_reason(&body.reason)?;
    app.db.down_node(name.as_str(), &body.reason, caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}

/// Power a node up, whether a job needs it or not.
#[utoipa::path(post, path = "/v1/nodes/{node}/~powerUp", operation_id = "nodes_power_up", tag = "nodes", params(("node" = String, Path)),
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn power_up(State(app): State<App>, caller: Caller, Segment(name): Segment<NodeName>) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    app.db.ask_power(name.as_str(), true, caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}

/// Power a node down once nothing runs there. Nothing new starts there until then; later it is powered up when a job needs it.
#[utoipa::path(post, path = "/v1/nodes/{node}/~powerDown", operation_id = "nodes_power_down", tag = "nodes", params(("node" = String, Path)),
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn power_down(State(app): State<App>, caller: Caller, Segment(name): Segment<NodeName>) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    app.db.ask_power(name.as_str(), false, caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}

/// Reboot a node once nothing runs there, by its worker's `--reboot-program`.
#[utoipa::path(post, path = "/v1/nodes/{node}/~reboot", operation_id = "nodes_reboot", tag = "nodes", params(("node" = String, Path)), request_body = RebootNode,
    responses((status = 200, body = Node), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn reboot(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<NodeName>,
    Body(body): Body<RebootNode>,
) -> Answer<Tagged<Node>> {
    caller.require_platform_admin("nodes:write")?;
    check_reason(&body.reason)?;
    let node = app.db.node(name.as_str()).await?;
    if node.last_seen.is_none() {
        return Err(Problem::new(StatusCode::CONFLICT, "wrong_state", format!("node {name} has never been up"))
            .help("berth power up starts it, if it was declared"));
    }
    if !node.inventory.facts.contains_key("reboot_program") {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "reboot_unsupported",
            format!("the worker of node {name} was given no reboot program"),
        )
        .help("start it with --reboot-program; for example a script that calls `systemctl reboot`"));
    }
    let reboot = NodeReboot { asap: body.asap, stays_down: body.stays_down, reason: body.reason };
    app.db.ask_reboot(name.as_str(), &reboot, caller.subject.as_str()).await?;
    answer(&app, &caller, &name).await
}
