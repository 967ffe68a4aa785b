//! Time and memory to plan a full queue. `make bench` runs it; arguments name cases (`full`, `empty`, `nodes`, `jobs`, `accounts`), none runs all.

mod world;

use std::time::{Duration, Instant};

use berth_engine::{Engine, Plan};
use berth_model::event::{Event, JobSnapshot};
use jiff::SignedDuration;

use world::{by_user, fleet, limits, now, peak_memory_mib, running_jobs, simple_job, varied_job};

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// A fleet that is 90 % busy, a queue of 2,000 shapes.
fn busy(nodes: u32, jobs: u64) {
    let mut engine = fleet(nodes);
    let running = running_jobs(nodes, jobs + 1);
    for job in &running {
        engine.apply(Event::Job(Box::new(job.clone())));
    }
    (1..=jobs).for_each(|id| engine.apply(Event::Job(Box::new(varied_job(id)))));
    let (plan, first) = timed(|| engine.plan(now()));
    let (starts, verdicts) = (plan.starts.len(), plan.verdicts.len());
    let planned = plan.verdicts.iter().filter(|v| v.planned_start.is_some()).count();
    drop(plan);
    let (plan, again) = timed(|| engine.plan(now() + SignedDuration::from_secs(1)));
    drop(plan);
    let arrival = median((0..EVENTS).map(|i| {
        let job = Event::Job(Box::new(varied_job(1_000_000 + i)));
        timed(|| react(&mut engine, job, 2 + i)).1
    }));
    // Ends ahead of their time, of jobs of one to sixteen nodes.
    let end = median(running.iter().skip(30).take(EVENTS as usize).zip(0..).map(|(job, i)| {
        let gone = Event::JobGone(job.id);
        timed(|| react(&mut engine, gone, 2 + EVENTS + i)).1
    }));
    println!(
        "{nodes:>7} {jobs:>8} {:>8} {:>12} {:>12} {:>10} / {:>10} {:>10} / {:>10} {starts:>7} {verdicts:>8} {planned:>8} {:>6} MiB",
        running.len(),
        ms(first),
        ms(again),
        ms(arrival.0),
        ms(arrival.1),
        ms(end.0),
        ms(end.1),
        peak_memory_mib()
    );
}

/// Events of each kind, for medians.
const EVENTS: u64 = 101;

/// One event, and the quick plan that heeds it, so many milliseconds after the full plan.
fn react(engine: &mut Engine, event: Event, at: u64) -> Plan {
    engine.apply(event);
    let plan = engine.quick_plan(now() + SignedDuration::from_millis(1_000 + at as i64));
    assert!(!plan.is_full, "these events need no full plan");
    plan
}

/// Median and greatest.
fn median(times: impl Iterator<Item = Duration>) -> (Duration, Duration) {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    (times[times.len() / 2], times[times.len() - 1])
}

/// An empty fleet, a queue of six shapes.
fn empty(nodes: u32, jobs: u64) {
    let mut engine = fleet(nodes);
    (1..=jobs).for_each(|id| engine.apply(Event::Job(Box::new(simple_job(id)))));
    let (plan, first) = timed(|| engine.plan(now()));
    let (starts, verdicts) = (plan.starts.len(), plan.verdicts.len());
    drop(plan);
    let (_, again) = timed(|| engine.plan(now() + SignedDuration::from_secs(1)));
    println!("{nodes:>7} {jobs:>8} {:>13} {:>13} {starts:>7} {verdicts:>8}", ms(first), ms(again));
}

/// The same, asked for by many users under limits on accounts, users and use. `is_limited`: without, all is one user's.
fn accounts(nodes: u32, jobs: u64, is_limited: bool) {
    let mut engine = fleet(nodes);
    let of = |job: JobSnapshot| if is_limited { by_user(job, 10_000) } else { job };
    if is_limited {
        engine.apply(limits(100));
    }
    running_jobs(nodes, jobs + 1).into_iter().for_each(|job| engine.apply(Event::Job(Box::new(of(job)))));
    (1..=jobs).for_each(|id| engine.apply(Event::Job(Box::new(of(varied_job(id))))));
    let (_, first) = timed(|| drop(engine.plan(now())));
    let (plan, again) = timed(|| engine.plan(now() + SignedDuration::from_secs(1)));
    let limited = plan.verdicts.iter().filter(|v| v.verdicts[0].code.starts_with("assoc_")).count();
    let quick = median((0..EVENTS).map(|i| {
        let job = Event::Job(Box::new(of(varied_job(i * 97 + 1))));
        timed(|| react(&mut engine, job, 2 + i)).1
    }));
    println!("{nodes:>7} {jobs:>8} {is_limited:>7} {limited:>8} {:>13} {:>13} {:>13}", ms(first), ms(again), ms(quick.0));
}

fn main() {
    let cases: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |case: &str| cases.is_empty() || cases.iter().any(|c| c == case);
    let busy_head = || {
        println!(
            "{:>7} {:>8} {:>8} {:>13} {:>13} {:>7} {:>8} {:>8} {:>10}",
            "nodes", "jobs", "running", "first plan", "next plan", "starts", "verdicts", "planned", "peak"
        )
    };
    if wants("full") {
        busy_head();
        busy(30_000, 100_000);
    }
    if wants("nodes") {
        busy_head();
        [3_000, 7_500, 15_000].into_iter().for_each(|nodes| busy(nodes, 100_000));
    }
    if wants("jobs") {
        busy_head();
        [10_000, 25_000, 50_000].into_iter().for_each(|jobs| busy(30_000, jobs));
    }
    if wants("accounts") {
        println!(
            "{:>7} {:>8} {:>7} {:>8} {:>13} {:>13} {:>13}",
            "nodes", "jobs", "limits", "limited", "first plan", "next plan", "arrival"
        );
        [false, true].into_iter().for_each(|is_limited| accounts(30_000, 100_000, is_limited));
    }
    if wants("accounts-small") {
        [false, true].into_iter().for_each(|is_limited| accounts(3_000, 10_000, is_limited));
    }
    if wants("empty") {
        println!("{:>7} {:>8} {:>13} {:>13} {:>7} {:>8}", "nodes", "jobs", "first plan", "next plan", "starts", "verdicts");
        for nodes in [1_000, 10_000, 30_000] {
            [3_000, 10_000, 100_000].into_iter().for_each(|jobs| empty(nodes, jobs));
        }
    }
}
