//! Use that has ended: the leader folds each ended attempt into its usage row exactly once. Rows and marks change in one fenced
//! transaction, so that neither a restart nor a takeover loses use or counts it twice.

use std::collections::BTreeMap;

use berth_model::association::{AssociationKey, EndedRun, UsageKey, UsageRow, Used};
use berth_model::resize::PastCharge;
use berth_model::tres::Charge;
use berth_model::{JobId, Name};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::db::At;
use crate::feed::name;
use crate::lease::Epoch;
use crate::{Db, StoreError};

/// Attempts folded in one transaction.
const BATCH: i64 = 2000;

/// What a transaction has folded.
#[derive(Debug, Default)]
pub struct Folded {
    /// The rows as they are now.
    pub rows: Vec<UsageRow>,
    pub counted: Vec<(JobId, u32)>,
    /// There is more.
    pub is_partial: bool,
}

#[derive(sqlx::FromRow)]
struct Ended {
    job_id: i64,
    attempt: i32,
    tenant: String,
    account: String,
    user_name: String,
    qos: String,
    started_at: Option<At>,
    ended_at: At,
    charge: Option<Json<Charge>>,
    past_charges: Option<Json<Vec<PastCharge>>>,
}

#[derive(sqlx::FromRow)]
struct Row {
    tenant: String,
    account: String,
    user_name: String,
    qos: String,
    partition_qos: String,
    as_of: At,
    used: Json<Used>,
}

impl Ended {
    /// Its intervals, each with what was charged for in it: one, unless it gave nodes back while it ran.
    fn runs(self) -> Result<Vec<EndedRun>, StoreError> {
        let charge = self.charge.map(|c| c.0).unwrap_or_default();
        let user = AssociationKey::user(name(&self.tenant)?, name(&self.account)?, name(&self.user_name)?);
        let key = UsageKey { user, qos: name(&self.qos)?, partition_qos: charge.partition_qos.clone() };
        let (job, attempt) = (JobId(self.job_id as u64), self.attempt as u32);
        let past = self.past_charges.map(|past| past.0).unwrap_or_default();
        // An attempt that never started has used nothing.
        let began = past.last().map(|last| last.ended).or(self.started_at.map(|at| at.0)).unwrap_or(self.ended_at.0);
        let last = PastCharge { began, ended: self.ended_at.0, charge };
        let run = |PastCharge { began, ended, charge }| EndedRun { job, attempt, key: key.clone(), began, ended, charge };
        Ok(past.into_iter().chain([last]).map(run).collect())
    }
}

impl Row {
    fn usage(self) -> Result<UsageRow, StoreError> {
        let partition_qos = if self.partition_qos.is_empty() { None } else { Some(name(&self.partition_qos)?) };
        let user = AssociationKey::user(name(&self.tenant)?, name(&self.account)?, name(&self.user_name)?);
        Ok(UsageRow { key: UsageKey { user, qos: name(&self.qos)?, partition_qos }, as_of: self.as_of.0, used: self.used.0 })
    }
}

/// All usage rows.
pub(crate) async fn rows(connection: &mut PgConnection) -> Result<Vec<UsageRow>, StoreError> {
    let rows: Vec<Row> =
        sqlx::query_as("select tenant, account, user_name, qos, partition_qos, as_of, used from usage_rows order by 1, 2, 3, 4, 5")
            .fetch_all(connection)
            .await?;
    rows.into_iter().map(Row::usage).collect()
}

impl Db {
    /// Takes ended attempts that are in no row yet, the first to end first, and writes what `fold` makes of the rows concerned and of
    /// them. `Fenced` if the epoch has passed.
    pub async fn fold_ended(
        &self,
        epoch: Epoch,
        fold: impl FnOnce(&BTreeMap<UsageKey, UsageRow>, &[EndedRun]) -> Vec<UsageRow> + Send,
    ) -> Result<Folded, StoreError> {
        let mut tx = self.begin_fenced(epoch).await?;
        let ended: Vec<Ended> = sqlx::query_as(
            "select a.job_id, a.attempt, j.tenant, j.account, j.user_name, j.qos, a.started_at, a.ended_at, a.charge, a.past_charges
             from attempts a join jobs j on j.job_id = a.job_id
             where a.ended_at is not null and not a.is_counted order by a.ended_at, a.job_id limit $1 for update of a",
        )
        .bind(BATCH)
        .fetch_all(&mut *tx)
        .await?;
        if ended.is_empty() {
            return Ok(Folded::default());
        }
        let is_partial = ended.len() as i64 == BATCH;
        let counted: Vec<(JobId, u32)> = ended.iter().map(|run| (JobId(run.job_id as u64), run.attempt as u32)).collect();
        let ended: Vec<EndedRun> = ended.into_iter().map(Ended::runs).collect::<Result<Vec<_>, _>>()?.concat();
        let known = rows_of(&mut tx, &ended).await?;
        let rows = fold(&known, &ended);
        write(&mut tx, &rows).await?;
        sqlx::query(
            "update attempts a set is_counted = true from unnest($1::bigint[], $2::int[]) u (job_id, attempt)
             where a.job_id = u.job_id and a.attempt = u.attempt",
        )
        .bind(counted.iter().map(|(job, _)| job.0 as i64).collect::<Vec<_>>())
        .bind(counted.iter().map(|(_, attempt)| *attempt as i32).collect::<Vec<_>>())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Folded { rows, counted, is_partial })
    }
}

/// The rows that these runs go into, as far as there are any.
async fn rows_of(tx: &mut PgConnection, ended: &[EndedRun]) -> Result<BTreeMap<UsageKey, UsageRow>, StoreError> {
    let columns = Columns::of(ended.iter().map(|run| &run.key));
    let rows: Vec<Row> = sqlx::query_as(
        "select distinct r.tenant, r.account, r.user_name, r.qos, r.partition_qos, r.as_of, r.used
         from usage_rows r join unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) u (tenant, account, user_name, qos, partition_qos)
         using (tenant, account, user_name, qos, partition_qos)",
    )
    .bind(columns.0)
    .bind(columns.1)
    .bind(columns.2)
    .bind(columns.3)
    .bind(columns.4)
    .fetch_all(tx)
    .await?;
    rows.into_iter().map(|row| row.usage().map(|usage| (usage.key.clone(), usage))).collect()
}

async fn write(tx: &mut PgConnection, rows: &[UsageRow]) -> Result<(), StoreError> {
    let columns = Columns::of(rows.iter().map(|row| &row.key));
    sqlx::query(
        "insert into usage_rows (tenant, account, user_name, qos, partition_qos, as_of, used)
         select u.tenant, u.account, u.user_name, u.qos, u.partition_qos, u.as_of, u.used::jsonb
         from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
             u (tenant, account, user_name, qos, partition_qos, as_of, used)
         on conflict (tenant, account, user_name, qos, partition_qos) do update set as_of = excluded.as_of, used = excluded.used",
    )
    .bind(columns.0)
    .bind(columns.1)
    .bind(columns.2)
    .bind(columns.3)
    .bind(columns.4)
    .bind(rows.iter().map(|row| At(row.as_of)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| serde_json::to_string(&row.used)).collect::<Result<Vec<_>, _>>()?)
    .execute(tx)
    .await?;
    Ok(())
}

/// Keys as columns.
#[derive(Default)]
struct Columns(Vec<String>, Vec<String>, Vec<String>, Vec<String>, Vec<String>);

impl Columns {
    fn of<'a>(keys: impl Iterator<Item = &'a UsageKey>) -> Columns {
        let mut columns = Columns::default();
        let text = |name: &Option<Name>| name.as_ref().map_or_else(String::new, Name::to_string);
        for key in keys {
            columns.0.push(key.user.tenant.to_string());
            columns.1.push(text(&key.user.account));
            columns.2.push(text(&key.user.user));
            columns.3.push(key.qos.to_string());
            columns.4.push(text(&key.partition_qos));
        }
        columns
    }
}
