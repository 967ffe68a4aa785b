//! Licences: how many of each the cluster has, and how many are in use.

use berth_model::event::Event;
use berth_model::license::License;
use sqlx::FromRow;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use crate::admin::{Versioned, put_spec};
use crate::events::{self, NewEvent};
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A licence as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LicenseRow {
    pub license: License,
    /// Held by attempts that have not ended.
    pub used: u64,
    pub version: i64,
}

#[derive(FromRow)]
struct Row {
    spec: Json<License>,
    used: i64,
    version: i64,
}

// What an attempt holds is among what it is charged for.
const SELECT: &str = "select l.spec, l.version, coalesce(u.used, 0)::bigint as used from licenses l left join lateral (
        select sum((a.charge->'tres'->>('license/' || l.name))::bigint) as used from jobs j
        join attempts a on a.job_id = j.job_id and a.attempt = j.attempt
        where j.state in ('allocated', 'running', 'suspended', 'completing') and a.charge->'tres' ? ('license/' || l.name)) u on true
     where $1::text is null or l.name = $1 order by l.name";

impl From<Row> for LicenseRow {
    fn from(row: Row) -> Self {
        LicenseRow { license: row.spec.0, used: row.used.max(0) as u64, version: row.version }
    }
}

/// All licences as one event.
pub(crate) async fn event(connection: &mut PgConnection) -> Result<Event, StoreError> {
    let specs: Vec<Json<License>> = sqlx::query_scalar("select spec from licenses order by name").fetch_all(connection).await?;
    Ok(Event::Licenses(specs.into_iter().map(|spec| spec.0).collect()))
}

async fn changed(connection: &mut PgConnection) -> Result<(), StoreError> {
    events::append(connection, &[NewEvent { kind: "license.changed", ..NewEvent::default() }]).await
}

impl Db {
    /// All licences, by name.
    pub async fn licenses(&self) -> Result<Vec<LicenseRow>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(SELECT).bind(None::<&str>).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(LicenseRow::from).collect())
    }

    pub async fn license(&self, name: &str) -> Result<LicenseRow, StoreError> {
        let row: Option<Row> = sqlx::query_as(SELECT).bind(name).fetch_optional(&self.pool).await?;
        row.map(LicenseRow::from).ok_or_else(|| StoreError::NotFound(format!("license {name}")))
    }

    /// Those that admission knows, without asking who holds them.
    pub async fn license_totals(&self) -> Result<Vec<License>, StoreError> {
        let specs: Vec<Json<License>> = sqlx::query_scalar("select spec from licenses order by name").fetch_all(&self.pool).await?;
        Ok(specs.into_iter().map(|spec| spec.0).collect())
    }

    /// Makes a licence, or changes how many there are; `StaleVersion` if it is not at `expected` any more. What is in use stays in use.
    pub async fn put_license(&self, license: &License, expected: Option<i64>) -> Result<Versioned<License>, StoreError> {
        let mut tx = self.pool.begin().await?;
        put_spec(&mut tx, "licenses", license.name.as_str(), expected, license).await?;
        let version: i64 =
            sqlx::query_scalar("select version from licenses where name = $1").bind(license.name.as_str()).fetch_one(&mut *tx).await?;
        changed(&mut tx).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(Versioned { value: license.clone(), version })
    }

    /// Deletes a licence that no live job asks for. `Conflict` otherwise: a total of 0 lets nothing more start with it.
    pub async fn delete_license(&self, name: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let found: Option<i64> =
            sqlx::query_scalar("select version from licenses where name = $1 for update").bind(name).fetch_optional(&mut *tx).await?;
        found.ok_or_else(|| StoreError::NotFound(format!("license {name}")))?;
        let is_used: bool = sqlx::query_scalar(
            "select exists (select from jobs j, jsonb_array_elements(j.planning->'licenses') s
                 where j.state in ('pending', 'allocated', 'running', 'suspended', 'completing') and s ? $1)",
        )
        .bind(name)
        .fetch_one(&mut *tx)
        .await?;
        if is_used {
            return Err(StoreError::Conflict {
                code: "in_use",
                detail: format!("jobs ask for license {name}"),
                help: "wait for them, or set its total to 0: then nothing more starts with it".to_owned(),
            });
        }
        sqlx::query("delete from licenses where name = $1").bind(name).execute(&mut *tx).await?;
        changed(&mut tx).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }
}
