//! One term of leadership: snapshot, then events in, plans out, each commit fenced by the lease.

use std::time::{Duration, Instant};

use berth_engine::{Plan, Preemption, Resume};
use berth_model::JobId;
use berth_model::event::Event;
use berth_model::policy::Policy;
use berth_model::preemption::{Claim, Preempted};
use berth_model::sluid::RunIds;
use berth_model::verdict::Decision;
use berth_store::decisions::DecisionChunk;
use berth_store::feed::Position;
use berth_store::lease::Lease;
use berth_store::plan::NewAttempt;
use berth_store::preempt::NewVictim;
use berth_store::suspend::NewResume;
use berth_store::wake::Topic;
use berth_store::{Db, StoreError};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::accounts::{self, ShareTrees};
use crate::power::Power;
use crate::record::Recorder;
use crate::reservations;
use crate::written::Written;
use crate::{SchedulerConfig, SchedulerMetrics};

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

/// Time between two checkpoints of the record of decisions: a replay begins at one.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1800);
const PURGE_EVERY: Duration = Duration::from_secs(600);

/// Leads until `stopping` (`Ok`) or until something fails.
pub async fn lead(db: &Db, lease: &mut Lease, config: &SchedulerConfig, stopping: &mut watch::Receiver<bool>) -> Result<(), StoreError> {
    let metrics = &*config.metrics;
    let mut power = Power::new(config.power.clone());
    db.ensure_partitions().await?;
    let mut wake = db.wake.subscribe(Topic::Events);
    let mut term = Term::begin(db, metrics, lease).await?;
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
        term.apply(news.events)?;
        if chores_at.elapsed() >= CHORES {
            chores_at = Instant::now();
            lease.renew().await?;
            term.lose_silent_nodes(lease).await?;
            power.keep(db, lease.epoch(), &term.policy).await?;
            reservations::tend(db, lease.epoch(), &term.policy, &mut term.nodes_seen_at).await?;
            let events = accounts::fold_ended(db, lease.epoch(), &term.policy).await?;
            term.apply(events)?;
            is_changed |= term.keep_record(lease).await?;
        }
        let now = Timestamp::now();
        if is_changed {
            let (plan, number) = term.plan(now)?;
            metrics.pending.set(term.engine.engine().queue_depth() as i64);
            is_changed = term.commit(lease, &plan, number).await?;
            if term.shares.is_due() {
                term.shares.write(db, lease.epoch(), now, term.engine.engine().shares()).await?;
            }
            if let Some(oldest) = heard.take() {
                // Two clocks of one site: a small lead of the database's is no time at all.
                metrics.decision.observe((Timestamp::now().as_microsecond() - oldest.as_microsecond()).max(0) as f64 / 1e6);
            }
            if is_changed {
                continue;
            }
            pause = pause.min(until(plan.wake_at, now));
        }
        let is_over = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => true,
            _ = tokio::time::timeout(pause, wake.changed()) => false,
        };
        if is_over {
            return term.write_record(lease, true).await;
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
    engine: Recorder,
    policy: Policy,
    position: Position,
    run_ids: RunIds,
    written: Written,
    shares: ShareTrees,
    began: Instant,
    /// When the last full plan was made, and what it cost.
    full: Option<(Instant, Duration)>,
    checkpoint_at: Instant,
    purged_at: Option<Instant>,
    /// When nodes were last looked at for reservations.
    nodes_seen_at: Option<Instant>,
}

impl<'a> Term<'a> {
    async fn begin(db: &'a Db, metrics: &'a SchedulerMetrics, lease: &Lease) -> Result<Term<'a>, StoreError> {
        let (events, position) = snapshot(db, lease).await?;
        let mut term = Term {
            db,
            metrics,
            engine: Recorder::new(lease.epoch, true),
            policy: Policy::default(),
            position,
            run_ids: RunIds::new(1, None),
            written: Written::default(),
            shares: ShareTrees::new(),
            began: Instant::now(),
            full: None,
            checkpoint_at: Instant::now(),
            purged_at: None,
            nodes_seen_at: None,
        };
        term.checkpoint(events)?;
        Ok(term)
    }

    /// The engine anew, from a snapshot. The record of decisions can be replayed from here on.
    fn checkpoint(&mut self, events: Vec<Event>) -> Result<Option<DecisionChunk>, StoreError> {
        let policy = events.iter().find_map(|event| if let Event::Policy(policy) = event { Some(policy) } else { None });
        let is_on = policy.unwrap_or(&self.policy).decision_keep_seconds > 0;
        let rest = self.engine.checkpoint(Timestamp::now(), is_on).map_err(corrupt)?;
        (self.full, self.checkpoint_at) = (None, Instant::now());
        self.apply(events)?;
        Ok(rest)
    }

    /// Hands over the record as far as it is due, makes a checkpoint when one is, and forgets what is old. `true`: the engine is new.
    async fn keep_record(&mut self, lease: &Lease) -> Result<bool, StoreError> {
        self.write_record(lease, false).await?;
        if self.purged_at.is_none_or(|at| at.elapsed() >= PURGE_EVERY) {
            self.purged_at = Some(Instant::now());
            self.db.purge_decisions(lease.epoch(), self.policy.decision_keep_seconds).await?;
        }
        if self.checkpoint_at.elapsed() < CHECKPOINT_EVERY {
            return Ok(false);
        }
        let (events, position) = snapshot(self.db, lease).await?;
        self.position = position;
        if let Some(chunk) = self.checkpoint(events)? {
            self.db.write_decisions(lease.epoch(), &chunk).await?;
        }
        Ok(true)
    }

    async fn write_record(&mut self, lease: &Lease, is_end: bool) -> Result<(), StoreError> {
        let chunk = if is_end { self.engine.take() } else { self.engine.due() };
        match chunk.map_err(corrupt)? {
            Some(chunk) => self.db.write_decisions(lease.epoch(), &chunk).await,
            None => Ok(()),
        }
    }

    /// Events are answered by a quick plan; a full one, which ranks everything anew, is made now and then. With its number.
    fn plan(&mut self, now: Timestamp) -> Result<(Plan, u64), StoreError> {
        let begun = Instant::now();
        let is_due = self.full.is_none_or(|(at, cost)| at.elapsed() >= FULL_EVERY.max(cost * FULL_SHARE));
        let (plan, number) = self.engine.plan(now, !is_due).map_err(corrupt)?;
        if plan.is_full {
            self.full = Some((begun, begun.elapsed()));
        }
        self.metrics.plan.observe(begun.elapsed().as_secs_f64());
        Ok((plan, number))
    }

    fn apply(&mut self, events: Vec<Event>) -> Result<(), StoreError> {
        for event in events {
            match &event {
                Event::Policy(policy) => self.policy = policy.clone(),
                Event::JobGone(job) => {
                    self.written.forget(*job);
                }
                _ => {}
            }
            self.engine.apply(event).map_err(corrupt)?;
        }
        Ok(())
    }

    /// Writes a plan. `true`: the world has changed by it, so that another plan is due.
    async fn commit(&mut self, lease: &Lease, plan: &Plan, number: u64) -> Result<bool, StoreError> {
        let mut is_changed = false;
        if !plan.starts.is_empty() {
            is_changed |= self.commit_starts(lease, plan, number).await?;
        }
        if !plan.preemptions.is_empty() {
            self.commit_preemptions(lease, plan).await?;
        }
        if !plan.resumes.is_empty() {
            self.commit_resumes(lease, plan).await?;
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
    async fn commit_starts(&mut self, lease: &Lease, plan: &Plan, number: u64) -> Result<bool, StoreError> {
        let unix_ms = plan.now.as_millisecond().max(0) as u64;
        let starts: Vec<NewAttempt> = plan
            .starts
            .iter()
            .map(|s| NewAttempt {
                job: s.job,
                array_index: s.array_index,
                nodes: s.nodes.clone(),
                charge: s.charge.clone(),
                reservation: s.reservation.clone(),
                run_id: self.run_ids.issue(unix_ms),
            })
            .collect();
        let decision = Decision { epoch: lease.epoch, plan: number, at: plan.now };
        let committed = self.db.commit_starts(lease.epoch(), &decision, &starts).await?;
        let mut touched = Vec::new();
        for index in &committed.conflicts {
            self.engine.retract(starts[*index].job, starts[*index].array_index).map_err(corrupt)?;
            touched.push(starts[*index].job);
        }
        for (index, runs_as) in &committed.started {
            self.engine.confirm(starts[*index].job, starts[*index].array_index).map_err(corrupt)?;
            touched.extend([starts[*index].job, *runs_as]);
        }
        self.refresh(&touched).await?;
        self.metrics.starts.inc_by(committed.started.len() as u64);
        self.metrics.conflicts.inc_by(committed.conflicts.len() as u64);
        tracing::debug!(started = committed.started.len(), refused = committed.conflicts.len(), "plan committed");
        Ok(!committed.conflicts.is_empty())
    }

    /// Commits the preemptions; the engine then sees victims and preemptors as the database has them, whatever it refused.
    async fn commit_preemptions(&mut self, lease: &Lease, plan: &Plan) -> Result<(), StoreError> {
        let claims: Vec<(JobId, Claim)> = plan.claims.iter().map(|new| (new.job, new.claim.clone())).collect();
        let victim = |p: &Preemption| NewVictim {
            job: p.victim,
            attempt: p.attempt,
            preempted: Preempted { for_job: p.for_job, mode: p.mode, at: plan.now, kill_at: p.at, reclaimed: p.reclaimed },
        };
        let victims: Vec<NewVictim> = plan.preemptions.iter().map(victim).collect();
        let stopped = self.db.commit_preemptions(lease.epoch(), &claims, &victims).await?;
        self.metrics.preemptions.inc_by(stopped as u64);
        let touched: Vec<JobId> = claims.iter().map(|(job, _)| *job).chain(victims.iter().map(|victim| victim.job)).collect();
        self.refresh(&touched).await
    }

    /// Lets suspended jobs go on; the engine then sees them as the database has them.
    async fn commit_resumes(&mut self, lease: &Lease, plan: &Plan) -> Result<(), StoreError> {
        let new = |r: &Resume| NewResume { job: r.job, attempt: r.attempt, suspension: r.suspension, nodes: r.nodes.clone() };
        let resumes: Vec<NewResume> = plan.resumes.iter().map(new).collect();
        self.db.commit_resumes(lease.epoch(), &resumes).await?;
        self.refresh(&resumes.iter().map(|resume| resume.job).collect::<Vec<_>>()).await
    }

    async fn refresh(&mut self, jobs: &[JobId]) -> Result<(), StoreError> {
        let mut ids: Vec<i64> = jobs.iter().map(|j| j.0 as i64).collect();
        ids.sort_unstable();
        ids.dedup();
        let events = self.db.refresh_jobs(ids).await?;
        self.apply(events)
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

/// Everything the engine must know. What has ended is in rows of usage before, so that rows and what runs are all there is.
async fn snapshot(db: &Db, lease: &Lease) -> Result<(Vec<Event>, Position), StoreError> {
    accounts::fold_ended(db, lease.epoch(), &db.policy().await?.value).await?;
    db.snapshot().await
}

/// Writing into memory fails only if compressing does.
fn corrupt(error: std::io::Error) -> StoreError {
    StoreError::Corrupt(format!("the record of decisions: {error}"))
}
