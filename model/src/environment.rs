//! The variables that a batch script and the tasks of a step find: Slurm's, those of torchrun and MPI launchers, and Berth's own.
//!
//! The user's `environment` is not in here; the worker lays these over it. Source: sbatch and srun manuals, "output environment
//! variables".

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::Timestamp;

use crate::Seconds;
use crate::amount::MIB;
use crate::gres::ShareKind;
use crate::hostlist;
use crate::resources::Gpus;
use crate::step::TaskPlacement;
use crate::worker::{Assignment, NodeContext, StepAssignment};

type Environment = BTreeMap<String, String>;

/// Sets the same value under several names.
fn set(env: &mut Environment, names: &[&str], value: impl Display) {
    let value = value.to_string();
    for name in names {
        env.insert((*name).to_owned(), value.clone());
    }
}

fn set_if(env: &mut Environment, names: &[&str], value: Option<impl Display>) {
    if let Some(value) = value {
        set(env, names, value);
    }
}

/// Variables of the batch script; those of tasks begin with the same.
pub fn batch_environment(assignment: &Assignment) -> BTreeMap<String, String> {
    let mut env = Environment::new();
    // The script is the one task of its step; Slurm's own does the same.
    set(&mut env, &["SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS"], 0);
    identity(assignment, &mut env);
    size(assignment, &mut env);
    request(assignment, &mut env);
    array(assignment, &mut env);
    env
}

/// When the attempt began and must end, as seconds since 1970, and whose rights it has.
pub fn run_environment(start: Timestamp, limit: Seconds, uid: u32, gid: u32) -> BTreeMap<String, String> {
    let mut env = Environment::new();
    set(&mut env, &["SLURM_JOB_START_TIME"], start.as_second());
    set(&mut env, &["SLURM_JOB_END_TIME"], start.as_second().saturating_add_unsigned(limit));
    set(&mut env, &["SLURM_JOB_UID"], uid);
    set(&mut env, &["SLURM_JOB_GID"], gid);
    env
}

/// Variables of one task of a step. `visible` names the GPUs that the task sees, as its runtime counts them: UUIDs or indices.
pub fn task_environment(
    assignment: &Assignment,
    step: &StepAssignment,
    task: &TaskPlacement,
    local_id: u32,
    visible: &[String],
) -> BTreeMap<String, String> {
    let mut env = batch_environment(assignment);
    let here = &step.here;
    let node_id = step.nodes.iter().position(|(name, _)| *name == here.node).unwrap_or(0);
    let nodelist = hostlist::fold_in_order(step.nodes.iter().map(|(name, _)| name));
    let tasks_per_node = repeated(step.nodes.iter().map(|(_, tasks)| *tasks));
    set(&mut env, &["SLURM_STEP_ID", "SLURM_STEPID"], step.step);
    set(&mut env, &["SLURM_STEP_NODELIST", "SLURM_NODELIST"], nodelist);
    set(&mut env, &["SLURM_STEP_NUM_NODES", "SLURM_NNODES"], step.nodes.len());
    set(&mut env, &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS", "WORLD_SIZE"], step.task_count);
    set(&mut env, &["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"], tasks_per_node);
    set(&mut env, &["SLURM_PROCID", "RANK"], task.rank);
    set(&mut env, &["SLURM_LOCALID", "LOCAL_RANK"], local_id);
    set(&mut env, &["SLURM_NODEID", "NODE_RANK"], node_id);
    set(&mut env, &["SLURM_GTIDS"], joined(here.tasks.iter().map(|t| t.rank)));
    set(&mut env, &["LOCAL_WORLD_SIZE"], here.tasks.len());
    set_if(&mut env, &["SLURM_STEP_GPUS"], (!here.gpus.is_empty()).then(|| joined(&here.gpus)));
    if let Some(spec) = &step.spec {
        set_if(&mut env, &["SLURM_CPUS_PER_TASK"], spec.cpus_per_task);
        gpu_requests([&spec.gpus, &spec.gpus_per_node, &spec.gpus_per_task], &mut env);
    }
    let first = step.nodes.first().map(|(name, _)| name);
    let address = |node: &&NodeContext| Some(&node.name) == first;
    set_if(&mut env, &["MASTER_ADDR"], assignment.context.nodes.iter().find(address).map(|node| &node.address));
    set(&mut env, &["MASTER_PORT"], step.master_port);
    env.extend(gpu_environment(visible));
    env
}

/// Which GPUs CUDA and ROCm programs see. Set even when there are none, so that the node's other GPUs stay hidden.
pub fn gpu_environment(visible: &[String]) -> BTreeMap<String, String> {
    let mut env = Environment::new();
    set(&mut env, &["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"], visible.join(","));
    env
}

fn identity(assignment: &Assignment, env: &mut Environment) {
    let context = &assignment.context;
    set(env, &["SLURM_JOB_ID", "SLURM_JOBID", "BERTH_JOB_ID"], assignment.job_id);
    set(env, &["BERTH_ATTEMPT"], assignment.attempt);
    set(env, &["BERTH_RUN_ID"], assignment.run_id);
    set(env, &["SLURM_JOB_NAME"], context.spec.name.as_deref().unwrap_or(""));
    set(env, &["SLURM_JOB_ACCOUNT"], &context.account);
    set(env, &["SLURM_JOB_PARTITION"], &context.partition);
    set(env, &["SLURM_JOB_QOS"], &context.qos);
    set(env, &["SLURM_JOB_USER"], &context.user);
    set(env, &["SLURM_RESTART_COUNT"], context.restarts);
    set(env, &["SLURM_CLUSTER_NAME"], "berth");
    set(env, &["SLURMD_NODENAME"], &assignment.allocation.node);
    set_if(env, &["SLURM_SUBMIT_DIR"], context.spec.working_directory.as_ref());
}

fn size(assignment: &Assignment, env: &mut Environment) {
    let nodes = &assignment.context.nodes;
    let here = &assignment.allocation;
    set(env, &["SLURM_JOB_NODELIST", "SLURM_NODELIST"], hostlist::fold_in_order(nodes.iter().map(|n| &n.name)));
    set(env, &["SLURM_JOB_NUM_NODES", "SLURM_NNODES"], nodes.len());
    set(env, &["SLURM_NTASKS", "SLURM_NPROCS"], nodes.iter().map(|n| u64::from(n.tasks)).sum::<u64>());
    set(env, &["SLURM_TASKS_PER_NODE"], repeated(nodes.iter().map(|n| n.tasks)));
    set(env, &["SLURM_JOB_CPUS_PER_NODE"], repeated(nodes.iter().map(|n| n.cpus)));
    set(env, &["SLURM_CPUS_ON_NODE"], here.cpus.len());
    set(env, &["SLURM_NODEID"], assignment.node_index);
    match &here.share {
        Some(share) if share.of == ShareKind::Shard => set(env, &["SLURM_SHARDS_ON_NODE"], share.count),
        Some(_) => {}
        None if here.gpus.is_empty() => {}
        None => set(env, &["SLURM_GPUS_ON_NODE"], here.gpus.len()),
    }
    if !here.gpus.is_empty() {
        set(env, &["SLURM_JOB_GPUS"], joined(&here.gpus));
    }
}

/// What the job asked for; absent where it asked for nothing, as Slurm has it.
fn request(assignment: &Assignment, env: &mut Environment) {
    let spec = &assignment.context.spec;
    let resources = &spec.resources;
    set_if(env, &["SLURM_CPUS_PER_TASK"], resources.cpus_per_task);
    set_if(env, &["SLURM_NTASKS_PER_NODE"], resources.tasks_per_node);
    set_if(env, &["SLURM_THREADS_PER_CORE"], resources.threads_per_core);
    set_if(env, &["SLURM_NTASKS_PER_CORE"], resources.tasks_per_core);
    gpu_requests([&resources.gpus, &resources.gpus_per_node, &resources.gpus_per_task], env);
    // Slurm's unit of memory is MiB.
    set_if(env, &["SLURM_MEM_PER_NODE"], resources.memory_per_node_bytes.map(|bytes| bytes.0 / MIB));
    set_if(env, &["SLURM_MEM_PER_CPU"], resources.memory_per_cpu_bytes.map(|bytes| bytes.0 / MIB));
    set_if(env, &["SLURM_MEM_PER_GPU"], resources.memory_per_gpu_bytes.map(|bytes| bytes.0 / MIB));
    set_if(env, &["SLURM_JOB_RESERVATION"], spec.reservation.as_ref());
    set_if(env, &["SLURM_JOB_LICENSES"], spec.licenses.as_ref());
    set_if(env, &["SLURM_CONTAINER"], spec.container.as_ref().map(|c| &c.image));
    let separator = if spec.dependency_any { "?" } else { "," };
    set_if(env, &["SLURM_JOB_DEPENDENCY"], (!spec.dependencies.is_empty()).then(|| spec.dependencies.join(separator)));
}

fn gpu_requests([total, per_node, per_task]: [&Option<Gpus>; 3], env: &mut Environment) {
    set_if(env, &["SLURM_GPUS"], total.as_ref());
    set_if(env, &["SLURM_GPUS_PER_NODE"], per_node.as_ref());
    set_if(env, &["SLURM_GPUS_PER_TASK"], per_task.as_ref());
}

fn array(assignment: &Assignment, env: &mut Environment) {
    let Some(array) = &assignment.context.array else { return };
    set(env, &["SLURM_ARRAY_JOB_ID"], array.job_id);
    set(env, &["SLURM_ARRAY_TASK_ID"], array.task_id);
    set(env, &["SLURM_ARRAY_TASK_COUNT"], array.task_count);
    set(env, &["SLURM_ARRAY_TASK_MIN"], array.task_min);
    set(env, &["SLURM_ARRAY_TASK_MAX"], array.task_max);
    set(env, &["SLURM_ARRAY_TASK_STEP"], array.task_step);
}

fn joined(numbers: impl IntoIterator<Item = impl Display>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

/// Counts with repeats folded, as Slurm writes them: 72, 72, 36 → `72(x2),36`.
pub fn repeated(counts: impl IntoIterator<Item = u32>) -> String {
    let counts: Vec<u32> = counts.into_iter().collect();
    joined(counts.chunk_by(|a, b| a == b).map(|run| match run.len() {
        1 => run[0].to_string(),
        times => format!("{}(x{times})", run[0]),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_fold_as_slurm_writes_them() {
        assert_eq!(repeated([72, 72, 36]), "72(x2),36");
        assert_eq!(repeated([2, 2, 2, 1]), "2(x3),1");
        assert_eq!(repeated([]), "");
    }

    fn assignment() -> Assignment {
        let node = |name: &str, tasks: u32| serde_json::json!({"name": name, "address": format!("{name}.local"), "cpus": 8, "tasks": tasks, "gpus": 2});
        let here = serde_json::json!({"node": "n2", "cpus": [0, 1, 2, 3, 4, 5, 6, 7], "memory_bytes": 1 << 30, "gpus": [4, 5], "tasks": 1});
        let step = serde_json::json!({
            "step": "0", "phase": "go", "spec": null, "task_count": 3, "nodes": [["n1", 1], ["n2", 2]], "master_port": 29500,
            "here": {"node": "n2", "cpus": [0, 1], "gpus": [4, 5], "memory_bytes": 1 << 30,
                "tasks": [{"rank": 1, "cpus": [0], "gpus": [4]}, {"rank": 2, "cpus": [1], "gpus": [5]}]},
        });
        let spec = serde_json::json!({"name": "train", "command": ["true"], "working_directory": "/w", "dependencies": ["afterok:5"],
            "resources": {"cpus_per_task": 2, "gpus_per_node": "h100:2", "memory_per_node_bytes": "1GiB"}});
        serde_json::from_value(serde_json::json!({
            "job_id": 42, "attempt": 2, "run_id": "s00NKDVDNA0003", "phase": "go", "stop": null, "allocation": here, "node_index": 1,
            "job_token": "t", "steps": [step], "signals": [],
            "context": {"tenant": "acme", "account": "nlp", "user": "ada", "partition": "h100", "qos": "normal", "spec": spec,
                "submit_time": "2026-01-01T00:00:00Z", "time_limit_seconds": 60, "restarts": 1,
                "array": {"job_id": 36, "task_id": 7, "task_count": 10, "task_min": 0, "task_max": 9, "task_step": 1},
                "nodes": [node("n1", 2), node("n2", 2), node("n3", 1)]},
        }))
        .unwrap()
    }

    #[test]
    fn tasks_find_slurms_and_torchs_variables() {
        let assignment = assignment();
        let step = &assignment.steps[0];
        let batch = batch_environment(&assignment);
        let task = task_environment(&assignment, step, &step.here.tasks[1], 1, &["1".to_owned()]);
        for (env, name, value) in [
            (&batch, "SLURM_JOB_ID", "42"),
            (&batch, "SLURM_JOBID", "42"),
            (&batch, "SLURM_JOB_NAME", "train"),
            (&batch, "SLURM_JOB_NODELIST", "n[1-3]"),
            (&batch, "SLURM_NNODES", "3"),
            (&batch, "SLURM_NTASKS", "5"),
            (&batch, "SLURM_TASKS_PER_NODE", "2(x2),1"),
            (&batch, "SLURM_JOB_CPUS_PER_NODE", "8(x3)"),
            (&batch, "SLURM_CPUS_ON_NODE", "8"),
            (&batch, "SLURM_CPUS_PER_TASK", "2"),
            (&batch, "SLURM_GPUS_PER_NODE", "h100:2"),
            (&batch, "SLURM_GPUS_ON_NODE", "2"),
            (&batch, "SLURM_MEM_PER_NODE", "1024"),
            (&batch, "SLURM_RESTART_COUNT", "1"),
            (&batch, "SLURM_ARRAY_JOB_ID", "36"),
            (&batch, "SLURM_ARRAY_TASK_ID", "7"),
            (&batch, "SLURM_SUBMIT_DIR", "/w"),
            (&batch, "SLURMD_NODENAME", "n2"),
            (&batch, "BERTH_RUN_ID", "s00NKDVDNA0003"),
            (&batch, "BERTH_ATTEMPT", "2"),
            (&task, "SLURM_JOB_NODELIST", "n[1-3]"),
            (&task, "SLURM_STEP_NODELIST", "n[1-2]"),
            (&task, "SLURM_STEP_TASKS_PER_NODE", "1,2"),
            (&task, "SLURM_STEP_NUM_TASKS", "3"),
            (&task, "SLURM_PROCID", "2"),
            (&task, "SLURM_LOCALID", "1"),
            (&task, "SLURM_NODEID", "1"),
            (&task, "SLURM_GTIDS", "1,2"),
            (&task, "SLURM_STEP_GPUS", "4,5"),
            (&task, "RANK", "2"),
            (&task, "WORLD_SIZE", "3"),
            (&task, "LOCAL_RANK", "1"),
            (&task, "LOCAL_WORLD_SIZE", "2"),
            (&task, "NODE_RANK", "1"),
            (&task, "MASTER_ADDR", "n1.local"),
            (&task, "MASTER_PORT", "29500"),
            (&task, "CUDA_VISIBLE_DEVICES", "1"),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(["SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS"].iter().all(|name| batch[*name] == "0"));
        assert!(!batch.contains_key("SLURM_GPUS"));
        let mut shared = assignment.clone();
        (shared.allocation.gpus, shared.allocation.share) = (vec![4], Some("shard:3".parse().unwrap()));
        let env = batch_environment(&shared);
        assert_eq!((env["SLURM_SHARDS_ON_NODE"].as_str(), env["SLURM_JOB_GPUS"].as_str()), ("3", "4"));
        assert!(!env.contains_key("SLURM_GPUS_ON_NODE"), "none of them is its own");
        let run = run_environment("2026-01-01T00:00:00Z".parse().unwrap(), 60, 1000, 100);
        let times = [("SLURM_JOB_START_TIME", "1767225600"), ("SLURM_JOB_END_TIME", "1767225660")];
        for (name, value) in times.into_iter().chain([("SLURM_JOB_UID", "1000"), ("SLURM_JOB_GID", "100")]) {
            assert_eq!(run[name], value, "{name}");
        }
    }
}
