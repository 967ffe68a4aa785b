//! Usage: what was used and by whom, decayed.
//!
//! An interval from a to b at a rate of one counts, seen at T, ∫ 2^(−(T−t)/h) dt from a to b seconds; with no half-life, b − a. This is
//! exact, so that it does not matter where an interval is cut or how often anybody looks (Slurm's first-order step drifts from it). A
//! reset forgets all before it. What has ended is in rows, which the store keeps; what runs is worked out from its start.
//!
//! Example: 160 units for ever at a half-life of 7 days tend to 160 · 604800 ÷ ln 2 = 139,604,470.

use std::collections::BTreeMap;
use std::f64::consts::LN_2;

use berth_model::JobId;
use berth_model::association::{AssociationKey, EndedRun, UsageKey, UsageRow, Used};
use berth_model::policy::{Policy, UsageReset};
use berth_model::resize::PastCharge;
use berth_model::tres::Charge;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::amount::{Micros, SECOND, micros, timestamp};

/// How the past counts at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Decay {
    now: Micros,
    /// Microseconds; nothing fades without.
    half_life: Option<f64>,
    /// All before is forgotten.
    reset: Micros,
}

impl Decay {
    pub fn at(policy: &Policy, now: Micros) -> Self {
        let half_life = Some(policy.half_life_seconds as f64 * SECOND as f64).filter(|span| *span > 0.0);
        Decay { now, half_life, reset: last_reset(policy.usage_reset, timestamp(now)).map_or(Micros::MIN, micros) }
    }

    /// The part that is left of a sum as of then.
    pub fn kept(&self, as_of: Micros) -> f64 {
        if as_of < self.reset {
            return 0.0;
        }
        self.half_life.map_or(1.0, |half_life| (-(self.now.saturating_sub(as_of).max(0) as f64) / half_life).exp2())
    }

    /// The seconds that an interval counts.
    pub fn seconds(&self, from: Micros, to: Micros) -> f64 {
        let (from, to) = (from.max(self.reset), to.min(self.now));
        if to <= from {
            return 0.0;
        }
        let length = (to - from) as f64;
        match self.half_life {
            None => length / SECOND as f64,
            Some(half_life) => {
                let since = (self.now - to) as f64;
                (-since / half_life).exp2() * -(-LN_2 * length / half_life).exp_m1() * half_life / LN_2 / SECOND as f64
            }
        }
    }
}

/// The last instant up to `now` at which usage was reset.
fn last_reset(reset: UsageReset, now: Timestamp) -> Option<Timestamp> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let first = |month: i8| Date::new(today.year(), month, 1).ok();
    let day = match reset {
        UsageReset::None => return None,
        UsageReset::Daily => today,
        UsageReset::Weekly => today.checked_sub(i64::from(today.weekday().to_sunday_zero_offset()).days()).ok()?,
        UsageReset::Monthly => first(today.month())?,
        UsageReset::Quarterly => first((today.month() - 1) / 3 * 3 + 1)?,
        UsageReset::Yearly => first(1)?,
    };
    day.to_zoned(TimeZone::UTC).ok().map(|midnight| midnight.timestamp())
}

fn add(used: &mut Used, charge: &Charge, seconds: f64) {
    let seconds = seconds * charge.usage_factor;
    used.billing += charge.billing * seconds;
    used.wall += seconds;
    for (tres, count) in &charge.tres {
        *used.tres.entry(tres.clone()).or_insert(0.0) += *count as f64 * seconds;
    }
}

/// Adds `part` of `other`.
fn add_part(used: &mut Used, other: &Used, part: f64) {
    used.billing += other.billing * part;
    used.wall += other.wall * part;
    for (tres, sum) in &other.tres {
        *used.tres.entry(tres.clone()).or_insert(0.0) += sum * part;
    }
}

/// The rows with `ended` in them, as of `at`. Only rows that change are returned. The order of `ended` does not show but in rounding.
pub fn fold(policy: &Policy, rows: &BTreeMap<UsageKey, UsageRow>, ended: &[EndedRun], at: Timestamp) -> Vec<UsageRow> {
    let decay = Decay::at(policy, micros(at));
    let mut changed: BTreeMap<UsageKey, Used> = BTreeMap::new();
    for run in ended {
        let used = changed.entry(run.key.clone()).or_insert_with_key(|key| {
            let mut used = Used::default();
            if let Some(row) = rows.get(key) {
                add_part(&mut used, &row.used, decay.kept(micros(row.as_of)));
            }
            used
        });
        add(used, &run.charge, decay.seconds(micros(run.began), micros(run.ended)));
    }
    changed.into_iter().map(|(key, used)| UsageRow { key, as_of: at, used }).collect()
}

/// A key's number, as long as the engine lives.
type KeyId = u32;

/// Something that runs, or ran and is in no row yet.
#[derive(Clone, Debug)]
struct Run {
    key: KeyId,
    charge: Charge,
    from: Micros,
    /// Nothing while it runs.
    to: Option<Micros>,
    /// What it was charged for before, and from when to when.
    past: Vec<(Charge, Micros, Micros)>,
}

impl Run {
    /// Its charges with their intervals, up to `now`.
    fn parts(&self, now: Micros) -> impl Iterator<Item = (&Charge, Micros, Micros)> {
        let past = self.past.iter().map(|(charge, from, to)| (charge, *from, *to));
        past.chain([(&self.charge, self.from, self.to.unwrap_or(now))])
    }
}

/// An end that the last plan has not heeded: whose it was, and what it used since an instant.
pub struct Closed<'a> {
    pub key: &'a UsageKey,
    charge: &'a Charge,
    from: Micros,
    to: Micros,
}

impl Closed<'_> {
    /// Adds what was used from `since` on. Within seconds nothing fades.
    pub fn add_since(&self, since: Micros, used: &mut Used) {
        add(used, self.charge, self.to.saturating_sub(self.from.max(since)).max(0) as f64 / SECOND as f64);
    }
}

/// All usage that the engine knows.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Sums are made in the order of keys, so that rounding does not depend on who came first.
    ids: BTreeMap<UsageKey, KeyId>,
    /// By key.
    rows: Vec<Option<UsageRow>>,
    runs: BTreeMap<(JobId, u32), Run>,
    /// Runs that have ended since the last plan: they end with the next plan's clock.
    ending: Vec<(JobId, u32)>,
}

impl Usage {
    fn id(&mut self, key: UsageKey) -> KeyId {
        let next = self.rows.len() as KeyId;
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.rows.push(None);
        }
        id
    }

    pub fn take_rows(&mut self, rows: Vec<UsageRow>, counted: &[(JobId, u32)]) {
        for row in rows {
            let id = self.id(row.key.clone());
            self.rows[id as usize] = Some(row);
        }
        for run in counted {
            self.runs.remove(run);
        }
    }

    /// `past` is what it was charged for between its start, at `from`, and now.
    pub fn begin(&mut self, job: JobId, attempt: u32, key: UsageKey, charge: Charge, from: Micros, past: &[PastCharge]) {
        let key = self.id(key);
        let past: Vec<_> = past.iter().map(|part| (part.charge.clone(), micros(part.began), micros(part.ended))).collect();
        let from = past.last().map_or(from, |(_, _, to)| *to);
        self.runs.insert((job, attempt), Run { key, charge, from, to: None, past });
    }

    /// The attempt holds nothing any more. It counts until its row comes.
    pub fn end(&mut self, job: JobId, attempt: u32) {
        if self.runs.contains_key(&(job, attempt)) {
            self.ending.push((job, attempt));
        }
    }

    /// What has ended since the last plan has ended now, as far as is known: `heed` is told of each. An attempt that has merely been told
    /// of again goes on.
    pub fn close(&mut self, now: Micros, is_over: impl Fn(JobId, u32) -> bool, mut heed: impl FnMut(Closed<'_>)) {
        let mut ended = std::mem::take(&mut self.ending);
        ended.sort_unstable();
        ended.dedup();
        ended.retain(|(job, attempt)| is_over(*job, *attempt));
        for run in &ended {
            if let Some(run) = self.runs.get_mut(run).filter(|run| run.to.is_none()) {
                run.to = Some(now);
            }
        }
        if ended.is_empty() {
            return;
        }
        let mut keys: BTreeMap<KeyId, &UsageKey> = BTreeMap::new();
        let wanted: std::collections::BTreeSet<KeyId> = ended.iter().filter_map(|run| Some(self.runs.get(run)?.key)).collect();
        keys.extend(self.ids.iter().filter(|(_, id)| wanted.contains(id)).map(|(key, id)| (*id, key)));
        for run in ended.iter().filter_map(|run| self.runs.get(run)) {
            for (charge, from, to) in run.parts(now) {
                heed(Closed { key: keys[&run.key], charge, from, to });
            }
        }
    }

    /// Everybody who used something.
    pub fn users(&self) -> impl Iterator<Item = &AssociationKey> {
        self.ids.keys().map(|key| &key.user)
    }

    /// Calls `take` with every key's billing sum as `decay` sees it.
    pub fn billing(&self, decay: &Decay, mut take: impl FnMut(&AssociationKey, f64)) {
        let row = |row: &Option<UsageRow>| row.as_ref().map_or(0.0, |row| row.used.billing * decay.kept(micros(row.as_of)));
        let mut sums: Vec<f64> = self.rows.iter().map(row).collect();
        for run in self.runs.values() {
            for (charge, from, to) in run.parts(decay.now) {
                sums[run.key as usize] += charge.billing * charge.usage_factor * decay.seconds(from, to);
            }
        }
        self.ids.iter().for_each(|(key, id)| take(&key.user, sums[*id as usize]));
    }

    /// Calls `take` with every key and all its sums.
    pub fn sums(&self, decay: &Decay, mut take: impl FnMut(&UsageKey, &Used)) {
        let mut sums: Vec<Used> = vec![Used::default(); self.rows.len()];
        for (sum, row) in sums.iter_mut().zip(&self.rows) {
            if let Some(row) = row {
                add_part(sum, &row.used, decay.kept(micros(row.as_of)));
            }
        }
        for run in self.runs.values() {
            for (charge, from, to) in run.parts(decay.now) {
                add(&mut sums[run.key as usize], charge, decay.seconds(from, to));
            }
        }
        self.ids.iter().for_each(|(key, id)| take(key, &sums[*id as usize]));
    }
}

/// Adds all of `other`.
pub fn add_all(used: &mut Used, other: &Used) {
    add_part(used, other, 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Name;
    use berth_model::tres::{Tres, TresCounts};

    const WEEK: Micros = 604_800 * SECOND;

    fn decay(now: Micros) -> Decay {
        Decay { now, half_life: Some(WEEK as f64), reset: Micros::MIN }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= b.abs() * 1e-9, "{a} is not {b}");
    }

    #[test]
    fn decay_is_the_exact_exponential() {
        close(decay(300 * SECOND).kept(0), 0.999_656_236_09);
        close(decay(86_400 * SECOND).kept(0), 2f64.powf(-1.0 / 7.0));
        close(decay(WEEK).kept(0), 0.5);
        // 160 for 300 s: a little less than 48,000 (Slurm's step says 47983.5028).
        let tick = 160.0 * decay(300 * SECOND).seconds(0, 300 * SECOND);
        close(tick, 160.0 * 604_800.0 / LN_2 * (1.0 - 2f64.powf(-300.0 / 604_800.0)));
        assert!(47_991.0 < tick && tick < 48_000.0);
        close(160.0 * decay(100 * WEEK).seconds(0, 100 * WEEK), 160.0 * 604_800.0 / LN_2);
    }

    #[test]
    fn it_does_not_matter_where_an_interval_is_cut() {
        let now = 3 * WEEK;
        let whole = decay(now).seconds(WEEK, 2 * WEEK);
        let cut = WEEK + 12_345 * SECOND;
        close(decay(cut).seconds(WEEK, cut) * decay(now).kept(cut) + decay(now).seconds(cut, 2 * WEEK), whole);
    }

    #[test]
    fn without_a_half_life_time_counts_whole_and_a_reset_forgets() {
        let policy = Policy { half_life_seconds: 0, usage_reset: UsageReset::Weekly, ..Policy::default() };
        // A Wednesday; the week began on Sunday, 28 December.
        let now: Timestamp = "2025-12-31T12:00:00Z".parse().unwrap();
        let sunday = micros("2025-12-28T00:00:00Z".parse().unwrap());
        let decay = Decay::at(&policy, micros(now));
        assert_eq!(decay.reset, sunday);
        assert_eq!(decay.seconds(sunday - 50 * SECOND, sunday + 100 * SECOND), 100.0);
        assert_eq!((decay.kept(sunday - 1), decay.kept(sunday)), (0.0, 1.0));
        let since = |reset| last_reset(reset, now).map(|at| at.to_string());
        assert_eq!(since(UsageReset::Daily).as_deref(), Some("2025-12-31T00:00:00Z"));
        assert_eq!(since(UsageReset::Monthly).as_deref(), Some("2025-12-01T00:00:00Z"));
        assert_eq!(since(UsageReset::Quarterly).as_deref(), Some("2025-10-01T00:00:00Z"));
        assert_eq!(since(UsageReset::Yearly).as_deref(), Some("2025-01-01T00:00:00Z"));
    }

    fn sum(usage: &Usage, decay: &Decay) -> Used {
        let mut all = Used::default();
        usage.sums(decay, |_, used| add_all(&mut all, used));
        all
    }

    #[test]
    fn what_is_given_back_counts_up_to_then() {
        let name = |text: &str| Name::new(text).unwrap();
        let user = AssociationKey::user(name("acme"), name("ml"), name("ann"));
        let key = UsageKey { user, qos: name("normal"), partition_qos: None };
        let at = |seconds: i64| timestamp(seconds * SECOND);
        let charge = |gpus: u64| Charge {
            tres: TresCounts::from([(Tres::Gpu, gpus)]),
            billing: gpus as f64 * 10.0,
            usage_factor: 1.0,
            partition_qos: None,
        };
        let past = PastCharge { began: at(0), ended: at(100), charge: charge(8) };
        let mut usage = Usage::default();
        usage.begin(JobId(1), 1, key.clone(), charge(8), 0, &[]);
        usage.end(JobId(1), 1);
        usage.begin(JobId(1), 1, key.clone(), charge(2), 0, std::slice::from_ref(&past));
        usage.close(100 * SECOND, |_, _| false, |_| ());
        let whole = Decay { half_life: None, ..decay(300 * SECOND) };
        // 8 GPUs for 100 s and 2 for 200 s; the wall clock goes on as before.
        let used = sum(&usage, &whole);
        assert_eq!((used.tres[&Tres::Gpu], used.billing, used.wall), (1200.0, 12_000.0, 300.0));
        let policy = Policy { half_life_seconds: 0, ..Policy::default() };
        let run = |began, ended, gpus| EndedRun {
            job: JobId(1),
            attempt: 1,
            key: key.clone(),
            began: at(began),
            ended: at(ended),
            charge: charge(gpus),
        };
        let rows = fold(&policy, &BTreeMap::new(), &[run(0, 100, 8), run(100, 300, 2)], at(300));
        assert_eq!(rows[0].used, used);
        usage.end(JobId(1), 1);
        usage.close(300 * SECOND, |_, _| true, |_| ());
        usage.take_rows(rows, &[(JobId(1), 1)]);
        assert_eq!(sum(&usage, &whole), used, "counted once");
    }

    #[test]
    fn folding_an_end_into_its_row_changes_no_sum() {
        let name = |text: &str| Name::new(text).unwrap();
        let user = AssociationKey::user(name("acme"), name("ml"), name("ann"));
        let key = UsageKey { user, qos: name("normal"), partition_qos: None };
        let policy = Policy::default();
        let at = |seconds: i64| timestamp(seconds * SECOND);
        let charge = Charge { tres: TresCounts::from([(Tres::Gpu, 4)]), billing: 160.0, usage_factor: 0.5, partition_qos: None };
        let mut usage = Usage::default();
        usage.begin(JobId(1), 1, key.clone(), charge.clone(), 0, &[]);
        usage.end(JobId(1), 1);
        usage.close(300 * SECOND, |_, _| true, |_| ());
        let decay = Decay::at(&policy, 4_000_000 * SECOND);
        let before = sum(&usage, &decay);
        close(before.billing / before.wall, 160.0);
        let ended = EndedRun { job: JobId(1), attempt: 1, key: key.clone(), began: at(0), ended: at(300), charge };
        let rows = fold(&policy, &BTreeMap::new(), std::slice::from_ref(&ended), at(9_000));
        close(rows[0].used.billing, 80.0 * Decay::at(&policy, 9_000 * SECOND).seconds(0, 300 * SECOND));
        usage.take_rows(rows.clone(), &[(JobId(1), 1)]);
        close(sum(&usage, &decay).billing, before.billing);
        close(sum(&usage, &decay).tres[&Tres::Gpu], before.tres[&Tres::Gpu]);
        let known = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        let again = fold(&policy, &known, &[EndedRun { job: JobId(2), ..ended }], at(20_000));
        close(again[0].used.billing, 2.0 * 80.0 * Decay::at(&policy, 20_000 * SECOND).seconds(0, 300 * SECOND));
    }
}
