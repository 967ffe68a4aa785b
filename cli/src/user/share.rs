//! `berth share` and `berth prio`: the tree of shares, and priorities factor by factor.

use serde_json::Value;

use super::args::{Format, PrioArgs, ShareArgs};
use super::client::Client;
use super::queue::tenant;
use super::table::Table;
use super::{print_data, text};

pub async fn share(client: &Client, format: Format, args: ShareArgs) -> anyhow::Result<()> {
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(tenant(args.tenant));
    query.extend(args.account.map(|v| ("account", v)));
    query.extend(args.user.map(|v| ("user", v)));
    let shares = client.get("/v1/shares", &query).await?;
    if print_data(format, &shares)? {
        return Ok(());
    }
    let mut table = Table::new(&["ACCOUNT", "USER", "SHARES", "PART", "USED", "PART USED", "LEVEL FS", "FACTOR"]);
    for line in shares["items"].as_array().into_iter().flatten() {
        let depth = line["depth"].as_u64().unwrap_or(1).saturating_sub(1) as usize;
        let name = line["account"].as_str().or(line["tenant"].as_str()).unwrap_or_default();
        table.row(vec![
            format!("{}{name}", "  ".repeat(depth)),
            text(line, "user"),
            text(line, "fairshare"),
            fraction(&line["norm_shares"]),
            format!("{:.0}", line["raw_usage"].as_f64().unwrap_or(0.0)),
            fraction(&line["effective_usage"]),
            line["level_fs"].as_f64().map_or("inf".to_owned(), |level| format!("{level:.4}")),
            fraction(&line["factor"]),
        ]);
    }
    table.print(format == Format::Wide);
    Ok(())
}

fn fraction(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |number| format!("{number:.4}"))
}

pub async fn prio(client: &Client, format: Format, args: PrioArgs) -> anyhow::Result<()> {
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(tenant(args.tenant));
    query.extend(args.account.map(|v| ("account", v)));
    query.extend(args.user.map(|v| ("user", v)));
    query.extend(args.partition.map(|v| ("partition", v)));
    query.push(("page_size", args.limit.clamp(1, 1000).to_string()));
    let mut jobs = client.list("/v1/priorities", &query, args.limit as usize).await?;
    if !args.jobs.is_empty() {
        jobs.retain(|job| args.jobs.contains(&text(job, "job_id")));
    }
    if print_data(format, &jobs)? {
        return Ok(());
    }
    let factors = |job: &Value| job["factors"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for name in jobs.iter().flat_map(factors).map(|factor| text(&factor, "name")) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut heads: Vec<String> = ["JOB", "PARTITION", "USER", "ACCOUNT", "RANK", "PRIORITY"].map(str::to_owned).to_vec();
    heads.extend(names.iter().map(|name| name.to_uppercase()));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for job in &jobs {
        let mut row = ["job_id", "partition", "user", "account", "rank", "total"].map(|field| text(job, field)).to_vec();
        for name in &names {
            let found = factors(job).into_iter().find(|factor| factor["name"] == name.as_str());
            let number = |field: &str| found.as_ref().and_then(|factor| factor[field].as_f64());
            row.push(match (number("raw"), number("value")) {
                (Some(raw), _) if args.norm => format!("{raw:.6}"),
                (Some(raw), Some(value)) if format == Format::Wide => format!("{value:.0} ({raw:.4})"),
                (_, Some(value)) => format!("{value:.0}"),
                _ => String::new(),
            });
        }
        table.row(row);
    }
    table.print(format == Format::Wide);
    Ok(())
}
