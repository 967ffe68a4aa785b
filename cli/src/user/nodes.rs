//! Orders about several nodes, and nodes that do not exist yet.

use std::process::ExitCode;

use berth_model::{NodeName, hostlist};
use serde_json::{Value, json};

use super::args::NodesCommand;
use super::client::Client;
use super::control::tell_each;

pub async fn change(client: &Client, command: NodesCommand) -> anyhow::Result<ExitCode> {
    match command {
        NodesCommand::Create { nodes, cpus, threads_per_core, memory, gpus, gres, features, weight } => {
            let declare = async |name: &NodeName| {
                let node = json!({ "name": name, "cpus": cpus, "threads_per_core": threads_per_core, "memory_bytes": memory, "gpus": gpus, "gres": gres, "features": features, "weight": weight });
                client.post("/v1/nodes", &node, None).await.map_err(|error| format!("{error:#}"))
            };
            Ok(tell_each("Node", &expand(&nodes)?, "is declared: it is powered up when a job needs it", declare).await)
        }
        NodesCommand::Set { nodes, weight, features } => {
            let mut change = serde_json::Map::new();
            change.extend(weight.map(|weight| ("weight".to_owned(), json!(weight))));
            let list = |features: String| features.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            change.extend(features.map(|features| ("features".to_owned(), json!(list(features)))));
            let change = Value::Object(change);
            let set = async |name: &NodeName| {
                client.patch(&format!("/v1/nodes/{name}"), &[], &change).await.map_err(|error| format!("{error:#}"))
            };
            Ok(tell_each("Node", &expand(&nodes)?, "is changed", set).await)
        }
        NodesCommand::Delete { nodes } => each(client, &nodes, "delete", &json!({}), "is forgotten").await,
    }
}

/// Gives each node the order; tells of each that could not be done and goes on.
pub async fn each(client: &Client, lists: &[String], verb: &str, body: &Value, done: &str) -> anyhow::Result<ExitCode> {
    let act = async |name: &NodeName| {
        let outcome = client.post(&format!("/v1/nodes/{name}:{verb}"), body, None).await;
        outcome.map_err(|error| format!("{error:#}"))
    };
    Ok(tell_each("Node", &expand(lists)?, done, act).await)
}

fn expand(lists: &[String]) -> anyhow::Result<Vec<NodeName>> {
    let mut names = Vec::new();
    for list in lists {
        names.extend(hostlist::expand(list).map_err(|fault| anyhow::anyhow!("{}; {}", fault.detail, fault.help))?);
    }
    Ok(names)
}
