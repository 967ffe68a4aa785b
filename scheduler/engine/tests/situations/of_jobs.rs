//! Held by the job's own words: holds, dependencies, times, partitions, arrays.

use berth_model::JobId;
use berth_model::dependency::{DependencyKind, DependencyProgress};
use berth_model::event::{ArrayProgress, Event, JobSnapshot};
use berth_model::state::{Hold, PartitionState};

use crate::Situation;
use crate::world::*;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        is: "held by its user",
        made: |w| w.asked.hold = Some(Hold::User),
        code: "held_user",
        object: "job/100",
        advice: "release the job when it should run",
        follow: |w| w.asked.hold = None,
    },
    Situation {
        is: "held by an administrator",
        made: |w| w.asked.hold = Some(Hold::Admin),
        code: "held_admin",
        object: "job/100",
        advice: "an administrator holds this job and must release it",
        follow: |w| w.asked.hold = None,
    },
    Situation {
        is: "waits for another job",
        made: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Waiting),
        code: "dependency",
        object: "job/90",
        advice: "nothing to do: the job becomes eligible when that job gets there",
        follow: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Satisfied),
    },
    Situation {
        is: "waits for a job that failed",
        made: |w| w.asked.dependencies = on(DependencyKind::AfterOk, DependencyProgress::Never),
        code: "dependency_never",
        object: "job/90",
        advice: "cancel the job, or change its dependencies",
        follow: |w| w.asked.dependencies = Vec::new(),
    },
    Situation {
        is: "a singleton behind an elder",
        made: |w| {
            w.asked.is_singleton = true;
            w.job(JobSnapshot { name: "train".to_owned(), ..running(job(5, 1, 1), &[1]) });
        },
        code: "dependency",
        object: "job/5",
        advice: "nothing to do: the job becomes eligible when the earlier ones have ended",
        follow: |w| w.tell(Event::JobGone(JobId(5))),
    },
    Situation {
        is: "its begin time is to come",
        made: |w| w.asked.not_before = Some(at(10)),
        code: "begin_time",
        object: "job/100",
        advice: "nothing to do: the job becomes eligible then; or give it an earlier begin time",
        follow: |w| w.now = at(10),
    },
    Situation {
        is: "was requeued and waits a little",
        made: |w| (w.asked.restarts, w.asked.not_before) = (1, Some(at(10))),
        code: "launch_backoff",
        object: "job/100",
        advice: "nothing to do: the job becomes eligible then",
        follow: |w| w.now = at(10),
    },
    Situation {
        is: "cannot end by its deadline",
        made: |w| w.asked.deadline = Some(at(30)),
        code: "deadline_unreachable",
        object: "job/100",
        advice: "lower the time limit or move the deadline",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "would be planned too late for its deadline",
        made: |w| {
            w.fill();
            w.asked.deadline = Some(at(80));
        },
        code: "deadline_unreachable",
        object: "job/100",
        advice: "lower the time limit, ask for less, or move the deadline",
        follow: |w| {
            w.asked.time_limit = 40 * 60;
            w.tell(Event::JobGone(JobId(1)));
            w.now = at(30);
        },
    },
    Situation {
        is: "its partition is down",
        made: |w| w.partition("main", |p| p.state = PartitionState::Down),
        code: "partition_down",
        object: "partition/main",
        advice: "wait until an administrator sets it up, or move the job to another partition",
        follow: |w| w.asked.partition = name("small"),
    },
    Situation {
        is: "its partition is gone",
        made: |w| w.tell(Event::PartitionRemoved(name("main"))),
        code: "partition_down",
        object: "partition/main",
        advice: "move the job to another partition, or ask an administrator to restore this one",
        follow: |w| w.asked.partition = name("small"),
    },
    Situation {
        is: "longer than its partition allows",
        made: |w| {
            w.asked.partition = name("small");
            w.asked.time_limit = 2 * 3600;
        },
        code: "time_limit",
        object: "partition/small",
        advice: "lower the job's time limit",
        follow: |w| w.asked.time_limit = 3600,
    },
    Situation {
        is: "longer than its QOS allows",
        made: |w| w.qos("normal", |q| q.max_time_seconds = Some(1800)),
        code: "time_limit",
        object: "qos/normal",
        advice: "lower the job's time limit",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "more nodes than its partition allows",
        made: |w| {
            w.asked = job(ASKED, 2, 1);
            w.asked.partition = name("small");
        },
        code: "node_count_limit",
        object: "partition/small",
        advice: "ask for fewer nodes, or use another partition",
        follow: |w| w.asked = JobSnapshot { partition: name("small"), ..job(ASKED, 1, 1) },
    },
    Situation {
        is: "fewer nodes than its partition asks for",
        made: |w| w.partition("main", |p| p.min_nodes = Some(2)),
        code: "node_count_limit",
        object: "partition/main",
        advice: "ask for more nodes, or use another partition",
        follow: |w| w.asked = job(ASKED, 2, 1),
    },
    Situation {
        is: "more of a node than its partition gives",
        made: |w| {
            w.partition("main", |p| p.max_cpus_per_node = Some(4));
            w.asked = job(ASKED, 1, 8);
        },
        code: "partition_limit",
        object: "partition/main",
        advice: "ask for less on each node, spread over more nodes, or use another partition",
        follow: |w| w.asked = job(ASKED, 2, 4),
    },
    Situation {
        is: "its array's throttle is reached",
        made: |w| w.asked.array = Some(ArrayProgress { pending: [2, 3].into_iter().collect(), running: 2, throttle: Some(2) }),
        code: "array_throttle",
        object: "job/100",
        advice: "wait for a task to end, or raise the throttle",
        follow: |w| w.asked.array = Some(ArrayProgress { pending: [2, 3].into_iter().collect(), running: 1, throttle: Some(2) }),
    },
];
