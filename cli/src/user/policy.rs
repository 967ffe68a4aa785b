//! `berth qos`, `berth partitions` and `berth policy`: what administrators of the platform set.

use serde_json::{Value, json};

use super::accounts::limits;
use super::args::{Format, NamedCommand, PolicyCommand};
use super::client::Client;
use super::settings_line::{Of, patch};
use super::table::Table;
use super::{print_data, segment, text};

/// QOS or partitions.
pub async fn named(client: &Client, format: Format, of: Of, command: Option<NamedCommand>) -> anyhow::Result<()> {
    let (path, what, head) = if of == Of::Qos { ("/v1/qos", "QOS", "QOS") } else { ("/v1/partitions", "Partition", "PARTITION") };
    match command {
        None => {
            let all = client.list(path, &[], usize::MAX).await?;
            if print_data(format, &all)? {
                return Ok(());
            }
            let mut table = Table::new(&[head, "SETTINGS", "DESCRIPTION"]);
            all.iter().for_each(|one| table.row(vec![text(one, "name"), limits(one), text(one, "description")]));
            table.print(format == Format::Wide);
        }
        Some(NamedCommand::Set { name, settings }) => {
            let body = Value::Object(patch(of, &settings)?);
            let path = format!("{path}/{}", segment(&name)?);
            if client.find(&path, &[]).await?.is_none() {
                client.put(&path, &[], &json!({ "name": name })).await?;
                println!("{what} {name} created");
            }
            let stored = client.patch(&path, &[], &body).await?;
            println!("{what} {name}: {}", limits(&stored));
        }
        Some(NamedCommand::Delete { name }) => {
            client.delete(&format!("{path}/{}", segment(&name)?), &[]).await?;
            println!("{what} {name} deleted");
        }
    }
    Ok(())
}

pub async fn policy(client: &Client, format: Format, command: Option<PolicyCommand>) -> anyhow::Result<()> {
    let policy = match command {
        None => client.get("/v1/policy", &[]).await?,
        Some(PolicyCommand::Set { settings }) => client.patch("/v1/policy", &[], &Value::Object(patch(Of::Policy, &settings)?)).await?,
    };
    if print_data(format, &policy)? {
        return Ok(());
    }
    for (name, value) in policy.as_object().into_iter().flatten() {
        println!("  {name:<24} {}", value.to_string().replace('"', ""));
    }
    Ok(())
}
