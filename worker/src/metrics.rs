//! What a worker tells of itself, as OpenMetrics.

use std::sync::Mutex;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    /// `started`, or the cause of a failure; see `LaunchCause`.
    outcome: String,
}

/// The registry with its instruments.
pub struct WorkerMetrics {
    registry: Mutex<Registry>,
    launches: Family<OutcomeLabel, Counter>,
    /// From the first sight of a step to its start, the wait for a gang's go included, in seconds.
    pub launch: Histogram,
    pub running: Gauge,
    contact: Gauge,
}

impl Default for WorkerMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("berth_worker");
        let launches = Family::<OutcomeLabel, Counter>::default();
        let launch = Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0]);
        let (running, contact) = (Gauge::default(), Gauge::default());
        registry.register("launches", "Steps launched, by outcome", launches.clone());
        registry.register("launch_seconds", "From the first sight of a step to its start", launch.clone());
        registry.register("running_steps", "Steps that run", running.clone());
        registry.register("contact_age_seconds", "Time since the last request that the service answered", contact.clone());
        WorkerMetrics { registry: Mutex::new(registry), launches, launch, running, contact }
    }
}

impl WorkerMetrics {
    pub(crate) fn launched(&self, outcome: &str) {
        self.launches.get_or_create(&OutcomeLabel { outcome: outcome.to_owned() }).inc();
    }

    pub(crate) fn set_contact_age(&self, age: Duration) {
        self.contact.set(age.as_secs() as i64);
    }

    /// The exposition, OpenMetrics 1.0.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut out, &self.registry.lock().expect("no panic while the lock is held"));
        out
    }
}

impl std::fmt::Debug for WorkerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkerMetrics")
    }
}
