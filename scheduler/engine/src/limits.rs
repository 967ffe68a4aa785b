//! Limits within a pass: whether they let a job start now, and what is said if they do not.
//!
//! Before a place is looked for, by the least that the job takes; when it has a place, by what it takes there: whole nodes may be more
//! than was asked for, and a limit on nodes asks which they are. A job that limits hold gets no planned start and is no obstacle.

use std::collections::HashMap;
use std::sync::Arc;

use berth_model::limit::Request;
use berth_model::tres::{Charge, Tres, TresCounts};
use berth_model::verdict::Verdict;
use berth_model::{NodeName, license};

use crate::accounts::PartyId;
use crate::amount::{Micros, SECOND};
use crate::backfill::Queued;
use crate::fit::Fit;
use crate::keys::KeyId;
use crate::ledger::{ScopeId, Wish};
use crate::pass::{Found, Pass};

/// Limits that hold a job, each with who counts.
pub type Causes = Arc<[(ScopeId, Verdict)]>;

/// What is remembered within a pass.
#[derive(Default)]
pub struct Memo {
    /// What was found for jobs of a party, key and length, as of a version of the ledger.
    causes: HashMap<(PartyId, KeyId, Micros, bool), (u64, Causes)>,
    /// The least that jobs of a key and length take: a key's partition decides the billing.
    requests: HashMap<(KeyId, Micros, bool), Arc<Request>>,
}

impl Pass<'_> {
    /// What holds one more job, wherever it may run.
    pub fn limits(&mut self, queued: &Queued) -> Causes {
        if !self.accounts.party(queued.party).is_bound() {
            return Arc::default();
        }
        let index = (queued.party, queued.key, queued.length, self.has_one_set(queued));
        let version = self.accounts.ledger.version;
        if let Some((_, causes)) = self.memo.causes.get(&index).filter(|(known, _)| *known == version) {
            return causes.clone();
        }
        let request = self.request(queued);
        let usage_factor = self.accounts.party(queued.party).usage_factor;
        let causes = self.ask(queued.party, &request, &[], usage_factor);
        self.memo.causes.insert(index, (version, causes.clone()));
        causes
    }

    /// The least that a job takes.
    pub fn request(&mut self, queued: &Queued) -> Arc<Request> {
        let index = (queued.key, queued.length, self.has_one_set(queued));
        if let Some(known) = self.memo.requests.get(&index) {
            return known.clone();
        }
        let key = &self.keys.entries[queued.key as usize].key;
        let (shape, mut tres) = (&key.shape, key.shape.least_counts());
        if index.2 {
            license::charge(&key.licenses, &mut tres);
        }
        let tres = self.accounts.charge(queued.party, tres).tres;
        let request = Arc::new(Request { tres, on_node: shape.least_on_node(), time_limit: (queued.length / SECOND) as u64 });
        self.memo.requests.insert(index, request.clone());
        request
    }

    /// The same licences whatever way it goes.
    fn has_one_set(&self, queued: &Queued) -> bool {
        let licenses = |key: KeyId| &self.keys.entries[key as usize].key.licenses;
        queued.others.iter().all(|key| licenses(*key) == licenses(queued.key))
    }

    /// What the job takes at its place; `Err`: what holds it there.
    pub fn charge(&mut self, queued: &Queued, fit: &Fit, found: &Found) -> Result<Charge, Causes> {
        let mut tres = TresCounts::new();
        let mut on_node = TresCounts::new();
        for (at, share) in &found.parts {
            let amount = self.own(found.key, fit, *at, *share);
            let class = self.fleet.class(*at);
            let kinds = class.kinds.iter().zip(amount.gpus).filter(|(_, count)| *count > 0);
            let mut counts = vec![(Tres::Cpu, amount.cpus.into()), (Tres::Mem, amount.memory >> 20), (Tres::Node, 1)];
            match self.keys.entries[found.key as usize].key.shape.gpu_share() {
                Some(share) => counts.push((share.of.tres(), share.count.into())),
                None => {
                    counts.push((Tres::Gpu, amount.gpu_count().into()));
                    counts.extend(kinds.map(|(kind, count)| (Tres::GpuType(kind.clone()), count.into())));
                }
            }
            for (which, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                let most = on_node.entry(which.clone()).or_insert(0);
                *most = (*most).max(count);
                *tres.entry(which).or_insert(0) += count;
            }
        }
        license::charge(&self.keys.entries[found.key as usize].key.licenses, &mut tres);
        let charge = self.accounts.charge(queued.party, tres);
        if !self.accounts.party(queued.party).is_bound() {
            return Ok(charge);
        }
        let nodes: Vec<NodeName> = found.parts.iter().map(|(at, _)| self.fleet.nodes[*at as usize].node.name.clone()).collect();
        let request = Request { tres: charge.tres.clone(), on_node, time_limit: (queued.length / SECOND) as u64 };
        let causes = self.ask(queued.party, &request, &nodes, charge.usage_factor);
        if causes.is_empty() { Ok(charge) } else { Err(causes) }
    }

    fn ask(&mut self, party: PartyId, request: &Request, nodes: &[NodeName], usage_factor: f64) -> Causes {
        let rules = self.accounts.party(party).rules.clone();
        let wish = Wish { request, nodes, usage_factor, is_safe: self.accounts.is_safe, now: self.now };
        let pool = self.accounts.party(party).pool.clone();
        let mut causes = self.accounts.ledger.causes(&rules, &wish);
        causes.extend(pool.and_then(|pool| pool.cause(&mut self.accounts.ledger, request, self.now)));
        causes.into()
    }
}
