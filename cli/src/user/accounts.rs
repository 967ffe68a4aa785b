//! `berth accounts` and `berth tenants`: the tree of who uses the cluster, with shares and limits.

use serde_json::{Map, Value, json};

use super::args::{AccountCommand, AccountsArgs, Format, TenantCommand, TenantsArgs};
use super::client::Client;
use super::settings_line::{Of, patch};
use super::table::Table;
use super::{print_data, segment, text};

pub async fn accounts(client: &Client, format: Format, args: AccountsArgs) -> anyhow::Result<()> {
    let tenant: Vec<(&str, String)> = args.tenant.iter().map(|tenant| ("tenant", tenant.clone())).collect();
    match args.command {
        None => list(client, format, &tenant).await,
        Some(AccountCommand::Set { account, user, settings }) => match user {
            None => set_account(client, &tenant, &account, &settings).await,
            Some(user) => set_user(client, &tenant, &account, &user, &settings).await,
        },
        Some(AccountCommand::Delete { account, user: None }) => {
            client.delete(&format!("/v1/accounts/{}", segment(&account)?), &tenant).await?;
            println!("Account {account} deleted");
            Ok(())
        }
        Some(AccountCommand::Delete { account, user: Some(user) }) => {
            client.delete("/v1/associations", &place(&tenant, &account, &user)).await?;
            println!("User {user} may no longer use the account {account}");
            Ok(())
        }
    }
}

async fn list(client: &Client, format: Format, tenant: &[(&str, String)]) -> anyhow::Result<()> {
    let accounts = client.list("/v1/accounts", tenant, usize::MAX).await?;
    let users = client.list("/v1/associations", tenant, usize::MAX).await?;
    if print_data(format, &json!({ "accounts": accounts, "associations": users }))? {
        return Ok(());
    }
    let mut table = Table::new(&["ACCOUNT", "USER", "SHARES", "LIMITS", "DESCRIPTION"]);
    add(&mut table, &accounts, &users, None, 0);
    table.print(format == Format::Wide);
    Ok(())
}

/// The accounts below a parent with their users, indented.
fn add(table: &mut Table, accounts: &[Value], users: &[Value], parent: Option<&str>, depth: usize) {
    for account in accounts.iter().filter(|account| account["parent"].as_str() == parent) {
        let name = text(account, "name");
        let indented = format!("{}{name}", "  ".repeat(depth));
        table.row(vec![indented, String::new(), shares(account), limits(&account["terms"]), text(account, "description")]);
        for user in users.iter().filter(|user| user["account"] == name.as_str()) {
            let manages = if user["is_manager"] == true { "manages the account" } else { "" };
            let indented = format!("{}{name}", "  ".repeat(depth + 1));
            table.row(vec![indented, text(user, "user"), shares(user), limits(&user["terms"]), manages.to_owned()]);
        }
        add(table, accounts, users, Some(&name), depth + 1);
    }
}

fn shares(object: &Value) -> String {
    text(&object["terms"], "fairshare")
}

/// All that is set, as one would set it: `grp_tres=gres/gpu=8 max_jobs=4`.
pub fn limits(terms: &Value) -> String {
    let mut words = Vec::new();
    for (name, value) in terms.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("fairshare" | "name" | "description", _) => {}
            ("limits" | "quota", inner) => words.push(limits(inner)),
            (_, Value::Object(counts)) => {
                let counts: Vec<String> =
                    counts.iter().map(|(tres, count)| format!("{tres}={}", count.to_string().trim_matches('"'))).collect();
                words.push(format!("{name}={}", counts.join(",")));
            }
            (_, Value::Array(names)) => {
                words.push(format!("{name}={}", names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")));
            }
            (_, value) => words.push(format!("{name}={}", value.to_string().trim_matches('"'))),
        }
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// `Parent` and `Description` are the account's own; all else are its terms.
fn account_patch(settings: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    let mut rest = Vec::new();
    for setting in settings {
        match setting.split_once('=') {
            Some((key, value)) if ["parent", "description"].contains(&key.to_ascii_lowercase().as_str()) => {
                let value = if value.is_empty() { Value::Null } else { json!(value) };
                body.insert(key.to_ascii_lowercase(), value);
            }
            _ => rest.push(setting.clone()),
        }
    }
    body.insert("terms".to_owned(), Value::Object(patch(Of::Place, &rest)?));
    Ok(body)
}

async fn set_account(client: &Client, tenant: &[(&str, String)], account: &str, settings: &[String]) -> anyhow::Result<()> {
    let path = format!("/v1/accounts/{}", segment(account)?);
    let body = Value::Object(account_patch(settings)?);
    if client.find(&path, tenant).await?.is_none() {
        client.put(&path, tenant, &json!({})).await?;
        println!("Account {account} created");
    }
    let stored = client.patch(&path, tenant, &body).await?;
    println!("Account {account}: shares {} {}", shares(&stored), limits(&stored["terms"]));
    Ok(())
}

fn place<'a>(tenant: &[(&'a str, String)], account: &str, user: &str) -> Vec<(&'a str, String)> {
    let mut query = tenant.to_vec();
    query.extend([("account", account.to_owned()), ("user", user.to_owned())]);
    query
}

async fn set_user(client: &Client, tenant: &[(&str, String)], account: &str, user: &str, settings: &[String]) -> anyhow::Result<()> {
    let mut body = Map::new();
    let mut rest = Vec::new();
    for setting in settings {
        match setting.to_ascii_lowercase().as_str() {
            "manager=yes" => _ = body.insert("is_manager".to_owned(), json!(true)),
            "manager=no" => _ = body.insert("is_manager".to_owned(), json!(false)),
            _ => rest.push(setting.clone()),
        }
    }
    body.insert("terms".to_owned(), Value::Object(patch(Of::Place, &rest)?));
    let query = place(tenant, account, user);
    if client.list("/v1/associations", &query, 1).await?.is_empty() {
        let path = format!("/v1/users/{}", segment(user)?);
        if client.find(&path, tenant).await?.is_none() {
            client.put(&path, tenant, &json!({})).await?;
            println!("User {user} created");
        }
        client.put("/v1/associations", tenant, &json!({ "account": account, "user": user })).await?;
        println!("User {user} may use the account {account}");
    }
    let stored = client.patch("/v1/associations", &query, &Value::Object(body)).await?;
    println!("User {user} of {account}: shares {} {}", shares(&stored), limits(&stored["terms"]));
    Ok(())
}

pub async fn tenants(client: &Client, format: Format, args: TenantsArgs) -> anyhow::Result<()> {
    if let Some(TenantCommand::Set { tenant, settings }) = args.command {
        let path = format!("/v1/tenants/{}", segment(&tenant)?);
        if client.find(&path, &[]).await?.is_none() {
            client.post("/v1/tenants", &json!({ "name": tenant }), Some("")).await?;
            println!("Tenant {tenant} created");
        }
        let terms = patch(Of::Place, &settings)?;
        let stored = client.patch(&path, &[], &json!({ "terms": terms })).await?;
        println!("Tenant {tenant}: shares {} {}", shares(&stored), limits(&stored["terms"]));
        return Ok(());
    }
    let tenants = client.list("/v1/tenants", &[], usize::MAX).await?;
    if print_data(format, &tenants)? {
        return Ok(());
    }
    let mut table = Table::new(&["TENANT", "SHARES", "LIMITS", "NAME"]);
    for tenant in &tenants {
        table.row(vec![text(tenant, "name"), shares(tenant), limits(&tenant["terms"]), text(tenant, "display_name")]);
    }
    table.print(format == Format::Wide);
    Ok(())
}
