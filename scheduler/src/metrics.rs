//! What a scheduler tells of itself, as OpenMetrics.

use std::sync::Mutex;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The registry with its instruments.
pub struct SchedulerMetrics {
    registry: Mutex<Registry>,
    /// Time to make a plan, in seconds.
    pub plan: Histogram,
    /// From an event's row to the commit of the plan that heeds it, in seconds.
    pub decision: Histogram,
    pub pending: Gauge,
    pub is_leader: Gauge,
    pub starts: Counter,
    /// Starts that the database refused, since the world had changed.
    pub conflicts: Counter,
    pub preemptions: Counter,
}

/// From a tenth of a millisecond to ten seconds.
fn times() -> Histogram {
    Histogram::new([0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

impl Default for SchedulerMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("berth_scheduler");
        let (plan, decision) = (times(), times());
        let (pending, is_leader) = (Gauge::default(), Gauge::default());
        let (starts, conflicts, preemptions) = (Counter::default(), Counter::default(), Counter::default());
        registry.register("plan_seconds", "Time to make a plan", plan.clone());
        registry.register("decision_latency_seconds", "From an event to the commit of the plan that heeds it", decision.clone());
        registry.register("pending_jobs", "Jobs in the queue as the last plan saw it", pending.clone());
        registry.register("is_leader", "1 while this process leads, else 0", is_leader.clone());
        registry.register("starts", "Attempts started", starts.clone());
        registry.register("conflicts", "Starts refused because the world had changed", conflicts.clone());
        registry.register("preemptions", "Attempts stopped to make room for others", preemptions.clone());
        SchedulerMetrics { registry: Mutex::new(registry), plan, decision, pending, is_leader, starts, conflicts, preemptions }
    }
}

impl SchedulerMetrics {
    /// The exposition, OpenMetrics 1.0.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut out, &self.registry.lock().expect("no panic while the lock is held"));
        out
    }
}

impl std::fmt::Debug for SchedulerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SchedulerMetrics")
    }
}
