//! Request ids: taken from `X-Request-Id` if it is well-formed, made otherwise; in every response, problem and log line.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request being answered, if any.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Middleware that gives each request its id.
pub async fn layer(request: Request, next: Next) -> Response {
    let given = request.headers().get("x-request-id").and_then(|v| v.to_str().ok());
    let id = match given {
        Some(id) if (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) => id.to_owned(),
        _ => format!("{:016x}", rand::random::<u64>()),
    };
    let header = HeaderValue::from_str(&id).ok();
    let mut response = CURRENT.scope(id, next.run(request)).await;
    if let Some(header) = header {
        response.headers_mut().insert("x-request-id", header);
    }
    response
}
