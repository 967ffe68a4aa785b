//! Sets of array indices as runs: a million tasks, every second of them, are one run and not half a million numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Fault;
use crate::array::MAX_ARRAY_TASKS;

const HELP: &str = "write indices, ranges with an optional step, and %n for at most n tasks at once; for example 0-15:4,20%2";

/// `first`, `first + step`, … `last`; at most two of them only with a step of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    last: u32,
    step: u32,
}

/// Indices, ascending and without repeats. Written as Slurm does: neighbours as ranges, three or more at one distance with a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indices {
    /// Ascending; none begins before the one ahead of it has ended.
    runs: Vec<Run>,
}

impl Run {
    fn one(index: u32) -> Run {
        Run { first: index, last: index, step: 1 }
    }

    fn len(self) -> u32 {
        (self.last - self.first) / self.step + 1
    }

    fn contains(self, index: u32) -> bool {
        (self.first..=self.last).contains(&index) && (index - self.first).is_multiple_of(self.step)
    }

    /// Those from `from` on and below `end`.
    fn clip(self, from: u32, end: u32) -> Option<Run> {
        let first = self.first + from.saturating_sub(self.first).div_ceil(self.step) * self.step;
        let highest = self.last.min(end.checked_sub(1)?);
        let last = highest.checked_sub(first)? / self.step * self.step + first;
        Some(Run { first, last, step: self.step })
    }

    fn iter(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(self.step as usize)
    }
}

impl Indices {
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn first(&self) -> Option<u32> {
        self.runs.first().map(|run| run.first)
    }

    pub fn last(&self) -> Option<u32> {
        self.runs.last().map(|run| run.last)
    }

    pub fn contains(&self, index: u32) -> bool {
        let at = self.runs.partition_point(|run| run.last < index);
        self.runs.get(at).is_some_and(|run| run.contains(index))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|run| run.iter())
    }

    /// Those that are among `others`, and those that are not.
    pub fn divide(&self, others: &Indices) -> (Indices, Indices) {
        let (mut among, mut rest) = (Indices::default(), Indices::default());
        let mut behind = 0;
        for run in &self.runs {
            behind += others.runs[behind..].iter().take_while(|other| other.last < run.first).count();
            let mut from = run.first;
            for other in others.runs[behind..].iter().take_while(|other| other.first <= run.last) {
                rest.extend(run.clip(from, other.first));
                if let Some(within) = run.clip(from.max(other.first), other.last + 1) {
                    if within.step.is_multiple_of(other.step) || within.len() == 1 {
                        // They are all members of the other, or none is.
                        let side = if other.contains(within.first) { &mut among } else { &mut rest };
                        side.push(within);
                    } else {
                        for index in within.iter() {
                            let side = if other.contains(index) { &mut among } else { &mut rest };
                            side.push(Run::one(index));
                        }
                    }
                }
                from = other.last + 1;
            }
            rest.extend(run.clip(from, run.last + 1));
        }
        (among, rest)
    }

    /// These and `others`.
    pub fn union(&self, others: &Indices) -> Indices {
        let (_, more) = others.divide(self);
        let mut runs: Vec<Run> = self.runs.iter().chain(&more.runs).copied().collect();
        runs.sort_unstable_by_key(|run| run.first);
        Indices::of(&runs)
    }

    /// Runs in any order, which may overlap.
    fn of(runs: &[Run]) -> Indices {
        if runs.windows(2).all(|pair| pair[0].last < pair[1].first) {
            let mut indices = Indices::default();
            indices.extend(runs.iter().copied());
            return indices;
        }
        runs.iter().flat_map(|run| run.iter()).collect()
    }

    fn extend(&mut self, runs: impl IntoIterator<Item = Run>) {
        runs.into_iter().for_each(|run| self.push(run));
    }

    /// Adds a run that begins above all there are, to the last one if it goes on from there.
    fn push(&mut self, run: Run) {
        if run.len() == 2 && run.step > 1 {
            self.push(Run::one(run.first));
            return self.push(Run::one(run.last));
        }
        let is_one = |run: &Run| run.first == run.last;
        if let [.., a, b] = self.runs.as_mut_slice()
            && is_one(a)
            && is_one(b)
            && is_one(&run)
            && b.first - a.first == run.first - b.first
        {
            *a = Run { first: a.first, last: run.last, step: b.first - a.first };
            self.runs.pop();
            return;
        }
        if let Some(last) = self.runs.last_mut() {
            let (distance, joins) = (run.first - last.last, is_one(last) || is_one(&run));
            let step = if is_one(last) { run.step } else { last.step };
            if distance == step && (joins || last.step == run.step) {
                *last = Run { first: last.first, last: run.last, step };
                return;
            }
        }
        self.runs.push(run);
    }
}

impl FromIterator<u32> for Indices {
    fn from_iter<I: IntoIterator<Item = u32>>(indices: I) -> Self {
        let mut all: Vec<u32> = indices.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut folded = Indices::default();
        folded.extend(all.into_iter().map(Run::one));
        folded
    }
}

impl std::str::FromStr for Indices {
    type Err = Fault;
    /// `0-15:4,20`; nothing at all is no index. Source: sbatch manual, `--array`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Ok(Indices::default());
        }
        let runs = text.split(',').map(range).collect::<Result<Vec<Run>, _>>()?;
        let total: u64 = runs.iter().map(|run| u64::from(run.len())).sum();
        if total > u64::from(MAX_ARRAY_TASKS) {
            return Err(Fault::new(
                "array_too_large",
                "array",
                format!("the array names {total} tasks"),
                format!("an array has at most {MAX_ARRAY_TASKS} tasks; for example 0-{}", MAX_ARRAY_TASKS - 1),
            ));
        }
        Ok(Indices::of(&runs))
    }
}

impl fmt::Display for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Run { first, last, step }) in self.runs.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match (first == last, step) {
                (true, _) => write!(f, "{comma}{first}")?,
                (false, 1) => write!(f, "{comma}{first}-{last}")?,
                (false, step) => write!(f, "{comma}{first}-{last}:{step}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Indices {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Indices {
    /// From its text, or from a list of numbers, as records of decisions had it.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            List(Vec<u32>),
        }
        match Written::deserialize(d)? {
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
            Written::List(list) => Ok(list.into_iter().collect()),
        }
    }
}

pub(crate) fn fault(detail: String) -> Fault {
    Fault::new("invalid_array", "array", detail, HELP)
}

pub(crate) fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// `low-high:step`, `low-high` or `index`.
fn range(text: &str) -> Result<Run, Fault> {
    let text = text.trim();
    let not_indices =
        || fault(if text.is_empty() { "an index is missing".to_owned() } else { format!("\"{text}\" is not an index or range") });
    let (bounds, step) = match text.split_once(':') {
        Some((bounds, step)) if bounds.contains('-') => (bounds, number(step).ok_or_else(not_indices)?),
        Some(_) => return Err(fault(format!("\"{text}\" has a step but no range"))),
        None => (text, 1),
    };
    let (low, high) = bounds.split_once('-').unwrap_or((bounds, bounds));
    let (low, high) = (index(low).ok_or_else(not_indices)??, index(high).ok_or_else(not_indices)??);
    match (low <= high, step) {
        (false, _) => Err(fault(format!("the range \"{text}\" goes backwards"))),
        (_, 0) => Err(fault(format!("the step of \"{text}\" is 0"))),
        (true, step) => {
            let last = low + (high - low) / step * step;
            Ok(Run { first: low, last, step: if last == low { 1 } else { step } })
        }
    }
}

/// `None` if it is no number at all; a fault if it is too high.
fn index(text: &str) -> Option<Result<u32, Fault>> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(match number(text) {
        Some(n) if n < MAX_ARRAY_TASKS => Ok(n),
        _ => Err(Fault::new(
            "array_too_large",
            "array",
            format!("the index {text:.20} is too high"),
            format!("the highest index is {}; for example 0-{0}%100", MAX_ARRAY_TASKS - 1),
        )),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Indices {
        text.parse().expect(text)
    }

    #[test]
    fn indices_fold_as_slurm_writes_them() {
        let folded = |indices: &[u32]| indices.iter().copied().collect::<Indices>().to_string();
        assert_eq!(folded(&[3, 4, 5, 6, 7, 8, 9, 12]), "3-9,12");
        assert_eq!(folded(&[1, 3, 5, 7]), "1-7:2");
        assert_eq!(folded(&[1, 3, 4]), "1,3-4");
        assert_eq!(folded(&[1, 3, 5, 6, 7]), "1-5:2,6-7");
        assert_eq!(folded(&[]), "");
        assert_eq!(of("0-3:3,9-5000:7").to_string(), "0,3,9-5000:7", "two with a step are two");
        assert_eq!(of("0-3,4,5-9").to_string(), "0-9");
        assert_eq!(of("0-9:3,12,15-21:3").to_string(), "0-21:3");
    }

    #[test]
    fn a_million_tasks_are_a_run_or_two() {
        let all = of("0-999999:2");
        assert_eq!((all.len(), all.runs.len()), (500_000, 1));
        let (cancelled, left) = of("0-999999").divide(&of("5-900000"));
        assert_eq!((cancelled.to_string(), left.to_string()), ("5-900000".to_owned(), "0-4,900001-999999".to_owned()));
        let (even, odd) = of("0-999999").divide(&all);
        assert_eq!((even.len(), odd.len(), odd.to_string().as_str()), (500_000, 500_000, "1-999999:2"));
        assert_eq!(all.divide(&of("4-10,999996-999999")).1.to_string(), "0,2,12-999994:2");
        assert_eq!(of("0-4").union(&of("900001-999999,2-6")).to_string(), "0-6,900001-999999");
    }

    #[test]
    fn records_of_older_versions_are_read() {
        assert_eq!(serde_json::from_str::<Indices>("[1,2,3,9]").unwrap(), of("1-3,9"));
        assert_eq!(serde_json::from_str::<Indices>("\"1-3,9\"").unwrap(), of("1-3,9"));
        assert_eq!(serde_json::to_string(&of("0-8:4")).unwrap(), "\"0-8:4\"");
    }

    fn some_indices() -> impl Strategy<Value = BTreeSet<u32>> {
        let run = (0u32..60, 1u32..6, 1u32..14).prop_map(|(first, step, count)| (0..count).map(move |i| first + i * step));
        proptest::collection::vec(run, 0..5).prop_map(|runs| runs.into_iter().flatten().collect())
    }

    proptest! {
        #[test]
        fn they_are_the_set_they_stand_for(a in some_indices(), b in some_indices()) {
            let (runs, others): (Indices, Indices) = (a.iter().copied().collect(), b.iter().copied().collect());
            prop_assert!(runs.iter().eq(a.iter().copied()));
            prop_assert_eq!(runs.len(), a.len());
            prop_assert!((0..160).all(|index| runs.contains(index) == a.contains(&index)));
            prop_assert_eq!(runs.to_string().parse::<Indices>().unwrap(), runs.clone());
            let (among, rest) = runs.divide(&others);
            prop_assert!(among.iter().eq(a.intersection(&b).copied()), "{}", among);
            prop_assert!(rest.iter().eq(a.difference(&b).copied()), "{}", rest);
            prop_assert!(runs.union(&others).iter().eq(a.union(&b).copied()));
        }
    }
}
