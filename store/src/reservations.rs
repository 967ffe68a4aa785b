//! Reservations: made and changed by administrators, kept up by the leader. Who chooses their nodes is told what there is to choose from
//! while nobody else can make one.

use std::collections::BTreeSet;
use std::sync::Arc;

use berth_model::event::Event;
use berth_model::reservation::{Busy, Reservation, ReservationFlag, ReservationSpec, ReserveGround, ReservedPart, Window, nodes_of};
use berth_model::state::Hold;
use berth_model::step::StopReason;
use berth_model::{JobId, Name, NodeName};
use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;
use sqlx::{FromRow, QueryBuilder};

use crate::db::At;
use crate::events::{self, NewEvent};
use crate::feed;
use crate::jobs::accrual::accrue;
use crate::lease::Epoch;
use crate::settle;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// A reservation as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationRow {
    pub spec: ReservationSpec,
    /// The present time, or the next one.
    pub window: Window,
    pub parts: Vec<ReservedPart>,
    pub created_by: String,
    pub created_at: Timestamp,
    /// Since when no job runs in it.
    pub idle_since: Timestamp,
    /// Jobs that run in it.
    pub running: u32,
    pub version: i64,
}

impl ReservationRow {
    /// As the scheduler is told of it.
    pub fn reservation(&self) -> Reservation {
        Reservation::of(&self.spec, self.window, self.parts.clone())
    }

    /// All its nodes, in the order of its parts.
    pub fn nodes(&self) -> Vec<NodeName> {
        nodes_of(&self.parts)
    }

    /// It keeps its nodes at this time. One that floats never does.
    pub fn lasts_at(&self, at: Timestamp) -> bool {
        self.spec.float_seconds.is_none() && self.window.start <= at && at < self.window.end
    }
}

#[derive(FromRow)]
struct Row {
    spec: Json<ReservationSpec>,
    start_time: At,
    end_time: At,
    parts: Json<Vec<ReservedPart>>,
    created_by: String,
    created_at: At,
    idle_since: At,
    running: i64,
    version: i64,
}

impl From<Row> for ReservationRow {
    fn from(row: Row) -> Self {
        ReservationRow {
            spec: row.spec.0,
            window: Window { start: row.start_time.0, end: row.end_time.0 },
            parts: row.parts.0,
            created_by: row.created_by,
            created_at: row.created_at.0,
            idle_since: row.idle_since.0,
            running: row.running.max(0) as u32,
            version: row.version,
        }
    }
}

/// What becomes of a reservation that the leader looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum Tended {
    /// Its next time has come, or it has other nodes.
    Changed { window: Window, parts: Vec<ReservedPart> },
    /// It is over, or was idle for too long.
    Gone { reason: String },
}

const SELECT: &str = "select r.spec, r.start_time, r.end_time, r.parts, r.created_by, r.created_at, r.idle_since, r.version,
        (select count(*) from attempts a where a.reservation = r.name and a.ended_at is null) as running
     from reservations r";

async fn rows(connection: &mut PgConnection, only: Option<&str>, for_update: bool) -> Result<Vec<ReservationRow>, StoreError> {
    let mut query = QueryBuilder::<sqlx::Postgres>::new(SELECT);
    if let Some(name) = only {
        query.push(" where r.name = ").push_bind(name.to_owned());
    }
    query.push(" order by r.name").push(if for_update { " for update of r" } else { "" });
    let rows: Vec<Row> = query.build_query_as().fetch_all(connection).await?;
    Ok(rows.into_iter().map(ReservationRow::from).collect())
}

/// All reservations as one event.
pub(crate) async fn event(connection: &mut PgConnection) -> Result<Event, StoreError> {
    let rows = rows(connection, None, false).await?;
    Ok(Event::Reservations(rows.iter().map(ReservationRow::reservation).collect()))
}

/// Nobody else makes or changes a reservation until the transaction ends.
async fn lock(tx: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("lock table reservations in share row exclusive mode").execute(tx).await?;
    Ok(())
}

async fn ground(tx: &mut PgConnection) -> Result<ReserveGround, StoreError> {
    let mut ground = ReserveGround {
        reservations: rows(tx, None, false).await?.iter().map(ReservationRow::reservation).collect(),
        ..Default::default()
    };
    for event in feed::nodes(tx, None).await?.into_iter().chain(feed::partitions(tx).await?) {
        match event {
            Event::Node(node) => ground.nodes.push(Arc::from(node)),
            Event::Partition(partition) => ground.partitions.push(partition),
            _ => {}
        }
    }
    let busy: Vec<(String, i64, At, Option<String>)> = sqlx::query_as(
        "select s.node, s.job_id, coalesce(a.started_at, a.allocated_at) + j.time_limit * interval '1 second', a.reservation
         from assignments s join attempts a on a.job_id = s.job_id and a.attempt = s.attempt join jobs j on j.job_id = s.job_id
         order by s.node, s.job_id",
    )
    .fetch_all(tx)
    .await?;
    for (node, job, until, reservation) in busy {
        let reservation = reservation.and_then(|name| Name::new(name).ok());
        ground.busy.push(Busy { node: feed::node_name(&node)?, job: JobId(job as u64), until: until.0, reservation });
    }
    Ok(ground)
}

async fn changed(tx: &mut PgConnection, name: &str, what: &str) -> Result<(), StoreError> {
    let detail = Some(serde_json::json!({ "reservation": name, "change": what }));
    events::append(tx, &[NewEvent { kind: "reservation.changed", detail, ..NewEvent::default() }]).await
}

impl Db {
    /// All reservations, by name.
    pub async fn reservations(&self) -> Result<Vec<ReservationRow>, StoreError> {
        rows(&mut *self.pool.acquire().await?, None, false).await
    }

    pub async fn reservation(&self, name: &str) -> Result<ReservationRow, StoreError> {
        let found = rows(&mut *self.pool.acquire().await?, Some(name), false).await?;
        found.into_iter().next().ok_or_else(|| StoreError::NotFound(format!("reservation {name}")))
    }

    /// Makes a reservation with the nodes that `choose` finds. `Conflict` if there is one of that name.
    pub async fn create_reservation<E: From<StoreError>>(
        &self,
        spec: &ReservationSpec,
        window: Window,
        by: &str,
        choose: impl FnOnce(&ReserveGround) -> Result<Vec<ReservedPart>, E> + Send,
    ) -> Result<ReservationRow, E> {
        let mut tx = self.pool.begin().await.map_err(StoreError::from)?;
        lock(&mut tx).await?;
        let ground = ground(&mut tx).await?;
        if ground.reservations.iter().any(|other| other.name == spec.name) {
            return Err(StoreError::Conflict {
                code: "already_exists",
                detail: format!("there is a reservation {} already", spec.name),
                help: "choose another name, or change the existing one with PATCH".to_owned(),
            }
            .into());
        }
        let parts = choose(&ground)?;
        sqlx::query("insert into reservations (name, spec, start_time, end_time, parts, created_by) values ($1, $2, $3, $4, $5, $6)")
            .bind(spec.name.as_str())
            .bind(Json(spec))
            .bind(At(window.start))
            .bind(At(window.end))
            .bind(Json(&parts))
            .bind(by)
            .execute(&mut *tx)
            .await
            .map_err(StoreError::from)?;
        changed(&mut tx, spec.name.as_str(), "created").await?;
        tx.commit().await.map_err(StoreError::from)?;
        self.wake.notify(Topic::Events);
        Ok(self.reservation(spec.name.as_str()).await?)
    }

    /// Changes a reservation under the version the caller saw. `change` is told the present one and what there is to choose from.
    pub async fn update_reservation<E: From<StoreError>>(
        &self,
        name: &str,
        expected: Option<i64>,
        change: impl FnOnce(&ReservationRow, &ReserveGround) -> Result<(ReservationSpec, Window, Vec<ReservedPart>), E> + Send,
    ) -> Result<ReservationRow, E> {
        let mut tx = self.pool.begin().await.map_err(StoreError::from)?;
        lock(&mut tx).await?;
        let found = rows(&mut tx, Some(name), true).await?.into_iter().next();
        let found = found.ok_or_else(|| StoreError::NotFound(format!("reservation {name}")))?;
        if expected.is_some_and(|expected| expected != found.version) {
            return Err(StoreError::StaleVersion(format!("reservation {name}")).into());
        }
        let (spec, window, parts) = change(&found, &ground(&mut tx).await?)?;
        sqlx::query("update reservations set spec = $2, start_time = $3, end_time = $4, parts = $5, version = version + 1 where name = $1")
            .bind(name)
            .bind(Json(&spec))
            .bind(At(window.start))
            .bind(At(window.end))
            .bind(Json(&parts))
            .execute(&mut *tx)
            .await
            .map_err(StoreError::from)?;
        changed(&mut tx, name, "updated").await?;
        tx.commit().await.map_err(StoreError::from)?;
        self.wake.notify(Topic::Events);
        Ok(self.reservation(name).await?)
    }

    /// Removes a reservation in which no job runs. `Conflict` if one does. Jobs that wait for it are held, or let go.
    pub async fn delete_reservation(&self, name: &str, by: &str) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        lock(&mut tx).await?;
        let found = rows(&mut tx, Some(name), true).await?.into_iter().next();
        let found = found.ok_or_else(|| StoreError::NotFound(format!("reservation {name}")))?;
        if found.running > 0 {
            return Err(StoreError::Conflict {
                code: "reservation_in_use",
                detail: match found.running {
                    1 => format!("a job runs in reservation {name}"),
                    count => format!("{count} jobs run in reservation {name}"),
                },
                help: "wait until they have ended, or cancel them first".to_owned(),
            });
        }
        remove(&mut tx, &found, &format!("reservation {name} was deleted by {by}")).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// Keeps reservations up: `decide` says of each what becomes of it, told what there is to choose from if
    /// `looks_at_nodes`. Jobs that run on in one that is
    /// over are told to stop `overrun_seconds` after its end, if that is given. `Fenced` if the epoch has passed.
    pub async fn tend_reservations(
        &self,
        epoch: Epoch,
        overrun_seconds: Option<u64>,
        grace_seconds: u64,
        looks_at_nodes: bool,
        decide: impl Fn(&ReservationRow, Option<&ReserveGround>) -> Option<Tended> + Send,
    ) -> Result<usize, StoreError> {
        let is_any: bool = sqlx::query_scalar("select exists (select from reservations)").fetch_one(&self.pool).await?;
        if !is_any {
            return Ok(0);
        }
        let mut tx = self.begin_fenced(epoch).await?;
        lock(&mut tx).await?;
        sqlx::query(
            "update reservations r set idle_since = now() where r.spec ? 'purge_after_seconds'
                 and exists (select from attempts a where a.reservation = r.name and a.ended_at is null)",
        )
        .execute(&mut *tx)
        .await?;
        let all = rows(&mut tx, None, true).await?;
        let ground = if looks_at_nodes { Some(ground(&mut tx).await?) } else { None };
        let mut count = 0;
        for row in &all {
            let name = row.spec.name.as_str();
            let tended = decide(row, ground.as_ref());
            if tended.is_some() {
                note_end(&mut tx, row).await?;
            }
            match tended {
                None => continue,
                Some(Tended::Changed { window, parts }) => {
                    sqlx::query(
                        "update reservations set start_time = $2, end_time = $3, parts = $4, version = version + 1 where name = $1",
                    )
                    .bind(name)
                    .bind(At(window.start))
                    .bind(At(window.end))
                    .bind(Json(&parts))
                    .execute(&mut *tx)
                    .await?;
                    changed(&mut tx, name, "tended").await?;
                }
                Some(Tended::Gone { reason }) => remove(&mut tx, row, &reason).await?,
            }
            count += 1;
        }
        let nodes = match overrun_seconds {
            Some(seconds) => stop_overrun(&mut tx, seconds, grace_seconds).await?,
            None => Vec::new(),
        };
        tx.commit().await?;
        if count > 0 || !nodes.is_empty() {
            self.wake.notify_nodes(nodes.iter().map(String::as_str));
            self.wake.notify(Topic::Events);
        }
        Ok(count)
    }

    /// Nodes under maintenance now.
    pub(crate) async fn maintained_nodes(&self) -> Result<Vec<String>, StoreError> {
        let now = Timestamp::now();
        let all = self.reservations().await?;
        let maintained = all.iter().filter(|row| row.spec.has(ReservationFlag::Maintenance) && row.lasts_at(now));
        Ok(maintained.flat_map(ReservationRow::nodes).map(NodeName::into_string).collect())
    }

    /// What reservations that last have and what of it is in use: name, whether it is for maintenance, resource, all of it, in use.
    pub async fn reservation_counts(&self) -> Result<Vec<(String, bool, &'static str, i64, i64)>, StoreError> {
        let now = Timestamp::now();
        let mut connection = self.pool.acquire().await?;
        let mut lasting = rows(&mut connection, None, false).await?;
        lasting.retain(|row| row.lasts_at(now));
        if lasting.is_empty() {
            return Ok(Vec::new());
        }
        let sizes: Vec<(String, i64, i64)> = sqlx::query_as(
            "select name, jsonb_array_length(inventory->'cpus')::bigint, jsonb_array_length(inventory->'gpus')::bigint from nodes",
        )
        .fetch_all(&mut *connection)
        .await?;
        let sizes: std::collections::BTreeMap<String, (i64, i64)> =
            sizes.into_iter().map(|(name, cpus, gpus)| (name, (cpus, gpus))).collect();
        let used: Vec<(String, i64, i64, i64)> = sqlx::query_as(
            "select a.reservation, count(distinct s.node), coalesce(sum(jsonb_array_length(s.allocation->'cpus') + coalesce(jsonb_array_length(s.allocation->'idle_cpus'), 0)), 0)::bigint,
                 coalesce(sum(jsonb_array_length(s.allocation->'gpus')), 0)::bigint
             from attempts a join assignments s on s.job_id = a.job_id and s.attempt = a.attempt
             where a.reservation is not null and a.ended_at is null group by 1",
        )
        .fetch_all(&mut *connection)
        .await?;
        let mut counts = Vec::new();
        for row in lasting {
            let name = row.spec.name.to_string();
            let (mut nodes, mut cpus, mut gpus) = (0, 0, 0);
            for part in &row.parts {
                for node in berth_model::hostlist::expand(&part.nodes)? {
                    let whole = sizes.get(node.as_str()).copied().unwrap_or((0, 0));
                    let own = part.share.as_ref().map(|share| (i64::from(share.cpus), share.gpus.values().map(|n| i64::from(*n)).sum()));
                    let (own_cpus, own_gpus) = own.unwrap_or(whole);
                    (nodes, cpus, gpus) = (nodes + 1, cpus + own_cpus, gpus + own_gpus);
                }
            }
            let held = used.iter().find(|(of, ..)| *of == name).map_or((0, 0, 0), |(_, nodes, cpus, gpus)| (*nodes, *cpus, *gpus));
            let is_maintenance = row.spec.has(ReservationFlag::Maintenance);
            counts.push((name.clone(), is_maintenance, "node", nodes, held.0));
            counts.push((name.clone(), is_maintenance, "cpu", cpus, held.1));
            counts.push((name, is_maintenance, "gpu", gpus, held.2));
        }
        Ok(counts)
    }
}

/// Removes a reservation. Jobs that wait for it lose its name; if it was their last one they are held, or go on without.
async fn remove(tx: &mut PgConnection, row: &ReservationRow, reason: &str) -> Result<(), StoreError> {
    let name = row.spec.name.as_str();
    let hold = (!row.spec.has(ReservationFlag::NoHoldJobsAfterEnd)).then_some(Hold::User.as_str());
    let waiting: Vec<i64> =
        sqlx::query_scalar("select job_id from jobs where state = 'pending' and planning->'reservations' ? $1 order by job_id for update")
            .bind(name)
            .fetch_all(&mut *tx)
            .await?;
    let touched: Vec<i64> = sqlx::query_scalar(
        "update jobs set planning = jsonb_set(planning, '{reservations}', (planning->'reservations') - $2),
             hold = case when planning->'reservations' <@ jsonb_build_array($2::text) then coalesce(hold, $3) else hold end,
             reason = case when planning->'reservations' <@ jsonb_build_array($2::text) then $4 else reason end, version = version + 1
         where job_id = any($1) returning job_id",
    )
    .bind(&waiting)
    .bind(name)
    .bind(hold)
    .bind(reason)
    .fetch_all(&mut *tx)
    .await?;
    if !touched.is_empty() {
        accrue(tx, &touched).await?;
    }
    let told: BTreeSet<i64> = touched.into_iter().collect();
    let detail = serde_json::json!({ "reservation": name, "reason": reason });
    let news = told.into_iter().map(|job| NewEvent {
        kind: "job.reservation_gone",
        job_id: Some(job),
        detail: Some(detail.clone()),
        ..NewEvent::default()
    });
    events::append(tx, &news.collect::<Vec<_>>()).await?;
    sqlx::query("delete from reservations where name = $1").bind(name).execute(&mut *tx).await?;
    changed(tx, name, "gone").await
}

/// Notes of jobs that run on after the end of their time, in a reservation that is not flex, when that was.
async fn note_end(tx: &mut PgConnection, row: &ReservationRow) -> Result<(), StoreError> {
    sqlx::query(
        "update attempts set reservation_over_at = $2 where reservation = $1 and ended_at is null and reservation_over_at is null
             and allocated_at < $2 and $2 <= now() and not $3",
    )
    .bind(row.spec.name.as_str())
    .bind(At(row.window.end))
    .bind(row.spec.has(ReservationFlag::Flex))
    .execute(tx)
    .await?;
    Ok(())
}

/// Tells jobs to stop whose time in their reservation was over so long ago. Returns the nodes to wake.
async fn stop_overrun(tx: &mut PgConnection, overrun_seconds: u64, grace_seconds: u64) -> Result<Vec<String>, StoreError> {
    let over: Vec<(i64, i32)> = sqlx::query_as(
        "select job_id, attempt from attempts
         where reservation is not null and ended_at is null and stop_reason is null
             and reservation_over_at + $1 * interval '1 second' <= now() order by 1",
    )
    .bind(overrun_seconds as f64)
    .fetch_all(&mut *tx)
    .await?;
    settle::lock_jobs(tx, &over.iter().map(|(job, _)| *job).collect::<Vec<_>>()).await?;
    settle::stop_attempts(tx, &over, StopReason::TimeLimit, grace_seconds).await
}
