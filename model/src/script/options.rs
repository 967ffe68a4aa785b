//! Every option of sbatch, and those of the pyxis container plug-in: its names, whether it takes a value, and what it sets here.

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    None,
    /// Only in the form `--name=value`.
    Optional,
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Without the dashes.
    pub long: &'static str,
    pub short: Option<char>,
    pub value: ValueKind,
    /// JSON path of what it sets in the job spec; absent: Berth does not support it.
    pub sets: Option<&'static str>,
    /// Not supported, and a job submitted without it would not be the one that was asked for: what to do instead.
    pub refused: Option<&'static str>,
}

const fn supported(long: &'static str, short: Option<char>, value: ValueKind, sets: &'static str) -> OptionInfo {
    OptionInfo { long, short, value, sets: Some(sets), refused: None }
}

const fn unsupported(long: &'static str, short: Option<char>, value: ValueKind) -> OptionInfo {
    OptionInfo { long, short, value, sets: None, refused: None }
}

const fn refused(long: &'static str, short: Option<char>, value: ValueKind, instead: &'static str) -> OptionInfo {
    OptionInfo { long, short, value, sets: None, refused: Some(instead) }
}

use ValueKind::{None as Flag, Optional, Required};

#[rustfmt::skip]
static OPTIONS: &[OptionInfo] = &[
    supported("job-name", Some('J'), Required, "name"),
    supported("partition", Some('p'), Required, "partition"),
    supported("account", Some('A'), Required, "account"),
    supported("qos", Some('q'), Required, "qos"),
    supported("nodes", Some('N'), Required, "resources.nodes"),
    supported("ntasks", Some('n'), Required, "resources.tasks"),
    supported("ntasks-per-node", None, Required, "resources.tasks_per_node"),
    supported("cpus-per-task", Some('c'), Required, "resources.cpus_per_task"),
    supported("cpus-per-gpu", None, Required, "resources.cpus_per_task"),
    supported("mem", None, Required, "resources.memory_per_node_bytes"),
    supported("mem-per-cpu", None, Required, "resources.memory_per_cpu_bytes"),
    supported("mem-per-gpu", None, Required, "resources.memory_per_gpu_bytes"),
    supported("gpus", Some('G'), Required, "resources.gpus"),
    supported("gpus-per-node", None, Required, "resources.gpus_per_node"),
    supported("gpus-per-task", None, Required, "resources.gpus_per_task"),
    supported("gres", None, Required, "resources.gpus_per_node"),
    supported("exclusive", None, Optional, "resources.exclusive"),
    supported("oversubscribe", Some('s'), Flag, "resources.exclusive"),
    supported("sockets-per-node", None, Required, "resources.sockets_per_node"),
    supported("cores-per-socket", None, Required, "resources.cores_per_socket"),
    supported("extra-node-info", Some('B'), Required, "resources.sockets_per_node"),
    supported("threads-per-core", None, Required, "resources.threads_per_core"),
    supported("ntasks-per-core", None, Required, "resources.tasks_per_core"),
    supported("hint", None, Required, "resources.threads_per_core"),
    supported("time", Some('t'), Required, "time_limit_seconds"),
    supported("time-min", None, Required, "time_min_seconds"),
    supported("begin", Some('b'), Required, "begin"),
    supported("deadline", None, Required, "deadline"),
    supported("output", Some('o'), Required, "stdout"),
    supported("error", Some('e'), Required, "stderr"),
    supported("input", Some('i'), Required, "stdin"),
    supported("open-mode", None, Required, "open_mode"),
    supported("array", Some('a'), Required, "array"),
    supported("dependency", Some('d'), Required, "dependencies"),
    supported("constraint", Some('C'), Required, "constraint"),
    supported("prefer", None, Required, "prefer"),
    supported("exclude", Some('x'), Required, "exclude"),
    supported("nodelist", Some('w'), Required, "nodelist"),
    supported("requeue", None, Optional, "requeue"),
    supported("no-requeue", None, Flag, "requeue"),
    supported("signal", None, Required, "signal"),
    supported("comment", None, Required, "comment"),
    supported("export", None, Required, "environment"),
    supported("chdir", Some('D'), Required, "working_directory"),
    supported("hold", Some('H'), Flag, "hold"),
    supported("nice", None, Optional, "nice"),
    supported("wckey", None, Required, "wckey"),
    supported("licenses", Some('L'), Required, "licenses"),
    supported("reservation", None, Required, "reservation"),
    supported("container", None, Required, "container"),
    supported("container-image", None, Required, "container"),
    supported("container-mounts", None, Required, "container.mounts"),
    supported("container-readonly", None, Flag, "container.read_only_root"),
    supported("container-writable", None, Flag, "container.read_only_root"),
    // Identity
    refused("uid", None, Required, "submit with a token of the user meant"),
    refused("gid", None, Required, "jobs run with the group that the node is set up for"),
    unsupported("extra", None, Required),
    refused("clusters", Some('M'), Required, "name the cluster to submit to with --server"),
    unsupported("mcs-label", None, Required),
    // Size
    refused("ntasks-per-socket", None, Required, "say --ntasks-per-node: which socket a task is on is not planned"),
    refused("ntasks-per-gpu", None, Required, "say --ntasks, and --gpus-per-task for each of them"),
    unsupported("mem-update", None, Required),
    unsupported("tmp", None, Required),
    refused("mincpus", None, Required, "say --ntasks-per-node and --cpus-per-task"),
    refused("overcommit", Some('O'), Flag, "ask for fewer CPUs a task with --cpus-per-task=1, or start several programs in one task"),
    unsupported("use-min-nodes", None, Flag),
    unsupported("core-spec", Some('S'), Required),
    unsupported("thread-spec", None, Required),
    // GPUs and other resources
    refused("gpus-per-socket", None, Required, "say --gpus-per-node: which socket a GPU is next to is not planned"),
    unsupported("gres-flags", None, Required),
    unsupported("gpu-bind", None, Required),
    unsupported("gpu-freq", None, Required),
    refused("tres-per-task", None, Required, "say --gpus-per-task and --cpus-per-task"),
    unsupported("tres-bind", None, Required),
    refused("resources", None, Required, "say what is needed with --gpus-per-node, --cpus-per-task and --mem"),
    unsupported("cpu-freq", None, Required),
    unsupported("power", None, Required),
    // Where
    refused("nodefile", Some('F'), Required, "name the nodes with --nodelist"),
    unsupported("batch", None, Required),
    refused("cluster-constraint", None, Required, "name the cluster to submit to with --server, and nodes' features with --constraint"),
    unsupported("contiguous", None, Flag),
    unsupported("spread-job", None, Flag),
    unsupported("switches", None, Required),
    unsupported("segment", None, Required),
    unsupported("spread-segments", None, Flag),
    unsupported("consolidate-segments", None, Flag),
    unsupported("network", None, Required),
    unsupported("distribution", Some('m'), Required),
    unsupported("mem-bind", None, Required),
    // When
    unsupported("kill-on-invalid-dep", None, Required),
    unsupported("priority", None, Required),
    unsupported("no-kill", Some('k'), Optional),
    unsupported("delay-boot", None, Required),
    refused("reboot", None, Flag, "ask an operator to restart the nodes"),
    unsupported("wait-all-nodes", None, Required),
    unsupported("wait", Some('W'), Flag),
    refused("test-only", None, Flag, "say it on the command line, berth submit --test-only, or POST the script to /v1/jobs:dryRun: nothing was submitted"),
    // Input, output and environment
    refused("export-file", None, Required, "source the file in the script, or name the variables with --export"),
    unsupported("get-user-env", None, Optional),
    unsupported("propagate", None, Optional),
    unsupported("mail-type", None, Required),
    unsupported("mail-user", None, Required),
    unsupported("acctg-freq", None, Required),
    unsupported("profile", None, Required),
    unsupported("oom-kill-step", None, Optional),
    refused("container-id", None, Required, "name an image with --container-image"),
    unsupported("runtime", None, Required),
    refused("bb", None, Required, "copy the data in the script"),
    refused("bbf", None, Required, "copy the data in the script"),
    unsupported("stepmgr", None, Flag),
    unsupported("resv-ports", None, Optional),
    unsupported("parsable", None, Flag),
    unsupported("quiet", Some('Q'), Flag),
    unsupported("verbose", Some('v'), Flag),
    unsupported("ignore-pbs", None, Flag),
    unsupported("wrap", None, Required),
    unsupported("help", Some('h'), Flag),
    refused("usage", None, Flag, "say --help: nothing was submitted"),
    refused("version", Some('V'), Flag, "say berth --version: nothing was submitted"),
    // pyxis
    refused("container-workdir", None, Required, "say --chdir"),
    refused("container-name", None, Required, "name an image with --container-image: each job has a container of its own"),
    refused("container-save", None, Required, "build the image outside of jobs, and push it to a registry"),
    unsupported("container-env", None, Required),
    unsupported("container-mount-home", None, Flag),
    unsupported("no-container-mount-home", None, Flag),
    unsupported("container-remap-root", None, Flag),
    unsupported("no-container-remap-root", None, Flag),
    unsupported("container-entrypoint", None, Flag),
    unsupported("no-container-entrypoint", None, Flag),
    unsupported("container-entrypoint-log", None, Flag),
];

/// All options known, for command lines that mirror sbatch.
pub fn all_options() -> &'static [OptionInfo] {
    OPTIONS
}

/// Finds an option by `time`, `--time`, `t` or `-t`.
pub fn find_option(name: &str) -> Option<&'static OptionInfo> {
    let bare = name.strip_prefix("--").or_else(|| name.strip_prefix('-')).unwrap_or(name);
    let mut chars = bare.chars();
    match (chars.next(), chars.next()) {
        (Some(short), None) => OPTIONS.iter().find(|o| o.short == Some(short)),
        _ => OPTIONS.iter().find(|o| o.long == bare),
    }
}

/// The option that was probably meant by an unknown long name.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name: Vec<u8> = name.bytes().take(40).map(|b| if b == b'_' { b'-' } else { b.to_ascii_lowercase() }).collect();
    let allowed = (name.len() / 3).clamp(1, 3);
    let by_distance = OPTIONS.iter().map(|o| (distance(&name, o.long.as_bytes()), o.long)).min()?;
    if by_distance.0 <= allowed {
        return Some(by_distance.1);
    }
    OPTIONS.iter().map(|o| o.long).find(|long| name.len() >= 3 && long.as_bytes().starts_with(&name))
}

/// Edits between two short names: insertions, deletions, replacements (Levenshtein).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_the_option_meant() {
        for (typed, meant) in
            [("ntask", "ntasks"), ("gpu", "gpus"), ("cpus_per_task", "cpus-per-task"), ("nodelsit", "nodelist"), ("depend", "dependency")]
        {
            assert_eq!(nearest(typed), Some(meant), "{typed}");
        }
        assert_eq!(nearest("frobnicate"), None);
    }

    #[test]
    fn names_are_unique() {
        for (i, option) in OPTIONS.iter().enumerate() {
            for other in &OPTIONS[i + 1..] {
                assert_ne!(option.long, other.long);
                assert!(option.short.is_none() || option.short != other.short, "{} and {}", option.long, other.long);
            }
        }
        assert_eq!(find_option("-t"), find_option("time"));
        assert_eq!(find_option("--time").unwrap().short, Some('t'));
        assert_eq!(find_option(""), None);
    }
}
