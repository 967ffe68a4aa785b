//! CPUs from sysfs, limited to those this process may run on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use berth_model::resources::NumaNode;

pub struct Cpus {
    pub ids: Vec<u32>,
    pub numa: Vec<NumaNode>,
    pub sockets: u32,
    pub threads_per_core: u32,
    /// The CPUs of each core, of those that we may use.
    pub cores: Vec<Vec<u32>>,
}

pub fn find() -> Cpus {
    find_in(Path::new("/sys/devices/system"), &allowed())
}

/// CPUs that the scheduler of the kernel lets us have: a container may hold fewer than the machine has.
fn allowed() -> BTreeSet<u32> {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = text.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).map(parse_list).unwrap_or_default();
    if list.is_empty() { (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect() } else { list }
}

fn find_in(system: &Path, allowed: &BTreeSet<u32>) -> Cpus {
    let read = |path: &str| fs::read_to_string(system.join(path)).ok();
    let mut sockets = BTreeSet::new();
    let mut threads_per_core = 1;
    let mut cores = BTreeSet::new();
    for id in allowed {
        sockets.extend(read(&format!("cpu/cpu{id}/topology/physical_package_id")).map(|s| s.trim().to_owned()));
        // The newer name of the two comes first.
        let names = ["core_cpus_list", "thread_siblings_list"].map(|name| format!("cpu/cpu{id}/topology/{name}"));
        let siblings = names.iter().find_map(|name| read(name)).map(|list| parse_list(&list)).unwrap_or_else(|| BTreeSet::from([*id]));
        threads_per_core = threads_per_core.max(siblings.len() as u32);
        cores.insert(siblings.intersection(allowed).copied().collect::<Vec<u32>>());
    }
    let mut numa: Vec<NumaNode> = read("node/online")
        .map(|s| parse_list(&s))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|id| {
            let cpus: Vec<u32> = parse_list(&read(&format!("node/node{id}/cpulist"))?).intersection(allowed).copied().collect();
            (!cpus.is_empty()).then_some(NumaNode { id, cpus })
        })
        .collect();
    let on_numa: BTreeSet<u32> = numa.iter().flat_map(|n| n.cpus.iter().copied()).collect();
    if on_numa != *allowed {
        numa = vec![NumaNode { id: 0, cpus: allowed.iter().copied().collect() }];
    }
    Cpus {
        ids: allowed.iter().copied().collect(),
        numa,
        sockets: sockets.len().max(1) as u32,
        threads_per_core,
        cores: cores.into_iter().collect(),
    }
}

/// The kernel's list form: `0-3,8`.
fn parse_list(text: &str) -> BTreeSet<u32> {
    let mut ids = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            ids.extend(first..=last.min(first.saturating_add(65_536)));
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_two_sockets_is_read_from_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for cpu in 0..8 {
            write(format!("cpu/cpu{cpu}/topology/physical_package_id"), if cpu % 4 < 2 { "0\n" } else { "1\n" });
            write(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{},{}\n", cpu % 4, cpu % 4 + 4));
        }
        write("node/online".into(), "0-1\n");
        write("node/node0/cpulist".into(), "0-1,4-5\n");
        write("node/node1/cpulist".into(), "2-3,6-7\n");
        let all = find_in(dir.path(), &(0..8).collect());
        assert_eq!((all.sockets, all.threads_per_core, all.numa.len()), (2, 2, 2));
        assert_eq!(all.numa[1].cpus, [2, 3, 6, 7]);
        assert_eq!(all.cores, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        // A container with CPUs of one socket only.
        let some = find_in(dir.path(), &BTreeSet::from([1, 5]));
        assert_eq!((some.ids, some.sockets, some.numa.len()), (vec![1, 5], 1, 1));
    }
}
