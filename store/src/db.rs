//! The connection pool, migrations and readiness.

use std::str::FromStr;
use std::time::Duration;

use berth_migrations::{Migrator, MigratorTrait};
use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::StoreError;
use crate::wake::Wake;

/// Access to Postgres for one process. Cheap to clone; clones share the pool and the wake-ups.
#[derive(Clone, Debug)]
pub struct Db {
    pub(crate) pool: PgPool,
    pub(crate) orm: DatabaseConnection,
    pub wake: Wake,
}

impl Db {
    /// Connects to `url` (`postgres://…`) with at most `max_connections`, and starts to listen for wake-ups.
    pub async fn connect(url: &str, max_connections: u32) -> Result<Db, StoreError> {
        let options = PgConnectOptions::from_str(url)?.application_name("berth");
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(Duration::from_secs(5))
            // Pinging each connection before use costs a round trip a request; a broken one shows itself soon enough.
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        let orm = SqlxPostgresConnector::from_sqlx_postgres_pool(pool.clone());
        let wake = Wake::start(pool.clone());
        Ok(Db { pool, orm, wake })
    }

    /// Brings the schema up to date. Safe to run from several processes at once: an advisory lock makes them take turns.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut guard = self.pool.acquire().await?;
        sqlx::query("select pg_advisory_lock($1)").bind(MIGRATION_LOCK).execute(&mut *guard).await?;
        let outcome = Migrator::up(&self.orm, None).await;
        sqlx::query("select pg_advisory_unlock($1)").bind(MIGRATION_LOCK).execute(&mut *guard).await?;
        outcome?;
        Ok(())
    }

    /// Whether the database answers and has the schema this program needs.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let applied: i64 = sqlx::query_scalar("select count(*) from seaql_migrations").fetch_one(&self.pool).await?;
        if (applied as usize) < Migrator::migrations().len() {
            return Err(StoreError::Unavailable("migrations are pending; run `berth migrate`".to_owned()));
        }
        Ok(())
    }

    /// Connections in the pool now: (in use, idle).
    pub fn connections(&self) -> (u32, u32) {
        let (size, idle) = (self.pool.size(), self.pool.num_idle() as u32);
        (size.saturating_sub(idle), idle)
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

const MIGRATION_LOCK: i64 = 0x6265_7274_685f_6d69;

/// An instant as a column: microseconds, as Postgres keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct At(pub jiff::Timestamp);

impl At {
    fn to_db(self) -> time::OffsetDateTime {
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0.as_microsecond()) * 1000)
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
    }
}

impl From<time::OffsetDateTime> for At {
    fn from(at: time::OffsetDateTime) -> At {
        At(jiff::Timestamp::from_microsecond((at.unix_timestamp_nanos() / 1000) as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }
}

impl sqlx::Type<Postgres> for At {
    fn type_info() -> sqlx::postgres::PgTypeInfo {
        <time::OffsetDateTime as sqlx::Type<Postgres>>::type_info()
    }
}

impl sqlx::postgres::PgHasArrayType for At {
    fn array_type_info() -> sqlx::postgres::PgTypeInfo {
        <time::OffsetDateTime as sqlx::postgres::PgHasArrayType>::array_type_info()
    }
}

impl<'r> sqlx::Decode<'r, Postgres> for At {
    fn decode(value: sqlx::postgres::PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        Ok(<time::OffsetDateTime as sqlx::Decode<Postgres>>::decode(value)?.into())
    }
}

impl<'q> sqlx::Encode<'q, Postgres> for At {
    fn encode_by_ref(&self, buffer: &mut sqlx::postgres::PgArgumentBuffer) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
        <time::OffsetDateTime as sqlx::Encode<Postgres>>::encode(self.to_db(), buffer)
    }
}
