//! Preemption: choose whom to stop so that one blocked job can start.
//!
//! Input: the job's gang, those it may preempt, what is held and planned. Output: nodes and the victims that must leave them, or
//! nothing. Pure; called by the walk for a job that cannot start now, so what is planned then is planned for jobs ahead of it, and no
//! victim is taken at their cost.
//!
//! All that may be preempted are taken away, and if the job fits then, they are put back one by one, those with the most work to lose
//! first, as long as it still fits. Whoever cannot be put back is a victim: none is more than needed. This is done twice, over all
//! nodes and over those alone that are cheapest to free, and the lesser loss is taken. (Slurm's way minimises the number of victims.)
//!
//! Example: 8 nodes wanted; jobs on 2, 4 and 8 nodes, each an hour old. The one on 8 loses most, but without it the others' 6 nodes do
//! not do: it is a victim. The others are put back.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::JobId;
use berth_model::event::JobSnapshot;
use berth_model::preemption::PreemptMode;
use berth_model::state::JobState;
use berth_model::tres::TresCounts;

use crate::amount::{Amount, Micros, NEVER};
use crate::cohorts::Reclaim;
use crate::fit::{Fit, Variant};
use crate::fleet::{Fleet, Holding, NodeIdx};
use crate::profile::{Profile, first_with};
use crate::shared_gpus;
use crate::victims::{Rules, Victim};
use crate::views::{self, Taken};

/// What is looked at.
pub struct Ground<'a> {
    pub fleet: &'a Fleet,
    pub profile: &'a Profile,
    pub rules: Rules<'a>,
    /// Preempted already in this plan.
    pub taken: &'a BTreeSet<JobId>,
    /// What the job's tenant may have back of what it has lent.
    pub reclaim: &'a Reclaim,
}

/// Whom to stop, and where the job can start then.
#[derive(Debug)]
pub struct Chosen {
    /// Ascending.
    pub nodes: Vec<NodeIdx>,
    /// By what they lose, the least first.
    pub victims: Vec<Victim>,
    /// When all the nodes are free.
    pub ready_at: Micros,
}

/// A victim with the nodes that it would leave.
type Placed = (Victim, Vec<NodeIdx>);
/// For each node, who may be preempted there: places in the list of victims.
type HeldBy = BTreeMap<NodeIdx, Vec<usize>>;

/// The cheapest victims for a gang of `fit` that runs for `length`; nothing if none would do, or if none is needed.
pub fn choose(ground: &Ground<'_>, job: &JobSnapshot, fit: &Fit, length: Micros) -> Option<Chosen> {
    let (victims, held_by) = candidates(ground, job, fit);
    let ready_at = victims.iter().map(|(victim, _)| victim.kill_at).max()?;
    fit.variants.iter().find_map(|variant| {
        let required = fit.candidates.required.as_deref()?;
        let nodes = &fit.candidates.usable;
        let mut search = Search { ground, variant, required, victims: &victims, held_by: &held_by, length, ready_at, gone: Vec::new() };
        search.choose(nodes)
    })
}

/// Who may be preempted on the nodes of the job, by what they lose, each with its nodes; and of each node, who.
fn candidates(ground: &Ground<'_>, job: &JobSnapshot, fit: &Fit) -> (Vec<Placed>, HeldBy) {
    let mut known: BTreeMap<JobId, Option<Placed>> = BTreeMap::new();
    for at in &fit.candidates.usable {
        for holding in ground.fleet.holdings(*at).iter().filter(|h| !h.is_provisional) {
            let entry = known.entry(holding.owner).or_insert_with(|| {
                let other = &ground.rules.world.jobs.get(&holding.owner)?.job;
                let is_below = ground.rules.outranks(job, other) || ground.reclaim.reaches(&other.tenant, charged(other)?);
                let is_free_to_take = !ground.taken.contains(&other.id) && is_below;
                Some((ground.rules.victim(other).filter(|_| is_free_to_take)?, Vec::new()))
            });
            if let Some((_, nodes)) = entry {
                nodes.push(*at);
            }
        }
    }
    let mut victims: Vec<_> = known.into_values().flatten().collect();
    victims.sort_unstable_by_key(|(victim, _)| victim.cost);
    // Of a tenant that has borrowed no more than that is reclaimed, from the cheapest on.
    let mut reclaim = ground.reclaim.clone();
    victims.retain_mut(|(victim, _)| {
        let Some(other) = ground.rules.world.jobs.get(&victim.job).map(|entry| &entry.job) else { return false };
        victim.is_reclaimed = !ground.rules.outranks(job, other);
        !victim.is_reclaimed || charged(other).is_some_and(|held| reclaim.take(&other.tenant, held))
    });
    let mut held_by: HeldBy = BTreeMap::new();
    for (i, (_, nodes)) in victims.iter().enumerate() {
        nodes.iter().for_each(|at| held_by.entry(*at).or_default().push(i));
    }
    (victims, held_by)
}

/// What a running job is charged for.
fn charged(job: &JobSnapshot) -> Option<&TresCounts> {
    Some(&job.attempt.as_ref()?.charge.tres)
}

struct Search<'a> {
    ground: &'a Ground<'a>,
    variant: &'a Variant,
    required: &'a [NodeIdx],
    /// By what they lose.
    victims: &'a [Placed],
    held_by: &'a HeldBy,
    length: Micros,
    /// All victims are gone by then, whoever they are.
    ready_at: Micros,
    /// Of each of the victims: it is taken away.
    gone: Vec<bool>,
}

impl Search<'_> {
    fn choose(&mut self, nodes: &[NodeIdx]) -> Option<Chosen> {
        self.gone = vec![true; self.victims.len()];
        let room: Vec<NodeIdx> = nodes.iter().copied().filter(|at| self.fits(*at, false)).collect();
        if !self.is_enough(&room) {
            return None;
        }
        let all: Vec<usize> = (0..self.victims.len()).collect();
        let cheapest = self.cheapest(&room);
        let ways = [self.put_back(&room, &all), self.put_back(&room, &cheapest)];
        let victims = ways.into_iter().flatten().min_by_key(|chosen| (self.loss(chosen), chosen.len())).filter(|v| !v.is_empty())?;
        // Whoever is ending anyway may make room as well.
        self.gone = vec![false; self.victims.len()];
        let soon: Vec<NodeIdx> = nodes.iter().copied().filter(|at| self.fits(*at, true)).collect();
        if self.is_enough(&soon) {
            return None;
        }
        victims.iter().for_each(|i| self.gone[*i] = true);
        let mut nodes: Vec<NodeIdx> = room.into_iter().filter(|at| self.fits(*at, false)).collect();
        nodes.sort_unstable_by_key(|at| (self.required.binary_search(at).is_err(), self.ground.fleet.class(*at).weight, *at));
        nodes.truncate(self.variant.nodes as usize);
        nodes.sort_unstable();
        let victims: Vec<Victim> = victims.iter().map(|i| self.victims[*i].0.clone()).collect();
        let killed = victims.iter().map(|victim| victim.kill_at).max()?;
        let ready_at = nodes.iter().map(|at| self.free_at(*at, killed)).max()?;
        Some(Chosen { nodes, victims, ready_at })
    }

    fn loss(&self, chosen: &[usize]) -> u128 {
        chosen.iter().map(|i| self.victims[*i].0.cost.lost).sum()
    }

    /// Nodes on which the gang fits are enough, and the required ones are among them.
    fn is_enough(&self, room: &[NodeIdx]) -> bool {
        room.len() >= self.variant.nodes as usize && self.required.iter().all(|at| room.binary_search(at).is_ok())
    }

    /// Takes away only those `among` the victims, then puts back whom it can. What is left; nothing if it never fits.
    fn put_back(&mut self, room: &[NodeIdx], among: &[usize]) -> Option<Vec<usize>> {
        self.gone = vec![false; self.victims.len()];
        among.iter().for_each(|i| self.gone[*i] = true);
        let mut fitting: BTreeMap<NodeIdx, bool> = room.iter().map(|at| (*at, self.fits(*at, false))).collect();
        let mut count = fitting.values().filter(|fits| **fits).count();
        let needed = self.variant.nodes as usize;
        if count < needed || self.required.iter().any(|at| fitting.get(at) != Some(&true)) {
            return None;
        }
        let mut left = Vec::new();
        for i in among.iter().rev() {
            self.gone[*i] = false;
            let theirs = self.victims[*i].1.iter().copied();
            let lost: Vec<NodeIdx> = theirs.filter(|at| fitting.get(at) == Some(&true) && !self.fits(*at, false)).collect();
            let is_required = lost.iter().any(|at| self.required.binary_search(at).is_ok());
            if is_required || count - lost.len() < needed {
                self.gone[*i] = true;
                left.push(*i);
            } else {
                count -= lost.len();
                lost.into_iter().for_each(|at| _ = fitting.insert(at, false));
            }
        }
        left.reverse();
        Some(left)
    }

    /// Who must leave the nodes that are cheapest to free, each looked at by itself; ascending.
    fn cheapest(&mut self, room: &[NodeIdx]) -> Vec<usize> {
        let mut prices: Vec<(bool, u128, NodeIdx, Vec<usize>)> = Vec::with_capacity(room.len());
        for at in room {
            let here = self.held_by.get(at).cloned().unwrap_or_default();
            self.gone = vec![false; self.victims.len()];
            here.iter().for_each(|i| self.gone[*i] = true);
            let mut left = Vec::new();
            for i in here.iter().rev() {
                self.gone[*i] = false;
                if !self.fits(*at, false) {
                    self.gone[*i] = true;
                    left.push(*i);
                }
            }
            prices.push((self.required.binary_search(at).is_err(), self.loss(&left), *at, left));
        }
        prices.sort_unstable();
        let mut chosen: Vec<usize> = prices.into_iter().take(self.variant.nodes as usize).flat_map(|(.., left)| left).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    fn need(&self, at: NodeIdx) -> Option<&Amount> {
        self.variant.needs[self.ground.fleet.nodes[at as usize].class as usize].as_ref()
    }

    /// Who holds something when all that are gone have left, each with whether it is suspended by then.
    fn holders(&self, at: NodeIdx, are_ending_gone: bool) -> impl Iterator<Item = (&Holding, bool)> + '_ {
        let here = self.held_by.get(&at).map(Vec::as_slice).unwrap_or_default();
        self.ground.fleet.holdings(at).iter().filter_map(move |holding| {
            let victim = |i: &usize| Some(&self.victims[*i].0).filter(|victim| self.gone[*i] && victim.job == holding.owner);
            let is_ending = || self.ground.rules.world.jobs.get(&holding.owner).is_some_and(|e| e.job.state == JobState::Completing);
            match here.iter().find_map(victim) {
                Some(victim) => (victim.mode == PreemptMode::Suspend).then_some((holding, true)),
                None if are_ending_gone && is_ending() => None,
                None => Some((holding, false)),
            }
        })
    }

    /// What they hold, each until when, by way of which reservation. Those that are suspended leave their CPUs; to others a job that shares with
    /// its own kind alone keeps the whole node.
    fn held(&self, at: NodeIdx, are_ending_gone: bool) -> Vec<(Micros, Amount, Option<u32>)> {
        let (left, are_still): (Vec<&Holding>, Vec<bool>) = self.holders(at, are_ending_gone).unzip();
        let rest = |holding: &Holding| if holding.sharer.is_some() { holding.amount } else { Amount { cpus: 0, ..holding.amount } };
        let held = |(holding, is_still): (&&Holding, &bool)| match is_still {
            true => (NEVER, rest(holding), holding.via),
            false => (holding.end, holding.amount, holding.via),
        };
        let mut held: Vec<_> = left.iter().zip(&are_still).map(held).collect();
        held.extend(shared_gpus::kept(self.ground.fleet, self.ground.profile.bookings(at), at, &left));
        held
    }

    /// The gang's part is free on a node from when all victims have gone, and in nobody's plan from now on.
    fn fits(&self, at: NodeIdx, are_ending_gone: bool) -> bool {
        let Some(need) = self.need(at) else { return false };
        let until = self.ready_at.saturating_add(self.length);
        if self.ground.fleet.is_reserved(at) {
            return self.fits_in_view(at, need, until, are_ending_gone);
        }
        let (profile, fleet) = (self.ground.profile, self.ground.fleet);
        let opened = shared_gpus::planned(fleet, profile.bookings(at), at, self.ground.rules.now);
        let bookings = profile.bookings(at).iter().map(|booking| booking.held).chain(opened);
        let bookings = bookings.map(|held| (held.from, held.to, held.amount));
        let holders = self.held(at, are_ending_gone).into_iter().map(|(end, amount, _)| (self.ready_at, end, amount));
        let held: Vec<(Micros, Micros, Amount)> = bookings.chain(holders).filter(|(from, to, _)| from < to && *from < until).collect();
        let total = &self.ground.fleet.class(at).total;
        let now = self.ground.rules.now;
        let instants = held.iter().map(|(from, ..)| (*from).max(now)).chain([now]);
        instants.into_iter().all(|instant| {
            let there = held.iter().filter(|(from, to, _)| *from <= instant && instant < *to);
            total.covers(&there.fold(*need, |sum, (_, _, amount)| sum.plus(amount)))
        })
    }

    /// The same where reservations keep something.
    fn fits_in_view(&self, at: NodeIdx, need: &Amount, until: Micros, are_ending_gone: bool) -> bool {
        let fleet = self.ground.fleet;
        let held = |(to, amount, via)| Taken { from: self.ready_at, to, amount, via };
        let mut taken: Vec<Taken> = self.held(at, are_ending_gone).into_iter().map(held).filter(|taken| taken.from < taken.to).collect();
        taken.extend(self.ground.profile.planned_there(fleet, at));
        let now = self.ground.rules.now;
        let steps = views::steps(fleet, at, &taken);
        let first = steps.partition_point(|(from, _)| *from <= now).saturating_sub(1);
        steps[first..].iter().take_while(|(from, _)| *from < until).all(|(_, free)| free.covers(need))
    }

    /// When the gang's part is free on a node, from `killed` on: others may end a little later.
    fn free_at(&self, at: NodeIdx, killed: Micros) -> Micros {
        let Some(need) = self.need(at) else { return killed };
        if self.ground.fleet.is_reserved(at) {
            let held = |(to, amount, via)| Taken { from: Micros::MIN, to, amount, via };
            let taken: Vec<Taken> = self.held(at, false).into_iter().map(held).collect();
            return first_with(&views::steps(self.ground.fleet, at, &taken), need, killed).min(self.ready_at);
        }
        let held: Vec<(Micros, Amount)> = self.held(at, false).into_iter().map(|(end, amount, _)| (end, amount)).collect();
        let total = &self.ground.fleet.class(at).total;
        let mut instants: Vec<Micros> = held.iter().map(|(end, _)| *end).filter(|end| *end > killed).collect();
        instants.push(killed);
        instants.sort_unstable();
        let is_free =
            |instant: &Micros| total.covers(&held.iter().filter(|(end, _)| end > instant).fold(*need, |sum, (_, amount)| sum.plus(amount)));
        instants.into_iter().find(is_free).unwrap_or(self.ready_at)
    }
}
