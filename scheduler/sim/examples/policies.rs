//! The search for a policy: variants on traces, as the tables of docs/benchmarks.md.
//!
//! `cargo run --release -p berth-sim --example policies -- DIR TRACE:PLACEMENT… [POLICY…]`: DIR holds `TRACE.csv.gz` and
//! `clusters.json`; without policies all variants are run. On as many cores as there are.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use berth_engine::{Order, Rest, Settings};
use berth_sim::cluster::{Cluster, Placement, Workload};
use berth_sim::policy::Policy;
use berth_sim::replay::{Replay, replay};
use berth_sim::trace::Trace;

const DAY: u64 = 86_400;

/// What was tried: the built-in policies, and each choice of `urgency` taken back or changed.
fn variants() -> Vec<Policy> {
    let chosen = Settings::urgency();
    let of = |name: &str, settings| Policy { name: name.to_owned(), settings };
    let patience = |days: u64| Settings { order: Order::Urgency { patience_seconds: days * DAY }, ..chosen };
    let mut all: Vec<Policy> = Policy::BUILT_IN.iter().filter_map(|name| Policy::built_in(name)).collect();
    all.extend([
        of("urgency, shortest rest first", Settings { rest: Rest::Shortest, ..chosen }),
        of("urgency, shortest predicted first", Settings { rest: Rest::Shortest, is_predicted: true, ..chosen }),
        of("urgency, depth 2", Settings { depth: 2, ..chosen }),
        of("urgency, depth 4", Settings { depth: 4, ..chosen }),
        of("urgency, depth all", Settings { depth: usize::MAX, ..chosen }),
        of("urgency, patience 7 d", patience(7)),
        of("urgency, patience 14 d", patience(14)),
        of("urgency, no patience", patience(100_000)),
    ]);
    all
}

fn workload(dir: &Path, case: &str) -> Result<Workload, Box<dyn std::error::Error>> {
    let (name, placement) = case.split_once(':').ok_or("write TRACE:pool or TRACE:node")?;
    let placement = match placement {
        "pool" => Placement::Pool,
        "node" => Placement::Node,
        other => return Err(format!("{other:?} is neither pool nor node").into()),
    };
    let trace = Trace::read(&dir.join(format!("{name}.csv.gz")))?;
    Ok(Workload::of(&trace, &Cluster::read(&dir.join("clusters.json"), name)?, placement))
}

fn row(case: &str, replay: &Replay) -> String {
    let m = &replay.metrics;
    format!(
        "| {} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.4} | {:.0} | {:.1} |",
        case.replace(':', ", "),
        replay.policy,
        m.mean_wait_seconds,
        m.p95_wait_seconds,
        m.mean_bounded_slowdown,
        m.median_bounded_slowdown,
        m.utilisation,
        m.large_job_mean_wait_seconds.unwrap_or(f64::NAN),
        m.user_max_over_mean
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, rest) = args.split_first().ok_or("name the folder of the traces")?;
    let (cases, names): (Vec<&String>, Vec<&String>) = rest.iter().partition(|arg| arg.contains(':'));
    let policies: Vec<Policy> = variants().into_iter().filter(|p| names.is_empty() || names.contains(&&p.name)).collect();
    let mut runs = Vec::new();
    for case in cases {
        let workload = workload(Path::new(dir), case)?;
        runs.extend(policies.iter().map(|policy| (case, workload.clone(), policy)));
    }
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<(usize, String)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some((case, workload, policy)) = runs.get(at)
                {
                    let row = row(case, &replay(workload, policy, &mut |_| ()));
                    eprintln!("{row}");
                    rows.lock().expect("no run panics").push((at, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner()?;
    rows.sort();
    println!(
        "| trace, placement | policy | mean wait s | p95 wait s | mean bsld | median bsld | util window | large-job mean wait s | user max/mean |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    rows.iter().for_each(|(_, row)| println!("{row}"));
    Ok(())
}
