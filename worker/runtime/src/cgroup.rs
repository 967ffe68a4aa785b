//! Control groups: the walls around a step, and the counters that tell what it used. Version 1 (controllers mounted one by one),
//! version 2, and machines where cgroups cannot be written: there steps run without walls, and the node says so.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Limits, Usage};

/// How this machine's cgroups are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Mount points by controller.
    V1(Vec<(String, PathBuf)>),
    V2(PathBuf),
    /// No writable cgroups.
    None,
}

/// Controllers that are used, where version 1 has them.
const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpuset", "cpuacct"];

impl Layout {
    /// Looks at the machine; a layout that cannot be written counts as none.
    pub fn detect() -> Layout {
        let mut v1 = Vec::new();
        let mut v2 = None;
        for mount in mounts() {
            v1.extend(CONTROLLERS.iter().filter(|c| mount.controls(c)).map(|c| ((*c).to_owned(), mount.path.clone())));
            if mount.is_v2 {
                v2 = v2.or(Some(mount.path));
            }
        }
        let layout = if v1.iter().any(|(c, _)| c == "memory") {
            Layout::V1(v1)
        } else {
            v2.filter(|root| fs::read_to_string(root.join("cgroup.controllers")).is_ok_and(|c| c.contains("memory")))
                .map_or(Layout::None, Layout::V2)
        };
        if layout.is_writable() { layout } else { Layout::None }
    }

    fn is_writable(&self) -> bool {
        let probe = Group::new(self, &format!("berth/probe-{}", std::process::id()));
        let made = probe.create(&Limits::default()).is_ok();
        probe.remove();
        made
    }

    /// For people and for the node's facts.
    pub fn describe(&self) -> &'static str {
        match self {
            Layout::V1(_) => "v1",
            Layout::V2(_) => "v2",
            Layout::None => "not writable: limits are not enforced",
        }
    }
}

/// One step's group, in each controller's hierarchy.
#[derive(Clone, Debug)]
pub struct Group {
    layout: Layout,
    name: String,
}

impl Group {
    /// The group of this path below the mount; nothing is made yet.
    pub fn new(layout: &Layout, name: &str) -> Group {
        Group { layout: layout.clone(), name: name.to_owned() }
    }

    /// The group in which a process is now; `None` if there is no such process or no writable cgroup.
    pub fn of_process(layout: &Layout, pid: i32) -> Option<Group> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let name = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_meant = match layout {
                Layout::V1(_) => controllers.split(',').any(|c| c == "memory"),
                Layout::V2(_) => controllers.is_empty(),
                Layout::None => false,
            };
            is_meant.then_some(path)
        })?;
        Some(Group::new(layout, name.trim_start_matches('/')))
    }

    /// Its path below the mount.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn folders(&self) -> Vec<(&str, PathBuf)> {
        match &self.layout {
            Layout::V1(controllers) => controllers.iter().map(|(c, root)| (c.as_str(), root.join(&self.name))).collect(),
            Layout::V2(root) => vec![("", root.join(&self.name))],
            Layout::None => Vec::new(),
        }
    }

    fn folder(&self, controller: &str) -> Option<PathBuf> {
        self.folders().into_iter().find(|(c, _)| c.is_empty() || *c == controller).map(|(_, folder)| folder)
    }

    /// Makes the group and sets its limits.
    pub fn create(&self, limits: &Limits) -> io::Result<()> {
        for (controller, folder) in self.folders() {
            // Each group costs its making and removing: one that binds nothing is made only below one that does.
            let binds = controller != "cpuset" || !limits.cores.is_empty() || folder.parent().is_some_and(Path::exists);
            if binds {
                make(&folder, controller, matches!(self.layout, Layout::V2(_)))?;
            }
        }
        let list = limits.cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match &self.layout {
            Layout::V1(_) => {
                if let (Some(bytes), Some(folder)) = (limits.memory_bytes, self.folder("memory")) {
                    fs::write(folder.join("memory.limit_in_bytes"), bytes.to_string())?;
                }
                if let (Some(pids), Some(folder)) = (limits.pids, self.folder("pids")) {
                    fs::write(folder.join("pids.max"), pids.to_string())?;
                }
                if let (false, Some(folder)) = (list.is_empty(), self.folder("cpuset")) {
                    fs::write(folder.join("cpuset.cpus"), &list)?;
                }
            }
            Layout::V2(root) => {
                let folder = root.join(&self.name);
                if let Some(bytes) = limits.memory_bytes {
                    fs::write(folder.join("memory.max"), bytes.to_string())?;
                    // One process killed means the step is lost: all of it ends.
                    let _ = fs::write(folder.join("memory.oom.group"), "1");
                }
                if let Some(pids) = limits.pids {
                    fs::write(folder.join("pids.max"), pids.to_string())?;
                }
                if !list.is_empty() {
                    fs::write(folder.join("cpuset.cpus"), &list)?;
                }
            }
            Layout::None => {}
        }
        Ok(())
    }

    /// Files to which a process writes `0` to move itself into the group.
    pub fn join_files(&self) -> Vec<PathBuf> {
        self.folders().into_iter().map(|(_, folder)| folder.join("cgroup.procs")).filter(|file| file.exists()).collect()
    }

    /// Processes in the group now.
    pub fn processes(&self) -> Vec<i32> {
        self.folder("pids").into_iter().flat_map(|folder| numbers(&folder.join("cgroup.procs"))).collect()
    }

    /// Freezes all that is in the group, or lets it go on. Returns when all stands still.
    pub fn freeze(&self, is_frozen: bool) -> io::Result<()> {
        match &self.layout {
            Layout::V1(_) => self.freeze_by_freezer(is_frozen),
            Layout::V2(root) => {
                let folder = root.join(&self.name);
                fs::write(folder.join("cgroup.freeze"), if is_frozen { "1" } else { "0" })?;
                let wanted = if is_frozen { "frozen 1" } else { "frozen 0" };
                wait_for(|| fs::read_to_string(folder.join("cgroup.events")).is_ok_and(|text| text.lines().any(|line| line == wanted)))
            }
            Layout::None => Err(io::Error::other("there are no writable cgroups")),
        }
    }

    /// Version 1: steps are in no group of the freezer until one is frozen, so that all others do not pay for it. Whatever is moved into a
    /// frozen group freezes, and what it had forked before is found in the next round.
    fn freeze_by_freezer(&self, is_frozen: bool) -> io::Result<()> {
        let freezer = mounts().into_iter().find(|mount| mount.controls("freezer"));
        let folder = freezer.ok_or_else(|| io::Error::other("the freezer's cgroups are not mounted"))?.path.join(&self.name);
        if !is_frozen && !folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(&folder)?;
        let (state, members) = (folder.join("freezer.state"), folder.join("cgroup.procs"));
        fs::write(&state, if is_frozen { "FROZEN" } else { "THAWED" })?;
        let is_in = |wanted: &str| fs::read_to_string(&state).is_ok_and(|text| text.trim() == wanted);
        if !is_frozen {
            return wait_for(|| is_in("THAWED"));
        }
        wait_for(|| {
            let frozen: BTreeSet<i32> = numbers(&members);
            let outside: Vec<i32> = self.processes_below().into_iter().filter(|pid| !frozen.contains(pid)).collect();
            // One that has just ended cannot be moved, and need not be.
            outside.iter().for_each(|pid| _ = fs::write(&members, pid.to_string()));
            outside.is_empty() && is_in("FROZEN")
        })
    }

    /// Processes in the group and in those that were made in it.
    fn processes_below(&self) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut folders: Vec<PathBuf> = self.folder("pids").into_iter().collect();
        while let Some(folder) = folders.pop() {
            found.extend(numbers(&folder.join("cgroup.procs")));
            let inner = fs::read_dir(&folder).into_iter().flatten().flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            folders.extend(inner.map(|entry| entry.path()));
        }
        found
    }

    /// Binds the group to other CPUs. One that was bound to none stays so.
    pub fn bind(&self, cores: &[u32]) -> io::Result<()> {
        let list = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match self.folder("cpuset").filter(|folder| !list.is_empty() && folder.exists()) {
            Some(folder) => fs::write(folder.join("cpuset.cpus"), list),
            None => Ok(()),
        }
    }

    /// SIGKILL for all that is in the group, forks in flight included.
    pub fn kill(&self) {
        if let Layout::V2(root) = &self.layout
            && fs::write(root.join(&self.name).join("cgroup.kill"), "1").is_ok()
        {
            return;
        }
        // From now on nothing in it can fork.
        if let (Layout::V1(_), Some(folder)) = (&self.layout, self.folder("pids")) {
            let _ = fs::write(folder.join("pids.max"), "0");
        }
        for round in 0..200 {
            let processes = self.processes();
            if round == 1 {
                // What stands still does not even die. The freezer is looked for only where something is left.
                let _ = self.freeze(false);
            }
            for pid in &processes {
                // Safety: a plain system call; the group holds only what the step started.
                unsafe { libc::kill(*pid, libc::SIGKILL) };
            }
            if processes.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub fn usage(&self) -> Usage {
        let number = |controller: &str, file: &str| -> Option<u64> {
            fs::read_to_string(self.folder(controller)?.join(file)).ok()?.trim().parse().ok()
        };
        match &self.layout {
            Layout::V1(_) => Usage {
                cpu_usec: number("cpuacct", "cpuacct.usage").unwrap_or(0) / 1000,
                memory_peak_bytes: number("memory", "memory.max_usage_in_bytes").unwrap_or(0),
            },
            Layout::V2(_) => Usage {
                cpu_usec: self.field("cpu", "cpu.stat", "usage_usec").unwrap_or(0),
                memory_peak_bytes: number("memory", "memory.peak").or_else(|| number("memory", "memory.current")).unwrap_or(0),
            },
            Layout::None => Usage::default(),
        }
    }

    /// The kernel's OOM killer has ended something in the group.
    pub fn is_oom_killed(&self) -> bool {
        let file = if matches!(self.layout, Layout::V1(_)) { "memory.oom_control" } else { "memory.events" };
        self.field("memory", file, "oom_kill").is_some_and(|n| n > 0)
    }

    fn field(&self, controller: &str, file: &str, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder(controller)?.join(file)).ok()?;
        text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok())
    }

    /// Removes the emptied group with those that an engine made in it, and its job's when it was the last. Runtimes and engines make it in
    /// hierarchies too that are not used here.
    pub fn remove(&self) {
        let used = self.folders().into_iter().map(|(_, folder)| folder);
        let others = mounts().into_iter().map(|mount| mount.path.join(&self.name));
        for folder in used.chain(others) {
            for inner in fs::read_dir(&folder).into_iter().flatten().flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
                remove_when_free(&inner.path());
            }
            remove_when_free(&folder);
            if let Some(parent) = folder.parent().filter(|p| !p.ends_with("berth")) {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

fn numbers(file: &Path) -> BTreeSet<i32> {
    fs::read_to_string(file).unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
}

/// Looks until `holds`, for five seconds at most.
fn wait_for(holds: impl Fn() -> bool) -> io::Result<()> {
    for _ in 0..1000 {
        if holds() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the group did not change its state within five seconds"))
}

/// A group whose last process is just being reaped is busy for a moment.
fn remove_when_free(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(std::time::Duration::from_millis(2)),
            _ => break,
        }
    }
}

/// Where cgroups of a kind are mounted.
struct Mount {
    path: PathBuf,
    is_v2: bool,
    /// Of version 1 the controllers are among them.
    options: Vec<String>,
}

impl Mount {
    /// Version 1's controller of this name is mounted here.
    fn controls(&self, controller: &str) -> bool {
        !self.is_v2 && self.options.iter().any(|option| option == controller)
    }
}

fn mounts() -> Vec<Mount> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mount = |line: &str| match line.split(' ').collect::<Vec<_>>().as_slice() {
        [_, path, kind, options, ..] if kind.starts_with("cgroup") => {
            Some(Mount { path: path.into(), is_v2: *kind == "cgroup2", options: options.split(',').map(str::to_owned).collect() })
        }
        _ => None,
    };
    mounts.lines().filter_map(mount).collect()
}

/// Makes a group and those above it up to the mount. Version 1's cpuset starts empty and must be given its parent's sets;
/// version 2's controllers must be enabled from above.
fn make(folder: &Path, controller: &str, is_v2: bool) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    if let Some(parent) = folder.parent()
        && !parent.exists()
    {
        make(parent, controller, is_v2)?;
    }
    if is_v2 && let Some(parent) = folder.parent() {
        fs::write(parent.join("cgroup.subtree_control"), "+cpu +memory +pids +cpuset")
            .or_else(|e| if parent.join("cgroup.procs").exists() { Ok(()) } else { Err(e) })?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if controller == "cpuset"
        && let Some(parent) = folder.parent()
    {
        for file in ["cpuset.cpus", "cpuset.mems"] {
            fs::write(folder.join(file), fs::read_to_string(parent.join(file))?)?;
        }
    }
    Ok(())
}
