//! GPUs that jobs share, over time.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::Settings;
use berth_model::NodeName;
use berth_model::event::{Event, JobSnapshot};
use berth_model::gres::{DeclaredShares, ShareKind, SharedGpu};
use berth_model::node::Node;
use berth_model::policy::Policy;
use berth_model::preemption::PreemptBy;
use berth_model::resources::GpuDemand;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::preemption::events;
use crate::sharing::alike;
use crate::world::{World, at};
use crate::{Happening, Planned, Story, any_fleet, any_happening};

/// GPUs of all nodes are shared into four shards, those of every other node by MPS too.
pub fn divide(node: &mut Node) {
    let count = node.inventory.gpus.len();
    let is_even = node.name.as_str().ends_with(['2', '4', '6', '8']);
    for (each, text) in [(4, "shard"), (100, "mps")] {
        if count > 0 && (text == "shard" || is_even) {
            let declared: DeclaredShares = format!("{text}:{}", each * count).parse().unwrap();
            node.inventory.gpu_shares.insert(declared.of, declared.over(&node.inventory.gpus).unwrap());
        }
    }
}

/// Most jobs ask for a share in place of whole GPUs.
pub fn asked_by(mut job: JobSnapshot) -> JobSnapshot {
    let number = job.id.0;
    if !number.is_multiple_of(4) && !job.shape.exclusive {
        let text = if number.is_multiple_of(5) { format!("mps:{}", 10 + number % 70) } else { format!("shard:{}", 1 + number % 4) };
        job.shape.gpus = GpuDemand::Share(text.parse().unwrap());
    }
    job
}

pub fn capacity(node: &Node, share: &SharedGpu) -> u32 {
    node.inventory.gpus.iter().map(|gpu| node.inventory.shares_of(share.of, gpu.index)).min().unwrap_or(0)
}

/// No GPU is whole and shared at once, or shared in two ways, or into more shares than it has.
pub fn check_devices(world: &World) -> Result<(), TestCaseError> {
    let mut held: BTreeMap<(&NodeName, u32), (Option<ShareKind>, u32)> = BTreeMap::new();
    for given in world.running.values().flat_map(|job| &job.attempt.as_ref().unwrap().nodes) {
        for gpu in &given.gpus {
            let (of, count) = given.share.as_ref().map_or((None, 0), |share| (Some(share.of), share.count));
            match held.get_mut(&(&given.node, *gpu)) {
                None => _ = held.insert((&given.node, *gpu), (of, count)),
                Some((known, sum)) => {
                    prop_assert!(of.is_some() && *known == of, "GPU {gpu} of {} is held in two ways", given.node);
                    *sum += count;
                    prop_assert!(*sum <= world.node(&given.node).inventory.shares_of(of.unwrap(), *gpu), "more shares than there are");
                }
            }
        }
    }
    Ok(())
}

struct Stay {
    node: NodeName,
    from: Timestamp,
    to: Timestamp,
    whole: u64,
    share: Option<SharedGpu>,
    device: Option<u32>,
}

/// At every instant whole GPUs and the fewest that all shares need are no more than there are.
pub fn check(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    let mut stays: Vec<Stay> = Vec::new();
    let now = at(world.now);
    for job in world.running.values() {
        let to = World::limit(job).max(now + SignedDuration::from_secs(1));
        for held in &job.attempt.as_ref().unwrap().nodes {
            let whole = if held.share.is_some() { 0 } else { held.gpus.len() as u64 };
            let device = held.gpus.first().copied();
            stays.push(Stay { node: held.node.clone(), from: Timestamp::MIN, to, whole, share: held.share.clone(), device });
        }
    }
    for (id, (from, nodes)) in planned {
        let Some(job) = world.pending.get(id) else { continue };
        let to = *from + SignedDuration::from_secs(job.time_limit as i64);
        for node in nodes {
            let whole = crate::naive::need(job, world.node(node)).unwrap()[2];
            stays.push(Stay { node: node.clone(), from: *from, to, whole, share: job.shape.gpu_share().cloned(), device: None });
        }
    }
    for node in world.nodes.values() {
        let here: Vec<&Stay> = stays.iter().filter(|stay| stay.node == node.name).collect();
        for instant in here.iter().map(|stay| stay.from.max(now)) {
            let there = || here.iter().filter(|stay| stay.from <= instant && instant < stay.to);
            let mut gpus: u64 = there().map(|stay| stay.whole).sum();
            for of in [ShareKind::Shard, ShareKind::Mps] {
                let shares = || there().filter_map(|stay| Some((stay, stay.share.as_ref().filter(|share| share.of == of)?)));
                let Some((_, any)) = shares().next() else { continue };
                let sum: u32 = shares().map(|(_, share)| share.count).sum();
                let running: BTreeSet<u32> = shares().filter_map(|(stay, _)| stay.device).collect();
                let large = shares().filter(|(_, share)| share.count * 2 > capacity(node, share)).count();
                gpus += u64::from(sum.div_ceil(capacity(node, any))).max(running.len() as u64).max(large as u64);
            }
            prop_assert!(gpus <= node.inventory.gpus.len() as u64, "{gpus} GPUs of {} at {instant}", node.name);
        }
    }
    Ok(())
}

proptest! {
    /// GPUs are whole or shared in one way, now and as planned, in full plans and quick ones; no quick plan delays anybody; and an engine
    /// that begins now plans the same.
    #[test]
    fn gpus_are_whole_or_shared(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..70)) {
        let mut story = Story::new(&kinds).divided();
        story.tell(alike(Event::Policy(Policy::default())));
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            rebuilt.apply(alike(Event::Policy(Policy::default())));
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
                prop_assert_eq!(plan.verdicts.len() + plan.starts.len(), story.world.pending.len(), "everybody hears something");
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }

    /// Also where some want no stranger on their nodes.
    #[test]
    fn shared_gpus_on_nodes_of_one_user(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..50)) {
        let mut story = Story::new(&kinds).divided();
        story.shares = true;
        story.tell(alike(Event::Policy(Policy::default())));
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let before = story.planned.clone();
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
        }
    }

    /// And where jobs preempt others.
    #[test]
    fn shared_gpus_under_preemption(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..60)) {
        let mut story = Story::new(&kinds).divided();
        events(PreemptBy::Qos, 0).into_iter().for_each(|event| story.tell(alike(event)));
        story.is_preempted = true;
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            events(PreemptBy::Qos, 0).into_iter().for_each(|event| rebuilt.apply(alike(event)));
            let plan = story.plan(i % 2 == 0 || matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
        }
    }
}
