//! `berth reservations`: in the words of `scontrol create reservation`.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use berth_model::Bytes;
use berth_model::amount::parse_time_limit;
use berth_model::reservation::ReservationFlag;
use berth_model::script::instant;
use serde_json::{Map, Value, json};

use super::args::{Format, ReservationCommand};
use super::client::Client;
use super::queue::{short_time, zone};
use super::table::{Table, duration};
use super::{print_data, segment, text};

pub async fn reservations(client: &Client, format: Format, command: Option<ReservationCommand>) -> anyhow::Result<()> {
    match command.unwrap_or(ReservationCommand::List) {
        ReservationCommand::List => list(client, format).await,
        ReservationCommand::Show { name } => {
            let found = client.get(&format!("/v1/reservations/{}", segment(&name)?), &[]).await?;
            tell(format, &found)
        }
        ReservationCommand::Create { name, settings } => {
            let mut body = patch(&settings, &jiff::Zoned::now())?;
            body.insert("name".to_owned(), json!(name));
            body.retain(|_, value| !value.is_null());
            let made = client.post("/v1/reservations", &Value::Object(body), None).await?;
            if !print_data(format, &made)? {
                println!("Reservation created: {name} on {}", text(&made, "node_list"));
            }
            Ok(())
        }
        ReservationCommand::Update { name, settings } => {
            let body = patch(&settings, &jiff::Zoned::now())?;
            let stored = client.patch(&format!("/v1/reservations/{}", segment(&name)?), &[], &Value::Object(body)).await?;
            tell(format, &stored)
        }
        ReservationCommand::Delete { name } => {
            client.delete(&format!("/v1/reservations/{}", segment(&name)?), &[]).await?;
            println!("Reservation {name} deleted");
            Ok(())
        }
    }
}

async fn list(client: &Client, format: Format) -> anyhow::Result<()> {
    let all = client.list("/v1/reservations", &[], usize::MAX).await?;
    if print_data(format, &all)? {
        return Ok(());
    }
    let (start, end) = (format!("START ({})", zone()), "END");
    let mut heads = vec!["RESERVATION", "STATE", &start, end, "DURATION", "NODES", "NODELIST", "FLAGS"];
    if format == Format::Wide {
        heads.extend(["TRES", "USERS", "ACCOUNTS", "TENANTS", "JOBS", "COMMENT"]);
    }
    let mut table = Table::new(&heads);
    for one in &all {
        let window = &one["window"];
        let state = if one["is_active"] == true { "ACTIVE" } else { "INACTIVE" };
        let mut row = vec![text(one, "name"), state.to_owned(), short_time(window, "start"), short_time(window, "end"), lasts(window)];
        row.extend([text(one, "reserved_nodes"), text(one, "node_list"), flag_words(one)]);
        if format == Format::Wide {
            row.extend([shares(one), words(&one["users"]), words(&one["accounts"]), words(&one["tenants"])]);
            row.extend([text(one, "running_jobs"), text(one, "comment")]);
        }
        table.row(row);
    }
    table.print(format == Format::Wide);
    Ok(())
}

/// As `scontrol show reservation`.
fn tell(format: Format, one: &Value) -> anyhow::Result<()> {
    if print_data(format, one)? {
        return Ok(());
    }
    let window = &one["window"];
    let state = if one["is_active"] == true { "ACTIVE" } else { "INACTIVE" };
    println!("ReservationName={} State={state}", text(one, "name"));
    println!("  StartTime={} EndTime={} Duration={} ({})", short_time(window, "start"), short_time(window, "end"), lasts(window), zone());
    println!("  Nodes={} NodeCnt={} TRES={}", text(one, "node_list"), text(one, "reserved_nodes"), shares(one));
    println!("  Users={} Accounts={} Tenants={}", words(&one["users"]), words(&one["accounts"]), words(&one["tenants"]));
    println!("  Flags={} Jobs={} Comment={}", flag_words(one), text(one, "running_jobs"), text(one, "comment"));
    Ok(())
}

fn lasts(window: &Value) -> String {
    let at = |field: &str| window[field].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let seconds = at("start").zip(at("end")).map_or(0, |(start, end)| end.duration_since(start).as_secs());
    duration(seconds.max(0).unsigned_abs())
}

/// With what Slurm has as flags too.
fn flag_words(one: &Value) -> String {
    let mut flags = vec![words(&one["flags"])];
    flags.extend(one["float_seconds"].as_u64().map(|_| "time_float".to_owned()));
    flags.extend(one["purge_after_seconds"].as_u64().map(|seconds| format!("purge_comp={}", duration(seconds))));
    flags.retain(|flag| !flag.is_empty());
    flags.join(",")
}

fn words(list: &Value) -> String {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// What it keeps of nodes that it does not have whole.
fn shares(one: &Value) -> String {
    let parts = one["parts"].as_array().into_iter().flatten().filter(|part| !part["share"].is_null());
    let share = |part: &Value| {
        let share = &part["share"];
        let gpus: u64 = share["gpus"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
        format!(
            "{}:cpu={},mem={},gres/gpu={gpus}",
            text(part, "nodes"),
            text(share, "cpus"),
            Bytes(share["memory_bytes"].as_u64().unwrap_or(0))
        )
    };
    parts.map(share).collect::<Vec<_>>().join(" ")
}

const KNOWN: &str = "StartTime, EndTime, Duration, Nodes, NodeCnt, CoreCnt, TRES, Features, PartitionName, Users, Accounts, Tenants, Flags, TimeZone, Comment";

/// `KEY=VALUE` settings as a body. A value that is empty takes the setting back.
fn patch(settings: &[String], now: &jiff::Zoned) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    let mut start = None;
    let mut floats = false;
    let mut given = BTreeSet::new();
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            bail!("{setting:?} is no setting; write KEY=VALUE, for example NodeCnt=2\n  known are: {KNOWN}");
        };
        let plain: String = key.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
        if !given.insert(plain.clone()) {
            bail!("{key} is given twice; of several names write Nodes=n[2-3] or Users=acme/ann,acme/bob");
        }
        let value = value.trim();
        let is_void = value.is_empty();
        let mut set = |field: &str, read: Value| body.insert(field.to_owned(), if is_void { Value::Null } else { read });
        let time = || if is_void { Ok(None) } else { instant(value, now).map(Some).with_context(|| when(key, value)) };
        let list = || json!(value.split(',').map(str::trim).filter(|name| !name.is_empty()).collect::<Vec<_>>());
        match plain.as_str() {
            "starttime" | "start" => {
                start = time()?;
                set("start", json!(start));
            }
            "endtime" | "end" => _ = set("end", json!(time()?)),
            "duration" => {
                // Slurm's minutes; infinite is what the service takes if nothing is said.
                let seconds = match value.to_ascii_lowercase().as_str() {
                    "" | "infinite" | "unlimited" => None,
                    _ => parse_time_limit(value).map_err(|fault| anyhow::anyhow!("{key}: {}; {}", fault.detail, fault.help))?,
                };
                set("duration_seconds", json!(seconds));
            }
            "nodes" => _ = set("nodes", json!(if value.eq_ignore_ascii_case("all") { "ALL" } else { value })),
            "nodecnt" | "nodecount" => _ = set("node_count", json!(if is_void { 0 } else { number(key, value)? })),
            "corecnt" => _ = set("tres", json!({ "cpu": if is_void { 0 } else { number(key, value)? } })),
            "tres" => tres(value, &mut body)?,
            "features" | "feature" => _ = set("features", json!(value)),
            "partitionname" | "partition" => _ = set("partition", json!(value)),
            "users" | "user" => _ = set("users", list()),
            "accounts" | "account" => _ = set("accounts", list()),
            "tenants" | "tenant" => _ = set("tenants", list()),
            "comment" => _ = set("comment", json!(value)),
            "timezone" => _ = set("time_zone", json!(value)),
            "purgeafterseconds" => _ = set("purge_after_seconds", json!(if is_void { 0 } else { number(key, value)? })),
            "flags" | "flag" => floats = flags(value, &mut body)?,
            _ => bail!("{key:?} is no setting of a reservation\n  known are: {KNOWN}"),
        }
    }
    if floats {
        let at = start.context("TIME_FLOAT needs StartTime=now+…, for example StartTime=now+60minutes")?;
        let seconds = at.as_second() - now.timestamp().as_second();
        body.remove("start");
        body.insert("float_seconds".to_owned(), json!(seconds.max(0)));
    }
    Ok(body)
}

fn when(key: &str, value: &str) -> String {
    format!("{key}={value}: no such time; write now, now+2hours, 16:00, tomorrow or 2026-12-31T08:00")
}

fn number(key: &str, value: &str) -> anyhow::Result<u64> {
    value.parse().with_context(|| format!("{key}={value}: a whole number is asked for"))
}

/// `cpu=64,gres/gpu=8`; `node=2` is a count of nodes.
fn tres(value: &str, body: &mut Map<String, Value>) -> anyhow::Result<()> {
    let mut counts = Map::new();
    for part in value.split(',').filter(|part| !part.is_empty()) {
        let (tres, count) = part.rsplit_once('=').context("TRES are written as cpu=64,gres/gpu=8")?;
        match tres.trim() {
            "node" => _ = body.insert("node_count".to_owned(), json!(number("node", count)?)),
            "mem" => {
                let bytes = Bytes::parse(count, 1 << 20).context("memory is written as 65536 (MiB) or 64G")?;
                counts.insert("mem".to_owned(), json!(bytes.0 >> 20));
            }
            tres => _ = counts.insert(tres.to_owned(), json!(number(tres, count)?)),
        }
    }
    if !counts.is_empty() {
        body.insert("tres".to_owned(), Value::Object(counts));
    }
    Ok(())
}

/// Slurm's flags as Berth's. `PURGE_COMP[=minutes]` is a field of its own. `true`: TIME_FLOAT is among them.
fn flags(value: &str, body: &mut Map<String, Value>) -> anyhow::Result<bool> {
    let mut floats = false;
    let mut given = Vec::new();
    for flag in value.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
        let lower = flag.to_ascii_lowercase();
        let (word, of) = lower.split_once('=').map_or((lower.as_str(), None), |(word, of)| (word, Some(of)));
        match word {
            "time_float" => floats = true,
            "purge_comp" => {
                let seconds = match of {
                    None => 300,
                    Some(time) => parse_time_limit(time).ok().flatten().with_context(|| format!("{flag}: write PURGE_COMP=minutes"))?,
                };
                body.insert("purge_after_seconds".to_owned(), json!(seconds));
            }
            "maintenance" => given.push("maint".to_owned()),
            "ignore_running" => given.push("ignore_jobs".to_owned()),
            "no_hold_jobs_after" => given.push("no_hold_jobs_after_end".to_owned()),
            "static" => given.push("static_alloc".to_owned()),
            word if word.parse::<ReservationFlag>().is_ok() => given.push(word.to_owned()),
            _ => {
                let known: Vec<String> = ReservationFlag::ALL.iter().map(|flag| flag.as_str().to_ascii_uppercase()).collect();
                bail!("{flag:?} is no flag of a reservation\n  known are: {}, PURGE_COMP[=minutes], TIME_FLOAT", known.join(", "));
            }
        }
    }
    body.insert("flags".to_owned(), json!(given));
    Ok(floats)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> anyhow::Result<Value> {
        let now: jiff::Zoned = "2026-12-02T12:00:00+00:00[UTC]".parse().unwrap();
        Ok(Value::Object(patch(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), &now)?))
    }

    #[test]
    fn slurms_words_become_fields() {
        for (line, body) in [
            (
                "StartTime=now+1hour Duration=120 Nodes=n[1-4] Users=acme/ann,-acme/bob Flags=MAINT,IGNORE_JOBS",
                json!({ "start": "2026-12-02T13:00:00Z", "duration_seconds": 7200, "nodes": "n[1-4]", "users": ["acme/ann", "-acme/bob"],
                    "flags": ["maint", "ignore_jobs"] }),
            ),
            (
                "starttime=now+60minutes nodes=n8 Duration=100 flags=TIME_FLOAT",
                json!({ "float_seconds": 3600, "nodes": "n8", "duration_seconds": 6000, "flags": [] }),
            ),
            (
                "TRES=node=2 Flags=DAILY,PURGE_COMP=10 TimeZone=Europe/Berlin Tenants=acme Duration=infinite",
                json!({ "node_count": 2, "flags": ["daily"], "purge_after_seconds": 600, "time_zone": "Europe/Berlin", "tenants": ["acme"],
                    "duration_seconds": null }),
            ),
            ("TRES=cpu=64,gres/gpu=8,mem=64G", json!({ "tres": { "cpu": 64, "gres/gpu": 8, "mem": 65536 } })),
            ("CoreCnt=4 Comment=", json!({ "tres": { "cpu": 4 }, "comment": null })),
        ] {
            assert_eq!(of(line).unwrap(), body, "{line}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for (line, part) in [
            ("Nodez=1", "known are"),
            ("StartTime=whenever", "tomorrow"),
            ("NodeCnt=two", "whole number"),
            ("Flags=TIME_FLOAT", "StartTime=now+"),
            ("TRES=8", "cpu=64"),
            ("Nodes=n2 Nodes=n3", "given twice"),
            ("Flags=FOO", "PURGE_COMP"),
        ] {
            let error = format!("{:#}", of(line).unwrap_err());
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
