//! Errors as users see them: `application/problem+json` (RFC 9457) with a stable code, the field, what was found and what would be
//! right. Nothing a client sends ends in a 500.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_model::Fault;
use berth_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A problem. `type` is `/errors/{code}`; the pages are in the documentation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// Stable identifier.
    pub code: String,
    /// What was found.
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What would be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// All faults, when there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(skip)]
    #[schema(ignore)]
    pub retry_after: Option<u32>,
}

/// What handlers return.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("/errors/{code}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            field: None,
            help: None,
            errors: Vec::new(),
            request_id: None,
            retry_after: None,
        }
    }

    pub fn field(mut self, field: impl Into<String>) -> Problem {
        self.field = Some(field.into());
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// The same of a part of the request: `jobs[3]`, `components[0]`.
    pub fn within(mut self, part: &str) -> Problem {
        let place = |field: &str| if field.is_empty() { part.to_owned() } else { format!("{part}.{field}") };
        self.field = Some(place(self.field.as_deref().unwrap_or("")));
        for fault in &mut self.errors {
            fault.field = place(&fault.field);
        }
        self
    }

    /// 422 with one or more faults; the first is shown at the top.
    pub fn faults(faults: Vec<Fault>) -> Problem {
        let Some(first) = faults.first() else {
            return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "the request is not valid");
        };
        let detail = match first.line {
            Some(line) => format!("line {line}: {}", first.detail),
            None => first.detail.clone(),
        };
        let mut problem =
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &first.code, detail).field(first.field.clone()).help(first.help.clone());
        if faults.len() > 1 {
            problem.errors = faults;
        }
        problem
    }

    pub fn not_found(what: impl std::fmt::Display) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", format!("{what} not found"))
            .help("check the name or number; objects of other tenants are not shown")
    }

    pub fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).help("use a token with the role or scope this needs")
    }

    pub fn unauthorized(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
            .help("send a valid token in the header `Authorization: Bearer …`; `berth token` makes one for development")
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        Problem::faults(vec![fault])
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::NotFound(what) => Problem::not_found(what),
            StoreError::Conflict { code, detail, help } => Problem::new(StatusCode::CONFLICT, code, detail).help(help),
            StoreError::StaleVersion(what) => {
                Problem::new(StatusCode::PRECONDITION_FAILED, "stale_etag", format!("{what} was changed in the meantime"))
                    .field("If-Match")
                    .help("read it again, and send the change with the new ETag")
            }
            StoreError::Refused(fault) => fault.into(),
            StoreError::Unavailable(cause) => {
                tracing::warn!(%cause, "the database is not reachable");
                unavailable("the database is not reachable for the moment")
            }
            // Two transactions waited for each other, or the value of one changed under the other: the client may simply repeat.
            StoreError::Database(sqlx_error) if is_transient(&sqlx_error.to_string()) => unavailable("the request collided with another"),
            // Text that no column takes and that was not found sooner: NUL, as a rule.
            StoreError::Database(sqlx_error) if is_bad_text(&sqlx_error.to_string()) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "nul_in_text", "a text in the request holds a NUL character")
                    .help("leave the character out; no text here can hold it")
            }
            StoreError::Database(_) | StoreError::Corrupt(_) | StoreError::Fenced | StoreError::Logs(_) => {
                tracing::error!(%error, "internal error");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong inside the service")
                    .help("tell your administrator the request id")
            }
        }
    }
}

fn is_transient(text: &str) -> bool {
    text.contains("deadlock detected") || text.contains("could not serialize")
}

fn is_bad_text(text: &str) -> bool {
    text.contains("invalid byte sequence for encoding") || text.contains("unsupported Unicode escape sequence")
}

fn unavailable(detail: &str) -> Problem {
    let mut problem =
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).help("repeat the request after the seconds in Retry-After");
    problem.retry_after = Some(1);
    problem
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        self.request_id = crate::request_id::current();
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after;
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
