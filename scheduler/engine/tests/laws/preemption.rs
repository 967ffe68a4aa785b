//! Preemption over time: a random story in which some jobs may preempt others, each plan checked by counting what would fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{Plan, Settings};
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::{Claim, PreemptBy, PreemptMode};
use berth_model::{JobId, hostlist};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::naive::{self, Lines};
use crate::world::{World, at, name};
use crate::{Happening, Story, any_fleet, any_happening};

const GRACE: SignedDuration = SignedDuration::from_secs(45);

/// By tier, those in `gpu` preempt those in `main`; by QOS, `high` preempts `normal`.
pub fn events(by: PreemptBy, exempt: u64) -> Vec<Event> {
    let grace_seconds = Some(GRACE.as_secs() as u64);
    let gpu = Partition {
        nodes: String::new(),
        node_features: BTreeSet::from(["gpu".to_owned()]),
        priority_tier: if by == PreemptBy::PartitionTier { 2 } else { 1 },
        grace_seconds,
        ..Partition::of_all_nodes(name("gpu"))
    };
    vec![
        Event::Policy(Policy { preempt_by: by, preempt_mode: PreemptMode::Cancel, preempt_exempt_seconds: exempt, ..Policy::default() }),
        Event::Partition(gpu),
        Event::Partition(Partition { grace_seconds, ..Partition::of_all_nodes(name("main")) }),
        Event::Qos(Qos { priority: 100, preempts: BTreeSet::from([name("normal")]), ..Qos::named(name("high")) }),
    ]
}

/// Of higher standing.
fn outranks(by: PreemptBy, a: &JobSnapshot, b: &JobSnapshot) -> bool {
    match by {
        PreemptBy::Off => false,
        PreemptBy::Qos => a.qos.as_str() == "high" && b.qos.as_str() == "normal",
        PreemptBy::PartitionTier => a.partition.as_str() == "gpu" && b.partition.as_str() == "main",
    }
}

/// A job's place in the walk.
fn place(by: PreemptBy, job: &JobSnapshot) -> (bool, Reverse<bool>, Reverse<bool>, JobId) {
    let is_top = by == PreemptBy::PartitionTier && job.partition.as_str() == "gpu";
    (job.claim.is_none(), Reverse(is_top), Reverse(job.qos.as_str() == "high"), job.id)
}

/// Checks what a plan preempts, in the world as it was told.
pub fn check(world: &World, by: PreemptBy, exempt: u64, plan: &Plan) -> Result<(), TestCaseError> {
    let mut victims = BTreeSet::new();
    for new in &plan.claims {
        let job = &world.pending[&new.job];
        let theirs: Vec<_> = plan.preemptions.iter().filter(|p| p.for_job == new.job).collect();
        prop_assert_eq!(theirs.iter().map(|p| p.victim).collect::<Vec<_>>(), new.claim.victims.clone());
        prop_assert!(!theirs.is_empty() && new.claim.nodes.len() == job.shape.min_nodes as usize);
        for preemption in &theirs {
            let victim = &world.running[&preemption.victim];
            let attempt = victim.attempt.as_ref().unwrap();
            prop_assert!(victims.insert(victim.id), "preempted once");
            prop_assert!(attempt.preempted.is_none() && outranks(by, job, victim), "{} for {}", victim.id, job.id);
            prop_assert!(plan.now.duration_since(attempt.started_at.unwrap()).as_secs() >= exempt as i64, "it is safe");
            prop_assert!(preemption.at == plan.now + GRACE && preemption.mode == PreemptMode::Cancel);
            let is_freed = |node| new.claim.nodes.contains(node) && attempt.nodes.iter().any(|held| held.node == *node);
            prop_assert!(!preemption.nodes.is_empty() && preemption.nodes.iter().all(is_freed), "each frees a node of the job");
        }
        let gone: BTreeSet<JobId> = new.claim.victims.iter().copied().collect();
        let room = room(world, by, plan, job, &gone);
        prop_assert!(new.claim.nodes.iter().all(|node| room.contains(node.as_str())), "it fits when they have gone");
        for victim in &gone {
            let without: BTreeSet<JobId> = gone.iter().copied().filter(|other| other != victim).collect();
            let room = self::room(world, by, plan, job, &without);
            let has_required = job.required_nodes.iter().all(|node| room.contains(node.as_str()));
            prop_assert!(room.len() < job.shape.min_nodes as usize || !has_required, "{} need not go for {}", victim, job.id);
        }
    }
    prop_assert_eq!(victims.len(), plan.preemptions.len());
    Ok(())
}

/// Nodes on which the job fits at the end of the grace, if these have gone: as it was when its turn came.
fn room(world: &World, by: PreemptBy, plan: &Plan, job: &JobSnapshot, gone: &BTreeSet<JobId>) -> BTreeSet<String> {
    let before = |other: &JobId| world.pending.get(other).is_some_and(|other| place(by, other) < place(by, job));
    let ends = |victim: &JobId| plan.preemptions.iter().find(|p| p.victim == *victim && (before(&p.for_job))).map(|p| p.at);
    let mut told = world.clone();
    told.running.retain(|id, _| !gone.contains(id));
    let mut lines = Lines::of(&told);
    // Those who make room for others leave earlier than they say.
    for victim in told.running.keys().filter_map(|id| Some((id, ends(id)?))) {
        lines.end_by(world, &world.running[victim.0], victim.1);
    }
    let length = |job: &JobSnapshot| SignedDuration::from_secs(job.time_limit as i64);
    for start in plan.starts.iter().filter(|start| before(&start.job)) {
        let other = &world.pending[&start.job];
        for held in &start.nodes {
            let need = naive::need(other, world.node(&held.node)).unwrap();
            lines.add(world, &held.node, plan.now, plan.now + length(other), need, false);
        }
    }
    for verdict in plan.verdicts.iter().filter(|verdict| before(&verdict.job)) {
        let Some(planned) = &verdict.planned_start else { continue };
        let other = &world.pending[&verdict.job];
        for held in hostlist::expand(&planned.nodes).unwrap() {
            let need = naive::need(other, world.node(&held)).unwrap();
            lines.add(world, &held, planned.at, planned.at + length(other), need, true);
        }
    }
    let from = plan.now + GRACE;
    lines.room(world, job, from, from + length(job)).into_iter().map(|number| format!("n{number}")).collect()
}

/// Claims that were made, and nothing has made void.
#[derive(Default)]
struct Claims(BTreeMap<JobId, Claim>);

impl Claims {
    /// Whoever was preempted for starts by the end of the grace, on the nodes that were freed for it.
    fn check(&mut self, world: &World, planned_until: i64) -> Result<(), TestCaseError> {
        for (id, claim) in &self.0 {
            prop_assert!(
                !world.pending.contains_key(id) || at(planned_until) < claim.ready_at,
                "job {} should have started at {}",
                id,
                claim.ready_at
            );
            if let Some(job) = world.running.get(id) {
                let nodes: Vec<_> = job.attempt.as_ref().unwrap().nodes.iter().map(|held| &held.node).collect();
                prop_assert_eq!(nodes, claim.nodes.iter().collect::<Vec<_>>());
            }
        }
        let waits = |id: &JobId| world.pending.contains_key(id);
        self.0.retain(|id, _| waits(id));
        Ok(())
    }

    fn learn(&mut self, world: &World) {
        self.0.extend(world.pending.values().filter_map(|job| Some((job.id, job.claim.clone()?))));
    }
}

proptest! {
    /// Only as many as needed go, none of equal or higher standing and none that is safe; whoever they go for starts on their nodes
    /// by the end of their grace; nothing is given twice; and the same events make the same plan, also in an engine that begins now.
    #[test]
    fn whoever_is_preempted_had_to_go(
        kinds in any_fleet(),
        by_tier in any::<bool>(),
        exempt in prop_oneof![Just(0u64), 1u64..900],
        happenings in prop::collection::vec(any_happening(), 1..60),
    ) {
        let by = if by_tier { PreemptBy::PartitionTier } else { PreemptBy::Qos };
        let mut story = Story::new(&kinds);
        events(by, exempt).into_iter().for_each(|event| story.tell(event));
        story.preempts = Some((by, exempt));
        let mut claims = Claims::default();
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            story.pass(seconds)?;
            claims.learn(&story.world);
            // The plan of this very instant is still to come.
            claims.check(&story.world, story.world.now - 1)?;
            if let Happening::Toggles(_) = happening {
                // Claims may be void now. The service would not know which; here all are given up.
                claims.0.clear();
                story.world.pending.values_mut().for_each(|job| job.claim = None);
                let forgotten: Vec<Event> = story.world.pending.values().map(|job| Event::Job(Box::new(job.clone()))).collect();
                forgotten.into_iter().for_each(|event| story.tell(event));
            }
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            events(by, exempt).into_iter().for_each(|event| rebuilt.apply(event));
            let plan = story.plan(i % 2 == 0 || matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
            claims.learn(&story.world);
            claims.check(&story.world, story.world.now)?;
        }
    }
}

/// When the grace of a preempted job ends.
pub fn kill_at(job: &JobSnapshot) -> Option<Timestamp> {
    Some(job.attempt.as_ref()?.preempted.as_ref()?.kill_at)
}
