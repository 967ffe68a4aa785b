//! Nodes as the scheduler sees them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::resources::Inventory;
use crate::state::NodeFlag;

/// A node with what decides whether it may be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: NodeName,
    pub inventory: Inventory,
    pub features: BTreeSet<String>,
    /// Lower is filled first.
    pub weight: u32,
    /// No contact for `node_timeout`, or set down by an operator: nothing runs there.
    pub is_down: bool,
    pub flags: BTreeSet<NodeFlag>,
    /// Why it is drained or down, for verdicts.
    pub reason: Option<String>,
}

impl Node {
    /// New work may start here, if need be after the node has been powered up.
    pub fn is_usable(&self) -> bool {
        !self.is_down && self.flags.iter().all(|f| !blocks_new_work(*f))
    }

    /// Nodes that are up are filled first, then those that are powering up, then those that must be powered up.
    pub fn filling_weight(&self) -> u32 {
        let tier = match () {
            () if self.flags.contains(&NodeFlag::PoweredDown) => 2,
            () if self.flags.contains(&NodeFlag::PoweringUp) => 1,
            () => 0,
        };
        self.weight.min(MAX_WEIGHT) + tier * (MAX_WEIGHT + 1)
    }
}

/// The greatest weight of a node.
pub const MAX_WEIGHT: u32 = 1_000_000;

fn blocks_new_work(flag: NodeFlag) -> bool {
    matches!(
        flag,
        NodeFlag::Drain
            | NodeFlag::Fail
            | NodeFlag::Maintenance
            | NodeFlag::PowerDown
            | NodeFlag::PoweringDown
            | NodeFlag::RebootIssued
            | NodeFlag::NotResponding
    )
}
