//! Limits, licences and quotas.

use berth_model::JobId;
use berth_model::event::{Event, JobSnapshot};
use berth_model::license::{License, parse_licenses};
use berth_model::policy::Policy;
use berth_model::quota::Quota;
use berth_model::tres::Tres;

use crate::Situation;
use crate::world::*;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        is: "its account's CPUs are in use",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres.insert(Tres::Cpu, 16));
            w.job(running(job(1, 1, 16), &[1]));
        },
        code: "assoc_group_tres",
        object: "account/acme/ml",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "more than its account may ever have",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres.insert(Tres::Cpu, 16));
            w.asked = job(ASKED, 2, 12);
        },
        code: "assoc_group_tres",
        object: "account/acme/ml",
        advice: NEVER_MET,
        follow: |w| w.asked = job(ASKED, 2, 8),
    },
    Situation {
        is: "its account's jobs at once are running",
        made: |w| {
            w.limit(|limits, _| limits.grp_jobs = Some(1));
            w.job(running(job(1, 1, 1), &[1]));
        },
        code: "assoc_group_jobs",
        object: "account/acme/ml",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "its account's minutes are used up",
        made: |w| {
            w.limit(|limits, _| _ = limits.grp_tres_minutes.insert(Tres::Cpu, 100));
            w.used(90.0);
            w.tell(Event::Policy(Policy { half_life_seconds: 0, safe_limits: true, ..Policy::default() }));
        },
        code: "assoc_group_tres_minutes",
        object: "account/acme/ml",
        advice: FADES,
        follow: |w| w.asked.time_limit = 600,
    },
    Situation {
        is: "its user's jobs of the QOS are running",
        made: |w| {
            w.qos("normal", |q| q.max_jobs_per_user = Some(1));
            w.job(running(job(1, 1, 1), &[1]));
        },
        code: "qos_max_jobs_per_user",
        object: "qos/normal for user acme/ann",
        advice: WHEN_THEY_END,
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "larger than a job of the QOS may be",
        made: |w| {
            w.qos("normal", |q| _ = q.limits.max_tres_per_job.insert(Tres::Node, 1));
            w.asked = job(ASKED, 2, 1);
        },
        code: "qos_max_tres_per_job",
        object: "qos/normal",
        advice: NEVER_MET,
        follow: |w| w.asked.qos = name("urgent"),
    },
    Situation {
        is: "smaller than a job of the QOS must be",
        made: |w| w.qos("normal", |q| _ = q.min_tres_per_job.insert(Tres::Gpu, 1)),
        code: "qos_min_tres_per_job",
        object: "qos/normal",
        advice: NEVER_MET,
        follow: |w| w.asked.shape.gpus = gpus(None, 1),
    },
    Situation {
        is: "its licences are in use",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            let mut holder = running(job(1, 1, 1), &[1]);
            holder.attempt.as_mut().unwrap().charge.tres.insert(Tres::License("matlab".to_owned()), 2);
            w.job(holder);
            w.asked.licenses = parse_licenses("matlab").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "nothing to do: it starts when the jobs that hold the licence end",
        follow: |w| w.tell(Event::JobGone(JobId(1))),
    },
    Situation {
        is: "its licences are planned for a job ahead",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            w.fill();
            w.job(JobSnapshot { licenses: parse_licenses("matlab:2").unwrap(), ..job(3, 4, 1) });
            w.tell(Event::JobGone(JobId(2)));
            w.asked.licenses = parse_licenses("matlab").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "a shorter time limit may let it start before them",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "more licences than the cluster has",
        made: |w| {
            w.tell(Event::Licenses(vec![License { name: name("matlab"), total: 2, description: None }]));
            w.asked.licenses = parse_licenses("matlab:3").unwrap();
        },
        code: "licenses",
        object: "license/matlab",
        advice: "ask for at most 2",
        follow: |w| w.asked.licenses = parse_licenses("matlab:2").unwrap(),
    },
    Situation {
        is: "longer than its account allows",
        made: |w| w.limit(|limits, _| limits.max_wall_seconds = Some(1200)),
        code: "assoc_max_wall_seconds",
        object: "account/acme/ml",
        advice: NEVER_MET,
        follow: |w| w.asked.time_limit = 1200,
    },
    Situation {
        is: "beyond its tenant's quota",
        made: |w| w.quota(Quota { guaranteed: cpus(0), ..Quota::default() }),
        code: "tenant_quota",
        object: "tenant/acme",
        advice: NEVER_MET,
        follow: |w| w.quota(Quota { guaranteed: cpus(1), ..Quota::default() }),
    },
    Situation {
        is: "borrows what nobody lends",
        made: |w| {
            w.asked.shape.cpus_per_task = 2;
            w.quota(Quota { guaranteed: cpus(1), cohort: Some(name("research")), ..Quota::default() });
        },
        code: "cohort_quota",
        object: "cohort/research",
        advice: "ask for less, or ask an administrator to raise the quota or what others lend",
        follow: |w| w.asked.shape.cpus_per_task = 1,
    },
];
