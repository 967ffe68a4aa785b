//! Limits over time: a random story under limits of every kind, checked by counting what runs with other code.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::association::{Association, AssociationKey, Limits, Terms, UsageKey, UsageRow, Used};
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::{Policy, Qos};
use berth_model::tres::{Tres, TresCounts};
use proptest::prelude::*;

use crate::world::{World, name, taken};

/// Small numbers, so that they bind in small worlds.
#[derive(Clone, Debug)]
pub struct Rules {
    account_gpus: u64,
    account_nodes: u64,
    tenant_jobs: u32,
    user_jobs: u32,
    normal_cpus_per_user: u64,
    high_run_minutes: u64,
    gpus_per_job: u64,
    bio_minutes: u64,
}

pub fn any_rules() -> impl Strategy<Value = Rules> {
    (1u64..9, 1u64..5, 1u32..8, 1u32..5, 8u64..40, 60u64..2000, 1u64..8, 100u64..5000).prop_map(
        |(account_gpus, account_nodes, tenant_jobs, user_jobs, normal_cpus_per_user, high_run_minutes, gpus_per_job, bio_minutes)| Rules {
            account_gpus,
            account_nodes,
            tenant_jobs,
            user_jobs,
            normal_cpus_per_user,
            high_run_minutes,
            gpus_per_job,
            bio_minutes,
        },
    )
}

/// Two accounts of two users each.
pub fn asked_by(job: JobSnapshot) -> JobSnapshot {
    let (account, user) = [("ml", "ann"), ("ml", "bob"), ("bio", "ann"), ("bio", "eve")][job.id.0 as usize % 4];
    JobSnapshot { account: name(account), user: name(user), ..job }
}

impl Rules {
    pub fn events(&self) -> Vec<Event> {
        let counts = |tres: &[(Tres, u64)]| tres.iter().cloned().collect::<TresCounts>();
        let association = |key, terms| Association { key, parent: None, terms };
        let of_account = Limits {
            grp_tres: counts(&[(Tres::Gpu, self.account_gpus), (Tres::Node, self.account_nodes)]),
            max_tres_per_job: counts(&[(Tres::GpuType("h100".to_owned()), self.gpus_per_job)]),
            ..Limits::default()
        };
        let of_bio = Limits { grp_tres_minutes: counts(&[(Tres::Cpu, self.bio_minutes)]), ..Limits::default() };
        let bio = AssociationKey::account(name("acme"), name("bio"));
        let of_tenant = Limits { grp_jobs: Some(self.tenant_jobs), ..Limits::default() };
        let ml = AssociationKey::account(name("acme"), name("ml"));
        let high = Limits { grp_tres_run_minutes: counts(&[(Tres::Cpu, self.high_run_minutes)]), ..Limits::default() };
        let per_user = counts(&[(Tres::Cpu, self.normal_cpus_per_user)]);
        vec![
            Event::Policy(Policy { weight_fairshare: 0, half_life_seconds: 0, ..Policy::default() }),
            Event::Qos(Qos { max_tres_per_user: per_user, ..Qos::named(name("normal")) }),
            Event::Qos(Qos { priority: 100, limits: high, ..Qos::named(name("high")) }),
            Event::Associations {
                tenant: name("acme"),
                places: vec![
                    association(ml, Terms { limits: of_account, max_jobs: Some(self.user_jobs), ..Terms::default() }),
                    association(bio, Terms { limits: of_bio, ..Terms::default() }),
                    association(AssociationKey::tenant(name("acme")), Terms { limits: of_tenant, ..Terms::default() }),
                ],
            },
        ]
    }

    /// What an engine that begins now is told of the past.
    pub fn past(world: &World) -> Event {
        let row = |(key, used): (&UsageKey, &Used)| UsageRow { key: key.clone(), as_of: crate::world::at(world.now), used: used.clone() };
        Event::Usage { rows: world.spent.iter().map(row).collect(), counted: Vec::new() }
    }

    /// Counts everything that runs.
    pub fn check(&self, world: &World) -> Result<(), TestCaseError> {
        let running: Vec<&JobSnapshot> = world.running.values().collect();
        prop_assert!(running.len() as u32 <= self.tenant_jobs);
        let ml: Vec<&&JobSnapshot> = running.iter().filter(|job| job.account.as_str() == "ml").collect();
        let parts = |job: &JobSnapshot| job.attempt.as_ref().unwrap().nodes.clone();
        let gpus: u64 = ml.iter().flat_map(|job| parts(job)).map(|part| part.gpus.len() as u64).sum();
        prop_assert!(gpus <= self.account_gpus, "{} GPUs in ml, {} allowed", gpus, self.account_gpus);
        let nodes: BTreeSet<_> = ml.iter().flat_map(|job| parts(job)).map(|part| part.node).collect();
        prop_assert!(nodes.len() as u64 <= self.account_nodes);
        for job in &ml {
            let of_node = |part: &berth_model::resources::NodeAllocation| taken(world.node(&part.node), part).2.get("h100").copied();
            let h100s: u64 = parts(job).iter().filter_map(of_node).sum();
            prop_assert!(h100s <= self.gpus_per_job);
        }
        let mut jobs: BTreeMap<_, u32> = BTreeMap::new();
        ml.iter().for_each(|job| *jobs.entry(&job.user).or_default() += 1);
        prop_assert!(jobs.values().all(|jobs| *jobs <= self.user_jobs));
        let mut cpus: BTreeMap<_, u64> = BTreeMap::new();
        for job in running.iter().filter(|job| job.qos.as_str() == "normal") {
            *cpus.entry(&job.user).or_default() += parts(job).iter().map(|part| part.cpus.len() as u64).sum::<u64>();
        }
        prop_assert!(cpus.values().all(|cpus| *cpus <= self.normal_cpus_per_user), "{:?}", cpus);
        let high = running.iter().filter(|job| job.qos.as_str() == "high");
        let seconds: i64 = high
            .map(|job| {
                let cpus: usize = parts(job).iter().map(|part| part.cpus.len()).sum();
                cpus as i64 * (World::limit(job).as_second() - crate::world::at(world.now).as_second()).max(0)
            })
            .sum();
        prop_assert!(seconds <= 60 * self.high_run_minutes as i64);
        // All that has been used, and all that may be used up to the time limits of what runs.
        let bio = |key: &&UsageKey| key.user.account.as_ref().is_some_and(|account| account.as_str() == "bio");
        let spent: f64 = world.spent.keys().filter(bio).filter_map(|key| world.spent[key].tres.get(&Tres::Cpu)).sum();
        let whole = |job: &&JobSnapshot| parts(job).iter().map(|part| part.cpus.len()).sum::<usize>() as f64 * job.time_limit as f64;
        let running: f64 = running.iter().filter(|job| job.account.as_str() == "bio").map(whole).sum();
        prop_assert!(spent + running <= 60.0 * self.bio_minutes as f64, "{} + {} of {} minutes", spent, running, self.bio_minutes);
        Ok(())
    }
}
