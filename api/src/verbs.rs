//! Custom methods: `POST /v1/jobs/1234:cancel`.
//!
//! The router cannot match a suffix within a segment, so a request's `…/1234:cancel` is rewritten to `…/1234/~cancel` before
//! routing, and the paths of the OpenAPI document are written the other way round.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Rewrites the verb of a request's last segment into a segment of its own.
pub fn rewrite(mut request: Request) -> Request {
    let path = request.uri().path();
    if let Some(rewritten) = split_verb(path) {
        let text = match request.uri().query() {
            Some(query) => format!("{rewritten}?{query}"),
            None => rewritten,
        };
        if let Ok(path_and_query) = text.parse::<PathAndQuery>() {
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(path_and_query);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
        }
    }
    request
}

fn split_verb(path: &str) -> Option<String> {
    let last = path.rfind('/')? + 1;
    let colon = last + path[last..].rfind(':')?;
    let verb = &path[colon + 1..];
    let is_verb = colon > last && !verb.is_empty() && verb.bytes().all(|b| b.is_ascii_alphabetic());
    is_verb.then(|| format!("{}/~{verb}", &path[..colon]))
}

/// The public form of a route's path.
pub fn public_path(route: &str) -> String {
    route.replace("/~", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_become_segments() {
        assert_eq!(split_verb("/v1/jobs/12_3:cancel").as_deref(), Some("/v1/jobs/12_3/~cancel"));
        assert_eq!(split_verb("/v1/jobs:submitMany").as_deref(), Some("/v1/jobs/~submitMany"));
        for other in ["/v1/jobs/12", "/v1/jobs/:x", "/v1/jobs/a:", "/v1/jobs/a:b1"] {
            assert_eq!(split_verb(other), None, "{other}");
        }
        assert_eq!(public_path("/v1/jobs/{job_id}/~cancel"), "/v1/jobs/{job_id}:cancel");
    }
}
