//! Making tokens: the service's own for nodes and jobs, and development tokens.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use berth_model::{JobId, NodeName};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use sha2::{Digest, Sha256};

use super::keys::{IssuerConfig, KeySource};
use super::verify::Claims;
use super::{JOB_AUDIENCE, SERVICE_ISSUER, WORKER_AUDIENCE};

/// A key the service signs with.
#[derive(Clone)]
pub struct ServiceKey {
    kid: String,
    pkcs8: Vec<u8>,
    public: Vec<u8>,
}

/// Nothing of the key but its name is ever printed.
impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceKey({})", self.kid)
    }
}

impl ServiceKey {
    /// A new Ed25519 key.
    pub fn generate() -> Result<ServiceKey, String> {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| "no key could be generated".to_owned())?;
        ServiceKey::from_pkcs8(pkcs8.as_ref().to_vec())
    }

    pub fn from_pkcs8(pkcs8: Vec<u8>) -> Result<ServiceKey, String> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|e| format!("not an Ed25519 key in PKCS#8: {e}"))?;
        let public = pair.public_key().as_ref().to_vec();
        let kid = URL_SAFE_NO_PAD.encode(&Sha256::digest(&public)[..9]);
        Ok(ServiceKey { kid, pkcs8, public })
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public half as a JWK.
    pub fn jwk(&self) -> serde_json::Value {
        serde_json::json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.kid, "x": URL_SAFE_NO_PAD.encode(&self.public) })
    }

    /// An issuer that is trusted with this key.
    pub fn issuer(&self, issuer: &str, audience: &str) -> IssuerConfig {
        IssuerConfig {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            keys: KeySource::Inline(serde_json::json!({ "keys": [self.jwk()] })),
            tenants: Vec::new(),
        }
    }

    fn sign(&self, claims: &Claims) -> Result<String, jsonwebtoken::errors::Error> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.kid.clone());
        encode(&header, claims, &EncodingKey::from_ed_der(&self.pkcs8))
    }

    /// A node's token, valid for `seconds`.
    pub fn node_token(&self, node: &NodeName, seconds: u64) -> Result<String, jsonwebtoken::errors::Error> {
        self.sign(&claims(SERVICE_ISSUER, WORKER_AUDIENCE, node.as_str(), seconds))
    }

    /// A job's token: it opens steps of one attempt and reads them, no more.
    pub fn job_token(&self, job: JobId, attempt: u32, seconds: u64) -> Result<String, jsonwebtoken::errors::Error> {
        self.sign(&Claims { attempt: Some(attempt), ..claims(SERVICE_ISSUER, JOB_AUDIENCE, &job.to_string(), seconds) })
    }
}

fn claims(issuer: &str, audience: &str, subject: &str, seconds: u64) -> Claims {
    Claims {
        iss: issuer.to_owned(),
        sub: subject.to_owned(),
        aud: serde_json::Value::String(audience.to_owned()),
        exp: jsonwebtoken::get_current_timestamp() + seconds,
        tenant: None,
        roles: Vec::new(),
        scope: None,
        attempt: None,
    }
}

/// What a development token should say.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub issuer: String,
    pub audience: String,
    pub subject: String,
    pub tenant: Option<String>,
    pub roles: Vec<String>,
    pub scope: Option<String>,
    pub valid_seconds: u64,
}

/// Signs a user's token.
pub fn mint(key: &ServiceKey, request: &TokenRequest) -> Result<String, jsonwebtoken::errors::Error> {
    key.sign(&Claims {
        tenant: request.tenant.clone(),
        roles: request.roles.clone(),
        scope: request.scope.clone(),
        ..claims(&request.issuer, &request.audience, &request.subject, request.valid_seconds)
    })
}
