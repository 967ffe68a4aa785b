//! The profile: free resources of all nodes over future instants.
//!
//! It holds running attempts, starts and planned starts, and stays between plans: an event changes the lines of the nodes it
//! concerns, and a quick plan goes on from there. A full plan begins it anew without planned starts.
//!
//! Attempts end at `started_at` (before that, `allocated_at`) + time limit. What should have ended by now, and what is
//! cleaning up, is taken to end one second from now.
//!
//! Besides the lines it keeps two orders, both by class: the [gaps](crate::gaps) by the instant at which they begin, and the
//! [filling](crate::filling) of what is free now.
//!
//! A node that reservations keep something of has a line for each of its [views](crate::views). Whatever is taken there is drawn anew on
//! all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use berth_model::JobId;

use crate::amount::{Amount, Micros, NEVER, SECOND};
use crate::filling::Filling;
use crate::fleet::{Fleet, NodeIdx};
use crate::gaps::{Gaps, Place};
use crate::shared_gpus::{self, Opened, Part};
use crate::sharing::Sharer;
use crate::tiers::{Tiers, members};
use crate::timeline::{Begin, Held, Timeline, Window};
use crate::views::{self, Taken};

/// A planned start's part on one node.
#[derive(Clone, Debug)]
pub struct Booking {
    pub job: JobId,
    /// Of a job that shares with its own kind alone: the whole node.
    pub held: Held,
    /// Of such a one: whose it is, and what it takes to those that it shares with.
    pub shared: Option<(Arc<Sharer>, Amount)>,
    /// Of a share of a GPU: which one. The GPU itself is not in `held`.
    pub part: Option<Part>,
}

/// The gaps of one class.
#[derive(Debug, Default)]
struct Shelf {
    tiers: Tiers,
    gaps: Gaps,
}

#[derive(Debug, Default)]
pub struct Profile {
    /// The instant of the last full plan: nothing is indexed before.
    origin: Micros,
    /// The latest instant that it was told: what should have ended by then ends a second later.
    now: Micros,
    pub lines: Vec<Timeline>,
    pub filling: Filling,
    /// By node.
    bookings: Vec<Vec<Booking>>,
    /// By class.
    shelves: Vec<Shelf>,
    /// When holders should have ended. May name nodes whose holders have gone.
    ends: BinaryHeap<Reverse<(Micros, NodeIdx)>>,
}

impl Profile {
    /// What is held now, without planned starts. `needs` are the amounts that jobs will ask for, by class, with their numbers of jobs.
    pub fn begin(&mut self, fleet: &Fleet, needs: &[BTreeMap<Amount, u32>], now: Micros) {
        let n = fleet.nodes.len();
        (self.origin, self.now) = (now, now);
        self.lines.resize_with(n, Timeline::default);
        self.bookings.resize_with(n, Vec::new);
        self.bookings.iter_mut().for_each(Vec::clear);
        self.shelves = needs.iter().map(|needs| Shelf { tiers: Tiers::of(needs), gaps: Gaps::default() }).collect();
        let mut ends = Vec::new();
        let mut entries = vec![Vec::new(); fleet.classes.len()];
        for at in 0..n as NodeIdx {
            let entry = &fleet.nodes[at as usize];
            ends.extend(entry.holdings.iter().map(|h| Reverse((h.end, at))));
            self.draw(fleet, at, now);
            if entry.is_usable {
                let line = &self.lines[at as usize];
                let gaps = line.gaps().map(|begin| (begin.at.max(now), at, self.ends_of(line, &begin)));
                entries[entry.class as usize].extend(gaps);
            }
        }
        self.ends = BinaryHeap::from(ends);
        for (shelf, mut entries) in self.shelves.iter_mut().zip(entries) {
            entries.sort_unstable_by_key(|(from, at, _)| (*from, *at));
            shelf.gaps.build(now, shelf.tiers.len(), &entries);
        }
        self.filling.build(fleet, self.lines.iter().map(|line| *line.free_at(now)).collect());
    }

    /// Draws a node's line from what is held and booked there. `now` clamps overdue ends.
    fn draw(&mut self, fleet: &Fleet, at: NodeIdx, now: Micros) {
        let entry = &fleet.nodes[at as usize];
        if fleet.is_reserved(at) {
            let mut taken = held_there(fleet, at, now);
            taken.extend(self.planned_there(fleet, at));
            let tiers = &self.shelves[entry.class as usize].tiers;
            self.lines[at as usize].rebuild_from(views::steps(fleet, at, &taken).into_iter(), tiers);
            return;
        }
        let holdings = entry.holdings.iter().map(|h| Held { from: Micros::MIN, to: h.ends(now), amount: h.amount });
        let opened = shared_gpus::planned(fleet, &self.bookings[at as usize], at, now);
        let held = holdings.chain(self.bookings[at as usize].iter().map(|booking| booking.held)).chain(opened.iter().copied());
        let tiers = &self.shelves[entry.class as usize].tiers;
        self.lines[at as usize].rebuild(fleet.classes[entry.class as usize].total, held, tiers);
    }

    fn ends_of(&self, line: &Timeline, begin: &Begin) -> [i32; crate::tiers::MOST] {
        let mut ends = Gaps::NO_ENDS;
        for tier in members(begin.begun) {
            ends[tier] = Gaps::end(self.origin, line.gap_end(begin.segment, tier));
        }
        ends
    }

    /// Draws a node anew, with its views, after what it holds has changed.
    pub fn redraw(&mut self, fleet: &Fleet, at: NodeIdx, now: Micros) {
        self.now = self.now.max(now);
        if !fleet.is_reserved(at) {
            let held = fleet.nodes[at as usize].holdings.iter().fold(Amount::default(), |sum, h| sum.plus(&h.amount));
            self.redraw_face(fleet, at, now, fleet.class(at).total.minus(&held));
        } else {
            let taken = held_there(fleet, at, now);
            fleet.faces(at).for_each(|face| self.redraw_face(fleet, face, now, views::free(fleet, face, &taken, now)));
        }
    }

    /// `free`: what nobody holds there now.
    fn redraw_face(&mut self, fleet: &Fleet, at: NodeIdx, now: Micros, free: Amount) {
        let entry = &fleet.nodes[at as usize];
        let class = entry.class as usize;
        if entry.is_usable {
            let shelf = &mut self.shelves[class];
            for begin in self.lines[at as usize].gaps() {
                shelf.gaps.set((begin.at.max(self.origin), at), begin.asked, 0, &Gaps::NO_ENDS);
            }
        }
        self.draw(fleet, at, now);
        let line = &self.lines[at as usize];
        if entry.is_usable {
            for begin in line.gaps() {
                let ends = self.ends_of(line, &begin);
                self.shelves[class].gaps.set((begin.at.max(self.origin), at), begin.asked, begin.begun, &ends);
            }
        }
        self.filling.set(fleet, at, free);
        self.ends.extend(entry.holdings.iter().filter(|h| h.end > now).map(|h| Reverse((h.end, at))));
    }

    /// Nodes whose holders should have ended by now are drawn anew, so that they end in a second. `true`: there are some.
    pub fn clamp_overdue(&mut self, fleet: &Fleet, now: Micros) -> bool {
        self.now = self.now.max(now);
        let mut overdue = Vec::new();
        while let Some(Reverse((_, at))) = self.ends.peek().filter(|Reverse((end, _))| *end <= now) {
            if fleet.nodes[*at as usize].holdings.iter().any(|h| h.end <= now) {
                overdue.push(*at);
            }
            self.ends.pop();
        }
        overdue.sort_unstable();
        overdue.dedup();
        for at in &overdue {
            self.redraw(fleet, *at, now);
            self.ends.push(Reverse((now.saturating_add(SECOND), *at)));
        }
        !overdue.is_empty()
    }

    /// Takes a start: it holds `amount` from now on. The fleet holds it already.
    pub fn start(&mut self, fleet: &Fleet, at: NodeIdx, held: Held) {
        let shares_gpu = || fleet.holdings(at).last().is_some_and(|newest| newest.share.is_some());
        if fleet.is_reserved(at) || shares_gpu() {
            self.ends.push(Reverse((held.to, fleet.real(at))));
            self.redraw(fleet, at, self.now);
            return;
        }
        let left = self.filling.free[at as usize].minus(&held.amount);
        self.filling.set(fleet, at, left);
        self.ends.push(Reverse((held.to, at)));
        self.take(fleet, at, held);
    }

    /// Takes a planned start.
    pub fn book(&mut self, fleet: &Fleet, at: NodeIdx, booking: Booking) {
        let held = booking.held;
        let shares_gpu = booking.part.is_some();
        self.bookings[at as usize].push(booking);
        if fleet.is_reserved(at) || shares_gpu {
            self.redraw(fleet, at, self.now);
        } else {
            self.take(fleet, at, held);
        }
    }

    fn take(&mut self, fleet: &Fleet, at: NodeIdx, held: Held) {
        let class = fleet.nodes[at as usize].class as usize;
        // What begins now belongs to the first step, which reaches back: the index has one key for all before its origin.
        let from = if held.from <= self.origin { Micros::MIN } else { held.from };
        let change = self.lines[at as usize].take(from, held.to, &held.amount, &self.shelves[class].tiers);
        if change.tiers == 0 {
            return;
        }
        let line = &self.lines[at as usize];
        for begin in line.changed(change) {
            let ends = self.ends_of(line, &begin);
            self.shelves[class].gaps.set((begin.at.max(self.origin), at), begin.asked, begin.begun, &ends);
        }
    }

    /// Forgets a job's planned starts on a node.
    pub fn unbook(&mut self, fleet: &Fleet, at: NodeIdx, job: JobId, now: Micros) {
        self.bookings[at as usize].retain(|booking| booking.job != job);
        self.redraw(fleet, at, now);
    }

    /// What is planned on one opened GPU of a node is on that other one from now on.
    pub fn rename(&mut self, at: NodeIdx, old: Opened, new: Opened) {
        let parts = self.bookings[at as usize].iter_mut().filter_map(|booking| booking.part.as_mut());
        parts.filter(|part| part.gpu == old).for_each(|part| part.gpu = new);
    }

    pub fn bookings(&self, at: NodeIdx) -> &[Booking] {
        &self.bookings[at as usize]
    }

    /// What is planned on a node, by all its views.
    pub fn planned_there<'a>(&'a self, fleet: &'a Fleet, at: NodeIdx) -> impl Iterator<Item = Taken> + 'a {
        fleet.faces(at).flat_map(|face| {
            let via = fleet.nodes[face as usize].via;
            let planned = self.bookings[face as usize].iter().map(|booking| booking.held);
            planned.map(move |held| Taken { from: held.from, to: held.to, amount: held.amount, via })
        })
    }

    /// When the holders on a node will have left `need`, whoever has planned starts.
    pub fn free_of_holders(&self, fleet: &Fleet, at: NodeIdx, need: &Amount, now: Micros) -> Micros {
        if fleet.is_reserved(at) {
            return first_with(&views::steps(fleet, at, &held_there(fleet, at, now)), need, now);
        }
        let entry = &fleet.nodes[at as usize];
        let mut ends: Vec<(Micros, Amount)> = entry.holdings.iter().map(|h| (h.ends(now), h.amount)).collect();
        ends.sort_unstable();
        let mut from = now;
        for (end, _) in &ends {
            let held = ends.iter().filter(|(end, _)| *end > from).fold(Amount::default(), |sum, (_, amount)| sum.plus(amount));
            if fleet.classes[entry.class as usize].total.minus(&held).covers(need) {
                return from;
            }
            from = *end;
        }
        from
    }

    /// `need` is free on a node from `at` for `length`.
    pub fn fits(&self, node: NodeIdx, need: &Amount, at: Micros, length: Micros) -> bool {
        self.lines[node as usize].fits(need, at, at.saturating_add(length))
    }

    /// A walk over the gaps of a class in which `need` may be free for `length`.
    pub fn walk(&self, class: u32, need: Amount, length: Micros) -> Walk {
        Walk { class, tier: self.shelves[class as usize].tiers.of_need(&need), need, length, place: Place::default() }
    }

    /// The same, from the first gap behind `key` on.
    pub fn walk_behind(&self, class: u32, need: Amount, length: Micros, key: Option<(Micros, NodeIdx)>) -> Walk {
        let walk = self.walk(class, need, length);
        Walk { place: key.map_or(walk.place, |key| self.shelves[class as usize].gaps.behind(key)), ..walk }
    }

    /// The next gap that may hold the need at `floor` or later: its instant and node.
    #[inline]
    pub fn next_gap(&mut self, walk: &mut Walk, floor: Micros) -> Option<(Micros, NodeIdx)> {
        let until = floor.saturating_add(walk.length);
        self.shelves[walk.class as usize].gaps.next(&mut walk.place, walk.tier, walk.length, until)
    }

    /// The first window of a walk's need on a node at or after `from` that reaches `floor`, within one gap of the walk.
    #[inline]
    pub fn window(&self, walk: &Walk, node: NodeIdx, from: Micros, floor: Micros) -> Option<Window> {
        self.lines[node as usize].window(walk.tier, &walk.need, from, floor, walk.length)
    }

    /// The first instant at or after `from` at which a node has `need` for `length`; [`NEVER`] if there is none.
    pub fn next_fit(&self, node: NodeIdx, need: &Amount, from: Micros, length: Micros) -> Micros {
        // Tier 0 asks for nothing: its gap has no end.
        self.lines[node as usize].window(0, need, from, from, length).map_or(NEVER, |window| window.first)
    }
}

/// What is held on a node, by all its views. What should have ended by `now` ends in a second.
fn held_there(fleet: &Fleet, at: NodeIdx, now: Micros) -> Vec<Taken> {
    fleet.holdings(at).iter().map(|h| Taken { from: Micros::MIN, to: h.ends(now), amount: h.amount, via: h.via }).collect()
}

/// The first instant, not before `from`, at which `need` is free; [`NEVER`] if it never is.
pub fn first_with(steps: &[(Micros, Amount)], need: &Amount, from: Micros) -> Micros {
    let behind = steps.partition_point(|(at, _)| *at <= from).saturating_sub(1);
    steps[behind..].iter().find(|(_, free)| free.covers(need)).map_or(NEVER, |(at, _)| (*at).max(from))
}

/// Where a search stands in one class.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    class: u32,
    tier: usize,
    need: Amount,
    length: Micros,
    place: Place,
}
