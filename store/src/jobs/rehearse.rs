//! A submission that is taken back: what a job would be to the planner, with nothing kept of it.

use berth_model::event::{Event, JobSnapshot};

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
        let events = feed::jobs(&mut tx, Some(&[row.job_id.0 as i64])).await?;
        tx.rollback().await?;
        let snapshot = events.into_iter().find_map(|event| match event {
            Event::Job(snapshot) => Some(*snapshot),
            _ => None,
        });
        snapshot.ok_or_else(|| StoreError::Corrupt("a new job that is not pending".to_owned()))
    }
}
