//! The ledger: what running jobs and starts hold together, by everybody whose limits may count it, and what limits say to one more.
//!
//! A job counts from its start (also one that the database has not confirmed) until it holds nothing any more. Starts within a plan
//! count at once, so no plan passes a limit. Planned starts do not count: a limit is heeded when their time comes.
//! A node counts once for each scope, however many of its jobs are there.
//!
//! Example: group limit of 1000 GPU-minutes, 900 used, 60 left to what runs; a job of 2 GPUs for 30 minutes needs 60: it starts, unless
//! limits are safe, since then 60 + 60 > 1000 − 900.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use berth_model::association::Used;
use berth_model::limit::{Bound, Measure, Request, Scope};
use berth_model::tres::{Tres, TresCounts};
use berth_model::verdict::Verdict;
use berth_model::{JobId, NodeName};

use crate::amount::{Micros, NEVER, SECOND, timestamp};
use crate::explain::{MOST_HOLDERS, Words, say};

/// An attempt, a task's start or a plain start: `true` for one that is not confirmed yet.
pub type RunKey = (JobId, Option<u32>, bool);

/// A scope's number, for as long as limits stay as they are.
pub type ScopeId = u32;

/// A limit with the number of its scope.
#[derive(Clone, Debug)]
pub struct Rule {
    pub bound: Bound,
    pub scope: ScopeId,
}

/// What a run holds, and until when at the latest.
#[derive(Clone, Debug)]
pub struct Run {
    pub scopes: Arc<[ScopeId]>,
    pub tres: TresCounts,
    /// Only heeded where a limit counts nodes.
    pub nodes: Vec<NodeName>,
    /// When its time limit began to run; before, it has all its time before it.
    pub begins: Option<Micros>,
    pub length: Micros,
    pub usage_factor: f64,
}

impl Run {
    pub fn count(&self, tres: &Tres) -> u64 {
        self.tres.get(tres).copied().unwrap_or(0)
    }

    fn end(&self, now: Micros) -> Micros {
        self.begins.unwrap_or(now).saturating_add(self.length)
    }

    fn minutes_left(&self, tres: &Tres, now: Micros) -> f64 {
        let left = self.end(now).saturating_sub(now).clamp(0, self.length) as f64 / SECOND as f64 / 60.0;
        self.count(tres) as f64 * left * self.usage_factor
    }
}

/// Runs with their ends, ascending.
type Ends = Arc<[(Micros, RunKey)]>;

#[derive(Clone, Debug, Default)]
struct Counter {
    runs: BTreeSet<RunKey>,
    tres: TresCounts,
    nodes: BTreeMap<NodeName, u32>,
    used: Used,
    /// Minutes left to runs at an instant, as worked out since the last change.
    left: Vec<(Tres, Micros, f64)>,
    /// Its runs by their ends, the first to end first, as of an instant.
    ends: Option<(Micros, Ends)>,
}

impl Counter {
    /// What was worked out holds no more.
    fn change(&mut self) {
        self.left.clear();
        self.ends = None;
    }
}

/// Something that is about to run, or may.
#[derive(Debug)]
pub struct Wish<'a> {
    pub request: &'a Request,
    /// Nodes chosen for it; none yet before a place is found.
    pub nodes: &'a [NodeName],
    pub usage_factor: f64,
    pub is_safe: bool,
    pub now: Micros,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    ids: HashMap<Scope, ScopeId>,
    counters: Vec<Counter>,
    runs: HashMap<RunKey, Run>,
    /// As of when `used` is, and what is left to runs.
    as_of: Micros,
    /// Some limit counts nodes.
    counts_nodes: bool,
    /// Some limit counts use.
    counts_use: bool,
    /// Changes with every sum.
    pub version: u64,
}

impl Ledger {
    /// Begins anew: limits have changed.
    pub fn clear(&mut self) {
        *self = Ledger { version: self.version + 1, as_of: self.as_of, ..Ledger::default() };
    }

    pub fn id(&mut self, scope: &Scope) -> ScopeId {
        if let Some(id) = self.ids.get(scope) {
            return *id;
        }
        let id = self.counters.len() as ScopeId;
        self.counters.push(Counter::default());
        self.ids.insert(scope.clone(), id);
        id
    }

    /// A scope that some limit or job has named.
    pub fn known(&self, scope: &Scope) -> Option<ScopeId> {
        self.ids.get(scope).copied()
    }

    /// Makes rules of limits, of which it learns what it must count.
    pub fn rules(&mut self, bounds: Vec<Bound>) -> Arc<[Rule]> {
        for bound in &bounds {
            self.counts_nodes |= bound.measure == Measure::Tres(Tres::Node);
            self.counts_use |= matches!(bound.measure, Measure::TresMinutes(_) | Measure::WallMinutes);
        }
        bounds.into_iter().map(|bound| Rule { scope: self.id(&bound.scope), bound }).collect()
    }

    pub fn counts_use(&self) -> bool {
        self.counts_use
    }

    /// What is left to runs is told as of `now` from here on.
    pub fn set_clock(&mut self, now: Micros) {
        self.as_of = now;
        self.version += 1;
    }

    pub fn clock(&self) -> Micros {
        self.as_of
    }

    /// Sums of use begin anew, as of `now`.
    pub fn clear_used(&mut self, now: Micros) {
        self.set_clock(now);
        self.counters.iter_mut().for_each(|counter| counter.used = Used::default());
    }

    pub fn used(&mut self, scope: ScopeId) -> &mut Used {
        self.version += 1;
        &mut self.counters[scope as usize].used
    }

    pub fn add(&mut self, key: RunKey, run: Run) {
        self.remove(&key);
        self.version += u64::from(!run.scopes.is_empty());
        for scope in &*run.scopes {
            let counter = &mut self.counters[*scope as usize];
            counter.runs.insert(key);
            counter.change();
            for (tres, count) in &run.tres {
                *counter.tres.entry(tres.clone()).or_insert(0) += count;
            }
            for node in run.nodes.iter().filter(|_| self.counts_nodes) {
                *counter.nodes.entry(node.clone()).or_insert(0) += 1;
            }
        }
        self.runs.insert(key, run);
    }

    /// Who counted it; nobody, if it was not there.
    pub fn remove(&mut self, key: &RunKey) -> Arc<[ScopeId]> {
        let Some(run) = self.runs.remove(key) else { return Arc::default() };
        self.version += u64::from(!run.scopes.is_empty());
        for scope in &*run.scopes {
            let counter = &mut self.counters[*scope as usize];
            counter.runs.remove(key);
            counter.change();
            for (tres, count) in &run.tres {
                counter.tres.entry(tres.clone()).and_modify(|sum| *sum -= count);
            }
            for node in &run.nodes {
                if let Some(jobs) = counter.nodes.get_mut(node) {
                    *jobs -= 1;
                    if *jobs == 0 {
                        counter.nodes.remove(node);
                    }
                }
            }
        }
        run.scopes
    }

    /// What runs that a scope counts hold of a resource.
    pub fn held(&self, scope: ScopeId, tres: &Tres) -> u64 {
        self.counters[scope as usize].tres.get(tres).copied().unwrap_or(0)
    }

    /// What a scope counts.
    pub fn runs(&self, scope: ScopeId) -> impl Iterator<Item = (&RunKey, &Run)> {
        self.counters[scope as usize].runs.iter().filter_map(|key| Some((key, self.runs.get(key)?)))
    }

    /// What limits hold against one more; empty: it may run.
    pub fn causes(&mut self, rules: &[Rule], wish: &Wish<'_>) -> Vec<(ScopeId, Verdict)> {
        rules.iter().filter_map(|rule| Some((rule.scope, self.cause(rule, wish)?))).collect()
    }

    fn cause(&mut self, rule: &Rule, wish: &Wish<'_>) -> Option<Verdict> {
        let (bound, limit) = (&rule.bound, rule.bound.limit);
        let is_of_minutes = matches!(bound.measure, Measure::TresMinutes(_) | Measure::TresRunMinutes(_) | Measure::WallMinutes);
        if bound.measure == Measure::SubmitJobs || is_of_minutes && wish.usage_factor == 0.0 {
            return None;
        }
        if let Some(asked) = bound.forbids(wish.request, wish.is_safe) {
            let verdict = holds(bound).have("it can never be met by this job").need(asked);
            return Some(verdict.advice("ask for what the limit allows, or ask an administrator to change the limit"));
        }
        let left = match &bound.measure {
            Measure::TresMinutes(tres) | Measure::TresRunMinutes(tres) => self.left(rule.scope, tres),
            _ => 0.0,
        };
        let counter = &self.counters[rule.scope as usize];
        match &bound.measure {
            Measure::Jobs => {
                let running = counter.runs.len() as u64;
                let over = (running + 1).saturating_sub(limit);
                (over > 0)
                    .then(|| self.full(rule, format!("{running} of {limit} jobs run"), "1 more job".to_owned(), over, |_| 1, wish.now))
            }
            Measure::Tres(tres) => {
                let (held, asked) = match tres {
                    Tres::Node if !wish.nodes.is_empty() => {
                        let fresh = wish.nodes.iter().filter(|node| !counter.nodes.contains_key(*node)).count();
                        (counter.nodes.len() as u64, fresh as u64)
                    }
                    // Which nodes they are is not known yet; they may be some that count already.
                    Tres::Node => (counter.nodes.len() as u64, 0),
                    _ => (counter.tres.get(tres).copied().unwrap_or(0), wish.request.count(tres)),
                };
                let over = (held + asked).saturating_sub(limit);
                (asked > 0 && over > 0).then(|| {
                    let of = |run: &Run| run.count(tres);
                    self.full(rule, format!("{held} of {limit} {tres} in use"), format!("{asked} {tres}"), over, of, wish.now)
                })
            }
            Measure::TresMinutes(tres) => {
                let used = counter.used.tres.get(tres).copied().unwrap_or(0.0) / 60.0;
                let asked = wish.request.minutes(tres) * wish.usage_factor;
                let is_over = wish.request.count(tres) > 0 && (used >= limit as f64 || wish.is_safe && asked + left > limit as f64 - used);
                let have = || format!("{used:.0} of {limit} {tres}-minutes used, {left:.0} more left to what runs");
                is_over.then(|| self.spent(rule, have(), format!("{asked:.0} {tres}-minutes"), wish.now))
            }
            Measure::TresRunMinutes(tres) => {
                let asked = wish.request.minutes(tres) * wish.usage_factor;
                let is_over = asked > 0.0 && asked + left > limit as f64;
                let have = || format!("{left:.0} of {limit} {tres}-minutes left to what runs");
                is_over.then(|| self.spent(rule, have(), format!("{asked:.0} {tres}-minutes"), wish.now))
            }
            Measure::WallMinutes => {
                let used = (counter.used.wall / 60.0).floor() as u64;
                let asked = (wish.request.time_limit as f64 * wish.usage_factor / 60.0).ceil() as u64;
                let is_over = used >= limit || wish.is_safe && used + asked > limit;
                is_over.then(|| self.spent(rule, format!("{used} of {limit} minutes used"), format!("{asked} minutes"), wish.now))
            }
            // Told by the job alone.
            Measure::JobTres(_) | Measure::NodeTres(_) | Measure::JobTresMinutes(_) | Measure::LeastJobTres(_) => None,
            Measure::JobSeconds | Measure::SubmitJobs => None,
        }
    }

    /// Minutes that runs may still use. As of the sums of use: what has passed since is in neither twice.
    fn left(&mut self, scope: ScopeId, tres: &Tres) -> f64 {
        let counter = &self.counters[scope as usize];
        if let Some((_, _, left)) = counter.left.iter().find(|(known, at, _)| known == tres && *at == self.as_of) {
            return *left;
        }
        let runs = counter.runs.iter().filter_map(|key| self.runs.get(key));
        let left = runs.map(|run| run.minutes_left(tres, self.as_of)).sum();
        let known = &mut self.counters[scope as usize].left;
        known.retain(|(_, at, _)| *at == self.as_of);
        known.push((tres.clone(), self.as_of, left));
        left
    }

    /// A limit that runs hold: those that end first are named, and when enough of them have ended.
    fn full(&mut self, rule: &Rule, have: String, need: String, over: u64, of: impl Fn(&Run) -> u64, now: Micros) -> Verdict {
        let (holders, clears) = self.freed(rule.scope, over, of, now);
        let verdict = holds(&rule.bound).have(have).need(need).holders(holders);
        let verdict = verdict.advice("nothing to do: it may start when these jobs end");
        match clears.filter(|at| *at < NEVER) {
            Some(at) => verdict.clears(timestamp(at.max(now))),
            None => verdict,
        }
    }

    /// Those that end first of what a scope counts, and when enough of them have ended to free `over`; `of` says what each frees.
    pub fn freed(&mut self, scope: ScopeId, over: u64, of: impl Fn(&Run) -> u64, now: Micros) -> (Vec<String>, Option<Micros>) {
        let mut freed = 0;
        let mut clears = None;
        let mut holders = Holders::default();
        for (end, key) in &*self.ends(scope, now) {
            let share = self.runs.get(key).map_or(0, &of);
            holders.add(key, share);
            freed += share;
            if freed >= over {
                clears = clears.or(Some(*end));
            }
            if clears.is_some() && holders.are_enough() {
                break;
            }
        }
        (holders.names, clears)
    }

    /// A limit on use, which fades.
    fn spent(&mut self, rule: &Rule, have: String, need: String, now: Micros) -> Verdict {
        let measured = rule.bound.measure.tres();
        let mut holders = Holders::default();
        for (_, key) in &*self.ends(rule.scope, now) {
            holders.add(key, self.runs.get(key).map_or(0, |run| measured.map_or(1, |tres| run.count(tres))));
            if holders.are_enough() {
                break;
            }
        }
        let verdict = holds(&rule.bound).have(have).need(need).holders(holders.names);
        verdict.advice("wait until use has faded or what runs has ended, or lower the time limit")
    }

    fn ends(&mut self, scope: ScopeId, now: Micros) -> Ends {
        let counter = &self.counters[scope as usize];
        if let Some((_, ends)) = counter.ends.as_ref().filter(|(at, _)| *at == now) {
            return ends.clone();
        }
        let ends = counter.runs.iter().filter_map(|key| Some((self.runs.get(key)?.end(now), *key)));
        let mut ends: Vec<(Micros, RunKey)> = ends.collect();
        ends.sort_unstable();
        let ends: Ends = ends.into();
        self.counters[scope as usize].ends = Some((now, ends.clone()));
        ends
    }
}

/// Jobs that have a share in what is missing, the first few.
#[derive(Default)]
struct Holders {
    names: Vec<String>,
}

impl Holders {
    fn add(&mut self, (job, _, _): &RunKey, share: u64) {
        if share > 0 && !self.are_enough() {
            let name = format!("job/{job}");
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    fn are_enough(&self) -> bool {
        self.names.len() >= MOST_HOLDERS
    }
}

fn holds(bound: &Bound) -> Verdict {
    say(bound.code, &format!("the limit {} of {} holds", bound.words(), bound.scope), bound.scope.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::span;
    use berth_model::Name;
    use berth_model::association::AssociationKey;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn node(number: u32) -> NodeName {
        NodeName::new(format!("n{number}")).unwrap()
    }

    fn account() -> Scope {
        Scope::Association(AssociationKey::account(name("acme"), name("ml")))
    }

    fn bound(measure: Measure, limit: u64) -> Bound {
        Bound { measure, scope: account(), limit, code: "assoc_group_tres" }
    }

    fn request(tres: &[(Tres, u64)], minutes: u64) -> Request {
        Request { tres: tres.iter().cloned().collect(), on_node: TresCounts::new(), time_limit: minutes * 60 }
    }

    fn causes(ledger: &mut Ledger, bound: &Bound, request: &Request, nodes: &[NodeName], is_safe: bool) -> Vec<Verdict> {
        let rules = ledger.rules(vec![bound.clone()]);
        let causes = ledger.causes(&rules, &Wish { request, nodes, usage_factor: 1.0, is_safe, now: 0 });
        causes.into_iter().map(|(_, verdict)| verdict).collect()
    }

    fn run(ledger: &mut Ledger, job: u64, tres: &[(Tres, u64)], nodes: &[NodeName], minutes: u64) {
        ledger.counts_nodes = true;
        let (scopes, tres) = (Arc::from([ledger.id(&account())]), tres.iter().cloned().collect());
        let run = Run { scopes, tres, nodes: nodes.to_vec(), begins: Some(0), length: span(minutes * 60), usage_factor: 1.0 };
        ledger.add((JobId(job), None, false), run);
    }

    fn used(ledger: &mut Ledger) -> &mut Used {
        let id = ledger.id(&account());
        ledger.used(id)
    }

    #[test]
    fn minutes_used_and_still_to_be_used_count_together_if_limits_are_safe() {
        let mut ledger = Ledger::default();
        run(&mut ledger, 1, &[(Tres::Gpu, 2)], &[node(1)], 30);
        let limit = bound(Measure::TresMinutes(Tres::Gpu), 1000);
        let job = request(&[(Tres::Gpu, 2)], 30);
        let use_up = |ledger: &mut Ledger, minutes: f64| {
            *used(ledger) = Used { tres: BTreeMap::from([(Tres::Gpu, minutes * 60.0)]), ..Used::default() };
        };
        use_up(&mut ledger, 900.0);
        assert!(causes(&mut ledger, &limit, &job, &[], false).is_empty());
        assert_eq!(causes(&mut ledger, &limit, &job, &[], true).len(), 1, "60 + 60 > 100");
        use_up(&mut ledger, 1000.0);
        assert_eq!(causes(&mut ledger, &limit, &job, &[], false).len(), 1);
        let free = Wish { request: &job, nodes: &[], usage_factor: 0.0, is_safe: true, now: 0 };
        let rules = ledger.rules(vec![limit.clone()]);
        assert!(ledger.causes(&rules, &free).is_empty(), "a free QOS always passes");
        assert!(causes(&mut ledger, &limit, &request(&[(Tres::Cpu, 8)], 30), &[], true).is_empty(), "a job without GPUs passes");
    }

    #[test]
    fn a_node_counts_once() {
        let mut ledger = Ledger::default();
        run(&mut ledger, 1, &[(Tres::Node, 2)], &[node(1), node(2)], 60);
        run(&mut ledger, 2, &[(Tres::Node, 1)], &[node(3)], 60);
        let limit = bound(Measure::Tres(Tres::Node), 4);
        let two = request(&[(Tres::Node, 2)], 60);
        assert!(causes(&mut ledger, &limit, &two, &[node(3), node(4)], true).is_empty());
        assert_eq!(causes(&mut ledger, &limit, &two, &[node(4), node(5)], true).len(), 1);
    }

    #[test]
    fn a_verdict_names_the_sum_the_holders_and_the_end() {
        let mut ledger = Ledger::default();
        run(&mut ledger, 1, &[(Tres::Gpu, 4)], &[node(1)], 30);
        run(&mut ledger, 2, &[(Tres::Gpu, 2)], &[node(1)], 10);
        let found = causes(&mut ledger, &bound(Measure::Tres(Tres::Gpu), 8), &request(&[(Tres::Gpu, 5)], 60), &[], true);
        let [verdict] = found.as_slice() else { panic!("one limit, one verdict: {found:?}") };
        assert_eq!((verdict.code.as_str(), verdict.object.as_str()), ("assoc_group_tres", "account/acme/ml"));
        assert_eq!(verdict.rule, "the limit grp_tres gres/gpu=8 of account/acme/ml holds");
        assert_eq!((verdict.have.as_deref(), verdict.need.as_deref()), (Some("6 of 8 gres/gpu in use"), Some("5 gres/gpu")));
        assert_eq!(verdict.holders, ["job/2", "job/1"]);
        assert_eq!(verdict.clears_at, Some(timestamp(span(1800))), "2 are not enough");
    }

    #[test]
    fn what_ends_is_given_back_to_the_last_count() {
        let mut ledger = Ledger::default();
        run(&mut ledger, 1, &[(Tres::Gpu, 4), (Tres::Node, 1)], &[node(1)], 30);
        let key = (JobId(1), None, false);
        assert!(!ledger.remove(&key).is_empty() && ledger.remove(&key).is_empty());
        let counter = &ledger.counters[0];
        assert!(
            counter.runs.is_empty() && counter.nodes.is_empty() && counter.tres.values().all(|sum| *sum == 0) && ledger.runs.is_empty()
        );
    }

    #[test]
    fn run_minutes_and_wall_count_what_is_left() {
        let mut ledger = Ledger::default();
        run(&mut ledger, 1, &[(Tres::Cpu, 4)], &[node(1)], 30);
        let limit = bound(Measure::TresRunMinutes(Tres::Cpu), 200);
        assert!(causes(&mut ledger, &limit, &request(&[(Tres::Cpu, 8)], 10), &[], false).is_empty(), "120 + 80 is not over 200");
        assert_eq!(causes(&mut ledger, &limit, &request(&[(Tres::Cpu, 9)], 10), &[], false).len(), 1);
        *used(&mut ledger) = Used { wall: 59.0 * 60.0 + 59.0, ..Used::default() };
        let wall = bound(Measure::WallMinutes, 60);
        assert!(causes(&mut ledger, &wall, &request(&[], 2), &[], false).is_empty());
        assert_eq!(causes(&mut ledger, &wall, &request(&[], 2), &[], true).len(), 1, "59 + 2 > 60");
    }
}
