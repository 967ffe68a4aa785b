use proptest::prelude::*;

use super::*;
use crate::job::{ContainerSpec, MountSpec};

/// A spec from JSON, so that the table reads as users write it; `program` unless the row brings its own.
fn spec(json: &str) -> JobSpec {
    serde_json::from_str(json).unwrap_or_else(|e| panic!("{json}: {e}"))
}

fn with_command(json: &str) -> JobSpec {
    JobSpec { command: Some(vec!["true".into()]), ..spec(json) }
}

#[test]
fn good_specs_have_no_faults() {
    for json in [
        r#"{}"#,
        r#"{"resources": {"nodes": 2, "tasks_per_node": 4, "tasks": 8, "gpus_per_node": "h100:4", "gpus_per_task": 1, "gpus": 8}}"#,
        r#"{"resources": {"gpus": 8, "gpus_per_task": 1}}"#,
        r#"{"resources": {"nodes": 2, "max_nodes": 4, "tasks_per_node": 2, "tasks": 6, "gpus": 12, "gpus_per_node": 4}}"#,
        r#"{"resources": {"memory_per_node_bytes": 0, "gpus": 0}}"#,
        r#"{"time_limit_seconds": 3600, "time_min_seconds": 3600, "begin": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T01:00:00Z"}"#,
        r#"{"constraint": "h100&(ib|roce)", "nodelist": "n[1-2]", "exclude": "n3", "array": "0-9%2", "dependencies": ["afterok:5:6", "singleton"]}"#,
        r#"{"environment": {"BASH_FUNC_module%%": "() {\n eval\n}"}, "labels": {"team": "nlp"}, "licenses": "matlab:2,ansys", "signal": {"signal": "USR1"}}"#,
        r#"{"container": {"image": "torch:2.9", "mounts": [{"source": "/data", "target": "/data"}]}, "working_directory": "/w", "stdout": "%j.out", "nice": -10000000}"#,
        r#"{"kind": "external"}"#,
    ] {
        assert_eq!(validate(&with_command(json)), [], "{json}");
    }
    assert_eq!(validate(&spec(r##"{"script": "#!/bin/bash\nsrun hostname\n", "script_args": ["a"]}"##)), []);
    assert_eq!(validate(&spec(r#"{"kind": "external"}"#)), []);
}

#[test]
fn each_flaw_has_its_code_field_and_help() {
    let long = |n: usize| "x".repeat(n);
    let many = |n: usize| (0..n).map(|i| format!("\"k{i}\": \"v\"")).collect::<Vec<_>>().join(", ");
    let rows: Vec<(String, &str, &str)> = vec![
        (r#"{"name": ""}"#.into(), "invalid_job_name", "name"),
        (r#"{"name": "a\nb"}"#.into(), "invalid_job_name", "name"),
        (format!(r#"{{"name": "{}"}}"#, long(201)), "invalid_job_name", "name"),
        (r#"{"resources": {"exclusive": true, "exclusive_user": true}}"#.into(), "exclusive_contradictory", "resources.exclusive_user"),
        (r#"{"script_args": ["x"]}"#.into(), "script_args_without_script", "script_args"),
        (r#"{"container": {"image": ""}}"#.into(), "invalid_image", "container.image"),
        (r#"{"container": {"image": "a b"}}"#.into(), "invalid_image", "container.image"),
        (
            r#"{"container": {"image": "a", "mounts": [{"source": "data", "target": "/d"}]}}"#.into(),
            "invalid_mount",
            "container.mounts[0].source",
        ),
        (
            r#"{"container": {"image": "a", "mounts": [{"source": "/d/../etc", "target": "/d"}]}}"#.into(),
            "invalid_mount",
            "container.mounts[0].source",
        ),
        (
            r#"{"container": {"image": "a", "mounts": [{"source": "/d", "target": "/"}]}}"#.into(),
            "invalid_mount",
            "container.mounts[0].target",
        ),
        (
            r#"{"container": {"image": "a", "mounts": [{"source": "/d", "target": "/x"}, {"source": "/e", "target": "/x/"}]}}"#.into(),
            "duplicate_mount",
            "container.mounts[1].target",
        ),
        (r#"{"resources": {"nodes": 0}}"#.into(), "invalid_count", "resources.nodes"),
        (r#"{"resources": {"tasks": 2000000}}"#.into(), "invalid_count", "resources.tasks"),
        (r#"{"resources": {"cpus_per_task": 0}}"#.into(), "invalid_count", "resources.cpus_per_task"),
        (r#"{"resources": {"nodes": 100000, "tasks_per_node": 1000000}}"#.into(), "invalid_count", "resources.tasks_per_node"),
        (r#"{"resources": {"max_nodes": 2}}"#.into(), "max_nodes_without_nodes", "resources.max_nodes"),
        (r#"{"resources": {"nodes": 3, "max_nodes": 2}}"#.into(), "max_nodes_below_nodes", "resources.max_nodes"),
        (r#"{"resources": {"nodes": 4, "tasks": 3}}"#.into(), "tasks_contradictory", "resources.tasks"),
        (r#"{"resources": {"nodes": 2, "tasks_per_node": 4, "tasks": 9}}"#.into(), "tasks_contradictory", "resources.tasks"),
        (r#"{"resources": {"tasks_per_node": 4, "tasks": 10}}"#.into(), "tasks_contradictory", "resources.tasks"),
        (
            r#"{"resources": {"memory_per_node_bytes": "1GiB", "memory_per_cpu_bytes": "1GiB"}}"#.into(),
            "memory_contradictory",
            "resources.memory_per_cpu_bytes",
        ),
        (r#"{"resources": {"memory_per_cpu_bytes": 0}}"#.into(), "invalid_memory", "resources.memory_per_cpu_bytes"),
        (r#"{"resources": {"memory_per_node_bytes": "2000TiB"}}"#.into(), "invalid_memory", "resources.memory_per_node_bytes"),
        (r#"{"resources": {"memory_per_gpu_bytes": "1GiB"}}"#.into(), "memory_per_gpu_without_gpus", "resources.memory_per_gpu_bytes"),
        (r#"{"resources": {"gpus": 2000000}}"#.into(), "invalid_count", "resources.gpus"),
        (r#"{"resources": {"gpus": "h100:8", "gpus_per_node": "a100:8"}}"#.into(), "gpus_contradictory", "resources.gpus_per_node"),
        (r#"{"resources": {"gpus": 8, "tasks": 3, "gpus_per_task": 2}}"#.into(), "gpus_contradictory", "resources.gpus"),
        (r#"{"resources": {"gpus": 15, "nodes": 2, "gpus_per_node": 8}}"#.into(), "gpus_contradictory", "resources.gpus"),
        (r#"{"resources": {"gpus": 2, "nodes": 4}}"#.into(), "gpus_contradictory", "resources.gpus"),
        (
            r#"{"resources": {"gpus_per_node": 8, "nodes": 1, "tasks": 3, "gpus_per_task": 2}}"#.into(),
            "gpus_contradictory",
            "resources.gpus_per_node",
        ),
        (r#"{"time_limit_seconds": 0}"#.into(), "invalid_time", "time_limit_seconds"),
        (r#"{"time_limit_seconds": 99999999999}"#.into(), "invalid_time", "time_limit_seconds"),
        (r#"{"time_limit_seconds": 60, "time_min_seconds": 61}"#.into(), "time_min_above_limit", "time_min_seconds"),
        (r#"{"begin": "2026-01-02T00:00:00Z", "deadline": "2026-01-01T00:00:00Z"}"#.into(), "deadline_too_early", "deadline"),
        (
            r#"{"begin": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:59:59Z", "time_limit_seconds": 3600}"#.into(),
            "deadline_too_early",
            "deadline",
        ),
        (r#"{"constraint": "a&"}"#.into(), "invalid_constraint", "constraint"),
        (r#"{"constraint": "[a|b"}"#.into(), "invalid_constraint", "constraint"),
        (r#"{"nodelist": "n["}"#.into(), "invalid_nodelist", "nodelist"),
        (r#"{"exclude": "n[2-1]"}"#.into(), "invalid_nodelist", "exclude"),
        (r#"{"nodelist": "n[1-3]", "exclude": "n2"}"#.into(), "nodelist_excluded", "exclude"),
        (r#"{"nodelist": "n[1-3]", "resources": {"nodes": 2}}"#.into(), "nodelist_too_long", "nodelist"),
        (r#"{"environment": {"A=B": "1"}}"#.into(), "invalid_environment_name", "environment"),
        (r#"{"environment": {"": "1"}}"#.into(), "invalid_environment_name", "environment"),
        (r#"{"environment": {"A": "x\u0000"}}"#.into(), "invalid_environment_value", "environment.A"),
        (format!(r#"{{"environment": {{"A": "{}"}}}}"#, long(140_000)), "environment_too_large", "environment.A"),
        (format!(r#"{{"labels": {{{}}}}}"#, many(65)), "too_many_labels", "labels"),
        (r#"{"labels": {"-a": "1"}}"#.into(), "invalid_label", "labels"),
        (r#"{"labels": {"a": "x\ny"}}"#.into(), "invalid_label", "labels.a"),
        (r#"{"array": "1-5%0"}"#.into(), "invalid_array", "array"),
        (r#"{"array": "0-9999999"}"#.into(), "array_too_large", "array"),
        (r#"{"dependencies": ["singleton", "later:5"]}"#.into(), "invalid_dependency", "dependencies[1]"),
        (format!(r#"{{"dependencies": ["afterok{}"]}}"#, ":7".repeat(1001)), "too_many_dependencies", "dependencies"),
        (r#"{"requeue": {"max_restarts": 1001}}"#.into(), "invalid_max_restarts", "requeue.max_restarts"),
        (r#"{"signal": {"signal": "FOO"}}"#.into(), "invalid_signal", "signal.signal"),
        (r#"{"signal": {"signal": "10", "seconds_before": 70000}}"#.into(), "invalid_signal", "signal.seconds_before"),
        (r#"{"nice": 10000001}"#.into(), "invalid_nice", "nice"),
        (r#"{"nice": -2147483648}"#.into(), "invalid_nice", "nice"),
        (format!(r#"{{"comment": "{}"}}"#, long(5000)), "invalid_comment", "comment"),
        (r#"{"wckey": ""}"#.into(), "invalid_wckey", "wckey"),
        (r#"{"reservation": "a b"}"#.into(), "invalid_reservation", "reservation"),
        (r#"{"licenses": "matlab:0"}"#.into(), "invalid_licenses", "licenses"),
        (r#"{"licenses": "a,,b"}"#.into(), "invalid_licenses", "licenses"),
        (r#"{"working_directory": "run1"}"#.into(), "invalid_working_directory", "working_directory"),
        (r#"{"stdout": ""}"#.into(), "invalid_path", "stdout"),
        (r#"{"stderr": "a\u0000"}"#.into(), "invalid_path", "stderr"),
    ];
    for (json, code, field) in rows {
        let faults = validate(&with_command(&json));
        let found: Vec<_> = faults.iter().map(|f| (f.code.as_str(), f.field.as_str())).collect();
        assert_eq!(found, [(code, field)], "{json:.100}");
        assert!(!faults[0].detail.is_empty() && !faults[0].help.is_empty(), "{json:.100}");
    }
}

#[test]
fn a_job_runs_exactly_one_program() {
    let rows: Vec<(String, &str, &str)> = vec![
        (r#"{}"#.into(), "script_or_command_required", "script"),
        (r##"{"script": "#!/bin/sh\n", "command": ["true"]}"##.into(), "script_and_command", "command"),
        (r#"{"script": "echo hi\n"}"#.into(), "script_without_interpreter", "script"),
        (r#"{"script": ""}"#.into(), "script_without_interpreter", "script"),
        (r##"{"script": "#!\necho"}"##.into(), "script_without_interpreter", "script"),
        (r##"{"script": "#!/bin/sh\r\necho\r\n"}"##.into(), "script_line_ends", "script"),
        (r##"{"script": "#!/bin/sh\n\u0000"}"##.into(), "script_with_nul", "script"),
        (format!(r##"{{"script": "#!/bin/sh\n{}"}}"##, "x".repeat(4_200_000)), "script_too_large", "script"),
        (r#"{"command": []}"#.into(), "empty_command", "command"),
        (r#"{"command": [""]}"#.into(), "empty_command", "command"),
        (r#"{"command": ["a", "b\u0000"]}"#.into(), "argument_with_nul", "command[1]"),
        (format!(r#"{{"command": ["{}"]}}"#, "x".repeat(140_000)), "arguments_too_large", "command"),
    ];
    for (json, code, field) in rows {
        let found: Vec<_> = validate(&spec(&json)).into_iter().map(|f| (f.code, f.field)).collect();
        assert_eq!(found, [(code.to_owned(), field.to_owned())], "{json:.100}");
    }
}

#[test]
fn all_faults_are_told_in_field_order() {
    let faults = validate(&spec(r#"{"name": "", "resources": {"nodes": 0, "tasks": 0}, "array": "x", "stdin": ""}"#));
    let fields: Vec<_> = faults.iter().map(|f| f.field.as_str()).collect();
    assert_eq!(fields, ["name", "script", "resources.nodes", "resources.tasks", "array", "stdin"]);
}

proptest! {
    #[test]
    fn no_spec_makes_it_panic(
        texts in proptest::collection::vec(proptest::option::of(".{0,20}"), 12),
        counts in proptest::collection::vec(proptest::option::of(prop_oneof![0u32..5, Just(u32::MAX), any::<u32>()]), 8),
        nice in any::<i32>(),
        seconds in proptest::collection::vec(proptest::option::of(any::<u64>()), 3),
    ) {
        let text = |i: usize| texts[i].clone();
        let gpus = |i: usize| counts[i].map(|count| crate::resources::Gpus { kind: text(i), count });
        let mut spec = JobSpec { name: text(0), script: text(1), command: text(2).map(|t| vec![t]), constraint: text(3), nodelist: text(4), exclude: text(5), array: text(6), ..JobSpec::default() };
        spec.dependencies = text(7).into_iter().collect();
        spec.licenses = text(8);
        spec.container = text(9).map(|image| ContainerSpec { mounts: vec![MountSpec { source: image.clone(), target: image.clone(), read_only: false }], image, ..ContainerSpec::default() });
        spec.working_directory = text(10);
        spec.environment = text(11).map(|t| (t.clone(), t)).into_iter().collect();
        spec.labels = spec.environment.clone();
        spec.nice = nice;
        spec.time_limit_seconds = seconds[0];
        spec.time_min_seconds = seconds[1];
        spec.resources.memory_per_gpu_bytes = seconds[2].map(crate::Bytes);
        spec.resources.nodes = counts[0];
        spec.resources.max_nodes = counts[1];
        spec.resources.tasks = counts[2];
        spec.resources.tasks_per_node = counts[3];
        spec.resources.cpus_per_task = counts[4];
        spec.resources.gpus = gpus(5);
        spec.resources.gpus_per_node = gpus(6);
        spec.resources.gpus_per_task = gpus(7);
        for fault in validate(&spec) {
            prop_assert!(!fault.code.is_empty() && !fault.field.is_empty() && !fault.detail.is_empty() && !fault.help.is_empty());
        }
    }
}

#[test]
fn an_environment_that_is_too_large_names_its_largest_variables() {
    let variables = |count: usize| (0..count).map(|i| format!("\"V{i}\": \"{}\"", "x".repeat(100_000 + i))).collect::<Vec<_>>().join(", ");
    assert_eq!(validate(&spec(&format!(r#"{{"command": ["true"], "environment": {{{}}}}}"#, variables(10)))), []);
    let faults = validate(&spec(&format!(r#"{{"command": ["true"], "environment": {{{}}}}}"#, variables(12))));
    assert_eq!((faults[0].code.as_str(), faults[0].field.as_str()), ("environment_too_large", "environment"));
    assert!(faults[0].detail.contains("V11 (100011), V10 (100010), V9 (100009)"), "{}", faults[0].detail);
}
