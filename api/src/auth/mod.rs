//! Who calls and what they may do. Tokens are verified in [`verify`], keys come from [`keys`], node and job tokens are made in [`issue`].

mod caller;
mod issue;
mod keys;
mod verify;

pub use caller::{Action, Caller, JobCaller, NodeCaller};
pub use issue::{ServiceKey, TokenRequest, mint};
pub use keys::{IssuerConfig, KeySource};
pub use verify::{Claims, Verifier};

/// Audience of users' tokens.
pub const AUDIENCE: &str = "berth";
/// Audience of nodes' tokens.
pub const WORKER_AUDIENCE: &str = "berth-worker";
/// Audience of the tokens that jobs get for their own steps.
pub const JOB_AUDIENCE: &str = "berth-job";
/// Issuer of node and job tokens: the service itself.
pub const SERVICE_ISSUER: &str = "urn:berth:service";
/// Issuer of the development tokens of `berth up` and `berth token`.
pub const DEV_ISSUER: &str = "urn:berth:dev";
