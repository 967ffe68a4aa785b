//! The nodes, grouped in classes of equals, and what is held on each.
//!
//! Nodes are numbered in natural name order (n2 before n10), so that "the first of equals" is what people expect and does not
//! depend on the order of events. A class is a set of nodes that no job can tell apart: same amounts, GPU types, features,
//! partitions and weight. All questions about whether a shape can ever fit are asked once a class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::node::Node;
use berth_model::policy::Partition;
use berth_model::resources::NodeAllocation;
use berth_model::{JobId, Name, NodeName, hostlist};

use crate::amount::{Amount, Micros, SLOTS};

pub type NodeIdx = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub total: Amount,
    /// GPU types of the slots of [`Amount::gpus`], sorted by name.
    pub kinds: Vec<String>,
    pub features: BTreeSet<String>,
    pub partitions: BTreeSet<Name>,
    pub weight: u32,
}

/// What one attempt, or one start not yet confirmed, holds on one node.
#[derive(Clone, Debug)]
pub struct Holding {
    pub owner: JobId,
    pub array_index: Option<u32>,
    pub is_provisional: bool,
    pub end: Micros,
    pub cpus: Vec<u32>,
    pub gpus: Vec<u32>,
    pub memory: u64,
    /// What it takes from what may be given to jobs. The fleet keeps it.
    pub amount: Amount,
}

impl Holding {
    pub fn of(owner: JobId, array_index: Option<u32>, is_provisional: bool, end: Micros, allocation: &NodeAllocation) -> Self {
        Holding {
            amount: Amount::default(),
            owner,
            array_index,
            is_provisional,
            end,
            cpus: allocation.cpus.clone(),
            gpus: allocation.gpus.clone(),
            memory: allocation.memory_bytes.0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct FleetNode {
    pub node: Arc<Node>,
    pub class: u32,
    pub is_usable: bool,
    /// Sorted ids of the CPUs that jobs may use.
    cpus: Vec<u32>,
    pub holdings: Vec<Holding>,
}

#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub nodes: Vec<FleetNode>,
    pub classes: Vec<Class>,
    index: BTreeMap<NodeName, NodeIdx>,
    class_index: BTreeMap<Class, u32>,
    memberships: Vec<(Name, Membership)>,
}

/// Who belongs to a partition.
#[derive(Clone, Debug)]
struct Membership {
    is_all: bool,
    names: BTreeSet<NodeName>,
    features: BTreeSet<String>,
}

impl Membership {
    fn of(partition: &Partition) -> Self {
        let is_all = partition.nodes.trim().eq_ignore_ascii_case("all");
        // A host-list that does not parse was refused at the edge; here it names nobody.
        let names = if is_all || partition.nodes.trim().is_empty() {
            BTreeSet::new()
        } else {
            hostlist::expand(&partition.nodes).map(|names| names.into_iter().collect()).unwrap_or_default()
        };
        Membership { is_all, names, features: partition.node_features.clone() }
    }

    fn includes(&self, node: &Node) -> bool {
        self.is_all || self.names.contains(&node.name) || (!self.features.is_empty() && self.features.is_subset(&node.features))
    }
}

impl Fleet {
    pub fn build(nodes: &BTreeMap<NodeName, Arc<Node>>, partitions: &BTreeMap<Name, Partition>) -> Self {
        let mut fleet =
            Fleet { memberships: partitions.values().map(|p| (p.name.clone(), Membership::of(p))).collect(), ..Fleet::default() };
        let mut ordered: Vec<&Arc<Node>> = nodes.values().collect();
        ordered.sort_by_cached_key(|node| natural(node.name.as_str()));
        for node in ordered {
            let entry = fleet.entry(node.clone());
            fleet.index.insert(node.name.clone(), fleet.nodes.len() as NodeIdx);
            fleet.nodes.push(entry);
        }
        fleet
    }

    pub fn find(&self, name: &NodeName) -> Option<NodeIdx> {
        self.index.get(name).copied()
    }

    /// Replaces a known node; what is held there stays.
    pub fn replace(&mut self, at: NodeIdx, node: Arc<Node>) {
        let entry = self.entry(node);
        let holdings = std::mem::replace(&mut self.nodes[at as usize], entry).holdings;
        holdings.into_iter().for_each(|holding| self.hold(at, holding));
    }

    /// Adds what an attempt or a start holds on a node.
    pub fn hold(&mut self, at: NodeIdx, holding: Holding) {
        let amount = self.amount(at, &holding);
        self.nodes[at as usize].holdings.push(Holding { amount, ..holding });
    }

    fn entry(&mut self, node: Arc<Node>) -> FleetNode {
        let class = self.classify(&node);
        let next = self.classes.len() as u32;
        let class = *self.class_index.entry(class).or_insert_with_key(|class| {
            self.classes.push(class.clone());
            next
        });
        let mut cpus = node.inventory.cpus.clone();
        cpus.sort_unstable();
        FleetNode { is_usable: node.is_usable(), node, class, cpus, holdings: Vec::new() }
    }

    fn classify(&self, node: &Node) -> Class {
        let kinds: BTreeSet<&str> = node.inventory.gpus.iter().map(|g| g.kind.as_str()).collect();
        let kinds: Vec<String> = kinds.into_iter().take(SLOTS).map(str::to_owned).collect();
        let mut total = Amount { memory: node.inventory.memory_bytes.0, cpus: node.inventory.cpus.len() as u32, gpus: [0; SLOTS] };
        for gpu in node.inventory.gpus.iter().filter(|g| g.fault.is_none()) {
            if let Some(slot) = kinds.iter().position(|k| *k == gpu.kind) {
                total.gpus[slot] += 1;
            }
        }
        let partitions = self.memberships.iter().filter(|(_, m)| m.includes(node)).map(|(name, _)| name.clone()).collect();
        Class { total, kinds, features: node.features.clone(), partitions, weight: node.filling_weight() }
    }

    pub fn class(&self, node: NodeIdx) -> &Class {
        &self.classes[self.nodes[node as usize].class as usize]
    }

    /// What a holding takes from what may be given to jobs: CPUs that the node no longer has and GPUs at fault are no loss.
    fn amount(&self, at: NodeIdx, holding: &Holding) -> Amount {
        let entry = &self.nodes[at as usize];
        let class = &self.classes[entry.class as usize];
        let mut amount = Amount { memory: holding.memory, ..Amount::default() };
        amount.cpus = holding.cpus.iter().filter(|id| entry.cpus.binary_search(id).is_ok()).count() as u32;
        for index in &holding.gpus {
            let gpu = entry.node.inventory.gpus.iter().find(|g| g.index == *index && g.fault.is_none());
            if let Some(slot) = gpu.and_then(|g| class.kinds.iter().position(|k| *k == g.kind)) {
                amount.gpus[slot] += 1;
            }
        }
        amount
    }
}

/// Splits a name into text and numbers, so that `n2` sorts before `n10`. The name itself breaks ties (`n02`, `n2`).
fn natural(name: &str) -> (Vec<(String, u64)>, String) {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_end);
        let number_end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(number_end);
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    (parts, name.to_owned())
}
