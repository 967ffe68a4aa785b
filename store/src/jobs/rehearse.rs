//! Submissions and changes that are taken back: what a job would be to the planner, with nothing kept of it.

use berth_model::event::{Event, JobSnapshot};
use sqlx::Acquire;
use sqlx::postgres::PgConnection;

use super::change::{JobChange, apply};
use super::submit::{NewJob, add_dependencies, insert};
use crate::{Db, StoreError, feed};

impl Db {
    /// What the feed would tell the engine of `job` if it were submitted now. The job is stored with its dependencies, read, and rolled
    /// back, so the same is refused as by a submission. Its id, above all others, is used up and means no job.
    pub async fn rehearse(&self, job: &NewJob) -> Result<JobSnapshot, StoreError> {
        let mut tx = self.pool.begin().await?;
        let submitted = insert(&mut tx, std::slice::from_ref(job)).await?;
        let Some(row) = submitted.first() else { return Err(StoreError::Corrupt("a submission without a row".to_owned())) };
        add_dependencies(&mut tx, job, row.job_id).await?;
        let snapshot = snapshot(&mut tx, row.job_id.0).await?;
        tx.rollback().await?;
        snapshot.ok_or_else(|| StoreError::Corrupt("a new job that is not pending".to_owned()))
    }

    /// What the feed would tell the engine of a pending job after each of these changes, each taken by itself; none where a change would
    /// be refused. Nothing is kept.
    pub async fn rehearse_changes(&self, job: u64, version: i64, changes: &[JobChange]) -> Result<Vec<Option<JobSnapshot>>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let mut tx = connection.begin().await?;
        let mut snapshots = Vec::with_capacity(changes.len());
        for change in changes {
            let mut attempt = tx.begin().await?;
            snapshots.push(match apply(&mut attempt, job, version, change, false).await {
                Ok(_) => snapshot(&mut attempt, job).await?,
                Err(StoreError::Refused(_)) => None,
                Err(error) => return Err(error),
            });
            attempt.rollback().await?;
        }
        tx.rollback().await?;
        Ok(snapshots)
    }

    /// What the feed would tell the engine of a pending job now.
    pub async fn job_snapshot(&self, job: u64) -> Result<Option<JobSnapshot>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        snapshot(&mut connection, job).await
    }
}

async fn snapshot(connection: &mut PgConnection, job: u64) -> Result<Option<JobSnapshot>, StoreError> {
    let events = feed::jobs(connection, Some(&[job as i64])).await?;
    Ok(events.into_iter().find_map(|event| match event {
        Event::Job(snapshot) => Some(*snapshot),
        _ => None,
    }))
}
