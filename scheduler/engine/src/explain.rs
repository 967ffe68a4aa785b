//! Explanations: turning what a pass met into verdicts with objects, amounts, holders and advice.

use berth_model::cores::CoreDemand;
use berth_model::event::JobSnapshot;
use berth_model::gres::ShareKind;
use berth_model::resources::{GpuDemand, Gpus, MemoryDemand, Shape, Sockets};
use berth_model::verdict::{PlannedStart, Verdict};
use berth_model::{JobId, Name, hostlist};
use jiff::Timestamp;

use crate::amount::{Amount, Micros, NEVER, timestamp};
use crate::features;
use crate::filling::Filling;
use crate::fit::{Candidates, Fit, Fitness};
use crate::fleet::{Class, Fleet, NodeIdx};

/// Jobs named as holders in one verdict, at most.
pub const MOST_HOLDERS: usize = 3;

/// Victims named in one verdict, at most.
const MOST_VICTIMS: usize = 20;

/// A verdict to begin with.
pub fn say(code: &str, rule: &str, object: String) -> Verdict {
    Verdict {
        component: None,
        code: code.to_owned(),
        rule: rule.to_owned(),
        object,
        have: None,
        need: None,
        holders: Vec::new(),
        clears_at: None,
        advice: None,
    }
}

/// The words of a verdict, one after the other.
pub trait Words {
    fn have(self, text: impl Into<String>) -> Self;
    fn need(self, text: impl Into<String>) -> Self;
    fn holders(self, jobs: Vec<String>) -> Self;
    fn clears(self, at: Timestamp) -> Self;
    fn advice(self, text: impl Into<String>) -> Self;
}

impl Words for Verdict {
    fn have(mut self, text: impl Into<String>) -> Self {
        self.have = Some(text.into());
        self
    }
    fn need(mut self, text: impl Into<String>) -> Self {
        self.need = Some(text.into());
        self
    }
    fn holders(mut self, jobs: Vec<String>) -> Self {
        self.holders = jobs;
        self
    }
    fn clears(mut self, at: Timestamp) -> Self {
        self.clears_at = Some(at);
        self
    }
    fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }
}

/// What the nodes of a ground have free now, and who holds the rest: worked out once a ground and plan.
#[derive(Clone, Debug)]
pub struct Ground {
    pub have: String,
    pub holders: Vec<String>,
}

pub fn ground(fleet: &Fleet, filling: &Filling, candidates: &Candidates) -> Ground {
    let required = candidates.required.as_deref().unwrap_or_default();
    let free_of = |nodes: &[NodeIdx]| {
        let free = nodes.iter().fold(Amount::default(), |sum, at| sum.plus(&filling.free[*at as usize]));
        let gpus = if free.gpu_count() > 0 { format!(", {}", counted(free.gpu_count().into(), "GPU")) } else { String::new() };
        format!("{}{gpus} free", counted(free.cpus.into(), "CPU"))
    };
    let mut have = format!("{} on {}", free_of(&candidates.usable), counted(candidates.usable.len() as u64, "node"));
    have.push_str(&shares_taken(fleet, &candidates.usable));
    if !required.is_empty() {
        have.push_str(&format!("; of these {} on {}, which it must have", free_of(required), names(fleet, required)));
    }
    let is_shared = |at: &&NodeIdx| fleet.holdings(**at).iter().any(|holding| holding.sharer.is_some());
    let shared = candidates.usable.iter().filter(is_shared).count();
    if shared > 0 {
        have.push_str(&format!("; {} for one user's jobs alone", counted(shared as u64, "node")));
    }
    // Those on nodes that it must have come first. A gang has an end on each node; the first few ends of all may be one job's.
    let mut ends: Vec<(bool, Micros, JobId)> = Vec::new();
    for at in &candidates.usable {
        let is_optional = required.binary_search(at).is_err();
        ends.extend(fleet.holdings(*at).iter().map(|holding| (is_optional, holding.end, holding.owner)));
    }
    ends.sort_unstable();
    let mut holders: Vec<String> = Vec::new();
    for (_, _, job) in ends {
        let name = format!("job/{job}");
        if !holders.contains(&name) {
            holders.push(name);
        }
        if holders.len() == MOST_HOLDERS {
            break;
        }
    }
    Ground { have, holders }
}

/// Whether a gang of the key could start now if nobody had planned starts.
pub fn has_room(fleet: &Fleet, filling: &Filling, fit: &Fit) -> bool {
    let required = fit.candidates.required.as_deref().unwrap_or_default();
    fit.variants.iter().any(|variant| {
        let classes = fit.candidates.classes.iter().filter_map(|class| variant.needs[*class as usize].as_ref().map(|need| (*class, need)));
        let ready = classes.flat_map(|(class, need)| filling.with_room(class, need)).filter(|(_, _, at)| fit.candidates.allows(*at));
        let carries = |at: &NodeIdx| {
            let need = variant.needs[fleet.nodes[*at as usize].class as usize].as_ref();
            need.is_some_and(|need| filling.free[*at as usize].covers(need))
        };
        let counted = &fit.candidates.counted;
        required.iter().all(carries)
            && if counted.is_empty() {
                ready.take(variant.nodes as usize).count() == variant.nodes as usize
            } else {
                let nodes: Vec<u32> = ready.map(|(_, _, at)| fleet.nodes[at as usize].class).collect();
                nodes.len() >= variant.nodes as usize && counted.do_for(variant.nodes, nodes.into_iter().map(|class| (class, 1)))
            }
    })
}

/// What jobs of one key share in their verdicts.
#[derive(Debug)]
pub struct Common {
    pub has_room: bool,
    verdict: Verdict,
}

impl Common {
    pub fn of(partition: &Name, shape: &Shape, ground: &Ground, has_room: bool) -> Self {
        let object = format!("partition/{partition}");
        let mut verdict = if has_room {
            say("priority", "a job must not delay the planned starts of jobs ahead of it", object)
                .have("room now, but planned for jobs ahead")
                .advice("a shorter time limit may let it start before them")
        } else {
            say("resources", "all of a job's nodes must have room at the same time", object)
                .have(ground.have.clone())
                .holders(ground.holders.clone())
                .advice("nothing to do: it starts when the jobs that hold the resources end")
        };
        verdict.need = Some(words(shape));
        Common { has_room, verdict }
    }

    /// The verdict of a job that waits for resources, or behind jobs ahead of it.
    pub fn waits(&self, ahead: &[JobId], at: Option<Micros>) -> Verdict {
        let mut verdict = self.verdict.clone();
        if self.has_room {
            verdict.holders = ahead.iter().rev().take(MOST_HOLDERS).map(|job| format!("job/{job}")).collect();
        }
        verdict.clears_at = at.filter(|at| *at < NEVER).map(timestamp);
        verdict
    }
}

/// A job that others were preempted for.
pub fn preempting(job: &JobSnapshot, victims: &[JobId], planned: &PlannedStart) -> Verdict {
    let names: Vec<String> = victims.iter().take(MOST_VICTIMS).map(|victim| format!("job/{victim}")).collect();
    say("preempting", "a job that preempts others starts when they have ended, on nodes held for it", format!("node/{}", planned.nodes))
        .have(format!("{} told to stop", counted(victims.len() as u64, "job")))
        .need(words(&job.shape))
        .holders(names)
        .clears(planned.at)
        .advice("nothing to do: the nodes are held for it, and it starts there at the latest when the grace of those jobs ends")
}

/// `1 node`, `2 nodes`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A shape in words: `4 nodes, 8 tasks of 12 CPUs, 8 GPUs a node`.
pub fn words(shape: &Shape) -> String {
    let nodes = counted(u64::from(shape.min_nodes), "node");
    let tasks = format!("{} of {}", counted(u64::from(shape.tasks), "task"), counted(u64::from(shape.cpus_per_task), "CPU"));
    let gpus = match &shape.gpus {
        GpuDemand::None => String::new(),
        GpuDemand::Total(gpus) => format!(", {}", demanded(gpus)),
        GpuDemand::PerNode(gpus) => format!(", {} a node", demanded(gpus)),
        GpuDemand::PerTask(gpus) => format!(", {} a task", demanded(gpus)),
        GpuDemand::Share(share) => format!(", {share} of one GPU a node"),
    };
    let memory = match shape.memory {
        MemoryDemand::WholeNode => ", all memory of each node".to_owned(),
        MemoryDemand::PerNode(bytes) => format!(", {bytes} of memory a node"),
        MemoryDemand::PerCpu(bytes) => format!(", {bytes} of memory a CPU"),
        MemoryDemand::PerGpu(bytes) => format!(", {bytes} of memory a GPU"),
    };
    let whole = match () {
        () if shape.exclusive => ", whole nodes",
        () if shape.exclusive_user => ", nodes shared with no other user",
        () => "",
    };
    format!("{nodes}, {tasks}{memory}{gpus}{whole}{}{}", built(shape.sockets), of_cores(shape.cores))
}

/// `, 1 thread of each core`, `, 1 task on each core at most`.
fn of_cores(cores: CoreDemand) -> String {
    let mut words = String::new();
    if cores.threads > 0 {
        words.push_str(&format!(", {} of each core", counted(cores.threads.into(), "thread")));
    }
    if cores.tasks > 0 {
        words.push_str(&format!(", {} on each core at most", counted(cores.tasks.into(), "task")));
    }
    words
}

/// `, 2 sockets at least of 32 cores at least`.
fn built(sockets: Sockets) -> String {
    let cores = || counted(u64::from(sockets.cores), "core");
    match sockets {
        Sockets { count: 0, cores: 0 } => String::new(),
        Sockets { count: 0, .. } => format!(", sockets of {} at least", cores()),
        Sockets { count, cores: 0 } => format!(", {} at least", counted(count.into(), "socket")),
        Sockets { count, .. } => format!(", {} at least of {} at least", counted(count.into(), "socket"), cores()),
    }
}

/// `4 GPUs`, `2 h100 GPUs`.
fn demanded(gpus: &Gpus) -> String {
    match &gpus.kind {
        Some(kind) => counted(u64::from(gpus.count), &format!("{kind} GPU")),
        None => counted(u64::from(gpus.count), "GPU"),
    }
}

/// A job that no start can be found for.
pub fn unfit(fleet: &Fleet, job: &JobSnapshot, fit: &Fit, fitness: Fitness) -> Verdict {
    let object = format!("partition/{}", job.partition);
    match fitness {
        Fitness::NodesUnavailable => {
            let names = names(fleet, &fit.candidates.unusable);
            say("nodes_unavailable", "a job starts only on nodes that are in service", format!("node/{names}"))
                .have(reasons(fleet, &fit.candidates.unusable))
                .need(words(&job.shape))
                .advice("wait until the nodes are back, or ask for other nodes")
        }
        Fitness::NoSuchNodes => say("constraint_unsatisfiable", "enough nodes must match partition, constraint and node lists", object)
            .have(
                features::missing(fleet, job)
                    .unwrap_or_else(|| counted((fit.candidates.usable.len() + fit.candidates.unusable.len()) as u64, "matching node")),
            )
            .need(words(&job.shape))
            .advice("relax the constraint or the node lists, or use another partition"),
        Fitness::TooLarge | Fitness::Fits => {
            say("shape_unsatisfiable", "the nodes of the partition, all free, must be able to hold the job", object)
                .have(largest(fleet, &fit.candidates.usable))
                .need(words(&job.shape))
                .advice("ask for less on each node, or for fewer nodes")
        }
    }
}

pub fn names(fleet: &Fleet, nodes: &[NodeIdx]) -> String {
    if let [only] = nodes {
        return fleet.nodes[*only as usize].node.name.to_string();
    }
    hostlist::fold(nodes.iter().map(|at| &fleet.nodes[*at as usize].node.name))
}

fn reasons(fleet: &Fleet, nodes: &[NodeIdx]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for at in nodes {
        let node = &fleet.nodes[*at as usize].node;
        let state = if node.is_down { "down" } else { "drained" };
        let reason = node.reason.as_deref().map_or(state.to_owned(), |r| format!("{state}: {r}"));
        if !reasons.contains(&reason) && reasons.len() < MOST_HOLDERS {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

/// `, each of up to 8 shards`, `, each of up to 8 shards or 100 mps`.
fn shared_into(class: &Class) -> String {
    let most = |of: ShareKind| class.shares[of as usize].iter().max().copied().unwrap_or(0);
    let words = |(of, word)| Some(most(of)).filter(|most| *most > 0).map(|most| format!("{most} {word}"));
    let ways: Vec<String> = [(ShareKind::Shard, "shards"), (ShareKind::Mps, "mps")].into_iter().filter_map(words).collect();
    if ways.is_empty() { String::new() } else { format!(", each of up to {}", ways.join(" or ")) }
}

/// `; 12 of 64 shards taken`, where GPUs are shared.
fn shares_taken(fleet: &Fleet, nodes: &[NodeIdx]) -> String {
    let of_kind = |(of, word): (ShareKind, &str)| {
        let all: u64 = nodes.iter().map(|at| fleet.class(*at).shares_in_all(of)).sum();
        let held = nodes.iter().flat_map(|at| fleet.holdings(*at)).filter_map(|holding| holding.share.filter(|share| share.of == of));
        let taken: u64 = held.map(|share| u64::from(share.count)).sum();
        if all > 0 { format!("; {taken} of {all} {word} taken") } else { String::new() }
    };
    [(ShareKind::Shard, "shards"), (ShareKind::Mps, "mps")].map(of_kind).concat()
}

fn largest(fleet: &Fleet, nodes: &[NodeIdx]) -> String {
    let best = nodes.iter().map(|at| fleet.class(*at)).max_by_key(|c| (c.total.gpu_count(), c.total.cpus, c.total.memory));
    match best {
        Some(class) => format!(
            "{}; the largest has {}, {}, {}{}",
            counted(nodes.len() as u64, "node"),
            counted(class.total.cpus as u64, "CPU"),
            berth_model::Bytes(class.total.memory),
            counted(class.total.gpu_count() as u64, "GPU"),
            shared_into(class)
        ),
        None => "no nodes in service".to_owned(),
    }
}
