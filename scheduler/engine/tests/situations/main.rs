//! Why is it pending? In each of these situations the first verdict names the rule and the object that bind, its advice is one that a
//! person can follow, and who follows it sees the job start.

#[path = "../common/mod.rs"]
mod common;
mod of_jobs;
mod of_limits;
mod of_nodes;
mod of_reservations;
mod world;

use berth_engine::Plan;
use berth_model::JobId;
use world::{ASKED, World};

pub struct Situation {
    pub is: &'static str,
    pub made: fn(&mut World),
    pub code: &'static str,
    pub object: &'static str,
    pub advice: &'static str,
    pub follow: fn(&mut World),
}

fn starts(plan: &Plan) -> bool {
    plan.starts.iter().any(|start| start.job == JobId(ASKED))
}

#[test]
fn each_situation_is_told_and_its_advice_helps() {
    let situations: Vec<&Situation> =
        [of_jobs::SITUATIONS, of_nodes::SITUATIONS, of_limits::SITUATIONS, of_reservations::SITUATIONS].into_iter().flatten().collect();
    assert!(situations.len() >= 25);
    let mut wrong = Vec::new();
    for situation in situations {
        let mut world = World::new();
        (situation.made)(&mut world);
        let plan = world.plan();
        let told = plan.verdicts.iter().find(|verdict| verdict.job == JobId(ASKED)).and_then(|verdict| verdict.verdicts.first());
        let found = told.map(|v| (v.code.as_str(), v.object.as_str(), v.advice.as_deref().unwrap_or_default()));
        if starts(&plan) || found != Some((situation.code, situation.object, situation.advice)) {
            wrong.push(format!("{}: {found:?}", situation.is));
            continue;
        }
        (situation.follow)(&mut world);
        let plan = world.plan();
        if !starts(&plan) {
            wrong.push(format!("{}: who follows the advice still waits: {:?}", situation.is, plan.verdicts));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
