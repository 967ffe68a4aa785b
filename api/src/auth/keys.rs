//! Issuers' public keys: from a JWKS file or URL, cached, and fetched again when a token names a key that is not there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};

/// An issuer whose tokens are accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// The `iss` claim.
    pub issuer: String,
    /// The `aud` claim its tokens must carry.
    #[serde(default = "default_audience")]
    pub audience: String,
    pub keys: KeySource,
    /// Tenants it may speak for; empty: all. Only an issuer for all tenants can make platform admins.
    #[serde(default)]
    pub tenants: Vec<String>,
}

fn default_audience() -> String {
    super::AUDIENCE.to_owned()
}

/// Where an issuer's JWKS is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A file, read again when a token names an unknown key.
    File(std::path::PathBuf),
    /// An https URL (http on loopback alone).
    Url(String),
    /// The key set itself.
    Inline(serde_json::Value),
}

/// A public key with the one algorithm it may be used with.
#[derive(Clone)]
pub struct PinnedKey {
    pub algorithm: Algorithm,
    pub key: DecodingKey,
}

/// An issuer's keys by id.
type KeySet = BTreeMap<String, PinnedKey>;

/// Not more than one fetch in this time, however many unknown keys are named.
const REFETCH_AFTER: Duration = Duration::from_secs(30);
/// Keys are looked at again after this time, so that a withdrawn one stops working.
const REFRESH_AFTER: Duration = Duration::from_secs(600);

pub struct IssuerKeys {
    source: KeySource,
    client: reqwest::Client,
    cached: Mutex<Cached>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cached {
    keys: Arc<KeySet>,
    fetched_at: Option<Instant>,
}

impl IssuerKeys {
    pub fn new(source: KeySource) -> Self {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap_or_default();
        IssuerKeys { source, client, cached: Mutex::default(), fetching: tokio::sync::Mutex::default() }
    }

    /// The key named `kid`; without a name, the only key of the set.
    pub async fn find(&self, kid: Option<&str>) -> Option<PinnedKey> {
        let (keys, age) = self.cached();
        let is_fresh = age.is_some_and(|a| a < REFRESH_AFTER);
        if let Some(key) = pick(&keys, kid)
            && is_fresh
        {
            return Some(key);
        }
        if age.is_none_or(|a| a >= REFETCH_AFTER) {
            let _one_at_a_time = self.fetching.lock().await;
            if self.cached().1.is_none_or(|a| a >= REFETCH_AFTER) {
                self.refresh().await;
            }
        }
        pick(&self.cached().0, kid)
    }

    fn cached(&self) -> (Arc<KeySet>, Option<Duration>) {
        let cached = self.cached.lock().expect("no panic while the lock is held");
        (cached.keys.clone(), cached.fetched_at.map(|at| at.elapsed()))
    }

    /// Keeps the old keys when the new ones cannot be had: an issuer's outage must not lock everybody out at once.
    async fn refresh(&self) {
        let fetched = self.fetch().await;
        let mut cached = self.cached.lock().expect("no panic while the lock is held");
        cached.fetched_at = Some(Instant::now());
        match fetched {
            Ok(set) => cached.keys = Arc::new(pinned(&set)),
            Err(cause) => tracing::warn!(%cause, "an issuer's keys could not be read"),
        }
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        match &self.source {
            KeySource::Inline(value) => serde_json::from_value(value.clone()).map_err(|e| e.to_string()),
            KeySource::File(path) => {
                let text = tokio::fs::read(path).await.map_err(|e| format!("{}: {e}", path.display()))?;
                serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
            }
            KeySource::Url(url) => {
                let parsed = reqwest::Url::parse(url).map_err(|e| e.to_string())?;
                let is_loopback = matches!(parsed.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
                if parsed.scheme() != "https" && !is_loopback {
                    return Err(format!("{url} is not https"));
                }
                let response =
                    self.client.get(parsed).send().await.and_then(reqwest::Response::error_for_status).map_err(|e| e.to_string())?;
                response.json().await.map_err(|e| e.to_string())
            }
        }
    }
}

fn pick(keys: &KeySet, kid: Option<&str>) -> Option<PinnedKey> {
    match kid {
        Some(kid) => keys.get(kid).cloned(),
        None if keys.len() == 1 => keys.values().next().cloned(),
        None => None,
    }
}

fn pinned(set: &JwkSet) -> KeySet {
    let mut keys = KeySet::new();
    for (index, jwk) in set.keys.iter().enumerate() {
        if let Some(algorithm) = algorithm_of(jwk)
            && let Ok(key) = DecodingKey::from_jwk(jwk)
        {
            let kid = jwk.common.key_id.clone().unwrap_or_else(|| format!("#{index}"));
            keys.insert(kid, PinnedKey { algorithm, key });
        }
    }
    keys
}

/// The one algorithm a key is used with. Symmetric keys, small RSA keys and other curves are not used at all.
fn algorithm_of(jwk: &Jwk) -> Option<Algorithm> {
    match &jwk.algorithm {
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Some(Algorithm::EdDSA),
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => Some(Algorithm::ES256),
        // 2048 bits are 256 bytes are 342 characters of base64url.
        AlgorithmParameters::RSA(rsa) if rsa.n.len() >= 342 => Some(Algorithm::RS256),
        _ => None,
    }
}
