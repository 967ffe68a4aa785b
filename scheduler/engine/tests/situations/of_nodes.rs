//! No node to be had: out of service, too small, of the wrong kind, in use.

use std::collections::BTreeSet;

use berth_model::event::{Event, JobSnapshot};
use berth_model::policy::Policy;
use berth_model::preemption::PreemptBy;
use berth_model::resources::MemoryDemand;
use berth_model::state::NodeFlag;
use berth_model::validate::parse_choices;
use berth_model::{Bytes, JobId};

use crate::Situation;
use crate::world::*;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        is: "the node it names is drained",
        made: |w| {
            w.asked.required_nodes = BTreeSet::from([node_name(2)]);
            w.node(2, |n| {
                n.flags.insert(NodeFlag::Drain);
                n.reason = Some("a bad disk".to_owned());
            });
        },
        code: "nodes_unavailable",
        object: "node/n2",
        advice: OUT_OF_SERVICE,
        follow: |w| w.asked.required_nodes = BTreeSet::from([node_name(3)]),
    },
    Situation {
        is: "the only node of its partition is down",
        made: |w| {
            w.asked.partition = name("small");
            w.node(4, |n| n.is_down = true);
        },
        code: "nodes_unavailable",
        object: "node/n4",
        advice: OUT_OF_SERVICE,
        follow: |w| w.node(4, |_| {}),
    },
    Situation {
        is: "no node has the feature",
        made: |w| w.asked.constraint = Some(vec![BTreeSet::from(["roce".to_owned()])]),
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.constraint = Some(vec![BTreeSet::from(["ib".to_owned()])]),
    },
    Situation {
        is: "its nodes are to be of one kind, and no kind has as many",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.choices = parse_choices("[old|roce]").unwrap();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.choices = parse_choices("[old|ib]").unwrap(),
    },
    Situation {
        is: "more nodes of one kind than there are",
        made: |w| {
            w.asked = job(ASKED, 3, 1);
            w.asked.choices = parse_choices("[ib*1&old*2]").unwrap();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.choices = parse_choices("[ib*2&old*1]").unwrap(),
    },
    Situation {
        is: "too few nodes are left by those it avoids",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.excluded_nodes = (1..=3).map(node_name).collect();
        },
        code: "constraint_unsatisfiable",
        object: "partition/main",
        advice: NO_SUCH_NODES,
        follow: |w| w.asked.excluded_nodes = (2..=3).map(node_name).collect(),
    },
    Situation {
        is: "too much memory",
        made: |w| w.asked.shape.memory = MemoryDemand::PerNode(Bytes(65 * GIB)),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.memory = MemoryDemand::PerNode(Bytes(64 * GIB)),
    },
    Situation {
        is: "too many GPUs on one node",
        made: |w| w.asked.shape.gpus = gpus(None, 3),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.gpus = gpus(None, 2),
    },
    Situation {
        is: "a type of GPU that no node has",
        made: |w| w.asked.shape.gpus = gpus(Some("b200"), 1),
        code: "shape_unsatisfiable",
        object: "partition/main",
        advice: TOO_LARGE,
        follow: |w| w.asked.shape.gpus = gpus(Some("a100"), 1),
    },
    Situation {
        is: "everything is in use",
        made: World::fill,
        code: "resources",
        object: "partition/main",
        advice: "nothing to do: it starts when the jobs that hold the resources end",
        follow: |w| w.tell(Event::JobGone(JobId(2))),
    },
    Situation {
        is: "there is room, but it would delay a job ahead",
        made: |w| {
            w.job(running(JobSnapshot { time_limit: 1800, ..job(1, 3, 16) }, &[1, 2, 3]));
            w.job(job(3, 4, 8));
        },
        code: "priority",
        object: "partition/main",
        advice: "a shorter time limit may let it start before them",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "those it preempts are ending",
        made: |w| {
            w.tell(Event::Policy(Policy { preempt_by: PreemptBy::Qos, ..Policy::default() }));
            w.qos("urgent", |q| _ = q.preempts.insert(name("normal")));
            w.fill();
            w.asked.qos = name("urgent");
        },
        code: "preempting",
        object: "node/n4",
        advice: "nothing to do: the nodes are held for it, and it starts there at the latest when the grace of those jobs ends",
        follow: |w| w.tell(Event::JobGone(JobId(2))),
    },
];
