//! `berth simulate`: a workload trace replayed on the engine under several policies, compared.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_sim::cluster::{Cluster, NodeGroup, Placement, Workload};
use berth_sim::plot::{Subject, draw};
use berth_sim::policy::Policy;
use berth_sim::replay::{Replay, replay};
use berth_sim::trace::Trace;
use serde_json::json;

use super::args::{Format, PlacementChoice, PlotChoice, SimulateArgs};
use super::print_data;
use super::table::{Table, duration};

pub fn simulate(format: Format, args: &SimulateArgs) -> anyhow::Result<()> {
    let path = args.trace.as_deref().context("name a trace")?;
    let policies = args.policies.iter().map(|text| Policy::read(text)).collect::<Result<Vec<Policy>, _>>()?;
    if let Some((again, _)) = policies.iter().zip(1..).find(|(policy, after)| policies[*after..].iter().any(|p| p.name == policy.name)) {
        anyhow::bail!("two policies are called {:?}; give one another name: NAME=FILE", again.name);
    }
    let trace = Trace::read(path)?;
    let placement = match args.placement {
        PlacementChoice::Pool => Placement::Pool,
        PlacementChoice::Node => Placement::Node,
    };
    let workload = Workload::of(&trace, &cluster(args, path)?, placement);
    if trace.skipped > 0 {
        eprintln!("berth: {} records of jobs that never ran are left out", trace.skipped);
    }
    if workload.rounded_up > 0 {
        eprintln!("berth: {} jobs ask for a part of a GPU; each is given a whole one", workload.rounded_up);
    }
    let replays: Vec<Replay> = policies.iter().map(|policy| watched(&workload, policy)).collect();
    if let Some(plot) = &args.plot {
        let subject = match args.plot_of {
            PlotChoice::Wait => Subject::Wait,
            PlotChoice::Slowdown => Subject::Slowdown,
        };
        let title = format!("{}, {} jobs", name(path), workload.jobs.len());
        std::fs::write(plot, draw(&replays, subject, &title)).with_context(|| format!("{}", plot.display()))?;
    }
    let data = json!({ "trace": name(path), "placement": placement, "capacity": workload.capacity, "policies": replays });
    if !print_data(format, &data)? {
        table(&replays).print(format == Format::Wide);
    }
    Ok(())
}

fn cluster(args: &SimulateArgs, trace: &Path) -> anyhow::Result<Cluster> {
    match (&args.cluster, args.nodes) {
        (Some(file), _) => Ok(Cluster::read(file, args.cluster_name.as_deref().unwrap_or(name(trace)))?),
        (None, Some(count)) => {
            let group = NodeGroup { count, cpus: args.cpus, gpus: args.gpus, gpu_type: None, mem_mb: None };
            Ok(Cluster::of(vec![group])?)
        }
        (None, None) => anyhow::bail!("describe the cluster: --cluster FILE, or --nodes N --cpus C --gpus G"),
    }
}

/// The file's name without its endings.
fn name(trace: &Path) -> &str {
    let name = trace.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Replays, and tells on standard error how far it is if that takes long.
fn watched(workload: &Workload, policy: &Policy) -> Replay {
    let is_terminal = std::io::stderr().is_terminal();
    let pause = Duration::from_secs(if is_terminal { 1 } else { 10 });
    let mut told = Instant::now();
    let mut is_line_open = false;
    let replayed = replay(workload, policy, &mut |ended| {
        if told.elapsed() < pause {
            return;
        }
        told = Instant::now();
        is_line_open = is_terminal;
        let text = format!("{}: {} of {} jobs", policy.name, ended, workload.jobs.len());
        let mut stderr = std::io::stderr();
        // Nobody to tell is no reason to stop.
        _ = if is_terminal { write!(stderr, "\r\x1b[K{text}") } else { writeln!(stderr, "{text}") };
    });
    if is_line_open {
        eprint!("\r\x1b[K");
    }
    replayed
}

fn table(replays: &[Replay]) -> Table {
    let mut table = Table::new(&["POLICY", "WAIT", "P95", "SLOWDOWN", "MEDIAN", "USE", "LARGE WAIT", "USERS", "REJECTED", "PREEMPTED"]);
    let span = |seconds: f64| duration(seconds.round() as u64);
    for replay in replays {
        let m = &replay.metrics;
        table.row(vec![
            replay.policy.clone(),
            span(m.mean_wait_seconds),
            span(m.p95_wait_seconds),
            format!("{:.2}", m.mean_bounded_slowdown),
            format!("{:.2}", m.median_bounded_slowdown),
            format!("{:.1} %", m.utilisation * 100.0),
            m.large_job_mean_wait_seconds.map_or_else(|| "-".to_owned(), span),
            format!("{:.1}", m.user_max_over_mean),
            m.rejected.to_string(),
            m.preemptions.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_called_after_its_file() {
        for file in ["kth.csv.gz", "/tmp/kth.swf", "kth"] {
            assert_eq!(name(Path::new(file)), "kth");
        }
    }
}
