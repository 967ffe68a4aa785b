//! Reservations: nodes kept for some people over a time. Administrators of the platform make them; others see those that concern them.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_engine::{Shortage, choose_nodes};
use berth_model::reservation::{Access, ReservationFlag, ReservationSpec, ReserveGround, ReservedPart, Window, nodes_of};
use berth_model::state::NodeFlag;
use berth_model::verdict::Verdict;
use berth_model::{Fault, Name, NodeName, hostlist};
use berth_store::StoreError;
use berth_store::reservations::ReservationRow;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Params, Segment, Tagged};
use crate::paging::{self, Page, PageParams};
use crate::patch::merge;
use crate::problem::{Answer, Problem};

/// A reservation with what has been chosen for it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reservation {
    #[serde(flatten)]
    pub spec: ReservationSpec,
    /// It lasts.
    pub is_active: bool,
    /// Its present time, or the next one. Of one that floats: as of now.
    pub window: Window,
    /// Its nodes, folded.
    pub node_list: String,
    pub reserved_nodes: u32,
    /// What of which nodes.
    pub parts: Vec<ReservedPart>,
    /// Jobs that run in it.
    pub running_jobs: u32,
    pub created_by: String,
    pub created_at: Timestamp,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, update, delete))
}

/// List reservations that concern the caller, by name.
#[utoipa::path(get, path = "/v1/reservations", operation_id = "reservations_list", tag = "reservations", params(PageParams),
    responses((status = 200, body = Page<Reservation>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller, Params(page): Params<PageParams>) -> Answer<Json<Page<Reservation>>> {
    caller.tenant_to_read(page.tenant.as_deref())?;
    let size = paging::page_size(page.page_size)?;
    let after: String = page.page_token.map(|t| app.page_tokens.read(&t)).transpose()?.unwrap_or_default();
    let mut seen = Vec::new();
    for row in app.db.reservations().await?.into_iter().filter(|row| row.spec.name.as_str() > after.as_str()) {
        if seen.len() as i64 <= size && concerns(&app, &caller, &row).await? {
            seen.push(row);
        }
    }
    Ok(Json(paging::cut(seen, size, &app.page_tokens, |row| row.spec.name.to_string(), |row| show(&caller, row))))
}

/// Get a reservation.
#[utoipa::path(get, path = "/v1/reservations/{reservation}", operation_id = "reservations_get", tag = "reservations", params(("reservation" = String, Path)),
    responses((status = 200, body = Reservation), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<Tagged<Reservation>> {
    let row = app.db.reservation(name.as_str()).await?;
    if !concerns(&app, &caller, &row).await? {
        return Err(Problem::not_found(format!("reservation {name}")));
    }
    let version = row.version;
    Ok(Tagged(show(&caller, row), version))
}

/// Make a reservation. Its nodes are chosen now: 409 `nodes_unavailable` tells what is in the way.
#[utoipa::path(post, path = "/v1/reservations", operation_id = "reservations_create", tag = "reservations", request_body = ReservationSpec,
    responses((status = 201, body = Reservation, headers(("Location" = String))), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn create(State(app): State<App>, caller: Caller, Body(mut spec): Body<ReservationSpec>) -> Answer<Response> {
    caller.require_platform_admin("policy:write")?;
    check(&app, &mut spec).await?;
    let now = Timestamp::now();
    spec.begin(now)?;
    let window = spec.first_window(now)?;
    let choose = |ground: &ReserveGround| choose_nodes(ground, &spec, window, &BTreeSet::new()).map_err(unavailable);
    let row = app.db.create_reservation(&spec, window, caller.subject.as_str(), choose).await?;
    app.catalog.forget_rules();
    let location = format!("/v1/reservations/{}", row.spec.name);
    let version = row.version;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Tagged(show(&caller, row), version)).into_response())
}

/// Change a reservation (a merge patch: `null` takes a field back to its default; of `end` and `duration_seconds`, and of `nodes`, `node_count` and
/// `tres`, the one that is given replaces the others). Nodes that it has are kept as far as they fit. 409 `reservation_in_use`: its jobs
/// would be left outside.
#[utoipa::path(patch, path = "/v1/reservations/{reservation}", operation_id = "reservations_update", tag = "reservations", params(("reservation" = String, Path)), request_body = Object,
    responses((status = 200, body = Reservation), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment<Name>,
    IfMatch(version): IfMatch,
    Body(mut patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Reservation>> {
    caller.require_platform_admin("policy:write")?;
    // Of end and duration the new one counts.
    for (one, other) in [("end", "duration_seconds"), ("duration_seconds", "end")] {
        if patch.get(one).is_some_and(|value| !value.is_null()) && !patch.contains_key(other) {
            patch.insert(other.to_owned(), serde_json::Value::Null);
        }
    }
    // And of ways to say which nodes, too.
    const NODES: [&str; 3] = ["nodes", "node_count", "tres"];
    if let Some(new) = NODES.into_iter().find(|field| patch.get(*field).is_some_and(|value| !value.is_null())) {
        for other in NODES.into_iter().filter(|other| *other != new) {
            patch.entry(other).or_insert(serde_json::Value::Null);
        }
    }
    let found = app.db.reservation(name.as_str()).await?;
    let mut spec = merge(&found.spec, patch)?;
    if spec.name != name {
        return Err(Fault::new("name_mismatch", "name", "a reservation keeps its name", "make another one in its place").into());
    }
    check(&app, &mut spec).await?;
    let now = Timestamp::now();
    if spec.start != found.spec.start || spec.repeat() != found.spec.repeat() {
        spec.begin(now)?;
    }
    let row =
        app.db.update_reservation(name.as_str(), version.or(Some(found.version)), |row, ground| change(row, ground, spec, now)).await?;
    app.catalog.forget_rules();
    let version = row.version;
    Ok(Tagged(show(&caller, row), version))
}

/// What becomes of the reservation's time and nodes.
fn change(
    row: &ReservationRow,
    ground: &ReserveGround,
    spec: ReservationSpec,
    now: Timestamp,
) -> Answer<(ReservationSpec, Window, Vec<ReservedPart>)> {
    let old = &row.spec;
    let has_moved = (old.start, old.end, old.duration_seconds, old.float_seconds, old.repeat(), &old.time_zone)
        != (spec.start, spec.end, spec.duration_seconds, spec.float_seconds, spec.repeat(), &spec.time_zone);
    let window = if has_moved { spec.first_window(now)? } else { row.window };
    let has_other_nodes = (&old.nodes, old.node_count, &old.features, &old.partition, &old.tres)
        != (&spec.nodes, spec.node_count, &spec.features, &spec.partition, &spec.tres);
    let fits_as_before = !has_moved && !has_other_nodes && (spec.may_overlap() || !old.may_overlap());
    if fits_as_before {
        return Ok((spec, window, row.parts.clone()));
    }
    let keeps: BTreeSet<NodeName> = row.nodes().into_iter().collect();
    let parts = choose_nodes(&ground.without(&keeps), &spec, window, &keeps).map_err(unavailable)?;
    let nodes = nodes_of(&parts);
    // A flexible one's jobs may run outside of it.
    let mut own = ground.busy.iter().filter(|busy| busy.reservation.as_ref() == Some(&spec.name) && !spec.has(ReservationFlag::Flex));
    if let Some(left) = own.find(|busy| now < window.start || !nodes.contains(&busy.node)) {
        let detail = format!("job {} runs in it on {}", left.job, left.node);
        let help = "let it keep its nodes and go on, or wait until the job has ended, or cancel it first";
        return Err(Problem::new(StatusCode::CONFLICT, "reservation_in_use", detail).help(help));
    }
    Ok((spec, window, parts))
}

/// Delete a reservation in which no job runs. Jobs that wait for it are held, or go on without it.
#[utoipa::path(delete, path = "/v1/reservations/{reservation}", operation_id = "reservations_delete", tag = "reservations", params(("reservation" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn delete(State(app): State<App>, caller: Caller, Segment(name): Segment<Name>) -> Answer<StatusCode> {
    caller.require_platform_admin("policy:write")?;
    app.db.delete_reservation(name.as_str(), caller.subject.as_str()).await?;
    app.catalog.forget_rules();
    Ok(StatusCode::NO_CONTENT)
}

async fn check(app: &App, spec: &mut ReservationSpec) -> Answer<()> {
    spec.qualify()?;
    spec.check()?;
    if let Some(partition) = &spec.partition
        && app.catalog.rules().await?.partition(partition.as_str()).is_none()
    {
        let fault =
            Fault::new("partition_not_found", "partition", format!("there is no partition {partition}"), "GET /v1/partitions lists them");
        return Err(fault.into());
    }
    for (field, list) in [("tenants", &spec.tenants), ("accounts", &spec.accounts), ("users", &spec.users)] {
        for entry in list {
            known(app, field, entry.trim_start_matches('-')).await?;
        }
    }
    Ok(())
}

/// Refuses a tenant or an account that does not exist. A user need not be written down to submit jobs, so of a user the tenant counts.
async fn known(app: &App, field: &'static str, name: &str) -> Answer<()> {
    let (tenant, of) = name.split_once('/').map_or((name, None), |(tenant, of)| (tenant, Some(of)));
    let missing =
        |what: String, lists: &str| Fault::new("not_found", field, format!("there is no {what}"), format!("GET {lists} lists them"));
    match app.db.tenant(tenant).await {
        Err(StoreError::NotFound(_)) => return Err(missing(format!("tenant {tenant}"), "/v1/tenants").into()),
        other => _ = other?,
    }
    if let (Some(account), "accounts") = (of, field) {
        match app.db.account(tenant, account).await {
            Err(StoreError::NotFound(_)) => return Err(missing(format!("account {account} of tenant {tenant}"), "/v1/accounts").into()),
            other => _ = other?,
        }
    }
    Ok(())
}

fn unavailable(shortage: Shortage) -> Problem {
    let conflicts = if shortage.conflicts.is_empty() { String::new() } else { format!(": {}", shortage.conflicts.join("; ")) };
    let detail = format!("asked for {}, found {}{conflicts}", shortage.wanted, shortage.found);
    Problem::new(StatusCode::CONFLICT, "nodes_unavailable", detail).field("nodes").help(
        "choose other nodes or another time; the flag ignore_jobs takes nodes on which jobs run, overlap those that others have reserved",
    )
}

/// The caller may see it: platform admins all, tenant admins those that concern their tenant, others those that they may use.
pub(super) async fn concerns(app: &App, caller: &Caller, row: &ReservationRow) -> Answer<bool> {
    if caller.is_platform_admin() {
        return Ok(true);
    }
    let Some(tenant) = &caller.tenant else { return Ok(false) };
    let access = row.spec.access();
    if caller.is_tenant_admin() {
        return Ok(access.concerns(tenant.as_str()));
    }
    let member = app.catalog.membership(tenant.as_str(), caller.subject.as_str()).await?;
    let own = member.accounts.iter().map(|(account, _)| account.as_str()).chain(member.default_account.as_deref());
    let mut accounts: Vec<&str> = own.collect();
    if accounts.is_empty() {
        accounts.push("default");
    }
    let may_use = |account: &&str| Name::new(*account).is_ok_and(|account| access.admits(tenant, &account, &caller.subject));
    Ok(accounts.iter().any(may_use))
}

/// Takes the names of other tenants' reservations out of what a plan said. Those that are nobody's, for maintenance, are for all to know.
pub(super) async fn conceal(app: &App, caller: &Caller, verdicts: &mut [Verdict]) -> Answer<()> {
    const KIND: &str = "reservation/";
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.code == "reserved") {
        for name in verdict.holders.iter().filter_map(|holder| holder.strip_prefix(KIND)).map(str::to_owned).collect::<Vec<_>>() {
            let is_seen = match app.db.reservation(&name).await {
                Ok(row) => {
                    let access = row.spec.access();
                    let is_own = caller.tenant.as_ref().is_some_and(|tenant| access.concerns(tenant.as_str()));
                    caller.is_platform_admin() || is_own || access == Access::default()
                }
                Err(StoreError::NotFound(_)) => caller.is_platform_admin(),
                Err(error) => return Err(error.into()),
            };
            if is_seen {
                continue;
            }
            let object = format!("{KIND}{name}");
            verdict.holders.retain(|holder| *holder != object);
            if verdict.object == object {
                verdict.object = "reservation".to_owned();
            }
            if let Some(have) = &mut verdict.have {
                let clauses = have.split("; ").map(|clause| match clause.strip_prefix(&format!("{name} ")) {
                    Some(rest) => format!("another reservation {rest}"),
                    None => clause.to_owned(),
                });
                *have = clauses.collect::<Vec<_>>().join("; ");
            }
        }
    }
    Ok(())
}

/// Of the people in it, others see those of their own tenant.
fn show(caller: &Caller, row: ReservationRow) -> Reservation {
    let now = Timestamp::now();
    let is_active = row.lasts_at(now);
    let mut window = row.window;
    if row.spec.float_seconds.is_some() {
        window = row.spec.first_window(now).unwrap_or(window);
    }
    let nodes = row.nodes();
    let mut spec = row.spec;
    if !caller.is_platform_admin() {
        let own = caller.tenant.as_ref().map(Name::as_str);
        for list in [&mut spec.users, &mut spec.accounts, &mut spec.tenants] {
            list.retain(|entry| entry.trim_start_matches('-').split('/').next() == own);
        }
    }
    Reservation {
        is_active,
        window,
        node_list: hostlist::fold(&nodes),
        reserved_nodes: nodes.len() as u32,
        parts: row.parts,
        running_jobs: row.running,
        created_by: row.created_by,
        created_at: row.created_at,
        spec,
    }
}

/// The flag that a node shows while a reservation of it lasts.
pub(super) fn node_flag(row: &ReservationRow) -> NodeFlag {
    if row.spec.has(ReservationFlag::Maintenance) { NodeFlag::Maintenance } else { NodeFlag::Reserved }
}
