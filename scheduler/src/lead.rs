//! One term of leadership: snapshot, then events in, plans out, each commit fenced by the lease.

use std::time::{Duration, Instant};

use berth_engine::{Engine, Plan};
use berth_model::JobId;
use berth_model::event::Event;
use berth_model::policy::Policy;
use berth_model::sluid::RunIds;
use berth_store::feed::Position;
use berth_store::lease::Lease;
use berth_store::plan::NewAttempt;
use berth_store::wake::Topic;
use berth_store::{Db, StoreError};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::SchedulerMetrics;
use crate::written::Written;

/// Longest sleep without a wake-up: lost notifications cost no more than this.
const POLL: Duration = Duration::from_secs(1);
/// When committed events still hide behind an older transaction.
const SOON: Duration = Duration::from_millis(2);
/// Least time between two looks at silent nodes, and between renewals of the lease.
const CHORES: Duration = Duration::from_secs(1);

/// Least time between two full plans that nothing but the time asks for.
const FULL_EVERY: Duration = Duration::from_millis(500);
/// Full plans take at most one part in so many of the leader's time.
const FULL_SHARE: u32 = 4;

/// Leads until `stopping` (`Ok`) or until something fails.
pub async fn lead(db: &Db, lease: &mut Lease, metrics: &SchedulerMetrics, stopping: &mut watch::Receiver<bool>) -> Result<(), StoreError> {
    db.ensure_partitions().await?;
    let mut wake = db.wake.subscribe(Topic::Events);
    let (events, position) = db.snapshot().await?;
    let mut term = Term {
        db,
        metrics,
        engine: Engine::new(),
        policy: Policy::default(),
        position,
        run_ids: RunIds::new(1, None),
        written: Written::default(),
        began: Instant::now(),
        full: None,
    };
    term.apply(events);
    let mut chores_at = Instant::now();
    let mut is_changed = true;
    // When the oldest event that no plan has heeded was written.
    let mut heard: Option<Timestamp> = None;
    loop {
        wake.mark_unchanged();
        let mut pause = POLL;
        let news = db.read_feed(&mut term.position).await?;
        if news.is_partial {
            pause = SOON;
        }
        is_changed |= !news.events.is_empty();
        heard = heard.or(news.oldest);
        term.apply(news.events);
        if chores_at.elapsed() >= CHORES {
            chores_at = Instant::now();
            lease.renew().await?;
            term.lose_silent_nodes(lease).await?;
        }
        let now = Timestamp::now();
        if is_changed {
            let plan = term.plan(now);
            metrics.pending.set(term.engine.queue_depth() as i64);
            is_changed = term.commit(lease, &plan).await?;
            if let Some(oldest) = heard.take() {
                // Two clocks of one site: a small lead of the database's is no time at all.
                metrics.decision.observe((Timestamp::now().as_microsecond() - oldest.as_microsecond()).max(0) as f64 / 1e6);
            }
            if is_changed {
                continue;
            }
            pause = pause.min(until(plan.wake_at, now));
        }
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
            _ = tokio::time::timeout(pause, wake.changed()) => {}
        }
        // Time alone may change the plan: priorities age, begin times and limits pass.
        is_changed |= pause < POLL || Timestamp::now() >= now + Duration::from_millis(900);
    }
}

fn until(wake_at: Option<Timestamp>, now: Timestamp) -> Duration {
    match wake_at {
        Some(at) if at > now => Duration::try_from(at.duration_since(now)).unwrap_or(POLL),
        Some(_) => SOON,
        None => POLL,
    }
}

struct Term<'a> {
    db: &'a Db,
    metrics: &'a SchedulerMetrics,
    engine: Engine,
    policy: Policy,
    position: Position,
    run_ids: RunIds,
    written: Written,
    began: Instant,
    /// When the last full plan was made, and what it cost.
    full: Option<(Instant, Duration)>,
}

impl Term<'_> {
    /// Events are answered by a quick plan; a full one, which ranks everything anew, is made now and then.
    fn plan(&mut self, now: Timestamp) -> Plan {
        let begun = Instant::now();
        let is_due = self.full.is_none_or(|(at, cost)| at.elapsed() >= FULL_EVERY.max(cost * FULL_SHARE));
        let plan = if is_due { self.engine.plan(now) } else { self.engine.quick_plan(now) };
        if plan.is_full {
            self.full = Some((begun, begun.elapsed()));
        }
        self.metrics.plan.observe(begun.elapsed().as_secs_f64());
        plan
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            match &event {
                Event::Policy(policy) => self.policy = *policy,
                Event::JobGone(job) => {
                    self.written.forget(*job);
                }
                _ => {}
            }
            self.engine.apply(event);
        }
    }

    /// Writes a plan. `true`: the world has changed by it, so that another plan is due.
    async fn commit(&mut self, lease: &Lease, plan: &Plan) -> Result<bool, StoreError> {
        let mut is_changed = false;
        if !plan.starts.is_empty() {
            is_changed |= self.commit_starts(lease, plan).await?;
        }
        if !plan.expired.is_empty() {
            self.db.expire_jobs(lease.epoch(), &plan.expired).await?;
            self.refresh(&plan.expired).await?;
            is_changed = true;
        }
        if !plan.overdue.is_empty() {
            self.db.stop_overdue(lease.epoch(), &plan.overdue, self.policy.kill_wait_seconds).await?;
            self.refresh(&plan.overdue).await?;
        }
        let news = self.written.take(&plan.verdicts, plan.now, Instant::now());
        self.db.write_verdicts(lease.epoch(), plan.now, &news).await?;
        Ok(is_changed)
    }

    /// Commits the starts; the engine then sees the jobs as the database has them. `true` if some were refused.
    async fn commit_starts(&mut self, lease: &Lease, plan: &Plan) -> Result<bool, StoreError> {
        let unix_ms = plan.now.as_millisecond().max(0) as u64;
        let starts: Vec<NewAttempt> = plan
            .starts
            .iter()
            .map(|s| NewAttempt { job: s.job, array_index: s.array_index, nodes: s.nodes.clone(), run_id: self.run_ids.issue(unix_ms) })
            .collect();
        let committed = self.db.commit_starts(lease.epoch(), &starts).await?;
        let mut touched = Vec::new();
        for index in &committed.conflicts {
            self.engine.retract(starts[*index].job, starts[*index].array_index);
            touched.push(starts[*index].job);
        }
        for (index, runs_as) in &committed.started {
            self.engine.confirm(starts[*index].job, starts[*index].array_index);
            touched.extend([starts[*index].job, *runs_as]);
        }
        self.refresh(&touched).await?;
        self.metrics.starts.inc_by(committed.started.len() as u64);
        self.metrics.conflicts.inc_by(committed.conflicts.len() as u64);
        tracing::debug!(started = committed.started.len(), refused = committed.conflicts.len(), "plan committed");
        Ok(!committed.conflicts.is_empty())
    }

    async fn refresh(&mut self, jobs: &[JobId]) -> Result<(), StoreError> {
        let mut ids: Vec<i64> = jobs.iter().map(|j| j.0 as i64).collect();
        ids.sort_unstable();
        ids.dedup();
        let events = self.db.refresh_jobs(ids).await?;
        self.apply(events);
        Ok(())
    }

    /// Nodes silent for longer than they need to notice it themselves and kill what they run are given up.
    async fn lose_silent_nodes(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let timeout = Duration::from_secs(self.policy.node_timeout_seconds);
        let silence = timeout + (timeout / 5).max(Duration::from_secs(2));
        // After a takeover, or an outage of the database, workers first need time to be heard again.
        if self.began.elapsed() < silence {
            return Ok(());
        }
        for node in self.db.lose_silent_nodes(lease.epoch(), silence.as_millis() as i64).await? {
            tracing::warn!(%node, "node does not respond: marked down");
        }
        Ok(())
    }
}
