//! A running job gives nodes back. Their charges end in the transaction that says so; the nodes themselves are free for others when their
//! workers have ended what runs there.

use std::collections::BTreeMap;

use berth_model::job::JobSpec;
use berth_model::policy::{Partition, Policy};
use berth_model::resize::{self, Keep, PastCharge};
use berth_model::resources::{Inventory, NodeAllocation};
use berth_model::tres::Charge;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use super::control::wrong_state;
use super::submit::Planning;
use crate::StoreError;
use crate::db::At;
use crate::events::{self, NewEvent};

/// A running attempt as it stands.
#[derive(sqlx::FromRow)]
struct Run {
    spec: Json<JobSpec>,
    planning: Json<Planning>,
    allocation: Json<Vec<NodeAllocation>>,
    charge: Option<Json<Charge>>,
    past_charges: Option<Json<Vec<PastCharge>>>,
    started_at: Option<At>,
    partition: Option<Json<Partition>>,
    policy: Option<Json<Policy>>,
    now: At,
}

/// Lets go of all nodes of a running attempt but those to keep: steps there are stopped, and charges and the request are those of what is
/// kept. The caller holds the job's row and bumps the nodes that the attempt still has something on. `Refused` if it cannot be kept so;
/// `Conflict` if the job is in no state for it, or runs its own command on all its nodes.
pub(super) async fn shrink(tx: &mut PgConnection, job: i64, attempt: i32, state: &str, keep: &Keep) -> Result<(), StoreError> {
    if state != "running" {
        return Err(wrong_state(job as u64, state, "running"));
    }
    let run: Run = sqlx::query_as(
        "select j.spec, j.planning, a.allocation, a.charge, a.past_charges, a.started_at, p.spec as partition,
             (select spec from policy) as policy, now() as now
         from jobs j join attempts a on a.job_id = j.job_id and a.attempt = $2 left join partitions p on p.name = j.partition
         where j.job_id = $1 for update of a",
    )
    .bind(job)
    .bind(attempt)
    .fetch_one(&mut *tx)
    .await?;
    let kept = keep.of(&run.allocation.0).map_err(StoreError::Refused)?;
    if kept.len() == run.allocation.0.len() {
        return Ok(());
    }
    if run.spec.0.script.is_none() {
        return Err(StoreError::Conflict {
            code: "command_on_all_nodes",
            detail: format!("job {job} runs its own command on all its nodes"),
            help: "only jobs with a script can give nodes back; let the script run the command by srun".to_owned(),
        });
    }
    let policy = run.policy.map(|p| p.0).unwrap_or_default();
    let charge = new_charge(tx, &run.charge, &kept, run.partition.as_ref(), &policy).await?;
    let past = past_charges(run.past_charges, run.started_at, run.charge, run.now);
    let (mut spec, mut planning) = (run.spec.0, run.planning.0);
    resize::request(&mut spec.resources, &kept);
    resize::shape(&mut planning.shape, &kept);
    let names: Vec<&str> = kept.iter().map(|node| node.node.as_str()).collect();
    planning.required_nodes.retain(|node| names.contains(&node.as_str()));
    if spec.nodelist.is_some() {
        spec.nodelist = Some(berth_model::hostlist::fold(&planning.required_nodes)).filter(|list| !list.is_empty());
    }
    sqlx::query("update jobs set spec = $2, planning = $3 where job_id = $1")
        .bind(job)
        .bind(Json(&spec))
        .bind(Json(&planning))
        .execute(&mut *tx)
        .await?;
    sqlx::query("update attempts set nodes = $3, allocation = $4, charge = $5, past_charges = $6 where job_id = $1 and attempt = $2")
        .bind(job)
        .bind(attempt)
        .bind(&names)
        .bind(Json(&kept))
        .bind(Json(&charge))
        .bind(Json(&past))
        .execute(&mut *tx)
        .await?;
    stop_given_back(tx, job, attempt, &names, policy.kill_wait_seconds).await?;
    let given: Vec<&str> = run.allocation.0.iter().map(|node| node.node.as_str()).filter(|node| !names.contains(node)).collect();
    let detail = serde_json::json!({ "nodes": names, "given_back": given });
    let event = NewEvent { kind: "job.resized", job_id: Some(job), attempt: Some(attempt), detail: Some(detail), ..NewEvent::default() };
    events::append(tx, &[event]).await
}

/// Ends the attempt's parts on all nodes but `kept`, and on every node the steps that have a part on one of those.
async fn stop_given_back(tx: &mut PgConnection, job: i64, attempt: i32, kept: &[&str], grace_seconds: u64) -> Result<(), StoreError> {
    sqlx::query(
        "update step_nodes p set phase = 'stop' where job_id = $1 and attempt = $2 and result is null and exists (select from step_nodes o
             where o.job_id = p.job_id and o.attempt = p.attempt and o.step = p.step and o.result is null and o.node <> all($3))",
    )
    .bind(job)
    .bind(attempt)
    .bind(kept)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "update assignments set phase = 'stop', stop_reason = 'cancelled', grace_seconds = $4
         where job_id = $1 and attempt = $2 and node <> all($3) and phase <> 'stop'",
    )
    .bind(job)
    .bind(attempt)
    .bind(kept)
    .bind(grace_seconds as i64)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "update assignments s set node_index = k.place - 1 from unnest($3::text[]) with ordinality k (node, place)
         where s.job_id = $1 and s.attempt = $2 and s.node = k.node",
    )
    .bind(job)
    .bind(attempt)
    .bind(kept)
    .execute(tx)
    .await?;
    Ok(())
}

async fn new_charge(
    tx: &mut PgConnection,
    old: &Option<Json<Charge>>,
    kept: &[NodeAllocation],
    partition: Option<&Json<Partition>>,
    policy: &Policy,
) -> Result<Charge, StoreError> {
    let rows: Vec<(String, Json<Inventory>)> = sqlx::query_as("select name, inventory from nodes where name = any($1)")
        .bind(kept.iter().map(|node| node.node.as_str()).collect::<Vec<_>>())
        .fetch_all(tx)
        .await?;
    let inventories: BTreeMap<String, Inventory> = rows.into_iter().map(|(name, inventory)| (name, inventory.0)).collect();
    let old = old.as_ref().map(|charge| charge.0.clone()).unwrap_or_default();
    let weights = partition.map(|p| p.0.billing_weights.clone()).unwrap_or_default();
    let kind = |node: &berth_model::NodeName, index: u32| {
        let gpus = &inventories.get(node.as_str())?.gpus;
        gpus.iter().find(|gpu| gpu.index == index).map(|gpu| gpu.kind.clone())
    };
    Ok(resize::charge(&old, kept, kind, &weights, policy.billing))
}

/// What has been charged up to `now`.
fn past_charges(past: Option<Json<Vec<PastCharge>>>, started: Option<At>, charge: Option<Json<Charge>>, now: At) -> Vec<PastCharge> {
    let mut past = past.map(|past| past.0).unwrap_or_default();
    let began = past.last().map(|last| last.ended).or(started.map(|at| at.0)).unwrap_or(now.0);
    past.push(PastCharge { began, ended: now.0, charge: charge.map(|charge| charge.0).unwrap_or_default() });
    past
}
