//! A database of its own, schedulers on it, and nodes that the test plays.

use std::time::{Duration, Instant};

use berth_model::job::JobSpec;
use berth_model::resources::{Inventory, MemoryDemand, ResourceRequest};
use berth_model::state::JobState;
use berth_model::step::{StepResult, TaskEnd};
use berth_model::worker::{Assignment, Fact, Phase, Register, Report, ReportBatch};
use berth_model::{Bytes, JobId, JobRef, NodeName, StepId};
use berth_postgres::Postgres;
use berth_scheduler::SchedulerConfig;
use berth_store::Db;
use berth_store::jobs::submit::{NewJob, Planning};
use tokio::sync::watch;

pub struct Cluster {
    pub db: Db,
    pub stop: watch::Sender<bool>,
    _postgres: Postgres,
    _dir: tempfile::TempDir,
}

impl Cluster {
    pub async fn start() -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let postgres = Postgres::start(&dir.path().join("postgres"), 0).unwrap();
        let db = Db::connect(&postgres.url(), 20).await.unwrap();
        db.migrate().await.unwrap();
        db.create_tenant("acme", None).await.unwrap();
        let (stop, _) = watch::channel(false);
        Cluster { db, stop, _postgres: postgres, _dir: dir }
    }

    /// A scheduler of its own connection, as another process would have.
    pub async fn scheduler(&self, holder: &str) -> tokio::task::JoinHandle<()> {
        let db = Db::connect(&self._postgres.url(), 10).await.unwrap();
        let config = SchedulerConfig { holder: holder.to_owned(), ..SchedulerConfig::default() };
        tokio::spawn(berth_scheduler::run(db, config, self.stop.subscribe()))
    }

    pub async fn node(&self, name: &str) -> Worker {
        let register = Register {
            node: NodeName::new(name).unwrap(),
            machine_boot: "boot".to_owned(),
            boot_id: format!("boot-{name}"),
            inventory: Inventory { cpus: (0..4).collect(), memory_bytes: Bytes(8 << 30), ..Inventory::default() },
            features: Default::default(),
            address: "127.0.0.1".to_owned(),
            drivers: vec!["process".to_owned()],
            version: "test".to_owned(),
            clock: jiff::Timestamp::now(),
        };
        self.db.register_node(&register, 0).await.unwrap();
        Worker { db: self.db.clone(), node: name.to_owned(), seq: 0 }
    }

    pub async fn submit(&self, nodes: u32, change: impl FnOnce(&mut NewJob)) -> u64 {
        let resources = ResourceRequest { nodes: Some(nodes), ..ResourceRequest::default() };
        let spec = JobSpec { command: Some(vec!["true".to_owned()]), resources, ..JobSpec::default() };
        let planning = Planning {
            shape: spec.resources.shape(MemoryDemand::PerCpu(Bytes(1 << 20))),
            constraint: None,
            required_nodes: Default::default(),
            excluded_nodes: Default::default(),
            dependency_any: false,
            is_singleton: false,
            reservations: Vec::new(),
            licenses: Vec::new(),
            choices: Vec::new(),
            throttle: None,
        };
        let mut job = NewJob {
            tenant: "acme".to_owned(),
            account: "default".to_owned(),
            user: "ann".to_owned(),
            partition: "main".to_owned(),
            qos: "normal".to_owned(),
            name: "true".to_owned(),
            spec,
            planning,
            time_limit: 600,
            hold: None,
            not_before: None,
            deadline: None,
            component: None,
            array: None,
            dependencies: Vec::new(),
            submit_limits: Vec::new(),
        };
        change(&mut job);
        self.db.submit_jobs(&[job]).await.unwrap()[0].job_id.0
    }

    pub async fn state(&self, job: u64) -> JobState {
        self.db.job(None, JobRef::Job(JobId(job))).await.unwrap().state().unwrap()
    }

    pub async fn until(&self, job: u64, wanted: JobState) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.state(job).await != wanted {
            assert!(Instant::now() < deadline, "job {job} is {}, not {wanted}", self.state(job).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A node played by the test.
pub struct Worker {
    db: Db,
    node: String,
    pub seq: u64,
}

impl Worker {
    pub async fn assignment(&self, job: u64, phase: Phase) -> Assignment {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let assignments = self.db.desired_state(&self.node).await.unwrap().assignments;
            if let Some(found) = assignments.into_iter().find(|a| a.job_id.0 == job && a.phase == phase) {
                return found;
            }
            assert!(Instant::now() < deadline, "{} was never told to {phase:?} job {job}", self.node);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Reports facts; returns the numbers of stale ones.
    pub async fn report(&mut self, facts: Vec<Fact>) -> Vec<u64> {
        let reports = facts
            .into_iter()
            .map(|fact| {
                self.seq += 1;
                Report { seq: self.seq, fact }
            })
            .collect();
        let batch = ReportBatch { boot_id: format!("boot-{}", self.node), reports };
        self.db.apply_reports(&self.node, &batch).await.unwrap().answer.stale
    }

    pub async fn run(&mut self, job: u64, attempt: u32, code: i32) {
        let (job_id, step) = (JobId(job), StepId::Number(0));
        let result = StepResult { tasks: vec![TaskEnd { rank: 0, code: Some(code), signal: None }], ..StepResult::default() };
        let facts = vec![
            Fact::StepStarted { job_id, attempt, step },
            Fact::StepEnded { job_id, attempt, step, result },
            Fact::Finished { job_id, attempt, epilog_failed: None },
        ];
        self.report(facts).await;
    }
}
