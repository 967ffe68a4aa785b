//! Limits on submitted jobs: counted and heeded in the transaction that inserts, so that two submissions cannot both take the last place.
//!
//! What counts together is locked by its name (advisory, until the transaction ends), in order of names. Only submissions that such a
//! limit binds pay for it. Each task of an array counts.

use std::collections::BTreeMap;

use berth_model::Fault;
use berth_model::association::AssociationKey;
use berth_model::limit::{Bound, Scope};
use sqlx::QueryBuilder;
use sqlx::postgres::{PgConnection, Postgres};

use super::submit::NewJob;
use crate::StoreError;

/// `Refused` if with `jobs` more would wait and run than a limit allows.
pub(crate) async fn heed(tx: &mut PgConnection, jobs: &[NewJob]) -> Result<(), StoreError> {
    let mut asked: BTreeMap<&Scope, (&Bound, u64)> = BTreeMap::new();
    for job in jobs {
        let count = job.array.as_ref().map_or(1, |array| array.indices.len() as u64);
        for bound in &job.submit_limits {
            asked.entry(&bound.scope).or_insert((bound, 0)).1 += count;
        }
    }
    for scope in asked.keys() {
        sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 1))").bind(format!("submit {scope}")).execute(&mut *tx).await?;
    }
    for (scope, (bound, more)) in asked {
        let open = open_jobs(tx, scope).await?;
        if open + more > bound.limit {
            return Err(StoreError::Refused(refusal(bound, open, more)));
        }
    }
    Ok(())
}

fn refusal(bound: &Bound, open: u64, more: u64) -> Fault {
    let field = if matches!(bound.scope, Scope::Association(_)) { "account" } else { "qos" };
    let detail = format!("the limit {} of {} holds: {open} jobs wait or run, {more} more are submitted", bound.words(), bound.scope);
    Fault::new(bound.code, field, detail, "submit again when some have ended, or ask an administrator to raise the limit")
}

/// Jobs and tasks that wait or hold nodes.
async fn open_jobs(tx: &mut PgConnection, scope: &Scope) -> Result<u64, StoreError> {
    let mut query = QueryBuilder::<Postgres>::new(
        "select coalesce(sum(case when j.array_total is null then 1 else j.array_left end), 0)::bigint
         from jobs j where j.state in ('pending', 'allocated', 'running', 'suspended', 'completing')",
    );
    match scope {
        Scope::Association(AssociationKey { tenant, account, user }) => {
            query.push(" and j.tenant = ").push_bind(tenant.to_string());
            if let Some(account) = account {
                match user {
                    Some(user) => {
                        query.push(" and j.account = ").push_bind(account.to_string());
                        query.push(" and j.user_name = ").push_bind(user.to_string());
                    }
                    None => {
                        query.push(" and j.account in (with recursive below as (select ").push_bind(account.to_string());
                        query.push(" as name union select a.name from below join accounts a on a.parent = below.name and a.tenant = ");
                        query.push_bind(tenant.to_string()).push(") select name from below)");
                    }
                }
            }
        }
        Scope::Qos(qos) => of_qos(&mut query, qos.as_str()),
        Scope::Cohort(cohort) => {
            query
                .push(" and j.tenant in (select name from tenants where terms->'quota'->>'cohort' = ")
                .push_bind(cohort.to_string())
                .push(")");
        }
        Scope::QosUser { qos, tenant, user } => {
            of_qos(&mut query, qos.as_str());
            query.push(" and j.tenant = ").push_bind(tenant.to_string()).push(" and j.user_name = ").push_bind(user.to_string());
        }
        Scope::QosAccount { qos, tenant, account } => {
            of_qos(&mut query, qos.as_str());
            query.push(" and j.tenant = ").push_bind(tenant.to_string()).push(" and j.account = ").push_bind(account.to_string());
        }
    }
    Ok(query.build_query_scalar::<i64>().fetch_one(tx).await?.unsigned_abs())
}

/// Jobs under the QOS, and those in partitions whose own it is.
fn of_qos(query: &mut QueryBuilder<Postgres>, qos: &str) {
    query.push(" and (j.qos = ").push_bind(qos.to_owned());
    query.push(" or j.partition in (select name from partitions where spec->>'qos' = ").push_bind(qos.to_owned()).push("))");
}
