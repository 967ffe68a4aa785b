//! Heterogeneous jobs: what they cannot be, and what is wrong with each further component.

use super::Faults;
use crate::component::MAX_COMPONENTS;
use crate::job::{JobKind, JobSpec};

pub(super) fn check_components(spec: &JobSpec, faults: &mut Faults) {
    let has_array = spec.array.is_some() && (!spec.components.is_empty() || spec.kind == JobKind::Component);
    if has_array {
        faults.add(
            "array_with_components",
            "array",
            "a job is an array or has components, not both",
            "submit the heterogeneous job once for each task, or leave the components out",
        );
    }
    if spec.components.is_empty() {
        return;
    }
    if spec.script.is_none() {
        faults.add(
            "components_without_script",
            "components",
            "a job with components has no script",
            "give a script; it runs on the first node of component 0, and its srun --het-group=0,1 reaches the others",
        );
    }
    if spec.components.len() >= MAX_COMPONENTS {
        faults.add(
            "too_many_components",
            "components",
            format!("the job has {} components", spec.components.len() + 1),
            format!("a job has at most {MAX_COMPONENTS}, itself included"),
        );
        return;
    }
    let mut of_components = Vec::new();
    for (i, component) in spec.components.iter().enumerate() {
        let mut own = Faults::default();
        super::check_request(&component.job(spec), &mut own);
        for mut fault in own.0 {
            // What it has from the leader is the leader's fault, and told as such.
            if !faults.0.contains(&fault) {
                fault.field = format!("components[{i}].{}", fault.field);
                of_components.push(fault);
            }
        }
    }
    faults.0.extend(of_components);
}
