//! Changes worth a try: small ones, that a user might agree to.

use berth_model::job::JobSpec;
use berth_model::resources::Gpus;
use serde_json::{Map, Value, json};

use crate::catalog::Rules;

/// Of one family only the largest change that starts soonest is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Each is a change of its own.
    None,
    /// Ascending in how much they take away.
    FewerNodes,
}

/// A change that may be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearby {
    pub words: String,
    pub patch: Map<String, Value>,
    pub family: Family,
}

/// Changes to a job of `spec`. Who may make them is not asked here; a shorter time limit is looked for otherwise.
pub fn changes(spec: &JobSpec, partition: &str, qos: &str, rules: &Rules, gpu_types: &[String]) -> Vec<Nearby> {
    let mut changes = Vec::new();
    let mut add = |words: String, patch: Value, family| {
        let Value::Object(patch) = patch else { unreachable!("patches are objects") };
        changes.push(Nearby { words, patch, family });
    };
    for other in rules.partitions.iter().filter(|other| other.name.as_str() != partition) {
        add(format!("the partition {}", other.name), json!({ "partition": other.name }), Family::None);
    }
    for other in rules.qos.iter().filter(|other| other.name.as_str() != qos) {
        add(format!("the QOS {}", other.name), json!({ "qos": other.name }), Family::None);
    }
    for (words, patch) in gpus(spec, gpu_types) {
        add(words, patch, Family::None);
    }
    for nodes in fewer(spec.resources.nodes.unwrap_or(1)) {
        let mut resources = json!({ "nodes": nodes, "max_nodes": null });
        // With tasks on each node, fewer nodes mean fewer tasks.
        if let (Some(_), Some(on_node)) = (spec.resources.tasks, spec.resources.tasks_per_node) {
            resources["tasks"] = (nodes * on_node).into();
        }
        let words = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
        add(words, json!({ "resources": resources }), Family::FewerNodes);
    }
    changes
}

/// One node less after the other; of many nodes an eighth of them less.
fn fewer(nodes: u32) -> impl Iterator<Item = u32> {
    let parts = nodes.min(8);
    (1..parts).rev().map(move |part| (u64::from(nodes) * u64::from(part) / u64::from(parts)) as u32)
}

/// The same GPUs of each other type, and of any.
fn gpus(spec: &JobSpec, types: &[String]) -> Vec<(String, Value)> {
    let resources = &spec.resources;
    let fields: [(&str, &Option<Gpus>); 3] =
        [("gpus", &resources.gpus), ("gpus_per_node", &resources.gpus_per_node), ("gpus_per_task", &resources.gpus_per_task)];
    let typed: Vec<(&str, &Gpus, &str)> =
        fields.into_iter().filter_map(|(field, gpus)| gpus.as_ref().and_then(|gpus| Some((field, gpus, gpus.kind.as_deref()?)))).collect();
    let Some((_, _, kind)) = typed.first() else { return Vec::new() };
    let with = |wanted: Option<&str>| {
        let patch = |gpus: &Gpus| json!({ "type": wanted, "count": gpus.count });
        json!({ "resources": typed.iter().map(|(field, gpus, _)| ((*field).to_owned(), patch(gpus))).collect::<Map<_, _>>() })
    };
    let others = types.iter().filter(|other| other.as_str() != *kind);
    let mut changes: Vec<_> = others.map(|other| (format!("GPUs of the type {other}"), with(Some(other)))).collect();
    if !changes.is_empty() {
        changes.push(("GPUs of any type".to_owned(), with(None)));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Name;
    use berth_model::policy::{Partition, Qos};
    use berth_model::resources::ResourceRequest;

    #[test]
    fn fewer_nodes_are_tried_one_by_one_or_by_eighths() {
        for (nodes, tried) in [(1, vec![]), (4, vec![3, 2, 1]), (8, vec![7, 6, 5, 4, 3, 2, 1]), (100, vec![87, 75, 62, 50, 37, 25, 12])] {
            assert_eq!(fewer(nodes).collect::<Vec<u32>>(), tried);
        }
    }

    #[test]
    fn nearby_changes_are_small_ones() {
        let name = |text: &str| Name::new(text).unwrap();
        let rules = Rules {
            partitions: ["main", "debug"].map(|n| Partition::of_all_nodes(name(n))).into(),
            qos: ["normal", "high"].map(|n| Qos::named(name(n))).into(),
            ..Rules::default()
        };
        let resources = ResourceRequest {
            nodes: Some(5),
            tasks: Some(10),
            tasks_per_node: Some(2),
            gpus_per_node: Some(Gpus { kind: Some("h100".to_owned()), count: 4 }),
            ..ResourceRequest::default()
        };
        let spec = JobSpec { resources, ..JobSpec::default() };
        let found = changes(&spec, "main", "normal", &rules, &["a100".to_owned(), "h100".to_owned()]);
        let told: Vec<(&str, Value)> = found.iter().map(|c| (c.words.as_str(), Value::Object(c.patch.clone()))).collect();
        assert_eq!(
            told,
            [
                ("the partition debug", json!({ "partition": "debug" })),
                ("the QOS high", json!({ "qos": "high" })),
                ("GPUs of the type a100", json!({ "resources": { "gpus_per_node": { "type": "a100", "count": 4 } } })),
                ("GPUs of any type", json!({ "resources": { "gpus_per_node": { "type": null, "count": 4 } } })),
                ("4 nodes", json!({ "resources": { "nodes": 4, "max_nodes": null, "tasks": 8 } })),
                ("3 nodes", json!({ "resources": { "nodes": 3, "max_nodes": null, "tasks": 6 } })),
                ("2 nodes", json!({ "resources": { "nodes": 2, "max_nodes": null, "tasks": 4 } })),
                ("1 node", json!({ "resources": { "nodes": 1, "max_nodes": null, "tasks": 2 } })),
            ]
        );
    }
}
