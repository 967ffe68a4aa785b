//! The leader on a real Postgres: jobs go the whole way while the test plays the worker through the store's protocol.

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

struct Cluster {
    db: Db,
    stop: watch::Sender<bool>,
    _postgres: Postgres,
    _dir: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Cluster {
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
    async fn scheduler(&self, holder: &str) -> tokio::task::JoinHandle<()> {
        let db = Db::connect(&self._postgres.url(), 10).await.unwrap();
        let config = SchedulerConfig { holder: holder.to_owned(), ..SchedulerConfig::default() };
        tokio::spawn(berth_scheduler::run(db, config, self.stop.subscribe()))
    }

    async fn node(&self, name: &str) -> Worker {
        let register = Register {
            node: NodeName::new(name).unwrap(),
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

    async fn submit(&self, nodes: u32, change: impl FnOnce(&mut NewJob)) -> u64 {
        let resources = ResourceRequest { nodes: Some(nodes), ..ResourceRequest::default() };
        let spec = JobSpec { command: Some(vec!["true".to_owned()]), resources, ..JobSpec::default() };
        let planning = Planning {
            shape: spec.resources.shape(MemoryDemand::PerCpu(Bytes(1 << 20))),
            constraint: None,
            required_nodes: Default::default(),
            excluded_nodes: Default::default(),
            dependency_any: false,
            is_singleton: false,
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
            array: None,
            dependencies: Vec::new(),
            submit_limits: Vec::new(),
        };
        change(&mut job);
        self.db.submit_jobs(&[job]).await.unwrap()[0].job_id.0
    }

    async fn state(&self, job: u64) -> JobState {
        self.db.job(None, JobRef::Job(JobId(job))).await.unwrap().state().unwrap()
    }

    async fn until(&self, job: u64, wanted: JobState) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.state(job).await != wanted {
            assert!(Instant::now() < deadline, "job {job} is {}, not {wanted}", self.state(job).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A node played by the test.
struct Worker {
    db: Db,
    node: String,
    seq: u64,
}

impl Worker {
    async fn assignment(&self, job: u64, phase: Phase) -> Assignment {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (_, _, assignments) = self.db.desired_state(&self.node).await.unwrap();
            if let Some(found) = assignments.into_iter().find(|a| a.job_id.0 == job && a.phase == phase) {
                return found;
            }
            assert!(Instant::now() < deadline, "{} was never told to {phase:?} job {job}", self.node);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Reports facts; returns the numbers of stale ones.
    async fn report(&mut self, facts: Vec<Fact>) -> Vec<u64> {
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

    async fn run(&mut self, job: u64, attempt: u32, code: i32) {
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

#[tokio::test]
async fn a_job_goes_from_submission_to_its_end() {
    let cluster = Cluster::start().await;
    cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let job = cluster.submit(1, |_| ()).await;
    let assignment = n1.assignment(job, Phase::Go).await;
    assert_eq!((assignment.attempt, assignment.allocation.cpus.len()), (1, 1));
    n1.run(job, 1, 3).await;
    cluster.until(job, JobState::Failed).await;
    let row = cluster.db.job(None, JobRef::Job(JobId(job))).await.unwrap();
    assert_eq!((row.exit_code, row.reason.as_deref()), (Some(3), Some("exit code 3")));
    // The same facts again, from a worker that was restarted, change nothing.
    let again = n1.report(vec![Fact::Finished { job_id: JobId(job), attempt: 1, epilog_failed: None }]).await;
    assert_eq!(again, [n1.seq]);
}

#[tokio::test]
async fn a_gang_goes_when_its_last_node_is_ready_and_a_failed_node_is_avoided() {
    let cluster = Cluster::start().await;
    cluster.scheduler("one").await;
    let (mut n1, mut n2) = (cluster.node("n1").await, cluster.node("n2").await);
    let job = cluster.submit(2, |_| ()).await;
    let id = JobId(job);
    n1.assignment(job, Phase::Prepare).await;
    n1.report(vec![Fact::Prepared { job_id: id, attempt: 1 }]).await;
    assert_eq!(cluster.state(job).await, JobState::Allocated);
    let broken = Fact::PrepareFailed {
        job_id: id,
        attempt: 1,
        cause: "node_error".to_owned(),
        detail: "disk full".to_owned(),
        is_nodes_fault: true,
    };
    n2.report(vec![broken, Fact::Finished { job_id: id, attempt: 1, epilog_failed: None }]).await;
    n1.assignment(job, Phase::Stop).await;
    n1.report(vec![Fact::Finished { job_id: id, attempt: 1, epilog_failed: None }]).await;
    let drained = cluster.db.node("n2").await.unwrap();
    assert_eq!(drained.flags, ["drain"]);

    let mut n3 = cluster.node("n3").await;
    for worker in [&mut n1, &mut n3] {
        worker.assignment(job, Phase::Prepare).await;
        worker.report(vec![Fact::Prepared { job_id: id, attempt: 2 }]).await;
    }
    for worker in [&mut n1, &mut n3] {
        worker.assignment(job, Phase::Go).await;
        worker.run(job, 2, 0).await;
    }
    cluster.until(job, JobState::Completed).await;
    let attempts = cluster.db.attempts(job).await.unwrap();
    assert_eq!(attempts.iter().map(|a| a.state.as_str()).collect::<Vec<_>>(), ["launch_failed", "completed"]);
}

#[tokio::test]
async fn a_waiting_job_has_its_reasons_and_a_dependent_one_starts_after() {
    let cluster = Cluster::start().await;
    cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let first = cluster.submit(1, |_| ()).await;
    let on = berth_model::dependency::Dependency {
        kind: berth_model::dependency::DependencyKind::AfterOk,
        job: JobId(first),
        task: None,
        delay_minutes: 0,
    };
    let second = cluster.submit(1, |job| job.dependencies.push(on)).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let verdict = loop {
        if let Some((verdict, _)) = cluster.db.job_verdict(second).await.unwrap() {
            break verdict;
        }
        assert!(Instant::now() < deadline, "no verdict was written");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((verdict.verdicts[0].code.as_str(), verdict.verdicts[0].object.as_str()), ("dependency", format!("job/{first}").as_str()));
    n1.assignment(first, Phase::Go).await;
    n1.run(first, 1, 0).await;
    n1.assignment(second, Phase::Go).await;
    n1.run(second, 1, 0).await;
    cluster.until(second, JobState::Completed).await;
}

#[tokio::test]
async fn an_arrays_tasks_are_jobs_and_the_array_ends_with_the_last() {
    let cluster = Cluster::start().await;
    cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let array = cluster
        .submit(1, |job| {
            job.spec.array = Some("0-2%2".to_owned());
            job.array = Some("0-2%2".parse().unwrap());
            job.planning.throttle = Some(2);
        })
        .await;
    for index in 0..3 {
        let deadline = Instant::now() + Duration::from_secs(20);
        let task = loop {
            let row = cluster.db.job(None, JobRef::Task { array: JobId(array), index }).await.unwrap();
            if row.array_index == Some(index as i32) {
                break row.job_id as u64;
            }
            assert!(Instant::now() < deadline, "task {index} never started");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let assignment = n1.assignment(task, Phase::Go).await;
        let context = assignment.context.array.expect("a task knows its array");
        assert_eq!((context.job_id.0, context.task_id, context.task_count), (array, index, 3));
        n1.run(task, 1, 0).await;
    }
    cluster.until(array, JobState::Completed).await;
}

#[tokio::test]
async fn a_standby_takes_over_and_the_old_leader_is_fenced() {
    let cluster = Cluster::start().await;
    let first = cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let job = cluster.submit(1, |_| ()).await;
    n1.assignment(job, Phase::Go).await;
    let (_, old_epoch, _) = cluster.db.leader().await.unwrap().unwrap();
    let _second = cluster.scheduler("two").await;
    // The process dies: its task goes, and with it its session.
    first.abort();
    n1.run(job, 1, 0).await;
    let next = cluster.submit(1, |_| ()).await;
    let begun = Instant::now();
    n1.assignment(next, Phase::Go).await;
    println!("takeover took {:?}", begun.elapsed());
    let (holder, epoch, _) = cluster.db.leader().await.unwrap().unwrap();
    assert_eq!(holder, "two");
    assert!(epoch > old_epoch);
    let fenced = cluster.db.commit_starts(berth_store::lease::Epoch(old_epoch), &[]).await;
    assert!(matches!(fenced, Err(berth_store::StoreError::Fenced)));
    n1.run(next, 1, 0).await;
    cluster.until(next, JobState::Completed).await;
}

#[tokio::test]
async fn use_is_counted_once_whoever_leads() {
    let cluster = Cluster::start().await;
    let first = cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let job = cluster.submit(1, |_| ()).await;
    n1.assignment(job, Phase::Go).await;
    let (job_id, step) = (JobId(job), StepId::Number(0));
    n1.report(vec![Fact::StepStarted { job_id, attempt: 1, step }]).await;
    cluster.until(job, JobState::Running).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // The leader dies while the job runs; it ends while nobody leads, and another takes over twice.
    first.abort();
    n1.run(job, 1, 0).await;
    cluster.until(job, JobState::Completed).await;
    let attempt = cluster.db.attempts(job).await.unwrap().remove(0);
    let ran = attempt.ended_at.unwrap().0.duration_since(attempt.started_at.unwrap().0).as_secs_f64();
    for holder in ["two", "three"] {
        let begun = jiff::Timestamp::now();
        let next = cluster.scheduler(holder).await;
        let deadline = Instant::now() + Duration::from_secs(20);
        let used = loop {
            let trees = cluster.db.shares(Some("acme")).await.unwrap();
            let lines = trees.first().filter(|(_, at)| *at > begun).map(|(lines, _)| lines.clone()).unwrap_or_default();
            let ann = lines.into_iter().find(|line| line.user.as_ref().is_some_and(|user| user.as_str() == "ann"));
            if let Some(line) = ann.filter(|line| line.raw_usage > 0.0) {
                break line.raw_usage;
            }
            assert!(Instant::now() < deadline, "the tree of shares was never written");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        // One CPU is billed by default; decay within seconds is nothing.
        assert!((used / ran - 1.0).abs() < 0.01, "{holder} counts {used} billing-seconds of a run of {ran} s");
        let again = cluster.db.fold_ended(berth_store::lease::Epoch(0), |_, _| Vec::new()).await;
        assert!(matches!(again, Err(berth_store::StoreError::Fenced)), "only the leader folds");
        next.abort();
    }
}
