//! Suspended jobs: they keep memory, GPUs and licences, others get their CPUs, and they go on when there are CPUs for them again on all
//! their nodes.
//!
//! Going on is planned as a start is, on nodes that are given: at the earliest instant at which the profile has the CPUs for as long as
//! the job has left. It comes before every pending job but those with claims and those that may preempt the suspended one. Which CPUs it
//! gets is chosen then, as at any start: that is why counts suffice for planning (see [`amount`](crate::amount)).
//!
//! Until it is known when a job goes on, what it keeps has no end.

use berth_model::JobId;
use berth_model::event::{JobSnapshot, RunningAttempt};
use berth_model::preemption::{SUSPEND_GRACE_SECONDS, Suspension};
use berth_model::resources::NodeAllocation;
use berth_model::state::JobState;

use crate::amount::{Amount, Micros, NEVER, SECOND, micros, span};
use crate::engine::{World, time_out};
use crate::fleet::{Holding, NodeIdx};
use crate::pass::Pass;
use crate::place;
use crate::plan::Resume;
use crate::profile::Booking;
use crate::timeline::Held;

/// What an attempt holds that is suspended or about to be, and until when. `end`: of an attempt that goes on as it is.
pub fn held_by(job: &JobSnapshot, attempt: &RunningAttempt, suspension: &Suspension, end: Micros) -> Vec<(Micros, Vec<NodeAllocation>)> {
    let kept = attempt.nodes.iter().map(|node| NodeAllocation { cpus: Vec::new(), idle_cpus: Vec::new(), ..node.clone() }).collect();
    if job.state == JobState::Completing {
        // Told to stop: what stood still has no CPUs of its own for that.
        return vec![(end, if suspension.since.is_some() { kept } else { attempt.nodes.clone() })];
    }
    if suspension.since.is_some() {
        return vec![(NEVER, kept)];
    }
    let cpus = |node: &NodeAllocation| NodeAllocation { gpus: Vec::new(), share: None, memory_bytes: Default::default(), ..node.clone() };
    let still = micros(suspension.at).saturating_add(span(SUSPEND_GRACE_SECONDS));
    vec![(NEVER, kept), (still, attempt.nodes.iter().map(cpus).collect())]
}

/// A suspended job that nobody holds back.
#[derive(Clone, Debug)]
pub struct Returning {
    pub job: JobId,
    attempt: u32,
    suspension: u32,
    /// When it was told to stand still.
    at: Micros,
    /// Time until its limit.
    left: Micros,
    nodes: Vec<NodeAllocation>,
}

impl Returning {
    fn of(job: &JobSnapshot) -> Option<Returning> {
        let attempt = job.attempt.as_ref()?;
        let suspension = attempt.suspension.as_ref().filter(|suspension| !suspension.is_held && job.state == JobState::Suspended)?;
        let left = time_out(job, attempt).saturating_sub(micros(suspension.since?)).max(SECOND);
        let (number, nodes) = (suspension.number, attempt.nodes.clone());
        Some(Returning { job: job.id, attempt: attempt.number, suspension: number, at: micros(suspension.at), left, nodes })
    }
}

/// Those that may go on, in the order in which they were suspended.
pub fn returning(world: &World) -> Vec<Returning> {
    let mut found: Vec<Returning> =
        world.suspended.iter().filter_map(|job| world.jobs.get(job)).filter_map(|entry| Returning::of(&entry.job)).collect();
    found.sort_by_key(|returning| (returning.at, returning.job));
    found
}

impl Pass<'_> {
    /// Lets suspended jobs go on, or plans when they will: all, or those that `next`, a pending job, may not preempt.
    pub fn bring_back(&mut self, next: Option<JobId>) {
        if self.returning.is_empty() {
            return;
        }
        let yields = |pass: &Self, returning: &Returning| {
            let (Some(next), Some(preempting)) = (next, &pass.preempting) else { return false };
            preempting.outranks(next, returning.job)
        };
        let (waiting, ready): (Vec<Returning>, Vec<Returning>) =
            std::mem::take(&mut self.returning).into_iter().partition(|returning| yields(self, returning));
        self.returning = waiting;
        for returning in ready {
            self.go_on(returning);
        }
    }

    fn go_on(&mut self, returning: Returning) {
        let Some(parts) = self.parts(&returning) else { return };
        let Some(at) = self.when(&parts, returning.left) else { return };
        let end = at.saturating_add(returning.left);
        if at > self.now {
            for (node, cpus) in &parts {
                let held = Held { from: at, to: end, amount: Amount { cpus: *cpus, ..Amount::default() } };
                self.profile.book(self.fleet, *node, Booking { job: returning.job, held, shared: None, part: None });
            }
            self.bookings.add(returning.job, at, parts.iter().map(|(node, _)| *node));
            self.change_holdings(returning.job, &returning.nodes, |_, holding| vec![Holding { end, ..holding }]);
        } else {
            let again = returning.nodes.iter().zip(&parts).map(|(old, (at, _))| place::cpus_again(self.fleet, *at, old));
            let nodes: Vec<NodeAllocation> = again.collect();
            self.change_holdings(returning.job, &nodes, |node, holding| vec![Holding { cpus: node.all_cpus().collect(), end, ..holding }]);
            let (job, attempt, suspension) = (returning.job, returning.attempt, returning.suspension);
            self.resumes.push(Resume { job, attempt, suspension, nodes });
        }
        self.licenses.shorten(returning.job, end);
        self.forget_bounds();
    }

    /// Its nodes, each as those see it by whose view it is held, with the number of CPUs there. Nothing if a node is not known any more.
    fn parts(&self, returning: &Returning) -> Option<Vec<(NodeIdx, u32)>> {
        let part = |node: &NodeAllocation| {
            let real = self.fleet.find(&node.node)?;
            let via = self.fleet.holdings(real).iter().find(|holding| holding.owner == returning.job)?.via;
            Some((self.fleet.seen_by(real, via).unwrap_or(real), node.all_cpus().count() as u32))
        };
        returning.nodes.iter().map(part).collect()
    }

    /// The earliest instant at which all CPUs are free for so long.
    fn when(&self, parts: &[(NodeIdx, u32)], length: Micros) -> Option<Micros> {
        let mut at = self.now;
        loop {
            let first = |(node, cpus): &(NodeIdx, u32)| {
                let need = Amount { cpus: *cpus, ..Amount::default() };
                self.profile.next_fit(*node, &need, at, length)
            };
            let next = parts.iter().map(first).max()?;
            if next == NEVER {
                return None;
            }
            if next == at {
                return Some(at);
            }
            at = next;
        }
    }

    /// A running job is told to stand still: its CPUs are free from `still` on, the rest is kept. Then no bound holds any more.
    pub fn suspend(&mut self, job: JobId, nodes: &[NodeAllocation], still: Micros) {
        self.change_holdings(job, nodes, |_, holding| {
            let cpus = Holding { gpus: Vec::new(), share: None, memory: 0, end: holding.end.min(still), ..holding.clone() };
            vec![Holding { cpus: Vec::new(), end: NEVER, ..holding }, cpus]
        });
        self.forget_bounds();
    }

    /// Puts others in the place of what a running job holds on these nodes.
    fn change_holdings(&mut self, job: JobId, nodes: &[NodeAllocation], change: impl Fn(&NodeAllocation, Holding) -> Vec<Holding>) {
        for node in nodes {
            let Some(real) = self.fleet.find(&node.node) else { continue };
            let holdings = &mut self.fleet.nodes[real as usize].holdings;
            let (own, rest): (Vec<Holding>, Vec<Holding>) =
                std::mem::take(holdings).into_iter().partition(|holding| holding.owner == job && !holding.is_provisional);
            *holdings = rest;
            for holding in own {
                let at = self.fleet.seen_by(real, holding.via).unwrap_or(real);
                change(node, holding).into_iter().for_each(|holding| self.fleet.hold(at, holding));
            }
            self.profile.redraw(self.fleet, real, self.now);
        }
    }
}
