//! Which nodes a reservation gets when it is made, and by which it gets others later.
//!
//! Nodes that are named must all be there for it. Where they are counted, those that are idle come first, then those whose jobs end by
//! their limits before it begins; then the lowest weight and the natural order of names. Unless it may overlap, no node is taken that
//! another reservation has at one of its times; unless it ignores jobs, none on which a job may still run when it begins. (Slurm's rules.)
//!
//! Resources in place of nodes come from as few nodes as possible: idle ones first, then those with most of what is asked for. What is not
//! asked for follows in proportion: of a node of 64 CPUs and 8 GPUs, 2 GPUs take 16 CPUs along.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::node::Node;
use berth_model::reservation::{
    Busy, ReservationFlag, ReservationSpec, ReserveGround, ReservedPart, ReservedShare, Window, nodes_of, parse_features, windows,
};
use berth_model::tres::Tres;
use berth_model::{Bytes, NodeName, hostlist};
use jiff::Timestamp;

use crate::fleet::Fleet;

/// Why there are not the nodes that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// What was asked for: `4 nodes`.
    pub wanted: String,
    /// What there is.
    pub found: String,
    /// What is in the way, node by node, at most ten.
    pub conflicts: Vec<String>,
}

const MOST_CONFLICTS: usize = 10;

/// What stands in the way on one node.
#[derive(Debug, Default)]
struct Standing {
    conflict: Option<String>,
    is_busy: bool,
    /// What other reservations keep of it.
    kept: ReservedShare,
}

struct Choice<'a> {
    fleet: Fleet,
    spec: &'a ReservationSpec,
    keeps: &'a BTreeSet<NodeName>,
    standing: BTreeMap<NodeName, Standing>,
}

/// Chooses nodes for `spec`, whose present or next time is `first`. Those in `keeps` are taken before all others.
pub fn choose_nodes(
    ground: &ReserveGround,
    spec: &ReservationSpec,
    first: Window,
    keeps: &BTreeSet<NodeName>,
) -> Result<Vec<ReservedPart>, Shortage> {
    let nodes: BTreeMap<NodeName, Arc<Node>> = ground.nodes.iter().map(|node| (node.name.clone(), node.clone())).collect();
    let partitions = ground.partitions.iter().map(|partition| (partition.name.clone(), partition.clone())).collect();
    let fleet = Fleet::build(&nodes, &partitions, &BTreeMap::new());
    let standing = standing(ground, spec, first);
    let choice = Choice { fleet, spec, keeps, standing };
    if !spec.tres.is_empty() {
        return choice.resources();
    }
    if spec.nodes.is_some() || spec.has(ReservationFlag::PartNodes) {
        return choice.named();
    }
    choice.counted()
}

/// The nodes that a reservation should have in place of its present ones; nothing if it keeps them.
pub fn replace_nodes(
    ground: &ReserveGround,
    spec: &ReservationSpec,
    first: Window,
    parts: &[ReservedPart],
    now: Timestamp,
) -> Option<Vec<ReservedPart>> {
    let present: BTreeSet<NodeName> = nodes_of(parts).into_iter().collect();
    let from_now = Window { start: first.start.max(now), end: first.end };
    if spec.has(ReservationFlag::PartNodes) {
        let chosen = choose_nodes(ground, spec, from_now, &present).ok()?;
        return Some(chosen).filter(|chosen| chosen != parts);
    }
    if !spec.replaces_down() {
        return None;
    }
    let is_usable = |name: &NodeName| ground.nodes.iter().any(|node| node.name == *name && node.is_usable());
    let is_wanted_idle = spec.has(ReservationFlag::Replace) && first.start <= now;
    let is_busy = |name: &NodeName| is_wanted_idle && ground.busy.iter().any(|busy| busy.node == *name);
    let keeps: BTreeSet<NodeName> = present.iter().filter(|name| is_usable(name) && !is_busy(name)).cloned().collect();
    if keeps.len() == present.len() {
        return None;
    }
    choose_nodes(&ground.without(&keeps), spec, from_now, &keeps).ok().filter(|chosen| chosen != parts)
}

fn standing(ground: &ReserveGround, spec: &ReservationSpec, first: Window) -> BTreeMap<NodeName, Standing> {
    let times = windows(first, spec.repeat(), spec.time_zone.as_deref());
    let mut all: BTreeMap<NodeName, Standing> = BTreeMap::new();
    for other in ground.reservations.iter().filter(|other| other.name != spec.name && !spec.may_overlap()) {
        let hits = other.windows.iter().find(|theirs| spec.float_seconds.is_some() || times.iter().any(|own| own.overlaps(theirs)));
        let Some(until) = hits.map(|window| format!("until {}", window.end)).or(other.float_seconds.map(|_| "as it floats".to_owned()))
        else {
            continue;
        };
        for part in &other.parts {
            for name in hostlist::expand(&part.nodes).unwrap_or_default() {
                let entry = all.entry(name.clone()).or_default();
                match &part.share {
                    Some(share) if !spec.tres.is_empty() => add(&mut entry.kept, share),
                    _ => _ = entry.conflict.get_or_insert_with(|| format!("{name}: reservation {} {until}", other.name)),
                }
            }
        }
    }
    for Busy { node, job, until, reservation } in &ground.busy {
        let entry = all.entry(node.clone()).or_default();
        entry.is_busy = true;
        // Its own jobs are no obstacle.
        let is_own = reservation.as_ref() == Some(&spec.name);
        if *until > first.start && !is_own && !spec.has(ReservationFlag::IgnoreJobs) {
            entry.conflict.get_or_insert_with(|| format!("{node}: job {job} may run until {until}"));
        }
    }
    all
}

fn add(sum: &mut ReservedShare, share: &ReservedShare) {
    sum.cpus += share.cpus;
    sum.memory_bytes = Bytes(sum.memory_bytes.0 + share.memory_bytes.0);
    for (kind, count) in &share.gpus {
        *sum.gpus.entry(kind.clone()).or_default() += count;
    }
}

impl Choice<'_> {
    /// Nodes that match partition and features, in natural order; features with counts are left aside.
    fn matching(&self) -> Vec<&Arc<Node>> {
        let features = self.spec.features.as_deref().and_then(|text| parse_features(text).ok()).unwrap_or_default();
        let plain = features.into_iter().find(|feature| feature.count.is_none());
        let all = self.fleet.nodes.iter().filter(|entry| {
            let class = &self.fleet.classes[entry.class as usize];
            let in_partition = self.spec.partition.as_ref().is_none_or(|partition| class.partitions.contains(partition));
            let has_features = plain.as_ref().is_none_or(|plain| plain.any_of.iter().any(|all| all.is_subset(&class.features)));
            in_partition && has_features
        });
        all.map(|entry| &entry.node).collect()
    }

    fn conflict(&self, name: &NodeName) -> Option<&String> {
        self.standing.get(name)?.conflict.as_ref()
    }

    fn conflicts<'b>(&self, among: impl Iterator<Item = &'b NodeName>) -> Vec<String> {
        among.filter_map(|name| self.conflict(name).cloned()).take(MOST_CONFLICTS).collect()
    }

    /// In the order in which they are taken: free of conflicts, in service.
    fn available(&self) -> Vec<&Arc<Node>> {
        let mut nodes: Vec<&Arc<Node>> = self.matching();
        nodes.retain(|node| node.is_usable() && self.conflict(&node.name).is_none());
        // The natural order of names is kept among equals.
        nodes.sort_by_key(|node| (!self.keeps.contains(&node.name), self.is_busy(&node.name), node.weight));
        nodes
    }

    fn is_busy(&self, name: &NodeName) -> bool {
        self.standing.get(name).is_some_and(|standing| standing.is_busy)
    }

    /// What no node has.
    fn nothing_matches(&self) -> String {
        let features = self.spec.features.as_ref().map(|features| format!("the features {features}"));
        let partition = self.spec.partition.as_ref().map(|partition| format!("the partition {partition}"));
        let asked: Vec<String> = features.into_iter().chain(partition).collect();
        if asked.is_empty() { "there is no node".to_owned() } else { format!("no node is of {}", asked.join(" and ")) }
    }

    fn named(&self) -> Result<Vec<ReservedPart>, Shortage> {
        let matching = self.matching();
        let names: Vec<NodeName> = match self.spec.nodes.as_deref().filter(|nodes| *nodes != "ALL") {
            Some(list) => hostlist::expand(list).unwrap_or_default(),
            None => matching.iter().map(|node| node.name.clone()).collect(),
        };
        let known: BTreeSet<&NodeName> = matching.iter().map(|node| &node.name).collect();
        let unknown =
            names.iter().filter(|name| !known.contains(name)).map(|name| format!("{name}: there is no such node, or it does not match"));
        let mut conflicts: Vec<String> = unknown.take(MOST_CONFLICTS).collect();
        conflicts.extend(self.conflicts(names.iter()));
        conflicts.truncate(MOST_CONFLICTS);
        if conflicts.is_empty() && !names.is_empty() {
            return Ok(vec![whole(&names)]);
        }
        let free = names.iter().filter(|name| known.contains(name) && self.conflict(name).is_none()).count();
        Err(Shortage { wanted: nodes_in_words(names.len().max(1)), found: nodes_in_words(free), conflicts })
    }

    fn counted(&self) -> Result<Vec<ReservedPart>, Shortage> {
        let features = self.spec.features.as_deref().and_then(|text| parse_features(text).ok()).unwrap_or_default();
        let mut wanted: Vec<(Option<_>, u32)> =
            features.iter().filter_map(|feature| Some((Some(&feature.any_of), feature.count?))).collect();
        wanted.extend(self.spec.node_count.map(|count| (None, count)));
        let available = self.available();
        let mut chosen: BTreeSet<NodeName> = BTreeSet::new();
        for (any_of, count) in &wanted {
            let matches = |node: &&&Arc<Node>| any_of.is_none_or(|any_of| any_of.iter().any(|all| all.is_subset(&node.features)));
            let free: Vec<&NodeName> =
                available.iter().filter(matches).map(|node| &node.name).filter(|name| !chosen.contains(*name)).collect();
            if free.len() < *count as usize {
                let names: Vec<NodeName> = self.matching().iter().filter(|node| matches(node)).map(|node| node.name.clone()).collect();
                let conflicts = if names.is_empty() { vec![self.nothing_matches()] } else { self.conflicts(names.iter()) };
                return Err(Shortage { wanted: nodes_in_words(*count as usize), found: nodes_in_words(free.len()), conflicts });
            }
            chosen.extend(free.into_iter().take(*count as usize).cloned());
        }
        let names: Vec<NodeName> =
            self.fleet.nodes.iter().map(|entry| &entry.node.name).filter(|name| chosen.contains(*name)).cloned().collect();
        Ok(vec![whole(&names)])
    }

    fn resources(&self) -> Result<Vec<ReservedPart>, Shortage> {
        let mut left = self.spec.tres.clone();
        let mut nodes: Vec<(&Arc<Node>, ReservedShare)> = self.available().into_iter().map(|node| (node, self.rest(node))).collect();
        nodes.sort_by_key(|(node, rest)| {
            let most = self.spec.tres.iter().map(|(tres, count)| amount_of(rest, tres).min(*count)).max();
            (!self.keeps.contains(&node.name), self.is_busy(&node.name), Reverse(most), node.weight)
        });
        let mut shares: BTreeMap<NodeName, ReservedShare> = BTreeMap::new();
        for (node, rest) in &nodes {
            if left.is_empty() {
                break;
            }
            if let Some(share) = self.take(node, rest, &left) {
                for (tres, count) in &mut left {
                    *count = count.saturating_sub(amount_of(&share, tres));
                }
                left.retain(|_, count| *count > 0);
                shares.insert(node.name.clone(), share);
            }
        }
        if !left.is_empty() {
            let words =
                |counts: &BTreeMap<Tres, u64>| counts.iter().map(|(tres, count)| format!("{tres}={count}")).collect::<Vec<_>>().join(",");
            let names: Vec<NodeName> = self.matching().iter().map(|node| node.name.clone()).collect();
            let missing = |tres: &Tres| left.get(tres).copied().unwrap_or(0);
            let found = words(&self.spec.tres.iter().map(|(tres, count)| (tres.clone(), count - missing(tres))).collect());
            let conflicts = if names.is_empty() { vec![self.nothing_matches()] } else { self.conflicts(names.iter()) };
            return Err(Shortage { wanted: words(&self.spec.tres), found, conflicts });
        }
        Ok(grouped(&self.fleet, shares))
    }

    /// What other reservations leave of a node.
    fn rest(&self, node: &Node) -> ReservedShare {
        let mut rest =
            ReservedShare { cpus: node.inventory.cpus.len() as u32, memory_bytes: node.inventory.memory_bytes, gpus: BTreeMap::new() };
        for gpu in node.inventory.gpus.iter().filter(|gpu| gpu.fault.is_none()) {
            *rest.gpus.entry(gpu.kind.clone()).or_default() += 1;
        }
        if let Some(standing) = self.standing.get(&node.name) {
            rest.cpus = rest.cpus.saturating_sub(standing.kept.cpus);
            rest.memory_bytes = Bytes(rest.memory_bytes.0.saturating_sub(standing.kept.memory_bytes.0));
            for (kind, count) in &standing.kept.gpus {
                rest.gpus.entry(kind.clone()).and_modify(|left| *left = left.saturating_sub(*count));
            }
        }
        rest
    }

    /// What one node gives of what is still wanted.
    fn take(&self, node: &Node, rest: &ReservedShare, left: &BTreeMap<Tres, u64>) -> Option<ReservedShare> {
        let total_cpus = node.inventory.cpus.len().max(1) as u64;
        let total_gpus = node.inventory.gpus.len().max(1) as u64;
        let total_memory = node.inventory.memory_bytes.0;
        let mut share = ReservedShare::default();
        for (tres, count) in left {
            match tres {
                Tres::GpuType(kind) => _ = give(&mut share.gpus, kind, rest.gpus.get(kind).copied().unwrap_or(0).min(*count as u32)),
                Tres::Gpu => {
                    let mut count = *count as u32;
                    for (kind, free) in &rest.gpus {
                        count -= give(&mut share.gpus, kind, (*free).min(count));
                    }
                }
                _ => {}
            }
        }
        let gpus: u64 = share.gpus.values().map(|count| u64::from(*count)).sum();
        let wants_gpus = self.spec.tres.keys().any(Tres::is_gres);
        let left_gpus: u64 = left.iter().filter(|(tres, _)| tres.is_gres()).map(|(_, count)| *count).sum();
        let part_of = |count: u64| if left_gpus > 0 { (count * gpus).div_ceil(left_gpus) } else { count };
        let cpus = match left.get(&Tres::Cpu) {
            Some(count) => part_of(*count).min(u64::from(rest.cpus)),
            None if self.spec.tres.contains_key(&Tres::Cpu) => 0,
            None if wants_gpus => total_cpus * gpus / total_gpus,
            None => left.get(&Tres::Mem).map_or(0, |mib| (total_cpus * (mib << 20).min(rest.memory_bytes.0)).div_ceil(total_memory.max(1))),
        };
        let memory = match left.get(&Tres::Mem) {
            Some(mib) => part_of(mib << 20).min(rest.memory_bytes.0),
            None if self.spec.tres.contains_key(&Tres::Mem) => 0,
            None if wants_gpus => (u128::from(total_memory) * u128::from(gpus) / u128::from(total_gpus)) as u64,
            None => (u128::from(total_memory) * u128::from(cpus) / u128::from(total_cpus)) as u64,
        };
        share.cpus = cpus.min(u64::from(rest.cpus)) as u32;
        share.memory_bytes = Bytes(memory.min(rest.memory_bytes.0));
        let is_any = gpus > 0 || !wants_gpus && (share.cpus > 0 || share.memory_bytes.0 > 0) || left_gpus == 0 && share.cpus > 0;
        is_any.then_some(share)
    }
}

fn give(gpus: &mut BTreeMap<String, u32>, kind: &str, count: u32) -> u32 {
    if count > 0 {
        *gpus.entry(kind.to_owned()).or_default() += count;
    }
    count
}

fn amount_of(share: &ReservedShare, tres: &Tres) -> u64 {
    match tres {
        Tres::Cpu => share.cpus.into(),
        Tres::Mem => share.memory_bytes.0 >> 20,
        Tres::Gpu => share.gpus.values().map(|count| u64::from(*count)).sum(),
        Tres::GpuType(kind) => share.gpus.get(kind).copied().unwrap_or(0).into(),
        _ => 0,
    }
}

fn whole(names: &[NodeName]) -> ReservedPart {
    ReservedPart { nodes: hostlist::fold(names), share: None }
}

/// Nodes of equal shares together.
fn grouped(fleet: &Fleet, mut shares: BTreeMap<NodeName, ReservedShare>) -> Vec<ReservedPart> {
    let mut groups: Vec<(ReservedShare, Vec<NodeName>)> = Vec::new();
    for entry in &fleet.nodes {
        let Some(share) = shares.remove(&entry.node.name) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == share) {
            Some((_, names)) => names.push(entry.node.name.clone()),
            None => groups.push((share, vec![entry.node.name.clone()])),
        }
    }
    groups.into_iter().map(|(share, names)| ReservedPart { nodes: hostlist::fold(&names), share: Some(share) }).collect()
}

fn nodes_in_words(count: usize) -> String {
    crate::explain::counted(count as u64, "node")
}

#[cfg(test)]
mod tests;
