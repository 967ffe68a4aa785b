//! Verifying tokens. The algorithm is pinned to the key's own type; issuer, audience and expiry are required; what a token says about
//! its own algorithm is never believed.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use berth_model::Name;
use berth_model::state::Role;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::caller::Caller;
use super::keys::{IssuerConfig, IssuerKeys};
use crate::problem::Problem;

/// The claims Berth reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub sub: String,
    pub aud: serde_json::Value,
    pub exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default)]
    pub roles: Vec<String>,
    /// Narrows the token: `jobs:read jobs:write …`, separated by blanks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// In job tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Verifies tokens of the configured issuers. Verified tokens are remembered by digest for a minute at most, so that the
/// signature of a busy client is not checked anew with every request.
pub struct Verifier {
    issuers: BTreeMap<String, (IssuerConfig, IssuerKeys)>,
    verified: moka::sync::Cache<[u8; 32], Claims>,
}

impl Verifier {
    pub fn new(issuers: Vec<IssuerConfig>) -> Self {
        let issuers = issuers.into_iter().map(|config| (config.issuer.clone(), (config.clone(), IssuerKeys::new(config.keys)))).collect();
        let verified = moka::sync::Cache::builder().max_capacity(100_000).time_to_live(Duration::from_secs(60)).build();
        Verifier { issuers, verified }
    }

    /// The claims of a valid token for `audience`; `None` takes the issuer's configured one.
    pub async fn claims(&self, token: &str, audience: Option<&str>) -> Result<Claims, Problem> {
        let digest: [u8; 32] = Sha256::new().chain_update(audience.unwrap_or("")).chain_update([0]).chain_update(token).finalize().into();
        if let Some(claims) = self.verified.get(&digest)
            && claims.exp > jsonwebtoken::get_current_timestamp()
        {
            return Ok(claims);
        }
        let claims = self.verify(token, audience).await?;
        self.verified.insert(digest, claims.clone());
        Ok(claims)
    }

    async fn verify(&self, token: &str, audience: Option<&str>) -> Result<Claims, Problem> {
        let refused = |why: &str| Problem::unauthorized(format!("the token was refused: {why}"));
        let header = decode_header(token).map_err(|_| refused("it is not a signed JWT of a kind this service takes"))?;
        // Read only to find whose key to check with; everything is checked again below.
        let unchecked = unchecked_issuer(token).ok_or_else(|| refused("it names no issuer"))?;
        let (config, keys) = self.issuers.get(&unchecked).ok_or_else(|| refused("its issuer is not known here"))?;
        let key = keys.find(header.kid.as_deref()).await.ok_or_else(|| refused("its key is not among its issuer's"))?;
        if header.alg != key.algorithm {
            return Err(refused("its algorithm is not its key's"));
        }
        let mut validation = Validation::new(key.algorithm);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&config.issuer]);
        validation.set_audience(&[audience.unwrap_or(&config.audience)]);
        validation.validate_nbf = true;
        let claims = decode::<Claims>(token, &key.key, &validation).map_err(|error| refused(reason(&error)))?.claims;
        if !config.tenants.is_empty() && !claims.tenant.as_ref().is_some_and(|t| config.tenants.contains(t)) {
            return Err(refused("its issuer does not speak for this tenant"));
        }
        if !config.tenants.is_empty() && claims.roles.iter().any(|r| r == Role::PlatformAdmin.as_str()) {
            return Err(refused("its issuer cannot make platform admins"));
        }
        Ok(claims)
    }

    /// The user behind a token.
    pub async fn user(&self, token: &str) -> Result<Caller, Problem> {
        let claims = self.claims(token, None).await?;
        let refused = |why: &str| Problem::unauthorized(format!("the token was refused: {why}"));
        if claims.iss == super::SERVICE_ISSUER {
            return Err(refused("tokens of nodes and jobs are not for users' routes"));
        }
        let subject = Name::new(claims.sub.clone()).map_err(|_| refused("its subject is not a user name"))?;
        let tenant = claims.tenant.map(Name::new).transpose().map_err(|_| refused("its tenant is not a name"))?;
        // Roles of other systems may be in the token too: they mean nothing here.
        let roles: BTreeSet<Role> =
            claims.roles.iter().filter_map(|r| Role::from_str(r).ok()).filter(|r| !matches!(r, Role::Worker | Role::Job)).collect();
        if tenant.is_none() && !roles.contains(&Role::PlatformAdmin) {
            return Err(refused("it names no tenant"));
        }
        let scopes = claims.scope.map(|s| s.split_whitespace().map(str::to_owned).collect());
        Ok(Caller { subject, tenant, roles, scopes })
    }
}

fn unchecked_issuer(token: &str) -> Option<String> {
    use base64::Engine as _;
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let payload = token.split('.').nth(1)?;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).ok()?;
    Some(serde_json::from_slice::<Issuer>(&bytes).ok()?.iss)
}

fn reason(error: &jsonwebtoken::errors::Error) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::InvalidIssuer => "its issuer is not known here",
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "it lacks one of exp, iss, aud, sub",
        _ => "it is not valid",
    }
}
