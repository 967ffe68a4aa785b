//! What is said of reservations: to jobs that name one, and to jobs that one keeps out.

use std::collections::BTreeMap;

use berth_model::amount::format_time_limit;
use berth_model::event::JobSnapshot;
use berth_model::reservation::{Reservation, Window};
use berth_model::verdict::Verdict;
use jiff::Timestamp;

use crate::amount::{Amount, Micros, SECOND, span, timestamp};
use crate::backfill::Wait;
use crate::explain::{MOST_HOLDERS, Words, counted, say};
use crate::filling::Filling;
use crate::fit::{Fit, Variant};
use crate::fleet::{Fleet, NodeIdx};
use crate::ways::{self, Reservations};

/// Reservations named in one verdict, at most.
const MOST_NAMED: usize = 5;
const MINUTE: Micros = 60 * SECOND;

/// What a job that names reservations hears if it may start in none of them, whatever is free; nothing otherwise.
pub fn refused(reservations: &Reservations, job: &JobSnapshot, now: Timestamp) -> Vec<Verdict> {
    let is_open = |reservation: &Reservation| reservation.window(now).is_some();
    if job.reservations.is_empty() || ways::named(reservations, job).any(is_open) {
        return Vec::new();
    }
    let verdict = |name| match reservations.get(name) {
        None => over(name, "there is no such reservation any more".to_owned()),
        Some(reservation) if ways::may_use(reservation, job) => {
            let end =
                reservation.windows.last().map_or_else(|| "it has no time".to_owned(), |window| format!("it ended at {}", window.end));
            over(name, end)
        }
        Some(_) => say("reservation_not_allowed", "a reservation takes the jobs of those whom it names", format!("reservation/{name}"))
            .have("it is not for this user, account or tenant")
            .advice("submit the job without it, or ask an administrator to let you in"),
    };
    job.reservations.iter().map(verdict).collect()
}

fn over(name: &berth_model::Name, have: String) -> Verdict {
    say("reservation_over", "a job does not start in a reservation that is over", format!("reservation/{name}"))
        .have(have)
        .advice("submit the job again, without this reservation or in another one")
}

/// What verdicts on reservations look at.
#[derive(Clone, Copy)]
pub struct Reserved<'a> {
    pub reservations: &'a Reservations,
    pub fleet: &'a Fleet,
    pub filling: &'a Filling,
    pub now: Micros,
}

/// How long a time lasts from an instant on.
fn left_of(window: &Window, from: Micros) -> Micros {
    let (start, end) = (window.start.as_microsecond(), window.end.as_microsecond());
    end.saturating_sub(start.max(from)).max(0)
}

impl Reserved<'_> {
    /// What a job that names reservations waits for.
    pub fn within(&self, job: &JobSnapshot, wait: &Wait, fit: Option<&Fit>, need: String) -> Option<Verdict> {
        let (at, nodes) = match wait {
            Wait::Planned { at, nodes } => (Some(timestamp(*at)), nodes.as_slice()),
            Wait::NotNow => (None, [].as_slice()),
            _ => return None,
        };
        let planned = nodes.iter().find_map(|node| self.fleet.nodes[*node as usize].via);
        let planned = planned.map(|via| &self.fleet.reservations[via as usize].name);
        let reservation = match planned {
            Some(name) => self.reservations.get(name)?,
            None => ways::named(self.reservations, job).find(|reservation| reservation.window(timestamp(self.now)).is_some())?,
        };
        let object = format!("reservation/{}", reservation.name);
        let window = reservation.window(timestamp(self.now))?;
        if at.is_none() && !reservation.is_flex {
            let from = fit.and_then(|fit| self.room_from(reservation, fit)).unwrap_or(self.now);
            if !self.has_time(reservation, job, from) {
                return Some(self.too_short(reservation, window, job, object, from));
            }
        }
        let is_ahead = timestamp(self.now) < window.start;
        let verdict = if is_ahead && !reservation.is_flex {
            say("reservation_not_started", "a job starts while its reservation lasts", object)
                .have(format!("from {} until {}", window.start, window.end))
                .need(need)
                .clears(at.unwrap_or(window.start).max(window.start))
                .advice("nothing to do: it can start when the reservation begins")
        } else {
            let verdict = say("reservation_nodes_busy", "all of a job's nodes must have room in its reservation at the same time", object)
                .have(self.room_of(reservation))
                .need(need)
                .holders(self.holders_of(reservation))
                .advice("nothing to do: it starts when jobs in the reservation, or those before it on its nodes, end");
            at.into_iter().fold(verdict, Words::clears)
        };
        Some(verdict)
    }

    /// One of its times is long enough, counted from an instant on.
    fn has_time(&self, reservation: &Reservation, job: &JobSnapshot, from: Micros) -> bool {
        reservation.windows.iter().any(|window| left_of(window, from) >= span(job.time_limit))
    }

    /// When its nodes have room for the job at the latest: when jobs there end by their limits. Nothing of an uneven gang.
    fn room_from(&self, reservation: &Reservation, fit: &Fit) -> Option<Micros> {
        let views = self.views_of(reservation);
        let usable: Vec<NodeIdx> = views.into_iter().filter(|at| fit.candidates.usable.binary_search(at).is_ok()).collect();
        let of_variant = |variant: &Variant| {
            let room = |at: &NodeIdx| self.covers_from(*at, variant.needs[self.fleet.nodes[*at as usize].class as usize].as_ref()?);
            let mut instants: Vec<Micros> = usable.iter().filter_map(room).collect();
            instants.sort_unstable();
            instants.get((variant.nodes as usize).checked_sub(1)?).copied()
        };
        fit.variants.iter().filter_map(of_variant).min()
    }

    /// When a node has so much free, if what runs there ends by its limits and nothing else starts.
    fn covers_from(&self, at: NodeIdx, need: &Amount) -> Option<Micros> {
        let mut free = self.filling.free[at as usize];
        if free.covers(need) {
            return Some(self.now);
        }
        let mut ends: Vec<_> = self.fleet.holdings(at).iter().map(|holding| (holding.end, holding.amount)).collect();
        ends.sort_unstable_by_key(|(end, _)| *end);
        ends.into_iter().find_map(|(end, amount)| {
            free = free.plus(&amount);
            free.covers(need).then_some(end)
        })
    }

    /// `from`: when its nodes have room, if jobs there run up to their limits.
    fn too_short(&self, reservation: &Reservation, window: Window, job: &JobSnapshot, object: String, from: Micros) -> Verdict {
        let most = format_time_limit((left_of(&window, from) / SECOND).unsigned_abs());
        let once = if from > self.now { " once the jobs there have ended" } else { "" };
        let verdict = say("reservation_too_short", "a job must be able to end before its reservation does", object)
            .have(format!("{most}{once}, until {} ends at {}", reservation.name, window.end))
            .need(format_time_limit(job.time_limit));
        if left_of(&window, from) >= MINUTE {
            verdict.advice(format!("lower the time limit to {most} or less"))
        } else {
            verdict.advice("leave the reservation out, or ask an administrator to let it last longer")
        }
    }

    fn views_of(&self, reservation: &Reservation) -> Vec<NodeIdx> {
        let via = self.fleet.via(&reservation.name);
        let is_its = |at: &NodeIdx| via.is_some() && self.fleet.nodes[*at as usize].via == via;
        (0..self.fleet.nodes.len() as NodeIdx).filter(is_its).collect()
    }

    fn room_of(&self, reservation: &Reservation) -> String {
        let views = self.views_of(reservation);
        let usable = views.iter().filter(|at| self.fleet.nodes[**at as usize].is_usable);
        let free = usable.fold(Amount::default(), |sum, at| sum.plus(&self.filling.free[*at as usize]));
        let gpus = if free.gpu_count() > 0 { format!(", {}", counted(free.gpu_count().into(), "GPU")) } else { String::new() };
        format!("{}{gpus} free on its {}", counted(free.cpus.into(), "CPU"), counted(views.len() as u64, "node"))
    }

    fn holders_of(&self, reservation: &Reservation) -> Vec<String> {
        let views = self.views_of(reservation);
        let mut ends: Vec<_> = views.iter().flat_map(|at| self.fleet.holdings(*at)).map(|h| (h.end, h.owner)).collect();
        ends.sort_unstable();
        let mut names: Vec<String> = Vec::new();
        for (_, job) in ends {
            let name = format!("job/{job}");
            if names.len() < MOST_HOLDERS && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What a job outside hears if it could start now were it not for reservations.
    pub fn kept_out(&self, job: &JobSnapshot, fit: &Fit) -> Option<Verdict> {
        let until = self.now.saturating_add(span(job.time_limit));
        fit.variants.iter().find_map(|variant| self.kept_out_on(variant.nodes as usize, &variant.needs, fit, until))
    }

    fn kept_out_on(&self, nodes: usize, needs: &[Option<Amount>], fit: &Fit, until: Micros) -> Option<Verdict> {
        let mut kept: BTreeMap<NodeIdx, Vec<(Micros, Micros, u32)>> = BTreeMap::new();
        for at in self.fleet.reserved() {
            let Some(need) = &needs[self.fleet.nodes[at as usize].class as usize] else { continue };
            let windows = if fit.candidates.usable.binary_search(&at).is_ok() { self.in_the_way(at, until) } else { Vec::new() };
            if !windows.is_empty() && self.unheld(at).covers(need) {
                kept.insert(at, windows);
            }
        }
        if kept.is_empty() {
            return None;
        }
        let required = fit.candidates.required.as_deref().unwrap_or_default();
        if required.iter().any(|at| kept.contains_key(at)) {
            // Whatever else is free, it must have these.
            kept.retain(|at, _| required.contains(at));
            let has_room = |at: &NodeIdx| {
                let need = needs[self.fleet.nodes[*at as usize].class as usize].as_ref();
                need.is_some_and(|need| self.filling.free[*at as usize].covers(need)) && self.in_the_way(*at, until).is_empty()
            };
            if !required.iter().all(|at| kept.contains_key(at) || has_room(at)) {
                return None;
            }
        } else {
            let classes = fit.candidates.classes.iter().filter_map(|class| Some((*class, needs[*class as usize].as_ref()?)));
            let ready = classes.flat_map(|(class, need)| self.filling.with_room(class, need)).map(|(_, _, at)| at);
            let open = ready.filter(|at| fit.candidates.allows(*at) && self.in_the_way(*at, until).is_empty()).take(nodes).count();
            if open == nodes || open + kept.len() < nodes {
                return None;
            }
        }
        let mut named: Vec<(Micros, Micros, u32)> = kept.into_values().flatten().collect();
        named.sort_unstable();
        named.dedup();
        let first = *named.first()?;
        let name = |via: u32| &self.fleet.reservations[via as usize].name;
        let have = named
            .iter()
            .take(MOST_NAMED)
            .map(|(start, end, via)| format!("{} keeps nodes from {} until {}", name(*via), timestamp(*start), timestamp(*end)));
        let clears = named.iter().map(|(_, end, _)| *end).min().unwrap_or(first.1);
        let verdict = say(
            "reserved",
            "a job stays out of reservations that it is not in, for all of its time limit",
            format!("reservation/{}", name(first.2)),
        )
        .have(have.collect::<Vec<_>>().join("; "))
        .need(format!("{} for {}", counted(nodes as u64, "node"), format_time_limit(((until - self.now) / SECOND).unsigned_abs())))
        .holders(named.iter().take(MOST_NAMED).map(|(.., via)| format!("reservation/{}", name(*via))).collect())
        .clears(timestamp(clears));
        let ahead = (first.0 - self.now) / SECOND;
        Some(if ahead >= 60 {
            let most = format_time_limit(ahead.unsigned_abs() / 60 * 60);
            verdict.advice(format!("a time limit of {most} or less lets it start before the reservation begins"))
        } else {
            verdict.advice("nothing to do: it starts on other nodes, or when the reservation ends")
        })
    }

    /// Windows on a node in which the job would run, of reservations.
    fn in_the_way(&self, at: NodeIdx, until: Micros) -> Vec<(Micros, Micros, u32)> {
        let vias = self.fleet.views(at).iter().filter_map(|view| self.fleet.nodes[*view as usize].via);
        let first = |via: u32| {
            let windows = &self.fleet.reservations[via as usize].windows;
            let window = windows.iter().find(|(start, end)| *start < until && self.now < *end);
            window.map(|(start, end)| (*start, *end, via))
        };
        vias.filter_map(first).collect()
    }

    /// What nobody outside of reservations holds on a node: jobs inside are there because of these.
    fn unheld(&self, at: NodeIdx) -> Amount {
        let outside = self.fleet.holdings(at).iter().filter(|holding| holding.via.is_none());
        let held = outside.fold(Amount::default(), |sum, holding| sum.plus(&holding.amount));
        self.fleet.class(self.fleet.real(at)).total.minus(&held)
    }

    /// What a job hears that runs longer than a floating reservation is ahead, and finds no other nodes.
    pub fn fenced(&self, job: &JobSnapshot, fences: &std::collections::BTreeSet<berth_model::Name>) -> Option<Verdict> {
        let fence = fences.iter().filter_map(|name| self.reservations.get(name)).min_by_key(|fence| fence.float_seconds)?;
        let most = format_time_limit(fence.float_seconds?);
        Some(
            say("reserved", "a job ends before a floating reservation would begin", format!("reservation/{}", fence.name))
                .have(format!("{} stays {most} ahead", fence.name))
                .need(format_time_limit(job.time_limit))
                .holders(vec![format!("reservation/{}", fence.name)])
                .advice(format!("lower the time limit to {most} or less, or use other nodes")),
        )
    }
}
