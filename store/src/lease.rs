//! Leadership: a lease row with an epoch for fencing, and a session advisory lock for quick takeover.
//!
//! The lock tells a standby at once that the leader's process is gone; the row's expiry covers a leader that is cut off while its
//! session lingers. Taking the lease raises the epoch, and every transaction of a leader first checks that its epoch still stands.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Postgres, Transaction};

use crate::{Db, StoreError};

const LEADER_LOCK: i64 = 0x6265_7274_685f_6c64;
const NAME: &str = "scheduler";

/// Leadership held. Dropping it frees the advisory lock with its session.
#[derive(Debug)]
pub struct Lease {
    pub epoch: i64,
    pub holder: String,
    ttl: Duration,
    session: PgConnection,
    has_lock: bool,
}

/// The part of a lease that transactions check.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(pub i64);

/// A standby's session, kept from one try to the next: to log in costs more than to ask.
#[derive(Debug, Default)]
pub struct Candidate(Option<PgConnection>);

impl Db {
    /// Tries to become leader. `None`: another one leads.
    pub async fn try_lead(&self, candidate: &mut Candidate, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError> {
        let mut session = match candidate.0.take() {
            Some(session) => session,
            None => PgConnection::connect_with(&self.pool.connect_options()).await?,
        };
        let has_lock: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LEADER_LOCK).fetch_one(&mut session).await?;
        // With the lock in hand the former leader's process is gone; without it only an expired lease may be taken.
        let epoch: Option<i64> = sqlx::query_scalar(
            "insert into leases as l (name, holder, epoch, expires_at) values ($1, $2, 1, now() + $3 * interval '1 millisecond')
             on conflict (name) do update set holder = $2, epoch = l.epoch + 1, expires_at = excluded.expires_at
             where $4 or l.expires_at < now()
             returning epoch",
        )
        .bind(NAME)
        .bind(holder)
        .bind(ttl.as_millis() as i64)
        .bind(has_lock)
        .fetch_optional(&mut session)
        .await?;
        // A session that failed is not kept: the errors above have dropped it.
        match epoch {
            Some(epoch) => Ok(Some(Lease { epoch, holder: holder.to_owned(), ttl, session, has_lock })),
            None => {
                candidate.0 = Some(session);
                Ok(None)
            }
        }
    }

    /// Who leads now, for status pages: holder, epoch, whether the lease is still valid.
    pub async fn leader(&self) -> Result<Option<(String, i64, bool)>, StoreError> {
        Ok(sqlx::query_as("select holder, epoch, expires_at > now() from leases where name = $1")
            .bind(NAME)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Begins a transaction of the leader; `Fenced` if its epoch has passed.
    pub(crate) async fn begin_fenced(&self, epoch: Epoch) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let holds: Option<i64> = sqlx::query_scalar("select epoch from leases where name = $1 and epoch = $2 for share")
            .bind(NAME)
            .bind(epoch.0)
            .fetch_optional(&mut *tx)
            .await?;
        if holds.is_none() {
            return Err(StoreError::Fenced);
        }
        Ok(tx)
    }
}

impl Lease {
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    /// Extends the lease; `Fenced` if it was taken. Tries for the advisory lock if the lease was won by expiry.
    pub async fn renew(&mut self) -> Result<(), StoreError> {
        if !self.has_lock {
            self.has_lock = sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LEADER_LOCK).fetch_one(&mut self.session).await?;
        }
        let renewed = sqlx::query("update leases set expires_at = now() + $3 * interval '1 millisecond' where name = $1 and epoch = $2")
            .bind(NAME)
            .bind(self.epoch)
            .bind(self.ttl.as_millis() as i64)
            .execute(&mut self.session)
            .await?;
        if renewed.rows_affected() == 0 { Err(StoreError::Fenced) } else { Ok(()) }
    }

    /// Gives leadership up, so that a standby need not wait.
    pub async fn release(mut self) -> Result<(), StoreError> {
        sqlx::query("update leases set expires_at = now() where name = $1 and epoch = $2")
            .bind(NAME)
            .bind(self.epoch)
            .execute(&mut self.session)
            .await?;
        Ok(self.session.close().await?)
    }
}
