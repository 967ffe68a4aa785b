//! The record of decisions, made by a leader and replayed from what the database kept.

use std::io::Cursor;

use berth_model::JobId;
use berth_model::state::JobState;
use berth_model::worker::Phase;
use berth_scheduler::record::replay::{ReplayError, Replayed, Target, replay};
use futures::TryStreamExt;
use jiff::Timestamp;

use crate::cluster::Cluster;

pub async fn record(cluster: &Cluster, at: Timestamp) -> Vec<u8> {
    let range = cluster.db.decisions_until(at).await.unwrap().expect("there is a record");
    let bodies: Vec<Vec<u8>> = cluster.db.decision_bodies(range).try_collect().await.unwrap();
    zstd::decode_all(Cursor::new(bodies.concat())).unwrap()
}

fn start_of(job: u64) -> Target {
    Target::Start { job: JobId(job), array_index: None }
}

#[tokio::test]
async fn any_plan_can_be_made_again_to_the_byte() {
    let cluster = Cluster::start().await;
    let leader = cluster.scheduler("one").await;
    let mut n1 = cluster.node("n1").await;
    let cpus = |count: u32| {
        move |job: &mut berth_store::jobs::submit::NewJob| {
            job.spec.resources.cpus_per_task = Some(count);
            let memory = berth_model::resources::MemoryDemand::PerCpu(berth_model::Bytes(1 << 20));
            job.planning.shape = job.spec.resources.shape(memory);
        }
    };
    let first = cluster.submit(1, cpus(3)).await;
    n1.assignment(first, Phase::Go).await;
    let large = cluster.submit(1, cpus(4)).await;
    let small = cluster.submit(1, |job| job.time_limit = 60).await;
    n1.assignment(small, Phase::Go).await;
    n1.run(small, 1, 0).await;
    n1.run(first, 1, 0).await;
    n1.assignment(large, Phase::Go).await;
    n1.run(large, 1, 0).await;
    cluster.until(large, JobState::Completed).await;
    cluster.stop.send(true).unwrap();
    leader.await.unwrap();

    let now = Timestamp::now();
    let lines = record(&cluster, now).await;
    let all = replay(&lines[..], Target::At(now)).unwrap();
    assert!(all.differs_at.is_none(), "{:?}", all.differs_at);
    // Each of the three starts is in a plan of its own, since the test waits for one before it brings about the next; what else is planned
    // depends on which events arrive together.
    assert!(all.plans >= 3 && all.events > 4, "{} plans, {} events", all.plans, all.events);

    let found: Replayed = replay(&lines[..], start_of(small)).unwrap();
    assert!(found.differs_at.is_none());
    assert_eq!(found.plan.starts.iter().map(|s| s.job).collect::<Vec<_>>(), [JobId(small)]);
    assert_eq!(found.plan.starts[0].nodes[0].node.as_str(), "n1");
    let attempts = cluster.db.attempts(small).await.unwrap();
    let decision = attempts[0].decision.as_ref().expect("an attempt tells its decision");
    assert_eq!((decision.epoch, decision.plan, decision.at), (found.epoch, found.record.number, found.record.at));
    // The one that waited: what held it, and until when.
    let waited = replay(&lines[..], start_of(large)).unwrap();
    assert_eq!(waited.before.unwrap().verdicts[0].code, "resources");

    // Told something else, the engine decides otherwise, and that is found out.
    let other = String::from_utf8(lines.clone()).unwrap().replace("\"time_limit\":600,", "\"time_limit\":700,");
    assert!(replay(other.as_bytes(), Target::At(now)).unwrap().differs_at.is_some());
    assert!(matches!(replay(&lines[..], start_of(999)), Err(ReplayError::NotReached)));
    let (_, rest) = other.split_once('\n').unwrap();
    assert!(matches!(replay(rest.as_bytes(), Target::At(now)), Err(ReplayError::NoCheckpoint)));
    assert!(cluster.db.decisions_until("2001-01-01T00:00:00Z".parse().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_old_is_forgotten_but_for_the_checkpoint_that_later_plans_need() {
    let cluster = Cluster::start().await;
    let lease = cluster.db.try_lead(&mut Default::default(), "test", std::time::Duration::from_secs(60)).await.unwrap().unwrap();
    let hours_ago = |hours: i64| Timestamp::now() - jiff::SignedDuration::from_hours(hours);
    for (number, is_checkpoint, from, to) in [(0, true, 9, 8), (1, true, 7, 6), (2, false, 5, 4), (3, false, 2, 1), (4, true, 1, 0)] {
        let chunk = berth_store::decisions::DecisionChunk {
            number,
            is_checkpoint,
            first_at: hours_ago(from),
            last_at: hours_ago(to),
            body: vec![number as u8],
        };
        cluster.db.write_decisions(lease.epoch(), &chunk).await.unwrap();
    }
    let bodies = async |at| {
        let range = cluster.db.decisions_until(at).await.unwrap()?;
        Some(cluster.db.decision_bodies(range).try_collect::<Vec<_>>().await.unwrap().concat())
    };
    assert_eq!(bodies(hours_ago(4)).await, Some(vec![1, 2]));
    assert_eq!(cluster.db.purge_decisions(lease.epoch(), 3 * 3600).await.unwrap(), 1, "the first checkpoint leads to nothing that is kept");
    assert_eq!(bodies(hours_ago(2)).await, Some(vec![1, 2, 3]));
    assert_eq!(cluster.db.purge_decisions(lease.epoch(), 1800).await.unwrap(), 3);
    assert_eq!(bodies(hours_ago(2)).await, None);
    assert_eq!(bodies(Timestamp::now()).await, Some(vec![4]));
}
