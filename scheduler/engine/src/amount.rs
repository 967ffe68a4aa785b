//! Amounts of one node's resources as fixed-width integers, and instants as microseconds.
//!
//! Planning over time needs counts only: a job takes any free devices when it starts and keeps them, so if at every instant the
//! counts fit, free devices exist at every start (intervals coloured greedily by start need no more colours than their largest
//! overlap). Exact CPU ids and GPU indices are chosen at the start, by [`place`](crate::place).

use berth_model::Seconds;
use jiff::Timestamp;

/// Microseconds since the epoch: the precision of the database.
pub type Micros = i64;

/// Later than everything.
pub const NEVER: Micros = Micros::MAX;

pub const SECOND: Micros = 1_000_000;

/// GPU types told apart on one node. Those beyond, last by name, are not used.
pub const SLOTS: usize = berth_model::gres::MAX_GPU_KINDS;

pub fn micros(at: Timestamp) -> Micros {
    at.as_microsecond()
}

pub fn timestamp(at: Micros) -> Timestamp {
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::MAX)
}

pub fn span(seconds: Seconds) -> Micros {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND)
}

/// CPUs, memory and GPUs by type of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    pub memory: u64,
    pub cpus: u32,
    pub gpus: [u16; SLOTS],
}

impl Amount {
    /// `need` is there.
    #[inline]
    pub fn covers(&self, need: &Amount) -> bool {
        self.cpus >= need.cpus && self.memory >= need.memory && self.gpus.iter().zip(&need.gpus).all(|(have, need)| have >= need)
    }

    #[inline]
    pub fn minus(&self, other: &Amount) -> Amount {
        let mut rest = *self;
        rest.cpus = rest.cpus.saturating_sub(other.cpus);
        rest.memory = rest.memory.saturating_sub(other.memory);
        for (have, taken) in rest.gpus.iter_mut().zip(&other.gpus) {
            *have = have.saturating_sub(*taken);
        }
        rest
    }

    pub fn plus(&self, other: &Amount) -> Amount {
        let mut sum = *self;
        sum.cpus = sum.cpus.saturating_add(other.cpus);
        sum.memory = sum.memory.saturating_add(other.memory);
        for (have, more) in sum.gpus.iter_mut().zip(&other.gpus) {
            *have = have.saturating_add(*more);
        }
        sum
    }

    /// The lesser of each.
    pub fn least(&self, other: &Amount) -> Amount {
        let mut least = *self;
        least.cpus = least.cpus.min(other.cpus);
        least.memory = least.memory.min(other.memory);
        for (mine, theirs) in least.gpus.iter_mut().zip(&other.gpus) {
            *mine = (*mine).min(*theirs);
        }
        least
    }

    /// The greater of each.
    pub fn most(&self, other: &Amount) -> Amount {
        let mut most = *self;
        most.cpus = most.cpus.max(other.cpus);
        most.memory = most.memory.max(other.memory);
        for (mine, theirs) in most.gpus.iter_mut().zip(&other.gpus) {
            *mine = (*mine).max(*theirs);
        }
        most
    }

    pub fn gpu_count(&self) -> u32 {
        self.gpus.iter().map(|n| u32::from(*n)).sum()
    }
}
