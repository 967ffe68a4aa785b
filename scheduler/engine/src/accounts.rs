//! Accounts: who asks for what, under which limits, with which factors.
//!
//! Jobs of one user and account under one QOS in one partition are a party. What a party's jobs have in common, fair share and the
//! limits that bind, is worked out once a party, so that a job costs a lookup. Changes of associations, QOS, partitions and policy
//! make all of it anew with the next full plan; ends and starts only move sums.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_model::association::{AssociationKey, Share, UsageKey, Used};
use berth_model::event::{JobSnapshot, RunningAttempt};
use berth_model::limit::{Scope, bounds};
use berth_model::policy::Billing;
use berth_model::resources::NodeAllocation;
use berth_model::tres::{Charge, Tres, TresCounts, Weight, bill};
use berth_model::{JobId, Name, NodeName};

use crate::amount::{Micros, micros, span};
use crate::cohorts::{Cohorts, Pool};
use crate::engine::World;
use crate::ledger::{Ledger, Rule, Run, ScopeId};
use crate::shares::Tree;
use crate::usage::{Decay, Usage, add_all};

pub type PartyId = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyKey {
    pub user: AssociationKey,
    pub qos: Name,
    pub partition: Name,
}

/// The parts of the priority that all jobs of a party share, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    pub fairshare: f64,
    pub association: f64,
}

#[derive(Clone, Debug)]
pub struct Party {
    pub key: Arc<PartyKey>,
    uses: u32,
    pub factors: Factors,
    pub rules: Arc<[Rule]>,
    /// All who count its jobs.
    scopes: Arc<[ScopeId]>,
    pub usage_factor: f64,
    partition_qos: Option<Name>,
    billing_weights: Arc<BTreeMap<Tres, Weight>>,
    /// Its tenant's place in a cohort.
    pub pool: Option<Pool>,
}

impl Party {
    /// Something limits its jobs.
    pub fn is_bound(&self) -> bool {
        !self.rules.is_empty() || self.pool.is_some()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Accounts {
    parties: Vec<Party>,
    ids: HashMap<Arc<PartyKey>, PartyId>,
    free: Vec<PartyId>,
    pub usage: Usage,
    pub ledger: Ledger,
    tree: Tree,
    billing: Billing,
    pub is_safe: bool,
    /// Somebody came or went.
    is_tree_stale: bool,
    /// Limits, or who is bound by them, have changed.
    are_rules_stale: bool,
    /// Parties of new users, of whose limits nothing is known yet.
    unbound: Vec<PartyId>,
    /// Some limit is set: sums are kept.
    has_limits: bool,
    pub cohorts: Cohorts,
}

impl Accounts {
    /// Everything is to be worked out anew by the next full plan.
    pub fn forget(&mut self) {
        self.are_rules_stale = true;
        self.is_tree_stale = true;
    }

    /// The party of a job. `true`: its user is new, so that only a full plan knows what it is due.
    pub fn acquire(&mut self, world: &World, job: &JobSnapshot) -> (PartyId, bool) {
        let user = AssociationKey::user(job.tenant.clone(), job.account.clone(), job.user.clone());
        let key = PartyKey { user, qos: job.qos.clone(), partition: job.partition.clone() };
        if let Some(id) = self.ids.get(&key) {
            self.parties[*id as usize].uses += 1;
            return (*id, false);
        }
        let is_new = !self.tree.has(&key.user);
        self.is_tree_stale |= is_new;
        let key = Arc::new(key);
        let party = Party {
            key: key.clone(),
            uses: 1,
            factors: Factors::default(),
            rules: Arc::default(),
            scopes: Arc::default(),
            usage_factor: 1.0,
            partition_qos: None,
            billing_weights: Arc::default(),
            pool: None,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.parties[id as usize] = party;
                id
            }
            None => {
                self.parties.push(party);
                self.parties.len() as PartyId - 1
            }
        };
        self.ids.insert(key, id);
        if is_new {
            // Its chain is not known before the tree is built.
            self.unbound.push(id);
        } else if !self.are_rules_stale {
            self.bind(world, id);
            self.rate(id);
        }
        (id, is_new)
    }

    pub fn release(&mut self, world: &World, id: PartyId) {
        let party = &mut self.parties[id as usize];
        party.uses -= 1;
        if party.uses == 0 {
            let key = party.key.clone();
            self.ids.remove(&key);
            self.free.push(id);
            self.is_tree_stale |= !world.associations.contains_key(&key.user);
        }
    }

    pub fn party(&self, id: PartyId) -> &Party {
        &self.parties[id as usize]
    }

    pub fn factors(&self) -> Vec<Factors> {
        self.parties.iter().map(|party| party.factors).collect()
    }

    /// Works out everything that a full plan needs.
    pub fn settle(&mut self, world: &World, now: Micros) {
        self.usage.close(now, |job, attempt| !is_live(world, job, attempt), |_| ());
        if self.is_tree_stale {
            let present = self.ids.keys().map(|key| &key.user);
            self.tree = Tree::build(&world.associations, present.chain(self.usage.users()));
            self.is_tree_stale = false;
        }
        if self.are_rules_stale {
            self.rebind(world);
        }
        for id in std::mem::take(&mut self.unbound) {
            if self.parties[id as usize].uses > 0 {
                self.bind(world, id);
            }
        }
        let decay = Decay::at(&world.policy, now);
        let usage = &self.usage;
        self.tree.rank(world.policy.fair_share_rule, |take| usage.billing(&decay, take));
        (0..self.parties.len() as PartyId).for_each(|id| self.rate(id));
        self.add_up(&decay, now);
    }

    /// For a quick plan: what has ended since the last plan is added to the sums of use. The sums stay as of the last full plan, and so
    /// does what runs may still use: together they tell of each run what it has used and may use.
    pub fn refresh(&mut self, world: &World, now: Micros) {
        let (ledger, tree) = (&mut self.ledger, &self.tree);
        let since = ledger.clock();
        let counts_use = ledger.counts_use();
        self.usage.close(
            now,
            |job, attempt| !is_live(world, job, attempt),
            |closed| {
                if counts_use {
                    each_scope(tree, closed.key, ledger, |used| closed.add_since(since, used));
                }
            },
        );
        if !counts_use {
            self.ledger.set_clock(now);
        }
    }

    /// The share tree as of the last full plan.
    pub fn shares(&self) -> Vec<Share> {
        self.tree.lines()
    }

    fn rebind(&mut self, world: &World) {
        self.are_rules_stale = false;
        self.unbound.clear();
        self.billing = world.policy.billing;
        self.is_safe = world.policy.safe_limits;
        self.has_limits = self.tree.has_limits() || world.qos.values().any(|qos| qos.has_limits());
        self.ledger.clear();
        self.cohorts = Cohorts::build(world, &mut self.ledger);
        let mut used: Vec<(Arc<PartyKey>, PartyId)> = self.ids.iter().map(|(key, id)| (key.clone(), *id)).collect();
        used.sort_unstable();
        used.into_iter().for_each(|(_, id)| self.bind(world, id));
        for entry in world.jobs.values() {
            if let Some(attempt) = entry.job.attempt.as_ref().filter(|_| entry.job.state.is_active()) {
                self.count(entry.party, &entry.job, attempt);
            }
        }
        for ((job, index), start) in &world.unconfirmed {
            if let Some(entry) = world.jobs.get(job) {
                let length = span(entry.job.time_limit);
                self.start(entry.party, (*job, *index), &start.charge, &start.nodes, start.end.saturating_sub(length), length);
            }
        }
    }

    /// What binds a party.
    fn bind(&mut self, world: &World, id: PartyId) {
        let key = self.parties[id as usize].key.clone();
        let partition = world.partitions.get(&key.partition);
        let qos = world.qos.get(&key.qos);
        let partition_qos = partition.and_then(|p| p.qos.as_ref()).and_then(|name| world.qos.get(name)).filter(|q| q.name != key.qos);
        let mut scopes: Vec<ScopeId> = Vec::new();
        let mut rules: Arc<[Rule]> = Arc::default();
        let pool = self.cohorts.pool(&key.user.tenant).cloned();
        scopes.extend(pool.as_ref().map(|pool| pool.cohort.scope));
        if self.has_limits {
            let chain = self.tree.chain(&key.user);
            rules = self.ledger.rules(bounds(partition_qos, qos, &chain));
            for (place, _) in &chain {
                scopes.push(self.ledger.id(&Scope::Association((*place).clone())));
            }
            for name in [Some(&key.qos), partition_qos.map(|q| &q.name)].into_iter().flatten() {
                let (tenant, account, user) = (&key.user.tenant, &key.user.account, &key.user.user);
                scopes.push(self.ledger.id(&Scope::Qos(name.clone())));
                if let (Some(account), Some(user)) = (account, user) {
                    let of = (name.clone(), tenant.clone());
                    scopes.push(self.ledger.id(&Scope::QosUser { qos: of.0.clone(), tenant: of.1.clone(), user: user.clone() }));
                    scopes.push(self.ledger.id(&Scope::QosAccount { qos: of.0, tenant: of.1, account: account.clone() }));
                }
            }
        }
        let party = &mut self.parties[id as usize];
        party.rules = rules;
        party.pool = pool;
        party.scopes = scopes.into();
        party.usage_factor = qos.map_or(1.0, |q| q.usage_factor);
        party.partition_qos = partition_qos.map(|q| q.name.clone());
        party.billing_weights = partition.map(|p| Arc::new(p.billing_weights.clone())).unwrap_or_default();
    }

    fn rate(&mut self, id: PartyId) {
        let party = &mut self.parties[id as usize];
        let user = &party.key.user;
        party.factors = Factors { fairshare: self.tree.factor(user), association: self.tree.association_factor(user) };
    }

    fn add_up(&mut self, decay: &Decay, now: Micros) {
        if !self.ledger.counts_use() {
            return self.ledger.set_clock(now);
        }
        self.ledger.clear_used(now);
        let (ledger, tree) = (&mut self.ledger, &self.tree);
        self.usage.sums(decay, |key, sum| each_scope(tree, key, ledger, |used| add_all(used, sum)));
    }

    /// An attempt that holds something counts.
    pub fn begin(&mut self, party: PartyId, job: &JobSnapshot, attempt: &RunningAttempt) {
        self.count(party, job, attempt);
        if let Some(started) = attempt.started_at {
            let key = &self.parties[party as usize].key;
            let key = UsageKey { user: key.user.clone(), qos: key.qos.clone(), partition_qos: attempt.charge.partition_qos.clone() };
            self.usage.begin(job.id, attempt.number, key, attempt.charge.clone(), micros(started), &attempt.past);
        }
    }

    /// It holds nothing any more. Returns who counted it.
    pub fn end(&mut self, job: JobId, attempt: u32) -> Arc<[ScopeId]> {
        self.usage.end(job, attempt);
        self.ledger.remove(&(job, None, false))
    }

    fn count(&mut self, party: PartyId, job: &JobSnapshot, attempt: &RunningAttempt) {
        // Somebody new who runs already: whoever counts it is told when all is bound anew.
        self.are_rules_stale |= self.unbound.contains(&party);
        let run = Run {
            scopes: self.parties[party as usize].scopes.clone(),
            tres: attempt.charge.tres.clone(),
            nodes: attempt.nodes.iter().map(|part| part.node.clone()).collect(),
            begins: attempt.started_at.map(micros),
            length: span(job.time_limit),
            usage_factor: attempt.charge.usage_factor,
        };
        self.ledger.add((job.id, None, false), run);
    }

    /// A start counts from now on.
    pub fn start(
        &mut self,
        party: PartyId,
        (job, index): (JobId, Option<u32>),
        charge: &Charge,
        nodes: &[NodeAllocation],
        begins: Micros,
        length: Micros,
    ) {
        let nodes = nodes.iter().map(|part| part.node.clone()).collect();
        self.count_start(party, (job, index), charge, nodes, begins, length);
    }

    /// The same, given the names of its nodes.
    pub fn count_start(
        &mut self,
        party: PartyId,
        (job, index): (JobId, Option<u32>),
        charge: &Charge,
        nodes: Vec<NodeName>,
        begins: Micros,
        length: Micros,
    ) {
        let run = Run {
            scopes: self.parties[party as usize].scopes.clone(),
            tres: charge.tres.clone(),
            nodes,
            begins: Some(begins),
            length,
            usage_factor: charge.usage_factor,
        };
        self.ledger.add((job, index, true), run);
    }

    /// What a party's job is charged for that holds `tres`.
    pub fn charge(&self, party: PartyId, mut tres: TresCounts) -> Charge {
        let party = &self.parties[party as usize];
        let billing = bill(&party.billing_weights, self.billing, &tres);
        tres.insert(Tres::Billing, billing as u64);
        Charge { tres, billing, usage_factor: party.usage_factor, partition_qos: party.partition_qos.clone() }
    }
}

/// The sums of use that a key's use goes into.
fn each_scope(tree: &Tree, key: &UsageKey, ledger: &mut Ledger, mut add: impl FnMut(&mut Used)) {
    let of_tree = tree.chain(&key.user).into_iter().map(|(place, _)| Scope::Association(place.clone()));
    let of_qos = [Some(&key.qos), key.partition_qos.as_ref()].into_iter().flatten().map(|name| Scope::Qos(name.clone()));
    for scope in of_tree.chain(of_qos) {
        if let Some(id) = ledger.known(&scope) {
            add(ledger.used(id));
        }
    }
}

/// The attempt still holds something.
fn is_live(world: &World, job: JobId, attempt: u32) -> bool {
    let entry = world.jobs.get(&job).filter(|entry| entry.job.state.is_active());
    entry.and_then(|entry| entry.job.attempt.as_ref()).is_some_and(|held| held.number == attempt)
}
