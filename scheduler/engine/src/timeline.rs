//! One node's free resources over time: a step function, exact at its steps.

use crate::amount::{Amount, Micros, NEVER};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    from: Micros,
    free: Amount,
}

/// Segments in order; the first reaches back for ever, the last is open. Intervals are half-open: what ends at T is free at T.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    segments: Vec<Segment>,
}

impl Timeline {
    /// `releases` are (end, amount) of what is held now, in any order.
    pub fn of(total: Amount, releases: &mut [(Micros, Amount)]) -> Self {
        releases.sort_unstable();
        // Starts from all of it minus what is held and gives back up to the total, so that a hold too large never yields more.
        let mut held = releases.iter().fold(Amount::default(), |sum, (_, amount)| sum.plus(amount));
        let mut segments = Vec::with_capacity(releases.len() + 1);
        segments.push(Segment { from: Micros::MIN, free: total.minus(&held) });
        for (end, amount) in releases.iter() {
            held = held.minus(amount);
            let free = total.minus(&held);
            match segments.last_mut() {
                Some(last) if last.from == *end => last.free = free,
                _ => segments.push(Segment { from: *end, free }),
            }
        }
        Timeline { segments }
    }

    #[inline]
    fn position(&self, at: Micros) -> usize {
        // Timelines are short; most questions are about their beginning.
        let mut i = 0;
        while i + 1 < self.segments.len() && self.segments[i + 1].from <= at {
            i += 1;
        }
        i
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

    /// The earliest instant at or after `from` from which `need` is free for `length`; [`NEVER`] if there is none.
    #[inline]
    pub fn next_fit(&self, need: &Amount, from: Micros, length: Micros) -> Micros {
        let mut start = from;
        let mut i = self.position(from);
        loop {
            let end = self.segments.get(i + 1).map_or(NEVER, |next| next.from);
            if !self.segments[i].free.covers(need) {
                if end == NEVER {
                    return NEVER;
                }
                start = end;
            } else if end == NEVER || end >= start.saturating_add(length) {
                return start;
            }
            i += 1;
        }
    }

    /// Instants after `after` at which something changes.
    pub fn steps_after(&self, after: Micros) -> impl Iterator<Item = Micros> + '_ {
        self.segments.iter().map(|s| s.from).filter(move |from| *from > after)
    }

    /// Takes `amount` out of `from..to`.
    pub fn take(&mut self, from: Micros, to: Micros, amount: &Amount) {
        let first = self.split(from);
        let last = self.split(to);
        for segment in &mut self.segments[first..last] {
            segment.free = segment.free.minus(amount);
        }
    }

    /// Makes `at` the beginning of a segment and returns its place.
    fn split(&mut self, at: Micros) -> usize {
        let i = self.position(at);
        if self.segments[i].from == at {
            return i;
        }
        let free = self.segments[i].free;
        self.segments.insert(i + 1, Segment { from: at, free });
        i + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(cpus: u32) -> Amount {
        Amount { cpus, ..Amount::default() }
    }

    #[test]
    fn an_end_and_a_start_at_the_same_instant_do_not_collide() {
        let mut line = Timeline::of(cpus(4), &mut [(100, cpus(4))]);
        assert_eq!(line.next_fit(&cpus(4), 0, 50), 100);
        line.take(100, 200, &cpus(4));
        assert_eq!(line.next_fit(&cpus(1), 0, 50), 200);
        assert_eq!(line.least_free(100, 200), cpus(0));
        assert_eq!(line.least_free(200, 300), cpus(4));
    }

    #[test]
    fn a_gap_takes_only_what_is_short_enough() {
        let mut line = Timeline::of(cpus(4), &mut []);
        line.take(100, 200, &cpus(4));
        assert_eq!(line.next_fit(&cpus(1), 0, 100), 0);
        assert_eq!(line.next_fit(&cpus(1), 0, 101), 200);
        assert_eq!(line.next_fit(&cpus(5), 0, 1), NEVER);
    }
}
