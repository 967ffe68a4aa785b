//! Claims within a pass: making one by preemption, and keeping those made, so that nobody else gets the nodes that victims leave.
//!
//! A claim takes the job's part of its nodes off the profile from now on, not only from when the victims end, so that nothing slips in
//! when they end sooner. It goes before all other jobs. It is void when one of its nodes is out of service, or held by somebody for
//! longer than the victims; then the job waits as any other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use berth_model::JobId;
use berth_model::NodeName;
use berth_model::preemption::{Claim, PreemptMode};
use berth_model::tres::TresCounts;

use crate::accounts::PartyId;
use crate::amount::{Micros, SECOND, micros, timestamp};
use crate::backfill::{Queued, Wait};
use crate::cohorts::{Pool, Reclaim};
use crate::engine::Entry;
use crate::fit::Fit;
use crate::fleet::NodeIdx;
use crate::keys::KeyId;
use crate::ledger::ScopeId;
use crate::pass::{Found, Pass};
use crate::plan::{NewClaim, Plan, Preemption};
use crate::preempt::{self, Chosen};
use crate::shape::even_share;
use crate::victims::Rules;

/// Jobs for which victims are looked for in a plan, at the most.
const MOST_TRIES: usize = 32;

/// What a pass that may preempt remembers.
pub struct Preempting<'a> {
    rules: Rules<'a>,
    tries: usize,
    /// The shortest length for which no victims were found.
    failed: HashMap<(KeyId, PartyId), Micros>,
    /// Preempted in this pass.
    taken: BTreeSet<JobId>,
    /// Limits that may let one more of their jobs start: that one has a claim.
    scopes: BTreeSet<ScopeId>,
    /// What jobs with claims will hold, by who counts their tenants' jobs.
    claimed: BTreeMap<ScopeId, TresCounts>,
    preemptions: Vec<Preemption>,
    claims: Vec<NewClaim>,
}

impl<'a> Preempting<'a> {
    pub fn new(rules: Rules<'a>) -> Self {
        Preempting {
            rules,
            tries: 0,
            failed: HashMap::new(),
            taken: BTreeSet::new(),
            scopes: BTreeSet::new(),
            claimed: BTreeMap::new(),
            preemptions: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// The one may preempt the other.
    pub fn outranks(&self, job: JobId, other: JobId) -> bool {
        let of = |job| self.rules.world.jobs.get(&job).map(|entry: &Entry| &entry.job);
        of(job).zip(of(other)).is_some_and(|(job, other)| self.rules.outranks(job, other))
    }

    pub fn tell(self, plan: &mut Plan) {
        plan.preemptions = self.preemptions;
        plan.claims = self.claims;
    }
}

/// Where a claim stands.
pub enum Kept {
    /// All nodes are free: the job can start there.
    Ready(Found),
    Waits(Wait),
    Void,
}

impl Pass<'_> {
    /// Preempts for a job that cannot start now; `planned` is when it can otherwise, `latest` when it must. Nothing if no victims are found.
    pub fn preempt(&mut self, queued: &Queued, key: KeyId, fit: &Fit, planned: Option<Micros>, latest: Micros) -> Option<Wait> {
        let chosen = self.find_victims(queued, key, fit, planned, latest)?;
        let found = self.gang(key, chosen.nodes, chosen.ready_at);
        if self.charge(queued, fit, &found).is_err() || !self.has_licenses(key, chosen.ready_at, queued.length) {
            return None;
        }
        let names: Vec<NodeName> = found.parts.iter().map(|(at, _)| self.fleet.nodes[*at as usize].node.name.clone()).collect();
        let gets: BTreeSet<&NodeName> = names.iter().collect();
        let victims: Vec<JobId> = chosen.victims.iter().map(|victim| victim.job).collect();
        let rules = self.accounts.party(queued.party).rules.clone();
        self.preempting.as_mut()?.scopes.extend(rules.iter().map(|rule| rule.scope));
        self.note_claimed(queued);
        for victim in chosen.victims {
            let preempting = self.preempting.as_mut()?;
            let attempt = preempting.rules.world.jobs.get(&victim.job).and_then(|entry| entry.job.attempt.as_ref());
            let held = attempt.map(|attempt| attempt.nodes.clone()).unwrap_or_default();
            let theirs: Vec<NodeName> = held.iter().map(|held| held.node.clone()).collect();
            preempting.taken.insert(victim.job);
            preempting.preemptions.push(Preemption {
                victim: victim.job,
                attempt: victim.attempt,
                mode: victim.mode,
                for_job: queued.job,
                nodes: theirs.iter().filter(|node| gets.contains(node)).cloned().collect(),
                at: timestamp(victim.kill_at),
                reclaimed: victim.is_reclaimed,
            });
            match victim.mode {
                PreemptMode::Suspend => self.suspend(victim.job, &held, victim.kill_at),
                _ => self.shorten(victim.job, &theirs, victim.kill_at),
            }
        }
        let preempting = self.preempting.as_mut()?;
        let claim = Claim { nodes: names, victims: victims.clone(), ready_at: timestamp(chosen.ready_at) };
        preempting.claims.push(NewClaim { job: queued.job, claim });
        Some(self.hold_for(queued, fit, &found, victims))
    }

    /// Licences are claimed from now on, as nodes are.
    fn has_licenses(&self, key: KeyId, ready_at: Micros, length: Micros) -> bool {
        self.licenses.fit(&self.keys.entries[key as usize].key.licenses, self.now, ready_at.saturating_add(length))
    }

    fn find_victims(&mut self, queued: &Queued, key: KeyId, fit: &Fit, planned: Option<Micros>, latest: Micros) -> Option<Chosen> {
        let rules = self.accounts.party(queued.party).rules.clone();
        let preempting = self.preempting.as_ref()?;
        let victim_rules = preempting.rules;
        let job = &victim_rules.world.jobs.get(&queued.job)?.job;
        let index = (key, queued.party);
        // Victims are chosen node by node, not by what nodes are counted as.
        let is_counted = !fit.candidates.counted.is_empty();
        let has_failed = preempting.failed.get(&index).is_some_and(|failed| *failed <= queued.length);
        let is_limited = rules.iter().any(|rule| preempting.scopes.contains(&rule.scope));
        if is_counted || has_failed || is_limited || preempting.tries == MOST_TRIES {
            return None;
        }
        // Looks at all that the cohort runs: only for those that may get something by it.
        let reclaim = self.reclaim(queued);
        if !victim_rules.may_preempt(job) && reclaim.is_empty() {
            return None;
        }
        let preempting = self.preempting.as_mut()?;
        preempting.tries += 1;
        let ground = preempt::Ground {
            fleet: self.fleet,
            profile: self.profile,
            rules: preempting.rules,
            taken: &preempting.taken,
            reclaim: &reclaim,
        };
        let Some(chosen) = preempt::choose(&ground, job, fit, queued.length) else {
            preempting.failed.insert(index, queued.length);
            return None;
        };
        let is_in_time = chosen.ready_at <= latest && planned.is_none_or(|planned| chosen.ready_at < planned);
        is_in_time.then_some(chosen)
    }

    /// What the job's tenant may have back for it.
    fn reclaim(&mut self, queued: &Queued) -> Reclaim {
        let Some(pool) = self.accounts.party(queued.party).pool.clone() else { return Reclaim::default() };
        let request = self.request(queued);
        let Some(preempting) = self.preempting.as_ref().filter(|preempting| preempting.rules.reclaims()) else { return Reclaim::default() };
        let is_leaving = |job: JobId| {
            let is_told = |entry: &Entry| entry.job.attempt.as_ref().is_some_and(|attempt| attempt.preempted.is_some());
            preempting.taken.contains(&job) || preempting.rules.world.jobs.get(&job).is_some_and(is_told)
        };
        pool.reclaim(&self.accounts.ledger, &request, preempting.claimed.get(&pool.scope()), is_leaving)
    }

    /// What the job of a claim will hold counts against its tenant's guarantee.
    fn note_claimed(&mut self, queued: &Queued) {
        let Some(scope) = self.accounts.party(queued.party).pool.as_ref().map(Pool::scope) else { return };
        let request = self.request(queued);
        if let Some(preempting) = &mut self.preempting {
            let claimed = preempting.claimed.entry(scope).or_default();
            request.tres.iter().for_each(|(tres, count)| *claimed.entry(tres.clone()).or_insert(0) += count);
        }
    }

    /// Where the claim of a job stands now; one that waits is taken off the profile.
    pub fn keep(&mut self, queued: &Queued, claim: &Claim, key: KeyId, fit: &Fit) -> Kept {
        let via = self.keys.entries[key as usize].key.ground.reservation.as_ref().and_then(|name| self.fleet.via(name));
        let seen = |name| self.fleet.find(name).and_then(|real| self.fleet.seen_by(real, via));
        let nodes: Option<Vec<NodeIdx>> = claim.nodes.iter().map(seen).collect();
        let Some(mut nodes) = nodes else { return Kept::Void };
        nodes.sort_unstable();
        let is_plain = fit.candidates.counted.is_empty();
        let variant = fit.variants.iter().find(|variant| is_plain && variant.nodes as usize == nodes.len());
        let Some(variant) = variant else { return Kept::Void };
        let is_candidate = |at: &NodeIdx| fit.candidates.usable.binary_search(at).is_ok();
        let mut ready_at = self.now;
        let mut needs = Vec::with_capacity(nodes.len());
        for at in &nodes {
            let class = self.fleet.nodes[*at as usize].class as usize;
            let Some(need) = variant.needs.get(class).copied().flatten().filter(|_| is_candidate(at)) else { return Kept::Void };
            ready_at = ready_at.max(self.profile.free_of_holders(self.fleet, *at, &need, self.now));
            needs.push((*at, need));
        }
        // What is planned there is planned for others with claims, or in a quick plan for anybody.
        let is_planned = needs.iter().any(|(at, need)| !self.profile.fits(*at, need, ready_at, queued.length));
        let is_planned = is_planned || !self.has_licenses(key, ready_at, queued.length);
        if is_planned || ready_at > micros(claim.ready_at).max(self.now.saturating_add(SECOND)) {
            return Kept::Void;
        }
        let found = self.gang(key, nodes, ready_at);
        if ready_at == self.now {
            return Kept::Ready(found);
        }
        let rules = self.accounts.party(queued.party).rules.clone();
        if let Some(preempting) = &mut self.preempting {
            preempting.scopes.extend(rules.iter().map(|rule| rule.scope));
        }
        self.note_claimed(queued);
        Kept::Waits(self.hold_for(queued, fit, &found, claim.victims.clone()))
    }

    fn gang(&self, key: KeyId, nodes: Vec<NodeIdx>, at: Micros) -> Found {
        let shape = &self.keys.entries[key as usize].key.shape;
        let count = nodes.len() as u32;
        Found { key, at, parts: nodes.into_iter().zip(0..).map(|(node, i)| (node, even_share(shape, count, i))).collect() }
    }

    fn hold_for(&mut self, queued: &Queued, fit: &Fit, found: &Found, victims: Vec<JobId>) -> Wait {
        for (at, share) in &found.parts {
            let mut booking = self.booking(queued.job, found.key, fit, found.at, *at, *share, queued.length);
            booking.held.from = self.now;
            // It waits for a GPU of its own.
            if booking.part.take().is_some() {
                booking.held.amount = self.own(found.key, fit, *at, *share);
            }
            self.profile.book(self.fleet, *at, booking);
        }
        self.bookings.add(queued.job, found.at, found.parts.iter().map(|(at, _)| *at));
        self.book_licenses(queued.job, found, self.now, queued.length);
        Wait::Preempting { at: found.at, nodes: found.parts.iter().map(|(at, _)| *at).collect(), victims }
    }
}
