//! The earliest instant for jobs of one node, which most jobs are.
//!
//! A queue of nodes ordered by a lower bound of when each can carry the job. The first is asked for the exact instant: if that is its
//! bound, it is the answer, else it goes back with the better bound. Gaps join the queue when their turn comes.
//!
//! Within a pass resources are only taken, so bounds stay bounds: the queue is kept as a trail and the next job of the key goes
//! on where this one ended. So can a job that runs longer, from the trail of a shorter one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::amount::{Amount, Micros, NEVER};
use crate::fleet::{Fleet, NodeIdx};
use crate::keys::KeyId;
use crate::profile::{Profile, Walk};
use crate::search::Wanted;

/// Bounds kept in all trails of a pass, at the most: about 200 MB.
const MOST_BOUNDS: usize = 12 << 20;
/// Trails of one key, at the most.
const MOST_TRAILS: usize = 24;

/// Not before this instant, on a node of this weight. Ascending: the order in which nodes are taken.
type Bound = Reverse<(Micros, u32, NodeIdx)>;

/// Where searches for one key and length have come to.
#[derive(Clone, Debug)]
struct Trail {
    length: Micros,
    not_before: Micros,
    /// A heap.
    bounds: Vec<Bound>,
    /// For each class of the candidates: the last gap that joined.
    joined: Vec<Option<(Micros, NodeIdx)>>,
}

/// The trails of a pass, by key and variant; each list by length.
#[derive(Debug, Default)]
pub struct Trails {
    by_key: HashMap<(KeyId, usize), Vec<Trail>>,
    bounds: usize,
}

impl Trails {
    pub fn clear(&mut self) {
        *self = Trails::default();
    }

    /// Where to begin: at this trail's end, at that of the longest of the shorter ones, or at `now`.
    fn begin(&mut self, key: (KeyId, usize), length: Micros, now: Micros) -> Trail {
        let trails = self.by_key.entry(key).or_default();
        let behind = trails.partition_point(|trail| trail.length <= length);
        match behind.checked_sub(1) {
            Some(i) if trails[i].length == length => {
                let trail = trails.remove(i);
                self.bounds -= trail.bounds.len();
                trail
            }
            Some(i) => Trail { length, ..trails[i].clone() },
            None => Trail { length, not_before: now, bounds: Vec::new(), joined: Vec::new() },
        }
    }

    fn keep(&mut self, key: (KeyId, usize), trail: Trail) {
        let trails = self.by_key.entry(key).or_default();
        if trails.len() < MOST_TRAILS && self.bounds + trail.bounds.len() <= MOST_BOUNDS {
            self.bounds += trail.bounds.len();
            let at = trails.partition_point(|other| other.length < trail.length);
            trails.insert(at, trail);
        }
    }

    /// The earliest instant up to `latest` and its node, or the instant before which there is none.
    pub fn earliest(
        &mut self,
        fleet: &Fleet,
        profile: &mut Profile,
        key: (KeyId, usize),
        wanted: &Wanted<'_>,
        now: Micros,
        latest: Micros,
    ) -> Result<(Micros, NodeIdx), Micros> {
        let trail = self.begin(key, wanted.length, now);
        if trail.not_before > latest {
            let not_before = trail.not_before;
            self.keep(key, trail);
            return Err(not_before);
        }
        let mut search = Search::resume(fleet, profile, wanted, trail, now);
        let found = search.run(latest);
        let trail = search.stop(found);
        self.keep(key, trail);
        found
    }
}

struct Search<'a> {
    fleet: &'a Fleet,
    profile: &'a mut Profile,
    wanted: &'a Wanted<'a>,
    now: Micros,
    floor: Micros,
    queue: BinaryHeap<Bound>,
    walks: Vec<Walk>,
    joined: Vec<Option<(Micros, NodeIdx)>>,
    /// The next gap of each walk, by bound.
    gaps: BinaryHeap<Reverse<(Micros, u32, NodeIdx, usize)>>,
}

impl<'a> Search<'a> {
    fn resume(fleet: &'a Fleet, profile: &'a mut Profile, wanted: &'a Wanted<'a>, trail: Trail, now: Micros) -> Self {
        let mut joined = trail.joined;
        let mut walks = Vec::new();
        for class in &wanted.candidates.classes {
            if let Some(need) = wanted.needs[*class as usize] {
                let behind = joined.get(walks.len()).copied().flatten();
                walks.push(profile.walk_behind(*class, need, wanted.length, behind));
            }
        }
        joined.resize(walks.len(), None);
        let queue = BinaryHeap::from(trail.bounds);
        let gaps = BinaryHeap::with_capacity(walks.len());
        let mut search = Search { fleet, profile, wanted, now, floor: trail.not_before, queue, walks, joined, gaps };
        (0..search.walks.len()).for_each(|walk| search.next_gap(walk));
        search
    }

    fn next_gap(&mut self, walk: usize) {
        if let Some((from, node)) = self.profile.next_gap(&mut self.walks[walk], self.floor) {
            // The order among walks; the true instant may lie before the floor.
            self.joined[walk] = Some((from, node));
            self.gaps.push(Reverse((from.max(self.floor), self.fleet.class(node).weight, node, walk)));
        }
    }

    fn run(&mut self, latest: Micros) -> Result<(Micros, NodeIdx), Micros> {
        loop {
            let known = self.queue.peek().map(|Reverse(bound)| *bound);
            let gap = self.gaps.peek().map(|Reverse((at, weight, node, walk))| ((*at, *weight, *node), *walk));
            match (known, gap) {
                (known, Some((gap, walk))) if known.is_none_or(|known| gap <= known) => {
                    if gap.0 > latest {
                        return Err(gap.0);
                    }
                    self.gaps.pop();
                    self.join(gap, walk);
                    self.next_gap(walk);
                }
                (Some((at, weight, node)), _) => {
                    if at > latest {
                        return Err(at);
                    }
                    self.queue.pop();
                    let need = self.need(node);
                    let from = at.max(self.floor);
                    let exact = self.profile.next_fit(node, &need, from, self.wanted.length);
                    if exact < NEVER {
                        self.queue.push(Reverse((exact, weight, node)));
                    }
                    if exact == at {
                        return Ok((at, node));
                    }
                }
                (None, None) => return Err(NEVER),
                (None, Some(_)) => unreachable!("a gap comes before nothing"),
            }
        }
    }

    fn need(&self, node: NodeIdx) -> Amount {
        self.wanted.needs[self.fleet.nodes[node as usize].class as usize].expect("only classes that can carry it are walked")
    }

    /// A gap's node joins the queue, if it can carry the job within the gap.
    fn join(&mut self, (_, weight, node): (Micros, u32, NodeIdx), walk: usize) {
        let Some((from, _)) = self.joined[walk].filter(|_| self.wanted.candidates.allows(node)) else { return };
        if let Some(window) = self.profile.window(&self.walks[walk], node, from.max(self.now), self.floor) {
            self.queue.push(Reverse((window.first.max(self.floor), weight, node)));
        }
    }

    fn stop(mut self, found: Result<(Micros, NodeIdx), Micros>) -> Trail {
        // Gaps whose turn has not come wait as bounds.
        for Reverse((at, weight, node, _)) in self.gaps {
            if self.wanted.candidates.allows(node) {
                self.queue.push(Reverse((at, weight, node)));
            }
        }
        let not_before = match found {
            Ok((at, _)) => at,
            Err(at) => at,
        };
        Trail { length: self.wanted.length, not_before, bounds: self.queue.into_vec(), joined: self.joined }
    }
}
