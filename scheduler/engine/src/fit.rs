//! Fit: which nodes can ever carry a key's jobs, and which of them are in service.
//!
//! Asked once a key and fleet: all jobs of the key share the answer. Candidates (partition, constraint, exclusions) depend on the
//! ground alone and are shared wider still.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_model::Name;
use berth_model::policy::Partition;
use berth_model::resources::Shape;

use crate::amount::{Amount, Micros};
use crate::counted::Counted;
use crate::fleet::{Class, Fleet, NodeIdx};
use crate::keys::{Ground, Key};
use crate::profile::Profile;
use crate::shape::{NodeLimits, Share, even_share, is_even_only, node_claim, node_counts, node_need, node_range, total_gpus};

/// The nodes of a ground.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Classes that have candidates in service, ascending.
    pub classes: Vec<u32>,
    /// Ascending: nodes of these classes that are no candidates all the same.
    excluded: Vec<NodeIdx>,
    /// In service, ascending.
    pub usable: Vec<NodeIdx>,
    /// Down, drained or the like, ascending.
    pub unusable: Vec<NodeIdx>,
    usable_by_class: Vec<u32>,
    all_by_class: Vec<u32>,
    /// Required nodes, ascending; `None` if one is not among the candidates in service.
    pub required: Option<Vec<NodeIdx>>,
    /// Required nodes that are known candidates, in service or not.
    is_required_known: bool,
    /// Those of them that are counted by their features.
    pub counted: Counted,
}

impl Candidates {
    /// A node of one of the classes is a candidate.
    #[inline]
    pub fn allows(&self, node: NodeIdx) -> bool {
        self.excluded.is_empty() || self.excluded.binary_search(&node).is_err()
    }

    /// Beside the required nodes a gang has room for what is counted and they are not.
    fn leave_room(&self, fleet: &Fleet, gang: u32) -> bool {
        let required = self.required.as_deref().unwrap_or_default();
        if self.counted.is_empty() || required.is_empty() {
            return true;
        }
        let rest = self.usable.iter().filter(|at| required.binary_search(at).is_err());
        let nodes = required.iter().chain(rest).map(|at| (*at, fleet.nodes[*at as usize].class));
        self.counted.choose(gang as usize, required.len(), nodes).is_some()
    }
}

/// An even gang of `nodes`, and what each class must give to it.
#[derive(Debug)]
pub struct Variant {
    pub nodes: u32,
    pub needs: Vec<Option<Amount>>,
}

/// The nearest to a start first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    Fits,
    /// It would fit if nodes now out of service were back.
    NodesUnavailable,
    /// No set of known nodes is large enough, even all free.
    TooLarge,
    /// Too few nodes match partition, constraint, nodelist and exclusions.
    NoSuchNodes,
}

#[derive(Debug)]
pub struct Fit {
    pub candidates: Arc<Candidates>,
    /// Even gangs that can be, fewest nodes first.
    pub variants: Vec<Variant>,
    /// Uneven gangs are worth a try.
    pub is_loose: bool,
    pub limits: NodeLimits,
    pub fitness: Fitness,
}

pub fn candidates(fleet: &Fleet, ground: &Ground) -> Candidates {
    let via = ground.reservation.as_ref().map(|name| fleet.via(name));
    // A reservation that nothing is known of, or that has no nodes, has no candidates.
    let is_void = via == Some(None);
    let via = via.flatten();
    let is_flex = via.is_some_and(|via| fleet.reservations[via as usize].is_flex);
    let admits: Vec<bool> = fleet.classes.iter().map(|class| !is_void && class_matches(class, ground, is_flex)).collect();
    let mut found = Candidates { usable_by_class: vec![0; admits.len()], all_by_class: vec![0; admits.len()], ..Candidates::default() };
    found.counted = Counted::new(&ground.counts, &fleet.classes);
    found.excluded = ground.excluded.iter().filter_map(|name| fleet.find(name)).collect();
    found.excluded.extend(ground.fences.iter().flat_map(|name| fleet.fenced(name)));
    if let Some(via) = via {
        let views: Vec<NodeIdx> = found.excluded.iter().flat_map(|at| fleet.views(*at)).copied().collect();
        // Where a flex reservation has a part of a node, its jobs see that.
        let own = fleet.nodes.iter().filter(|node| is_flex && node.via == Some(via)).map(|node| node.real);
        found.excluded.extend(views.into_iter().chain(own));
    }
    found.excluded.sort_unstable();
    found.excluded.dedup();
    for (i, entry) in fleet.nodes.iter().enumerate() {
        let class = entry.class as usize;
        if !admits[class] || found.excluded.binary_search(&(i as NodeIdx)).is_ok() {
            continue;
        }
        found.all_by_class[class] += 1;
        if entry.is_usable {
            found.usable_by_class[class] += 1;
            found.usable.push(i as NodeIdx);
        } else {
            found.unusable.push(i as NodeIdx);
        }
    }
    found.classes = (0..).zip(&found.usable_by_class).filter(|(_, nodes)| **nodes > 0).map(|(class, _)| class).collect();
    let seen = |name| fleet.find(name).and_then(|real| fleet.seen_by(real, via));
    let mut required: Vec<Option<NodeIdx>> = ground.required.iter().map(seen).collect();
    required.sort_unstable();
    let is_in = |list: &[NodeIdx], at: &Option<NodeIdx>| at.is_some_and(|at| list.binary_search(&at).is_ok());
    found.is_required_known = required.iter().all(|at| is_in(&found.usable, at) || is_in(&found.unusable, at));
    found.required = required.into_iter().map(|at| at.filter(|_| is_in(&found.usable, &at))).collect();
    found
}

fn class_matches(class: &Class, ground: &Ground, is_flex: bool) -> bool {
    (class.via == ground.reservation || is_flex && class.via.is_none())
        && class.partitions.contains(&ground.partition)
        && ground.constraint.as_ref().is_none_or(|alternatives| alternatives.iter().any(|all| all.is_subset(&class.features)))
}

/// Works out a key for the present fleet.
pub fn work_out(fleet: &Fleet, partitions: &BTreeMap<Name, Partition>, key: &Key, candidates: Arc<Candidates>) -> Fit {
    let limits = partitions.get(&key.ground.partition).map(NodeLimits::of).unwrap_or_default();
    let shape = &key.shape;
    let required = key.ground.required.len();
    let mut fit = Fit {
        variants: Vec::new(),
        is_loose: !is_even_only(shape, required) && candidates.counted.is_empty(),
        limits,
        fitness: Fitness::TooLarge,
        candidates,
    };
    let mut could_fit = false;
    for nodes in node_counts(shape, required) {
        let share = even_share(shape, nodes, 0);
        let needs: Vec<_> = fleet.classes.iter().map(|class| node_claim(shape, class, limits, share)).collect();
        let count = |by_class: &[u32]| needs.iter().zip(by_class).filter(|(need, _)| need.is_some()).map(|(_, n)| *n).sum::<u32>();
        let are_counted = |by_class: &[u32]| {
            let able = needs.iter().zip(by_class).zip(0..).filter(|((need, _), _)| need.is_some());
            fit.candidates.counted.do_for(nodes, able.map(|((_, count), class)| (class, *count)))
        };
        let all = &fit.candidates.all_by_class;
        could_fit |= count(all) >= nodes && fit.candidates.is_required_known && are_counted(all);
        let is_possible = count(&fit.candidates.usable_by_class) >= nodes
            && are_counted(&fit.candidates.usable_by_class)
            && fit.candidates.leave_room(fleet, nodes)
            && fit
                .candidates
                .required
                .as_ref()
                .is_some_and(|all| all.iter().all(|at| needs[fleet.nodes[*at as usize].class as usize].is_some()));
        if is_possible {
            fit.variants.push(Variant { nodes, needs });
        }
    }
    fit.fitness = judge(fleet, shape, &fit, could_fit, required);
    fit
}

fn judge(fleet: &Fleet, shape: &Shape, fit: &Fit, could_fit: bool, required: usize) -> Fitness {
    let candidates = &fit.candidates;
    let total = |at: NodeIdx| Some(fleet.class(at).total);
    if !fit.variants.is_empty() {
        return Fitness::Fits;
    }
    let required_usable = candidates.required.as_deref();
    if fit.is_loose && required_usable.is_some_and(|must| spread(fleet, shape, fit.limits, &candidates.usable, must, total).is_some()) {
        return Fitness::Fits;
    }
    let known = candidates.usable.len() + candidates.unusable.len();
    let are_counted = candidates.counted.do_for(node_range(shape, required).1, (0..).zip(candidates.all_by_class.iter().copied()));
    if known < node_range(shape, required).0 as usize || !candidates.is_required_known || !are_counted {
        return Fitness::NoSuchNodes;
    }
    let mut all: Vec<NodeIdx> = candidates.usable.iter().chain(&candidates.unusable).copied().collect();
    all.sort_unstable();
    if could_fit || (fit.is_loose && spread(fleet, shape, fit.limits, &all, &[], total).is_some()) {
        return Fitness::NodesUnavailable;
    }
    Fitness::TooLarge
}

/// What a node could take of a loose gang.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    /// Required nodes come first, then the roomiest, then the weight.
    is_optional: bool,
    gpus: std::cmp::Reverse<u32>,
    tasks: std::cmp::Reverse<u32>,
    weight: u32,
    node: NodeIdx,
}

/// An uneven gang: the roomiest nodes first until tasks and GPUs have a place. `free` says what a node has for the whole run.
/// Finds few nodes, not always the fewest.
pub fn spread(
    fleet: &Fleet,
    shape: &Shape,
    limits: NodeLimits,
    among: &[NodeIdx],
    required: &[NodeIdx],
    free: impl Fn(NodeIdx) -> Option<Amount>,
) -> Option<Vec<(NodeIdx, Share)>> {
    let (least, most) = node_range(shape, required.len());
    let gpus = total_gpus(shape);
    let most_tasks = shape.tasks_per_node.unwrap_or(shape.tasks).min(shape.tasks);
    let mut rooms: Vec<Room> = Vec::new();
    for &node in among {
        let Some(free) = free(node) else { continue };
        let class = fleet.class(node);
        let has = |tasks: u32, gpus: u32| node_need(shape, class, limits, Share { tasks, gpus }).is_some_and(|need| free.covers(&need));
        let has_spare_nodes = shape.min_nodes > shape.tasks;
        if !(has(1, 0) || has_spare_nodes && has(0, 0)) {
            continue;
        }
        let tasks = largest(most_tasks, |tasks| has(tasks, 0));
        let gpus = largest(gpus, |gpus| has(tasks.min(1), gpus));
        rooms.push(Room {
            is_optional: required.binary_search(&node).is_err(),
            gpus: std::cmp::Reverse(gpus),
            tasks: std::cmp::Reverse(tasks),
            weight: class.weight,
            node,
        });
    }
    rooms.sort_unstable();
    if rooms.iter().take(required.len()).any(|room| room.is_optional) || rooms.len() < least as usize {
        return None;
    }
    let is_enough = |n: usize| {
        let (tasks, room) = rooms[..n].iter().fold((0u64, 0u64), |(t, g), r| (t + u64::from(r.tasks.0), g + u64::from(r.gpus.0)));
        tasks >= u64::from(shape.tasks) && room >= u64::from(gpus)
    };
    let n = (least as usize..=rooms.len().min(most as usize)).find(|n| is_enough(*n))?;
    let chosen = &rooms[..n];
    let tasks = pour(shape.tasks, chosen.iter().map(|r| r.tasks.0));
    let gpus = pour(gpus, chosen.iter().map(|r| r.gpus.0));
    let mut parts: Vec<_> =
        chosen.iter().zip(tasks.into_iter().zip(gpus)).map(|(r, (tasks, gpus))| (r.node, Share { tasks, gpus })).collect();
    parts.sort_unstable_by_key(|(node, _)| *node);
    Some(parts)
}

/// One for each that has room, then fills up in order.
fn pour(mut amount: u32, rooms: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let mut given: Vec<u32> = Vec::new();
    for room in rooms.clone() {
        let one = amount.min(1).min(room);
        amount -= one;
        given.push(one);
    }
    for (share, room) in given.iter_mut().zip(rooms) {
        let more = amount.min(room - *share);
        *share += more;
        amount -= more;
    }
    given
}

/// The largest n ≤ `most` for which `holds`, which is true up to some n and false beyond.
fn largest(most: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Free over `from..to` for [`spread`].
pub fn free_over(profile: &Profile, from: Micros, to: Micros) -> impl Fn(NodeIdx) -> Option<Amount> + '_ {
    move |at| {
        let line = &profile.lines[at as usize];
        (line.free_at(from).cpus > 0).then(|| line.least_free(from, to))
    }
}
