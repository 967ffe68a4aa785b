//! Since when a job's age counts: since it was eligible. It does not count during a hold or while a dependency is not met; a begin time
//! is when it begins. A requeue keeps it.

use sqlx::PgConnection;

use crate::StoreError;

/// Lets the ages of pending jobs count or not, as their holds and dependencies are now.
pub(crate) async fn accrue(tx: &mut PgConnection, jobs: &[i64]) -> Result<(), StoreError> {
    sqlx::query(
        "update jobs j set accrues_since = case when j.hold is null and m.is_met then coalesce(j.accrues_since, greatest(now(), j.not_before)) end
         from jobs k, lateral (select case when (k.planning->>'dependency_any')::boolean
                 then count(*) = 0 or bool_or(d.progress = 'satisfied') else coalesce(bool_and(d.progress = 'satisfied'), true) end as is_met
             from job_dependencies d where d.job_id = k.job_id and (d.kind <> 'aftercorr' or k.array_total is null)) m
         where k.job_id = any($1) and j.job_id = k.job_id and j.state = 'pending'",
    )
    .bind(jobs)
    .execute(tx)
    .await?;
    Ok(())
}
