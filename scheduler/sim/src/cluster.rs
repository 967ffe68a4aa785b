//! The cluster that a trace is replayed on, and what the trace's jobs ask of it.
//!
//! `node` placement takes the described nodes as they are. `pool` placement forgets nodes: one counted resource, GPUs if the trace has
//! any, else processors, as one large node whose CPUs are the units; a job without any unit takes one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use berth_model::event::{Event, JobSnapshot};
use berth_model::node::Node;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::{Gpu, GpuDemand, Gpus, Inventory, MemoryDemand, NumaNode, Shape};
use berth_model::state::JobState;
use berth_model::{Bytes, JobId, Name, NodeName};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::run::SimJob;
use crate::trace::{Trace, TraceJob};

/// So many equal nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    pub count: u32,
    pub cpus: u32,
    #[serde(default)]
    pub gpus: u32,
    #[serde(default)]
    pub gpu_type: Option<String>,
    /// Absent on all groups: memory is not counted.
    #[serde(default)]
    pub mem_mb: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    Pool,
    Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub groups: Vec<NodeGroup>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}; a cluster is a list such as [{{\"count\": 66, \"cpus\": 64, \"gpus\": 8, \"mem_mb\": 524288}}], or an object of such lists by name", path.display())]
    Malformed { path: PathBuf, source: serde_yaml_ng::Error },
    #[error("{}: no cluster is called {wanted:?}; there are {known}", path.display())]
    Unknown { path: PathBuf, wanted: String, known: String },
    #[error("a cluster needs at least one node with at least one CPU, and at most {MOST_UNITS} CPUs and GPUs in all")]
    BadSize,
}

/// Units of a cluster at the most.
const MOST_UNITS: u64 = 10_000_000;

impl Cluster {
    pub fn of(groups: Vec<NodeGroup>) -> Result<Cluster, ClusterError> {
        let units =
            groups.iter().map(|g| u64::from(g.count).saturating_mul(u64::from(g.cpus) + u64::from(g.gpus))).fold(0, u64::saturating_add);
        let is_sound = units > 0 && units <= MOST_UNITS && groups.iter().all(|g| g.count > 0 && g.cpus > 0 && g.gpus <= 65_535);
        if is_sound { Ok(Cluster { groups }) } else { Err(ClusterError::BadSize) }
    }

    /// Reads a YAML or JSON file of one cluster, or of several by name; of these the one called `name`.
    pub fn read(path: &Path, name: &str) -> Result<Cluster, ClusterError> {
        let text = std::fs::read_to_string(path).map_err(|source| ClusterError::Unreadable { path: path.to_owned(), source })?;
        let malformed = |source| ClusterError::Malformed { path: path.to_owned(), source };
        // JSON is YAML. Read as what it is, a mistake is told with its line.
        let is_one = serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&text).map_err(malformed)?.is_sequence();
        if is_one {
            return Cluster::of(serde_yaml_ng::from_str(&text).map_err(malformed)?);
        }
        let mut clusters: BTreeMap<String, Vec<NodeGroup>> = serde_yaml_ng::from_str(&text).map_err(malformed)?;
        match clusters.remove(name) {
            Some(groups) => Cluster::of(groups),
            None => {
                let known = clusters.into_keys().collect::<Vec<_>>().join(", ");
                Err(ClusterError::Unknown { path: path.to_owned(), wanted: name.to_owned(), known })
            }
        }
    }

    fn counts_memory(&self) -> bool {
        self.groups.iter().any(|group| group.mem_mb.is_some())
    }
}

/// A trace laid on a cluster: all that a simulation needs, and what its figures are measured by.
#[derive(Clone, Debug)]
pub struct Workload {
    pub world: Vec<Event>,
    /// In the order of the trace; ids count from 1.
    pub jobs: Vec<SimJob>,
    /// Of each job, all its units: GPUs if the trace has any, else processors.
    pub units: Vec<f64>,
    /// Units of the cluster.
    pub capacity: f64,
    /// Jobs that ask for a part of a GPU and are given a whole one.
    pub rounded_up: usize,
}

impl Workload {
    pub fn of(trace: &Trace, cluster: &Cluster, placement: Placement) -> Workload {
        let has_gpus = trace.jobs.iter().any(|job| job.gpus > 0.0);
        let units = |job: &TraceJob| f64::from(job.nodes) * if has_gpus { job.gpus.ceil() } else { f64::from(job.cpus) };
        let size = |group: &NodeGroup| f64::from(group.count) * f64::from(if has_gpus { group.gpus } else { group.cpus });
        let capacity: f64 = cluster.groups.iter().map(size).sum();
        let mut world = vec![
            // No weights: all priorities are equal, and what came first goes first.
            Event::Policy(Policy { weight_age: 0, weight_fairshare: 0, weight_partition: 0, weight_qos: 0, ..Policy::default() }),
            Event::Qos(Qos::named(name("normal"))),
            Event::Partition(Partition::of_all_nodes(name("main"))),
        ];
        let shape: Box<dyn Fn(&TraceJob) -> Shape> = match placement {
            Placement::Pool => {
                let pool = NodeGroup { count: 1, cpus: capacity as u32, gpus: 0, gpu_type: None, mem_mb: None };
                world.push(Event::Node(Box::new(node("pool".to_owned(), &pool))));
                Box::new(move |job| shape(1, (units(job) as u32).max(1), 0, 0))
            }
            Placement::Node => {
                let groups = cluster.groups.iter().flat_map(|group| (0..group.count).map(move |_| group));
                world.extend(groups.zip(1..).map(|(group, number)| Event::Node(Box::new(node(format!("n{number}"), group)))));
                let counts_memory = cluster.counts_memory();
                Box::new(move |job| {
                    let memory = if counts_memory { job.memory_mib } else { 0 };
                    shape(job.nodes, job.cpus.max(1), job.gpus.ceil() as u32, memory)
                })
            }
        };
        let constraint = |job: &TraceJob| {
            let is_typed = placement == Placement::Node && !job.gpu_types.is_empty();
            is_typed.then(|| job.gpu_types.iter().map(|kind| BTreeSet::from([kind.clone()])).collect())
        };
        let mut users = Users::default();
        let sim = |(job, id): (&TraceJob, u64)| {
            let snapshot = JobSnapshot { constraint: constraint(job), ..snapshot(id, job, shape(job), users.name(&job.user)) };
            SimJob { job: snapshot, runtime: job.runtime }
        };
        Workload {
            jobs: trace.jobs.iter().zip(1..).map(sim).collect(),
            units: trace.jobs.iter().map(units).collect(),
            rounded_up: trace.jobs.iter().filter(|job| job.gpus.fract() > 0.0).count(),
            world,
            capacity,
        }
    }
}

/// The trace's users by names that the model allows.
#[derive(Default)]
struct Users {
    known: BTreeMap<String, Name>,
}

impl Users {
    fn name(&mut self, user: &str) -> Name {
        let next = self.known.len() + 1;
        self.known.entry(user.to_owned()).or_insert_with(|| name(&format!("u{next}"))).clone()
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name of our own")
}

/// When every trace begins.
pub fn begin() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 30)
}

fn node(called: String, group: &NodeGroup) -> Node {
    let cpus: Vec<u32> = (0..group.cpus).collect();
    let kind = group.gpu_type.as_deref().unwrap_or("gpu").to_ascii_lowercase();
    let gpu = |index: u32| Gpu {
        index,
        uuid: format!("{called}-{index}"),
        kind: kind.clone(),
        memory_bytes: Bytes(0),
        numa: Some(0),
        fault: None,
    };
    Node {
        inventory: Inventory {
            numa: vec![NumaNode { id: 0, cpus: cpus.clone() }],
            cpus,
            sockets: 1,
            threads_per_core: 1,
            cores: Vec::new(),
            memory_bytes: Bytes(group.mem_mb.unwrap_or(0) << 20),
            gpus: (0..group.gpus).map(gpu).collect(),
            gpu_shares: BTreeMap::new(),
            facts: BTreeMap::new(),
        },
        name: NodeName::new(called).expect("a name of our own"),
        features: group.gpu_type.iter().map(|kind| kind.to_ascii_lowercase()).collect(),
        weight: 1,
        is_down: false,
        flags: BTreeSet::new(),
        reason: None,
    }
}

fn shape(nodes: u32, cpus: u32, gpus: u32, memory_mib: u64) -> Shape {
    Shape {
        min_nodes: nodes,
        max_nodes: nodes,
        tasks: nodes,
        tasks_per_node: Some(1),
        cpus_per_task: cpus,
        memory: MemoryDemand::PerNode(Bytes(memory_mib << 20)),
        gpus: if gpus > 0 { GpuDemand::PerNode(Gpus { kind: None, count: gpus }) } else { GpuDemand::None },
        exclusive: false,
        exclusive_user: false,
        sockets: Default::default(),
        cores: Default::default(),
    }
}

fn snapshot(id: u64, job: &TraceJob, shape: Shape, user: Name) -> JobSnapshot {
    JobSnapshot {
        id: JobId(id),
        tenant: name("trace"),
        account: name("default"),
        user,
        partition: name("main"),
        qos: name("normal"),
        name: String::new(),
        state: JobState::Pending,
        hold: None,
        shape,
        time_limit: job.walltime,
        submit_time: begin() + SignedDuration::from_secs(job.submit as i64),
        accrues_since: Some(begin() + SignedDuration::from_secs(job.submit as i64)),
        not_before: None,
        deadline: None,
        nice: 0,
        site_factor: 0,
        constraint: None,
        required_nodes: BTreeSet::new(),
        excluded_nodes: BTreeSet::new(),
        is_expedited: false,
        restarts: 0,
        dependencies: Vec::new(),
        dependency_any: false,
        is_singleton: false,
        array: None,
        task_of: None,
        component_of: None,
        attempt: None,
        claim: None,
        reservations: Vec::new(),
        licenses: Vec::new(),
        choices: Vec::new(),
    }
}
