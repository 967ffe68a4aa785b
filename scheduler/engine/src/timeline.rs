//! One node's free resources over time: a step function, exact at its steps.
//!
//! Each step also keeps which [tiers](crate::tiers) it covers. A gap of a tier is a longest run of steps that cover it; where gaps
//! begin and end is what the [index of gaps](crate::gaps) is told of.

use crate::amount::{Amount, Micros, NEVER};
use crate::tiers::{TierSet, Tiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    from: Micros,
    free: Amount,
    tiers: TierSet,
}

/// Something held on the node over `from..to`.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub from: Micros,
    pub to: Micros,
    pub amount: Amount,
}

/// When a need can begin in a gap: from `first` to at least `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub first: Micros,
    pub last: Micros,
}

/// Steps whose tiers became fewer.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The first changed step and the first one behind.
    steps: (usize, usize),
    /// The first was cut off from the one before: no gap began there, and none does.
    is_new: bool,
    pub tiers: TierSet,
}

/// A beginning of gaps: of the tiers that are `asked` for, those `begun` begin here.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    pub segment: usize,
    pub at: Micros,
    pub asked: TierSet,
    pub begun: TierSet,
}

/// Segments in order; the first reaches back for ever, the last is open. Intervals are half-open: what ends at T is free at T.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    segments: Vec<Segment>,
}

impl Timeline {
    /// Begins anew: `total` without what is `held`, in any order. Where more is held than there is, nothing is free.
    pub fn rebuild(&mut self, total: Amount, held: impl Iterator<Item = Held> + Clone, tiers: &Tiers) {
        let mut steps: Vec<Micros> = held.clone().flat_map(|h| [h.from, h.to]).filter(|at| *at > Micros::MIN && *at < NEVER).collect();
        steps.push(Micros::MIN);
        steps.sort_unstable();
        steps.dedup();
        self.segments.clear();
        let mut sums = vec![Amount::default(); steps.len()];
        for held in held {
            let first = steps.partition_point(|at| *at < held.from);
            for sum in sums[first..].iter_mut().zip(&steps[first..]).take_while(|(_, at)| **at < held.to).map(|(sum, _)| sum) {
                *sum = sum.plus(&held.amount);
            }
        }
        for (from, sum) in steps.into_iter().zip(sums) {
            let free = total.minus(&sum);
            if self.segments.last().is_none_or(|last| last.free != free) {
                self.segments.push(Segment { from, free, tiers: tiers.covered(&free, tiers.all()) });
            }
        }
    }

    /// Begins anew with what is free from each instant on; the first reaches back for ever.
    pub fn rebuild_from(&mut self, steps: impl Iterator<Item = (Micros, Amount)>, tiers: &Tiers) {
        self.segments.clear();
        for (from, free) in steps {
            if self.segments.last().is_none_or(|last| last.free != free) {
                self.segments.push(Segment { from, free, tiers: tiers.covered(&free, tiers.all()) });
            }
        }
    }

    #[inline]
    fn position(&self, at: Micros) -> usize {
        self.segments.partition_point(|s| s.from <= at).saturating_sub(1)
    }

    #[inline]
    fn end(&self, i: usize) -> Micros {
        self.segments.get(i + 1).map_or(NEVER, |next| next.from)
    }

    pub fn free_at(&self, at: Micros) -> &Amount {
        &self.segments[self.position(at)].free
    }

    /// The least of each resource over `from..to`: what one job may hold throughout.
    pub fn least_free(&self, from: Micros, to: Micros) -> Amount {
        let first = self.position(from);
        let mut least = self.segments[first].free;
        for segment in self.segments[first + 1..].iter().take_while(|s| s.from < to) {
            least = least.least(&segment.free);
        }
        least
    }

    /// `need` is free over `from..to`.
    #[inline]
    pub fn fits(&self, need: &Amount, from: Micros, to: Micros) -> bool {
        let first = self.position(from);
        self.segments[first..].iter().enumerate().take_while(|(i, s)| *i == 0 || s.from < to).all(|(_, s)| s.free.covers(need))
    }

    /// The first window at or after `from` in which `need` may begin at `floor` or later and run for `length`, before the tier's
    /// gap around `from` ends.
    #[inline]
    pub fn window(&self, tier: usize, need: &Amount, from: Micros, floor: Micros, length: Micros) -> Option<Window> {
        let mut first = None;
        for (i, segment) in self.segments.iter().enumerate().skip(self.position(from)) {
            if segment.tiers & 1 << tier == 0 {
                return None;
            }
            if !segment.free.covers(need) {
                first = None;
                continue;
            }
            let first = *first.get_or_insert(segment.from.max(from));
            let end = self.end(i);
            let last = if end == NEVER { NEVER } else { end.saturating_sub(length) };
            if last >= first.max(floor) {
                return Some(Window { first, last });
            }
        }
        None
    }

    /// What is free from each instant on; the first reaches back for ever.
    pub fn steps(&self) -> impl Iterator<Item = (Micros, &Amount)> + '_ {
        self.segments.iter().map(|s| (s.from, &s.free))
    }

    /// Instants after `after` at which something changes.
    pub fn steps_after(&self, after: Micros) -> impl Iterator<Item = Micros> + '_ {
        self.segments.iter().map(|s| s.from).filter(move |from| *from > after)
    }

    /// Takes `amount` out of `from..to`.
    pub fn take(&mut self, from: Micros, to: Micros, amount: &Amount, tiers: &Tiers) -> Change {
        let known = self.segments.len();
        let first = self.split(from);
        let is_new = self.segments.len() > known;
        let behind = self.split(to);
        let mut lost = 0;
        for segment in &mut self.segments[first..behind] {
            segment.free = segment.free.minus(amount);
            let left = tiers.covered(&segment.free, segment.tiers);
            lost |= segment.tiers & !left;
            segment.tiers = left;
        }
        Change { steps: (first, behind), is_new, tiers: lost }
    }

    /// Makes `at` the beginning of a segment and returns its place.
    fn split(&mut self, at: Micros) -> usize {
        if at == NEVER {
            return self.segments.len();
        }
        let i = self.position(at);
        if self.segments[i].from == at {
            return i;
        }
        let segment = Segment { from: at, ..self.segments[i] };
        self.segments.insert(i + 1, segment);
        i + 1
    }

    /// Tiers whose gap begins with segment `i`.
    #[inline]
    fn begun(&self, i: usize) -> TierSet {
        let before = if i == 0 { 0 } else { self.segments[i - 1].tiers };
        self.segments[i].tiers & !before
    }

    /// End of the tier's gap that holds segment `i`.
    pub fn gap_end(&self, i: usize, tier: usize) -> Micros {
        self.segments[i..].iter().find(|s| s.tiers & 1 << tier == 0).map_or(NEVER, |s| s.from)
    }

    /// All beginnings of gaps.
    pub fn gaps(&self) -> impl Iterator<Item = Begin> + '_ {
        let begin = |i| Begin { segment: i, at: self.segments[i].from, asked: self.begun(i), begun: self.begun(i) };
        (0..self.segments.len()).map(begin).filter(|begin| begin.begun != 0)
    }

    /// Where gaps of the changed tiers begin or may have begun before.
    pub fn changed(&self, change: Change) -> impl Iterator<Item = Begin> + '_ {
        let (first, behind) = change.steps;
        // To the left: the gaps that now end sooner.
        let mut open = if first == 0 { 0 } else { change.tiers & self.segments[first - 1].tiers };
        let mut i = first;
        let left = std::iter::from_fn(move || {
            while open != 0 && i > 0 {
                i -= 1;
                let begun = self.begun(i) & open;
                open &= !begun;
                if begun != 0 {
                    return Some(Begin { segment: i, at: self.segments[i].from, asked: begun, begun });
                }
            }
            None
        });
        let inside = first + usize::from(change.is_new)..(behind + 1).min(self.segments.len());
        let begin = move |i| Begin { segment: i, at: self.segments[i].from, asked: change.tiers, begun: self.begun(i) & change.tiers };
        left.chain(inside.map(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn cpus(cpus: u32) -> Amount {
        Amount { cpus, ..Amount::default() }
    }

    fn of(total: u32, held: &[(Micros, Micros, u32)]) -> (Timeline, Tiers) {
        let tiers = Tiers::of(&BTreeMap::from([(cpus(1), 1), (cpus(4), 1)]));
        let mut line = Timeline::default();
        line.rebuild(cpus(total), held.iter().map(|(from, to, n)| Held { from: *from, to: *to, amount: cpus(*n) }), &tiers);
        (line, tiers)
    }

    fn begins(line: &Timeline, need: u32, from: Micros, length: Micros) -> Option<Micros> {
        line.window(0, &cpus(need), from, from, length).map(|window| window.first)
    }

    #[test]
    fn an_end_and_a_start_at_the_same_instant_do_not_collide() {
        let (mut line, tiers) = of(4, &[(Micros::MIN, 100, 4)]);
        assert_eq!(begins(&line, 4, 0, 50), Some(100));
        line.take(100, 200, &cpus(4), &tiers);
        assert_eq!(begins(&line, 1, 0, 50), Some(200));
        assert_eq!(line.least_free(100, 200), cpus(0));
        assert_eq!(line.least_free(200, 300), cpus(4));
    }

    #[test]
    fn a_gap_takes_only_what_is_short_enough() {
        let (line, _) = of(4, &[(100, 200, 4)]);
        assert_eq!(begins(&line, 1, 0, 100), Some(0));
        assert_eq!(begins(&line, 1, 0, 101), Some(200));
        assert_eq!(begins(&line, 5, 0, 1), None);
        assert!(line.fits(&cpus(4), 0, 100) && !line.fits(&cpus(1), 0, 101));
    }

    #[test]
    fn a_window_may_begin_before_the_floor_but_reaches_it() {
        let (line, _) = of(4, &[(100, 200, 4), (300, 400, 2)]);
        assert_eq!(line.window(0, &cpus(2), 0, 250, 40), Some(Window { first: 200, last: 260 }));
        assert_eq!(line.window(0, &cpus(3), 0, 250, 40), Some(Window { first: 200, last: 260 }));
        assert_eq!(line.window(0, &cpus(3), 0, 261, 40), Some(Window { first: 400, last: NEVER }));
    }

    #[test]
    fn a_hold_too_large_leaves_nothing_and_gives_back_no_more() {
        let (line, _) = of(4, &[(Micros::MIN, 100, 4), (Micros::MIN, 200, 3)]);
        assert_eq!((*line.free_at(50), *line.free_at(150), *line.free_at(200)), (cpus(0), cpus(1), cpus(4)));
    }

    #[test]
    fn what_a_take_changes_is_what_a_rebuild_shows() {
        let (mut line, tiers) = of(8, &[(Micros::MIN, 50, 8), (70, 80, 6)]);
        let change = line.take(60, 90, &cpus(2), &tiers);
        let told: Vec<_> = line.changed(change).filter(|b| b.begun != 0).map(|b| (b.at, b.begun)).collect();
        // At 70 nothing is left: the gap of one CPU from 50 ends there, and another begins at 80; that of four was cut already.
        assert_eq!(told, [(50, 0b010), (80, 0b010)]);
        assert_eq!(line.gap_end(1, 1), 70);
    }
}
