//! Metrics of an api replica and, read from the database at scrape time, of jobs, nodes and GPUs. OpenMetrics 1.0, or Prometheus'
//! classic text if the scraper asks for it.

use std::sync::Mutex;
use std::time::Duration;

use berth_store::Db;
use prometheus_client::encoding::{EncodeLabelSet, prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: String,
    status: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    state: String,
    partition: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GpuLabels {
    r#type: String,
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReservedLabels {
    reservation: String,
    maint: &'static str,
    resource: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LicenseLabels {
    license: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: String,
}

/// The registry with its instruments.
pub struct ApiMetrics {
    registry: Mutex<Registry>,
    requests: Family<Operation, Histogram>,
    submissions: Family<OutcomeLabel, Counter>,
    launch_failures: Family<CauseLabel, Counter>,
    jobs: Family<JobLabels, Gauge>,
    nodes: Family<StateLabel, Gauge>,
    gpus: Family<GpuLabels, Gauge>,
    reserved: Family<ReservedLabels, Gauge>,
    licenses: Family<LicenseLabels, Gauge>,
    connections: Family<StateLabel, Gauge>,
}

/// From half a millisecond to half a minute.
fn latency() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

impl Default for ApiMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("berth");
        let requests = Family::<Operation, Histogram>::new_with_constructor(latency);
        let submissions = Family::<OutcomeLabel, Counter>::default();
        let launch_failures = Family::<CauseLabel, Counter>::default();
        let jobs = Family::<JobLabels, Gauge>::default();
        let nodes = Family::<StateLabel, Gauge>::default();
        let gpus = Family::<GpuLabels, Gauge>::default();
        let reserved = Family::<ReservedLabels, Gauge>::default();
        let licenses = Family::<LicenseLabels, Gauge>::default();
        let connections = Family::<StateLabel, Gauge>::default();
        registry.register("http_request_seconds", "Time to answer requests, by operation and status", requests.clone());
        registry.register("job_submissions", "Jobs submitted through this replica", submissions.clone());
        registry.register("job_launch_failures", "Launches that nodes reported as failed", launch_failures.clone());
        registry.register("jobs", "Live jobs by state and partition", jobs.clone());
        registry.register("nodes", "Nodes by state", nodes.clone());
        registry.register("gpus", "GPUs by type and state", gpus.clone());
        registry.register("reserved", "What reservations that last have, by what is used and idle", reserved.clone());
        registry.register("licenses", "Licences there are in all, and those in use", licenses.clone());
        registry.register("db_pool_connections", "Connections to Postgres", connections.clone());
        ApiMetrics {
            registry: Mutex::new(registry),
            requests,
            submissions,
            launch_failures,
            jobs,
            nodes,
            gpus,
            reserved,
            licenses,
            connections,
        }
    }
}

impl ApiMetrics {
    pub fn request(&self, operation: &str, status: u16, elapsed: Duration) {
        let labels = Operation { operation: operation.to_owned(), status: u32::from(status) };
        self.requests.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    pub fn submitted(&self, outcome: &str, jobs: usize) {
        self.submissions.get_or_create(&OutcomeLabel { outcome: outcome.to_owned() }).inc_by(jobs as u64);
    }

    pub fn launch_failed(&self, cause: &str) {
        self.launch_failures.get_or_create(&CauseLabel { cause: cause.to_owned() }).inc();
    }

    /// The exposition; `classic` gives Prometheus' text format 0.0.4.
    pub async fn render(&self, db: &Db, classic: bool) -> String {
        self.read_counts(db).await;
        let mut out = String::new();
        let registry = self.registry.lock().expect("no panic while the lock is held");
        // Writing to a String does not fail.
        if classic {
            let _ = prometheus_text::encode(&mut out, &registry);
        } else {
            let _ = text::encode(&mut out, &registry);
        }
        out
    }

    async fn read_counts(&self, db: &Db) {
        let (used, idle) = db.connections();
        self.connections.get_or_create(&StateLabel { state: "used".to_owned() }).set(i64::from(used));
        self.connections.get_or_create(&StateLabel { state: "idle".to_owned() }).set(i64::from(idle));
        if let Ok(counts) = db.job_counts().await {
            self.jobs.clear();
            for (state, partition, count) in counts {
                self.jobs.get_or_create(&JobLabels { state, partition }).set(count);
            }
        }
        if let Ok(counts) = db.node_counts().await {
            self.nodes.clear();
            for (state, count) in counts {
                self.nodes.get_or_create(&StateLabel { state }).set(count);
            }
        }
        if let Ok(counts) = db.reservation_counts().await {
            self.reserved.clear();
            for (reservation, is_maintenance, resource, all, used) in counts {
                let maint = if is_maintenance { "true" } else { "false" };
                for (state, count) in [("used", used), ("idle", (all - used).max(0))] {
                    let labels = ReservedLabels { reservation: reservation.clone(), maint, resource, state };
                    self.reserved.get_or_create(&labels).set(count);
                }
            }
        }
        if let Ok(rows) = db.licenses().await {
            self.licenses.clear();
            for row in rows {
                for (state, count) in [("total", i64::from(row.license.total)), ("used", row.used as i64)] {
                    let labels = LicenseLabels { license: row.license.name.to_string(), state };
                    self.licenses.get_or_create(&labels).set(count);
                }
            }
        }
        if let Ok(counts) = db.gpu_counts().await {
            self.gpus.clear();
            for (kind, all, allocated, down) in counts {
                for (state, count) in [("allocated", allocated), ("down", down), ("idle", (all - allocated - down).max(0))] {
                    self.gpus.get_or_create(&GpuLabels { r#type: kind.clone(), state: state.to_owned() }).set(count);
                }
            }
        }
    }
}
