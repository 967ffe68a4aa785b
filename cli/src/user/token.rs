//! `berth token`.

use anyhow::{Context, bail};
use berth_api::auth::{AUDIENCE, DEV_ISSUER, ServiceKey, TokenRequest, mint as sign};
use berth_model::amount::parse_time_limit;
use berth_model::state::Role;
use serde_json::json;

use super::args::{Format, TokenArgs};
use super::client::Client;
use super::queue::{short_time, zone};
use super::{counted, print_data, text};

/// A development token, made with the issuer's key.
pub fn mint(args: &TokenArgs) -> anyhow::Result<String> {
    let Some(path) = &args.dev_key else {
        bail!(
            "which token? --join makes one for a new node; --dev-key FILE signs one for a user (`berth up` keeps the key as dev-key in its data directory)"
        );
    };
    let key = std::fs::read(path).with_context(|| format!("the key {}", path.display()))?;
    let key = ServiceKey::from_pkcs8(key).map_err(|e| anyhow::anyhow!("the key {}: {e}", path.display()))?;
    let Some(subject) = &args.subject else { bail!("--subject says whom the token is for") };
    for role in &args.roles {
        role.parse::<Role>()
            .map_err(|_| anyhow::anyhow!("there is no role {role:?}; use platform_admin, tenant_admin, account_manager, user or viewer"))?;
    }
    let valid =
        parse_time_limit(args.valid.as_deref().unwrap_or("12h")).map_err(|f| anyhow::anyhow!("--valid: {}; {}", f.detail, f.help))?;
    let request = TokenRequest {
        issuer: DEV_ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        subject: subject.clone(),
        tenant: Some(args.tenant.clone()).filter(|t| !t.is_empty()),
        roles: args.roles.clone(),
        scope: None,
        valid_seconds: valid.context("--valid: a token must end some time")?,
    };
    Ok(sign(&key, &request)?)
}

/// A join token for new nodes.
pub async fn join(client: &Client, format: Format, args: &TokenArgs) -> anyhow::Result<()> {
    let mut body = json!({ "node_pattern": args.nodes, "uses": args.uses });
    if let Some(valid) = &args.valid {
        let valid = parse_time_limit(valid).map_err(|f| anyhow::anyhow!("--valid: {}; {}", f.detail, f.help))?;
        body["valid_seconds"] = valid.context("--valid: a token must end some time")?.into();
    }
    let made = client.post("/v1/node-join-tokens", &body, None).await?;
    if print_data(format, &made)? {
        return Ok(());
    }
    println!("{}", text(&made, "token"));
    eprintln!(
        "It lets {} named {} in until {} ({}):\n  BERTH_JOIN_TOKEN=… berth worker --server URL --node NAME",
        counted(args.uses.into(), "node"),
        args.nodes,
        short_time(&made, "expires_at"),
        zone()
    );
    Ok(())
}
