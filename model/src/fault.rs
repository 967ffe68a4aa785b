//! A fault in what a user wrote: where, what was found, what would be right. Shared by JSON validation and script parsing, and
//! carried unchanged into problem details.

use serde::{Deserialize, Serialize};

/// One thing wrong with a request. `code` is stable; `field` is a JSON path (`resources.nodes`) or a directive (`--gpus`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[error("{field}: {detail} ({help})")]
pub struct Fault {
    pub code: String,
    pub field: String,
    /// What was found.
    pub detail: String,
    /// What would be right, with an example where one helps.
    pub help: String,
    /// Line of the script, from 1, when the fault is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Fault {
    pub fn new(code: &str, field: impl Into<String>, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Fault { code: code.to_owned(), field: field.into(), detail: detail.into(), help: help.into(), line: None }
    }

    pub fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }
}
