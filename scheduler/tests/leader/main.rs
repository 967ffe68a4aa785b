//! The leader on a real Postgres: jobs go the whole way while the test plays the worker through the store's protocol.

mod cluster;
mod preemption;
mod record;

use std::time::{Duration, Instant};

use berth_model::state::JobState;
use berth_model::step::{StepResult, TaskEnd};
use berth_model::verdict::Decision;
use berth_model::worker::{Fact, Phase};
use berth_model::{JobId, JobRef, StepId};
use cluster::Cluster;

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
    let decision = Decision { epoch: old_epoch, plan: 1, at: jiff::Timestamp::now() };
    let fenced = cluster.db.commit_starts(berth_store::lease::Epoch(old_epoch), &decision, &[]).await;
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
        let used = used_by_ann(&cluster, begun).await;
        // One CPU is billed by default; decay within seconds is nothing.
        assert!((used / ran - 1.0).abs() < 0.01, "{holder} counts {used} billing-seconds of a run of {ran} s");
        let again = cluster.db.fold_ended(berth_store::lease::Epoch(0), |_, _| Vec::new()).await;
        assert!(matches!(again, Err(berth_store::StoreError::Fenced)), "only the leader folds");
        next.abort();
    }
}

/// Ann's billing-seconds in the tree of shares, as it is written after `begun`.
async fn used_by_ann(cluster: &Cluster, begun: jiff::Timestamp) -> f64 {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let trees = cluster.db.shares(Some("acme")).await.unwrap();
        let lines = trees.first().filter(|(_, at)| *at > begun).map(|(lines, _)| lines.clone()).unwrap_or_default();
        let ann = lines.into_iter().find(|line| line.user.as_ref().is_some_and(|user| user.as_str() == "ann"));
        if let Some(line) = ann.filter(|line| line.raw_usage > 0.0) {
            break line.raw_usage;
        }
        assert!(Instant::now() < deadline, "the tree of shares was never written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_given_back_is_charged_for_up_to_then() {
    let cluster = Cluster::start().await;
    let scheduler = cluster.scheduler("one").await;
    let (mut n1, mut n2) = (cluster.node("n1").await, cluster.node("n2").await);
    let script = |job: &mut berth_store::jobs::submit::NewJob| {
        job.spec.script = Some("#!/bin/sh".to_owned());
        job.spec.command = None;
    };
    let job = cluster.submit(2, script).await;
    let job_id = JobId(job);
    for node in [&mut n1, &mut n2] {
        node.assignment(job, Phase::Prepare).await;
        node.report(vec![Fact::Prepared { job_id, attempt: 1 }]).await;
    }
    n1.assignment(job, Phase::Go).await;
    n1.report(vec![Fact::StepStarted { job_id, attempt: 1, step: StepId::Batch }]).await;
    cluster.until(job, JobState::Running).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let row = cluster.db.job(None, JobRef::Job(job_id)).await.unwrap();
    let change = berth_store::jobs::change::JobChange {
        spec: cluster.db.job_spec(job).await.unwrap(),
        name: row.name,
        time_limit: 600,
        site_factor: None,
        array_throttle: None,
        keep: Some(berth_model::resize::Keep::Count(1)),
        admitted: None,
    };
    cluster.db.change_job(job, row.version, &change, false).await.unwrap();
    n2.assignment(job, Phase::Stop).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    // Its worker is late: that costs the job nothing.
    n2.report(vec![Fact::Finished { job_id, attempt: 1, epilog_failed: None }]).await;
    assert_eq!(cluster.state(job).await, JobState::Running);
    let kept = n1.assignment(job, Phase::Go).await;
    assert_eq!((kept.context.nodes.len(), kept.context.spec.resources.nodes), (1, Some(1)));
    let result = StepResult { tasks: vec![TaskEnd { rank: 0, code: Some(0), signal: None }], ..StepResult::default() };
    n1.report(vec![
        Fact::StepEnded { job_id, attempt: 1, step: StepId::Batch, result },
        Fact::Finished { job_id, attempt: 1, epilog_failed: None },
    ])
    .await;
    cluster.until(job, JobState::Completed).await;
    let attempt = cluster.db.attempts(job).await.unwrap().remove(0);
    let resized = cluster.db.job_events(job, 0, 100).await.unwrap().into_iter().find(|event| event.kind == "job.resized").unwrap().at.0;
    let seconds = |from: jiff::Timestamp, to: jiff::Timestamp| to.duration_since(from).as_secs_f64();
    // One CPU on each node: two up to the instant, one from then on.
    let due = 2.0 * seconds(attempt.started_at.unwrap().0, resized) + seconds(resized, attempt.ended_at.unwrap().0);
    scheduler.abort();
    let begun = jiff::Timestamp::now();
    let next = cluster.scheduler("two").await;
    let used = used_by_ann(&cluster, begun).await;
    assert!((used / due - 1.0).abs() < 0.01, "{used} billing-seconds are counted, {due} are due");
    next.abort();
}

#[tokio::test]
async fn a_job_that_no_node_can_start_backs_off() {
    let cluster = Cluster::start().await;
    let _scheduler = cluster.scheduler("one").await;
    let job = cluster.submit(1, |_| ()).await;
    let job_id = JobId(job);
    let mut waits = Vec::new();
    for attempt in 1..=2 {
        let mut node = cluster.node(&format!("n{attempt}")).await;
        let given = node.assignment(job, Phase::Go).await;
        assert_eq!((given.attempt, given.context.restarts), (attempt, attempt - 1));
        let (cause, detail) = ("node_error".to_owned(), "disk full".to_owned());
        let broken = Fact::PrepareFailed { job_id, attempt, cause, detail, is_nodes_fault: true };
        node.report(vec![broken, Fact::Finished { job_id, attempt, epilog_failed: None }]).await;
        let requeued = loop {
            // Events are shown when all before them have surely come.
            let events = cluster.db.job_events(job, 0, 100).await.unwrap();
            let found = events.iter().filter(|event| event.kind == "job.requeued").nth(attempt as usize - 1);
            match found {
                Some(event) => break event.at.0,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let row = cluster.db.job(None, JobRef::Job(job_id)).await.unwrap();
        waits.push(row.not_before.map(|at| at.0.duration_since(requeued).as_secs()));
    }
    // Another node takes the first one's place at once; then the policy's delay passes.
    assert_eq!(waits, [None, Some(5)]);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let verdict = cluster.db.job_verdict(job).await.unwrap().map(|(verdict, _)| verdict.verdicts[0].code.clone());
        if verdict.as_deref() == Some("launch_backoff") {
            break;
        }
        assert!(Instant::now() < deadline, "{verdict:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
