//! The record of decisions: chunks that the leader writes, and reads of them from a checkpoint on.

use futures::{Stream, StreamExt};
use jiff::Timestamp;

use crate::db::At;
use crate::lease::Epoch;
use crate::{Db, StoreError};

/// A piece of the record. Pieces of a term follow each other without gap.
#[derive(Clone, Debug)]
pub struct DecisionChunk {
    /// Counted from 0 in each term.
    pub number: i64,
    pub is_checkpoint: bool,
    /// Clock of the first and of the last step in it.
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// A zstd frame.
    pub body: Vec<u8>,
}

/// Chunks to read: of one term, from a checkpoint on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRange {
    epoch: i64,
    first: i64,
    last: i64,
}

impl Db {
    pub async fn write_decisions(&self, epoch: Epoch, chunk: &DecisionChunk) -> Result<(), StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        sqlx::query("insert into decision_chunks (epoch, number, is_checkpoint, first_at, last_at, body) values ($1, $2, $3, $4, $5, $6)")
            .bind(epoch.0)
            .bind(chunk.number)
            .bind(chunk.is_checkpoint)
            .bind(At(chunk.first_at))
            .bind(At(chunk.last_at))
            .bind(&chunk.body)
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Forgets what ended more than `keep_seconds` ago; of a term that still goes on, up to its last checkpoint before that.
    pub async fn purge_decisions(&self, epoch: Epoch, keep_seconds: u64) -> Result<u64, StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        let gone = sqlx::query(
            "with bound as (select now() - $1 * interval '1 second' as at)
             delete from decision_chunks c using bound
             where c.last_at < bound.at
                 and not exists (select from decision_chunks k where k.epoch = c.epoch and k.last_at >= bound.at
                     and c.number >= (select max(p.number) from decision_chunks p
                         where p.epoch = c.epoch and p.is_checkpoint and p.number <= k.number and p.first_at < bound.at))",
        )
        .bind(keep_seconds as i64)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(gone.rows_affected())
    }

    /// What is needed to replay decisions up to the plan at `at`. `None`: the record does not reach back so far.
    pub async fn decisions_until(&self, at: Timestamp) -> Result<Option<DecisionRange>, StoreError> {
        let row: Option<(i64, i64, i64)> = sqlx::query_as(
            "select k.epoch, k.number, (select max(c.number) from decision_chunks c where c.epoch = k.epoch and c.first_at <= $1)
             from decision_chunks k where k.is_checkpoint and k.first_at <= $1 order by k.epoch desc, k.number desc limit 1",
        )
        .bind(At(at))
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|(epoch, first, last)| DecisionRange { epoch, first, last }))
    }

    /// The bodies of a range, in order.
    pub fn decision_bodies(&self, range: DecisionRange) -> impl Stream<Item = Result<Vec<u8>, StoreError>> + Send + 'static {
        let pool = self.pool.clone();
        futures::stream::iter(range.first..=range.last).then(move |number| {
            let pool = pool.clone();
            async move {
                let body: Option<Vec<u8>> = sqlx::query_scalar("select body from decision_chunks where epoch = $1 and number = $2")
                    .bind(range.epoch)
                    .bind(number)
                    .fetch_optional(&pool)
                    .await?;
                body.ok_or_else(|| StoreError::NotFound("a part of the record of decisions".to_owned()))
            }
        })
    }
}
