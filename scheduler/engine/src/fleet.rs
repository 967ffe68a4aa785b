//! The nodes, grouped in classes of equals, and what is held on each.
//!
//! Nodes are numbered in natural name order (n2 before n10), so that "the first of equals" is what people expect and does not
//! depend on the order of events. A class is a set of nodes that no job can tell apart: same amounts, GPU types, features,
//! partitions and weight. All questions about whether a shape can ever fit are asked once a class.
//!
//! What a reservation keeps of a node is a node of its own to those whom it lets in: a view, of a class of its own, numbered behind all
//! nodes. What is held stands at the node itself and says by which view. [`views`](crate::views) tells what is free where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::gres::ShareKind;
use berth_model::node::Node;
use berth_model::policy::Partition;
use berth_model::reservation::{Reservation, ReservedShare};
use berth_model::resources::{Inventory, NodeAllocation, Sockets};
use berth_model::{JobId, Name, NodeName, hostlist};

use crate::amount::{Amount, Micros, SECOND, SLOTS, micros};
use crate::shared_gpus::{self, HeldShare};
use crate::sharing::Sharer;

pub type NodeIdx = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub total: Amount,
    /// GPU types of the slots of [`Amount::gpus`], sorted by name.
    pub kinds: Vec<String>,
    /// Into how many shares each GPU of a slot can be divided, as shards and by MPS: of GPUs that differ the fewest.
    pub shares: [[u32; SLOTS]; 2],
    pub features: BTreeSet<String>,
    pub partitions: BTreeSet<Name>,
    pub weight: u32,
    pub sockets: Sockets,
    /// Threads of each core, where jobs get whole cores; else 1.
    pub threads: u32,
    /// The reservation that these are views of.
    pub via: Option<Name>,
    /// Of views: they are not the whole nodes.
    pub is_part: bool,
}

impl Class {
    /// Shares of a kind that all its GPUs together can be divided into.
    pub fn shares_in_all(&self, of: ShareKind) -> u64 {
        self.shares[of as usize].iter().zip(self.total.gpus).map(|(shares, gpus)| u64::from(*shares) * u64::from(gpus)).sum()
    }
}

/// What one attempt, or one start not yet confirmed, holds on one node.
#[derive(Clone, Debug)]
pub struct Holding {
    pub owner: JobId,
    pub array_index: Option<u32>,
    pub is_provisional: bool,
    pub end: Micros,
    /// The reservation by whose view of the node it is held.
    pub via: Option<u32>,
    pub cpus: Vec<u32>,
    pub gpus: Vec<u32>,
    pub memory: u64,
    /// It has only a share of its one GPU.
    pub share: Option<HeldShare>,
    /// Whose it is, if its job shares nodes with none but its own kind.
    pub sharer: Option<Arc<Sharer>>,
    /// What it takes from what may be given to jobs: of one that shares with its own kind alone, the whole node. The fleet keeps it.
    pub amount: Amount,
    /// The same to those that it shares with. The fleet keeps it.
    pub own: Amount,
}

impl Holding {
    /// When it is over, as planned at `now`: what should have ended by then ends in a second.
    pub fn ends(&self, now: Micros) -> Micros {
        if self.end <= now { now.saturating_add(SECOND) } else { self.end }
    }

    pub fn shared_by(self, sharer: Option<Arc<Sharer>>) -> Self {
        Holding { sharer, ..self }
    }

    pub fn of(owner: JobId, array_index: Option<u32>, is_provisional: bool, end: Micros, allocation: &NodeAllocation) -> Self {
        Holding {
            amount: Amount::default(),
            own: Amount::default(),
            sharer: None,
            share: allocation.share.as_ref().map(|share| HeldShare { of: share.of, count: share.count, carries: false }),
            owner,
            array_index,
            is_provisional,
            end,
            via: None,
            cpus: allocation.all_cpus().collect(),
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
    /// Ids of the CPUs that jobs may use, ascending, each with its core where jobs get whole ones.
    cpus: Vec<(u32, u32)>,
    /// Of a view none.
    pub holdings: Vec<Holding>,
    /// The node itself.
    pub real: NodeIdx,
    /// Of a view: the reservation, by its place in the fleet's list.
    pub via: Option<u32>,
}

/// A reservation, as far as it has nodes.
#[derive(Clone, Debug)]
pub struct Kept {
    pub name: Name,
    /// Ascending, half-open.
    pub windows: Vec<(Micros, Micros)>,
    pub is_flex: bool,
    /// Shares its nodes with others.
    pub may_overlap: bool,
}

impl Kept {
    pub fn holds_at(&self, at: Micros) -> bool {
        self.windows.iter().any(|(start, end)| *start <= at && at < *end)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Nodes, and behind them views.
    pub nodes: Vec<FleetNode>,
    /// By name. Only those with windows.
    pub reservations: Vec<Kept>,
    /// Of each node; empty if there are none at all.
    views: Vec<Vec<NodeIdx>>,
    /// Nodes that a floating reservation fences off.
    fenced: BTreeMap<Name, Vec<NodeIdx>>,
    pub classes: Vec<Class>,
    index: BTreeMap<NodeName, NodeIdx>,
    class_index: BTreeMap<Class, u32>,
    memberships: Vec<(Name, Membership)>,
}

/// Who belongs to a partition.
#[derive(Clone, Debug)]
pub struct Membership {
    is_all: bool,
    names: BTreeSet<NodeName>,
    features: BTreeSet<String>,
}

impl Membership {
    pub fn of(partition: &Partition) -> Self {
        let is_all = partition.nodes.trim().eq_ignore_ascii_case("all");
        // A host-list that does not parse was refused at the edge; here it names nobody.
        let names = if is_all || partition.nodes.trim().is_empty() {
            BTreeSet::new()
        } else {
            hostlist::expand(&partition.nodes).map(|names| names.into_iter().collect()).unwrap_or_default()
        };
        Membership { is_all, names, features: partition.node_features.clone() }
    }

    pub fn includes(&self, name: &NodeName, features: &BTreeSet<String>) -> bool {
        self.is_all || self.names.contains(name) || (!self.features.is_empty() && self.features.is_subset(features))
    }
}

impl Fleet {
    pub fn build(
        nodes: &BTreeMap<NodeName, Arc<Node>>,
        partitions: &BTreeMap<Name, Partition>,
        reservations: &BTreeMap<Name, Reservation>,
    ) -> Self {
        let mut fleet =
            Fleet { memberships: partitions.values().map(|p| (p.name.clone(), Membership::of(p))).collect(), ..Fleet::default() };
        let mut ordered: Vec<&Arc<Node>> = nodes.values().collect();
        ordered.sort_by_cached_key(|node| natural(node.name.as_str()));
        for node in ordered {
            let at = fleet.nodes.len() as NodeIdx;
            let entry = fleet.entry(at, node.clone());
            fleet.index.insert(node.name.clone(), at);
            fleet.nodes.push(entry);
        }
        reservations.values().for_each(|reservation| fleet.add_views(reservation));
        fleet
    }

    fn add_views(&mut self, reservation: &Reservation) {
        if reservation.float_seconds.is_some() {
            let names = reservation.nodes();
            let mut nodes: Vec<NodeIdx> = names.iter().filter_map(|name| self.find(name)).collect();
            nodes.sort_unstable();
            self.fenced.insert(reservation.name.clone(), nodes);
            return;
        }
        let via = self.reservations.len() as u32;
        self.reservations.push(Kept {
            name: reservation.name.clone(),
            windows: reservation.windows.iter().map(|window| (micros(window.start), micros(window.end))).collect(),
            is_flex: reservation.is_flex,
            may_overlap: reservation.may_overlap,
        });
        self.views.resize(self.index.len(), Vec::new());
        for part in &reservation.parts {
            // A host-list that does not parse was refused at the edge.
            for name in hostlist::expand(&part.nodes).unwrap_or_default() {
                let Some(real) = self.find(&name) else { continue };
                let mut class = self.class(real).clone();
                class.via = Some(reservation.name.clone());
                class.is_part = part.share.is_some();
                if let Some(share) = &part.share {
                    class.total = kept(&class, share).least(&class.total);
                }
                let view =
                    FleetNode { class: self.number(class), via: Some(via), holdings: Vec::new(), ..self.nodes[real as usize].clone() };
                self.views[real as usize].push(self.nodes.len() as NodeIdx);
                self.nodes.push(view);
            }
        }
    }

    pub fn find(&self, name: &NodeName) -> Option<NodeIdx> {
        self.index.get(name).copied()
    }

    pub fn real(&self, at: NodeIdx) -> NodeIdx {
        self.nodes[at as usize].real
    }

    /// Reservations' views of a node.
    pub fn views(&self, at: NodeIdx) -> &[NodeIdx] {
        self.views.get(self.real(at) as usize).map_or(&[], Vec::as_slice)
    }

    /// Something of the node is kept for a reservation.
    pub fn is_reserved(&self, at: NodeIdx) -> bool {
        !self.views.is_empty() && !self.views(at).is_empty()
    }

    /// A node and all its views.
    pub fn faces(&self, at: NodeIdx) -> impl Iterator<Item = NodeIdx> + '_ {
        std::iter::once(self.real(at)).chain(self.views(at).iter().copied())
    }

    /// Nodes of which reservations keep something, ascending.
    pub fn reserved(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        (0..).zip(&self.views).filter(|(_, views)| !views.is_empty()).map(|(at, _)| at)
    }

    /// The reservation's place in the list.
    pub fn via(&self, reservation: &Name) -> Option<u32> {
        self.reservations.binary_search_by(|kept| kept.name.cmp(reservation)).ok().map(|at| at as u32)
    }

    /// The node as those see it whom the reservation lets in: its view; if there is none, with `flex` the node itself.
    pub fn seen_by(&self, real: NodeIdx, via: Option<u32>) -> Option<NodeIdx> {
        let Some(via) = via else { return Some(real) };
        let view = self.views(real).iter().copied().find(|view| self.nodes[*view as usize].via == Some(via));
        view.or(Some(real).filter(|_| self.reservations[via as usize].is_flex))
    }

    pub fn fenced(&self, reservation: &Name) -> &[NodeIdx] {
        self.fenced.get(reservation).map_or(&[], Vec::as_slice)
    }

    /// What is held on a node, by whatever view.
    pub fn holdings(&self, at: NodeIdx) -> &[Holding] {
        &self.nodes[self.real(at) as usize].holdings
    }

    /// The next instant after `now` at which a reservation begins or ends.
    pub fn next_boundary(&self, now: Micros) -> Option<Micros> {
        let all = self.reservations.iter().flat_map(|kept| &kept.windows).flat_map(|(start, end)| [*start, *end]);
        all.filter(|at| *at > now).min()
    }

    /// Replaces a known node without views; what is held there stays.
    pub fn replace(&mut self, at: NodeIdx, node: Arc<Node>) {
        let entry = self.entry(at, node);
        let holdings = std::mem::replace(&mut self.nodes[at as usize], entry).holdings;
        holdings.into_iter().for_each(|holding| self.hold(at, holding));
    }

    /// Adds what an attempt or a start holds on a node, by the view `at` if it is one.
    pub fn hold(&mut self, at: NodeIdx, holding: Holding) {
        let FleetNode { real, via, .. } = self.nodes[at as usize];
        let own = self.amount(real, &holding);
        let amount = if holding.sharer.is_some() { self.class(real).total } else { own };
        self.nodes[real as usize].holdings.push(Holding { amount, own, via, ..holding });
        self.carry_shares(real);
    }

    /// Takes off what is held on a node by those of whom `is_gone` is true.
    pub fn release(&mut self, at: NodeIdx, is_gone: impl Fn(&Holding) -> bool) {
        self.nodes[at as usize].holdings.retain(|holding| !is_gone(holding));
        self.carry_shares(at);
    }

    /// What a job holds on a node ends by `end`.
    pub fn shorten(&mut self, at: NodeIdx, job: JobId, end: Micros) {
        let holdings = &mut self.nodes[at as usize].holdings;
        holdings.iter_mut().filter(|h| h.owner == job && !h.is_provisional).for_each(|h| h.end = h.end.min(end));
        self.carry_shares(at);
    }

    /// Of those who share a GPU the one who leaves last is counted as who has it.
    fn carry_shares(&mut self, at: NodeIdx) {
        let last = shared_gpus::last_sharers(&self.nodes[at as usize].holdings);
        for (i, carries) in last {
            let holding = &self.nodes[at as usize].holdings[i];
            let mut own = self.amount(at, holding);
            if let Some(slot) = holding.gpus.first().and_then(|gpu| self.slot_of(at, *gpu)).filter(|_| carries) {
                own.gpus[slot] += 1;
            }
            let amount = if holding.sharer.is_some() { self.class(at).total } else { own };
            let holding = &mut self.nodes[at as usize].holdings[i];
            (holding.own, holding.amount) = (own, amount);
            holding.share.iter_mut().for_each(|share| share.carries = carries);
        }
    }

    /// The slot of a GPU that is in order.
    pub fn slot_of(&self, at: NodeIdx, gpu: u32) -> Option<usize> {
        let entry = &self.nodes[at as usize];
        let gpu = entry.node.inventory.gpus.iter().find(|g| g.index == gpu && g.fault.is_none())?;
        self.classes[entry.class as usize].kinds.iter().position(|kind| *kind == gpu.kind)
    }

    fn number(&mut self, class: Class) -> u32 {
        let next = self.classes.len() as u32;
        *self.class_index.entry(class).or_insert_with_key(|class| {
            self.classes.push(class.clone());
            next
        })
    }

    fn entry(&mut self, at: NodeIdx, node: Arc<Node>) -> FleetNode {
        let class = self.classify(&node);
        let class = self.number(class);
        let cpus = numbered_cores(&node.inventory);
        FleetNode { is_usable: node.is_usable(), node, class, cpus, holdings: Vec::new(), real: at, via: None }
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
        let partitions =
            self.memberships.iter().filter(|(_, m)| m.includes(&node.name, &node.features)).map(|(name, _)| name.clone()).collect();
        let (weight, sockets) = (node.filling_weight(), node.inventory.built());
        let shares = [ShareKind::Shard, ShareKind::Mps].map(|of| shared_gpus::capacities(&node.inventory, &kinds, of));
        let threads = node.inventory.threads_of_cores();
        Class { total, kinds, shares, threads, features: node.features.clone(), partitions, weight, sockets, via: None, is_part: false }
    }

    pub fn class(&self, node: NodeIdx) -> &Class {
        &self.classes[self.nodes[node as usize].class as usize]
    }

    /// What a holding takes from what may be given to jobs: CPUs that the node no longer has and GPUs at fault are no loss.
    fn amount(&self, at: NodeIdx, holding: &Holding) -> Amount {
        let entry = &self.nodes[at as usize];
        let mut amount = Amount { memory: holding.memory, ..Amount::default() };
        let known = |id: &u32| entry.cpus.binary_search_by_key(id, |(cpu, _)| *cpu).ok().map(|at| entry.cpus[at].1);
        amount.cpus = match self.class(at).threads {
            1 => holding.cpus.iter().filter_map(known).count() as u32,
            // Nobody else gets what it leaves of a core.
            threads => holding.cpus.iter().filter_map(known).collect::<BTreeSet<u32>>().len() as u32 * threads,
        };
        let whole = holding.gpus.iter().filter(|_| holding.share.is_none());
        whole.filter_map(|gpu| self.slot_of(at, *gpu)).for_each(|slot| amount.gpus[slot] += 1);
        amount
    }
}

/// The CPUs that jobs may use, ascending, each with its core's number; each is a core by itself where jobs get single ones.
fn numbered_cores(inventory: &Inventory) -> Vec<(u32, u32)> {
    let mut cpus: Vec<(u32, u32)> = if inventory.threads_of_cores() > 1 {
        (0..).zip(&inventory.cores).flat_map(|(core, threads)| threads.iter().map(move |cpu| (*cpu, core))).collect()
    } else {
        inventory.cpus.iter().map(|cpu| (*cpu, *cpu)).collect()
    };
    cpus.sort_unstable();
    cpus
}

/// A share of a node of the class, in its slots.
fn kept(class: &Class, share: &ReservedShare) -> Amount {
    let mut amount = Amount { memory: share.memory_bytes.0, cpus: share.cpus, gpus: [0; SLOTS] };
    for (kind, count) in &share.gpus {
        if let Some(slot) = class.kinds.iter().position(|known| known == kind) {
            amount.gpus[slot] = u16::try_from(*count).unwrap_or(u16::MAX);
        }
    }
    amount
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
