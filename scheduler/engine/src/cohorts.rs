//! Cohorts: what tenants borrow of each other's quotas, what holds those that would borrow more than is lent, and whose jobs give way
//! when a tenant wants its own back.
//!
//! A job within its tenant's guarantee is never held here. One beyond it borrows: all that tenants of the cohort then borrow together is
//! at most what the others lend. What was lent is reclaimed by preemption: from tenants that borrow what the job asks for, their
//! cheapest jobs first, and never so many that a tenant would fall below its own guarantee, but for what its last job is too large.
//! (Kueue's rules, `reclaimWithinCohort`.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_model::association::AssociationKey;
use berth_model::limit::{Request, Scope};
use berth_model::quota::Quota;
use berth_model::tres::{Tres, TresCounts};
use berth_model::verdict::Verdict;
use berth_model::{JobId, Name};

use crate::amount::{Micros, NEVER, timestamp};
use crate::engine::World;
use crate::explain::{Words, say};
use crate::ledger::{Ledger, ScopeId};

/// A tenant in a cohort.
#[derive(Clone, Debug)]
pub struct Member {
    pub tenant: Name,
    pub scope: ScopeId,
    pub quota: Quota,
}

#[derive(Clone, Debug)]
pub struct Cohort {
    pub name: Name,
    /// Who counts the jobs of all its tenants.
    pub scope: ScopeId,
    members: Vec<Member>,
    /// What somebody is guaranteed, ascending: of anything else there is nothing to lend.
    resources: Vec<Tres>,
}

/// A party's tenant within its cohort.
#[derive(Clone, Debug)]
pub struct Pool {
    pub cohort: Arc<Cohort>,
    member: usize,
}

/// All cohorts, by the tenants in them.
#[derive(Clone, Debug, Default)]
pub struct Cohorts {
    by_tenant: BTreeMap<Name, Pool>,
}

impl Cohorts {
    pub fn build(world: &World, ledger: &mut Ledger) -> Self {
        let mut members: BTreeMap<&Name, Vec<Member>> = BTreeMap::new();
        for association in world.associations.values().filter(|association| association.key.account.is_none()) {
            let quota = &association.terms.quota;
            if let Some(cohort) = &quota.cohort {
                let tenant = association.key.tenant.clone();
                let scope = ledger.id(&Scope::Association(AssociationKey::tenant(tenant.clone())));
                members.entry(cohort).or_default().push(Member { tenant, scope, quota: quota.clone() });
            }
        }
        let mut by_tenant = BTreeMap::new();
        for (name, members) in members {
            let resources: BTreeSet<&Tres> = members.iter().flat_map(|member| member.quota.guaranteed.keys()).collect();
            let resources = resources.into_iter().cloned().collect();
            let cohort = Arc::new(Cohort { name: name.clone(), scope: ledger.id(&Scope::Cohort(name.clone())), members, resources });
            for (member, tenant) in cohort.members.iter().map(|member| member.tenant.clone()).enumerate() {
                by_tenant.insert(tenant, Pool { cohort: cohort.clone(), member });
            }
        }
        Cohorts { by_tenant }
    }

    pub fn is_empty(&self) -> bool {
        self.by_tenant.is_empty()
    }

    pub fn pool(&self, tenant: &Name) -> Option<&Pool> {
        self.by_tenant.get(tenant)
    }
}

/// What tenants of a cohort hold beyond their guarantees that a job of another may have back.
#[derive(Clone, Debug, Default)]
pub struct Reclaim {
    /// Beyond the guarantee, of what the job asks for.
    excess: BTreeMap<Name, TresCounts>,
}

impl Reclaim {
    pub fn is_empty(&self) -> bool {
        self.excess.is_empty()
    }

    /// A job of this tenant that holds so much may have to give way.
    pub fn reaches(&self, tenant: &Name, held: &TresCounts) -> bool {
        let holds = |tres: &Tres| held.get(tres).is_some_and(|count| *count > 0);
        self.excess.get(tenant).is_some_and(|excess| excess.iter().any(|(tres, count)| *count > 0 && holds(tres)))
    }

    /// Takes such a job: the tenant borrows so much less. `false` if it does not borrow any more.
    pub fn take(&mut self, tenant: &Name, held: &TresCounts) -> bool {
        let is_reached = self.reaches(tenant, held);
        if is_reached {
            self.give_back(tenant, held);
        }
        is_reached
    }

    fn give_back(&mut self, tenant: &Name, held: &TresCounts) {
        for (tres, count) in self.excess.get_mut(tenant).into_iter().flatten() {
            *count = count.saturating_sub(held.get(tres).copied().unwrap_or(0));
        }
    }
}

impl Pool {
    fn own(&self) -> &Member {
        &self.cohort.members[self.member]
    }

    /// What holds one more job that asks for this.
    pub fn cause(&self, ledger: &mut Ledger, request: &Request, now: Micros) -> Option<(ScopeId, Verdict)> {
        let cohort = &*self.cohort;
        cohort.resources.iter().find_map(|tres| {
            let asked = request.count(tres);
            let held: Vec<u64> = cohort.members.iter().map(|member| ledger.held(member.scope, tres)).collect();
            let own = held[self.member] + asked;
            let beyond = self.own().quota.borrows(tres, own);
            if asked == 0 || beyond == 0 {
                return None;
            }
            let others = || cohort.members.iter().zip(&held).enumerate().filter(|(i, _)| *i != self.member).map(|(_, other)| other);
            let lent: u64 = others().map(|(other, held)| other.quota.lends(tres, *held)).sum();
            let borrowed: u64 = others().map(|(other, held)| other.quota.borrows(tres, *held)).sum();
            let over = (borrowed + beyond).saturating_sub(lent);
            if over == 0 {
                return None;
            }
            let guaranteed = self.own().quota.guaranteed(tres);
            let need = format!("{asked} {tres}, which makes {beyond} beyond the {guaranteed} of {}", self.own().tenant);
            let most: u64 = others().map(|(other, _)| other.quota.lends(tres, 0)).sum();
            let alone = self.own().quota.borrows(tres, asked);
            let verdict = self.say().need(need);
            if alone > most {
                let verdict = verdict.have(format!("the others never lend more than {most} {tres}"));
                let advice = "ask for less, or ask an administrator to raise the quota or what others lend";
                return Some((cohort.scope, verdict.advice(advice)));
            }
            let all = borrowed + self.own().quota.borrows(tres, held[self.member]);
            let verdict = verdict.have(format!("the others lend {lent} {tres} now, and {all} are borrowed"));
            Some((cohort.scope, self.held_by(verdict, ledger, tres, over, now)))
        })
    }

    fn say(&self) -> Verdict {
        let rule = "tenants borrow together no more than the others of their cohort lend";
        say("cohort_quota", rule, format!("cohort/{}", self.cohort.name))
    }

    /// Names those who borrow, and when enough of it has come back.
    fn held_by(&self, verdict: Verdict, ledger: &mut Ledger, tres: &Tres, over: u64, now: Micros) -> Verdict {
        let borrowers: Vec<ScopeId> = self
            .cohort
            .members
            .iter()
            .map(|member| (member, ledger.held(member.scope, tres)))
            .filter_map(|(member, held)| (member.quota.borrows(tres, held) > 0).then_some(member.scope))
            .collect();
        let of_borrower = |scopes: &[ScopeId]| scopes.iter().any(|scope| borrowers.contains(scope));
        let (holders, clears) =
            ledger.freed(self.cohort.scope, over, |run| if of_borrower(&run.scopes) { run.count(tres) } else { 0 }, now);
        let verdict = verdict.holders(holders);
        let verdict = verdict.advice(
            "nothing to do: it may start when what is borrowed comes back, or others use less of their own; a smaller job may start sooner",
        );
        match clears.filter(|at| *at < NEVER) {
            Some(at) => verdict.clears(timestamp(at.max(now))),
            None => verdict,
        }
    }

    /// What a job that asks for this may have back from the others: nothing if it goes beyond its tenant's guarantee. `claimed` is what jobs
    /// of the tenant wait for that have reclaimed already; `is_leaving` says of a job that it makes room already.
    pub fn reclaim(&self, ledger: &Ledger, request: &Request, claimed: Option<&TresCounts>, is_leaving: impl Fn(JobId) -> bool) -> Reclaim {
        let claimed = |tres: &Tres| claimed.and_then(|claimed| claimed.get(tres)).copied().unwrap_or(0);
        let own = self.own();
        let asked: Vec<&Tres> = self.cohort.resources.iter().filter(|tres| request.count(tres) > 0).collect();
        let is_within = |tres: &&&Tres| ledger.held(own.scope, tres) + claimed(tres) + request.count(tres) <= own.quota.guaranteed(tres);
        let mut reclaim = Reclaim::default();
        if asked.is_empty() || !asked.iter().all(|tres| is_within(&tres)) {
            return reclaim;
        }
        for (_, member) in self.cohort.members.iter().enumerate().filter(|(i, _)| *i != self.member) {
            let excess = |tres: &&Tres| ((*tres).clone(), member.quota.borrows(tres, ledger.held(member.scope, tres)));
            let excess: TresCounts = asked.iter().map(excess).filter(|(_, count)| *count > 0).collect();
            if !excess.is_empty() {
                reclaim.excess.insert(member.tenant.clone(), excess);
                for (_, run) in ledger.runs(member.scope).filter(|((job, _, _), _)| is_leaving(*job)) {
                    reclaim.give_back(&member.tenant, &run.tres);
                }
            }
        }
        reclaim.excess.retain(|_, excess| excess.values().any(|count| *count > 0));
        reclaim
    }

    /// Who counts its tenant's jobs.
    pub fn scope(&self) -> ScopeId {
        self.own().scope
    }
}
