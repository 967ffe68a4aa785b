//! Preemption, from the leader's decision to the start of the job that it was for.

use std::collections::BTreeSet;

use berth_model::policy::{Policy, Qos};
use berth_model::preemption::{Claim, PreemptBy, PreemptMode, Preempted};
use berth_model::state::JobState;
use berth_model::step::StopReason;
use berth_model::worker::{Fact, Phase};
use berth_model::{JobId, JobRef, Name, NodeName, StepId};
use berth_scheduler::record::replay::{Target, replay};
use berth_store::jobs::submit::NewJob;
use berth_store::preempt::NewVictim;
use jiff::{SignedDuration, Timestamp};

use crate::cluster::{Cluster, Worker};
use crate::record::record;

async fn rules(cluster: &Cluster, mode: PreemptMode) {
    let name = |text: &str| Name::new(text).unwrap();
    let policy = Policy { preempt_by: PreemptBy::Qos, preempt_mode: mode, requeue_delay_seconds: 0, ..Policy::default() };
    cluster.db.put_policy(&policy, None).await.unwrap();
    let high = Qos { priority: 100, preempts: BTreeSet::from([name("normal")]), ..Qos::named(name("high")) };
    cluster.db.put_qos(&high, None).await.unwrap();
    let normal = Qos { grace_seconds: Some(7), ..Qos::named(name("normal")) };
    cluster.db.put_qos(&normal, None).await.unwrap();
}

fn whole(qos: &str) -> impl FnOnce(&mut NewJob) {
    let qos = qos.to_owned();
    move |job| {
        job.qos = qos;
        job.spec.resources.cpus_per_task = Some(4);
        job.planning.shape.cpus_per_task = 4;
    }
}

/// Starts a job that takes the whole node.
async fn begin(cluster: &Cluster, node: &mut Worker) -> u64 {
    let job = cluster.submit(1, whole("normal")).await;
    node.assignment(job, Phase::Go).await;
    let (job_id, step) = (JobId(job), StepId::Number(0));
    node.report(vec![Fact::StepStarted { job_id, attempt: 1, step }]).await;
    cluster.until(job, JobState::Running).await;
    job
}

#[tokio::test]
async fn a_job_makes_room_and_runs_again_after_the_one_it_made_room_for() {
    let cluster = Cluster::start().await;
    rules(&cluster, PreemptMode::Requeue).await;
    let leader = cluster.scheduler("one").await;
    let (mut n1, mut n2) = (cluster.node("n1").await, cluster.node("n2").await);
    let first = begin(&cluster, &mut n1).await;
    let saved = begin(&cluster, &mut n2).await;
    cluster.db.note_checkpoint(saved).await.unwrap();
    let before = cluster.db.job(None, JobRef::Job(JobId(saved))).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    // The one that has just saved its work loses less than the older one would.
    cluster.db.note_checkpoint(saved).await.unwrap();
    let urgent = cluster.submit(1, whole("high")).await;
    let order = n2.assignment(saved, Phase::Stop).await;
    let stop = order.stop.unwrap();
    assert_eq!((stop.reason, stop.grace_seconds), (StopReason::Preempted, 7));
    assert_eq!(cluster.state(first).await, JobState::Running);
    let attempt = cluster.db.attempts(saved).await.unwrap().remove(0);
    let preempted = attempt.preempted.unwrap().0;
    assert_eq!((preempted.for_job, preempted.mode), (JobId(urgent), PreemptMode::Requeue));
    assert_eq!(cluster.db.preempted_for(urgent, 10).await.unwrap()[0].0, saved);
    // The nodes are held: another one of its kind does not get them, and nobody else is preempted for it.
    n2.run(saved, 1, 143).await;
    n2.assignment(urgent, Phase::Go).await;
    let after = cluster.db.job(None, JobRef::Job(JobId(saved))).await.unwrap();
    assert_eq!(after.state().unwrap(), JobState::Pending);
    assert_eq!((after.submit_time.0, after.reason.unwrap()), (before.submit_time.0, format!("preempted by job {urgent}")));
    n2.run(urgent, 1, 0).await;
    n2.assignment(saved, Phase::Go).await;
    n2.run(saved, 2, 0).await;
    cluster.until(saved, JobState::Completed).await;
    n1.run(first, 1, 0).await;
    cluster.until(first, JobState::Completed).await;

    cluster.stop.send(true).unwrap();
    leader.await.unwrap();
    let now = Timestamp::now();
    let all = replay(&record(&cluster, now).await[..], Target::At(now)).unwrap();
    assert!(all.differs_at.is_none(), "{:?}", all.differs_at);
    let start = replay(&record(&cluster, now).await[..], Target::Start { job: JobId(urgent), array_index: None }).unwrap();
    assert_eq!(start.before.unwrap().verdicts[0].code, "preempting");
}

#[tokio::test]
async fn a_cancelled_victim_ends_as_preempted_and_a_new_leader_keeps_the_claim() {
    let cluster = Cluster::start().await;
    rules(&cluster, PreemptMode::Cancel).await;
    let old = cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let victim = begin(&cluster, &mut n1).await;
    let urgent = cluster.submit(1, whole("high")).await;
    n1.assignment(victim, Phase::Stop).await;
    old.abort();
    // It ends while nobody leads, and a job of higher priority comes.
    n1.run(victim, 1, 143).await;
    cluster.until(victim, JobState::Preempted).await;
    let row = cluster.db.job(None, JobRef::Job(JobId(victim))).await.unwrap();
    assert_eq!(row.reason.unwrap(), format!("preempted by job {urgent}"));
    let rival = cluster.submit(1, whole("high")).await;
    let _new = cluster.scheduler("two").await;
    n1.assignment(urgent, Phase::Go).await;
    n1.run(urgent, 1, 0).await;
    n1.assignment(rival, Phase::Go).await;
    n1.run(rival, 1, 0).await;
    cluster.until(rival, JobState::Completed).await;
}

#[tokio::test]
async fn nobody_is_stopped_for_a_job_that_is_gone() {
    let cluster = Cluster::start().await;
    let leader = cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let victim = begin(&cluster, &mut n1).await;
    let urgent = cluster.submit(1, whole("normal")).await;
    cluster.db.cancel_job(urgent, "ann", 0).await.unwrap();
    leader.abort();
    let lease = loop {
        match cluster.db.try_lead(&mut Default::default(), "test", std::time::Duration::from_secs(60)).await.unwrap() {
            Some(lease) => break lease,
            None => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    let now = Timestamp::now();
    let kill_at = now + SignedDuration::from_secs(5);
    let claim = Claim { nodes: vec![NodeName::new("n1").unwrap()], victims: vec![JobId(victim)], ready_at: kill_at };
    let preempted = Preempted { for_job: JobId(urgent), mode: PreemptMode::Cancel, at: now, kill_at, reclaimed: false };
    let victims = [NewVictim { job: JobId(victim), attempt: 1, preempted }];
    assert_eq!(cluster.db.commit_preemptions(lease.epoch(), &[(JobId(urgent), claim.clone())], &victims).await.unwrap(), 0);
    assert_eq!(cluster.state(victim).await, JobState::Running);
    // A waiting one, but another attempt is meant.
    let urgent = cluster.submit(1, whole("normal")).await;
    let other = Preempted { for_job: JobId(urgent), ..victims[0].preempted.clone() };
    let older = [NewVictim { attempt: 2, preempted: other.clone(), ..victims[0].clone() }];
    assert_eq!(cluster.db.commit_preemptions(lease.epoch(), &[(JobId(urgent), claim.clone())], &older).await.unwrap(), 0);
    let meant = [NewVictim { preempted: other, ..victims[0].clone() }];
    assert_eq!(cluster.db.commit_preemptions(lease.epoch(), &[(JobId(urgent), claim)], &meant).await.unwrap(), 1);
    assert_eq!(cluster.state(victim).await, JobState::Completing);
    let fenced = cluster.db.commit_preemptions(berth_store::lease::Epoch(0), &[], &[]).await;
    assert!(matches!(fenced, Err(berth_store::StoreError::Fenced)));
}
