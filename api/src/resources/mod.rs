//! The routes, one file a resource: its models beside its handlers. `routes()` collects them with their OpenAPI descriptions.

pub mod accounts;
pub mod associations;
pub mod decisions;
pub mod dry_run;
pub mod explain;
pub mod health;
pub mod input;
pub mod job_control;
pub mod job_update;
pub mod jobs;
pub mod join_tokens;
pub mod licenses;
pub mod logs;
pub mod node_power;
pub mod nodes;
pub mod partitions;
pub mod policy;
pub mod priorities;
pub mod qos;
pub mod reservations;
pub mod shares;
pub mod simulations;
pub mod steps;
pub mod submit;
pub mod tenants;
mod terms;
pub mod users;
pub mod whoami;
pub mod worker;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// All routes below `/v1`.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(whoami::routes())
        .merge(tenants::routes())
        .merge(accounts::routes())
        .merge(users::routes())
        .merge(associations::routes())
        .merge(partitions::routes())
        .merge(qos::routes())
        .merge(policy::routes())
        .merge(reservations::routes())
        .merge(licenses::routes())
        .merge(shares::routes())
        .merge(priorities::routes())
        .merge(nodes::routes())
        .merge(node_power::routes())
        .merge(join_tokens::routes())
        .merge(submit::routes())
        .merge(dry_run::routes())
        .merge(jobs::routes())
        .merge(job_control::routes())
        .merge(job_update::routes())
        .merge(explain::routes())
        .merge(decisions::routes())
        .merge(simulations::routes())
        .merge(steps::routes())
        .merge(logs::routes())
        .merge(input::routes())
        .merge(worker::routes())
}
