//! A running job that gives nodes back: which it keeps, and what it asks and pays for from then on. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::policy::Billing;
use crate::resources::{GpuDemand, NodeAllocation, ResourceRequest, Shape};
use crate::tres::{Charge, Tres, TresCounts, Weight, bill};
use crate::{Fault, NodeName, hostlist};

/// What a job is to keep of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first so many.
    Count(u32),
    Nodes(BTreeSet<NodeName>),
}

/// What an attempt was charged for until it gave something back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastCharge {
    pub began: Timestamp,
    pub ended: Timestamp,
    pub charge: Charge,
}

impl Keep {
    /// The nodes that are kept, in their order. The first stays: the batch script runs there. A fault if there would be more of them.
    pub fn of(&self, allocation: &[NodeAllocation]) -> Result<Vec<NodeAllocation>, Fault> {
        match self {
            Keep::Count(0) => Err(Fault::new("invalid_count", "resources.nodes", "nodes is 0", "keep at least 1 node, or cancel the job")),
            Keep::Count(count) if *count as usize > allocation.len() => Err(Fault::new(
                "job_cannot_grow",
                "resources.nodes",
                format!("the job cannot get more nodes than it runs on: {}", allocation.len()),
                format!("ask for {} or less, or submit another job", allocation.len()),
            )),
            Keep::Count(count) => Ok(allocation[..*count as usize].to_vec()),
            Keep::Nodes(names) => {
                let strangers: Vec<_> = names.iter().filter(|name| allocation.iter().all(|n| n.node != **name)).collect();
                let own = hostlist::fold_in_order(allocation.iter().map(|n| &n.node));
                if !strangers.is_empty() {
                    let detail = format!("the job does not run on {}", hostlist::fold(strangers));
                    return Err(Fault::new("node_not_in_allocation", "nodelist", detail, format!("name nodes to keep of {own}")));
                }
                match allocation.first().filter(|first| !names.contains(&first.node)) {
                    Some(first) => Err(Fault::new(
                        "batch_node_stays",
                        "nodelist",
                        format!("the batch script runs on {}", first.node),
                        format!("keep {} and others of {own}", first.node),
                    )),
                    None => Ok(allocation.iter().filter(|n| names.contains(&n.node)).cloned().collect()),
                }
            }
        }
    }
}

fn tasks(kept: &[NodeAllocation]) -> u32 {
    kept.iter().map(|node| node.tasks).sum()
}

fn gpus(kept: &[NodeAllocation]) -> u32 {
    kept.iter().map(|node| node.gpus.len() as u32).sum()
}

/// The request as if it had been made for what is kept: a requeue asks for no more.
pub fn request(resources: &mut ResourceRequest, kept: &[NodeAllocation]) {
    resources.nodes = Some(kept.len() as u32);
    resources.max_nodes = None;
    resources.tasks = resources.tasks.map(|_| tasks(kept));
    if let Some(total) = &mut resources.gpus {
        total.count = gpus(kept);
    }
}

/// The same of what the planner knows.
pub fn shape(shape: &mut Shape, kept: &[NodeAllocation]) {
    (shape.min_nodes, shape.max_nodes) = (kept.len() as u32, kept.len() as u32);
    shape.tasks = tasks(kept);
    if let GpuDemand::Total(total) = &mut shape.gpus {
        total.count = gpus(kept);
    }
}

/// What is charged from now on. `kind` names the type of a node's GPU. What is of no node, licences, stays as it is.
/// Source: sbatch and slurm.conf manuals; a job's billing is worked out anew when it is resized.
pub fn charge(
    old: &Charge,
    kept: &[NodeAllocation],
    kind: impl Fn(&NodeName, u32) -> Option<String>,
    weights: &std::collections::BTreeMap<Tres, Weight>,
    rule: Billing,
) -> Charge {
    let mut tres: TresCounts = old.tres.iter().filter(|(tres, _)| matches!(tres, Tres::License(_))).map(|(t, n)| (t.clone(), *n)).collect();
    let mut add = |which: Tres, count: u64| {
        if count > 0 {
            *tres.entry(which).or_insert(0) += count;
        }
    };
    for node in kept {
        add(Tres::Cpu, node.all_cpus().count() as u64);
        add(Tres::Mem, node.memory_bytes.0 >> 20);
        add(Tres::Node, 1);
        if let Some(share) = &node.share {
            add(share.of.tres(), share.count.into());
            continue;
        }
        add(Tres::Gpu, node.gpus.len() as u64);
        node.gpus.iter().filter_map(|gpu| kind(&node.node, *gpu)).for_each(|kind| add(Tres::GpuType(kind), 1));
    }
    let billing = bill(weights, rule, &tres);
    tres.insert(Tres::Billing, billing as u64);
    Charge { tres, billing, ..old.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::resources::Gpus;

    fn node(number: u32, tasks: u32, gpus: u32) -> NodeAllocation {
        NodeAllocation {
            node: NodeName::new(format!("n{number}")).unwrap(),
            cpus: (0..8).collect(),
            memory_bytes: Bytes(64 << 30),
            gpus: (0..gpus).collect(),
            share: None,
            idle_cpus: Vec::new(),
            tasks,
        }
    }

    fn names(list: &str) -> Keep {
        Keep::Nodes(hostlist::expand(list).unwrap().into_iter().collect())
    }

    #[test]
    fn nodes_are_kept_by_count_or_by_name_and_the_first_always() {
        let all = [node(1, 2, 4), node(2, 2, 4), node(3, 1, 4), node(4, 1, 4)];
        for (keep, kept) in [(Keep::Count(2), "n[1-2]"), (Keep::Count(4), "n[1-4]"), (names("n[3,1]"), "n[1,3]")] {
            assert_eq!(hostlist::fold(keep.of(&all).unwrap().iter().map(|n| &n.node)), kept, "{keep:?}");
        }
        for (keep, code) in [
            (Keep::Count(0), "invalid_count"),
            (Keep::Count(5), "job_cannot_grow"),
            (names("n[1,9]"), "node_not_in_allocation"),
            (names("n[2-3]"), "batch_node_stays"),
        ] {
            assert_eq!(keep.of(&all).unwrap_err().code, code, "{keep:?}");
        }
    }

    #[test]
    fn it_asks_and_pays_for_what_it_keeps() {
        let kept = [node(1, 2, 4), node(3, 1, 4)];
        let total = Gpus { kind: Some("h100".to_owned()), count: 16 };
        let mut asked =
            ResourceRequest { nodes: Some(2), max_nodes: Some(4), tasks: Some(6), gpus: Some(total), ..ResourceRequest::default() };
        let mut planned = asked.shape(crate::resources::MemoryDemand::WholeNode);
        request(&mut asked, &kept);
        shape(&mut planned, &kept);
        assert_eq!((asked.nodes, asked.max_nodes, asked.tasks, asked.gpus.as_ref().unwrap().count), (Some(2), None, Some(3), 8));
        assert_eq!(planned, asked.shape(crate::resources::MemoryDemand::WholeNode));

        let weights = [("cpu", "1"), ("mem", "0.25G"), ("gres/gpu", "16")];
        let weights = weights.iter().map(|(tres, weight)| (tres.parse().unwrap(), weight.parse().unwrap())).collect();
        let license = Tres::License("matlab".to_owned());
        let old = Charge {
            tres: TresCounts::from([(Tres::Cpu, 32), (Tres::Node, 4), (Tres::Billing, 1), (license.clone(), 3)]),
            billing: 1.0,
            usage_factor: 0.5,
            partition_qos: None,
        };
        let new = charge(&old, &kept, |_, _| Some("h100".to_owned()), &weights, Billing::Sum);
        // 16 CPUs, 128 GiB and 8 GPUs: 16 + 32 + 128.
        assert_eq!((new.billing, new.usage_factor), (176.0, 0.5));
        let gpus = Tres::GpuType("h100".to_owned());
        let wanted =
            [(Tres::Cpu, 16), (Tres::Mem, 131_072), (Tres::Node, 2), (Tres::Gpu, 8), (gpus, 8), (license, 3), (Tres::Billing, 176)];
        assert_eq!(new.tres, TresCounts::from(wanted));
    }
}
