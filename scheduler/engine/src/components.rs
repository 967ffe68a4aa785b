//! Heterogeneous jobs: components that start together or not at all. They are one entry of the queue whose placement is a list.
//!
//! The instant: no earlier than each component could start alone; from there on instant by instant, until all find room beside each other.
//! At an instant they are placed one by one, whoever has the fewest nodes to choose from first, and whoever then finds no room is tried
//! first once. What is planned is booked for all, or for none.
//!
//! Example: component 0 has its nodes now, component 1 when a job ends at 12:30: both are planned for 12:30, and what binds is
//! component 1's. The nodes of component 0 are free for others up to 12:30.

use std::collections::BTreeSet;

use berth_model::component::ComponentOf;
use berth_model::verdict::Verdict;

use crate::amount::{Micros, NEVER};
use crate::backfill::{Outcome, Queued, Wait};
use crate::eligible::Rules;
use crate::engine::World;
use crate::explain::{Words, say};
use crate::fit::Fitness;
use crate::fleet::NodeIdx;
use crate::limits::Causes;
use crate::pass::{Found, Pass, Ways};
use crate::plan::{Plan, Start};
use crate::queue::{self, Elders, Judged};

/// Instants tried one after the other; beyond, the search goes on where the component that found no room would.
const MOST_STEPS: usize = 64;
/// Instants tried in all.
const MOST_TRIES: usize = 512;

/// Components that wait.
#[derive(Clone, Debug)]
pub struct Together {
    /// What is to be told of components, by their offset; the one that binds first.
    pub told: Vec<(usize, Wait)>,
    /// When all are planned to start, and the nodes of each.
    pub planned: Option<(Micros, Vec<Vec<NodeIdx>>)>,
}

/// Marks verdicts as of a component.
pub fn of_component(offset: usize, verdicts: Vec<Verdict>) -> impl Iterator<Item = Verdict> {
    verdicts.into_iter().map(move |verdict| Verdict { component: Some(offset as u32), ..verdict })
}

/// What policy says of all components: one entry for the queue, or what holds any of them.
pub fn judge(world: &World, rules: &Rules<'_>, of: ComponentOf, elders: &Elders<'_>, plan: &mut Plan) -> Result<Queued, Vec<Verdict>> {
    let mut parts = Vec::new();
    let mut causes = Vec::new();
    for (offset, id) in of.jobs().enumerate() {
        let entry = world.jobs.get(&id).filter(|entry| queue::is_waiting(&entry.job, &world.unconfirmed));
        let held = match entry.map(|entry| queue::judge(world, rules, entry, elders, plan)) {
            Some(Judged::Queued(queued)) => {
                parts.push(queued);
                continue;
            }
            Some(Judged::Held(held)) => held,
            None => vec![
                say("component", "all components of a job start together", format!("job/{id}"))
                    .have("it does not wait yet")
                    .advice("nothing to do: what is left of its last run is being cleaned up"),
            ],
        };
        causes.push((offset, held));
    }
    if causes.is_empty() {
        let mut parts = parts.into_iter();
        let leader = parts.next().unwrap_or_else(|| unreachable!("a job has components"));
        return Ok(Queued { components: parts.collect(), ..leader });
    }
    // What nothing clears by itself binds first, then what clears last.
    let clears = |held: &Vec<Verdict>| {
        held.iter().map(|verdict| verdict.clears_at).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
    };
    causes.sort_by_key(|(_, held)| match clears(held) {
        None => (false, std::cmp::Reverse(None)),
        at => (true, std::cmp::Reverse(at)),
    });
    Err(causes.into_iter().flat_map(|(offset, held)| of_component(offset, held)).collect())
}

/// Starts or plans all components, or none.
pub fn consider(pass: &mut Pass<'_>, whole: &Queued, depth: usize, planned: &mut usize, starts: &mut Vec<Start>) -> Outcome {
    let parts: Vec<&Queued> = whole.parts().collect();
    let ways: Vec<Ways> = parts.iter().map(|part| pass.ways(part)).collect();
    let told = refused(pass, &parts, &ways);
    if !told.is_empty() {
        return waits(told);
    }
    let told = limited(pass, &parts);
    if !told.is_empty() {
        return waits(told);
    }
    let by_deadline = parts.iter().map(|part| part.deadline.map_or(NEVER, |deadline| deadline.saturating_sub(part.length))).min();
    let by_deadline = by_deadline.unwrap_or(NEVER);
    let latest = if *planned >= depth { pass.now.min(by_deadline) } else { by_deadline };
    let mut search = Search { pass, parts: &parts, ways: &ways, latest, alone: Vec::new(), stuck: 0 };
    let Some((at, found)) = search.run() else {
        let stuck = search.stuck;
        let wait = if latest == by_deadline && latest < NEVER { Wait::TooLate } else { Wait::NotNow };
        return waits(vec![(stuck, wait)]);
    };
    let (alone, stuck) = (search.alone, search.stuck);
    if at == pass.now {
        return start(pass, &parts, &ways, &found, starts);
    }
    *planned += 1;
    let nodes: Vec<Vec<NodeIdx>> = found.iter().map(|found| found.parts.iter().map(|(node, _)| *node).collect()).collect();
    let mut late: Vec<usize> = (0..parts.len()).filter(|i| alone[*i] > pass.now).collect();
    late.sort_by_key(|i| std::cmp::Reverse(alone[*i]));
    if late.is_empty() {
        late.push(stuck);
    }
    let told = late.into_iter().map(|i| (i, Wait::Planned { at, nodes: nodes[i].clone() })).collect();
    Outcome { wait: Wait::Together(Box::new(Together { told, planned: Some((at, nodes)) })), started: 0 }
}

fn waits(told: Vec<(usize, Wait)>) -> Outcome {
    Outcome { wait: Wait::Together(Box::new(Together { told, planned: None })), started: 0 }
}

/// Components that no nodes, or too few licences, can ever carry.
fn refused(pass: &Pass<'_>, parts: &[&Queued], ways: &[Ways]) -> Vec<(usize, Wait)> {
    let of = |ways: &Ways| match ways.unfit() {
        Some((key, fitness)) => Some(Wait::Unfit(key, fitness)),
        None if ways.all().any(|(key, fit)| fit.fitness == Fitness::Fits && pass.may_have_licenses(key)) => None,
        None => Some(Wait::Unlicensed),
    };
    (0..parts.len()).filter_map(|i| Some((i, of(&ways[i])?))).collect()
}

/// Components that limits hold: each counts beside those before it.
fn limited(pass: &mut Pass<'_>, parts: &[&Queued]) -> Vec<(usize, Wait)> {
    let mut told = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let causes = pass.limits(part);
        if !causes.is_empty() {
            told.push((i, Wait::Limited(causes)));
        }
        let least = pass.request(part).tres.clone();
        let charge = pass.accounts.charge(part.party, least);
        pass.accounts.count_start(part.party, (part.job, None), &charge, Vec::new(), pass.now, part.length);
    }
    uncount(pass, parts);
    told
}

/// What was counted to try is counted no more.
fn uncount(pass: &mut Pass<'_>, parts: &[&Queued]) {
    parts.iter().for_each(|part| _ = pass.accounts.ledger.remove(&(part.job, None, true)));
}

/// Starts all where they were found to fit. Limits may refuse what is taken there: then none starts.
fn start(pass: &mut Pass<'_>, parts: &[&Queued], ways: &[Ways], found: &[Found], starts: &mut Vec<Start>) -> Outcome {
    parts.iter().for_each(|part| pass.unbook(part.job));
    if let Err(refused) = charged(pass, parts, ways, found) {
        return waits(vec![refused]);
    }
    let mut started = 0;
    for (i, part) in parts.iter().enumerate() {
        match pass.start(part, None, ways[i].fit(found[i].key), &found[i]) {
            Ok(start) => {
                starts.push(start);
                started += 1;
            }
            Err(_) => unreachable!("limits were asked in the same order just now"),
        }
    }
    Outcome { wait: Wait::No, started }
}

/// Asks limits for all components at their places, each beside those before it.
fn charged(pass: &mut Pass<'_>, parts: &[&Queued], ways: &[Ways], found: &[Found]) -> Result<(), (usize, Wait)> {
    let mut refused: Option<(usize, Causes)> = None;
    for (i, part) in parts.iter().enumerate() {
        match pass.count(part, ways[i].fit(found[i].key), &found[i]) {
            Ok(()) => {}
            Err(causes) => {
                refused = Some((i, causes));
                break;
            }
        }
    }
    uncount(pass, parts);
    refused.map_or(Ok(()), |(i, causes)| Err((i, Wait::Limited(causes))))
}

/// The search for the instant.
struct Search<'s, 'a> {
    pass: &'s mut Pass<'a>,
    parts: &'s [&'s Queued],
    ways: &'s [Ways],
    latest: Micros,
    /// When each could start if the others were not there.
    alone: Vec<Micros>,
    /// Who found no room last.
    stuck: usize,
}

impl Search<'_, '_> {
    /// The instant, and where each goes: booked, in the order of the components.
    fn run(&mut self) -> Option<(Micros, Vec<Found>)> {
        let mut at = self.each_from(self.pass.now)?;
        for tries in 0..MOST_TRIES {
            match self.fit_all(at) {
                Ok(found) => return Some((at, found)),
                Err(later) => {
                    let next = if tries < MOST_STEPS { self.next_change(at).min(later) } else { later };
                    at = self.each_from(next)?;
                }
            }
        }
        None
    }

    /// The first instant from `from` on at which each component finds room by itself.
    fn each_from(&mut self, from: Micros) -> Option<Micros> {
        let is_first = self.alone.is_empty();
        let mut at = from;
        loop {
            let before = at;
            for i in 0..self.parts.len() {
                let Some(found) = self.find(i, at, self.latest).map(|found| found.at) else {
                    self.stuck = i;
                    return None;
                };
                if is_first && self.alone.len() == i {
                    // Not before the others: whoever pushes the instant on is late.
                    self.alone.push(if found > at { found } else { self.pass.now });
                }
                at = at.max(found);
            }
            if at == before {
                return Some(at);
            }
        }
    }

    fn find(&mut self, i: usize, from: Micros, latest: Micros) -> Option<Found> {
        if from > latest || from == NEVER {
            return None;
        }
        self.pass.find_way_from(self.parts[i], &self.ways[i], from, latest)
    }

    /// Books all at `at`; `Err`: one of them finds no room beside the others before this later instant.
    fn fit_all(&mut self, at: Micros) -> Result<Vec<Found>, Micros> {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|i| (self.choice(*i), *i));
        let mut tried_first = BTreeSet::from([order[0]]);
        let mut later = NEVER;
        loop {
            match self.book(&order, at) {
                Ok(found) => return Ok(found),
                Err((stuck, next)) => {
                    self.stuck = stuck;
                    later = later.min(next);
                    if !tried_first.insert(stuck) {
                        return Err(later);
                    }
                    order.retain(|i| *i != stuck);
                    order.insert(0, stuck);
                }
            }
        }
    }

    /// Nodes that a component may choose from.
    fn choice(&self, i: usize) -> usize {
        self.ways[i].all().map(|(_, fit)| fit.candidates.usable.len()).sum()
    }

    /// Books the components in this order; or none, and says who finds no room, and when he would.
    fn book(&mut self, order: &[usize], at: Micros) -> Result<Vec<Found>, (usize, Micros)> {
        let mut found: Vec<Option<Found>> = vec![None; self.parts.len()];
        for i in order {
            match self.find(*i, at, at).filter(|found| found.at == at) {
                Some(place) => {
                    let part = self.parts[*i];
                    self.pass.reserve(part.job, self.ways[*i].fit(place.key), &place, part.length);
                    found[*i] = Some(place);
                }
                None => {
                    let next = self.find(*i, at.saturating_add(1), self.latest).map_or(NEVER, |found| found.at);
                    self.parts.iter().for_each(|part| self.pass.unbook(part.job));
                    return Err((*i, next));
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The next instant at which anything changes on nodes that some component may use.
    fn next_change(&self, at: Micros) -> Micros {
        let nodes: BTreeSet<NodeIdx> =
            self.ways.iter().flat_map(Ways::all).flat_map(|(_, fit)| fit.candidates.usable.iter().copied()).collect();
        let lines = nodes.into_iter().filter_map(|node| self.pass.profile.lines[node as usize].steps_after(at).next());
        lines.min().unwrap_or(NEVER)
    }
}
