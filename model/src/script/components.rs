//! What the options of a further component of a heterogeneous job make of it.

use super::apply::Draft;
use crate::Fault;
use crate::component::ComponentSpec;

/// Of a component behind the leader: what its own options say. Options that are the script's have no effect there.
pub(super) fn component(draft: &mut Draft) -> ComponentSpec {
    let spec = draft.spec.clone();
    let mut component = ComponentSpec {
        resources: spec.resources,
        partition: spec.partition,
        constraint: spec.constraint,
        prefer: spec.prefer,
        nodelist: spec.nodelist,
        licenses: spec.licenses,
        account: spec.account,
        qos: spec.qos,
        time_limit_seconds: spec.time_limit_seconds,
        time_min_seconds: spec.time_min_seconds,
        begin: spec.begin,
        deadline: spec.deadline,
        exclude: spec.exclude,
        comment: spec.comment,
        reservation: spec.reservation,
        ..ComponentSpec::default()
    };
    let said: Vec<(&str, &str)> = draft.set_paths().collect();
    for (path, long) in said {
        match path {
            "hold" => component.hold = Some(spec.hold),
            "nice" => component.nice = Some(spec.nice),
            "dependencies" => {
                component.dependencies = Some(spec.dependencies.clone());
                component.dependency_any = Some(spec.dependency_any);
            }
            "array" => {
                let fault = Fault::new(
                    "array_with_components",
                    "array",
                    "a job is an array or has components, not both",
                    "leave --array out, or submit the heterogeneous job once for each task",
                );
                draft.faults.push(draft.at_origin(fault));
            }
            _ if is_own(path) => {}
            _ => draft.warn_about(
                path,
                "not_of_a_component",
                format!("--{long} is read for the first component alone and has no effect here"),
                "move it before the first hetjob",
            ),
        }
    }
    component
}

/// A component says it for itself.
fn is_own(path: &str) -> bool {
    path.starts_with("resources.")
        || [
            "partition",
            "constraint",
            "prefer",
            "nodelist",
            "licenses",
            "account",
            "qos",
            "time_limit_seconds",
            "time_min_seconds",
            "begin",
            "deadline",
            "exclude",
            "comment",
            "reservation",
        ]
        .contains(&path)
}

/// A fault under the option that caused it, of whichever component.
pub(super) fn at_origin(fault: Fault, leader: &Draft, others: &[Draft]) -> Fault {
    let within = fault.field.strip_prefix("components[").and_then(|rest| {
        let (at, path) = rest.split_once("].")?;
        Some((others.get(at.parse::<usize>().ok()?)?, path.to_owned()))
    });
    match within {
        Some((draft, path)) => {
            let found = draft.at_origin(Fault { field: path.clone(), ..fault.clone() });
            // What no option of the component has set keeps its full path.
            if found.field == path { fault } else { found }
        }
        None => leader.at_origin(fault),
    }
}
