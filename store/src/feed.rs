//! The leader's view of the database: a snapshot to begin with, then the ordered feed of events.
//!
//! An event only names an object; the feed fetches the object's present state, so that a repeated event is harmless and a gap is
//! repaired by the next one. Only rows of transactions below the oldest running one are read, in (xid, seq) order.

use std::collections::BTreeSet;

use berth_model::component::ComponentOf;
use berth_model::dependency::{Dependency, DependencyKind, DependencyProgress, DependencyStatus};
use berth_model::event::{ArrayProgress, Event, JobSnapshot, RunningAttempt, TaskOf};
use berth_model::job::RequeueSpec;
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::{Claim, Preempted, Suspension};
use berth_model::resize::PastCharge;
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;
use berth_model::tres::Charge;
use berth_model::{Indices, JobId, Name, NodeName};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::db::At;
use crate::jobs::array::indices_of;
use crate::jobs::submit::Planning;
use crate::{Db, StoreError};
use crate::{licenses, reservations, shares, usage};

/// How far the feed has been read: the transaction id below which all is known, as text of `xid8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    xid: i64,
    seq: i64,
}

/// News since a position.
#[derive(Debug, Default)]
pub struct News {
    pub events: Vec<Event>,
    /// When the oldest of the rows read was written, for the latency of decisions.
    pub oldest: Option<jiff::Timestamp>,
    /// More rows are waiting.
    pub is_partial: bool,
}

const BATCH: i64 = 20_000;

impl Db {
    /// Everything the engine must know, and the position from which the feed goes on.
    pub async fn snapshot(&self) -> Result<(Vec<Event>, Position), StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("set transaction isolation level repeatable read read only").execute(&mut *tx).await?;
        let xid: i64 = sqlx::query_scalar("select pg_snapshot_xmin(pg_current_snapshot())::text::bigint").fetch_one(&mut *tx).await?;
        let mut events = cluster(&mut tx).await?;
        events.push(reservations::event(&mut tx).await?);
        events.push(Event::Usage { rows: usage::rows(&mut tx).await?, counted: Vec::new() });
        events.extend(jobs(&mut tx, None).await?);
        tx.commit().await?;
        // Transactions at or above the snapshot's oldest running one are read again; that changes nothing where they were seen.
        Ok((events, Position { xid, seq: 0 }))
    }

    /// The cluster as it stands, without its jobs: policy, partitions, QOS, nodes, licences.
    pub async fn cluster(&self) -> Result<Vec<Event>, StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("set transaction isolation level repeatable read read only").execute(&mut *tx).await?;
        let events = cluster(&mut tx).await?;
        tx.commit().await?;
        Ok(events)
    }

    /// Reads on from `position` and moves it.
    pub async fn read_feed(&self, position: &mut Position) -> Result<News, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let rows: Vec<FeedRow> = sqlx::query_as(
            "select xid::text::bigint as xid, seq, at, kind, tenant, job_id, node from events
             where (xid, seq) > ($1::text::xid8, $2) and xid < pg_snapshot_xmin(pg_current_snapshot())
             order by xid, seq limit $3",
        )
        .bind(position.xid.to_string())
        .bind(position.seq)
        .bind(BATCH)
        .fetch_all(&mut *connection)
        .await?;
        let Some(last) = rows.last() else {
            // A committed event hides behind an older transaction that still runs: the reader should look again at once.
            let is_partial: bool = sqlx::query_scalar(
                "select exists (select from events where (xid, seq) > ($1::text::xid8, $2) and xid >= pg_snapshot_xmin(pg_current_snapshot()))",
            )
            .bind(position.xid.to_string())
            .bind(position.seq)
            .fetch_one(&mut *connection)
            .await?;
            return Ok(News { is_partial, ..News::default() });
        };
        let next = Position { xid: last.xid, seq: last.seq };
        let mut changed_jobs = BTreeSet::new();
        let mut changed_nodes = BTreeSet::new();
        let mut changed_tenants = BTreeSet::new();
        let (mut is_policy_changed, mut are_reservations_changed, mut are_licenses_changed) = (false, false, false);
        for row in &rows {
            changed_jobs.extend(row.job_id);
            changed_nodes.extend(row.node.clone().filter(|_| row.kind.starts_with("node.")));
            changed_tenants.extend(row.tenant.clone().filter(|_| row.kind == "shares.changed"));
            is_policy_changed |= row.kind.starts_with("policy.");
            are_reservations_changed |= row.kind == "reservation.changed";
            are_licenses_changed |= row.kind == "license.changed";
        }
        let mut events = Vec::new();
        if is_policy_changed {
            events.push(policy(&mut connection).await?);
            events.extend(partitions(&mut connection).await?);
            events.extend(qos(&mut connection).await?);
        }
        if are_reservations_changed {
            events.push(reservations::event(&mut connection).await?);
        }
        if are_licenses_changed {
            events.push(licenses::event(&mut connection).await?);
        }
        if !changed_tenants.is_empty() {
            let names: Vec<String> = changed_tenants.into_iter().collect();
            events.extend(shares::associations(&mut connection, Some(&names)).await?);
        }
        if !changed_nodes.is_empty() {
            let names: Vec<String> = changed_nodes.into_iter().collect();
            events.extend(nodes(&mut connection, Some(&names)).await?);
        }
        if !changed_jobs.is_empty() {
            events.extend(self.job_events_of(&mut connection, changed_jobs.into_iter().collect()).await?);
        }
        let is_partial = rows.len() as i64 == BATCH;
        let oldest = rows.iter().map(|r| r.at.0).min();
        *position = next;
        Ok(News { events, oldest, is_partial })
    }

    /// The present state of some jobs as events, straight from the database.
    pub async fn refresh_jobs(&self, jobs: Vec<i64>) -> Result<Vec<Event>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        self.job_events_of(&mut connection, jobs).await
    }

    async fn job_events_of(&self, connection: &mut PgConnection, ids: Vec<i64>) -> Result<Vec<Event>, StoreError> {
        jobs(connection, Some(&ids)).await
    }
}

#[derive(FromRow)]
struct FeedRow {
    xid: i64,
    seq: i64,
    at: At,
    kind: String,
    tenant: Option<String>,
    job_id: Option<i64>,
    node: Option<String>,
}

async fn cluster(connection: &mut PgConnection) -> Result<Vec<Event>, StoreError> {
    let mut events = vec![policy(connection).await?];
    events.extend(partitions(connection).await?);
    events.extend(qos(connection).await?);
    events.extend(shares::associations(connection, None).await?);
    events.extend(nodes(connection, None).await?);
    events.push(licenses::event(connection).await?);
    Ok(events)
}

async fn policy(connection: &mut PgConnection) -> Result<Event, StoreError> {
    let spec: Option<Json<Policy>> = sqlx::query_scalar("select spec from policy").fetch_optional(connection).await?;
    Ok(Event::Policy(spec.map(|s| s.0).unwrap_or_default()))
}

pub(crate) async fn partitions(connection: &mut PgConnection) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<Json<Partition>> = sqlx::query_scalar("select spec from partitions order by name").fetch_all(connection).await?;
    Ok(rows.into_iter().map(|r| Event::Partition(r.0)).collect())
}

async fn qos(connection: &mut PgConnection) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<Json<Qos>> = sqlx::query_scalar("select spec from qos order by name").fetch_all(connection).await?;
    Ok(rows.into_iter().map(|r| Event::Qos(r.0)).collect())
}

pub(crate) async fn nodes(connection: &mut PgConnection, only: Option<&[String]>) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<NodeFields> = sqlx::query_as(
        "select name, inventory, features, weight, is_down, flags, reason from nodes where $1::text[] is null or name = any($1) order by name",
    )
    .bind(only)
    .fetch_all(connection)
    .await?;
    let mut missing: BTreeSet<&str> = only.unwrap_or_default().iter().map(String::as_str).collect();
    let mut events = Vec::with_capacity(rows.len());
    for (name, inventory, features, weight, is_down, flags, reason) in &rows {
        missing.remove(name.as_str());
        events.push(Event::Node(Box::new(Node {
            name: node_name(name)?,
            inventory: inventory.0.clone(),
            features: features.iter().cloned().collect(),
            weight: (*weight).max(0) as u32,
            is_down: *is_down,
            flags: flags.iter().filter_map(|f| f.parse().ok()).collect(),
            reason: reason.clone(),
        })));
    }
    for gone in missing {
        events.push(Event::NodeRemoved(node_name(gone)?));
    }
    Ok(events)
}

type NodeFields = (String, Json<berth_model::resources::Inventory>, Vec<String>, i32, bool, Vec<String>, Option<String>);

/// Job depended upon, kind, delay in minutes, progress.
type DependencyFields = (i64, String, i32, String);

/// An array that another follows task by task: its id, whether it is over, its tasks that ended well.
type CorrespondingFields = (i64, bool, Indices);

#[derive(FromRow)]
struct LiveJob {
    job_id: i64,
    tenant: String,
    account: String,
    user_name: String,
    partition: String,
    qos: String,
    name: String,
    state: String,
    hold: Option<String>,
    planning: Json<Planning>,
    time_limit: i64,
    nice: i32,
    site_factor: i32,
    submit_time: At,
    accrues_since: Option<At>,
    not_before: Option<At>,
    deadline: Option<At>,
    is_expedited: bool,
    restarts: i32,
    failed_nodes: Vec<String>,
    array_pending: Option<String>,
    array_running: Option<i64>,
    array_job_id: Option<i64>,
    array_index: Option<i32>,
    array_throttle: Option<i64>,
    het_job_id: Option<i64>,
    het_offset: Option<i32>,
    het_size: Option<i32>,
    attempt: i32,
    allocated_at: Option<At>,
    started_at: Option<At>,
    checkpoint_at: Option<At>,
    is_requeueable: bool,
    preempted: Option<Json<Preempted>>,
    suspension: Option<Json<Suspension>>,
    suspended_ms: Option<i64>,
    claim: Option<Json<Claim>>,
    reservation: Option<String>,
    charge: Option<Json<Charge>>,
    past_charges: Option<Json<Vec<PastCharge>>>,
    held: Option<Json<Vec<NodeAllocation>>>,
    dependencies: Option<Json<Vec<DependencyFields>>>,
    corresponding: Option<Json<Vec<CorrespondingFields>>>,
}

pub(crate) async fn jobs(connection: &mut PgConnection, only: Option<&[i64]>) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<LiveJob> = sqlx::query_as(
        "select j.job_id, j.tenant, j.account, j.user_name, j.partition, j.qos, j.name, j.state, j.hold, j.planning, j.time_limit, j.nice,
             j.site_factor, j.submit_time, j.accrues_since, j.not_before, j.deadline, j.is_expedited, j.restarts, j.failed_nodes, j.array_pending,
             case when j.array_total is not null then (select count(*) from jobs t where t.array_job_id = j.job_id
                 and t.state in ('allocated', 'running', 'suspended', 'completing')) end as array_running,
             j.array_job_id, j.array_index, (select (p.planning->>'throttle')::bigint from jobs p where p.job_id = j.array_job_id) as array_throttle,
             j.het_job_id, j.het_offset, j.het_size, j.attempt, a.allocated_at, a.started_at, a.charge, a.past_charges, a.checkpoint_at, a.preempted, a.suspension, a.suspended_ms, a.reservation, case when j.state = 'pending' then j.claim end as claim,
             coalesce(j.spec->'requeue'->>'mode', 'requeue') <> 'never'
                 and j.restarts < coalesce((j.spec->'requeue'->>'max_restarts')::bigint, $2) as is_requeueable,
             case when j.state <> 'pending' then (select jsonb_agg(s.allocation order by s.node_index) from assignments s
                 where s.job_id = j.job_id and s.attempt = j.attempt) end as held,
             case when j.state = 'pending' then (select jsonb_agg(jsonb_build_array(d.on_job_id, d.kind, d.delay_minutes,
                     case when d.delay_minutes > 0 and d.progress = 'satisfied'
                          and now() < coalesce((select coalesce(o.start_time, o.end_time) from jobs o where o.job_id = d.on_job_id), now())
                              + d.delay_minutes * interval '1 minute'
                          then 'waiting'
                          when d.kind = 'aftercorr' and j.array_index is not null then coalesce((select case
                              when t.state = 'completed' then 'satisfied'
                              when t.state in ('pending', 'allocated', 'running', 'suspended', 'completing') then 'waiting' else 'never' end
                              from jobs t where t.array_job_id = d.on_job_id and t.array_index = j.array_index order by t.job_id desc limit 1), 'waiting')
                          else d.progress end) order by d.on_job_id, d.kind)
                 from job_dependencies d where d.job_id = j.job_id) end as dependencies,
             case when j.array_total is not null and j.state = 'pending' then (select jsonb_agg(jsonb_build_array(d.on_job_id,
                     o.state not in ('pending', 'allocated', 'running', 'suspended', 'completing'),
                     (select coalesce(string_agg(lower(r) || '-' || upper(r) - 1, ','), '') from (select unnest(range_agg(int4range(t.array_index, t.array_index + 1))) r
                         from jobs t where t.array_job_id = d.on_job_id and t.state = 'completed') done)))
                 from job_dependencies d join jobs o on o.job_id = d.on_job_id
                 where d.job_id = j.job_id and d.kind = 'aftercorr') end as corresponding
         from jobs j left join attempts a on a.job_id = j.job_id and a.attempt = j.attempt and j.state <> 'pending'
         where j.state in ('pending', 'allocated', 'running', 'suspended', 'completing') and ($1::bigint[] is null or j.job_id = any($1)
             or j.array_job_id = any($1) and j.state = 'pending'
             or j.job_id = any(array(select t.array_job_id from jobs t where t.job_id = any($1) and t.array_job_id is not null)))
         order by j.job_id",
    )
    .bind(only)
    .bind(i64::from(RequeueSpec::default().max_restarts))
    .fetch_all(connection)
    .await?;
    let mut missing: BTreeSet<i64> = only.unwrap_or_default().iter().copied().collect();
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        // An array's own row that waits for its last tasks is no work for the engine.
        if row.array_pending.is_some() && row.state != "pending" {
            continue;
        }
        missing.remove(&row.job_id);
        events.push(Event::Job(Box::new(row.snapshot()?)));
    }
    events.extend(missing.into_iter().map(|id| Event::JobGone(JobId(id as u64))));
    Ok(events)
}

impl LiveJob {
    fn snapshot(self) -> Result<JobSnapshot, StoreError> {
        let state: JobState = self.state.parse().map_err(|_| StoreError::Corrupt(format!("state {:?}", self.state)))?;
        let planning = self.planning.0;
        let mut excluded_nodes = planning.excluded_nodes;
        for node in &self.failed_nodes {
            let node = node_name(node)?;
            // What the user insists on is not avoided.
            if !planning.required_nodes.contains(&node) {
                excluded_nodes.insert(node);
            }
        }
        let reservation = self.reservation.as_deref().map(name).transpose()?;
        let attempt = self.allocated_at.filter(|_| state.is_active()).map(|allocated_at| RunningAttempt {
            number: self.attempt as u32,
            allocated_at: allocated_at.0,
            started_at: self.started_at.map(|at| at.0),
            charge: self.charge.map(|c| c.0).unwrap_or_default(),
            past: self.past_charges.map(|past| past.0).unwrap_or_default(),
            nodes: self.held.map(|h| h.0).unwrap_or_default(),
            checkpoint_at: self.checkpoint_at.map(|at| at.0),
            is_requeueable: self.is_requeueable,
            preempted: self.preempted.map(|p| p.0),
            suspension: self.suspension.map(|suspension| suspension.0),
            suspended_ms: self.suspended_ms.unwrap_or(0).max(0) as u64,
            reservation,
        });
        let mut dependencies =
            self.dependencies.map(|d| d.0).unwrap_or_default().into_iter().map(dependency_status).collect::<Result<Vec<_>, _>>()?;
        let mut pending = self.array_pending.as_deref().map(indices_of).transpose()?;
        for (array, is_over, done) in self.corresponding.map(|c| c.0).unwrap_or_default() {
            follow_tasks(&mut dependencies, pending.as_mut(), JobId(array as u64), is_over, &done);
        }
        Ok(JobSnapshot {
            id: JobId(self.job_id as u64),
            tenant: name(&self.tenant)?,
            account: name(&self.account)?,
            user: name(&self.user_name)?,
            partition: name(&self.partition)?,
            qos: name(&self.qos)?,
            name: self.name,
            state,
            hold: self.hold.as_deref().and_then(|h| h.parse().ok()),
            shape: planning.shape,
            time_limit: self.time_limit.max(0) as u64,
            submit_time: self.submit_time.0,
            accrues_since: self.accrues_since.map(|at| at.0),
            not_before: self.not_before.map(|at| at.0),
            deadline: self.deadline.map(|at| at.0),
            nice: self.nice,
            site_factor: self.site_factor,
            constraint: planning.constraint,
            choices: planning.choices,
            required_nodes: planning.required_nodes,
            excluded_nodes,
            is_expedited: self.is_expedited,
            restarts: self.restarts.max(0) as u32,
            dependencies,
            dependency_any: planning.dependency_any,
            is_singleton: planning.is_singleton,
            array: pending.map(|pending| ArrayProgress {
                pending,
                running: self.array_running.unwrap_or(0) as u32,
                throttle: planning.throttle,
            }),
            task_of: self.array_job_id.map(|array| TaskOf {
                array: JobId(array as u64),
                index: self.array_index.unwrap_or(0).max(0) as u32,
                throttle: self.array_throttle.and_then(|most| u32::try_from(most).ok()),
            }),
            component_of: self.het_job_id.map(|leader| ComponentOf {
                leader: JobId(leader as u64),
                offset: self.het_offset.unwrap_or(0).max(0) as u32,
                size: self.het_size.unwrap_or(0).max(0) as u32,
            }),
            attempt,
            claim: self.claim.map(|c| c.0),
            reservations: planning.reservations,
            licenses: planning.licenses,
        })
    }
}

/// `aftercorr` between arrays: only tasks whose counterpart ended well may start. The dependency counts as satisfied while there are such.
fn follow_tasks(dependencies: &mut [DependencyStatus], pending: Option<&mut Indices>, array: JobId, is_over: bool, done: &Indices) {
    let Some(pending) = pending else { return };
    let (ready, _) = pending.divide(done);
    let progress = match (ready.is_empty(), is_over) {
        (false, _) => DependencyProgress::Satisfied,
        (true, false) => DependencyProgress::Waiting,
        (true, true) => DependencyProgress::Never,
    };
    for status in dependencies.iter_mut().filter(|d| d.on.kind == DependencyKind::AfterCorr && d.on.job == array) {
        status.progress = progress;
    }
    if !ready.is_empty() {
        *pending = ready;
    }
}

fn dependency_status((job, kind, delay_minutes, progress): DependencyFields) -> Result<DependencyStatus, StoreError> {
    let kind: DependencyKind = match kind.as_str() {
        "after" => DependencyKind::After,
        "afterany" => DependencyKind::AfterAny,
        "afterok" => DependencyKind::AfterOk,
        "afternotok" => DependencyKind::AfterNotOk,
        "aftercorr" => DependencyKind::AfterCorr,
        other => return Err(StoreError::Corrupt(format!("dependency kind {other:?}"))),
    };
    let progress = match progress.as_str() {
        "satisfied" => DependencyProgress::Satisfied,
        "never" => DependencyProgress::Never,
        _ => DependencyProgress::Waiting,
    };
    Ok(DependencyStatus { on: Dependency { kind, job: JobId(job as u64), task: None, delay_minutes: delay_minutes as u32 }, progress })
}

pub(crate) fn name(text: &str) -> Result<Name, StoreError> {
    Name::new(text).map_err(|_| StoreError::Corrupt(format!("name {text:?}")))
}

pub(crate) fn node_name(text: &str) -> Result<NodeName, StoreError> {
    NodeName::new(text).map_err(|_| StoreError::Corrupt(format!("node {text:?}")))
}
