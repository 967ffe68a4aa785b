//! Limits that bind a job, by Slurm's precedence: for each single value the first place that says something wins, the partition's QOS
//! before the job's, QOS before associations, the nearest association before those above. `grp_*` of associations hold at every
//! level, unless a QOS says something of the same resource: then at none.

use std::fmt;

use crate::association::{AssociationKey, Limits, Terms};
use crate::policy::Qos;
use crate::tres::{Tres, TresCounts};
use crate::{Name, Seconds};

/// Whose jobs are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All below a place of the tree.
    Association(AssociationKey),
    Qos(Name),
    QosUser {
        qos: Name,
        tenant: Name,
        user: Name,
    },
    QosAccount {
        qos: Name,
        tenant: Name,
        account: Name,
    },
    /// All tenants of a cohort.
    Cohort(Name),
}

/// What of them is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Running jobs.
    Jobs,
    /// Pending and running jobs: heeded at submission alone.
    SubmitJobs,
    /// Held by running jobs.
    Tres(Tres),
    /// Used and still to be used, in resource-minutes.
    TresMinutes(Tres),
    /// Still to be used up to time limits, in resource-minutes.
    TresRunMinutes(Tres),
    /// Run time, in minutes.
    WallMinutes,
    JobTres(Tres),
    NodeTres(Tres),
    JobTresMinutes(Tres),
    /// A lower bound, unlike all others.
    LeastJobTres(Tres),
    JobSeconds,
}

impl Measure {
    /// What is counted, if it is a resource.
    pub fn tres(&self) -> Option<&Tres> {
        match self {
            Measure::Tres(tres)
            | Measure::TresMinutes(tres)
            | Measure::TresRunMinutes(tres)
            | Measure::JobTres(tres)
            | Measure::NodeTres(tres)
            | Measure::JobTresMinutes(tres)
            | Measure::LeastJobTres(tres) => Some(tres),
            Measure::Jobs | Measure::SubmitJobs | Measure::WallMinutes | Measure::JobSeconds => None,
        }
    }
}

/// One limit that binds a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub measure: Measure,
    pub scope: Scope,
    pub limit: u64,
    /// The identifier in verdicts and problems: `assoc_group_tres`, `qos_max_jobs_per_user`, …
    pub code: &'static str,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Association(key) => key.fmt(f),
            Scope::Qos(qos) => write!(f, "qos/{qos}"),
            Scope::QosUser { qos, tenant, user } => write!(f, "qos/{qos} for user {tenant}/{user}"),
            Scope::QosAccount { qos, tenant, account } => write!(f, "qos/{qos} for account {tenant}/{account}"),
            Scope::Cohort(name) => write!(f, "cohort/{name}"),
        }
    }
}

/// What a job would take: counts, the most on one node, and its time limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub tres: TresCounts,
    /// The most that one node gives.
    pub on_node: TresCounts,
    pub time_limit: Seconds,
}

impl Request {
    pub fn count(&self, tres: &Tres) -> u64 {
        self.tres.get(tres).copied().unwrap_or(0)
    }

    /// Resource-minutes up to the time limit.
    pub fn minutes(&self, tres: &Tres) -> f64 {
        self.count(tres) as f64 * self.time_limit as f64 / 60.0
    }
}

impl Bound {
    /// The name that administrators know the limit by, with its value: `grp_tres gres/gpu=8`.
    pub fn words(&self) -> String {
        let name = self.code.trim_start_matches("assoc_").trim_start_matches("qos_").replacen("group_", "grp_", 1);
        match self.measure.tres() {
            Some(tres) => format!("{name} {tres}={}", self.limit),
            None => format!("{name}={}", self.limit),
        }
    }

    /// Whether a job that asks for this can never start, with nobody else there: what it has, and what it may have.
    pub fn forbids(&self, request: &Request, is_safe: bool) -> Option<String> {
        let limit = self.limit;
        let over = |count: u64, unit: &dyn fmt::Display| (count > limit).then(|| format!("{count} {unit}"));
        match &self.measure {
            Measure::Tres(tres) | Measure::JobTres(tres) => over(request.count(tres), tres),
            Measure::NodeTres(tres) => over(request.on_node.get(tres).copied().unwrap_or(0), &format_args!("{tres} on one node")),
            Measure::LeastJobTres(tres) => (request.count(tres) < limit).then(|| format!("{} {tres}", request.count(tres))),
            Measure::JobTresMinutes(tres) | Measure::TresRunMinutes(tres) => {
                over(request.minutes(tres).ceil() as u64, &format_args!("{tres}-minutes up to its time limit"))
            }
            Measure::TresMinutes(tres) if is_safe => {
                over(request.minutes(tres).ceil() as u64, &format_args!("{tres}-minutes up to its time limit"))
            }
            Measure::TresMinutes(tres) => (limit == 0 && request.count(tres) > 0).then(|| format!("{} {tres}", request.count(tres))),
            Measure::WallMinutes if is_safe => over(request.time_limit.div_ceil(60), &"minutes up to its time limit"),
            Measure::WallMinutes => (limit == 0).then(|| "some run time".to_owned()),
            Measure::JobSeconds => over(request.time_limit, &"s of time limit"),
            Measure::Jobs | Measure::SubmitJobs => (limit == 0).then(|| "1 job".to_owned()),
        }
    }
}

/// Who asks: a user's chain from the user to the tenant, nearest first, with what each was given.
pub type Chain<'a> = [(&'a AssociationKey, &'a Terms)];

/// All limits that bind a job of `chain`, in the order in which they are checked.
pub fn bounds(partition_qos: Option<&Qos>, qos: Option<&Qos>, chain: &Chain<'_>) -> Vec<Bound> {
    let Some((user, _)) = chain.first() else { return Vec::new() };
    let mut by_rank: Vec<&Qos> = partition_qos.into_iter().chain(qos).collect();
    if qos.is_some_and(|qos| qos.over_partition_qos) {
        by_rank.reverse();
    }
    let factor = qos.map_or(1.0, |qos| qos.limit_factor);
    let mut found = Finder { by_rank, chain, factor, user, bounds: Vec::new() };
    found.counts();
    found.resources();
    found.bounds
}

struct Finder<'a> {
    by_rank: Vec<&'a Qos>,
    chain: &'a Chain<'a>,
    factor: f64,
    user: &'a AssociationKey,
    bounds: Vec<Bound>,
}

type Counts<'a> = fn(&'a Limits) -> &'a TresCounts;

impl<'a> Finder<'a> {
    fn counts(&mut self) {
        self.group_count(Measure::Jobs, ["qos_group_jobs", "assoc_group_jobs"], |l| l.grp_jobs.map(u64::from));
        self.group_count(Measure::SubmitJobs, ["qos_group_submit_jobs", "assoc_group_submit_jobs"], |l| l.grp_submit_jobs.map(u64::from));
        self.group_count(Measure::WallMinutes, ["qos_group_wall_minutes", "assoc_group_wall_minutes"], |l| l.grp_wall_minutes);
        let jobs = self.each(Measure::Jobs, "qos_max_jobs_per_account", false, |q| q.max_jobs_per_account)
            | self.each(Measure::Jobs, "qos_max_jobs_per_user", true, |q| q.max_jobs_per_user);
        if !jobs {
            self.own(Measure::Jobs, "assoc_max_jobs", |terms| terms.max_jobs);
        }
        let submits = self.each(Measure::SubmitJobs, "qos_max_submit_jobs_per_account", false, |q| q.max_submit_jobs_per_account)
            | self.each(Measure::SubmitJobs, "qos_max_submit_jobs_per_user", true, |q| q.max_submit_jobs_per_user);
        if !submits {
            self.own(Measure::SubmitJobs, "assoc_max_submit_jobs", |terms| terms.max_submit_jobs);
        }
        let nearest = self.chain.iter().find_map(|(key, terms)| Some((Scope::Association((*key).clone()), terms.limits.max_wall_seconds?)));
        match self.by_rank.iter().find_map(|q| Some((Scope::Qos(q.name.clone()), q.max_time()?))) {
            Some((scope, limit)) => self.push(Measure::JobSeconds, scope, limit, "qos_max_wall_seconds"),
            None => {
                if let Some((scope, limit)) = nearest {
                    self.push(Measure::JobSeconds, scope, limit, "assoc_max_wall_seconds");
                }
            }
        }
    }

    fn resources(&mut self) {
        self.group(Measure::TresMinutes, ["qos_group_tres_minutes", "assoc_group_tres_minutes"], |l| &l.grp_tres_minutes);
        self.group(Measure::Tres, ["qos_group_tres", "assoc_group_tres"], |l| &l.grp_tres);
        if let Some((tenant, terms)) = self.chain.last() {
            for (tres, limit) in terms.quota.most() {
                self.push(Measure::Tres(tres), Scope::Association((*tenant).clone()), limit, "tenant_quota");
            }
        }
        self.group(Measure::TresRunMinutes, ["qos_group_tres_run_minutes", "assoc_group_tres_run_minutes"], |l| &l.grp_tres_run_minutes);
        self.single(Measure::JobTresMinutes, ["qos_max_tres_minutes_per_job", "assoc_max_tres_minutes_per_job"], |l| {
            &l.max_tres_minutes_per_job
        });
        self.single(Measure::JobTres, ["qos_max_tres_per_job", "assoc_max_tres_per_job"], |l| &l.max_tres_per_job);
        self.single(Measure::NodeTres, ["qos_max_tres_per_node", "assoc_max_tres_per_node"], |l| &l.max_tres_per_node);
        self.of_qos(Measure::LeastJobTres, "qos_min_tres_per_job", |q| &q.min_tres_per_job, |q, _| Scope::Qos(q));
        self.of_qos(Measure::Tres, "qos_max_tres_per_account", |q| &q.max_tres_per_account, account_scope);
        self.of_qos(Measure::Tres, "qos_max_tres_per_user", |q| &q.max_tres_per_user, user_scope);
        let run_minutes = Measure::TresRunMinutes;
        self.of_qos(run_minutes, "qos_max_tres_run_minutes_per_account", |q| &q.max_tres_run_minutes_per_account, account_scope);
        self.of_qos(run_minutes, "qos_max_tres_run_minutes_per_user", |q| &q.max_tres_run_minutes_per_user, user_scope);
    }

    fn push(&mut self, measure: Measure, scope: Scope, limit: u64, code: &'static str) {
        self.bounds.push(Bound { measure, scope, limit, code });
    }

    /// The first QOS that says something, else every association that does.
    fn group_count(&mut self, measure: Measure, [of_qos, of_association]: [&'static str; 2], value: fn(&Limits) -> Option<u64>) {
        match self.by_rank.iter().find_map(|q| Some((Scope::Qos(q.name.clone()), value(&q.limits)?))) {
            Some((scope, limit)) => self.push(measure, scope, limit, of_qos),
            None => {
                for (key, terms) in self.chain {
                    if let Some(limit) = value(&terms.limits) {
                        self.push(measure.clone(), Scope::Association((*key).clone()), limit, of_association);
                    }
                }
            }
        }
    }

    fn group(&mut self, measure: fn(Tres) -> Measure, [of_qos, of_association]: [&'static str; 2], counts: Counts<'a>) {
        for tres in self.said(counts) {
            match self.by_rank.iter().find_map(|q| Some((Scope::Qos(q.name.clone()), *counts(&q.limits).get(&tres)?))) {
                Some((scope, limit)) => self.push(measure(tres), scope, limit, of_qos),
                None => {
                    for (key, terms) in self.chain {
                        if let Some(limit) = counts(&terms.limits).get(&tres) {
                            let limit = self.factored(*limit);
                            self.push(measure(tres.clone()), Scope::Association((*key).clone()), limit, of_association);
                        }
                    }
                }
            }
        }
    }

    fn single(&mut self, measure: fn(Tres) -> Measure, [of_qos, of_association]: [&'static str; 2], counts: Counts<'a>) {
        for tres in self.said(counts) {
            let of_q = self.by_rank.iter().find_map(|q| Some((Scope::Qos(q.name.clone()), *counts(&q.limits).get(&tres)?)));
            let of_a = || self.chain.iter().find_map(|(key, terms)| Some(((*key).clone(), *counts(&terms.limits).get(&tres)?)));
            match of_q {
                Some((scope, limit)) => self.push(measure(tres), scope, limit, of_qos),
                None => {
                    if let Some((key, limit)) = of_a() {
                        let limit = self.factored(limit);
                        self.push(measure(tres), Scope::Association(key), limit, of_association);
                    }
                }
            }
        }
    }

    fn of_qos(
        &mut self,
        measure: fn(Tres) -> Measure,
        code: &'static str,
        counts: fn(&Qos) -> &TresCounts,
        scope: fn(Name, &AssociationKey) -> Scope,
    ) {
        let mut said: Vec<(Tres, u64, Name)> = Vec::new();
        for qos in &self.by_rank {
            for (tres, limit) in counts(qos) {
                if !said.iter().any(|(known, _, _)| known == tres) {
                    said.push((tres.clone(), *limit, qos.name.clone()));
                }
            }
        }
        for (tres, limit, qos) in said {
            let scope = scope(qos, self.user);
            self.push(measure(tres), scope, limit, code);
        }
    }

    /// Of one user or account within a QOS. `true` if a QOS says something.
    fn each(&mut self, measure: Measure, code: &'static str, of_user: bool, value: fn(&Qos) -> Option<u32>) -> bool {
        let Some((qos, limit)) = self.by_rank.iter().find_map(|q| Some((q.name.clone(), value(q)?))) else { return false };
        let scope = if of_user { user_scope(qos, self.user) } else { account_scope(qos, self.user) };
        self.push(measure, scope, u64::from(limit), code);
        true
    }

    /// The user's own count, by the nearest association that says something.
    fn own(&mut self, measure: Measure, code: &'static str, value: fn(&Terms) -> Option<u32>) {
        if let Some(limit) = self.chain.iter().find_map(|(_, terms)| value(terms)) {
            self.push(measure, Scope::Association(self.user.clone()), u64::from(limit), code);
        }
    }

    fn factored(&self, limit: u64) -> u64 {
        (limit as f64 * self.factor) as u64
    }

    /// Resources of which anybody says something, in order.
    fn said(&self, counts: Counts<'a>) -> Vec<Tres> {
        let of_qos = self.by_rank.iter().flat_map(|q| counts(&q.limits).keys());
        let of_associations = self.chain.iter().flat_map(|(_, terms)| counts(&terms.limits).keys());
        let mut said: Vec<Tres> = of_qos.chain(of_associations).cloned().collect();
        said.sort();
        said.dedup();
        said
    }
}

fn user_scope(qos: Name, user: &AssociationKey) -> Scope {
    let name = user.user.clone().unwrap_or_else(|| user.tenant.clone());
    Scope::QosUser { qos, tenant: user.tenant.clone(), user: name }
}

fn account_scope(qos: Name, user: &AssociationKey) -> Scope {
    let account = user.account.clone().unwrap_or_else(|| user.tenant.clone());
    Scope::QosAccount { qos, tenant: user.tenant.clone(), account }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn chain_of(user: Terms, account: Terms) -> Vec<(AssociationKey, Terms)> {
        vec![
            (AssociationKey::user(name("acme"), name("ml"), name("ann")), user),
            (AssociationKey::account(name("acme"), name("ml")), account),
            (AssociationKey::tenant(name("acme")), Terms::default()),
        ]
    }

    fn find(partition: Option<&Qos>, qos: &Qos, chain: &[(AssociationKey, Terms)]) -> Vec<(&'static str, u64)> {
        let chain: Vec<_> = chain.iter().map(|(key, terms)| (key, terms)).collect();
        bounds(partition, Some(qos), &chain).into_iter().map(|b| (b.code, b.limit)).collect()
    }

    fn gpus(limit: u64) -> Terms {
        Terms { limits: Limits { grp_tres: TresCounts::from([(Tres::Gpu, limit)]), ..Limits::default() }, ..Terms::default() }
    }

    #[test]
    fn the_first_place_that_says_something_wins() {
        let partition = Qos { max_jobs_per_user: Some(20), ..Qos::named(name("part")) };
        let user = Terms { max_jobs: Some(4), max_submit_jobs: Some(50), ..Terms::default() };
        let found = find(Some(&partition), &Qos::named(name("normal")), &chain_of(user, Terms::default()));
        assert_eq!(found, [("qos_max_jobs_per_user", 20), ("assoc_max_submit_jobs", 50)]);
    }

    #[test]
    fn group_limits_hold_at_every_level_unless_a_qos_says_something() {
        let chain = chain_of(gpus(16), gpus(8));
        let normal = Qos::named(name("normal"));
        assert_eq!(find(None, &normal, &chain), [("assoc_group_tres", 16), ("assoc_group_tres", 8)], "so 8 is what binds");
        let large = Qos { limits: gpus(32).limits, ..normal.clone() };
        assert_eq!(find(None, &large, &chain), [("qos_group_tres", 32)]);
        let double = Qos { limit_factor: 2.0, ..normal };
        assert_eq!(find(None, &double, &chain), [("assoc_group_tres", 32), ("assoc_group_tres", 16)]);
    }

    #[test]
    fn the_partitions_qos_comes_before_the_jobs_unless_that_is_over_it() {
        let partition = Qos { limits: gpus(8).limits, ..Qos::named(name("part")) };
        let mut job = Qos { limits: gpus(4).limits, ..Qos::named(name("high")) };
        let chain = chain_of(Terms::default(), Terms::default());
        assert_eq!(find(Some(&partition), &job, &chain), [("qos_group_tres", 8)]);
        job.over_partition_qos = true;
        assert_eq!(find(Some(&partition), &job, &chain), [("qos_group_tres", 4)]);
    }

    #[test]
    fn of_one_jobs_limits_the_nearest_association_counts() {
        let wall = |seconds| Terms { limits: Limits { max_wall_seconds: Some(seconds), ..Limits::default() }, ..Terms::default() };
        let normal = Qos::named(name("normal"));
        assert_eq!(find(None, &normal, &chain_of(wall(7200), wall(3600))), [("assoc_max_wall_seconds", 7200)]);
        assert_eq!(find(None, &normal, &chain_of(Terms::default(), wall(3600))), [("assoc_max_wall_seconds", 3600)]);
        let short = Qos { max_time_seconds: Some(60), ..normal };
        assert_eq!(find(None, &short, &chain_of(wall(7200), wall(3600))), [("qos_max_wall_seconds", 60)]);
    }

    #[test]
    fn what_can_never_be_met_is_known_from_the_job_alone() {
        let request = Request { tres: TresCounts::from([(Tres::Gpu, 9)]), on_node: TresCounts::new(), time_limit: 3600 };
        let bound = |measure, limit| Bound { measure, scope: Scope::Qos(name("q")), limit, code: "qos_group_tres" };
        assert_eq!(bound(Measure::Tres(Tres::Gpu), 8).forbids(&request, true).as_deref(), Some("9 gres/gpu"));
        assert_eq!(bound(Measure::Tres(Tres::Gpu), 9).forbids(&request, true), None);
        assert!(bound(Measure::TresMinutes(Tres::Gpu), 539).forbids(&request, true).is_some());
        assert!(bound(Measure::TresMinutes(Tres::Gpu), 539).forbids(&request, false).is_none());
        assert!(bound(Measure::LeastJobTres(Tres::Gpu), 10).forbids(&request, true).is_some());
        assert!(bound(Measure::Jobs, 0).forbids(&request, true).is_some());
    }
}
