//! Heterogeneous jobs: several components, each with resources of its own, that start together or not at all.
//!
//! The job itself is component 0, the leader: it has the script. Every further component is a job of its own to the scheduler, to limits
//! and to accounts. What it does not say it has from the leader, as far as Slurm shares it: not what is asked of nodes, nor the partition.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::job::{JobKind, JobSpec};
use crate::resources::ResourceRequest;
use crate::{JobId, Name, Seconds};

/// Components of one job, at most (Slurm's limit).
pub const MAX_COMPONENTS: usize = 128;

/// A component behind the leader. What is absent it has from the leader, except for what it asks of nodes (`resources`, `partition`,
/// `constraint`, `prefer`, `nodelist`, `licenses`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ComponentSpec {
    pub resources: ResourceRequest,
    /// Absent: the default partition, whatever the leader's is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelist: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_min_seconds: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_any: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
}

impl ComponentSpec {
    /// The component as a job: what it does not say is the leader's. It runs nothing of its own.
    pub fn job(&self, leader: &JobSpec) -> JobSpec {
        let own = self.clone();
        JobSpec {
            kind: JobKind::Component,
            script: None,
            script_args: Vec::new(),
            command: None,
            components: Vec::new(),
            signal: None,
            stream_stdin: false,
            resources: own.resources,
            partition: own.partition,
            constraint: own.constraint,
            prefer: own.prefer,
            nodelist: own.nodelist,
            licenses: own.licenses,
            account: own.account.or_else(|| leader.account.clone()),
            qos: own.qos.or_else(|| leader.qos.clone()),
            time_limit_seconds: own.time_limit_seconds.or(leader.time_limit_seconds),
            time_min_seconds: own.time_min_seconds.or(leader.time_min_seconds),
            begin: own.begin.or(leader.begin),
            deadline: own.deadline.or(leader.deadline),
            exclude: own.exclude.or_else(|| leader.exclude.clone()),
            dependencies: own.dependencies.unwrap_or_else(|| leader.dependencies.clone()),
            dependency_any: own.dependency_any.unwrap_or(leader.dependency_any),
            hold: own.hold.unwrap_or(leader.hold),
            nice: own.nice.unwrap_or(leader.nice),
            comment: own.comment.or_else(|| leader.comment.clone()),
            reservation: own.reservation.or_else(|| leader.reservation.clone()),
            ..leader.clone()
        }
    }
}

impl JobSpec {
    /// The jobs that it is to the scheduler: itself, then its further components.
    pub fn into_components(self) -> Vec<JobSpec> {
        let others: Vec<JobSpec> = self.components.iter().map(|component| component.job(&self)).collect();
        std::iter::once(self).chain(others).collect()
    }
}

/// Which component of which job a job is. Ids of components follow one another, the leader's is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ComponentOf {
    pub leader: JobId,
    /// 0 for the leader itself.
    pub offset: u32,
    /// Components in all.
    pub size: u32,
}

impl ComponentOf {
    /// All components, the leader first.
    pub fn jobs(self) -> impl Iterator<Item = JobId> {
        (0..u64::from(self.size)).map(move |offset| JobId(self.leader.0 + offset))
    }

    /// The component at `offset`, if there are so many.
    pub fn at(self, offset: u32) -> Option<JobId> {
        (offset < self.size).then_some(JobId(self.leader.0 + u64::from(offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_from_the_leader_what_slurm_shares() {
        let leader: JobSpec = serde_json::from_value(serde_json::json!({
            "name": "coupled", "script": "#!/bin/sh\n", "account": "ml", "qos": "high", "partition": "gpu", "time_limit_seconds": 60,
            "constraint": "ib", "licenses": "x:1", "hold": true, "nice": 5, "dependencies": ["afterok:7"], "resources": {"nodes": 2},
            "components": [{}, {"account": "bio", "partition": "cpu", "hold": false, "dependencies": [], "resources": {"tasks": 4}}],
        }))
        .unwrap();
        let all = leader.into_components();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].kind, all[0].resources.nodes, all[0].components.len()), (JobKind::Batch, Some(2), 2));
        let heir = &all[1];
        assert_eq!((heir.kind, heir.script.as_deref(), heir.name.as_deref()), (JobKind::Component, None, Some("coupled")));
        let shared = (heir.account.as_ref().map(Name::as_str), heir.time_limit_seconds, heir.hold, heir.nice, heir.dependencies.len());
        assert_eq!(shared, (Some("ml"), Some(60), true, 5, 1));
        let own = (&heir.partition, &heir.constraint, &heir.licenses, heir.resources.nodes);
        assert_eq!(own, (&None, &None, &None, None), "what is asked of nodes is each component's own");
        let other = &all[2];
        let said = (other.account.as_ref().map(Name::as_str), other.hold, other.dependencies.len(), other.resources.tasks);
        assert_eq!(said, (Some("bio"), false, 0, Some(4)));
    }

    #[test]
    fn ids_follow_the_leaders() {
        let of = ComponentOf { leader: JobId(7), offset: 1, size: 3 };
        assert_eq!(of.jobs().collect::<Vec<_>>(), [JobId(7), JobId(8), JobId(9)]);
        assert_eq!((of.at(2), of.at(3)), (Some(JobId(9)), None));
    }
}
