//! Suspension over time: a random story in which urgent jobs suspend others. No CPU is given twice, what stands still keeps memory and
//! GPUs, and whoever can go on does.

use berth_engine::{Engine, Plan, Settings};
use berth_model::JobId;
use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::preemption::{PreemptBy, PreemptMode, Suspension};
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::world::{World, at, job, name};
use crate::{Happening, any_fleet, any_happening, check_running, preemption};

/// The world, who hears of it, and what holds in it of suspended jobs.
struct Tale {
    world: World,
    engines: Vec<Engine>,
    next_job: u64,
}

fn events() -> Vec<Event> {
    let mut events = preemption::events(PreemptBy::Qos, 0);
    events.push(Event::Policy(Policy { preempt_by: PreemptBy::Qos, preempt_mode: PreemptMode::Suspend, ..Policy::default() }));
    events.push(Event::Qos(Qos { preempt_mode: None, ..Qos::named(name("normal")) }));
    events.push(Event::Partition(Partition::of_all_nodes(name("main"))));
    events
}

impl Tale {
    fn tell(&mut self, job: JobId) {
        let live = self.world.running.get(&job).or(self.world.pending.get(&job)).cloned();
        let event = live.map_or(Event::JobGone(job), |job| Event::Job(Box::new(job)));
        self.engines.iter_mut().for_each(|engine| engine.apply(event.clone()));
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut JobSnapshot)) {
        change(self.world.running.get_mut(&job).expect("it runs"));
        self.tell(job);
    }

    /// Jobs end at their limits, of which time that they stood still is no part.
    fn pass(&mut self, seconds: i64) {
        self.world.now += seconds;
        let now = at(self.world.now);
        let over: Vec<JobId> =
            self.world.running.values().filter(|job| limit(job).is_some_and(|limit| limit <= now)).map(|job| job.id).collect();
        for id in over {
            self.world.running.remove(&id);
            self.tell(id);
        }
        let told = |job: &&JobSnapshot| suspension(job).is_some_and(|s| s.since.is_none() && s.at + SignedDuration::from_secs(2) <= now);
        let still: Vec<JobId> = self.world.running.values().filter(told).map(|job| job.id).collect();
        for id in still {
            self.change(id, |job| {
                job.state = JobState::Suspended;
                job.attempt.as_mut().unwrap().suspension.as_mut().unwrap().since = Some(now);
            });
        }
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Comes(ask) => {
                let mut job = job(self.next_job, ask);
                if job.id.0.is_multiple_of(3) {
                    job.qos = name("high");
                }
                self.next_job += 1;
                self.world.pending.insert(job.id, job.clone());
                self.tell(job.id);
            }
            Happening::Ends(n) => {
                if let Some(id) = self.world.running.keys().nth(n % self.world.running.len().max(1)).copied() {
                    self.world.running.remove(&id);
                    self.tell(id);
                }
            }
            Happening::Cancelled(n) => {
                if let Some(id) = self.world.pending.keys().nth(n % self.world.pending.len().max(1)).copied() {
                    self.world.pending.remove(&id);
                    self.tell(id);
                }
            }
            // A person suspends a job, or lets it go on.
            Happening::Toggles(n) => {
                let now = at(self.world.now);
                if let Some(id) = self.world.running.keys().nth(*n as usize % self.world.running.len().max(1)).copied() {
                    self.change(id, |job| {
                        let attempt = job.attempt.as_mut().unwrap();
                        match &mut attempt.suspension {
                            Some(suspension) => suspension.is_held = !suspension.is_held,
                            None => attempt.suspension = Some(Suspension { number: 1, at: now, since: None, for_job: None, is_held: true }),
                        }
                    });
                }
            }
            Happening::FullPlan => {}
        }
    }

    fn take(&mut self, plan: &Plan) -> Result<(), TestCaseError> {
        let now = at(self.world.now);
        let waiting: Vec<JobId> = self.world.running.values().filter(|job| may_go_on(job)).map(|job| job.id).collect();
        for resume in &plan.resumes {
            prop_assert!(waiting.contains(&resume.job), "only who may goes on");
            self.change(resume.job, |job| {
                job.state = JobState::Running;
                let attempt = job.attempt.as_mut().unwrap();
                let since = attempt.suspension.take().unwrap().since.unwrap();
                attempt.suspended_ms += now.duration_since(since).as_millis() as u64;
                attempt.nodes = resume.nodes.clone();
            });
        }
        self.world.start(plan, &mut self.engines);
        for preemption in &plan.preemptions {
            prop_assert_eq!((preemption.mode, preemption.at), (PreemptMode::Suspend, now + SignedDuration::from_secs(2)));
            let suspension = Suspension { number: 1, at: now, since: None, for_job: Some(preemption.for_job), is_held: false };
            self.change(preemption.victim, |job| job.attempt.as_mut().unwrap().suspension = Some(suspension));
        }
        for new in &plan.claims {
            self.world.pending.get_mut(&new.job).expect("it waits").claim = Some(new.claim.clone());
            self.tell(new.job);
        }
        self.check()?;
        if plan.is_full { self.check_all_go_on(plan) } else { Ok(()) }
    }

    /// What stands still has no CPUs; the rest of it, and all of the others, is given once.
    fn check(&self) -> Result<(), TestCaseError> {
        let mut world = self.world.clone();
        let mut still: Vec<NodeAllocation> = Vec::new();
        for job in world.running.values_mut().filter(|job| job.state == JobState::Suspended) {
            still.extend(job.attempt.as_ref().unwrap().nodes.clone());
        }
        world.running.retain(|_, job| job.state != JobState::Suspended);
        check_running(&world)?;
        for (number, node) in &self.world.nodes {
            let there = world
                .running
                .values()
                .flat_map(|job| &job.attempt.as_ref().unwrap().nodes)
                .chain(&still)
                .filter(|held| held.node == node.name);
            let (mut memory, mut gpus) = (0, std::collections::BTreeSet::new());
            for held in there {
                memory += held.memory_bytes.0;
                prop_assert!(held.gpus.iter().all(|gpu| gpus.insert(*gpu)), "GPU of n{} given twice", number);
            }
            prop_assert!(memory <= node.inventory.memory_bytes.0, "memory of n{} given twice", number);
        }
        Ok(())
    }

    /// After a full plan nobody stands still for whom CPUs are free now that no claim, no running job and no urgent start wants.
    fn check_all_go_on(&self, plan: &Plan) -> Result<(), TestCaseError> {
        let is_asked_for = self.world.pending.values().any(|job| job.claim.is_some() || job.qos.as_str() == "high");
        if is_asked_for || plan.starts.iter().any(|start| self.world.running[&start.job].qos.as_str() == "high") {
            return Ok(());
        }
        let running: Vec<&NodeAllocation> = self
            .world
            .running
            .values()
            .filter(|job| job.state != JobState::Suspended)
            .flat_map(|job| &job.attempt.as_ref().unwrap().nodes)
            .collect();
        for job in self.world.running.values().filter(|job| may_go_on(job)) {
            let is_free = |held: &NodeAllocation| {
                let used: usize = running.iter().filter(|other| other.node == held.node).map(|other| other.cpus.len()).sum();
                used + held.cpus.len() <= self.world.node(&held.node).inventory.cpus.len()
            };
            // Another that was suspended before it may have been promised the CPUs.
            let is_first = !self.world.running.values().any(|other| may_go_on(other) && other.id != job.id);
            prop_assert!(!is_first || !job.attempt.as_ref().unwrap().nodes.iter().all(is_free), "job {} could go on", job.id);
        }
        Ok(())
    }
}

fn suspension(job: &JobSnapshot) -> Option<&Suspension> {
    job.attempt.as_ref()?.suspension.as_ref()
}

fn may_go_on(job: &JobSnapshot) -> bool {
    job.state == JobState::Suspended && suspension(job).is_some_and(|suspension| !suspension.is_held)
}

/// When it ends, unless it stands still.
fn limit(job: &JobSnapshot) -> Option<Timestamp> {
    let attempt = job.attempt.as_ref().filter(|_| job.state == JobState::Running)?;
    Some(attempt.started_at? + SignedDuration::from_secs(job.time_limit as i64) + SignedDuration::from_millis(attempt.suspended_ms as i64))
}

proptest! {
    /// The same events make the same plan, also in an engine that begins from the present state.
    #[test]
    fn suspended_jobs_keep_their_own_and_go_on(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..60)) {
        let world = World::of(&kinds);
        let mut tale = Tale { engines: vec![world.engine(Settings::default()), world.engine(Settings::default())], world, next_job: 1 };
        for event in events() {
            tale.engines.iter_mut().for_each(|engine| engine.apply(event.clone()));
        }
        for (i, (happening, seconds)) in happenings.into_iter().enumerate() {
            tale.pass(seconds);
            tale.happen(&happening);
            let now = at(tale.world.now);
            let mut rebuilt = tale.world.engine(Settings::default());
            events().into_iter().for_each(|event| rebuilt.apply(event));
            let plans: Vec<Plan> = tale.engines.iter_mut().map(|e| if i % 2 == 0 { e.plan(now) } else { e.quick_plan(now) }).collect();
            prop_assert_eq!(&plans[0], &plans[1], "the same events, the same plan");
            if plans[0].is_full {
                prop_assert_eq!(&rebuilt.plan(now), &plans[0], "from the present state alone");
            }
            tale.take(&plans[0])?;
        }
    }
}
