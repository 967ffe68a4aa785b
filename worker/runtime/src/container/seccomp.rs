//! What a container may ask of the kernel: an allow-list after the default of the usual engines (containers/common, moby), as data in
//! `seccomp.txt`. It differs where computing on nodes does: NUMA policy and reading a neighbour's memory (MPI, NCCL) are allowed,
//! namespaces, mounts, keys and kernel modules are refused whoever asks.

use oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArgBuilder, LinuxSeccompBuilder, LinuxSeccompOperator, LinuxSyscall,
    LinuxSyscallBuilder,
};

const LISTS: &str = include_str!("seccomp.txt");

/// Flags of `clone` that make namespaces: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const NEW_NAMESPACES: [u64; 7] = [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
/// All of them.
const NAMESPACE_MASK: u64 = 0x7e02_0000;
/// Personalities that change nothing that matters: Linux, 32-bit, and asking for the current one.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// The profile of all containers.
pub fn profile() -> LinuxSeccomp {
    let mut rules = vec![
        rule(LinuxSeccompAction::ScmpActAllow, &list("allow"), None),
        rule(LinuxSeccompAction::ScmpActErrno, &list("refuse"), Some(libc::EPERM)),
        // Its flags lie in memory, where a filter cannot look: programs fall back to clone.
        rule(LinuxSeccompAction::ScmpActErrno, &["clone3"], Some(libc::ENOSYS)),
        with_argument("clone", LinuxSeccompAction::ScmpActAllow, (0, LinuxSeccompOperator::ScmpCmpMaskedEq, NAMESPACE_MASK, Some(0))),
        // Sockets of all families but the kernel's audit.
        with_argument("socket", LinuxSeccompAction::ScmpActAllow, (0, LinuxSeccompOperator::ScmpCmpNe, libc::AF_NETLINK as u64, None)),
        with_argument("socket", LinuxSeccompAction::ScmpActAllow, (2, LinuxSeccompOperator::ScmpCmpNe, libc::NETLINK_AUDIT as u64, None)),
    ];
    for flag in NEW_NAMESPACES {
        let is_set = (0, LinuxSeccompOperator::ScmpCmpMaskedEq, flag, Some(flag));
        rules.push(refusal(with_argument("clone", LinuxSeccompAction::ScmpActErrno, is_set)));
    }
    for personality in PERSONALITIES {
        let is_that = (0, LinuxSeccompOperator::ScmpCmpEq, personality, None);
        rules.push(with_argument("personality", LinuxSeccompAction::ScmpActAllow, is_that));
    }
    // Before 4.8 a tracer could change its child's call behind the filter.
    let ptrace =
        if kernel() >= (4, 8) { (LinuxSeccompAction::ScmpActAllow, None) } else { (LinuxSeccompAction::ScmpActErrno, Some(libc::EPERM)) };
    rules.push(rule(ptrace.0, &["ptrace"], ptrace.1));
    let profile = LinuxSeccompBuilder::default()
        .default_action(LinuxSeccompAction::ScmpActErrno)
        .default_errno_ret(libc::ENOSYS as u32)
        .architectures(architectures())
        .syscalls(rules);
    profile.build().expect("all that is required is set")
}

fn architectures() -> Vec<Arch> {
    if cfg!(target_arch = "aarch64") {
        vec![Arch::ScmpArchAarch64, Arch::ScmpArchArm]
    } else {
        vec![Arch::ScmpArchX86_64, Arch::ScmpArchX86, Arch::ScmpArchX32]
    }
}

fn list(name: &str) -> Vec<&'static str> {
    let heading = format!("[{name}]");
    let lines = LISTS.lines().skip_while(|l| *l != heading).skip(1).take_while(|l| !l.starts_with('['));
    lines.filter(|l| !l.starts_with('#')).flat_map(str::split_whitespace).collect()
}

fn rule(action: LinuxSeccompAction, names: &[&str], errno: Option<i32>) -> LinuxSyscall {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let rule = LinuxSyscallBuilder::default().names(names).action(action);
    let rule = match errno {
        Some(errno) => rule.errno_ret(errno as u32),
        None => rule,
    };
    rule.build().expect("all that is required is set")
}

/// Holds when the argument of this index compares so with the value (and, where there is a mask, the second).
fn with_argument(name: &str, action: LinuxSeccompAction, test: (usize, LinuxSeccompOperator, u64, Option<u64>)) -> LinuxSyscall {
    let (index, op, value, second) = test;
    let argument = LinuxSeccompArgBuilder::default().index(index).op(op).value(value).value_two(second.unwrap_or(0));
    let mut rule = rule(action, &[name], None);
    rule.set_args(Some(vec![argument.build().expect("all that is required is set")]));
    rule
}

fn refusal(mut rule: LinuxSyscall) -> LinuxSyscall {
    rule.set_errno_ret(Some(libc::EPERM as u32));
    rule
}

/// The kernel's version; one that is not understood counts as old.
fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.trim().parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_apart_and_hold_what_they_must() {
        let (allowed, refused) = (list("allow"), list("refuse"));
        for name in ["read", "futex", "execve", "fork", "vfork", "mbind", "process_vm_readv", "landlock_restrict_self"] {
            assert!(allowed.contains(&name), "{name}");
        }
        let never = "mount umount2 kexec_load bpf keyctl add_key init_module reboot setns unshare io_uring_setup pivot_root";
        for name in never.split(' ') {
            assert!(refused.contains(&name), "{name}");
        }
        assert!(!allowed.iter().any(|name| refused.contains(name)));
        assert!(!allowed.iter().any(|name| ["clone", "clone3", "ptrace", "socket", "personality"].contains(name)));
    }

    #[test]
    fn clone_is_ruled_by_its_flags() {
        let profile = serde_json::to_value(profile()).unwrap();
        let rules = profile["syscalls"].as_array().unwrap();
        let of_clone: Vec<_> = rules.iter().filter(|r| r["names"][0] == "clone").collect();
        assert_eq!(of_clone.len(), 1 + 7, "{of_clone:#?}");
        assert_eq!(of_clone[0]["args"][0]["value"], 0x7e02_0000);
        assert!(of_clone[1..].iter().all(|r| r["errnoRet"] == 1 && r["args"][0]["value"] == r["args"][0]["valueTwo"]));
    }
}
