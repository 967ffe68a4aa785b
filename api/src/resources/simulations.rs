//! Simulations: recorded history replayed under changed policies and compared with what was.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use berth_model::policy::Policy;
use berth_model::{Fault, Name};
use berth_store::StoreError;
use berth_store::simulations::SimulationRow;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::policy;
use crate::App;
use crate::auth::Caller;
use crate::extract::Body;
use crate::problem::{Answer, Problem};
use crate::simulate::MOST_JOBS;

/// Replay the jobs submitted within [`from`, `to`) that ran and have ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSimulation {
    pub from: Timestamp,
    /// At most 92 days after `from`, and not in the future.
    pub to: Timestamp,
    /// Compared with each other and with what was recorded.
    #[schema(min_items = 1, max_items = 8)]
    pub policies: Vec<NamedPolicy>,
}

/// A policy to replay under, whole: what is left out has its default.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedPolicy {
    #[schema(max_length = 63)]
    pub name: String,
    pub policy: Policy,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Simulation {
    pub simulation_id: u64,
    /// `running`, `done` or `failed`.
    pub state: String,
    pub requested_by: String,
    pub request: CreateSimulation,
    /// Jobs replayed so far, under all policies together, and how many there are to be.
    pub done_jobs: u64,
    pub total_jobs: u64,
    /// Once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<SimulationResult>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SimulationResult {
    /// The first is `recorded`: what was.
    pub policies: Vec<PolicyFigures>,
    pub plots: Plots,
}

/// SVG documents: for each span of waits, or of slowdowns, the part of the jobs under each policy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Plots {
    pub wait: String,
    pub slowdown: String,
}

/// How a period went. Units are GPUs if any job asked for some, else CPUs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyFigures {
    pub policy: String,
    pub jobs: u64,
    /// Jobs that the nodes of today cannot run.
    pub rejected: u64,
    /// Attempts that were stopped or lost and run again; replays have none.
    pub preemptions: u64,
    /// Unit-seconds of such attempts.
    pub lost_unit_seconds: f64,
    pub mean_wait_seconds: f64,
    pub p95_wait_seconds: f64,
    /// Bounded slowdown: max(1, (wait + run) ÷ max(run, 10 s)).
    pub mean_bounded_slowdown: f64,
    pub median_bounded_slowdown: f64,
    /// Busy unit-seconds between the first and the last submission ÷ (capacity × that time).
    pub utilisation: f64,
    /// Jobs of the largest hundredth by units, and their mean wait.
    pub large_jobs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_job_mean_wait_seconds: Option<f64>,
    /// The worst user's mean slowdown over the mean of all users with ten jobs or more.
    pub user_max_over_mean: f64,
    pub accounts: Vec<AccountFigures>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AccountFigures {
    pub tenant: Name,
    pub account: Name,
    pub jobs: u64,
    pub mean_wait_seconds: f64,
    pub unit_hours: f64,
}

const MOST_DAYS: i64 = 92;
const MOST_POLICIES: usize = 8;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(get))
}

/// Replay recorded history under other policies. Answers at once; the simulation goes on in the background, and GET tells how far it is.
#[utoipa::path(post, path = "/v1/simulations", operation_id = "simulations_create", tag = "simulations", request_body = CreateSimulation,
    responses((status = 201, body = Simulation, headers(("Location" = String))), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateSimulation>,
) -> Answer<(StatusCode, [(header::HeaderName, String); 1], Json<Simulation>)> {
    caller.require_platform_admin("policy:write")?;
    check(&body)?;
    let request = serde_json::to_value(&body).map_err(StoreError::from)?;
    let begun = app.simulations.begin(caller.subject.as_str(), &request, (body.from, body.to), body.policies).await?;
    let id = begun.ok_or_else(|| {
        Fault::new("too_many_jobs", "to", format!("the period has more than {MOST_JOBS} jobs"), "choose a shorter period")
    })?;
    let location = [(header::LOCATION, format!("/v1/simulations/{id}"))];
    Ok((StatusCode::CREATED, location, Json(show(app.db.simulation(id).await?)?)))
}

/// Get a simulation: how far it is, and what came of it.
#[utoipa::path(get, path = "/v1/simulations/{simulation_id}", operation_id = "simulations_get", tag = "simulations",
    params(("simulation_id" = u64, Path)),
    responses((status = 200, body = Simulation), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Answer<Json<Simulation>> {
    caller.require_platform_admin("policy:write")?;
    let id = id.parse::<i64>().map_err(|_| Problem::not_found(format!("simulation {id}")))?;
    Ok(Json(show(app.db.simulation(id).await?)?))
}

fn check(body: &CreateSimulation) -> Result<(), Fault> {
    if body.to <= body.from || body.to > Timestamp::now() {
        let detail = format!("{} is not between {} and now", body.to, body.from);
        return Err(Fault::new("invalid_period", "to", detail, "choose a period that is over"));
    }
    if body.to.duration_since(body.from) > SignedDuration::from_hours(24 * MOST_DAYS) {
        return Err(Fault::new("invalid_period", "from", "the period is too long", format!("choose at most {MOST_DAYS} days")));
    }
    if !(1..=MOST_POLICIES).contains(&body.policies.len()) {
        let detail = format!("{} policies", body.policies.len());
        return Err(Fault::new("invalid_policies", "policies", detail, format!("name 1 to {MOST_POLICIES} policies")));
    }
    for (at, NamedPolicy { name, policy }) in body.policies.iter().enumerate() {
        let is_taken = name == "recorded" || body.policies[..at].iter().any(|other| other.name == *name);
        if is_taken || name.is_empty() || name.chars().count() > 63 {
            let detail = format!("{name:?} is taken, empty or too long");
            return Err(Fault::new(
                "invalid_name",
                format!("policies[{at}].name"),
                detail,
                "use up to 63 characters, each name once, and not recorded",
            ));
        }
        policy::check(policy).map_err(|fault| Fault { field: format!("policies[{at}].policy.{}", fault.field), ..fault })?;
    }
    Ok(())
}

fn show(row: SimulationRow) -> Result<Simulation, StoreError> {
    Ok(Simulation {
        simulation_id: row.simulation_id as u64,
        state: row.state,
        requested_by: row.requested_by,
        request: serde_json::from_value(row.request.0)?,
        done_jobs: row.done as u64,
        total_jobs: row.total as u64,
        result: row.result.map(|result| serde_json::from_value(result.0)).transpose()?,
        failure: row.failure,
        created_at: row.created_at.0,
        ended_at: row.ended_at.map(|at| at.0),
    })
}
