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
    /// New work may start here.
    pub fn is_usable(&self) -> bool {
        !self.is_down && self.flags.iter().all(|f| !blocks_new_work(*f))
    }
}

fn blocks_new_work(flag: NodeFlag) -> bool {
    matches!(
        flag,
        NodeFlag::Drain
            | NodeFlag::Fail
            | NodeFlag::Maintenance
            | NodeFlag::PoweringUp
            | NodeFlag::PoweringDown
            | NodeFlag::PoweredDown
            | NodeFlag::Reboot
            | NodeFlag::NotResponding
    )
}
