//! What the leader keeps of accounts in the database: use that has ended, folded into rows, and the tree of shares for users to read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use berth_engine::fold_usage;
use berth_model::Name;
use berth_model::association::Share;
use berth_model::event::Event;
use berth_model::policy::Policy;
use berth_store::lease::Epoch;
use berth_store::{Db, StoreError};
use jiff::Timestamp;

/// Least time between two writings of the tree.
const SHARES: Duration = Duration::from_secs(2);

/// Folds all attempts that have ended and are in no row yet. What changed is told to the engine with the events returned.
pub async fn fold_ended(db: &Db, epoch: Epoch, policy: &Policy) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::new();
    loop {
        let now = Timestamp::now();
        let folded = db.fold_ended(epoch, |rows, ended| fold_usage(policy, rows, ended, now)).await?;
        if !folded.counted.is_empty() {
            tracing::debug!(attempts = folded.counted.len(), rows = folded.rows.len(), "use folded");
            events.push(Event::Usage { rows: folded.rows, counted: folded.counted });
        }
        if !folded.is_partial {
            return Ok(events);
        }
    }
}

/// The tree as last written.
pub struct ShareTrees {
    written: BTreeMap<Name, Vec<Share>>,
    at: Instant,
}

impl ShareTrees {
    pub fn new() -> Self {
        ShareTrees { written: BTreeMap::new(), at: Instant::now() - SHARES }
    }

    pub fn is_due(&self) -> bool {
        self.at.elapsed() >= SHARES
    }

    /// Writes each tenant's part in which something moved by more than a hundredth of itself.
    pub async fn write(&mut self, db: &Db, epoch: Epoch, now: Timestamp, lines: Vec<Share>) -> Result<(), StoreError> {
        self.at = Instant::now();
        let mut trees: BTreeMap<Name, Vec<Share>> = BTreeMap::new();
        for line in lines {
            trees.entry(line.tenant.clone()).or_default().push(line);
        }
        let moved: Vec<(Name, Vec<Share>)> =
            trees.into_iter().filter(|(tenant, lines)| self.written.get(tenant).is_none_or(|old| differs(old, lines))).collect();
        db.write_shares(epoch, now, &moved).await?;
        self.written.extend(moved);
        Ok(())
    }
}

fn differs(old: &[Share], new: &[Share]) -> bool {
    let moved = |old: f64, new: f64| (old - new).abs() > 0.01 * old.abs().max(new.abs());
    old.len() != new.len()
        || old.iter().zip(new).any(|(old, new)| {
            (&old.account, &old.user, old.depth, old.fairshare) != (&new.account, &new.user, new.depth, new.fairshare)
                || moved(old.norm_shares, new.norm_shares)
                || moved(old.raw_usage, new.raw_usage)
                || moved(old.effective_usage, new.effective_usage)
                || moved(old.level_fs.unwrap_or(f64::MAX), new.level_fs.unwrap_or(f64::MAX))
                || old.factor != new.factor
        })
}
