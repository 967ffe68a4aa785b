//! Why a job does not start: verdicts. The engine makes them, the API shows them unchanged.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JobId;

/// One thing that holds a job, with the object it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// Of a heterogeneous job: the component that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<u32>,
    /// Stable identifier: `resources`, `priority`, `begin_time`, …
    pub code: String,
    /// The rule that was applied, in words.
    pub rule: String,
    /// What it concerns: `partition/h100`, `job/1198`, `node/n3`.
    pub object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub have: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<String>,
    /// Who has what is missing: `job/1198`, at most a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
    /// When this may clear, as far as time limits tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clears_at: Option<Timestamp>,
    /// What the user can do, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// One factor of a job's priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PriorityFactor {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: std::borrow::Cow<'static, str>,
    /// The factor, 0 to 1; `site` and `nice` are whole numbers.
    pub raw: f64,
    pub weight: f64,
    /// raw × weight.
    pub value: f64,
}

/// A job's priority with its factors, and its place among the pending jobs (1 is first).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Priority {
    pub total: i64,
    pub rank: u32,
    pub factors: Vec<PriorityFactor>,
}

/// Where and when a job is planned to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedStart {
    pub at: Timestamp,
    /// Node names, folded: `n[1-4]`.
    pub nodes: String,
}

/// What the last plan said about one pending job. Written to the store when it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobVerdict {
    pub job: JobId,
    /// The binding one first. Never empty.
    pub verdicts: Vec<Verdict>,
    pub priority: Priority,
    /// The nearest jobs ahead of it in the queue, at most ten.
    pub ahead: Vec<JobId>,
    pub planned_start: Option<PlannedStart>,
}

/// The plan that started an attempt, by which the record of decisions finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decision {
    /// The leader's term.
    pub epoch: i64,
    /// The plan's number in it.
    pub plan: u64,
    /// The plan's clock.
    pub at: Timestamp,
}
