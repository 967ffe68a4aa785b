//! Berth's HTTP API: stateless replicas over the store. See `resources` for the routes, one file a resource; `auth` for who may
//! call; `problem` for how errors look.

pub mod admission;
pub mod advice;
pub mod auth;
pub mod batch;
pub mod catalog;
pub mod extract;
pub mod forecast;
mod limits;
pub mod metrics;
pub mod openapi;
pub mod paging;
mod patch;
pub mod problem;
pub mod request_id;
pub mod resources;
pub mod serve;
pub mod simulate;
pub mod verbs;

use std::sync::Arc;

use berth_store::Db;
use berth_store::logs::LogStore;

pub use serve::{ApiConfig, Server, start};

/// What every handler shares.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts of [`App`].
pub struct Parts {
    pub db: Db,
    pub logs: LogStore,
    pub verifier: auth::Verifier,
    pub service_key: auth::ServiceKey,
    /// The development issuer's public key set, served when there is one.
    pub dev_jwks: Option<serde_json::Value>,
    pub catalog: catalog::Catalog,
    pub submissions: batch::Submissions,
    pub forecasts: forecast::Forecasts,
    pub simulations: simulate::Simulations,
    pub page_tokens: paging::PageTokens,
    pub metrics: metrics::ApiMetrics,
    /// Turns true when the replica is about to stop: it is no longer ready and long polls end.
    pub stopping: tokio::sync::watch::Receiver<bool>,
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
