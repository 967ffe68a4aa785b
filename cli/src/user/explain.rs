//! `berth explain`: why a job waits, and what would make it start sooner.

use berth_model::amount::format_time_limit;
use serde_json::Value;

use super::args::Format;
use super::client::Client;
use super::queue::{short_time, zone};
use super::show::in_local_time;
use super::{print_data, segment, text};

pub async fn explain(client: &Client, format: Format, job: &str, brief: bool) -> anyhow::Result<()> {
    let query: &[(&str, String)] = if brief { &[] } else { &[("advice", "true".to_owned())] };
    let why = client.get(&format!("/v1/jobs/{}/explain", segment(job)?), query).await?;
    if print_data(format, &why)? {
        return Ok(());
    }
    println!("{}", in_local_time(&text(&why, "summary")));
    for verdict in why["verdicts"].as_array().into_iter().flatten() {
        let component = verdict["component"].as_u64().map_or_else(String::new, |offset| format!("component {offset}: "));
        println!("\n  {component}{} ({})", text(verdict, "code"), text(verdict, "object"));
        println!("    {}", text(verdict, "rule"));
        for (name, field) in [("have", "have"), ("need", "need"), ("what to do", "advice")] {
            let value = in_local_time(&text(verdict, field));
            if !value.is_empty() {
                println!("    {name}: {value}");
            }
        }
        let holders: Vec<&str> = verdict["holders"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !holders.is_empty() {
            println!("    held by: {}", holders.join(", "));
        }
        let clears = short_time(verdict, "clears_at");
        if !clears.is_empty() {
            println!("    may clear at {clears}");
        }
    }
    if let Some(priority) = why["priority"].as_object() {
        println!("\n  priority {}, place {} in the queue", priority["total"], priority["rank"]);
        for factor in priority["factors"].as_array().into_iter().flatten() {
            let number = |field: &str| factor[field].as_f64().unwrap_or(0.0);
            println!("    {:<14} {:>8.4} × {:>8} = {:>10.0}", text(factor, "name"), number("raw"), number("weight"), number("value"));
        }
    }
    if let Some(planned) = why["planned_start"].as_object() {
        let planned = Value::Object(planned.clone());
        println!("\n  planned to start at {} on {}", short_time(&planned, "at"), text(&planned, "nodes"));
    }
    print_advice(job, &why);
    super::replay::print_start(&why["start"]);
    println!("\n  times in {}", zone());
    Ok(())
}

/// Changes that would make it start sooner, each with its command.
fn print_advice(job: &str, why: &Value) {
    let Some(advice) = why["advice"].as_object() else { return };
    let alternatives = advice["alternatives"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !alternatives.is_empty() {
        println!("\n  it would start sooner with");
    }
    for alternative in alternatives {
        let start = &alternative["planned_start"];
        let when = match alternative["starts_now"].as_bool() {
            Some(true) => format!("at once on {}", text(start, "nodes")),
            _ => format!("{} on {}", short_time(start, "at"), text(start, "nodes")),
        };
        println!("    {}: {when}", text(alternative, "words"));
        println!("      berth update {job} {}", options(&alternative["change"]).join(" "));
    }
    if advice["is_partial"] == true {
        println!("    (there was no time to try every change)");
    }
}

/// A change as options of `berth update`.
fn options(change: &Value) -> Vec<String> {
    let mut options = Vec::new();
    for (field, value) in change.as_object().into_iter().flatten() {
        match field.as_str() {
            "time_limit_seconds" => options.push(format!("--time={}", format_time_limit(value.as_u64().unwrap_or(0)))),
            "resources" => options.extend(resources(value)),
            _ => options.push(format!("--{field}={}", value.as_str().unwrap_or_default())),
        }
    }
    options
}

fn resources(change: &Value) -> impl Iterator<Item = String> + '_ {
    change.as_object().into_iter().flatten().filter_map(|(field, value)| {
        let option = match field.as_str() {
            "nodes" => "nodes",
            "tasks" => "ntasks",
            "gpus" => "gpus",
            "gpus_per_node" => "gpus-per-node",
            "gpus_per_task" => "gpus-per-task",
            _ => return None,
        };
        let value = match (value["type"].as_str(), value["count"].as_u64()) {
            (Some(kind), Some(count)) => format!("{kind}:{count}"),
            (None, Some(count)) => count.to_string(),
            _ => value.to_string(),
        };
        Some(format!("--{option}={value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_told_as_a_command() {
        for (change, expected) in [
            (json!({ "time_limit_seconds": 1800 }), "--time=00:30:00"),
            (json!({ "partition": "debug" }), "--partition=debug"),
            (json!({ "resources": { "nodes": 2, "max_nodes": null, "tasks": 4 } }), "--nodes=2 --ntasks=4"),
            (json!({ "resources": { "gpus_per_node": { "type": "a100", "count": 4 } } }), "--gpus-per-node=a100:4"),
            (json!({ "resources": { "gpus": { "type": null, "count": 4 } } }), "--gpus=4"),
        ] {
            assert_eq!(options(&change).join(" "), expected);
        }
    }
}
