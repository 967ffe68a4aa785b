//! Keeping reservations up: the next time of those that repeat, the end of those that are over or were idle for too long, and other nodes
//! in place of those that fail.

use std::time::{Duration, Instant};

use berth_engine::replace_nodes;
use berth_model::policy::Policy;
use berth_model::reservation::{ReserveGround, Window, next_window};
use berth_store::lease::Epoch;
use berth_store::reservations::{ReservationRow, Tended};
use berth_store::{Db, StoreError};
use jiff::{SignedDuration, Timestamp};

/// Least time between two looks at all nodes.
const NODES_EVERY: Duration = Duration::from_secs(5);

/// Looks at all reservations. What changes comes back through the feed.
pub async fn tend(db: &Db, epoch: Epoch, policy: &Policy, nodes_seen_at: &mut Option<Instant>) -> Result<(), StoreError> {
    let looks_at_nodes = nodes_seen_at.is_none_or(|at| at.elapsed() >= NODES_EVERY);
    if looks_at_nodes {
        *nodes_seen_at = Some(Instant::now());
    }
    let now = Timestamp::now();
    let tended = db
        .tend_reservations(epoch, policy.reservation_overrun_seconds, policy.kill_wait_seconds, looks_at_nodes, |row, ground| {
            decide(row, ground, now)
        })
        .await?;
    if tended > 0 {
        tracing::info!(reservations = tended, "reservations changed by time or with their nodes");
    }
    Ok(())
}

/// What becomes of a reservation at an instant.
fn decide(row: &ReservationRow, ground: Option<&ReserveGround>, now: Timestamp) -> Option<Tended> {
    let (spec, name) = (&row.spec, &row.spec.name);
    let mut window = row.window;
    if spec.float_seconds.is_some() {
        // Its start is always ahead; one with a duration floats on for so long.
        if spec.duration_seconds.is_some() && window.end <= now {
            return Some(Tended::Gone { reason: format!("reservation {name} is over") });
        }
    } else {
        while window.end <= now {
            match next_window(window, spec.repeat(), spec.time_zone.as_deref()) {
                Some(next) => window = next,
                None => return Some(Tended::Gone { reason: format!("reservation {name} is over") }),
            }
        }
    }
    if let Some(after) = spec.purge_after_seconds
        && is_idle(row, window, after, now)
    {
        return Some(Tended::Gone { reason: format!("reservation {name} was removed: no job ran in it for {after} s") });
    }
    let other = ground.and_then(|ground| replace_nodes(ground, spec, window, &row.parts, now));
    let is_changed = window != row.window || other.is_some();
    is_changed.then(|| Tended::Changed { window, parts: other.unwrap_or_else(|| row.parts.clone()) })
}

/// It lasts, and no job has run in it for so long, since it began or since the last one ended.
fn is_idle(row: &ReservationRow, window: Window, after: u64, now: Timestamp) -> bool {
    let since = row.idle_since.max(window.start);
    row.running == 0
        && now >= window.start
        && now.duration_since(since) >= SignedDuration::from_secs(i64::try_from(after).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn row(fields: &str) -> ReservationRow {
        let window = Window { start: at("2026-12-04T10:00:00Z"), end: at("2026-12-04T11:00:00Z") };
        let spec = serde_json::from_str(&format!(r#"{{"name": "r", "nodes": "n1", "tenants": ["acme"], {fields}}}"#)).unwrap();
        let created = at("2026-12-04T08:00:00Z");
        ReservationRow {
            spec,
            window,
            parts: Vec::new(),
            created_by: "root".to_owned(),
            created_at: created,
            idle_since: created,
            running: 0,
            version: 1,
        }
    }

    #[test]
    fn it_ends_or_comes_again() {
        let next = |row: &ReservationRow, now: &str| match decide(row, None, at(now)) {
            Some(Tended::Changed { window, .. }) => window.start.to_string(),
            Some(Tended::Gone { reason }) => reason,
            None => "as it is".to_owned(),
        };
        let once = row(r#""comment": """#);
        assert_eq!(next(&once, "2026-12-04T10:59:59Z"), "as it is");
        assert_eq!(next(&once, "2026-12-04T11:00:00Z"), "reservation r is over");
        let daily = row(r#""flags": ["daily"]"#);
        assert_eq!(next(&daily, "2026-12-04T11:00:00Z"), "2026-12-05T10:00:00Z");
        // Nobody led for three days.
        assert_eq!(next(&daily, "2026-12-07T12:00:00Z"), "2026-12-08T10:00:00Z");
    }

    #[test]
    fn it_is_removed_when_it_was_idle_for_long() {
        let mut purged = row(r#""purge_after_seconds": 300"#);
        let is_gone = |row: &ReservationRow, now: &str| matches!(decide(row, None, at(now)), Some(Tended::Gone { .. }));
        assert!(!is_gone(&purged, "2026-12-04T09:59:00Z"), "it has not begun");
        assert!(!is_gone(&purged, "2026-12-04T10:04:59Z") && is_gone(&purged, "2026-12-04T10:05:00Z"), "never used");
        purged.idle_since = at("2026-12-04T10:03:00Z");
        assert!(!is_gone(&purged, "2026-12-04T10:05:00Z") && is_gone(&purged, "2026-12-04T10:08:00Z"));
        purged.running = 1;
        assert!(!is_gone(&purged, "2026-12-04T10:08:00Z"));
    }
}
