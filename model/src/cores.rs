//! Cores of several threads: what a job asks of them, and what it then holds and uses.
//!
//! A job has whole cores. Which of their threads it uses is another matter: all, or so many of each, or those of tasks that have cores to
//! themselves. Source: sbatch manual, `--threads-per-core`, `--ntasks-per-core`, `--hint`; slurm.conf manual, `CR_Core`.

use serde::{Deserialize, Serialize};

/// How the threads of a core are used; 0 where that is all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreDemand {
    /// So many threads of each core at most, and cores that have so many at least.
    pub threads: u32,
    /// So many tasks on each core at most.
    pub tasks: u32,
}

impl CoreDemand {
    /// Nothing is asked for.
    pub fn is_any(&self) -> bool {
        *self == CoreDemand::default()
    }

    /// What a node whose cores have `threads` each gives to tasks of so many CPUs; nothing if its cores have too few.
    pub fn on(self, threads: u32, cpus_per_task: u32) -> Option<CoreUse> {
        let threads = threads.max(1);
        if self.threads > threads {
            return None;
        }
        let each = if self.threads == 0 { threads } else { self.threads };
        Some(match self.tasks {
            0 => CoreUse { threads, each, tasks: None, cores: 1, used: each },
            most if cpus_per_task <= each => {
                let tasks = most.min(each / cpus_per_task.max(1));
                CoreUse { threads, each, tasks: Some(tasks), cores: 1, used: tasks * cpus_per_task }
            }
            _ => CoreUse { threads, each, tasks: Some(1), cores: cpus_per_task.div_ceil(each), used: cpus_per_task },
        })
    }
}

/// How a job uses the cores of a node: in groups of one core, or of as many as one task needs.
///
/// Of cores of two threads, `--threads-per-core=1` uses one of each; tasks of three CPUs with `--ntasks-per-core=1` use three threads of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreUse {
    /// Threads that each core has.
    pub threads: u32,
    /// Of each core at most so many are used.
    each: u32,
    /// Tasks of a group, if they are counted.
    tasks: Option<u32>,
    /// Cores of a group.
    cores: u32,
    /// Threads of a group that are used.
    used: u32,
}

impl CoreUse {
    /// CPUs that such tasks hold, whole cores, and how many of these they use.
    pub fn cpus(&self, tasks: u32, cpus_per_task: u32) -> (u32, u32) {
        let groups = match self.tasks {
            Some(of_group) => tasks.div_ceil(of_group.max(1)),
            None => tasks.saturating_mul(cpus_per_task).div_ceil(self.used.max(1)),
        };
        let groups = groups.max(1);
        (groups.saturating_mul(self.cores).saturating_mul(self.threads), groups.saturating_mul(self.used))
    }

    /// Of whole cores, whose CPUs come core by core: those that are used, task by task, and those that stay idle.
    pub fn split(&self, cpus: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        if self.threads == 1 {
            return (cpus, Vec::new());
        }
        let (mut used, mut idle) = (Vec::new(), Vec::new());
        let size = (self.cores.max(1) * self.threads) as usize;
        for group in cpus.chunks(size) {
            // A whole node may have cores left that make no group.
            let mut left = if group.len() == size { self.used as usize } else { usize::MAX };
            for core in group.chunks(self.threads as usize) {
                let taken = left.min(self.each as usize).min(core.len());
                used.extend(&core[..taken]);
                idle.extend(&core[taken..]);
                left -= taken;
            }
        }
        (used, idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cores_are_held_and_as_many_threads_used_as_were_asked_for() {
        let demand = |threads, tasks| CoreDemand { threads, tasks };
        // Threads of each core, what is asked, tasks and CPUs of each: CPUs held and used.
        for (threads, asked, tasks, cpus, expected) in [
            (1, demand(0, 0), 3, 2, Some((6, 6))),
            (2, demand(0, 0), 1, 1, Some((2, 2))),
            (2, demand(0, 0), 3, 1, Some((4, 4))),
            (2, demand(0, 0), 2, 3, Some((6, 6))),
            (2, demand(1, 0), 3, 1, Some((6, 3))),
            (2, demand(1, 0), 2, 2, Some((8, 4))),
            (2, demand(0, 1), 3, 1, Some((6, 3))),
            (2, demand(0, 1), 2, 3, Some((8, 6))),
            (2, demand(0, 2), 3, 1, Some((4, 4))),
            (4, demand(0, 2), 3, 1, Some((8, 4))),
            (4, demand(2, 0), 3, 1, Some((8, 4))),
            (1, demand(1, 1), 3, 2, Some((6, 6))),
            (1, demand(2, 0), 1, 1, None),
        ] {
            let held = asked.on(threads, cpus).map(|cores| cores.cpus(tasks, cpus));
            assert_eq!(held, expected, "{asked:?} of {threads}, {tasks} tasks of {cpus}");
        }
    }

    #[test]
    fn tasks_that_do_not_share_cores_have_whole_ones() {
        let cpus: Vec<u32> = (0..4).flat_map(|core| [core, core + 4]).collect();
        let split = |demand: CoreDemand, each| demand.on(2, each).unwrap().split(cpus.clone());
        assert_eq!(split(CoreDemand::default(), 1), (vec![0, 4, 1, 5, 2, 6, 3, 7], vec![]));
        assert_eq!(split(CoreDemand { threads: 1, tasks: 0 }, 1), (vec![0, 1, 2, 3], vec![4, 5, 6, 7]));
        // Two tasks of three CPUs: 0, 4, 1 and 2, 6, 3.
        assert_eq!(split(CoreDemand { threads: 0, tasks: 1 }, 3), (vec![0, 4, 1, 2, 6, 3], vec![5, 7]));
    }
}
