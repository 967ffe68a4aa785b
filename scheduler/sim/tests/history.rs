//! Recorded history: what was recorded is measured as it was, and a replay runs the same jobs under another policy.

use berth_model::event::Event;
use berth_model::policy::{Policy, QueueOrder, QueuePolicy};
use berth_sim::cluster::{Cluster, NodeGroup, Placement, Workload, begin};
use berth_sim::history::{History, Recorded};
use berth_sim::trace::Trace;
use jiff::SignedDuration;

/// Ten CPUs on one node. Jobs in minutes: submitted, CPUs, limit, recorded start and end.
const JOBS: [(i64, u32, u64, i64, i64); 4] = [(0, 10, 60, 0, 60), (1, 5, 600, 60, 660), (2, 10, 60, 660, 720), (3, 5, 10, 60, 70)];

fn history() -> History {
    let mut text = "submit_s,user,nodes,cpus,runtime_s,walltime_s\n".to_owned();
    for (submit, cpus, limit, _, _) in JOBS {
        text += &format!("{},ann,1,{cpus},1,{}\n", submit * 60, limit * 60);
    }
    let group = NodeGroup { count: 1, cpus: 10, gpus: 0, gpu_type: None, mem_mb: None };
    let workload = Workload::of(&Trace::from_csv(&text).unwrap(), &Cluster::of(vec![group]).unwrap(), Placement::Node);
    let at = |minutes: i64| begin() + SignedDuration::from_mins(minutes);
    let past = workload.jobs.into_iter().zip(JOBS).map(|(sim, (_, _, _, started, ended))| Recorded {
        job: sim.job,
        started: at(started),
        ended: at(ended),
        restarts: u32::from(ended == 70),
        lost_seconds: 60 * u64::from(ended == 70),
    });
    let mut world = workload.world;
    // Down today; in the replay it serves.
    for event in &mut world {
        if let Event::Node(node) = event {
            node.is_down = true;
        }
    }
    History::of(world, past.collect())
}

#[test]
fn the_record_is_measured_as_it_was() {
    let recorded = history().recorded();
    let metrics = &recorded.replay.metrics;
    assert_eq!((recorded.replay.policy.as_str(), metrics.jobs, metrics.preemptions), ("recorded", 4, 1));
    // Waits of 0, 59, 658 and 57 minutes.
    assert_eq!(metrics.mean_wait_seconds, 60.0 * (59.0 + 658.0 + 57.0) / 4.0);
    assert_eq!(recorded.lost_unit_seconds, 5.0 * 60.0);
    // 10 × 1 h, 5 × 10 h, 10 × 1 h, 5 × 10 min.
    let account = &recorded.accounts[0];
    assert_eq!((recorded.accounts.len(), account.account.as_str(), account.jobs), (1, "default", 4));
    assert!((account.unit_hours - (10.0 + 50.0 + 10.0 + 5.0 / 6.0)).abs() < 1e-9);
}

#[test]
fn a_replay_runs_the_same_jobs_under_another_policy() {
    let history = history();
    let plain = Policy { weight_age: 0, ..Policy::default() };
    let queue = QueuePolicy { order: QueueOrder::Urgency, depth: Some(1), ..QueuePolicy::default() };
    // In order of submission it goes as it went; by urgency the third goes before the long second: starts 0, 130, 70, 60.
    let mut ended = 0;
    let same = history.replay("same".to_owned(), plain.clone(), &mut |jobs| ended = jobs);
    assert_eq!((ended, same.replay.metrics.mean_wait_seconds), (4, history.recorded().replay.metrics.mean_wait_seconds));
    let urgent = history.replay("urgent".to_owned(), Policy { queue: Some(queue), ..plain }, &mut |_| ());
    assert_eq!(urgent.replay.metrics.mean_wait_seconds, 60.0 * (129.0 + 68.0 + 57.0) / 4.0);
    assert_eq!((urgent.replay.metrics.preemptions, urgent.lost_unit_seconds), (0, 0.0));
    assert_eq!(urgent.accounts[0].unit_hours, same.accounts[0].unit_hours);
}
