//! Submissions and changes that are taken back: what a job would be to the planner, with nothing kept of it.

use berth_model::event::{Event, JobSnapshot};
use sqlx::Acquire;
use sqlx::postgres::PgConnection;

use super::change::{JobChange, apply};
use super::submit::{NewJob, add_dependencies, insert};
use crate::{Db, StoreError, feed};

impl Db {
    /// What the feed would tell the engine of these jobs (one, or the components of one) if they were submitted now. They are stored with
    /// their dependencies, read, and rolled back, so the same is refused as by a submission. Their ids, above all others, are used up and
    /// mean no jobs.
    pub async fn rehearse(&self, jobs: &[NewJob]) -> Result<Vec<JobSnapshot>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let submitted = insert(&mut tx, jobs).await?;
        let mut snapshots = Vec::with_capacity(jobs.len());
        for (job, row) in jobs.iter().zip(&submitted) {
            add_dependencies(&mut tx, job, row.job_id).await?;
        }
        for row in &submitted {
            let found = snapshot(&mut tx, row.job_id.0).await?;
            snapshots.push(found.ok_or_else(|| StoreError::Corrupt("a new job that is not pending".to_owned()))?);
        }
        tx.rollback().await?;
        Ok(snapshots)
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
        Event::Job(snapshot) if snapshot.id.0 == job => Some(*snapshot),
        _ => None,
    }))
}
