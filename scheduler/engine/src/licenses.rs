//! Licences: what the cluster has a number of, who holds how many until when, and what is planned.
//!
//! Beside the [profile](crate::profile), which has the nodes, each licence has a line of its own: what is taken over time, by running jobs
//! until their limits, by starts and by planned starts. A job starts where its nodes and its licences are free at once, for as long as it
//! may run. Within a pass licences are only taken, so bounds stay bounds.
//!
//! Example: 4 of `matlab`, 3 held until one o'clock. A job of one hour that needs 2 starts at one; one that needs 1 starts now, if nothing
//! else is planned with it before its end.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::license::{License, LicenseCounts};
use berth_model::verdict::Verdict;
use berth_model::{JobId, Name};

use crate::amount::{Micros, NEVER, SECOND, timestamp};
use crate::explain::{MOST_HOLDERS, Words, say};
use crate::ledger::RunKey;

/// What is taken of one licence.
#[derive(Clone, Debug, Default)]
struct Line {
    total: i64,
    /// By what holds it now.
    held: i64,
    /// What changes at an instant: ends of holders, begins and ends of planned starts.
    changes: BTreeMap<Micros, i64>,
}

impl Line {
    fn change(&mut self, at: Micros, by: i64) {
        if at < NEVER {
            let sum = self.changes.entry(at).or_insert(0);
            *sum += by;
            if *sum == 0 {
                self.changes.remove(&at);
            }
        }
    }

    /// The first instant from `from` on at which `need` more can be taken for `length`.
    fn next_fit(&self, need: i64, from: Micros, length: Micros) -> Micros {
        let mut used = self.held + self.changes.range(..=from).map(|(_, by)| by).sum::<i64>();
        let mut begin = (used + need <= self.total).then_some(from);
        for (at, by) in self.changes.range((std::ops::Bound::Excluded(from), std::ops::Bound::Unbounded)) {
            if begin.is_some_and(|begin| begin.saturating_add(length) <= *at) {
                break;
            }
            used += by;
            begin = if used + need <= self.total { begin.or(Some(*at)) } else { None };
        }
        begin.unwrap_or(NEVER)
    }
}

#[derive(Clone, Debug)]
struct Held {
    counts: LicenseCounts,
    /// As its lines have it: what should have ended ends in a second.
    end: Micros,
}

/// A planned start.
#[derive(Clone, Debug)]
struct Booked {
    from: Micros,
    to: Micros,
    counts: LicenseCounts,
}

#[derive(Clone, Debug, Default)]
pub struct Licenses {
    lines: BTreeMap<Name, Line>,
    held: BTreeMap<RunKey, Held>,
    ends: BTreeSet<(Micros, RunKey)>,
    booked: BTreeMap<JobId, Vec<Booked>>,
}

impl Licenses {
    /// All licences there are. What is held of others stays known.
    pub fn set_totals(&mut self, licenses: &[License]) {
        self.lines.values_mut().for_each(|line| line.total = 0);
        for license in licenses {
            self.lines.entry(license.name.clone()).or_default().total = license.total.into();
        }
    }

    /// As many as there are at all.
    fn total(&self, name: &Name) -> i64 {
        self.lines.get(name).map_or(0, |line| line.total)
    }

    /// There are as many, if nobody else had any.
    pub fn are_enough(&self, counts: &LicenseCounts) -> bool {
        counts.iter().all(|(name, count)| i64::from(*count) <= self.total(name))
    }

    /// Running attempts and starts hold licences until they are released.
    pub fn hold(&mut self, who: RunKey, counts: LicenseCounts, end: Micros) {
        self.release(who);
        if counts.is_empty() {
            return;
        }
        for (name, count) in &counts {
            let line = self.lines.entry(name.clone()).or_default();
            line.held += i64::from(*count);
            line.change(end, -i64::from(*count));
        }
        self.ends.insert((end, who));
        self.held.insert(who, Held { counts, end });
    }

    /// Gives back what was held. Returns what it was.
    pub fn release(&mut self, who: RunKey) -> Vec<Name> {
        let Some(held) = self.held.remove(&who) else { return Vec::new() };
        self.ends.remove(&(held.end, who));
        for (name, count) in &held.counts {
            let line = self.lines.get_mut(name).expect("what is held has a line");
            line.held -= i64::from(*count);
            line.change(held.end, i64::from(*count));
        }
        held.counts.into_keys().collect()
    }

    /// What a running job holds ends by `end`.
    pub fn shorten(&mut self, job: JobId, end: Micros) {
        let who = (job, None, false);
        if let Some(held) = self.held.get(&who).filter(|held| held.end > end) {
            let counts = held.counts.clone();
            self.hold(who, counts, end);
        }
    }

    /// What should have ended by `now` ends in a second.
    pub fn clamp_overdue(&mut self, now: Micros) {
        while let Some((_, who)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            let counts = self.held[&who].counts.clone();
            self.hold(who, counts, now.saturating_add(SECOND));
        }
    }

    /// Takes a planned start.
    pub fn book(&mut self, job: JobId, counts: &LicenseCounts, from: Micros, to: Micros) {
        if counts.is_empty() {
            return;
        }
        let booked = Booked { from, to, counts: counts.clone() };
        self.draw(&booked, 1);
        self.booked.entry(job).or_default().push(booked);
    }

    pub fn unbook(&mut self, job: JobId) {
        for booked in self.booked.remove(&job).into_iter().flatten() {
            self.draw(&booked, -1);
        }
    }

    /// Forgets all planned starts.
    pub fn clear_booked(&mut self) {
        for booked in std::mem::take(&mut self.booked).into_values().flatten() {
            self.draw(&booked, -1);
        }
    }

    fn draw(&mut self, booked: &Booked, sign: i64) {
        for (name, count) in &booked.counts {
            let line = self.lines.entry(name.clone()).or_default();
            line.change(booked.from, sign * i64::from(*count));
            line.change(booked.to, -sign * i64::from(*count));
        }
    }

    /// The first instant from `from` on at which all are free for `length`; [`NEVER`] if there is none.
    pub fn next_fit(&self, counts: &LicenseCounts, from: Micros, length: Micros) -> Micros {
        let mut at = from;
        loop {
            let next = |(name, count): (&Name, &u32)| self.lines.get(name).map_or(NEVER, |line| line.next_fit((*count).into(), at, length));
            let latest = counts.iter().map(next).max().unwrap_or(at);
            if latest == at || latest == NEVER {
                return latest;
            }
            at = latest;
        }
    }

    /// All are free from `from` until `to`.
    pub fn fit(&self, counts: &LicenseCounts, from: Micros, to: Micros) -> bool {
        counts.is_empty() || self.next_fit(counts, from, to.saturating_sub(from)) == from
    }

    /// What keeps a job that may run for `length` from starting now: each licence of which there are too few. `at`: its planned start.
    pub fn short(&self, job: JobId, counts: &LicenseCounts, now: Micros, length: Micros, at: Option<Micros>) -> Vec<Verdict> {
        counts.iter().filter_map(|(name, count)| self.short_of(job, name, i64::from(*count), now, length, at)).collect()
    }

    fn short_of(&self, job: JobId, name: &Name, need: i64, now: Micros, length: Micros, at: Option<Micros>) -> Option<Verdict> {
        let (total, held) = (self.total(name), self.lines.get(name).map_or(0, |line| line.held));
        let begin = |have: String| {
            say("licenses", "all licences of a job must be free for as long as it may run", format!("license/{name}"))
                .have(have)
                .need(format!("{need} {name}"))
        };
        if need > total {
            let have = if total == 0 { "the cluster has none".to_owned() } else { format!("the cluster has {total}") };
            let advice = if total == 0 { "leave it out, or ask an administrator".to_owned() } else { format!("ask for at most {total}") };
            return Some(begin(have).advice(advice));
        }
        if held + need > total {
            let (holders, clears) = self.holders(name, held + need - total);
            let verdict = begin(format!("{held} of {total} in use")).holders(holders);
            let verdict = verdict.advice("nothing to do: it starts when the jobs that hold the licence end");
            return Some(match clears.filter(|at| *at < NEVER) {
                Some(at) => verdict.clears(timestamp(at.max(now))),
                None => verdict,
            });
        }
        let (planned, ahead) = self.planned_before(job, name, total - need, now, now.saturating_add(length))?;
        let verdict = begin(format!("{held} of {total} in use, {planned} more planned for jobs ahead")).holders(ahead);
        let verdict = verdict.advice("a shorter time limit may let it start before them");
        Some(match at {
            Some(at) => verdict.clears(timestamp(at)),
            None => verdict,
        })
    }

    /// The jobs that hold a licence, the first to end first, and when `over` of it have been given back.
    fn holders(&self, name: &Name, over: i64) -> (Vec<String>, Option<Micros>) {
        let (mut names, mut freed, mut clears): (Vec<String>, i64, Option<Micros>) = (Vec::new(), 0, None);
        for (end, who) in &self.ends {
            let Some(count) = self.held[who].counts.get(name) else { continue };
            let holder = format!("job/{}", who.0);
            if names.len() < MOST_HOLDERS && !names.contains(&holder) {
                names.push(holder);
            }
            freed += i64::from(*count);
            if freed >= over {
                clears = clears.or(Some(*end));
                if names.len() == MOST_HOLDERS {
                    break;
                }
            }
        }
        (names, clears)
    }

    /// Within a time at some instant more than `most` are taken, by others: how many are planned then, and for whom.
    fn planned_before(&self, job: JobId, name: &Name, most: i64, now: Micros, until: Micros) -> Option<(i64, Vec<String>)> {
        let line = self.lines.get(name)?;
        let own = self.booked.get(&job).map(Vec::as_slice).unwrap_or_default();
        let own_at = |at: Micros| {
            let there = own.iter().filter(|booked| booked.from <= at && at < booked.to);
            there.filter_map(|booked| booked.counts.get(name)).map(|count| i64::from(*count)).sum::<i64>()
        };
        let mut used = line.held + line.changes.range(..=now).map(|(_, by)| by).sum::<i64>();
        let later = line.changes.range((std::ops::Bound::Excluded(now), std::ops::Bound::Excluded(until)));
        let at = std::iter::once((now, 0)).chain(later.map(|(at, by)| (*at, *by))).find_map(|(at, by)| {
            used += by;
            (used - own_at(at) > most).then_some(at)
        })?;
        let others = self.booked.iter().filter(|(other, _)| **other != job);
        let (mut planned, mut names) = (0, Vec::new());
        for (other, booked) in others {
            let there = booked.iter().filter(|booked| booked.from <= at && at < booked.to);
            let count: i64 = there.filter_map(|booked| booked.counts.get(name)).map(|count| i64::from(*count)).sum();
            planned += count;
            if count > 0 && names.len() < MOST_HOLDERS {
                names.push(format!("job/{other}"));
            }
        }
        Some((planned, names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn counts(count: u32) -> LicenseCounts {
        LicenseCounts::from([(name("matlab"), count)])
    }

    fn four() -> Licenses {
        let mut licenses = Licenses::default();
        licenses.set_totals(&[License { name: name("matlab"), total: 4, description: None }]);
        licenses
    }

    fn who(job: u64) -> RunKey {
        (JobId(job), None, false)
    }

    #[test]
    fn what_is_held_is_free_at_its_end() {
        let mut licenses = four();
        licenses.hold(who(1), counts(3), 100);
        assert_eq!([1, 2, 4, 5].map(|n| licenses.next_fit(&counts(n), 0, 10)), [0, 100, 100, NEVER]);
        licenses.hold(who(1), counts(3), 200);
        assert_eq!(licenses.next_fit(&counts(2), 0, 10), 200, "told again, it counts once");
        licenses.shorten(JobId(1), 150);
        assert_eq!(licenses.next_fit(&counts(2), 0, 10), 150);
        assert_eq!(licenses.release(who(1)), [name("matlab")]);
        assert_eq!(licenses.next_fit(&counts(4), 0, 10), 0);
        assert!(licenses.lines[&name("matlab")].changes.is_empty());
    }

    #[test]
    fn a_run_ends_before_what_is_planned_or_begins_behind() {
        let mut licenses = four();
        licenses.book(JobId(9), &counts(3), 100, 200);
        assert_eq!(licenses.next_fit(&counts(2), 0, 100), 0);
        assert_eq!(licenses.next_fit(&counts(2), 0, 101), 200);
        assert_eq!(licenses.next_fit(&counts(1), 0, 101), 0);
        licenses.clear_booked();
        assert_eq!(licenses.next_fit(&counts(4), 0, 101), 0);
    }

    #[test]
    fn an_overrun_ends_in_a_second_and_a_lowered_total_only_delays() {
        let mut licenses = four();
        licenses.hold(who(1), counts(2), 100);
        licenses.clamp_overdue(150);
        assert_eq!(licenses.next_fit(&counts(3), 150, 10), 150 + SECOND);
        licenses.set_totals(&[License { name: name("matlab"), total: 1, description: None }]);
        assert_eq!(licenses.next_fit(&counts(1), 150, 10), 150 + SECOND);
        licenses.set_totals(&[]);
        assert_eq!(licenses.next_fit(&counts(1), 150, 10), NEVER);
    }

    #[test]
    fn a_verdict_names_what_there_is_who_holds_it_and_when_it_is_free() {
        let mut licenses = four();
        licenses.hold(who(1), counts(3), 100);
        licenses.hold(who(2), counts(1), 50);
        let [verdict] = licenses.short(JobId(3), &counts(2), 0, 10, None).try_into().unwrap();
        assert_eq!((verdict.code.as_str(), verdict.object.as_str()), ("licenses", "license/matlab"));
        assert_eq!((verdict.have.as_deref(), verdict.need.as_deref()), (Some("4 of 4 in use"), Some("2 matlab")));
        assert_eq!(verdict.holders, ["job/2", "job/1"]);
        assert_eq!(verdict.clears_at, Some(timestamp(100)), "one is not enough");
        licenses.release(who(1));
        licenses.book(JobId(3), &counts(2), 200, 300);
        assert!(licenses.short(JobId(3), &counts(2), 0, 1000, Some(200)).is_empty(), "its own plan holds nobody");
        licenses.book(JobId(4), &counts(3), 60, 90);
        let [verdict] = licenses.short(JobId(3), &counts(2), 0, 1000, Some(200)).try_into().unwrap();
        assert_eq!(verdict.have.as_deref(), Some("1 of 4 in use, 3 more planned for jobs ahead"));
        assert_eq!(verdict.holders, ["job/4"]);
    }
}
