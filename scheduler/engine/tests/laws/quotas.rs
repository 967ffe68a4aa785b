//! Quotas over time: a random story of three tenants that lend each other CPUs, each plan checked by counting with other code.

use std::collections::BTreeMap;

use berth_engine::{Plan, Settings};
use berth_model::association::{Association, AssociationKey, Terms};
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::Policy;
use berth_model::preemption::PreemptMode;
use berth_model::quota::Quota;
use berth_model::tres::{Tres, TresCounts};
use berth_model::{JobId, Name};
use proptest::prelude::*;

use crate::world::{World, name};
use crate::{Happening, Story, any_fleet, any_happening};

const TENANTS: [&str; 3] = ["acme", "beta", "gamma"];

/// Of each tenant: CPUs that it is guaranteed, and how many of these it lends at the most.
#[derive(Clone, Debug)]
pub struct Cohort(Vec<(u64, Option<u64>)>);

fn any_cohort() -> impl Strategy<Value = Cohort> {
    prop::collection::vec((0u64..40, prop::option::of(0u64..30)), 3).prop_map(Cohort)
}

pub fn asked_by(job: JobSnapshot) -> JobSnapshot {
    JobSnapshot { tenant: name(TENANTS[job.id.0 as usize % 3]), ..job }
}

/// CPUs that the job holds.
fn held(job: &JobSnapshot) -> u64 {
    job.attempt.iter().flat_map(|attempt| &attempt.nodes).map(|part| part.cpus.len() as u64).sum()
}

impl Cohort {
    fn events(&self) -> Vec<Event> {
        let cpus = |count: u64| TresCounts::from([(Tres::Cpu, count)]);
        let of = |(tenant, (guaranteed, lent)): (&str, &(u64, Option<u64>))| {
            let quota = Quota {
                guaranteed: cpus(*guaranteed),
                cohort: Some(name("all")),
                lending_limit: lent.map(cpus).unwrap_or_default(),
                ..Quota::default()
            };
            let key = AssociationKey::tenant(name(tenant));
            Event::Associations {
                tenant: name(tenant),
                places: vec![Association { key, parent: None, terms: Terms { quota, ..Terms::default() } }],
            }
        };
        let policy = Policy { preempt_mode: PreemptMode::Cancel, kill_wait_seconds: 45, weight_fairshare: 0, ..Policy::default() };
        std::iter::once(Event::Policy(policy)).chain(TENANTS.into_iter().zip(&self.0).map(of)).collect()
    }

    fn guaranteed(&self, tenant: &Name) -> u64 {
        self.0[TENANTS.iter().position(|known| *known == tenant.as_str()).unwrap()].0
    }

    fn is_within_what_is_lent(&self, held: &BTreeMap<Name, u64>) -> bool {
        let of = |tenant: &str| held.get(&name(tenant)).copied().unwrap_or(0);
        let both = || TENANTS.into_iter().zip(&self.0);
        let borrowed: u64 = both().map(|(tenant, (guaranteed, _))| of(tenant).saturating_sub(*guaranteed)).sum();
        let lent: u64 =
            both().map(|(tenant, (guaranteed, most))| guaranteed.saturating_sub(of(tenant)).min(most.unwrap_or(u64::MAX))).sum();
        borrowed <= lent
    }

    /// Starts are within their tenants' guarantees, or within what is lent then; victims are of tenants that borrow, and no more of them go
    /// than have borrowed; whom they go for stays within its guarantee.
    fn check(&self, world: &World, plan: &Plan) -> Result<(), TestCaseError> {
        let mut sums: BTreeMap<Name, u64> = BTreeMap::new();
        world.running.values().for_each(|job| *sums.entry(job.tenant.clone()).or_default() += held(job));
        let before = sums.clone();
        for start in &plan.starts {
            let tenant = &world.pending[&start.job].tenant;
            let sum = sums.entry(tenant.clone()).or_default();
            *sum += start.nodes.iter().map(|part| part.cpus.len() as u64).sum::<u64>();
            let is_own = *sum <= self.guaranteed(tenant);
            prop_assert!(is_own || self.is_within_what_is_lent(&sums), "job {} borrows too much: {:?}", start.job, sums);
        }
        for verdict in plan.verdicts.iter().filter(|verdict| verdict.verdicts[0].code == "cohort_quota") {
            prop_assert!(verdict.planned_start.is_none() && verdict.verdicts[0].have.is_some());
        }
        let tenant_of = |job: &JobId| world.running[job].tenant.clone();
        let mut gone: BTreeMap<Name, Vec<u64>> = BTreeMap::new();
        for job in world.running.values().filter(|job| job.attempt.as_ref().is_some_and(|attempt| attempt.preempted.is_some())) {
            gone.entry(job.tenant.clone()).or_default().push(held(job));
        }
        for preemption in &plan.preemptions {
            let victim = &world.running[&preemption.victim];
            prop_assert_ne!(&victim.tenant, &world.pending[&preemption.for_job].tenant);
            gone.entry(tenant_of(&victim.id)).or_default().push(held(victim));
        }
        for tenant in plan.preemptions.iter().map(|preemption| tenant_of(&preemption.victim)) {
            let gone = &gone[&tenant];
            let left = before[&tenant] - gone.iter().sum::<u64>() + gone.iter().max().unwrap();
            prop_assert!(left > self.guaranteed(&tenant), "{} goes below its own: {} of {}", tenant, left, self.guaranteed(&tenant));
        }
        let waiting = world.pending.values().filter(|job| job.claim.is_some()).map(|job| job.id);
        let mut claimed: BTreeMap<Name, u64> = BTreeMap::new();
        for id in waiting.chain(plan.claims.iter().map(|new| new.job)).filter(|id| !plan.starts.iter().any(|start| start.job == *id)) {
            let job = &world.pending[&id];
            *claimed.entry(job.tenant.clone()).or_default() += u64::from(job.shape.tasks * job.shape.cpus_per_task);
        }
        for new in &plan.claims {
            let tenant = &world.pending[&new.job].tenant;
            let sum = before.get(tenant).copied().unwrap_or(0) + claimed[tenant];
            prop_assert!(sum <= self.guaranteed(tenant), "{} reclaims more than its own: {} of {}", tenant, sum, self.guaranteed(tenant));
        }
        Ok(())
    }
}

proptest! {
    /// Nobody borrows more than is lent, nobody who borrows nothing gives way, and the same events make the same plan, also in an engine
    /// that begins now.
    #[test]
    fn what_is_lent_is_lent_and_comes_back(
        kinds in any_fleet(),
        cohort in any_cohort(),
        happenings in prop::collection::vec(any_happening(), 1..60),
    ) {
        let mut story = Story::new(&kinds);
        cohort.events().into_iter().for_each(|event| story.tell(event));
        story.cohort = Some(cohort.clone());
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            cohort.events().into_iter().for_each(|event| rebuilt.apply(event));
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
        }
    }
}

impl Story {
    /// Checks a plan under quotas.
    pub fn check_quotas(&self, plan: &Plan) -> Result<(), TestCaseError> {
        self.cohort.as_ref().map_or(Ok(()), |cohort| cohort.check(&self.world, plan))
    }
}
