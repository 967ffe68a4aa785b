//! What admission must know of policy and people, cached for a second: a submission must not cost a query for each of these.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use berth_model::association::{AssociationKey, Terms};
use berth_model::license::License;
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::{NodeName, hostlist};
use berth_store::reservations::ReservationRow;
use berth_store::{Db, StoreError};

/// Partitions, QOS and policy as of a moment.
#[derive(Debug, Default)]
pub struct Rules {
    pub partitions: Vec<Partition>,
    pub qos: Vec<Qos>,
    pub policy: Policy,
    pub licenses: Vec<License>,
    pub reservations: Vec<ReservationRow>,
    /// Which of them have a node.
    pub reserved: HashMap<NodeName, Vec<usize>>,
}

impl Rules {
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|p| p.name.as_str() == name)
    }

    pub fn default_partition(&self) -> Option<&Partition> {
        self.partitions.iter().find(|p| p.is_default).or(match self.partitions.as_slice() {
            [only] => Some(only),
            _ => None,
        })
    }

    pub fn reservation(&self, name: &str) -> Option<&ReservationRow> {
        self.reservations.iter().find(|row| row.spec.name.as_str() == name)
    }

    pub fn qos(&self, name: &str) -> Option<&Qos> {
        self.qos.iter().find(|q| q.name.as_str() == name)
    }
}

/// A user's place in a tenant.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    pub is_tenant_known: bool,
    pub is_tenant_suspended: bool,
    pub is_user_suspended: bool,
    pub default_account: Option<String>,
    /// Accounts the user may charge, with whether it manages them.
    pub accounts: Vec<(String, bool)>,
}

const FRESH: Duration = Duration::from_secs(1);

/// The cache.
pub struct Catalog {
    db: Db,
    rules: Mutex<Option<(Instant, Arc<Rules>)>>,
    members: moka::future::Cache<(String, String), Arc<Membership>>,
    tenants: moka::future::Cache<String, bool>,
    chains: moka::future::Cache<AssociationKey, Arc<Chain>>,
    planned: Mutex<Option<(Instant, Arc<HashSet<NodeName>>)>>,
}

/// Pending jobs whose planned nodes are shown as such, those that start soonest.
const MOST_PLANNED: i64 = 1000;

/// What a user of an account was given, and all above it.
type Chain = Vec<(AssociationKey, Terms)>;

impl Catalog {
    pub fn new(db: Db) -> Self {
        let members = moka::future::Cache::builder().max_capacity(100_000).time_to_live(FRESH).build();
        let tenants = moka::future::Cache::builder().max_capacity(10_000).time_to_live(FRESH).build();
        let chains = moka::future::Cache::builder().max_capacity(100_000).time_to_live(FRESH).build();
        Catalog { db, rules: Mutex::default(), members, tenants, chains, planned: Mutex::default() }
    }

    pub async fn rules(&self) -> Result<Arc<Rules>, StoreError> {
        if let Some((at, rules)) = &*self.rules.lock().expect("no panic while the lock is held")
            && at.elapsed() < FRESH
        {
            return Ok(rules.clone());
        }
        let partitions = self.db.partitions().await?.into_iter().map(|v| v.value).collect();
        let qos = self.db.qos_list().await?.into_iter().map(|v| v.value).collect();
        let reservations = self.db.reservations().await?;
        let licenses = self.db.license_totals().await?;
        let mut reserved: HashMap<NodeName, Vec<usize>> = HashMap::new();
        for (i, row) in reservations.iter().enumerate() {
            row.nodes().into_iter().for_each(|node| reserved.entry(node).or_default().push(i));
        }
        let rules = Arc::new(Rules { partitions, qos, policy: self.db.policy().await?.value, licenses, reservations, reserved });
        *self.rules.lock().expect("no panic while the lock is held") = Some((Instant::now(), rules.clone()));
        Ok(rules)
    }

    /// Nodes that pending jobs are planned to start on.
    pub async fn planned(&self) -> Result<Arc<HashSet<NodeName>>, StoreError> {
        if let Some((at, planned)) = &*self.planned.lock().expect("no panic while the lock is held")
            && at.elapsed() < FRESH
        {
            return Ok(planned.clone());
        }
        let lists = self.db.planned_nodes(MOST_PLANNED).await?;
        let planned: Arc<HashSet<NodeName>> = Arc::new(lists.iter().flat_map(|list| hostlist::expand(list).unwrap_or_default()).collect());
        *self.planned.lock().expect("no panic while the lock is held") = Some((Instant::now(), planned.clone()));
        Ok(planned)
    }

    /// Policy was changed through this replica: look again at once.
    pub fn forget_rules(&self) {
        *self.rules.lock().expect("no panic while the lock is held") = None;
    }

    pub async fn membership(&self, tenant: &str, user: &str) -> Result<Arc<Membership>, StoreError> {
        let key = (tenant.to_owned(), user.to_owned());
        if let Some(found) = self.members.get(&key).await {
            return Ok(found);
        }
        let membership = Arc::new(self.load(tenant, user).await?);
        self.members.insert(key, membership.clone()).await;
        Ok(membership)
    }

    /// What binds a user of an account, from the user up to the tenant.
    pub async fn chain(&self, key: &AssociationKey) -> Result<Arc<Chain>, StoreError> {
        if let Some(found) = self.chains.get(key).await {
            return Ok(found);
        }
        let chain = Arc::new(self.db.chain(key).await?);
        self.chains.insert(key.clone(), chain.clone()).await;
        Ok(chain)
    }

    /// People or what they are given were changed through this replica.
    pub fn forget_members(&self) {
        self.chains.invalidate_all();
        self.members.invalidate_all();
        self.tenants.invalidate_all();
    }

    /// Suspended, or not there at all.
    pub async fn is_suspended(&self, tenant: &str) -> Result<bool, StoreError> {
        if let Some(suspended) = self.tenants.get(tenant).await {
            return Ok(suspended);
        }
        let suspended = match self.db.tenant(tenant).await {
            Ok(tenant) => tenant.is_suspended,
            Err(StoreError::NotFound(_)) => true,
            Err(error) => return Err(error),
        };
        self.tenants.insert(tenant.to_owned(), suspended).await;
        Ok(suspended)
    }

    async fn load(&self, tenant: &str, user: &str) -> Result<Membership, StoreError> {
        let found = match self.db.tenant(tenant).await {
            Ok(tenant) => tenant,
            Err(StoreError::NotFound(_)) => return Ok(Membership::default()),
            Err(error) => return Err(error),
        };
        let known = self.db.find_user(tenant, user).await?;
        let accounts = self.db.associations(tenant, None, Some(user)).await?.into_iter().map(|a| (a.account, a.is_manager)).collect();
        Ok(Membership {
            is_tenant_known: true,
            is_tenant_suspended: found.is_suspended,
            is_user_suspended: known.as_ref().is_some_and(|u| u.is_suspended),
            default_account: known.and_then(|u| u.default_account),
            accounts,
        })
    }
}
