//! Nodes whose cores have two threads, over time.

use std::collections::BTreeMap;

use berth_engine::Settings;
use berth_model::cores::CoreDemand;
use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::{JobId, NodeName};
use proptest::prelude::*;

use crate::world::{World, any_ask};
use crate::{Happening, Planned, Story, any_fleet, any_happening, naive, planned};

/// Its CPUs are two threads of half as many cores.
pub fn pair(node: &mut Node) {
    let half = node.inventory.cpus.len() as u32 / 2;
    node.inventory.threads_per_core = 2;
    node.inventory.cores = (0..half).map(|core| vec![core, core + half]).collect();
}

/// Some use one thread of each core, some have cores to themselves.
pub fn asked_by(mut job: JobSnapshot) -> JobSnapshot {
    job.shape.cores = match job.id.0 % 5 {
        0 => CoreDemand { threads: 1, tasks: 0 },
        1 => CoreDemand { threads: 0, tasks: 1 },
        2 => CoreDemand { threads: 2, tasks: 0 },
        _ => CoreDemand::default(),
    };
    job
}

/// CPUs that a task of so many holds and uses on a node; nothing if its cores have too few threads.
pub fn cpus(job: &JobSnapshot, node: &Node) -> Option<(u64, u64)> {
    let threads = if node.inventory.cores.is_empty() { 1 } else { 2 };
    let (asked, cores) = (u64::from(job.shape.cpus_per_task), job.shape.cores);
    if u64::from(cores.threads) > threads {
        return None;
    }
    let each = if cores.threads == 0 { threads } else { u64::from(cores.threads) };
    let held = asked.div_ceil(each) * threads;
    let whole = asked.div_ceil(each) * each;
    Some((held, if cores.tasks > 0 { asked } else { whole }))
}

/// No core is held by two jobs.
pub fn check(world: &World) -> Result<(), TestCaseError> {
    let mut held: BTreeMap<(&NodeName, usize), JobId> = BTreeMap::new();
    for job in world.running.values() {
        for given in &job.attempt.as_ref().unwrap().nodes {
            let cores = &world.node(&given.node).inventory.cores;
            for cpu in given.cpus.iter().chain(&given.idle_cpus) {
                let Some(core) = cores.iter().position(|core| core.contains(cpu)) else { continue };
                let owner = held.entry((&given.node, core)).or_insert(job.id);
                prop_assert_eq!(*owner, job.id, "core {} of {} is shared", core, &given.node);
            }
        }
    }
    Ok(())
}

proptest! {
    /// A full plan is what brute force finds by whole cores, to the node.
    #[test]
    fn a_full_plan_by_cores_is_that_of_brute_force(kinds in any_fleet(), first in prop::collection::vec(any_ask(), 0..20), second in prop::collection::vec(any_ask(), 1..20), later in 1i64..1800) {
        let mut story = Story::new(&kinds).threaded();
        first.into_iter().for_each(|ask| _ = story.happen(&Happening::Comes(ask)));
        for queue in [Vec::new(), second] {
            queue.into_iter().for_each(|ask| _ = story.happen(&Happening::Comes(ask)));
            let expected = naive::plan(&story.world);
            let plan = story.plan(true)?;
            let name = |number: &u32| NodeName::new(format!("n{number}")).unwrap();
            let expected: Planned = expected.iter().map(|(job, (from, nodes))| (*job, (*from, nodes.iter().map(name).collect()))).collect();
            prop_assert_eq!(planned(&plan), expected);
            story.take(&plan)?;
            story.jump(later);
        }
    }

    /// No core is shared, in full plans and quick ones; no quick plan delays anybody; and an engine that begins now plans the same.
    #[test]
    fn no_core_is_shared(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..60), divides in any::<bool>()) {
        let mut story = Story::new(&kinds).threaded();
        if divides {
            story = story.divided();
        }
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }
}

/// An event for each node.
pub fn nodes(world: &World) -> Vec<Event> {
    world.nodes.values().map(|node| Event::Node(Box::new(node.clone()))).collect()
}
