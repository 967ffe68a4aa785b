//! Resources: what a job asks for, what a node has, what an attempt was given.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::cores::CoreDemand;
use crate::gres::{ShareKind, SharedGpu, SharesOfGpus};
use crate::tres::{Tres, TresCounts};
use crate::{Bytes, Fault, NodeName};

/// A count of GPUs, of one kind or of any. Read from `8`, `"h100:8"` or `{"type": "h100", "count": 8}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gpus {
    /// The GPU's type as nodes report it (`h100`); absent means any.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub count: u32,
}

pub const GPUS_HELP: &str = "write a count or type:count; for example 8 or h100:8";

impl FromStr for Gpus {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || Fault::new("invalid_gpus", "gpus", format!("\"{text}\" is not a count or type:count"), GPUS_HELP);
        let (kind, count) = match text.split_once(':') {
            Some((kind, count)) => (Some(kind), count),
            None => (None, text),
        };
        let count = count.parse::<u32>().map_err(|_| fault())?;
        let kind = kind.map(str::to_ascii_lowercase);
        if kind
            .as_deref()
            .is_some_and(|k| k.is_empty() || k.len() > 63 || !k.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)))
        {
            return Err(fault());
        }
        Ok(Gpus { kind, count })
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{kind}:{}", self.count),
            None => self.count.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Gpus {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Gpus;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count of GPUs, \"type:count\", or {\"type\": …, \"count\": …}")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Gpus, E> {
                u32::try_from(n).map(|count| Gpus { kind: None, count }).map_err(|_| E::custom("too many GPUs"))
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Gpus, E> {
                Err(E::custom("a count of GPUs cannot be negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Gpus, E> {
                text.parse().map_err(|fault: Fault| E::custom(format!("{}: {}", fault.detail, fault.help)))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Gpus, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Long {
                    #[serde(rename = "type")]
                    kind: Option<String>,
                    count: u32,
                }
                let long = Long::deserialize(de::value::MapAccessDeserializer::new(map))?;
                let text = match long.kind {
                    Some(kind) => format!("{kind}:{}", long.count),
                    None => long.count.to_string(),
                };
                self.visit_str(&text)
            }
        }
        d.deserialize_any(Visitor)
    }
}

/// What a job asks for. All of it is optional: one task of one CPU on one node is the default.
///
/// `nodes` × `tasks_per_node` and `tasks` follow Slurm's `-N`, `--ntasks-per-node` and `-n`. At most one of the three memory
/// fields may be given; without any the partition's default applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ResourceRequest {
    /// Nodes wanted; absent: as many as the tasks need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// With it, `nodes` is the least and this the most; absent: exactly `nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_task: Option<u32>,
    /// Bytes of memory on each node; 0 means all of the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_node_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_cpu_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_gpu_bytes: Option<Bytes>,
    /// GPUs of the whole job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_node: Option<Gpus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_task: Option<Gpus>,
    /// On each node a share of one GPU, in place of whole ones: `shard:2`, `mps:50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_share: Option<SharedGpu>,
    /// Whole nodes, shared with nobody.
    pub exclusive: bool,
    /// Nodes shared with nobody but jobs of the same user that ask for this too. The job holds what it asks for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_user: bool,
    /// Only nodes that have so many sockets at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets_per_node: Option<u32>,
    /// Only nodes that have so many cores at least in each socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_per_socket: Option<u32>,
    /// Only nodes whose cores have so many threads at least, and of each core no more of them are used. The job has whole cores all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<u32>,
    /// No more tasks on each core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_core: Option<u32>,
}

/// How a node must be built, at least; 0 where that is all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Sockets {
    pub count: u32,
    /// Cores in each.
    pub cores: u32,
}

impl Sockets {
    /// Nothing is asked for.
    pub fn are_any(&self) -> bool {
        *self == Sockets::default()
    }
}

/// How memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryDemand {
    /// The whole of each node's memory.
    WholeNode,
    PerNode(Bytes),
    PerCpu(Bytes),
    PerGpu(Bytes),
}

/// How GPUs are asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuDemand {
    None,
    Total(Gpus),
    PerNode(Gpus),
    PerTask(Gpus),
    /// On each node a share of one.
    Share(SharedGpu),
}

/// A request with its defaults filled in: what the engine places. Jobs of equal shape are interchangeable for placement.
///
/// `tasks` are spread over `min_nodes..=max_nodes` nodes, at most `max_tasks_per_node` on each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub min_nodes: u32,
    pub max_nodes: u32,
    pub tasks: u32,
    /// With `tasks_per_node` exactly as many on each node; otherwise tasks go where they fit.
    pub tasks_per_node: Option<u32>,
    pub cpus_per_task: u32,
    pub memory: MemoryDemand,
    pub gpus: GpuDemand,
    pub exclusive: bool,
    /// No other job is on its nodes, but those of the same user that are so too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_user: bool,
    #[serde(default, skip_serializing_if = "Sockets::are_any")]
    pub sockets: Sockets,
    #[serde(default, skip_serializing_if = "CoreDemand::is_any")]
    pub cores: CoreDemand,
}

impl Shape {
    /// The fewest nodes that it can be on; required nodes may make them more.
    pub fn least_nodes(&self) -> u32 {
        self.min_nodes.max(self.tasks_per_node.map_or(1, |per_node| self.tasks.div_ceil(per_node.max(1)))).max(1)
    }

    /// The least that a job of this shape holds, on its fewest nodes. Whole nodes may give it more.
    pub fn least_counts(&self) -> TresCounts {
        let nodes = u64::from(self.least_nodes());
        let cpus = u64::from(self.tasks).saturating_mul(self.cpus_per_task.into()).max(nodes);
        let (kind, gpus) = match &self.gpus {
            GpuDemand::None | GpuDemand::Share(_) => (None, 0),
            GpuDemand::Total(gpus) => (gpus.kind.clone(), u64::from(gpus.count)),
            GpuDemand::PerNode(gpus) => (gpus.kind.clone(), u64::from(gpus.count).saturating_mul(nodes)),
            GpuDemand::PerTask(gpus) => (gpus.kind.clone(), u64::from(gpus.count).saturating_mul(self.tasks.into())),
        };
        let memory = match self.memory {
            MemoryDemand::WholeNode => 0,
            MemoryDemand::PerNode(bytes) => bytes.0.saturating_mul(nodes),
            MemoryDemand::PerCpu(bytes) => bytes.0.saturating_mul(cpus),
            MemoryDemand::PerGpu(bytes) => bytes.0.saturating_mul(gpus),
        };
        let mut counts = TresCounts::from([(Tres::Cpu, cpus), (Tres::Mem, memory >> 20), (Tres::Node, nodes)]);
        if gpus > 0 {
            counts.insert(Tres::Gpu, gpus);
            counts.extend(kind.map(|kind| (Tres::GpuType(kind), gpus)));
        }
        if let GpuDemand::Share(share) = &self.gpus {
            counts.insert(share.of.tres(), u64::from(share.count).saturating_mul(nodes));
        }
        counts
    }

    /// The share of a GPU that it takes on each node.
    pub fn gpu_share(&self) -> Option<&SharedGpu> {
        match &self.gpus {
            GpuDemand::Share(share) => Some(share),
            _ => None,
        }
    }

    /// The most that one of its fewest nodes gives, spread evenly.
    pub fn least_on_node(&self) -> TresCounts {
        let nodes = self.least_nodes();
        let tasks = self.tasks.div_ceil(nodes);
        let gpus = match &self.gpus {
            GpuDemand::Total(gpus) => GpuDemand::Total(Gpus { kind: gpus.kind.clone(), count: gpus.count.div_ceil(nodes) }),
            other => other.clone(),
        };
        Shape { min_nodes: 1, max_nodes: 1, tasks, tasks_per_node: None, gpus, ..self.clone() }.least_counts()
    }
}

impl ResourceRequest {
    /// Fills in what is missing. The request must have passed [`validate`](crate::validate); `default_memory` is the partition's.
    pub fn shape(&self, default_memory: MemoryDemand) -> Shape {
        let per_node = self.tasks_per_node;
        let tasks = match (self.tasks, self.nodes, per_node) {
            (Some(tasks), _, _) => tasks,
            (None, nodes, Some(per_node)) => nodes.unwrap_or(1).saturating_mul(per_node),
            (None, Some(nodes), None) => nodes,
            (None, None, None) => match (&self.gpus, &self.gpus_per_task) {
                // `--gpus=8 --gpus-per-task=1` alone asks for eight tasks (sbatch manual, --gpus-per-task).
                (Some(total), Some(each)) if each.count > 0 => (total.count / each.count).max(1),
                _ => 1,
            },
        };
        let min_nodes = match (self.nodes, per_node) {
            (Some(nodes), _) => nodes,
            (None, Some(per_node)) => tasks.div_ceil(per_node.max(1)),
            (None, None) => 1,
        };
        let max_nodes = match (self.max_nodes, self.nodes) {
            (Some(most), _) => most,
            (None, Some(nodes)) => nodes,
            // Without a node count the tasks may spread, one node each at the most.
            (None, None) if per_node.is_some() => min_nodes,
            (None, None) => tasks.max(1),
        };
        let memory = match (self.memory_per_node_bytes, self.memory_per_cpu_bytes, self.memory_per_gpu_bytes) {
            (Some(Bytes(0)), _, _) => MemoryDemand::WholeNode,
            (Some(bytes), _, _) => MemoryDemand::PerNode(bytes),
            (None, Some(bytes), _) => MemoryDemand::PerCpu(bytes),
            (None, None, Some(bytes)) => MemoryDemand::PerGpu(bytes),
            (None, None, None) if self.exclusive => MemoryDemand::WholeNode,
            (None, None, None) => default_memory,
        };
        let gpus = match (&self.gpus_per_task, &self.gpus_per_node, &self.gpus) {
            (Some(g), _, _) if g.count > 0 => GpuDemand::PerTask(g.clone()),
            (_, Some(g), _) if g.count > 0 => GpuDemand::PerNode(g.clone()),
            (_, _, Some(g)) if g.count > 0 => GpuDemand::Total(g.clone()),
            _ => GpuDemand::None,
        };
        let gpus = self.gpu_share.clone().map_or(gpus, GpuDemand::Share);
        Shape {
            min_nodes: min_nodes.max(1),
            max_nodes: max_nodes.max(min_nodes).max(1),
            tasks: tasks.max(1),
            tasks_per_node: per_node,
            cpus_per_task: self.cpus_per_task.unwrap_or(1).max(1),
            memory,
            gpus,
            exclusive: self.exclusive,
            // Whole nodes are shared with nobody at all.
            exclusive_user: self.exclusive_user && !self.exclusive,
            sockets: Sockets { count: self.sockets_per_node.unwrap_or(0), cores: self.cores_per_socket.unwrap_or(0) },
            cores: CoreDemand { threads: self.threads_per_core.unwrap_or(0), tasks: self.tasks_per_core.unwrap_or(0) },
        }
    }
}

/// One GPU of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gpu {
    /// Index as the vendor's tools count on this node.
    pub index: u32,
    pub uuid: String,
    /// Type as jobs ask for it, lower-case: `h100`, `mi300x`.
    #[serde(rename = "type")]
    pub kind: String,
    pub memory_bytes: Bytes,
    /// NUMA node next to it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// Out of service until cleared: no new job gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A NUMA node: its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NumaNode {
    pub id: u32,
    pub cpus: Vec<u32>,
}

/// What a node has, as its worker found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Inventory {
    /// Ids of the logical CPUs that jobs may use.
    pub cpus: Vec<u32>,
    pub numa: Vec<NumaNode>,
    pub sockets: u32,
    pub threads_per_core: u32,
    /// The CPUs of each core. A job gets whole ones. Empty: a job may get any CPU by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<Vec<u32>>,
    /// Bytes of memory that jobs may use.
    pub memory_bytes: Bytes,
    pub gpus: Vec<Gpu>,
    /// How its GPUs may be shared: by the way of sharing and the GPU's index, into how many shares.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, BTreeMap<String, u32>>))]
    pub gpu_shares: BTreeMap<ShareKind, SharesOfGpus>,
    /// Facts for people: kernel, cgroup layout, runtime, driver version.
    pub facts: BTreeMap<String, String>,
}

impl Inventory {
    /// Into how many shares a GPU may be divided; 0: it is not shared in that way.
    pub fn shares_of(&self, of: ShareKind, gpu: u32) -> u32 {
        self.gpu_shares.get(&of).and_then(|shares| shares.get(&gpu)).copied().unwrap_or(0)
    }

    /// Threads of each of its cores, of which jobs get whole ones; 1 if they get CPUs one by one, also where cores differ.
    pub fn threads_of_cores(&self) -> u32 {
        let threads = self.cores.first().map_or(1, Vec::len);
        let are_all = self.cores.iter().map(Vec::len).sum::<usize>() == self.cpus.len();
        if are_all && self.cores.iter().all(|core| core.len() == threads) { threads.max(1) as u32 } else { 1 }
    }

    /// How it is built. What is not known is one socket with all cores, each of one thread.
    pub fn built(&self) -> Sockets {
        let count = self.sockets.max(1);
        Sockets { count, cores: self.cpus.len() as u32 / self.threads_per_core.max(1) / count }
    }
}

/// What one node gives to one attempt. Exact: CPU ids and GPU indices, not counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeAllocation {
    pub node: NodeName,
    /// Logical CPU ids, core by core where a job has whole cores.
    pub cpus: Vec<u32>,
    /// CPUs of its cores that it leaves idle. It holds them and is charged for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_cpus: Vec<u32>,
    pub memory_bytes: Bytes,
    /// GPU indices on the node.
    pub gpus: Vec<u32>,
    /// It has only this share of its one GPU, which others share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<SharedGpu>,
    /// Tasks of the job's own command (or of `srun` without a count) that run here.
    pub tasks: u32,
}

impl NodeAllocation {
    /// All CPUs that it holds, also those that stay idle.
    pub fn all_cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.cpus.iter().chain(&self.idle_cpus).copied()
    }
}
