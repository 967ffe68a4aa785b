//! The profile: free resources of all nodes over future instants, during one pass and between passes.
//!
//! Between passes it holds running attempts and unconfirmed starts alone, so that a plan after one event costs little. A pass
//! adds planned starts and takes them out again at its end, by rebuilding the nodes it touched.
//!
//! Attempts end at `started_at` (before that, `allocated_at`) + time limit. What should have ended by now, and what is
//! cleaning up, is taken to end one second from now.

use crate::amount::{Amount, Micros, SECOND};
use crate::fleet::{Fleet, NodeIdx};
use crate::timeline::Timeline;

#[derive(Debug, Default)]
pub struct Profile {
    pub lines: Vec<Timeline>,
    /// Free now if nobody had planned starts: what running attempts and the starts of this pass leave.
    pub free_now: Vec<Amount>,
    /// Raised when a node's line changes within a pass.
    pub version: Vec<u32>,
    /// The order of filling now: weight, then least GPUs, CPUs left.
    pub rank_now: Vec<u64>,
    touched: Vec<NodeIdx>,
    is_touched: Vec<bool>,
}

impl Profile {
    pub fn of(fleet: &Fleet) -> Self {
        let n = fleet.nodes.len();
        let mut profile = Profile {
            lines: vec![Timeline::default(); n],
            free_now: vec![Amount::default(); n],
            version: vec![0; n],
            rank_now: vec![0; n],
            touched: Vec::new(),
            is_touched: vec![false; n],
        };
        for node in 0..n as NodeIdx {
            profile.rebuild(fleet, node, Micros::MIN);
        }
        profile
    }

    /// Derives a node's line from what is held there. `now` clamps overdue ends; [`Micros::MIN`] leaves them.
    pub fn rebuild(&mut self, fleet: &Fleet, at: NodeIdx, now: Micros) {
        let soon = now.saturating_add(SECOND);
        let entry = &fleet.nodes[at as usize];
        let mut releases: Vec<(Micros, Amount)> =
            entry.holdings.iter().map(|h| (if h.end <= now { soon } else { h.end }, fleet.amount(at, h))).collect();
        let i = at as usize;
        self.lines[i] = Timeline::of(fleet.classes[entry.class as usize].total, &mut releases);
        self.free_now[i] = *self.lines[i].free_at(Micros::MIN);
        self.version[i] = self.version[i].wrapping_add(1);
        self.rank(fleet, at);
    }

    fn rank(&mut self, fleet: &Fleet, at: NodeIdx) {
        self.rank_now[at as usize] = fill_rank(fleet.class(at).weight, &self.free_now[at as usize]);
    }

    /// Marks a node whose line is clamped or carries planned starts.
    pub fn touch(&mut self, at: NodeIdx) {
        if !std::mem::replace(&mut self.is_touched[at as usize], true) {
            self.touched.push(at);
        }
    }

    /// Plans `amount` on a node over `from..to`; a start (`from` is now) also lowers what is free now.
    pub fn take(&mut self, fleet: &Fleet, at: NodeIdx, from: Micros, to: Micros, amount: &Amount, is_start: bool) {
        let i = at as usize;
        self.touch(at);
        self.lines[i].take(from, to, amount);
        self.version[i] = self.version[i].wrapping_add(1);
        if is_start {
            self.free_now[i] = self.free_now[i].minus(amount);
            self.rank(fleet, at);
        }
    }

    /// Ends a pass: planned starts are forgotten, starts stay as holdings.
    pub fn settle(&mut self, fleet: &Fleet) {
        for at in std::mem::take(&mut self.touched) {
            self.is_touched[at as usize] = false;
            self.rebuild(fleet, at, Micros::MIN);
        }
    }
}

/// Lower is filled first: weight, then what has the least GPUs, then the least CPUs free.
pub fn fill_rank(weight: u32, free: &Amount) -> u64 {
    u64::from(weight) << 32 | u64::from(free.gpu_count().min(0xfff)) << 20 | u64::from(free.cpus.min(0xf_ffff))
}
