//! Reservations: nodes, or parts of nodes, that are kept for some people over a time. What an administrator asks for, and what the
//! scheduler is told of it once nodes have been chosen.
//!
//! Words and flags are Slurm's (scontrol manual, "create reservation"); times are half-open intervals.

mod check;
mod features;
mod recur;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::node::Node;
use crate::policy::Partition;
use crate::state::text_enum;
use crate::tres::TresCounts;
use crate::{Bytes, JobId, Name, NodeName, Seconds, hostlist};

pub use features::{FeatureCount, parse_features};
pub use recur::{MOST_WINDOWS, Window, next_window, windows};

text_enum! {
    /// What is special about a reservation.
    ReservationFlag {
        /// For maintenance (MAINT): it may overlap others, its nodes show `maint` and count apart.
        Maintenance = "maint",
        /// Its jobs may begin before it, end after it and use nodes outside.
        Flex = "flex",
        /// It may share nodes with other reservations.
        Overlap = "overlap",
        /// Nodes are chosen whatever runs there (IGNORE_JOBS).
        IgnoreJobs = "ignore_jobs",
        /// Nodes that are allocated or out of service are replaced by idle ones, so that the number of idle ones stays.
        Replace = "replace",
        /// Nodes out of service are replaced (REPLACE_DOWN). So it is by default where nodes were not named.
        ReplaceDown = "replace_down",
        /// Nodes are never replaced (STATIC_ALLOC).
        StaticAlloc = "static_alloc",
        /// It attracts jobs that may use it and name no reservation.
        Magnetic = "magnetic",
        Hourly = "hourly",
        Daily = "daily",
        /// Monday to Friday.
        Weekday = "weekday",
        /// Saturday and Sunday.
        Weekend = "weekend",
        Weekly = "weekly",
        /// Its nodes are those of its partition, whatever happens to that.
        PartNodes = "part_nodes",
        /// Jobs that still wait for it at its end go on as jobs without a reservation, in place of being held.
        NoHoldJobsAfterEnd = "no_hold_jobs_after_end",
    }
}

impl ReservationFlag {
    /// Says how the reservation repeats.
    pub fn is_repeat(self) -> bool {
        use ReservationFlag::{Daily, Hourly, Weekday, Weekend, Weekly};
        matches!(self, Hourly | Daily | Weekday | Weekend | Weekly)
    }
}

/// A reservation as an administrator asks for it. Nodes are named, counted, or come by resources; exactly one of `nodes`, `node_count`,
/// counted `features` and `tres`, or the flag `part_nodes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReservationSpec {
    pub name: Name,
    /// When it begins; of one that repeats, when it began or begins next. Absent: now, or with `float_seconds` always so far ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// When it ends; either this or `duration_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<Seconds>,
    /// Host-list of nodes (`n[1-4]`), or `ALL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// So many nodes, idle ones first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_count: Option<u32>,
    /// What nodes must have: `h100&nvlink`; with counts, so many of each: `h100*2,fat*1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// Only nodes of this partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Name>,
    /// Resources in place of whole nodes: `{"cpu": 64}`, `{"gres/gpu:h100": 8}`. They come from as few nodes as possible, and the rest of
    /// these nodes is free for others. What is not named follows in proportion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub tres: TresCounts,
    /// Users as `tenant/user`, or with a minus before it all but these. Of several lists all must match.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub users: BTreeSet<String>,
    /// Accounts as `tenant/account`, or with a minus before it all but these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub accounts: BTreeSet<String>,
    /// Tenants, or with a minus before it all but these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tenants: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub flags: BTreeSet<ReservationFlag>,
    /// It is removed after so long without jobs, also before the first (PURGE_COMP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_after_seconds: Option<Seconds>,
    /// The start stays so far ahead of the present (TIME_FLOAT): jobs that run longer stay away from its nodes. It takes no jobs itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub float_seconds: Option<Seconds>,
    /// IANA name of the zone in which it repeats (`Europe/Berlin`); UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl ReservationSpec {
    pub fn has(&self, flag: ReservationFlag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether and how it repeats.
    pub fn repeat(&self) -> Option<ReservationFlag> {
        self.flags.iter().copied().find(|flag| flag.is_repeat())
    }

    /// Other reservations may have the same nodes.
    pub fn may_overlap(&self) -> bool {
        self.has(ReservationFlag::Overlap) || self.has(ReservationFlag::Maintenance)
    }

    /// Whether nodes that cannot be used are replaced: those that were not named.
    pub fn replaces_down(&self) -> bool {
        let is_counted = self.nodes.is_none() && self.tres.is_empty() && !self.has(ReservationFlag::PartNodes);
        is_counted && !self.has(ReservationFlag::StaticAlloc) && !self.has(ReservationFlag::Maintenance)
    }

    /// Who may use it.
    pub fn access(&self) -> Access {
        // A reservation that floats, and one of which nothing says whose it is, takes no jobs.
        if self.float_seconds.is_some() {
            return Access::default();
        }
        Access { users: self.users.clone(), accounts: self.accounts.clone(), tenants: self.tenants.clone() }
    }
}

/// Who may use a reservation: each list that is not empty must match; if all are empty, nobody may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub users: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub accounts: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tenants: BTreeSet<String>,
}

impl Access {
    /// Whether jobs of this user that are charged to this account may use it.
    pub fn admits(&self, tenant: &Name, account: &Name, user: &Name) -> bool {
        let is_anybodys = !(self.users.is_empty() && self.accounts.is_empty() && self.tenants.is_empty());
        is_anybodys
            && matches(&self.tenants, tenant.as_str())
            && matches(&self.users, &format!("{tenant}/{user}"))
            && matches(&self.accounts, &format!("{tenant}/{account}"))
    }

    /// Somebody of the tenant may use it, or is named in it.
    pub fn concerns(&self, tenant: &str) -> bool {
        let is_of = |name: &String| name.trim_start_matches('-').split('/').next() == Some(tenant);
        let is_named = [&self.users, &self.accounts, &self.tenants].into_iter().flatten().any(is_of);
        let has_names = |list: &BTreeSet<String>| list.iter().any(|name| !name.starts_with('-'));
        let is_for_all_others = ![&self.users, &self.accounts, &self.tenants].into_iter().any(has_names) && *self != Access::default();
        (is_named || is_for_all_others) && !self.tenants.contains(&format!("-{tenant}"))
    }
}

/// In the list, or if it names exceptions, not among these. An empty list matches all.
fn matches(list: &BTreeSet<String>, name: &str) -> bool {
    let is_excluded = list.iter().any(|entry| entry.strip_prefix('-') == Some(name));
    let names_some = list.iter().any(|entry| !entry.starts_with('-'));
    !is_excluded && (!names_some || list.contains(name))
}

/// What is kept of some nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservedPart {
    /// Folded: `n[1-4]`.
    pub nodes: String,
    /// What is kept of each; absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ReservedShare>,
}

/// A part of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservedShare {
    pub cpus: u32,
    pub memory_bytes: Bytes,
    /// By type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<String, u32>,
}

/// A reservation as the scheduler is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub name: Name,
    /// The present or next one, and those that follow, ascending. Of one that floats, none.
    pub windows: Vec<Window>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub float_seconds: Option<Seconds>,
    pub parts: Vec<ReservedPart>,
    pub access: Access,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_maintenance: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_flex: bool,
    /// Shares its nodes with other reservations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_overlap: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_magnetic: bool,
}

impl Reservation {
    /// What was asked for, with its present or next time and its nodes.
    pub fn of(spec: &ReservationSpec, first: Window, parts: Vec<ReservedPart>) -> Self {
        Reservation {
            name: spec.name.clone(),
            windows: if spec.float_seconds.is_some() { Vec::new() } else { windows(first, spec.repeat(), spec.time_zone.as_deref()) },
            float_seconds: spec.float_seconds,
            parts,
            access: spec.access(),
            is_maintenance: spec.has(ReservationFlag::Maintenance),
            is_flex: spec.has(ReservationFlag::Flex),
            may_overlap: spec.may_overlap(),
            is_magnetic: spec.has(ReservationFlag::Magnetic),
        }
    }

    /// The window that `at` lies in or before; nothing once it is over.
    pub fn window(&self, at: Timestamp) -> Option<Window> {
        self.windows.iter().copied().find(|window| at < window.end)
    }

    /// All its nodes, in natural order of the parts.
    pub fn nodes(&self) -> Vec<NodeName> {
        nodes_of(&self.parts)
    }
}

/// All nodes of the parts, in their order.
pub fn nodes_of(parts: &[ReservedPart]) -> Vec<NodeName> {
    parts.iter().flat_map(|part| hostlist::expand(&part.nodes).unwrap_or_default()).collect()
}

/// What a reservation's nodes are chosen from.
#[derive(Clone, Debug, Default)]
pub struct ReserveGround {
    pub nodes: Vec<Arc<Node>>,
    pub partitions: Vec<Partition>,
    pub reservations: Vec<Reservation>,
    /// Jobs on nodes.
    pub busy: Vec<Busy>,
}

impl ReserveGround {
    /// The same, if what runs on these nodes were no obstacle: a reservation that has them already keeps them.
    pub fn without(&self, kept: &BTreeSet<NodeName>) -> ReserveGround {
        let mut ground = self.clone();
        ground.busy.retain(|busy| !kept.contains(&busy.node));
        ground
    }
}

/// A job on a node.
#[derive(Clone, Debug)]
pub struct Busy {
    pub node: NodeName,
    pub job: JobId,
    /// When its time limit ends it.
    pub until: Timestamp,
    /// The reservation in which it runs.
    pub reservation: Option<Name>,
}

#[cfg(test)]
mod tests;
