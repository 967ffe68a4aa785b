//! Small traces under each policy, with starts and figures worked out by hand.

use std::collections::BTreeMap;

use berth_sim::cluster::{Cluster, NodeGroup, Placement, Workload};
use berth_sim::metrics::Metrics;
use berth_sim::plot::{Subject, draw};
use berth_sim::policy::Policy;
use berth_sim::replay::replay;
use berth_sim::trace::Trace;
use berth_sim::{Schedule, simulate};

/// A job in minutes and units: user, submitted, units, limit, length.
type Job = (&'static str, u64, u32, u64, u64);

fn workload(units: u32, jobs: &[Job]) -> Workload {
    let mut text = "submit_s,user,nodes,cpus,runtime_s,walltime_s\n".to_owned();
    for (user, submit, units, limit, length) in jobs {
        text += &format!("{},{user},{units},1,{},{}\n", submit * 60, length * 60, limit * 60);
    }
    let group = NodeGroup { count: units, cpus: 1, gpus: 0, gpu_type: None, mem_mb: None };
    Workload::of(&Trace::from_csv(&text).unwrap(), &Cluster::of(vec![group]).unwrap(), Placement::Pool)
}

fn schedule(workload: &Workload, policy: &str) -> Schedule {
    let settings = Policy::built_in(policy).unwrap().settings;
    simulate(settings, workload.world.clone(), workload.jobs.clone(), &mut |_| ())
}

/// When each job starts, in minutes after the first submission.
fn starts(workload: &Workload, policy: &str) -> Vec<i64> {
    let begin = workload.jobs[0].job.submit_time;
    let by_id: BTreeMap<u64, i64> =
        schedule(workload, policy).outcomes.iter().map(|o| (o.job.0, o.started.duration_since(begin).as_mins())).collect();
    by_id.into_values().collect()
}

/// Ten units. The first takes eight until minute 100. The second wants all ten: planned at 100. The third wants two for 200 minutes:
/// it would run past 100 and take what the second needs.
const GAP: [Job; 4] = [("a", 0, 8, 100, 100), ("a", 1, 10, 100, 10), ("b", 2, 2, 200, 20), ("b", 3, 2, 90, 10)];

#[test]
fn easy_lets_nobody_delay_the_head() {
    // The fourth fits before 100: 3 to 13. The third waits for the second, which ends at 110.
    assert_eq!(starts(&workload(10, &GAP), "easy"), [0, 100, 110, 3]);
}

/// Ten units, six taken until 100; then seven are wanted for an hour, eight for an hour, three for 160 minutes.
const SECOND: [Job; 4] = [("a", 0, 6, 100, 100), ("a", 1, 7, 60, 60), ("b", 2, 8, 60, 60), ("b", 3, 3, 160, 160)];

#[test]
fn conservative_keeps_everybody_s_planned_start_and_easy_only_the_head_s() {
    // Planned: the second at 100 (until 160), the third at 160 (until 220). The fourth holds three of the four free units until 163:
    // beside the second's seven that fits, beside the third's eight it does not.
    // EASY lets it go at 3; the third then waits until 163. Conservative plans it behind the third, at 220.
    let workload = workload(10, &SECOND);
    assert_eq!(starts(&workload, "easy"), [0, 100, 163, 3]);
    assert_eq!(starts(&workload, "conservative"), [0, 100, 160, 220]);
}

/// Two units free until the head's planned start at 100, three jobs of two units that would end before it.
const FILL: [Job; 5] = [("a", 0, 8, 100, 100), ("a", 1, 10, 10, 10), ("long", 2, 2, 90, 1), ("mid", 2, 2, 60, 50), ("short", 2, 2, 30, 29)];

#[test]
fn shortest_first_orders_what_is_tried_behind_the_head() {
    // In order: the first of them (2 to 3), then 60 minutes (3 to 53), then 30 (53 to 82).
    assert_eq!(starts(&workload(10, &FILL), "easy"), [0, 100, 2, 3, 53]);
    // Shortest limit first: 30 minutes (2 to 31), then 60 (31 to 81), which end by 100; the 90 minutes no longer do: after the head.
    assert_eq!(starts(&workload(10, &FILL), "easy-sjbf"), [0, 100, 110, 31, 2]);
}

#[test]
fn predictions_order_by_what_the_user_ran_last() {
    // The user of the 90 minutes' limit has run one and three minutes before: predicted to run two, it goes before 30 minutes.
    let mut jobs = vec![("long", 0, 1, 90, 1), ("long", 0, 1, 90, 3)];
    jobs.extend(FILL.map(|(user, submit, units, limit, length)| (user, submit + 10, units, limit, length)));
    // Then 30 minutes (13 to 42) and 60 (42 to 92).
    assert_eq!(starts(&workload(10, &jobs), "easy-sjbf-predicted"), [0, 0, 10, 110, 12, 42, 13]);
}

#[test]
fn urgency_puts_the_wide_and_the_short_first() {
    // Ten units, all taken until 60. Urgency there, in hours: wait³ × part of the units⁴ ÷ limit².
    //   second: 0.983³ × 0.5⁴ ÷ 10² = 0.0006; third: 0.967³ × 1 ÷ 1 = 0.903; fourth: 0.95³ × 0.5⁴ ÷ (1/6)² = 1.93.
    // So the fourth goes at 60 until 70, the third gets the planned start at 70. The second would hold five units past 70: it waits
    // for the third's end at 130.
    let jobs = [("a", 0, 10, 60, 60), ("b", 1, 5, 600, 600), ("c", 2, 10, 60, 60), ("d", 3, 5, 10, 10)];
    assert_eq!(starts(&workload(10, &jobs), "urgency"), [0, 130, 70, 60]);
    // By submission the second starts at 60 with the fourth beside it, and the third waits ten hours.
    assert_eq!(starts(&workload(10, &jobs), "easy"), [0, 60, 660, 60]);
}

#[test]
fn patience_ends_for_who_was_passed_too_often() {
    let file = std::env::temp_dir().join(format!("berth-sim-{}-patience.toml", std::process::id()));
    std::fs::write(&file, "order = \"urgency\"\npatience_seconds = 3540\ndepth = 1\n").unwrap();
    let policy = Policy::read(&format!("short={}", file.display())).unwrap();
    std::fs::remove_file(&file).unwrap();
    // The second has waited for 59 minutes at 60 and is ahead of all that have not, with the fourth beside it.
    let jobs = [("a", 0, 10, 60, 60), ("b", 1, 5, 600, 600), ("c", 2, 10, 60, 60), ("d", 3, 5, 10, 10)];
    let workload = workload(10, &jobs);
    let schedule = simulate(policy.settings, workload.world.clone(), workload.jobs.clone(), &mut |_| ());
    let second = schedule.outcomes.iter().find(|o| o.job.0 == 2).unwrap();
    assert_eq!(second.wait().as_mins(), 59);
}

#[test]
fn figures_are_those_worked_out_by_hand() {
    // Two units. 1: 0 to 10 on both. 2: comes at 0, waits 10, is stopped at its limit of 5: slowdown 15 ÷ 5 = 3. 3: comes at 10,
    // beside it at once: slowdown 1. 4 never fits. 5: comes at 20 and runs at once, outside the window.
    let jobs = [("a", 0, 2, 10, 10), ("a", 0, 1, 5, 50), ("b", 10, 1, 20, 20), ("b", 15, 3, 1, 1), ("b", 20, 1, 5, 5)];
    let workload = workload(2, &jobs);
    let (metrics, fared) = Metrics::of(&workload, &schedule(&workload, "easy"));
    assert_eq!((metrics.jobs, metrics.rejected, metrics.preemptions), (5, 1, 0));
    assert_eq!(metrics.mean_wait_seconds, 150.0);
    // Waits 0, 0, 0, 600: at 0.95 × 3 = 2.85, 85 % of the way from 0 to 600.
    assert!((metrics.p95_wait_seconds - 510.0).abs() < 1e-9);
    assert_eq!((metrics.mean_bounded_slowdown, metrics.median_bounded_slowdown), (1.5, 1.0));
    // Busy until 20: 2 × 10 + 5 + 10 of 2 × 20 unit-minutes.
    assert!((metrics.utilisation - 35.0 / 40.0).abs() < 1e-9);
    // The 99th percentile of 1, 1, 1, 2, 3 is 2.96: only the job that was rejected is as large.
    assert_eq!((metrics.large_jobs, metrics.large_job_mean_wait_seconds), (0, None));
    // Nobody has ten jobs.
    assert_eq!(metrics.user_max_over_mean, 0.0);
    assert_eq!(fared.len(), 4);
}

#[test]
fn users_are_compared_by_their_means_and_a_short_run_counts_ten_seconds() {
    // One unit, two users of ten jobs of a second each, all at once: the nth waits n − 1 seconds, slowdown max(1, n ÷ 10).
    let mut text = "submit_s,user,nodes,cpus,runtime_s,walltime_s\n".to_owned();
    for i in 0..20 {
        text += &format!("0,{},1,1,1,60\n", if i < 10 { "first" } else { "second" });
    }
    let group = NodeGroup { count: 1, cpus: 1, gpus: 0, gpu_type: None, mem_mb: None };
    let workload = Workload::of(&Trace::from_csv(&text).unwrap(), &Cluster::of(vec![group]).unwrap(), Placement::Node);
    let (metrics, _) = Metrics::of(&workload, &schedule(&workload, "easy"));
    // The first's ten have 1; the second's 1.1, 1.2, … 2.0, in the mean 1.55. 1.55 ÷ 1.275.
    assert!((metrics.mean_bounded_slowdown - 1.275).abs() < 1e-9);
    assert!((metrics.user_max_over_mean - 1.55 / 1.275).abs() < 1e-9);
}

#[test]
fn nodes_bound_what_a_pool_does_not() {
    // Two nodes of four CPUs and 100 MiB with two GPUs. Three CPUs on each node leave one on each: a job of two CPUs waits, on a pool
    // it does not. The third asks for the memory of one node and half.
    let text = "submit_s,nodes,cpus,gpus,mem_mb,runtime_s,walltime_s\n0,2,3,0,10,60,60\n1,1,2,0,10,60,60\n2,1,1,0,150,60,60\n";
    let group = NodeGroup { count: 2, cpus: 4, gpus: 0, gpu_type: None, mem_mb: Some(100) };
    let (trace, cluster) = (Trace::from_csv(text).unwrap(), Cluster::of(vec![group]).unwrap());
    let waits = |placement| {
        let schedule = schedule(&Workload::of(&trace, &cluster, placement), "easy");
        (schedule.outcomes.iter().map(|o| (o.job.0, o.wait().as_secs())).collect::<BTreeMap<_, _>>(), schedule.never_started.len())
    };
    assert_eq!(waits(Placement::Node), (BTreeMap::from([(1, 0), (2, 59)]), 1));
    assert_eq!(waits(Placement::Pool), (BTreeMap::from([(1, 0), (2, 0), (3, 58)]), 0));
}

#[test]
fn gpus_of_a_type_go_to_nodes_that_have_it_and_parts_are_rounded_up() {
    let text =
        "submit_s,nodes,cpus,gpus,gpu_type,runtime_s,walltime_s\n0,1,1,1,A,60,60\n0,1,1,0.5,A|B,60,60\n0,1,1,1,C,60,60\n0,1,1,1,,60,60\n";
    let of = |kind: &str| NodeGroup { count: 1, cpus: 4, gpus: 1, gpu_type: Some(kind.to_owned()), mem_mb: None };
    let workload = Workload::of(&Trace::from_csv(text).unwrap(), &Cluster::of(vec![of("A"), of("B")]).unwrap(), Placement::Node);
    assert_eq!((workload.capacity, workload.rounded_up), (2.0, 1));
    let schedule = schedule(&workload, "easy");
    let nodes: BTreeMap<u64, &str> = schedule.outcomes.iter().map(|o| (o.job.0, o.nodes[0].node.as_str())).collect();
    assert_eq!(nodes, BTreeMap::from([(1, "n1"), (2, "n2"), (4, "n1")]));
    assert_eq!(schedule.never_started.len(), 1);
}

#[test]
fn a_replay_is_the_same_each_time_and_can_be_drawn() {
    let workload = workload(10, &FILL);
    let policies = ["easy", "urgency"].map(|name| Policy::built_in(name).unwrap());
    let replays = policies.each_ref().map(|policy| replay(&workload, policy, &mut |_| ()));
    for (first, policy) in replays.iter().zip(&policies) {
        let again = replay(&workload, policy, &mut |_| ());
        assert_eq!((&first.metrics, &first.fared), (&again.metrics, &again.fared));
    }
    let svg = draw(&replays, Subject::Slowdown, "five jobs <of mine>");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("five jobs &lt;of mine&gt;"));
    // A bar for each policy and span, a key for each policy, the ground.
    assert_eq!(svg.matches("<rect ").count(), 8 * 2 + 2 + 1);
    // Of waits of 0, 99, 0, 1 and 51 minutes three are within the first span.
    assert!(draw(&replays[..1], Subject::Wait, "").contains("<title>easy: 60.0 %</title>"));
}
