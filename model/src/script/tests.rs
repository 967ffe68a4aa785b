use proptest::prelude::*;

use super::*;
use crate::Bytes;
use crate::amount::{GIB, MAX_SECONDS, MIB};
use crate::job::{OpenMode, RequeueMode};

fn now() -> Timestamp {
    "2026-01-31T12:30:00Z".parse().unwrap()
}

fn script(directives: &str) -> String {
    format!("#!/bin/bash\n{directives}\nsrun hostname\n")
}

fn parsed(directives: &str) -> ParsedScript {
    parse_script(&script(directives), &[], now()).unwrap_or_else(|faults| panic!("{directives}: {faults:?}"))
}

fn quiet(directives: &str) -> JobSpec {
    let parsed = parsed(directives);
    assert_eq!(parsed.warnings, [], "{directives}");
    parsed.spec
}

fn codes(faults: &[Fault]) -> Vec<(&str, &str, Option<u32>)> {
    faults.iter().map(|f| (f.code.as_str(), f.field.as_str(), f.line)).collect()
}

#[test]
fn a_training_script_reads_whole() {
    let spec = quiet(
        "#SBATCH -J llama -p h100 -A nlp --qos=high\n#SBATCH -N 4 --ntasks-per-node=8 -c8\n#SBATCH --gpus-per-node=h100:8 --mem=512G # all of it\n\
         #SBATCH -t 2-12 --time-min 1:00:00\n#SBATCH -o 'logs/%x %j.out' -e err --open-mode=append\n#SBATCH --signal=B:USR1@120 --requeue=expedite -H\n\
         #SBATCH --container-image=docker://nvcr.io#nvidia/pytorch:25.01 --container-mounts=/data:/data:ro,/scratch",
    );
    let resources = &spec.resources;
    assert_eq!((spec.name.as_deref(), spec.time_limit_seconds, spec.time_min_seconds), (Some("llama"), Some(216_000), Some(3600)));
    assert_eq!((resources.nodes, resources.tasks_per_node, resources.cpus_per_task), (Some(4), Some(8), Some(8)));
    assert_eq!(resources.gpus_per_node.as_ref().unwrap().to_string(), "h100:8");
    assert_eq!(resources.memory_per_node_bytes, Some(Bytes(512 * GIB)));
    assert_eq!((spec.stdout.as_deref(), spec.open_mode, spec.hold), (Some("logs/%x %j.out"), OpenMode::Append, true));
    assert_eq!(spec.requeue.mode, RequeueMode::Expedite);
    let signal = spec.signal.unwrap();
    assert_eq!((signal.signal.as_str(), signal.seconds_before, signal.batch_only), ("USR1", 120, true));
    let container = spec.container.unwrap();
    assert_eq!(container.image, "nvcr.io/nvidia/pytorch:25.01");
    assert_eq!((container.mounts[0].read_only, container.mounts[1].target.as_str()), (true, "/scratch"));
}

#[test]
fn values_have_slurms_meaning() {
    assert_eq!(quiet("#SBATCH --time=90").time_limit_seconds, Some(5400));
    assert_eq!(quiet("#SBATCH --time=1-0:30").time_limit_seconds, Some(88_200));
    assert_eq!(quiet("#SBATCH --time=UNLIMITED").time_limit_seconds, Some(MAX_SECONDS));
    assert_eq!(quiet("#SBATCH --mem-per-cpu=512").resources.memory_per_cpu_bytes, Some(Bytes(512 * MIB)));
    assert_eq!(quiet("#SBATCH --mem=0").resources.memory_per_node_bytes, Some(Bytes(0)));
    assert_eq!(quiet("#SBATCH -N2-8").resources.max_nodes, Some(8));
    assert_eq!(quiet("#SBATCH -N=1k").resources.nodes, Some(1024));
    assert_eq!(quiet("#SBATCH --gres=gpu:2(S:0)").resources.gpus_per_node.unwrap().count, 2);
    assert_eq!(quiet("#SBATCH --gres gpu:a100").resources.gpus_per_node.unwrap().to_string(), "a100:1");
    for (option, threads, tasks) in [
        ("--threads-per-core=2", Some(2), None),
        ("--hint=nomultithread", Some(1), None),
        ("--hint=compute_bound", Some(1), None),
        ("--hint=multithread", None, None),
        ("-B *:*:1", Some(1), None),
        ("--ntasks-per-core=1", None, Some(1)),
    ] {
        let resources = quiet(&format!("#SBATCH {option}")).resources;
        assert_eq!((resources.threads_per_core, resources.tasks_per_core), (threads, tasks), "{option}");
    }
    assert_eq!(quiet("#SBATCH --gres=shard:2").resources.gpu_share.unwrap().to_string(), "shard:2");
    assert_eq!(quiet("#SBATCH --gres=mps:h100:50").resources.gpu_share.unwrap().to_string(), "mps:h100:50");
    assert_eq!(quiet("#SBATCH --gpus=16 --gpus-per-node=8").resources.nodes, Some(2));
    assert_eq!(quiet("#SBATCH --gpus=8 --cpus-per-gpu=4 -n 4").resources.cpus_per_task, Some(8));
    assert_eq!(quiet("#SBATCH -b now+1hour").begin.unwrap().to_string(), "2026-01-31T13:30:00Z");
    assert_eq!(quiet("#SBATCH --nice").nice, 100);
    assert_eq!(quiet("#SBATCH --nice=-5").nice, -5);
    assert_eq!(quiet("#SBATCH --no-requeue").requeue.mode, RequeueMode::Never);
    assert_eq!(quiet("#SBATCH -n1\n#SBATCH -n2").resources.tasks, Some(2));
    let all = quiet("#SBATCH -d afterok:20:21,afterany:23");
    assert_eq!((all.dependencies, all.dependency_any), (vec!["afterok:20:21".to_owned(), "afterany:23".to_owned()], false));
    assert!(quiet("#SBATCH -d afterok:20:21?afterany:23").dependency_any);
}

#[test]
fn an_option_whose_lack_would_change_the_job_is_refused() {
    for (directive, field) in [
        ("#SBATCH --test-only", "--test-only"),
        ("#SBATCH -M other", "--clusters"),
        ("#SBATCH -F nodes.txt", "--nodefile"),
        ("#SBATCH --gpus-per-socket=2", "--gpus-per-socket"),
        ("#SBATCH --export-file=env", "--export-file"),
        ("#SBATCH --tres-per-task=gres/gpu:1", "--tres-per-task"),
    ] {
        let faults = parse_script(&script(directive), &[], now()).unwrap_err();
        assert_eq!(codes(&faults), [("unsupported_option", field, Some(2))]);
    }
    let faults = parse_script(&script(""), &[("test-only".to_owned(), None)], now()).unwrap_err();
    assert!(faults[0].help.contains("nothing was submitted"), "{faults:?}");
}

#[test]
fn a_submitter_has_a_zone_and_a_folder() {
    let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
    let place = Place { now: now().to_zoned(zone), directory: Some("/home/ada".to_owned()) };
    let spec = parse_script_at(&script("#SBATCH -b 16:00 -D ./runs/1"), &[], place.clone()).unwrap().spec;
    assert_eq!(
        (spec.begin.unwrap().to_string().as_str(), spec.working_directory.as_deref()),
        ("2026-01-31T14:00:00Z", Some("/home/ada/runs/1"))
    );
    let spec = parse_script_at(&script("#SBATCH -D /abs -d ''"), &[("dependency".to_owned(), Some(String::new()))], place).unwrap().spec;
    assert_eq!((spec.working_directory.as_deref(), spec.dependencies.len()), (Some("/abs"), 0));
    assert!(parse_script(&script("#SBATCH -b someday"), &[], now()).unwrap_err()[0].detail.contains("(UTC)"));
}

#[test]
fn exports_say_what_the_client_must_add() {
    assert_eq!(parsed("").export, ExportMode::All);
    assert_eq!(parsed("#SBATCH --export=NONE").export, ExportMode::None);
    let named = parsed("#SBATCH --export=HOME,A=1,B=\"'x,y'\"");
    assert_eq!(named.export, ExportMode::Names(vec!["HOME".to_owned()]));
    assert_eq!(named.spec.environment.get("B").map(String::as_str), Some("x,y"));
    let all = parsed("#SBATCH --export=ALL,A=1");
    assert_eq!((all.export, all.spec.environment.len()), (ExportMode::All, 1));
}

#[test]
fn nodes_are_shared_as_the_last_word_says() {
    for (directives, shared) in [
        ("", (false, false)),
        ("#SBATCH --exclusive", (true, false)),
        ("#SBATCH --exclusive=user", (false, true)),
        ("#SBATCH --exclusive\n#SBATCH --exclusive=user", (false, true)),
        ("#SBATCH --exclusive=user\n#SBATCH --exclusive", (true, false)),
        ("#SBATCH --exclusive -s", (false, false)),
    ] {
        let resources = parsed(directives).spec.resources;
        assert_eq!((resources.exclusive, resources.exclusive_user), shared, "{directives}");
    }
}

#[test]
fn nodes_are_built_as_was_asked() {
    for (directive, sockets) in [
        ("-B 2", (Some(2), None)),
        ("-B 2:32", (Some(2), Some(32))),
        ("-B *:32 --hint=multithread", (None, Some(32))),
        ("--sockets-per-node=4 --cores-per-socket=8", (Some(4), Some(8))),
    ] {
        let resources = parsed(&format!("#SBATCH {directive}")).spec.resources;
        assert_eq!((resources.sockets_per_node, resources.cores_per_socket), sockets, "{directive}");
    }
}

#[test]
fn the_command_line_wins() {
    let overrides = [("time", "5"), ("-n", "3"), ("--mem-per-cpu", "1G")].map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let text = script("#SBATCH --time=90 -n 9 --mem=4G");
    let spec = parse_script(&text, &overrides, now()).unwrap().spec;
    assert_eq!((spec.time_limit_seconds, spec.resources.tasks), (Some(300), Some(3)));
    assert_eq!((spec.resources.memory_per_node_bytes, spec.resources.memory_per_cpu_bytes), (None, Some(Bytes(GIB))));
    let bad = [("gpus".to_owned(), Some("foo".to_owned())), ("frob".to_owned(), None), ("hold".to_owned(), Some("1".to_owned()))];
    let faults = parse_script(&text, &bad, now()).unwrap_err();
    assert_eq!(
        codes(&faults),
        [("invalid_value", "--gpus", None), ("unknown_directive", "--frob", None), ("unexpected_value", "--hold", None)]
    );
}

#[test]
fn what_is_not_done_is_told_with_its_line() {
    for (directives, code, field) in [
        ("\n#SBATCH --mail-type=END", "unsupported_directive", "--mail-type"),
        ("\n#SBATCH -W", "unsupported_directive", "--wait"),
        ("\n#SBATCH --switches 2", "unsupported_directive", "--switches"),
        ("\n#SBATCH --gres=nvme:1,gpu:1", "unsupported_gres", "--gres"),
        ("\n#SBATCH -p h100,a100", "partition_list", "--partition"),
        ("\n#SBATCH -s", "never_oversubscribed", "--oversubscribe"),
        ("\n#SBATCH -N4 -n2", "nodes_lowered", "--nodes"),
        ("\n#SBATCH --container-image=a --container-mounts=/a:/b:x-create=dir", "unsupported_directive", "--container-mounts"),
        ("echo\n#SBATCH -n2", "late_directive", "#SBATCH"),
    ] {
        assert_eq!(codes(&parsed(directives).warnings), [(code, field, Some(3))], "{directives}");
    }
    let windows = parse_script("#!/bin/bash\r\n#SBATCH -n2\r\ntrue\r\n", &[], now()).unwrap();
    assert_eq!(windows.warnings[0].code, "windows_line_ends");
    assert_eq!(windows.spec.script.as_deref(), Some("#!/bin/bash\n#SBATCH -n2\ntrue\n"));
}

#[test]
fn every_bad_directive_has_its_line_option_and_example() {
    for (directive, code, field) in [
        ("--gpus=foo", "invalid_value", "--gpus"),
        ("-G h100:2,a100:1", "invalid_value", "--gpus"),
        ("--gres=gpu:a100:1,gpu:h100:1", "invalid_value", "--gres"),
        ("--gres=gpu:x:y", "invalid_value", "--gres"),
        ("--gres=shard:0", "invalid_value", "--gres"),
        ("--gres=shard:1,mps:20", "invalid_value", "--gres"),
        ("--gres=gpu:1,shard:1", "gpu_share_with_gpus", "--gres"),
        ("--gres=mps:20 --exclusive", "gpu_share_exclusive", "--gres"),
        ("-N 0", "invalid_value", "--nodes"),
        ("-N 4-2", "invalid_value", "--nodes"),
        ("-N 1,3", "invalid_value", "--nodes"),
        ("-n +3", "invalid_value", "--ntasks"),
        ("-c x", "invalid_value", "--cpus-per-task"),
        ("--mem=4X", "invalid_value", "--mem"),
        ("--mem=1G --mem-per-cpu=1G", "memory_contradictory", "--mem-per-cpu"),
        ("--mem-per-gpu=1G", "memory_per_gpu_without_gpus", "--mem-per-gpu"),
        ("--cpus-per-gpu=4", "cpus_per_gpu_without_gpus", "--cpus-per-gpu"),
        ("-B 2:32:1:1", "invalid_value", "--extra-node-info"),
        ("--hint=memory_bound", "invalid_value", "--hint"),
        ("--hint=fast", "invalid_value", "--hint"),
        ("--threads-per-core=0", "invalid_value", "--threads-per-core"),
        ("--ntasks-per-socket=1", "unsupported_option", "--ntasks-per-socket"),
        ("--gpus-per-socket=1", "unsupported_option", "--gpus-per-socket"),
        ("--sockets-per-node=0", "invalid_value", "--sockets-per-node"),
        ("--exclusive=mcs", "invalid_value", "--exclusive"),
        ("--exclusive=topo", "invalid_value", "--exclusive"),
        ("-t 1:2:3:4", "invalid_value", "--time"),
        ("-t 10 --time-min=20", "time_min_above_limit", "--time-min"),
        ("-b soon", "invalid_value", "--begin"),
        ("--deadline=2020-01-01", "invalid_value", "--deadline"),
        ("--open-mode=x", "invalid_value", "--open-mode"),
        ("-a 1-5%0", "invalid_array", "--array"),
        ("-d afterok:1,afterany:2?after:3", "invalid_value", "--dependency"),
        ("-d later:1", "invalid_value", "--dependency"),
        ("-C [a|b", "invalid_constraint", "--constraint"),
        ("--prefer=a&", "invalid_constraint", "--prefer"),
        ("-N 2 -C [a*2&b*1]", "invalid_constraint", "--constraint"),
        ("-w n[", "invalid_nodelist", "--nodelist"),
        ("-x n[3-1]", "invalid_nodelist", "--exclude"),
        ("-w n1 -x n[1-2]", "nodelist_excluded", "--exclude"),
        ("--requeue=later", "invalid_value", "--requeue"),
        ("--signal=FOO", "invalid_value", "--signal"),
        ("--signal=X:USR1", "invalid_value", "--signal"),
        ("--export=A,,B", "invalid_value", "--export"),
        ("-D run1", "invalid_working_directory", "--chdir"),
        ("--nice=x", "invalid_value", "--nice"),
        ("--nice=99999999", "invalid_nice", "--nice"),
        ("-L a::b", "invalid_licenses", "--licenses"),
        ("-p GPU", "invalid_value", "--partition"),
        ("-J ''", "invalid_job_name", "--job-name"),
        ("--container-image=x.sqsh", "invalid_value", "--container-image"),
        ("--container-mounts=/a:/b", "image_required", "--container-mounts"),
        ("--container-image=a --container-mounts=a:/b", "invalid_mount", "--container-mounts"),
        ("--time", "missing_value", "--time"),
        ("--time --mem=1G", "missing_value", "--time"),
        ("--hold=yes", "unexpected_value", "--hold"),
        ("--ntask=4", "unknown_directive", "--ntask"),
        ("-y", "unknown_directive", "-y"),
        ("word", "unknown_directive", "word"),
        ("-N1 hetjob", "component_separator", "hetjob"),
        ("-J 'x", "unclosed_quote", "#SBATCH"),
        ("-N2 --ntasks-per-node=4 -n 9", "tasks_contradictory", "--ntasks"),
        ("--gpus=8 -n 3 --gpus-per-task=1", "gpus_contradictory", "--gpus"),
    ] {
        let faults = parse_script(&script(&format!("# note\n\n#SBATCH {directive}")), &[], now()).expect_err(directive);
        assert_eq!(codes(&faults), [(code, field, Some(4))], "{directive}: {faults:?}");
        assert!(!faults[0].detail.is_empty() && !faults[0].help.is_empty(), "{directive}");
    }
}

#[test]
fn components_are_parted_by_a_line() {
    for word in ["hetjob", "packjob"] {
        let text = script(&format!("#SBATCH -J coupled -p gpu -N2 -t 10 -A ml\n#SBATCH {word}\n#SBATCH -p cpu -n4 --hold\n#SBATCH {word}"));
        let spec = parse_script(&text, &[], now()).unwrap().spec;
        assert_eq!((spec.components.len(), spec.resources.nodes, spec.hold), (2, Some(2), false));
        let jobs = spec.into_components();
        let told = |i: usize| {
            let job = &jobs[i];
            (job.partition.as_ref().map(crate::Name::as_str), job.resources.nodes, job.resources.tasks, job.hold, job.time_limit_seconds)
        };
        assert_eq!(told(0), (Some("gpu"), Some(2), None, false, Some(600)));
        assert_eq!(told(1), (Some("cpu"), None, Some(4), true, Some(600)));
        assert_eq!(told(2), (None, None, None, false, Some(600)), "a component may say nothing");
    }
}

#[test]
fn options_of_the_line_go_to_the_components_in_their_order() {
    let option = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()).filter(|v| !v.is_empty()));
    let line = [option("nodes", "3"), option("hetjob", ""), option("ntasks", "8"), option("hetjob", ""), option("partition", "big")];
    let spec = parse_script(&script("#SBATCH -N2\n#SBATCH hetjob\n#SBATCH -n4 -p cpu"), &line, now()).unwrap().spec;
    assert_eq!((spec.resources.nodes, spec.components.len()), (Some(3), 2));
    assert_eq!(
        (spec.components[0].resources.tasks, spec.components[0].partition.as_ref().map(crate::Name::as_str)),
        (Some(8), Some("cpu"))
    );
    assert_eq!(spec.components[1].partition.as_ref().map(crate::Name::as_str), Some("big"));
}

#[test]
fn faults_of_components_have_their_lines() {
    for (text, code, field, line) in [
        ("#SBATCH hetjob\n#SBATCH -n 0", "invalid_value", "--ntasks", Some(3)),
        ("#SBATCH hetjob\n#SBATCH --gpus=8 -n 3 --gpus-per-task=1", "gpus_contradictory", "--gpus", Some(3)),
        ("#SBATCH -N2 --ntasks-per-node=4 -n 9\n#SBATCH hetjob", "tasks_contradictory", "--ntasks", Some(2)),
        ("#SBATCH -a 1-3\n#SBATCH hetjob", "array_with_components", "--array", Some(2)),
        ("#SBATCH hetjob\n#SBATCH -a 1-3", "array_with_components", "--array", Some(3)),
        ("#SBATCH -w n1 -x n2\n#SBATCH hetjob\n#SBATCH -w n2", "nodelist_excluded", "components[0].exclude", None),
    ] {
        let text = format!("#!/bin/sh\n{text}\ntrue\n");
        let faults = parse_script(&text, &[], now()).expect_err(&text);
        assert_eq!(codes(&faults), [(code, field, line)], "{text}: {faults:?}");
    }
    let parsed = parse_script("#!/bin/sh\n#SBATCH hetjob\n#SBATCH -o x.out\n", &[], now()).unwrap();
    let warned: Vec<_> = parsed.warnings.iter().map(|w| (w.code.as_str(), w.field.as_str(), w.line)).collect();
    assert_eq!(warned, [("not_of_a_component", "--output", Some(3))]);
}

#[test]
fn a_fault_reads_like_help() {
    let text = script("\n\n#SBATCH --gpus=foo\n#SBATCH --tme=5");
    let faults = parse_script(&text, &[], now()).unwrap_err();
    assert_eq!(faults[0].line, Some(4));
    assert_eq!((faults[0].detail.as_str(), faults[0].help.as_str()), ("\"foo\" is not a count or type:count", "for example --gpus=h100:8"));
    assert!(faults[1].help.contains("did you mean --time?"), "{}", faults[1].help);
    let faults = parse_script("echo hi\n", &[], now()).unwrap_err();
    assert_eq!(codes(&faults), [("script_without_interpreter", "script", Some(1))]);
    assert_eq!(parse_script(&"#".repeat(4_200_000), &[], now()).unwrap_err()[0].code, "script_too_large");
}

#[test]
fn every_supported_option_is_read() {
    for option in all_options().iter().filter(|o| o.sets.is_some()) {
        let value = read::example(option.long);
        let text = value.trim_start_matches("--").split_once('=').map(|(_, value)| value.trim_matches('"').to_owned());
        let text = text.filter(|_| option.value != ValueKind::None);
        let faults = parse_script(&script(""), &[(option.long.to_owned(), text)], now()).err().unwrap_or_default();
        // Some need a companion; none may be unreadable.
        assert!(faults.iter().all(|f| f.code != "invalid_value"), "{}: {faults:?}", option.long);
    }
}

#[test]
fn a_word_without_a_name_is_refused_with_its_line() {
    for word in ["\"\"", "=5", "--time=5 \\"] {
        let faults = parse_script(&script(&format!("#SBATCH {word}\n")), &[], now()).unwrap_err();
        assert_eq!(codes(&faults), [("unknown_directive", "#SBATCH", Some(2))], "{word}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(lines in proptest::collection::vec("(#SBATCH )?.{0,40}", 0..8)) {
        let _ = parse_script(&format!("#!/bin/sh\n{}", lines.join("\n")), &[], now());
    }

    #[test]
    fn no_value_makes_it_panic(picks in proptest::collection::vec((0usize..120, "[ -~é]{0,16}|[0-9:,%\\-+]{0,8}"), 1..6)) {
        let overrides: Vec<_> = picks.iter().map(|(i, value)| (all_options()[i % all_options().len()].long.to_owned(), Some(value.clone()))).collect();
        let text = picks.iter().map(|(i, value)| format!("#SBATCH --{}={value}\n", all_options()[i % all_options().len()].long)).collect::<String>();
        for faults in [parse_script(&script(""), &overrides, now()).err(), parse_script(&script(&text), &[], now()).err()].into_iter().flatten() {
            for fault in faults {
                prop_assert!(!fault.code.is_empty() && !fault.field.is_empty() && !fault.detail.is_empty() && !fault.help.is_empty(), "{fault:?}");
            }
        }
    }
}
