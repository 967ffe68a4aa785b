//! What is wrong with a reservation by itself, before any node is looked at.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{ReservationFlag, ReservationSpec, Window, next_window, parse_features};
use crate::tres::Tres;
use crate::{Fault, Name, hostlist};

/// Slurm's "infinite": a year.
const INFINITE_SECONDS: u64 = 365 * 86_400;
const MAX_SECONDS: u64 = 10 * INFINITE_SECONDS;

/// A PiB of memory, and more CPUs and GPUs than there are.
const MOST_OF_TRES: u64 = 1_000_000_000;

/// How long ago a start may be that is meant as now: the request was on its way, or a clock is behind.
const SLACK_SECONDS: i64 = 60;

impl ReservationSpec {
    /// Sets when it begins, if it is made or moved at `now`: a start that has just passed is now, so that it lasts as long as was asked for.
    /// One that repeats may have begun long ago.
    pub fn begin(&mut self, now: Timestamp) -> Result<(), Fault> {
        if self.float_seconds.is_some() || (self.repeat().is_some() && self.start.is_some()) {
            return Ok(());
        }
        let start = self.start.unwrap_or(now);
        if start < now && now.duration_since(start).as_secs() > SLACK_SECONDS {
            return Err(Fault::new(
                "reservation_in_past",
                "start",
                format!("{start} is over"),
                "let it start now (leave start out) or later",
            ));
        }
        self.start = Some(start.max(now));
        Ok(())
    }

    /// Its present time at `now`, or the next one.
    pub fn first_window(&self, now: Timestamp) -> Result<Window, Fault> {
        if let Some(float) = self.float_seconds {
            let start = add(now, float)?;
            return Ok(Window { start, end: add(start, self.duration_seconds.unwrap_or(INFINITE_SECONDS))? });
        }
        let start = self.start.unwrap_or(now);
        let end = match (self.end, self.duration_seconds) {
            (Some(end), _) => end,
            (None, seconds) => add(start, seconds.unwrap_or(INFINITE_SECONDS))?,
        };
        let mut first = Window { start, end };
        self.check_length(first)?;
        // Of one that repeats, the first time that is not over.
        while first.end <= now
            && let Some(next) = next_window(first, self.repeat(), self.time_zone.as_deref())
        {
            first = next;
        }
        if first.end <= now {
            let detail = format!("it would have ended at {}", first.end);
            return Err(Fault::new("reservation_in_past", "end", detail, "let it end in the future"));
        }
        Ok(first)
    }

    /// It ends after it begins and within ten years, and one that repeats is over before it comes again.
    fn check_length(&self, window: Window) -> Result<(), Fault> {
        let field = if self.end.is_some() { "end" } else { "duration_seconds" };
        let wrong = |detail: &str, help: &str| Err(Fault::new("invalid_time", field, detail, help));
        if window.end <= window.start {
            return wrong("it ends before it begins", "use a later end");
        }
        let seconds = window.end.duration_since(window.start).as_secs().unsigned_abs();
        if seconds > MAX_SECONDS {
            return wrong("it lasts too long", "use ten years or less");
        }
        let (most, words) = match self.repeat() {
            None => return Ok(()),
            Some(ReservationFlag::Hourly) => (3600, "an hour"),
            Some(ReservationFlag::Weekly) => (7 * 86_400, "a week"),
            Some(_) => (86_400, "a day"),
        };
        if seconds > most {
            return wrong("it would come again before it is over", &format!("let it last {words} at the most"));
        }
        Ok(())
    }

    /// Brings the lists of people into their full form: a name without a tenant is of the only tenant that is named.
    pub fn qualify(&mut self) -> Result<(), Fault> {
        let named: Vec<String> = self.tenants.iter().filter(|name| !name.starts_with('-')).cloned().collect();
        for (field, list) in [("users", &mut self.users), ("accounts", &mut self.accounts)] {
            let full = std::mem::take(list).into_iter().map(|entry| {
                let (minus, name) = split_minus(&entry);
                match (name.contains('/'), named.as_slice()) {
                    (true, _) => Ok(entry),
                    (false, [tenant]) => Ok(format!("{minus}{tenant}/{name}")),
                    (false, _) => Err(Fault::new(
                        "tenant_required",
                        field,
                        format!("{name:?} does not say of which tenant"),
                        format!("write tenant/{name}, or name one tenant in tenants"),
                    )),
                }
            });
            *list = full.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_times()?;
        self.check_people()?;
        self.check_flags()?;
        self.check_nodes()
    }

    fn check_times(&self) -> Result<(), Fault> {
        let wrong = |field: &str, detail: &str, help: &str| Err(Fault::new("invalid_time", field, detail, help));
        if self.end.is_some() && self.duration_seconds.is_some() {
            return wrong("end", "end and duration_seconds contradict each other", "give one of them");
        }
        if self.duration_seconds.is_some_and(|seconds| !(1..=MAX_SECONDS).contains(&seconds)) {
            return wrong("duration_seconds", "the duration is out of range", "use 1 second to ten years");
        }
        if self.purge_after_seconds.is_some_and(|seconds| !(60..=MAX_SECONDS).contains(&seconds)) {
            return wrong("purge_after_seconds", "the time is out of range", "use a minute or more");
        }
        if self.float_seconds.is_some_and(|seconds| !(60..=MAX_SECONDS).contains(&seconds)) {
            return wrong("float_seconds", "the time is out of range", "use a minute or more");
        }
        if self.float_seconds.is_some() && (self.start.is_some() || self.end.is_some()) {
            return wrong("float_seconds", "a reservation that floats has no start and no end", "leave start and end out");
        }
        if let Some(zone) = &self.time_zone
            && TimeZone::get(zone).is_err()
        {
            return Err(Fault::new(
                "invalid_time_zone",
                "time_zone",
                format!("{zone:?} is no time zone"),
                "use an IANA name, for example Europe/Berlin",
            ));
        }
        Ok(())
    }

    fn check_people(&self) -> Result<(), Fault> {
        let mut count = 0;
        for (field, list, is_qualified) in
            [("users", &self.users, true), ("accounts", &self.accounts, true), ("tenants", &self.tenants, false)]
        {
            let excludes = list.iter().filter(|entry| entry.starts_with('-')).count();
            if excludes > 0 && excludes < list.len() {
                return Err(Fault::new(
                    "mixed_list",
                    field,
                    "some names have a minus and some have none",
                    "name either those who may use it or, each with a minus, those who may not",
                ));
            }
            for entry in list {
                let name = split_minus(entry).1;
                let mut parts = name.split('/');
                let is_name = |part: Option<&str>| part.is_some_and(|part| Name::new(part).is_ok());
                let is_right = is_name(parts.next()) && (!is_qualified || is_name(parts.next())) && parts.next().is_none();
                if !is_right {
                    let form = if is_qualified { "tenant/name" } else { "a tenant's name" };
                    return Err(Fault::new("invalid_name", field, format!("{entry:?} is no such name"), format!("write {form}")));
                }
            }
            count += list.len();
        }
        let needs_nobody = self.has(ReservationFlag::Maintenance) || self.float_seconds.is_some();
        if count == 0 && !needs_nobody {
            return Err(Fault::new(
                "people_required",
                "users",
                "nothing says who may use it",
                "name users, accounts or tenants; only maintenance and floating reservations need none",
            ));
        }
        if self.comment.as_ref().is_some_and(|text| text.len() > 4096 || text.contains('\0')) {
            return Err(Fault::new("invalid_comment", "comment", "the comment is too long", "use at most 4096 bytes of text"));
        }
        Ok(())
    }

    fn check_flags(&self) -> Result<(), Fault> {
        use ReservationFlag::{Flex, Magnetic, PartNodes, Replace, ReplaceDown, StaticAlloc};
        let fault = |detail: String, help: &str| Err(Fault::new("invalid_flags", "flags", detail, help));
        let of = |flags: &[ReservationFlag]| flags.iter().filter(|flag| self.has(**flag)).map(|flag| flag.as_str()).collect::<Vec<_>>();
        if self.flags.iter().filter(|flag| flag.is_repeat()).count() > 1 {
            return fault("it repeats in more than one way".to_owned(), "use one of hourly, daily, weekday, weekend and weekly");
        }
        if of(&[Replace, ReplaceDown, StaticAlloc]).len() > 1 {
            return fault("nodes are replaced in more than one way".to_owned(), "use one of replace, replace_down and static_alloc");
        }
        if self.float_seconds.is_some() {
            let meaningless = of(&[Flex, Magnetic]);
            if self.repeat().is_some() || !meaningless.is_empty() {
                return fault("a reservation that floats takes no jobs and does not repeat".to_owned(), "leave the other flags out");
            }
            if !self.tres.is_empty() {
                return Err(Fault::new("invalid_tres", "tres", "a reservation that floats is of whole nodes", "name or count nodes"));
            }
        }
        let is_named = self.nodes.is_some() || !self.tres.is_empty() || self.has(PartNodes);
        if is_named && !of(&[Replace, ReplaceDown]).is_empty() {
            return fault("nodes that are named are not replaced".to_owned(), "count nodes with node_count or features instead");
        }
        if self.has(PartNodes) && (self.partition.is_none() || self.nodes.as_deref().is_some_and(|nodes| nodes != "ALL")) {
            return fault("part_nodes takes all nodes of a partition".to_owned(), "name the partition, and no nodes");
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), Fault> {
        let features = self.features.as_deref().map(parse_features).transpose()?.unwrap_or_default();
        let is_counted_by_features = features.iter().any(|feature| feature.count.is_some());
        let ways = [
            ("nodes", self.nodes.is_some() && !self.has(ReservationFlag::PartNodes)),
            ("node_count", self.node_count.is_some()),
            ("features", is_counted_by_features),
            ("tres", !self.tres.is_empty()),
            ("flags", self.has(ReservationFlag::PartNodes)),
        ];
        let used: Vec<&str> = ways.iter().filter(|(_, is_used)| *is_used).map(|(field, _)| *field).collect();
        match used.as_slice() {
            [_] => {}
            [] => {
                return Err(Fault::new(
                    "nodes_required",
                    "nodes",
                    "nothing says which nodes it has",
                    "give nodes (n[1-4] or ALL), node_count, features with counts (h100*2) or tres (gres/gpu=8)",
                ));
            }
            [first, .., last] => {
                return Err(Fault::new(
                    "contradiction",
                    *last,
                    format!("{first} and {last} both say which nodes it has"),
                    "use one of nodes, node_count, features with counts, and tres",
                ));
            }
        }
        if let Some(nodes) = self.nodes.as_deref().filter(|nodes| *nodes != "ALL") {
            hostlist::expand(nodes).map_err(|fault| Fault { field: "nodes".to_owned(), ..fault })?;
        }
        if self.node_count == Some(0) {
            return Err(Fault::new("invalid_count", "node_count", "a reservation of no nodes", "use 1 or more"));
        }
        for (tres, count) in &self.tres {
            if !matches!(tres, Tres::Cpu | Tres::Mem | Tres::Gpu | Tres::GpuType(_)) || !(1..=MOST_OF_TRES).contains(count) {
                return Err(Fault::new(
                    "invalid_tres",
                    "tres",
                    format!("{tres}={count} cannot be reserved"),
                    "use cpu, mem (MiB), gres/gpu or gres/gpu:TYPE, with counts of 1 to a thousand million; whole nodes with node_count",
                ));
            }
        }
        let has_kinds = self.tres.keys().any(|tres| matches!(tres, Tres::GpuType(_)));
        if has_kinds && self.tres.contains_key(&Tres::Gpu) {
            return Err(Fault::new(
                "invalid_tres",
                "tres",
                "gres/gpu and its types contradict each other",
                "count GPUs of any type or by type",
            ));
        }
        Ok(())
    }
}

fn add(at: Timestamp, seconds: u64) -> Result<Timestamp, Fault> {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    at.checked_add(jiff::SignedDuration::from_secs(seconds))
        .map_err(|_| Fault::new("invalid_time", "duration_seconds", "it would end after the end of time", "use a shorter duration"))
}

fn split_minus(entry: &str) -> (&str, &str) {
    entry.strip_prefix('-').map_or(("", entry), |name| ("-", name))
}
