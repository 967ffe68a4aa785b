//! `berth simulate --history`: what the service recorded, replayed there under other policies.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use berth_model::policy::{Policy, QueueOrder, QueuePolicy};
use serde_json::{Value, json};

use super::args::{Format, PlotChoice, SimulateArgs};
use super::client::Client;
use super::print_data;
use super::table::{Table, duration};

pub async fn simulate(client: &Client, format: Format, args: &SimulateArgs) -> anyhow::Result<()> {
    let (from, to) = period(args.history.as_deref().unwrap_or_default())?;
    let current: Policy = serde_json::from_value(client.get("/v1/policy", &[]).await?).context("the service's policy")?;
    let policies = args.policies.iter().map(|text| policy(text, current.clone())).collect::<anyhow::Result<Vec<Value>>>()?;
    let key = uuid::Uuid::new_v4().to_string();
    let asked = json!({ "from": from, "to": to, "policies": policies });
    let mut simulation = client.post("/v1/simulations", &asked, Some(&key)).await?;
    let id = simulation["simulation_id"].to_string();
    while simulation["state"] == "running" {
        eprintln!("simulation {id}: {} of {} jobs", simulation["done_jobs"], simulation["total_jobs"]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        simulation = client.get(&format!("/v1/simulations/{id}"), &[]).await?;
    }
    if simulation["state"] != "done" {
        bail!("simulation {id}: {}", simulation["failure"].as_str().unwrap_or("it failed"));
    }
    let result = &simulation["result"];
    if let Some(path) = &args.plot {
        let field = match args.plot_of {
            PlotChoice::Wait => "wait",
            PlotChoice::Slowdown => "slowdown",
        };
        std::fs::write(path, result["plots"][field].as_str().unwrap_or_default()).with_context(|| format!("{}", path.display()))?;
    }
    if !print_data(format, &simulation)? {
        print(result, format == Format::Wide);
    }
    Ok(())
}

/// `FROM..TO`: days in UTC, or instants.
fn period(text: &str) -> anyhow::Result<(jiff::Timestamp, jiff::Timestamp)> {
    let instant = |part: &str| {
        let day = || part.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|at| at.timestamp());
        part.parse()
            .ok()
            .or_else(day)
            .ok_or_else(|| anyhow!("--history: {part:?} is no day and no instant; for example 2026-11-01..2026-12-01"))
    };
    let (from, to) =
        text.split_once("..").with_context(|| format!("--history: {text:?} is not FROM..TO; for example 2026-11-01..2026-12-01"))?;
    Ok((instant(from)?, instant(to)?))
}

/// A policy of the service: as it is, but for the walk of the queue that the name stands for; or a file's.
fn policy(text: &str, current: Policy) -> anyhow::Result<Value> {
    if let Some((name, path)) = text.split_once('=') {
        let file = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        let policy: Policy = serde_yaml_ng::from_str(&file).with_context(|| path.to_owned())?;
        return Ok(json!({ "name": name, "policy": policy }));
    }
    let walk = |order, depth| Some(QueuePolicy { order, depth, ..QueuePolicy::default() });
    let policy = match text {
        "conservative" => Policy { queue: walk(QueueOrder::Submission, None), ..current },
        "easy" => Policy { queue: walk(QueueOrder::Submission, Some(1)), ..current },
        "urgency" => Policy { weight_age: 0, queue: walk(QueueOrder::Urgency, Some(1)), ..current },
        _ => bail!("{text:?} is no policy of the service; write NAME=FILE, or one of conservative, easy, urgency"),
    };
    Ok(json!({ "name": text, "policy": policy }))
}

fn print(result: &Value, is_wide: bool) {
    let columns = ["POLICY", "JOBS", "WAIT", "P95", "SLOWDOWN", "MEDIAN", "USE", "LARGE WAIT", "USERS", "REJECTED", "PREEMPTED", "LOST"];
    let mut table = Table::new(&columns);
    let mut accounts = Table::new(&["POLICY", "TENANT", "ACCOUNT", "JOBS", "WAIT", "UNIT HOURS"]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for row in result["policies"].as_array().into_iter().flatten() {
        let number = |field: &str| row[field].as_f64().unwrap_or(0.0);
        let span = |field: &str| row[field].as_f64().map_or_else(|| "-".to_owned(), |seconds| duration(seconds.round() as u64));
        table.row(vec![
            text(&row["policy"]),
            text(&row["jobs"]),
            span("mean_wait_seconds"),
            span("p95_wait_seconds"),
            format!("{:.2}", number("mean_bounded_slowdown")),
            format!("{:.2}", number("median_bounded_slowdown")),
            format!("{:.1} %", number("utilisation") * 100.0),
            span("large_job_mean_wait_seconds"),
            format!("{:.1}", number("user_max_over_mean")),
            text(&row["rejected"]),
            text(&row["preemptions"]),
            format!("{:.1} h", number("lost_unit_seconds") / 3600.0),
        ]);
        for account in row["accounts"].as_array().into_iter().flatten() {
            let wait = account["mean_wait_seconds"].as_f64().unwrap_or(0.0).round() as u64;
            let hours = format!("{:.2}", account["unit_hours"].as_f64().unwrap_or(0.0));
            let names = ["tenant", "account", "jobs"].map(|field| text(&account[field]));
            let [tenant, name, jobs] = names;
            accounts.row(vec![text(&row["policy"]), tenant, name, jobs, duration(wait), hours]);
        }
    }
    table.print(is_wide);
    println!();
    accounts.print(is_wide);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_of_days_or_of_instants() {
        let (from, to) = period("2026-11-01..2026-11-02T08:00:00Z").unwrap();
        assert_eq!((from.to_string().as_str(), to.to_string().as_str()), ("2026-11-01T00:00:00Z", "2026-11-02T08:00:00Z"));
        for bad in ["", "2026-11-01", "yesterday..today"] {
            assert!(period(bad).unwrap_err().to_string().contains("for example 2026-11-01..2026-12-01"), "{bad}");
        }
    }
}
