//! Laws that hold of any fleet, any queue and any order of events, checked against a truth that knows nothing of the engine.

mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod constraints;
mod cores;
mod licenses;
mod limits;
mod naive;
mod preemption;
mod quotas;
mod reservations;
mod shares;
mod sharing;
mod suspension;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::{DryRun, Engine, Plan, Settings};
use berth_model::event::Event;
use berth_model::preemption::PreemptBy;
use berth_model::{JobId, NodeName, hostlist};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use naive::Lines;
use world::{Ask, World, any_ask, at, job};

/// When and where each job is planned, or starts.
type Planned = BTreeMap<JobId, (Timestamp, Vec<NodeName>)>;

fn planned(plan: &Plan) -> Planned {
    let later = plan.verdicts.iter().filter_map(|v| {
        let planned = v.planned_start.as_ref()?;
        Some((v.job, (planned.at, hostlist::expand(&planned.nodes).unwrap())))
    });
    let now = plan.starts.iter().map(|s| (s.job, (plan.now, s.nodes.iter().map(|n| n.node.clone()).collect())));
    later.chain(now).collect()
}

/// No device is given twice, no memory over what there is, nothing that a node has not, and every gang whole.
fn check_running(world: &World) -> Result<(), TestCaseError> {
    let mut cpus = BTreeSet::new();
    let mut gpus = BTreeSet::new();
    let mut memory: BTreeMap<&NodeName, u64> = BTreeMap::new();
    for job in world.running.values() {
        let nodes = &job.attempt.as_ref().unwrap().nodes;
        let names: BTreeSet<&NodeName> = nodes.iter().map(|n| &n.node).collect();
        prop_assert_eq!(names.len(), job.shape.min_nodes as usize, "a gang is whole");
        prop_assert!(job.required_nodes.iter().all(|name| names.contains(name)));
        for given in nodes {
            let node = world.node(&given.node);
            let need = naive::need(job, node).expect("a node that can carry it");
            prop_assert_eq!(given.share.as_ref(), job.shape.gpu_share());
            let whole = if given.share.is_some() { given.gpus.len() as u64 - 1 } else { given.gpus.len() as u64 };
            let counts = [(given.cpus.len() + given.idle_cpus.len()) as u64, given.memory_bytes.0, whole];
            prop_assert_eq!(counts, need, "what was asked for, no less and no more");
            for cpu in given.cpus.iter().chain(&given.idle_cpus) {
                prop_assert!(node.inventory.cpus.contains(cpu) && cpus.insert((&given.node, *cpu)), "CPU given twice");
            }
            for gpu in &given.gpus {
                prop_assert!(node.inventory.gpus.iter().any(|g| g.index == *gpu));
                prop_assert!(given.share.is_some() || gpus.insert((&given.node, *gpu)), "GPU given twice");
            }
            let held = memory.entry(&given.node).or_default();
            *held += given.memory_bytes.0;
            prop_assert!(*held <= node.inventory.memory_bytes.0, "memory given twice");
        }
    }
    cores::check(world)?;
    shares::check_devices(world)
}

/// What runs and all planned starts together never need more than there is.
fn check_planned(world: &World, planned: &Planned) -> Result<(), TestCaseError> {
    let mut lines = Lines::of(world);
    for (id, (from, nodes)) in planned {
        let Some(job) = world.pending.get(id) else { continue };
        prop_assert_eq!(nodes.len(), job.shape.min_nodes as usize, "a gang is planned whole");
        let to = *from + SignedDuration::from_secs(job.time_limit as i64);
        for name in nodes {
            let need = naive::need(job, world.node(name)).expect("a node that can carry it");
            lines.add(world, name, *from, to, need, true);
        }
    }
    prop_assert_eq!(lines.over_allocated(world), None);
    Ok(())
}

#[derive(Clone, Debug)]
enum Happening {
    Comes(Ask),
    /// A running job ends before its limit.
    Ends(usize),
    Cancelled(usize),
    Toggles(u32),
    FullPlan,
}

fn any_happening() -> impl Strategy<Value = (Happening, i64)> {
    let what = prop_oneof![
        5 => any_ask().prop_map(Happening::Comes),
        3 => (0usize..50).prop_map(Happening::Ends),
        1 => (0usize..50).prop_map(Happening::Cancelled),
        1 => (1u32..9).prop_map(Happening::Toggles),
        2 => Just(Happening::FullPlan),
    ];
    (what, 0i64..900)
}

fn any_fleet() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..4, 2..9)
}

/// A world over time, with two engines that hear the same.
struct Story {
    world: World,
    engines: Vec<Engine>,
    planned: Planned,
    next_job: u64,
    limits: Option<limits::Rules>,
    /// By what jobs preempt, and their exempt time.
    preempts: Option<(PreemptBy, u64)>,
    /// Tenants that lend each other.
    cohort: Option<quotas::Cohort>,
    /// Some jobs want no stranger on their nodes.
    shares: bool,
    /// Most jobs ask for shares of GPUs.
    divides: bool,
    /// Cores have two threads.
    threads: bool,
    /// Jobs preempt others, and what that costs is not looked at.
    is_preempted: bool,
}

impl Story {
    fn new(kinds: &[usize]) -> Story {
        Story::with(Settings::default(), kinds)
    }

    fn with(settings: Settings, kinds: &[usize]) -> Story {
        let world = World::of(kinds);
        Story {
            engines: vec![world.engine(settings), world.engine(settings)],
            world,
            planned: Planned::new(),
            next_job: 1,
            limits: None,
            preempts: None,
            cohort: None,
            shares: false,
            divides: false,
            threads: false,
            is_preempted: false,
        }
    }

    /// Its GPUs may be shared.
    fn divided(mut self) -> Story {
        self.divides = true;
        self.world.nodes.values_mut().for_each(shares::divide);
        cores::nodes(&self.world).into_iter().for_each(|event| self.tell(event));
        self
    }

    /// Its cores have two threads.
    fn threaded(mut self) -> Story {
        self.threads = true;
        self.world.nodes.values_mut().for_each(cores::pair);
        cores::nodes(&self.world).into_iter().for_each(|event| self.tell(event));
        self
    }

    fn tell(&mut self, event: Event) {
        self.engines.iter_mut().for_each(|engine| engine.apply(event.clone()));
    }

    /// Time passes, with a quick plan at each planned start and each limit, as the loop wakes for them.
    fn pass(&mut self, seconds: i64) -> Result<(), TestCaseError> {
        let until = at(self.world.now + seconds);
        loop {
            let instants = self.planned.values().map(|(at, _)| *at).chain(self.world.running.values().map(World::limit));
            let instants = instants.chain(reservations::boundaries(&self.world));
            let now = at(self.world.now);
            let Some(next) = instants.filter(|at| *at > now && *at < until).min() else { break };
            self.jump(next.duration_since(now).as_secs());
            let before = self.planned.clone();
            let plan = self.plan(false)?;
            self.take(&plan)?;
            // A limit may hold a job whose planned start has come.
            if self.limits.is_none() && self.cohort.is_none() && !self.is_preempted && !plan.is_full {
                self.check_nobody_is_delayed(&before)?;
            }
        }
        self.jump(until.duration_since(at(self.world.now)).as_secs());
        Ok(())
    }

    /// Jobs end at their limits; whoever's limit is now ends now.
    fn jump(&mut self, seconds: i64) {
        self.world.now += seconds;
        let over: Vec<JobId> = self.world.running.values().filter(|j| World::limit(j) <= at(self.world.now)).map(|j| j.id).collect();
        for id in over {
            let event = self.world.end(id);
            self.tell(event);
        }
    }

    /// `false`: planned starts may move, since the fleet changed.
    fn happen(&mut self, happening: &Happening) -> bool {
        match happening {
            Happening::Comes(ask) => {
                let mut job = if self.limits.is_some() { limits::asked_by(job(self.next_job, ask)) } else { job(self.next_job, ask) };
                if self.cohort.is_some() {
                    job = quotas::asked_by(job);
                }
                if self.shares {
                    job = sharing::asked_by(job);
                }
                if self.divides {
                    job = shares::asked_by(job);
                }
                if self.threads {
                    job = cores::asked_by(job);
                }
                if (self.preempts.is_some() || self.is_preempted) && job.id.0 % 3 == 0 {
                    job.qos = world::name("high");
                }
                job = licenses::needed_by(&self.world, reservations::named_by(&self.world, job));
                job = constraints::chosen_by(&self.world, job);
                self.next_job += 1;
                self.world.pending.insert(job.id, job.clone());
                self.tell(Event::Job(Box::new(job)));
            }
            Happening::Ends(n) => {
                if let Some(id) = self.world.running.keys().nth(n % self.world.running.len().max(1)).copied() {
                    let event = self.world.end(id);
                    self.tell(event);
                }
            }
            Happening::Cancelled(n) => {
                if let Some(id) = self.world.pending.keys().nth(n % self.world.pending.len().max(1)).copied() {
                    self.world.pending.remove(&id);
                    self.planned.remove(&id);
                    self.tell(Event::JobGone(id));
                }
            }
            Happening::Toggles(number) => {
                if let Some(event) = self.world.toggle(*number) {
                    self.tell(event);
                    return false;
                }
            }
            Happening::FullPlan => {}
        }
        true
    }

    fn plan(&mut self, is_full: bool) -> Result<Plan, TestCaseError> {
        let now = at(self.world.now);
        let plans: Vec<Plan> = self.engines.iter_mut().map(|e| if is_full { e.plan(now) } else { e.quick_plan(now) }).collect();
        prop_assert_eq!(&plans[0], &plans[1], "the same events, the same plan");
        Ok(plans.into_iter().next().unwrap())
    }

    fn check_nobody_is_delayed(&self, before: &Planned) -> Result<(), TestCaseError> {
        for (job, (was, _)) in before.iter().filter(|(job, _)| self.world.pending.contains_key(job)) {
            let is = self.planned[job].0;
            prop_assert!(is <= *was, "job {} was planned at {} and now is at {}", job, was, is);
            prop_assert!(is > at(self.world.now), "a planned start that has come is made: job {} at {}", job, is);
        }
        Ok(())
    }

    /// Takes over what a plan says, and checks it.
    fn take(&mut self, plan: &Plan) -> Result<(), TestCaseError> {
        if let Some((by, exempt)) = self.preempts {
            preemption::check(&self.world, by, exempt, plan)?;
        }
        self.check_quotas(plan)?;
        reservations::check(&self.world, plan)?;
        self.world.start(plan, &mut self.engines);
        self.world.preempt(plan, &mut self.engines);
        check_running(&self.world)?;
        if let Some(limits) = &self.limits {
            limits.check(&self.world)?;
        }
        if plan.is_full {
            self.planned.clear();
        }
        for verdict in &plan.verdicts {
            self.planned.remove(&verdict.job);
        }
        for (job, when) in planned(plan) {
            self.planned.insert(job, when);
        }
        let pending = &self.world.pending;
        self.planned.retain(|job, _| pending.contains_key(job));
        reservations::check_shares(&self.world, &self.planned)?;
        licenses::check(&self.world, &self.planned)?;
        sharing::check(&self.world, &self.planned)?;
        shares::check(&self.world, &self.planned)?;
        constraints::check(&self.world, &self.planned)?;
        check_planned(&self.world, &self.planned)
    }
}

proptest! {
    /// A full plan is what brute force finds, to the node.
    #[test]
    fn a_full_plan_is_that_of_brute_force(kinds in any_fleet(), first in prop::collection::vec(any_ask(), 0..20), second in prop::collection::vec(any_ask(), 1..20), later in 1i64..1800) {
        let mut story = Story::new(&kinds);
        first.into_iter().for_each(|ask| _ = story.happen(&Happening::Comes(ask)));
        for queue in [Vec::new(), second] {
            queue.into_iter().for_each(|ask| _ = story.happen(&Happening::Comes(ask)));
            let expected = naive::plan(&story.world);
            let plan = story.plan(true)?;
            let name = |number: &u32| NodeName::new(format!("n{number}")).unwrap();
            let expected: Planned = expected.iter().map(|(job, (from, nodes))| (*job, (*from, nodes.iter().map(name).collect()))).collect();
            prop_assert_eq!(planned(&plan), expected);
            prop_assert_eq!(plan.verdicts.len() + plan.starts.len(), story.world.pending.len(), "everybody hears something");
            story.take(&plan)?;
            story.jump(later);
        }
    }

    /// Over a whole story of quick and full plans nothing is given twice, no quick plan delays anybody, the head of the queue is
    /// never put off, and an engine that begins from the present state plans the same.
    #[test]
    fn quick_plans_delay_nobody(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..60)) {
        let mut story = Story::new(&kinds);
        let mut head: Option<(JobId, Timestamp)> = None;
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            let is_calm = story.happen(&happening);
            let is_full = matches!(happening, Happening::FullPlan);
            let mut rebuilt = story.world.engine(Settings::default());
            let before = story.planned.clone();
            let plan = story.plan(is_full)?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            story.take(&plan)?;
            if !plan.is_full {
                story.check_nobody_is_delayed(&before)?;
            }
            let first = story.world.queue().into_iter().find_map(|job| Some((job.id, story.planned.get(&job.id)?.0)));
            if let (Some((was, then)), Some((is, when))) = (head, first) && was == is && is_calm {
                prop_assert!(when <= then, "the head of the queue was planned at {} and now is at {}", then, when);
            }
            head = first;
        }
    }

    /// No limit is ever passed, in full plans and quick ones. Whoever a limit holds hears which, and an engine that begins from the
    /// present state counts the same.
    #[test]
    fn no_limit_is_passed(kinds in any_fleet(), rules in limits::any_rules(), happenings in prop::collection::vec(any_happening(), 1..60)) {
        let mut story = Story::new(&kinds);
        rules.events().into_iter().for_each(|event| story.tell(event));
        story.limits = Some(rules.clone());
        for (happening, seconds) in happenings {
            story.pass(seconds)?;
            story.happen(&happening);
            let mut rebuilt = story.world.engine(Settings::default());
            rules.events().into_iter().chain([limits::Rules::past(&story.world)]).for_each(|event| rebuilt.apply(event));
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            if plan.is_full {
                prop_assert_eq!(&rebuilt.plan(plan.now), &plan, "from the present state alone");
            }
            for verdict in plan.verdicts.iter().flat_map(|v| &v.verdicts).filter(|v| v.code.starts_with("assoc_") || v.code.starts_with("qos_")) {
                prop_assert!(verdict.have.is_some() && verdict.need.is_some() && verdict.rule.contains("the limit "));
            }
            story.take(&plan)?;
        }
    }

    /// A dry run's answer is what the plan says of the job once it is submitted, and asking changes nothing: of two engines one is
    /// asked after each happening, and their plans stay the same. In either order of the queue.
    #[test]
    fn a_dry_run_tells_the_plan(kinds in any_fleet(), happenings in prop::collection::vec(any_happening(), 1..30), ask in any_ask(), by_urgency in any::<bool>()) {
        let settings = if by_urgency { Settings::urgency() } else { Settings::default() };
        let mut story = Story::with(settings, &kinds);
        for (happening, seconds) in happenings {
            if by_urgency {
                // Every plan is a full one; the head may change hands.
                story.jump(seconds);
            } else {
                story.pass(seconds)?;
            }
            story.happen(&happening);
            let now = at(story.world.now);
            let asked = job(1_000_000, &ask);
            let answer = story.engines[0].dry_run(asked.clone(), now);
            let mut later = story.world.engine(settings);
            later.apply(Event::Job(Box::new(asked.clone())));
            let plan = later.plan(now);
            let starts: Vec<_> = plan.starts.iter().filter(|start| start.job == asked.id).cloned().collect();
            let verdict = plan.verdicts.iter().find(|verdict| verdict.job == asked.id).cloned();
            prop_assert!(starts.len() + usize::from(verdict.is_some()) == 1);
            let rank = verdict.as_ref().map_or(answer.rank, |verdict| verdict.priority.rank);
            prop_assert_eq!(answer, DryRun { starts, rank, verdict });
            let plan = story.plan(matches!(happening, Happening::FullPlan))?;
            story.take(&plan)?;
        }
    }
}
