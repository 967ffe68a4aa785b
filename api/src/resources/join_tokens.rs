//! Join tokens: what a new node shows to be let in.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_model::Fault;
use berth_store::workers::JoinTokenRow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::extract::Body;
use crate::paging::Page;
use crate::problem::{Answer, Problem};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinToken {
    #[schema(value_type = String)]
    pub id: Uuid,
    /// The secret. Shown once, at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    pub node_pattern: String,
    pub uses_left: i32,
    pub expires_at: Timestamp,
    pub created_by: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreateJoinToken {
    /// Node names it lets in; `*` stands for any text.
    #[schema(max_length = 63)]
    pub node_pattern: String,
    /// Registrations it is good for.
    #[schema(minimum = 1, maximum = 100000)]
    pub uses: u32,
    /// Seconds it is valid.
    #[schema(minimum = 60, maximum = 31536000)]
    pub valid_seconds: u64,
}

impl Default for CreateJoinToken {
    fn default() -> Self {
        CreateJoinToken { node_pattern: "*".to_owned(), uses: 1, valid_seconds: 3600 }
    }
}

fn show(row: JoinTokenRow, token: Option<String>) -> JoinToken {
    JoinToken {
        id: row.id,
        token,
        node_pattern: row.node_pattern,
        uses_left: row.uses_left,
        expires_at: row.expires_at.0,
        created_by: row.created_by,
        created_at: row.created_at.0,
    }
}

/// The form in which a token is stored.
pub fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// List join tokens, without their secrets.
#[utoipa::path(get, path = "/v1/node-join-tokens", operation_id = "join_tokens_list", tag = "join_tokens",
    responses((status = 200, body = Page<JoinToken>), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<Page<JoinToken>>> {
    caller.require_platform_admin("nodes:write")?;
    let items = app.db.join_tokens().await?.into_iter().map(|row| show(row, None)).collect();
    Ok(Json(Page { items, next_page_token: None }))
}

/// Create a join token.
#[utoipa::path(post, path = "/v1/node-join-tokens", operation_id = "join_tokens_create", tag = "join_tokens", request_body = CreateJoinToken,
    responses((status = 201, body = JoinToken), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn create(State(app): State<App>, caller: Caller, Body(body): Body<CreateJoinToken>) -> Answer<(StatusCode, Json<JoinToken>)> {
    caller.require_platform_admin("nodes:write")?;
    let is_pattern = (1..=63).contains(&body.node_pattern.len())
        && body.node_pattern.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-*".contains(&b));
    if !is_pattern {
        return Err(Fault::new(
            "invalid_pattern",
            "node_pattern",
            format!("{:?} is not a pattern of node names", body.node_pattern),
            "use a name with * for any text; for example gpu-*",
        )
        .into());
    }
    if !(1..=100_000).contains(&body.uses) {
        return Err(Fault::new("invalid_value", "uses", format!("{} uses", body.uses), "use 1 to 100000").into());
    }
    if !(60..=31_536_000).contains(&body.valid_seconds) {
        return Err(Fault::new("invalid_value", "valid_seconds", format!("{} s", body.valid_seconds), "use 60 seconds to a year").into());
    }
    let token = new_secret();
    let expires_at = Timestamp::now() + std::time::Duration::from_secs(body.valid_seconds);
    let row =
        app.db.add_join_token(Uuid::new_v4(), &hash(&token), &body.node_pattern, body.uses, expires_at, caller.subject.as_str()).await?;
    Ok((StatusCode::CREATED, Json(show(row, Some(token)))))
}

/// 192 random bits as text.
pub fn new_secret() -> String {
    use base64::Engine as _;
    format!("bjt_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>()))
}

/// Revoke a join token. Nodes that it let in stay.
#[utoipa::path(delete, path = "/v1/node-join-tokens/{id}", operation_id = "join_tokens_revoke", tag = "join_tokens", params(("id" = String, Path)),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn revoke(State(app): State<App>, caller: Caller, axum::extract::Path(id): axum::extract::Path<String>) -> Answer<StatusCode> {
    caller.require_platform_admin("nodes:write")?;
    let id = Uuid::parse_str(&id).map_err(|_| Problem::not_found(format!("join token {id}")))?;
    app.db.revoke_join_token(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
