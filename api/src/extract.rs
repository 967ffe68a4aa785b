//! Extractors that answer bad input with a problem naming the field: JSON bodies, query strings, path parameters, ETags.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A JSON body. None at all is taken as `{}`, for requests all of whose fields are optional.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let headers = request.headers().clone();
        if headers.contains_key(header::CONTENT_TYPE) {
            require_json(&headers)?;
        }
        let bytes = read(request, state).await?;
        match bytes.as_ref() {
            b"" => parse_json(b"{}").map(Body),
            bytes => {
                require_json(&headers)?;
                parse_object(bytes).map(Body)
            }
        }
    }
}

/// Reads the whole body within the route's limit.
pub async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let status = rejection.status();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            Problem::new(status, "too_large", "the body is larger than this route takes")
                .help("a job takes up to 8 MiB, many jobs in one call up to 16 MiB")
        } else {
            Problem::new(StatusCode::BAD_REQUEST, "unreadable_body", "the body could not be read to its end")
        }
    })
}

pub fn is_json(headers: &HeaderMap) -> bool {
    content_type(headers).is_some_and(|t| t == "application/json" || t.ends_with("+json"))
}

/// The media type without parameters.
pub fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or("").trim().to_ascii_lowercase())
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body is not declared as JSON")
        .field("Content-Type")
        .help("send `Content-Type: application/json`"))
}

/// Parses a JSON object; a fault names the path of the field.
pub fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Read as it is, an array would be taken for the fields in their order.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", "the body is a JSON array where an object is asked for")
                .help("the schema of this request is in /openapi.json, to be read at /docs"))
        }
        _ => parse_json(bytes),
    }
}

/// Parses JSON; a fault names the path of the field.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if has_nul_escape(bytes) {
        return Err(nul("the body"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_syntax() || inner.is_eof() {
            Problem::new(StatusCode::BAD_REQUEST, "invalid_json", format!("the body is not JSON: {inner}")).help("send one JSON document")
        } else {
            // Where in the body that is says the path.
            let detail = inner.to_string();
            let detail = detail.split_once(" at line ").map_or(detail.as_str(), |(what, _)| what);
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail)
                .help("the schema of this request is in /openapi.json, to be read at /docs");
            if path == "." { problem } else { problem.field(path) }
        }
    })?;
    deserializer
        .end()
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "invalid_json", format!("after the JSON document: {error}")))?;
    Ok(value)
}

/// Postgres takes no NUL in a text, and neither do programs' arguments and environments.
fn nul(place: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "nul_in_text", format!("a text in {place} holds a NUL character"))
        .help("leave the character out; no text here can hold it")
}

/// The JSON escape `\u0000`, its backslash not itself escaped.
fn has_nul_escape(bytes: &[u8]) -> bool {
    let escape = b"\\u0000";
    bytes.windows(escape.len()).enumerate().any(|(at, window)| {
        let backslashes = bytes[..at].iter().rev().take_while(|b| **b == b'\\').count();
        window == escape && backslashes % 2 == 0
    })
}

/// Query parameters. Unknown ones are refused, so that a misspelt filter does not list everything.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or("");
        let pairs: Vec<(String, String)> = form_pairs(query);
        if let Some((name, _)) = pairs.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
            return Err(nul("the query").field(name.replace('\0', "")));
        }
        let mut map = serde_json::Map::new();
        for (key, value) in pairs {
            match map.entry(key) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(serde_json::Value::Array(vec![value.into()]));
                }
                serde_json::map::Entry::Occupied(mut entry) => {
                    if let serde_json::Value::Array(values) = entry.get_mut() {
                        values.push(value.into());
                    }
                }
            }
        }
        serde_path_to_error::deserialize(serde_json::Value::Object(map)).map(Params).map_err(|error| {
            let path = error.path().to_string();
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_parameter", error.inner().to_string())
                .help("the parameters of this request are in /openapi.json, to be read at /docs");
            if path == "." { problem } else { problem.field(path.trim_end_matches("[0]").to_owned()) }
        })
    }
}

pub fn form_pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|p| !p.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode_form(key), decode_form(value))
        })
        .collect()
}

/// Percent-decoding with `+` as blank; broken escapes stay as they are.
fn decode_form(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|b| (*b as char).to_digit(16));
        match bytes[i] {
            b'+' => out.push(b' '),
            b'%' => match (hex(i + 1), hex(i + 2)) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    i += 2;
                }
                _ => out.push(b'%'),
            },
            byte => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Deserialisers for query parameters, which all arrive as lists of text.
pub mod query {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer};

    /// One value, parsed; repeated ones are refused.
    pub fn one<'de, D: Deserializer<'de>, T: std::str::FromStr>(d: D) -> Result<Option<T>, D::Error> {
        let values = Vec::<String>::deserialize(d)?;
        match values.as_slice() {
            [] => Ok(None),
            [one] => one.parse().map(Some).map_err(|_| D::Error::custom(format!("\"{one}\" is not a value this parameter takes"))),
            _ => Err(D::Error::custom("given more than once")),
        }
    }

    /// One value that is given as text and read as a model's type, with the model's explanation.
    pub fn instant<'de, D: Deserializer<'de>>(d: D) -> Result<Option<jiff::Timestamp>, D::Error> {
        let values = Vec::<String>::deserialize(d)?;
        match values.as_slice() {
            [] => Ok(None),
            [one] => one
                .parse()
                .map(Some)
                .map_err(|_| D::Error::custom(format!("\"{one}\" is not an instant; for example 2026-12-01T09:00:00Z"))),
            _ => Err(D::Error::custom("given more than once")),
        }
    }
}

/// A path parameter, parsed.
pub struct Segment<T>(pub T);

impl<T: std::str::FromStr<Err = berth_model::Fault> + Send, S: Send + Sync> FromRequestParts<S> for Segment<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let axum::extract::Path(text) =
            axum::extract::Path::<String>::from_request_parts(parts, state).await.map_err(|_| Problem::not_found("path"))?;
        text.parse().map(Segment).map_err(|fault| {
            let mut problem = Problem::faults(vec![fault]);
            problem.status = StatusCode::NOT_FOUND.as_u16();
            problem.title = "Not Found".to_owned();
            problem
        })
    }
}

/// `If-Match`: the version the caller saw. `None` if absent or `*`.
pub struct IfMatch(pub Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(IfMatch(None)) };
        let text = value.to_str().unwrap_or("").trim();
        if text == "*" {
            return Ok(IfMatch(None));
        }
        text.trim_start_matches("W/").trim_matches('"').parse().map(|v| IfMatch(Some(v))).map_err(|_| {
            Problem::new(StatusCode::PRECONDITION_FAILED, "stale_etag", "If-Match is not an ETag of this service")
                .field("If-Match")
                .help("send the ETag of the object as it was answered")
        })
    }
}

/// A JSON answer with its ETag.
pub struct Tagged<T>(pub T, pub i64);

impl<T: serde::Serialize> axum::response::IntoResponse for Tagged<T> {
    fn into_response(self) -> axum::response::Response {
        let mut response = axum::Json(self.0).into_response();
        if let Ok(tag) = format!("\"{}\"", self.1).parse() {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_found_however_it_is_written() {
        assert!(parse_json::<String>(br#""a\u0000b""#).is_err());
        assert!(parse_json::<String>(br#""a\\\u0000b""#).is_err());
        assert_eq!(parse_json::<String>(br#""a\\u0000b""#).unwrap(), "a\\u0000b");
    }
}
