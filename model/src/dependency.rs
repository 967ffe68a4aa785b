//! Dependencies between jobs, in Slurm's notation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Fault, JobId, JobRef};

/// When a dependency on another job is satisfied (sbatch manual, `--dependency`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyKind {
    /// Started or cancelled.
    After,
    /// Ended in any way.
    AfterAny,
    /// Ended with exit code 0 (an array: all tasks).
    AfterOk,
    /// Ended in failure (an array: all ended, one at least failed).
    AfterNotOk,
    /// The task of the same index of that array ended with exit code 0.
    AfterCorr,
}

/// One condition on one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dependency {
    pub kind: DependencyKind,
    pub job: JobId,
    /// One task of that array, which becomes a job of its own when the dependency is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// With `after`: minutes that must have passed since.
    pub delay_minutes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyProgress {
    Waiting,
    Satisfied,
    /// Cannot be satisfied any more.
    Never,
}

/// A dependency and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyStatus {
    pub on: Dependency,
    pub progress: DependencyProgress,
}

impl DependencyKind {
    pub fn as_str(self) -> &'static str {
        match self {
            DependencyKind::After => "after",
            DependencyKind::AfterAny => "afterany",
            DependencyKind::AfterOk => "afterok",
            DependencyKind::AfterNotOk => "afternotok",
            DependencyKind::AfterCorr => "aftercorr",
        }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.job)?;
        if let Some(task) = self.task {
            write!(f, "_{task}")?;
        }
        if self.delay_minutes > 0 { write!(f, "+{}", self.delay_minutes) } else { Ok(()) }
    }
}

/// What one text of a spec's `dependencies` says: conditions on jobs, or `singleton`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    On(Vec<Dependency>),
    Singleton,
}

pub const DEPENDENCY_HELP: &str =
    "write after, afterany, afterok, afternotok or aftercorr with job ids, or singleton; for example afterok:1201:1202 or after:1201+5";

impl FromStr for Condition {
    type Err = Fault;
    /// Reads `afterok:1201:1202`, `after:1201+5`, `singleton`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = |what: String| Fault::new("invalid_dependency", "dependencies", what, DEPENDENCY_HELP);
        if text == "singleton" {
            return Ok(Condition::Singleton);
        }
        let mut parts = text.split(':');
        let kind = match parts.next().unwrap_or("") {
            "after" => DependencyKind::After,
            "afterany" => DependencyKind::AfterAny,
            "afterok" => DependencyKind::AfterOk,
            "afternotok" => DependencyKind::AfterNotOk,
            "aftercorr" => DependencyKind::AfterCorr,
            other => return Err(fault(format!("\"{other}\" is not a kind of dependency"))),
        };
        let mut conditions = Vec::new();
        for part in parts {
            let (id, delay) = match part.split_once('+') {
                Some((id, delay)) if kind == DependencyKind::After => {
                    (id, delay.parse().map_err(|_| fault(format!("\"{delay}\" is not a number of minutes")))?)
                }
                Some(_) => return Err(fault(format!("only after takes a delay, not {}", kind.as_str()))),
                None => (part, 0),
            };
            let (job, task) = match id.parse::<JobRef>().map_err(|_| fault(format!("\"{id}\" is not a job id")))? {
                JobRef::Job(job) => (job, None),
                JobRef::Task { array, index } => (array, Some(index)),
                // All components of a job end together.
                JobRef::Component { leader, .. } => (leader, None),
            };
            conditions.push(Dependency { kind, job, task, delay_minutes: delay });
        }
        if conditions.is_empty() {
            return Err(fault(format!("\"{text}\" names no job")));
        }
        Ok(Condition::On(conditions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read_as_slurm_writes_them() {
        let Condition::On(on) = "afterok:20:21".parse().unwrap() else { panic!("conditions on jobs") };
        assert_eq!(on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["afterok:20", "afterok:21"]);
        let Condition::On(on) = "after:7+5".parse().unwrap() else { panic!("conditions on jobs") };
        assert_eq!(on[0].delay_minutes, 5);
        let Condition::On(on) = "afterany:132_1".parse().unwrap() else { panic!("conditions on jobs") };
        assert_eq!((on[0].job, on[0].task, on[0].to_string()), (JobId(132), Some(1), "afterany:132_1".to_owned()));
        assert_eq!("singleton".parse::<Condition>().unwrap(), Condition::Singleton);
        for bad in ["", "afterok", "afterok:", "afterok:x", "afterok:1+5", "later:1", "after:1+x", "afterok:0"] {
            assert!(bad.parse::<Condition>().is_err(), "{bad:?}");
        }
    }
}
