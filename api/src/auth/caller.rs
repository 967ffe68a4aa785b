//! The caller of a request, and what it may do. A handler gets at a tenant's objects only through these.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use berth_model::state::Role;
use berth_model::{JobId, Name, NodeName};
use berth_store::jobs::read::JobRow;

use super::{JOB_AUDIENCE, SERVICE_ISSUER, WORKER_AUDIENCE};
use crate::App;
use crate::problem::{Answer, Problem};

/// A verified user.
#[derive(Clone, Debug)]
pub struct Caller {
    pub subject: Name,
    /// `None` only for platform admins.
    pub tenant: Option<Name>,
    pub roles: BTreeSet<Role>,
    /// `None`: not narrowed.
    pub scopes: Option<BTreeSet<String>>,
}

/// What is about to be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Read,
    /// Read what it is made of and what it wrote: script, environment, output. In a tenant these are the owner's, as files would be.
    ReadContents,
    /// Cancel, hold, change, signal: the owner's matters.
    Control,
}

impl Caller {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    pub fn is_platform_admin(&self) -> bool {
        self.has(Role::PlatformAdmin)
    }

    pub fn is_tenant_admin(&self) -> bool {
        self.has(Role::TenantAdmin) || self.is_platform_admin()
    }

    /// The token is not narrowed, or its scope covers `scope`.
    pub fn require_scope(&self, scope: &str) -> Answer<()> {
        match &self.scopes {
            Some(scopes) if !scopes.contains(scope) => Err(Problem::forbidden(format!("the token lacks the scope {scope}"))),
            _ => Ok(()),
        }
    }

    pub fn require_platform_admin(&self, scope: &str) -> Answer<()> {
        self.require_scope(scope)?;
        if self.is_platform_admin() { Ok(()) } else { Err(Problem::forbidden("this needs the role platform_admin")) }
    }

    pub fn require_tenant_admin(&self, scope: &str) -> Answer<()> {
        self.require_scope(scope)?;
        if self.is_tenant_admin() { Ok(()) } else { Err(Problem::forbidden("this needs the role tenant_admin")) }
    }

    /// The tenant to read from: the caller's own, or the one a platform admin names, `-` being all. `None`: all tenants.
    pub fn tenant_to_read(&self, named: Option<&str>) -> Answer<Option<String>> {
        match (named, &self.tenant) {
            (Some("-"), _) if self.is_platform_admin() => Ok(None),
            (Some(named), _) if self.is_platform_admin() => Ok(Some(named.to_owned())),
            (Some(named), Some(own)) if named == own.as_str() => Ok(Some(named.to_owned())),
            // Another tenant is treated like one that is not there.
            (Some(named), _) => Err(Problem::not_found(format!("tenant {named}")).field("tenant")),
            (None, Some(own)) => Ok(Some(own.to_string())),
            (None, None) => Ok(None),
        }
    }

    /// The one tenant to work in.
    pub fn tenant_to_use(&self, named: Option<&str>) -> Answer<String> {
        self.tenant_to_read(named)?.ok_or_else(|| {
            Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, "tenant_required", "the token names no tenant")
                .field("tenant")
                .help("name one with ?tenant=…")
        })
    }

    /// Within the tenant, may the caller do this to the job? (Another tenant's job was not found in the first place.)
    pub fn may(&self, action: Action, job: &JobRow, is_manager: bool) -> Answer<()> {
        match action {
            Action::Read => self.require_scope("jobs:read"),
            Action::ReadContents | Action::Control => {
                self.require_scope(if action == Action::Control { "jobs:write" } else { "jobs:read" })?;
                let is_owner = self.has(Role::User)
                    && self.tenant.as_ref().is_some_and(|t| t.as_str() == job.tenant)
                    && self.subject.as_str() == job.user_name;
                if is_owner || is_manager || self.is_tenant_admin() {
                    Ok(())
                } else {
                    let detail = match action {
                        Action::ReadContents => format!("what job {} wrote is for {} to read", job.job_id, job.user_name),
                        _ => format!("it belongs to {}", job.user_name),
                    };
                    Err(Problem::forbidden(detail).help("the owner, a manager of its account or a tenant admin can do this"))
                }
            }
        }
    }
}

fn bearer(parts: &Parts) -> Answer<&str> {
    let value = parts.headers.get(header::AUTHORIZATION).ok_or_else(|| Problem::unauthorized("the request carries no token"))?;
    let text = value.to_str().map_err(|_| Problem::unauthorized("the Authorization header is not text"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Problem::unauthorized("the Authorization header is not of the form `Bearer …`")),
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = app.verifier.user(bearer(parts)?).await?;
        if let Some(tenant) = &caller.tenant
            && !caller.is_platform_admin()
            && app.catalog.is_suspended(tenant.as_str()).await?
        {
            return Err(Problem::new(
                http::StatusCode::FORBIDDEN,
                "tenant_suspended",
                format!("tenant {tenant} is suspended or does not exist"),
            )
            .help("ask the platform's administrator, who makes tenants with `berth tenants set NAME` (POST /v1/tenants)"));
        }
        Ok(caller)
    }
}

/// A verified node.
#[derive(Clone, Debug)]
pub struct NodeCaller(pub NodeName);

impl FromRequestParts<App> for NodeCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let claims = app.verifier.claims(bearer(parts)?, Some(WORKER_AUDIENCE)).await?;
        if claims.iss != SERVICE_ISSUER {
            return Err(Problem::unauthorized("only the service itself makes nodes' tokens"));
        }
        NodeName::new(claims.sub).map(NodeCaller).map_err(|_| Problem::unauthorized("the token's subject is not a node"))
    }
}

/// A verified job: its own token.
#[derive(Clone, Copy, Debug)]
pub struct JobCaller {
    pub job: JobId,
    pub attempt: u32,
}

impl FromRequestParts<App> for JobCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let claims = app.verifier.claims(bearer(parts)?, Some(JOB_AUDIENCE)).await?;
        let job = claims.sub.parse().ok();
        match (claims.iss == SERVICE_ISSUER, job, claims.attempt) {
            (true, Some(job), Some(attempt)) => Ok(JobCaller { job, attempt }),
            _ => Err(Problem::unauthorized("this is not a job's token")),
        }
    }
}
