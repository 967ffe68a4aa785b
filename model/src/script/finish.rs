//! What several options say together, as sbatch settles it before submitting.

use super::apply::Draft;
use crate::Fault;
use crate::resources::{GpuDemand, MemoryDemand};

pub(super) fn settle(draft: &mut Draft) {
    lower_nodes_to_tasks(draft);
    count_nodes_by_gpus(draft);
    count_cpus_by_gpus(draft);
    require_image(draft);
}

/// `-N4 -n2` runs on two nodes.
fn lower_nodes_to_tasks(draft: &mut Draft) {
    let resources = &mut draft.spec.resources;
    if let (Some(nodes), Some(tasks), None) = (resources.nodes, resources.tasks, resources.tasks_per_node)
        && tasks < nodes
        && tasks > 0
    {
        (resources.nodes, resources.max_nodes) = (Some(tasks), None);
        let detail = format!("{tasks} tasks cannot run on {nodes} nodes; nodes is set to {tasks}");
        draft.warn_about(
            "resources.nodes",
            "nodes_lowered",
            detail,
            "ask for as many tasks as nodes or more; for example --nodes=4 --ntasks=4",
        );
    }
}

/// `--gpus=16 --gpus-per-node=8` asks for two nodes.
fn count_nodes_by_gpus(draft: &mut Draft) {
    let resources = &mut draft.spec.resources;
    if let (None, Some(total), Some(each)) = (resources.nodes, &resources.gpus, &resources.gpus_per_node)
        && each.count > 0
        && total.count.is_multiple_of(each.count)
        && total.count > each.count
        && resources.tasks_per_node.is_none()
        && resources.tasks.is_none_or(|tasks| tasks >= total.count / each.count)
    {
        resources.nodes = Some(total.count / each.count);
    }
}

/// `--cpus-per-gpu` as CPUs of each task.
fn count_cpus_by_gpus(draft: &mut Draft) {
    let Some(each) = draft.cpus_per_gpu.filter(|_| draft.spec.resources.cpus_per_task.is_none()) else { return };
    let shape = draft.spec.resources.shape(MemoryDemand::WholeNode);
    let gpus = match &shape.gpus {
        GpuDemand::None | GpuDemand::Share(_) => 0,
        GpuDemand::Total(gpus) => u64::from(gpus.count),
        GpuDemand::PerNode(gpus) => u64::from(gpus.count) * u64::from(shape.min_nodes),
        GpuDemand::PerTask(gpus) => u64::from(gpus.count) * u64::from(shape.tasks),
    };
    if gpus == 0 {
        let fault = Fault::new(
            "cpus_per_gpu_without_gpus",
            "resources.cpus_per_task",
            "CPUs are asked for each GPU, but no GPUs",
            "ask for GPUs too; for example --gpus=8 --cpus-per-gpu=8",
        );
        draft.faults.push(draft.at_origin(fault));
        return;
    }
    let cpus = gpus.saturating_mul(u64::from(each)).div_ceil(u64::from(shape.tasks.max(1)));
    draft.spec.resources.cpus_per_task = Some(u32::try_from(cpus).unwrap_or(u32::MAX));
}

fn require_image(draft: &mut Draft) {
    if draft.spec.container.as_ref().is_some_and(|c| c.image.is_empty()) && draft.faults.is_empty() {
        let fault = Fault::new(
            "image_required",
            "container.mounts",
            "there are container options but no image",
            "name the image; for example --container-image=registry.example/torch:2.9",
        );
        draft.faults.push(draft.at_origin(fault));
        draft.spec.container = None;
    }
}
