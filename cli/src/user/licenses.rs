//! `berth licenses`: how many of each the cluster has, and how many are in use.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::args::{Format, LicenseCommand};
use super::client::Client;
use super::table::Table;
use super::{print_data, segment, text};

pub async fn licenses(client: &Client, format: Format, command: Option<LicenseCommand>) -> anyhow::Result<()> {
    match command {
        None => {
            let all = client.list("/v1/licenses", &[], usize::MAX).await?;
            if print_data(format, &all)? {
                return Ok(());
            }
            let mut table = Table::new(&["LICENSE", "TOTAL", "USED", "FREE", "DESCRIPTION"]);
            for one in &all {
                let free = one["total"].as_u64().unwrap_or(0).saturating_sub(one["used"].as_u64().unwrap_or(0));
                table.row(vec![text(one, "name"), text(one, "total"), text(one, "used"), free.to_string(), text(one, "description")]);
            }
            table.print(format == Format::Wide);
        }
        Some(LicenseCommand::Set { name, settings }) => {
            let path = format!("/v1/licenses/{}", segment(&name)?);
            let body = patch(&settings)?;
            let stored = match client.find(&path, &[]).await? {
                Some(_) => client.patch(&path, &[], &Value::Object(body)).await?,
                None if !body.contains_key("total") => bail!("there is no license {name} yet; say how many there are: Total=4"),
                None => {
                    let mut license = body;
                    license.insert("name".to_owned(), json!(name));
                    license.retain(|_, value| !value.is_null());
                    client.put(&path, &[], &Value::Object(license)).await?
                }
            };
            println!("License {name}: {} in all, {} in use", text(&stored, "total"), text(&stored, "used"));
        }
        Some(LicenseCommand::Delete { name }) => {
            client.delete(&format!("/v1/licenses/{}", segment(&name)?), &[]).await?;
            println!("License {name} deleted");
        }
    }
    Ok(())
}

/// `Total=4 Description=…`; Slurm's `Count` does as well. An empty description takes it back.
fn patch(settings: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    for setting in settings {
        let (key, value) = setting.split_once('=').with_context(|| format!("{setting:?} is no setting; write Total=4 or Description=…"))?;
        match key.to_ascii_lowercase().as_str() {
            "total" | "count" => {
                let total: u32 = value.parse().with_context(|| format!("{key}={value}: a whole number is asked for"))?;
                body.insert("total".to_owned(), json!(total));
            }
            "description" => {
                body.insert("description".to_owned(), if value.is_empty() { Value::Null } else { json!(value) });
            }
            _ => bail!("{key:?} is no setting of a license\n  known are: Total, Description"),
        }
    }
    Ok(body)
}
