//! Which part of a job's constraint its partition cannot meet.

use std::collections::BTreeSet;

use berth_model::event::JobSnapshot;

use crate::explain::counted;
use crate::fleet::{Class, Fleet};

/// Parts named, at most.
const MOST_PARTS: usize = 5;

/// Nothing if it is not the features.
pub fn missing(fleet: &Fleet, job: &JobSnapshot) -> Option<String> {
    let nodes = |is_meant: &dyn Fn(&Class) -> bool| {
        let meant = |class: &Class| class.via.is_none() && class.partitions.contains(&job.partition) && is_meant(class);
        fleet.nodes.iter().filter(|node| meant(&fleet.classes[node.class as usize])).count() as u64
    };
    let has = |all: &BTreeSet<String>| nodes(&|class| all.is_subset(&class.features));
    let plain = job.constraint.iter().map(|any_of| (any_of, None));
    let chosen = job.choices.iter().map(|choice| (&choice.any_of, None));
    let kinds = job.choices.iter().flat_map(|choice| &choice.counts).map(|kind| (&kind.any_of, Some(u64::from(kind.count))));
    let mut parts: Vec<String> = Vec::new();
    let mut say = |part: String| {
        if parts.len() < MOST_PARTS && !parts.contains(&part) {
            parts.push(part);
        }
    };
    for (any_of, count) in plain.chain(chosen).chain(kinds) {
        let there = nodes(&|class| any_of.iter().any(|all| all.is_subset(&class.features)));
        if there >= count.unwrap_or(1) {
            continue;
        }
        let lacking: BTreeSet<&String> = any_of.iter().flatten().filter(|one| has(&BTreeSet::from([(*one).clone()])) == 0).collect();
        lacking.iter().for_each(|feature| say(format!("no node has {feature}")));
        let words = any_of.iter().map(|all| all.iter().cloned().collect::<Vec<_>>().join("&")).collect::<Vec<_>>().join("|");
        match count {
            Some(_) if there > 0 => say(format!("{} of {words}", counted(there, "node"))),
            _ if lacking.is_empty() => say(format!("no node has {words}")),
            _ => {}
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
