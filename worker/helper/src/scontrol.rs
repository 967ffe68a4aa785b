//! `scontrol`, as far as batch scripts use it inside their own job. Source: scontrol manual.

use std::io::Write;
use std::process::ExitCode;

use berth_model::{NodeName, hostlist};
use serde_json::json;

use crate::agent::Agent;

const HELP: &str = "Tell of this job.

Usage: scontrol show hostnames [LIST]       one name a line; the job's own nodes without LIST
       scontrol show hostlist NAME,NAME…    folded: n[1-2]
       scontrol show hostlistsorted LIST    sorted, without repeats
       scontrol show job [ID]               this job, from its environment
       scontrol requeue [ID]                stop this job and put it back into the queue
       scontrol checkpoint [ID]             this job has saved its work: preempted, it loses only what comes after

Inside a Berth job no more of scontrol is there; `berth` has the rest.
";

pub fn main(args: &[String]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--help" | "-h" | "help"] => Ok(HELP.to_owned()),
        ["show", what, rest @ ..] if rest.len() <= 1 => show(what, rest.first().copied()),
        [verb @ ("requeue" | "checkpoint"), rest @ ..] if rest.len() <= 1 => order(verb, rest.first().copied()),
        _ => Err(format!("{:?} is not supported inside a job; see scontrol --help", words.join(" "))),
    };
    match outcome {
        Ok(text) => {
            // A reader that went away (`| head -n1`) has read enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("scontrol: error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn show(what: &str, given: Option<&str>) -> Result<String, String> {
    match what {
        // Slurm takes any beginning of the words.
        "hostnames" | "hostname" => {
            let list = given.map(str::to_owned).or_else(|| variable("SLURM_JOB_NODELIST"));
            let list = list.ok_or("there is no list, and SLURM_JOB_NODELIST is not set")?;
            Ok(names(&list)?.iter().map(|name| format!("{name}\n")).collect())
        }
        "hostlist" => Ok(format!("{}\n", hostlist::fold_in_order(&names(given.ok_or("there is no list")?)?))),
        "hostlistsorted" => {
            let mut names = names(given.ok_or("there is no list")?)?;
            names.sort();
            names.dedup();
            Ok(format!("{}\n", hostlist::fold(&names)))
        }
        "job" | "jobs" | "jobid" => {
            own(given)?;
            Ok(job())
        }
        _ => Err(format!("show {what} is not supported inside a job; see scontrol --help")),
    }
}

fn names(list: &str) -> Result<Vec<NodeName>, String> {
    hostlist::expand(list).map_err(|fault| format!("{}; {}", fault.detail, fault.help))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The job's number, if it is this one that is meant.
fn own(given: Option<&str>) -> Result<String, String> {
    let own = variable("SLURM_JOB_ID").ok_or("this is not inside a Berth job")?;
    let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID")).map(|(array, task)| format!("{array}_{task}"));
    match given {
        Some(other) if other != own && Some(other) != task.as_deref() => {
            Err(format!("job {other} is not this one ({own}); `berth` tells of others"))
        }
        _ => Ok(own),
    }
}

/// In Slurm's form, what the job's environment says of it.
fn job() -> String {
    const FIELDS: [(&str, &str); 14] = [
        ("JobId", "SLURM_JOB_ID"),
        ("ArrayJobId", "SLURM_ARRAY_JOB_ID"),
        ("ArrayTaskId", "SLURM_ARRAY_TASK_ID"),
        ("JobName", "SLURM_JOB_NAME"),
        ("UserId", "SLURM_JOB_USER"),
        ("Account", "SLURM_JOB_ACCOUNT"),
        ("QOS", "SLURM_JOB_QOS"),
        ("Restarts", "SLURM_RESTART_COUNT"),
        ("Partition", "SLURM_JOB_PARTITION"),
        ("NodeList", "SLURM_JOB_NODELIST"),
        ("NumNodes", "SLURM_JOB_NUM_NODES"),
        ("StartTime", "SLURM_JOB_START_TIME"),
        ("EndTime", "SLURM_JOB_END_TIME"),
        ("WorkDir", "SLURM_SUBMIT_DIR"),
    ];
    let lines: Vec<String> = FIELDS.iter().filter_map(|(name, from)| Some(format!("{name}={}", variable(from)?))).collect();
    format!("{}\n   JobState=RUNNING\n", lines.join("\n   "))
}

/// Asks something for the job itself.
fn order(verb: &str, given: Option<&str>) -> Result<String, String> {
    own(given)?;
    let agent = Agent::of_this_job().ok_or("this is not inside a Berth job")?;
    agent.post(&format!("/v1/steps:{verb}"), &json!({})).map(|_| String::new()).map_err(|refusal| refusal.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostlists_unfold_sort_and_fold() {
        assert_eq!(show("hostnames", Some("n[1-2,7],gpu3")).unwrap(), "n1\nn2\nn7\ngpu3\n");
        assert_eq!(show("hostlistsorted", Some("n3,n1,n2,n1")).unwrap(), "n[1-3]\n");
        assert_eq!(show("hostlist", Some("n1,n2,n4")).unwrap(), "n[1-2,4]\n");
        assert!(show("hostnames", Some("n[1-")).is_err());
        assert!(show("partition", None).unwrap_err().contains("not supported"));
    }
}
