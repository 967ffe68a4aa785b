use super::*;
use crate::Bytes;
use crate::amount::GIB;

/// A node with CPUs 0.., GPUs 0.. and 64 GiB.
fn node(name: &str, cpus: u32, gpus: u32, tasks: u32) -> NodeAllocation {
    NodeAllocation {
        node: NodeName::new(name).unwrap(),
        cpus: (0..cpus).collect(),
        memory_bytes: Bytes(64 * GIB),
        gpus: (0..gpus).collect(),
        share: None,
        idle_cpus: Vec::new(),
        tasks,
    }
}

fn gpus(count: u32) -> Option<Gpus> {
    Some(Gpus { kind: None, count })
}

/// Each part as `node:tasks/cpus/gpus`.
fn shape(parts: &[NodeStep]) -> Vec<String> {
    parts.iter().map(|p| format!("{}:{}/{}/{}", p.node, p.tasks.len(), p.cpus.len(), p.gpus.len())).collect()
}

fn placed(allocation: &[NodeAllocation], spec: StepSpec) -> Vec<NodeStep> {
    place_step(allocation, &spec, &[]).unwrap().unwrap()
}

#[test]
fn counts_decide_where_tasks_go() {
    let two = [node("n1", 8, 4, 2), node("n2", 8, 4, 1)];
    let step = StepSpec::default;
    for (spec, expected) in [
        (step(), vec!["n1:2/8/4", "n2:1/8/4"]),
        (StepSpec { nodes: Some(1), ..step() }, vec!["n1:1/8/4"]),
        (StepSpec { nodes: Some(2), tasks_per_node: Some(3), ..step() }, vec!["n1:3/6/4", "n2:3/6/4"]),
        (StepSpec { tasks: Some(1), ..step() }, vec!["n1:1/4/4"]),
        (StepSpec { tasks: Some(5), cpus_per_task: Some(1), ..step() }, vec!["n1:3/3/4", "n2:2/2/4"]),
        (StepSpec { tasks: Some(16), ..step() }, vec!["n1:8/8/4", "n2:8/8/4"]),
        (StepSpec { tasks: Some(2), nodes: Some(1), cpus_per_task: Some(4), gpus: gpus(0), ..step() }, vec!["n1:2/8/0"]),
        (StepSpec { tasks: Some(4), gpus_per_task: gpus(2), cpus_per_task: Some(2), ..step() }, vec!["n1:2/4/4", "n2:2/4/4"]),
        (StepSpec { gpus: gpus(6), gpus_per_task: gpus(1), cpus_per_task: Some(1), ..step() }, vec!["n1:3/3/3", "n2:3/3/3"]),
        (StepSpec { nodelist: Some("n2".into()), ..step() }, vec!["n2:1/8/4"]),
        (StepSpec { nodelist: Some("n2".into()), tasks: Some(4), gpus_per_node: gpus(1), ..step() }, vec!["n2:4/8/1"]),
        (StepSpec { nodelist: Some("n2".into()), nodes: Some(2), ..step() }, vec!["n1:1/8/4", "n2:1/8/4"]),
        (StepSpec { tasks: Some(1), nodes: Some(2), ..step() }, vec!["n1:1/4/4"]),
        (StepSpec { tasks: Some(4), tasks_per_node: Some(4), cpus_per_task: Some(2), ..step() }, vec!["n1:4/8/4"]),
    ] {
        assert_eq!(shape(&placed(&two, spec.clone())), expected, "{spec:?}");
    }
}

#[test]
fn a_small_node_takes_fewer_tasks() {
    let uneven = [node("n1", 2, 0, 1), node("n2", 8, 0, 1)];
    let parts = placed(&uneven, StepSpec { tasks: Some(8), cpus_per_task: Some(1), ..StepSpec::default() });
    assert_eq!(shape(&parts), ["n1:2/2/0", "n2:6/6/0"]);
    assert_eq!(parts[1].tasks[0].rank, 2);
    // One node that must hold all: the second, though the first comes first.
    let parts = placed(&uneven, StepSpec { tasks: Some(8), nodes: Some(1), cpus_per_task: Some(1), ..StepSpec::default() });
    assert_eq!(shape(&parts), ["n2:8/8/0"]);
}

#[test]
fn tasks_have_their_own_cpus_and_gpus() {
    let one = [node("n1", 8, 4, 4)];
    let parts = placed(&one, StepSpec { gpus_per_task: gpus(1), ..StepSpec::default() });
    let tasks = &parts[0].tasks;
    assert_eq!((tasks[1].rank, tasks[1].cpus.as_slice(), tasks[1].gpus.as_slice()), (1, [2, 3].as_slice(), [1].as_slice()));
    let parts = placed(&one, StepSpec { gpus: gpus(2), ..StepSpec::default() });
    assert_eq!(parts[0].tasks[3].gpus, [0, 1]);
    let job = place_job_command(&one, 3, Some(1));
    assert!(job[0].tasks[0].cpus.is_empty(), "four times three CPUs are not there: all tasks share");
    assert_eq!(job[0].tasks[3].gpus, [3]);
    let pair = place_job_command(&[node("n1", 4, 2, 2), node("n2", 4, 2, 2)], 2, None);
    assert_eq!((pair[1].tasks[0].rank, pair[1].tasks[1].cpus.clone()), (2, vec![2, 3]));
    assert_eq!(pair[1].tasks[1].gpus, [0, 1]);
    let batch = place_batch(&one[0]);
    assert_eq!((batch.tasks.len(), batch.tasks[0].cpus.len(), batch.tasks[0].gpus.len()), (1, 8, 4));
}

#[test]
fn steps_side_by_side_take_what_is_free_and_then_wait() {
    let two = [node("n1", 8, 4, 1), node("n2", 8, 4, 1)];
    let spec = StepSpec { nodes: Some(1), tasks: Some(1), cpus_per_task: Some(2), gpus: gpus(3), ..StepSpec::default() };
    let mut busy = placed(&two, spec.clone());
    let second = place_step(&two, &spec, &busy).unwrap().unwrap();
    assert_eq!(shape(&second), ["n2:1/2/3"], "n1 has one GPU left, n2 has four");
    busy.extend(second);
    assert_eq!(place_step(&two, &spec, &busy).unwrap(), None);
    let small = StepSpec { gpus: gpus(1), ..spec.clone() };
    let third = place_step(&two, &small, &busy).unwrap().unwrap();
    assert_eq!((third[0].cpus.as_slice(), third[0].gpus.as_slice()), ([2, 3].as_slice(), [3].as_slice()));
    assert_eq!(place_step(&two, &StepSpec::default(), &busy).unwrap(), None, "a step of the whole job waits for all");
    let overlapping = StepSpec { overlap: true, ..StepSpec::default() };
    assert_eq!(shape(&place_step(&two, &overlapping, &busy).unwrap().unwrap()), ["n1:1/8/4", "n2:1/8/4"]);
}

#[test]
fn what_never_fits_is_a_fault() {
    let two = [node("n1", 8, 4, 2), node("n2", 8, 4, 1)];
    let step = StepSpec::default;
    for (spec, code, field) in [
        (StepSpec { tasks: Some(17), ..step() }, "step_too_large", "tasks"),
        (StepSpec { tasks: Some(u32::MAX), ..step() }, "step_too_large", "tasks"),
        (StepSpec { nodes: Some(3), ..step() }, "step_too_large", "nodes"),
        (StepSpec { tasks_per_node: Some(9), ..step() }, "step_too_large", "tasks_per_node"),
        (StepSpec { nodes: Some(u32::MAX), tasks_per_node: Some(u32::MAX), ..step() }, "step_too_large", "tasks_per_node"),
        (StepSpec { cpus_per_task: Some(9), ..step() }, "step_too_large", "resources"),
        (StepSpec { gpus: gpus(9), ..step() }, "step_too_large", "resources"),
        (StepSpec { gpus_per_node: gpus(5), ..step() }, "step_too_large", "resources"),
        (StepSpec { tasks: Some(2), gpus_per_task: gpus(5), ..step() }, "step_too_large", "tasks"),
        (StepSpec { memory_bytes: Some(Bytes(65 * GIB)), ..step() }, "step_too_large", "resources"),
        (StepSpec { tasks: Some(2), gpus: gpus(3), gpus_per_task: gpus(2), ..step() }, "gpus_contradictory", "gpus"),
        (StepSpec { tasks: Some(0), ..step() }, "invalid_count", "tasks"),
        (StepSpec { nodelist: Some("n[2-3]".into()), ..step() }, "node_not_in_allocation", "nodelist"),
        (StepSpec { nodelist: Some("n[1-2]".into()), nodes: Some(1), ..step() }, "node_count_contradictory", "nodes"),
        (StepSpec { nodelist: Some("n[".into()), ..step() }, "invalid_nodelist", "nodelist"),
    ] {
        let fault = place_step(&two, &spec, &[]).expect_err(&format!("{spec:?}"));
        assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, field), "{spec:?}");
        assert!(!fault.help.is_empty() && !fault.detail.is_empty());
    }
    assert!(place_step(&[], &step(), &[]).is_err());
}

proptest::proptest! {
    /// Steps placed one after the other never share a CPU or GPU, and each has exactly its tasks with ranks 0..n.
    #[test]
    fn nothing_is_given_twice(
        nodes in proptest::collection::vec((1u32..9, 0u32..5, 1u32..4), 1..5),
        wishes in proptest::collection::vec((proptest::option::of(1u32..6), proptest::option::of(1u32..9), proptest::option::of(1u32..4), proptest::option::of(0u32..4), proptest::option::of(1u32..3)), 1..8),
    ) {
        let allocation: Vec<_> = nodes.iter().enumerate().map(|(i, (c, g, t))| node(&format!("n{i}"), *c, *g, *t)).collect();
        let mut busy: Vec<NodeStep> = Vec::new();
        for (nodes, tasks, cpus_per_task, total, per_task) in wishes {
            let spec = StepSpec { nodes, tasks, cpus_per_task, gpus: total.and_then(gpus), gpus_per_task: per_task.and_then(gpus), ..StepSpec::default() };
            let Ok(Some(parts)) = place_step(&allocation, &spec, &busy) else { continue };
            let ranks: Vec<u32> = parts.iter().flat_map(|p| &p.tasks).map(|t| t.rank).collect();
            proptest::prop_assert_eq!(&ranks, &(0..ranks.len() as u32).collect::<Vec<_>>());
            if let Some(tasks) = tasks {
                proptest::prop_assert_eq!(ranks.len() as u32, tasks);
            }
            for part in &parts {
                for other in busy.iter().filter(|b| b.node == part.node) {
                    proptest::prop_assert!(part.cpus.iter().all(|c| !other.cpus.contains(c)));
                    proptest::prop_assert!(part.gpus.iter().all(|g| !other.gpus.contains(g)));
                }
            }
            busy.extend(parts);
        }
    }
}
