//! Who the token says one is.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    pub user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub roles: Vec<String>,
    /// Accounts the user may charge.
    pub accounts: Vec<String>,
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(whoami))
}

/// Who am I?
#[utoipa::path(get, path = "/v1/whoami", operation_id = "whoami_get", tag = "whoami",
    responses((status = 200, body = Whoami), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn whoami(State(app): State<App>, caller: Caller) -> Answer<Json<Whoami>> {
    let accounts = match &caller.tenant {
        Some(tenant) => {
            let member = app.catalog.membership(tenant.as_str(), caller.subject.as_str()).await?;
            let mut names: Vec<String> = member.accounts.iter().map(|(name, _)| name.clone()).collect();
            if names.is_empty() {
                names.push(member.default_account.clone().unwrap_or_else(|| "default".to_owned()));
            }
            names
        }
        None => Vec::new(),
    };
    Ok(Json(Whoami {
        user: caller.subject.to_string(),
        tenant: caller.tenant.map(|t| t.to_string()),
        roles: caller.roles.iter().map(ToString::to_string).collect(),
        accounts,
    }))
}
