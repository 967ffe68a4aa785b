//! What is free on a node that reservations keep something of, seen by each of them and by those in none.
//!
//! At each instant a reservation in its window keeps what it was given, less what its own jobs hold, from all others. Its own jobs get no
//! more than that; outside the window they get nothing, unless it is flex. One that may overlap shares with the others whatever is free.
//! What is held by jobs in none (they were there before) is nobody's.
//!
//! Example: of 16 CPUs 8 are kept over [100, 200). In none: 16 until 100, 8 until 200, then 16. In it: nothing, 8, nothing. When a job in it
//! holds 2: 16, 8, 16 and 0, 6, 0.

use crate::amount::{Amount, Micros};
use crate::fleet::{Fleet, NodeIdx};

/// Held or planned on a node over `from..to`, by way of a reservation.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub from: Micros,
    pub to: Micros,
    pub amount: Amount,
    pub via: Option<u32>,
}

/// What is free from each instant on, as `at` (a node, or a view of it) sees it. The first instant reaches back for ever.
pub fn steps(fleet: &Fleet, at: NodeIdx, taken: &[Taken]) -> Vec<(Micros, Amount)> {
    let windows = fleet.views(at).iter().filter_map(|view| fleet.nodes[*view as usize].via);
    let windows = windows.flat_map(|via| &fleet.reservations[via as usize].windows).flat_map(|(start, end)| [*start, *end]);
    let mut instants: Vec<Micros> = taken.iter().flat_map(|taken| [taken.from, taken.to]).chain(windows).collect();
    instants.push(Micros::MIN);
    instants.sort_unstable();
    instants.dedup();
    instants.into_iter().filter(|at| *at < Micros::MAX).map(|instant| (instant, free(fleet, at, taken, instant))).collect()
}

/// What is free on it at one instant.
pub fn free(fleet: &Fleet, at: NodeIdx, taken: &[Taken], instant: Micros) -> Amount {
    let own = fleet.nodes[at as usize].via;
    let is_there = |taken: &&Taken| taken.from <= instant && instant < taken.to;
    let sum = |by: Option<Option<u32>>| {
        let those = taken.iter().filter(is_there).filter(|taken| by.is_none_or(|by| taken.via == by));
        those.fold(Amount::default(), |sum, taken| sum.plus(&taken.amount))
    };
    let mut rest = fleet.class(fleet.real(at)).total.minus(&sum(None));
    let mut most = rest;
    let shares = own.is_some_and(|own| fleet.reservations[own as usize].may_overlap);
    for view in fleet.views(at) {
        let Some(via) = fleet.nodes[*view as usize].via else { continue };
        let kept = &fleet.reservations[via as usize];
        let is_open = kept.holds_at(instant);
        let left = || fleet.class(*view).total.minus(&sum(Some(Some(via))));
        if own == Some(via) {
            if !kept.is_flex {
                most = if is_open { left() } else { Amount::default() };
            }
        } else if is_open && !shares {
            rest = rest.minus(&left());
        }
    }
    rest.least(&most)
}

#[cfg(test)]
mod tests;
