//! Constraints in the laws: who asks for which nodes by its number, and that it gets such ones.

use std::collections::BTreeSet;

use berth_engine::Settings;
use berth_model::NodeName;
use berth_model::event::JobSnapshot;
use berth_model::validate::{Choice, NodeCount, preferred};
use proptest::prelude::*;

use crate::world::World;
use crate::{Happening, Planned, Story, any_fleet, any_happening};

/// The fleet has nodes with `gpu` and `h100`, with `gpu` and `a100`, and with nothing.
pub fn chosen_by(world: &World, job: JobSnapshot) -> JobSnapshot {
    if !world.has_choices {
        return job;
    }
    let (prefer, constraint) = match job.id.0 % 8 {
        0 => (None, Some("[h100|a100]")),
        1 => (None, Some("h100*1")),
        2 => (None, Some("[h100*1&a100*1]")),
        3 => (None, Some("[gpu*2&a100*1]")),
        4 => (Some("a100"), None),
        5 => (Some("[h100*2|a100*1]"), Some("gpu")),
        _ => return job,
    };
    JobSnapshot { choices: preferred(prefer, constraint).unwrap(), constraint: None, ..job }
}

/// Each node stands for one of the counts at most: by trying all ways.
pub fn are_counted(world: &World, counts: &[NodeCount], nodes: &[NodeName]) -> bool {
    let Some((first, rest)) = counts.split_first() else { return true };
    if first.count == 0 {
        return are_counted(world, rest, nodes);
    }
    let fewer: Vec<NodeCount> = [NodeCount { count: first.count - 1, ..first.clone() }].into_iter().chain(rest.iter().cloned()).collect();
    (0..nodes.len()).any(|i| {
        let others: Vec<NodeName> = nodes.iter().enumerate().filter(|(at, _)| *at != i).map(|(_, node)| node.clone()).collect();
        has_any(&first.any_of, &world.node(&nodes[i]).features) && are_counted(world, &fewer, &others)
    })
}

fn has_any(any_of: &[BTreeSet<String>], features: &BTreeSet<String>) -> bool {
    any_of.iter().any(|all| all.is_subset(features))
}

fn meets(world: &World, choice: &Choice, nodes: &[NodeName]) -> bool {
    nodes.iter().all(|node| has_any(&choice.any_of, &world.node(node).features)) && are_counted(world, &choice.counts, nodes)
}

/// What runs and what is planned has the nodes of one of its choices.
pub fn check(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    let is_met = |job: &JobSnapshot, nodes: &[NodeName]| job.choices.is_empty() || job.choices.iter().any(|one| meets(world, one, nodes));
    for job in world.running.values() {
        let nodes: Vec<NodeName> = job.attempt.as_ref().unwrap().nodes.iter().map(|held| held.node.clone()).collect();
        prop_assert!(is_met(job, &nodes), "job {} runs on {:?}", job.id, nodes);
    }
    for (id, (_, nodes)) in planned {
        let Some(job) = world.pending.get(id) else { continue };
        prop_assert!(is_met(job, nodes), "job {} is planned on {:?}", id, nodes);
    }
    Ok(())
}

proptest! {
    /// Everybody gets nodes as asked for, at the instant and on the nodes that brute force finds; no quick plan delays anybody; an engine
    /// that begins now plans the same.
    #[test]
    fn constraints_are_met(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..50)) {
        let mut story = Story::new(&kinds);
        story.world.has_choices = true;
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
                let name = |number: &u32| NodeName::new(format!("n{number}")).unwrap();
                let expected = crate::naive::plan(&story.world);
                let expected: Planned = expected.iter().map(|(job, (from, nodes))| (*job, (*from, nodes.iter().map(name).collect()))).collect();
                prop_assert_eq!(crate::planned(&plan), expected);
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }
}
