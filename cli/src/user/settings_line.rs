//! Settings as administrators of Slurm write them, `GrpTRES=gres/gpu=8,cpu=100 MaxJobs=4 Fairshare=20`, as a merge patch. Berth's own
//! names (`grp_tres`) do as well. `-1`, or nothing after `=`, takes a limit away.

use anyhow::{Context, bail};
use berth_model::Bytes;
use berth_model::amount::parse_time_limit;
use serde_json::{Map, Value, json};

/// What a value is written as.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Count,
    Number,
    Text,
    Switch,
    /// A number or `parent`.
    Fairshare,
    /// `cpu=8,mem=64G`; each is set by itself.
    Counts,
    /// As [`Kind::Counts`], with fractions: weights.
    Weights,
    /// Slurm's times, as seconds.
    Seconds,
    /// As [`Kind::Seconds`], but a bare number is seconds.
    Grace,
    /// Slurm's `preempt/qos`, or Berth's own word.
    PreemptType,
    /// Slurm's `SUSPEND,GANG` is `suspend`: what is suspended goes on by itself here.
    PreemptMode,
    /// Slurm's times, as minutes.
    Minutes,
    /// `a,b,c`.
    Names,
    /// `DenyOnLimit,OverPartQOS`.
    Flags,
}

/// Whose settings they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of an account, a tenant or a user of an account.
    Place,
    Qos,
    Partition,
    Policy,
}

/// Names without their underscores, in lower case; the path of the field; how it is written.
type Known = (&'static [&'static str], &'static str, Kind);

const LIMITS: &[Known] = &[
    (&["grptres"], "limits.grp_tres", Kind::Counts),
    (&["grptresmins", "grptresminutes"], "limits.grp_tres_minutes", Kind::Counts),
    (&["grptresrunmins", "grptresrunminutes"], "limits.grp_tres_run_minutes", Kind::Counts),
    (&["grpjobs"], "limits.grp_jobs", Kind::Count),
    (&["grpsubmitjobs", "grpsubmit"], "limits.grp_submit_jobs", Kind::Count),
    (&["grpwall", "grpwallminutes"], "limits.grp_wall_minutes", Kind::Minutes),
    (&["maxtres", "maxtresperjob", "maxtrespj"], "limits.max_tres_per_job", Kind::Counts),
    (&["maxtrespernode", "maxtrespn"], "limits.max_tres_per_node", Kind::Counts),
    (&["maxtresmins", "maxtresminsperjob", "maxtresminutesperjob"], "limits.max_tres_minutes_per_job", Kind::Counts),
    (&["maxwall", "maxwalldurationperjob", "maxwallseconds"], "limits.max_wall_seconds", Kind::Seconds),
];

const PLACE: &[Known] = &[
    (&["fairshare", "shares", "share"], "fairshare", Kind::Fairshare),
    (&["priority"], "priority", Kind::Count),
    (&["maxjobs"], "max_jobs", Kind::Count),
    (&["maxsubmitjobs", "maxsubmit"], "max_submit_jobs", Kind::Count),
    (&["quota", "guaranteed"], "quota.guaranteed", Kind::Counts),
    (&["cohort"], "quota.cohort", Kind::Text),
    (&["borrowinglimit"], "quota.borrowing_limit", Kind::Counts),
    (&["lendinglimit"], "quota.lending_limit", Kind::Counts),
];

const QOS: &[Known] = &[
    (&["priority"], "priority", Kind::Count),
    (&["description"], "description", Kind::Text),
    (&["usagefactor"], "usage_factor", Kind::Number),
    (&["limitfactor"], "limit_factor", Kind::Number),
    (&["flags"], "", Kind::Flags),
    (&["denyonlimit"], "deny_on_limit", Kind::Switch),
    (&["overpartqos", "overpartitionqos"], "over_partition_qos", Kind::Switch),
    (&["maxjobsperuser", "maxjobspu"], "max_jobs_per_user", Kind::Count),
    (&["maxjobsperaccount", "maxjobspa"], "max_jobs_per_account", Kind::Count),
    (&["maxsubmitjobsperuser", "maxsubmitjobspu", "maxsubmitpu"], "max_submit_jobs_per_user", Kind::Count),
    (&["maxsubmitjobsperaccount", "maxsubmitjobspa", "maxsubmitpa"], "max_submit_jobs_per_account", Kind::Count),
    (&["maxtresperuser", "maxtrespu"], "max_tres_per_user", Kind::Counts),
    (&["maxtresperaccount", "maxtrespa"], "max_tres_per_account", Kind::Counts),
    (&["maxtresrunminsperuser", "maxtresrunminspu", "maxtresrunminutesperuser"], "max_tres_run_minutes_per_user", Kind::Counts),
    (&["maxtresrunminsperaccount", "maxtresrunminspa", "maxtresrunminutesperaccount"], "max_tres_run_minutes_per_account", Kind::Counts),
    (&["mintres", "mintresperjob"], "min_tres_per_job", Kind::Counts),
    (&["allowtenants"], "allow_tenants", Kind::Names),
    (&["preempt", "preempts"], "preempts", Kind::Names),
    (&["preemptmode"], "preempt_mode", Kind::PreemptMode),
    (&["gracetime", "graceseconds"], "grace_seconds", Kind::Grace),
    (&["preemptexempttime", "preemptexemptseconds"], "preempt_exempt_seconds", Kind::Seconds),
];

const PARTITION: &[Known] = &[
    (&["qos"], "qos", Kind::Text),
    (&["nodes"], "nodes", Kind::Text),
    (&["state"], "state", Kind::Text),
    (&["default", "isdefault"], "is_default", Kind::Switch),
    (&["tresbillingweights", "billingweights"], "billing_weights", Kind::Weights),
    (&["priorityjobfactor"], "priority_job_factor", Kind::Count),
    (&["prioritytier"], "priority_tier", Kind::Count),
    (&["maxtime", "maxtimeseconds"], "max_time_seconds", Kind::Seconds),
    (&["defaulttime", "defaulttimeseconds"], "default_time_seconds", Kind::Seconds),
    (&["maxnodes"], "max_nodes", Kind::Count),
    (&["minnodes"], "min_nodes", Kind::Count),
    (&["allowaccounts"], "allow_accounts", Kind::Names),
    (&["allowqos"], "allow_qos", Kind::Names),
    (&["allowtenants"], "allow_tenants", Kind::Names),
    (&["preemptmode"], "preempt_mode", Kind::PreemptMode),
    (&["gracetime", "graceseconds"], "grace_seconds", Kind::Grace),
];

const POLICY: &[Known] = &[
    (&["priorityweightage", "weightage"], "weight_age", Kind::Count),
    (&["priorityweightfairshare", "weightfairshare"], "weight_fairshare", Kind::Count),
    (&["priorityweightjobsize", "weightjobsize"], "weight_job_size", Kind::Count),
    (&["priorityweightassoc", "weightassociation"], "weight_association", Kind::Count),
    (&["priorityweightpartition", "weightpartition"], "weight_partition", Kind::Count),
    (&["priorityweightqos", "weightqos"], "weight_qos", Kind::Count),
    (&["priorityweighttres", "weighttres"], "weight_tres", Kind::Weights),
    (&["priorityfavorsmall", "favorsmall"], "favor_small", Kind::Switch),
    (&["smallrelativetotime"], "small_relative_to_time", Kind::Switch),
    (&["prioritymaxage", "maxageseconds"], "max_age_seconds", Kind::Seconds),
    (&["prioritydecayhalflife", "halflifeseconds"], "half_life_seconds", Kind::Seconds),
    (&["priorityusageresetperiod", "usagereset"], "usage_reset", Kind::Text),
    (&["fairsharerule"], "fair_share_rule", Kind::Text),
    (&["billing"], "billing", Kind::Text),
    (&["safelimits"], "safe_limits", Kind::Switch),
    (&["impossiblelimit"], "impossible_limit", Kind::Text),
    (&["nodetimeoutseconds"], "node_timeout_seconds", Kind::Seconds),
    (&["maxarraysize"], "max_array_size", Kind::Count),
    (&["killwait", "killwaitseconds"], "kill_wait_seconds", Kind::Seconds),
    (&["requeuedelayseconds"], "requeue_delay_seconds", Kind::Seconds),
    (&["decisionkeepseconds"], "decision_keep_seconds", Kind::Seconds),
    (&["suspendtime", "poweridleseconds"], "power.idle_seconds", Kind::Grace),
    (&["suspendexcnodes", "powerexcludenodes"], "power.exclude_nodes", Kind::Text),
    (&["suspendexcparts", "powerexcludepartitions"], "power.exclude_partitions", Kind::Names),
    (&["powerkeepidle"], "power.keep_idle", Kind::Count),
    (&["suspendrate", "powersuspendperminute"], "power.suspend_per_minute", Kind::Count),
    (&["resumerate", "powerresumeperminute"], "power.resume_per_minute", Kind::Count),
    (&["resumetimeout", "resumetimeoutseconds"], "resume_timeout_seconds", Kind::Grace),
    (&["suspendtimeout", "suspendtimeoutseconds"], "suspend_timeout_seconds", Kind::Grace),
    (&["reboottimeout", "reboottimeoutseconds"], "reboot_timeout_seconds", Kind::Grace),
    (&["resvoverrun", "reservationoverrunseconds"], "reservation_overrun_seconds", Kind::Seconds),
    (&["preempttype", "preemptby"], "preempt_by", Kind::PreemptType),
    (&["reclaim"], "reclaim", Kind::Text),
    (&["preemptmode"], "preempt_mode", Kind::PreemptMode),
    (&["bfhetjobprio", "hetjobpriority"], "hetjob_priority", Kind::Text),
    (&["preemptexempttime", "preemptexemptseconds"], "preempt_exempt_seconds", Kind::Seconds),
];

impl Of {
    fn known(self) -> impl Iterator<Item = &'static Known> {
        let (own, limits): (&[Known], &[Known]) = match self {
            Of::Place => (PLACE, LIMITS),
            Of::Qos => (QOS, LIMITS),
            Of::Partition => (PARTITION, &[]),
            Of::Policy => (POLICY, &[]),
        };
        own.iter().chain(limits)
    }

    /// Names to choose from, Slurm's first.
    fn names(self) -> String {
        self.known().map(|(names, _, _)| names[0]).collect::<Vec<_>>().join(", ")
    }
}

/// `KEY=VALUE` settings as one patch. Those that are not settings of `of` are left in the second result.
pub fn patch(of: Of, settings: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut patch = Map::new();
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            bail!("{setting:?} is no setting; write KEY=VALUE, for example GrpTRES=gres/gpu=8");
        };
        let plain: String = key.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
        let Some((_, path, kind)) = of.known().find(|(names, _, _)| names.contains(&plain.as_str())) else {
            bail!("{key:?} is no setting here\n  known are: {}", of.names());
        };
        let value = value.trim();
        if matches!(kind, Kind::Flags) {
            flags(value, &mut patch)?;
            continue;
        }
        let read = read(*kind, value).with_context(|| format!("{key}={value}"))?;
        let mut at = &mut patch;
        let (folder, field) = path.split_once('.').map_or((None, *path), |(folder, field)| (Some(folder), field));
        if let Some(folder) = folder {
            at = at.entry(folder).or_insert_with(|| json!({})).as_object_mut().expect("a folder of fields");
        }
        match (at.get_mut(field), read) {
            // The same limit again, of another resource.
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            (_, read) => _ = at.insert(field.to_owned(), read),
        }
    }
    Ok(patch)
}

fn read(kind: Kind, value: &str) -> anyhow::Result<Value> {
    if matches!(value, "" | "-1") {
        return Ok(Value::Null);
    }
    Ok(match kind {
        Kind::Count => json!(value.parse::<u64>().context("a whole number is asked for; -1 takes the limit away")?),
        Kind::Number => json!(value.parse::<f64>().context("a number is asked for")?),
        Kind::Text => json!(text_of(value)),
        Kind::Switch => match value.to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" | "on" => json!(true),
            "no" | "false" | "0" | "off" => json!(false),
            _ => bail!("yes or no is asked for"),
        },
        Kind::Fairshare if value.eq_ignore_ascii_case("parent") => json!("parent"),
        Kind::Fairshare => json!(value.parse::<u32>().context("a whole number or \"parent\" is asked for")?),
        Kind::Counts | Kind::Weights => counts(value, matches!(kind, Kind::Weights))?,
        Kind::Seconds => time(value)?.map_or(Value::Null, |seconds| json!(seconds)),
        Kind::Grace => match value.parse::<u64>() {
            Ok(seconds) => json!(seconds),
            Err(_) => time(value)?.map_or(Value::Null, |seconds| json!(seconds)),
        },
        Kind::PreemptType => match value.to_ascii_lowercase().trim_start_matches("preempt/") {
            "partition_prio" => json!("partition_tier"),
            "none" => json!("off"),
            other => json!(other),
        },
        Kind::PreemptMode => {
            let modes = value.to_ascii_lowercase();
            json!(modes.split(',').find(|mode| *mode != "gang").unwrap_or(&modes))
        }
        Kind::Minutes => time(value)?.map_or(Value::Null, |seconds| json!(seconds.div_ceil(60))),
        Kind::Names => json!(value.split(',').filter(|name| !name.is_empty()).collect::<Vec<_>>()),
        Kind::Flags => Value::Null,
    })
}

/// Slurm writes words in capitals (`WEEKLY`), Berth in small letters.
fn text_of(value: &str) -> String {
    if value.chars().all(|c| c.is_ascii_uppercase()) && value != "ALL" { value.to_ascii_lowercase() } else { value.to_owned() }
}

/// Slurm's notation (a bare number is minutes); `UNLIMITED` is none.
fn time(value: &str) -> anyhow::Result<Option<u64>> {
    parse_time_limit(value).map_err(|fault| anyhow::anyhow!("{}; {}", fault.detail, fault.help))
}

fn counts(value: &str, are_weights: bool) -> anyhow::Result<Value> {
    let mut counts = Map::new();
    for part in value.split(',').filter(|part| !part.is_empty()) {
        let (tres, count) = part.rsplit_once('=').context("resources are written as cpu=8,gres/gpu=4")?;
        let read = match count.trim() {
            "-1" | "" => Value::Null,
            count if are_weights => count.parse::<f64>().map_or_else(|_| json!(count), |number| json!(number)),
            count if tres == "mem" => {
                // Memory counts in MiB.
                let bytes = Bytes::parse(count, 1 << 20).context("memory is written as 65536 (MiB) or 64G")?;
                json!(bytes.0 >> 20)
            }
            count => json!(count.parse::<u64>().with_context(|| format!("{tres}: a whole number is asked for; -1 takes the limit away"))?),
        };
        counts.insert(tres.trim().to_owned(), read);
    }
    Ok(Value::Object(counts))
}

fn flags(value: &str, patch: &mut Map<String, Value>) -> anyhow::Result<()> {
    let known = [("denyonlimit", "deny_on_limit"), ("overpartqos", "over_partition_qos")];
    let given: Vec<String> = value.split(',').map(|flag| flag.trim().to_ascii_lowercase()).filter(|f| !f.is_empty() && f != "-1").collect();
    if let Some(strange) = given.iter().find(|flag| !known.iter().any(|(name, _)| name == *flag)) {
        bail!("{strange:?} is no flag here\n  known are: DenyOnLimit, OverPartQOS");
    }
    for (name, field) in known {
        patch.insert(field.to_owned(), json!(given.iter().any(|flag| flag == name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(of: Of, line: &str) -> Value {
        Value::Object(patch(of, &line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap())
    }

    #[test]
    fn slurms_names_become_fields() {
        assert_eq!(
            of(Of::Place, "GrpTRES=gres/gpu=8,cpu=100,mem=64G GrpTRES=node=-1 MaxJobs=4 Fairshare=parent MaxWall=1-00:00:00 GrpJobs=-1"),
            json!({ "fairshare": "parent", "max_jobs": 4,
                "limits": { "grp_tres": { "gres/gpu": 8, "cpu": 100, "mem": 65536, "node": null }, "max_wall_seconds": 86400, "grp_jobs": null } })
        );
        assert_eq!(
            of(Of::Qos, "Priority=10 MaxTRESPU=gres/gpu=2 Flags=DenyOnLimit GrpWall=90 UsageFactor=0.5"),
            json!({ "priority": 10, "max_tres_per_user": { "gres/gpu": 2 }, "deny_on_limit": true, "over_partition_qos": false,
                "limits": { "grp_wall_minutes": 90 }, "usage_factor": 0.5 })
        );
        assert_eq!(
            of(
                Of::Policy,
                "PriorityWeightAge=500 PriorityUsageResetPeriod=WEEKLY PriorityDecayHalfLife=14-0 PriorityWeightTRES=gres/gpu=3000"
            ),
            json!({ "weight_age": 500, "usage_reset": "weekly", "half_life_seconds": 1_209_600, "weight_tres": { "gres/gpu": 3000.0 } })
        );
        assert_eq!(of(Of::Partition, "TRESBillingWeights=cpu=1,mem=0.25G"), json!({ "billing_weights": { "cpu": 1.0, "mem": "0.25G" } }));
    }

    #[test]
    fn quotas_are_settings_of_tenants() {
        assert_eq!(
            of(Of::Place, "Quota=gres/gpu=64,cpu=-1 Cohort=research BorrowingLimit=gres/gpu=8 LendingLimit="),
            json!({ "quota": { "guaranteed": { "gres/gpu": 64, "cpu": null }, "cohort": "research", "borrowing_limit": { "gres/gpu": 8 },
                "lending_limit": null } })
        );
        assert_eq!(of(Of::Policy, "Reclaim=off"), json!({ "reclaim": "off" }));
    }

    #[test]
    fn preemption_is_written_as_in_slurm() {
        assert_eq!(
            of(Of::Qos, "Preempt=low,scavenger PreemptMode=CANCEL GraceTime=90 PreemptExemptTime=30"),
            json!({ "preempts": ["low", "scavenger"], "preempt_mode": "cancel", "grace_seconds": 90, "preempt_exempt_seconds": 1800 })
        );
        assert_eq!(
            of(Of::Partition, "PreemptMode=REQUEUE GraceTime=00:02:00 PriorityTier=10"),
            json!({ "preempt_mode": "requeue", "grace_seconds": 120, "priority_tier": 10 })
        );
        for (written, meant) in
            [("preempt/qos", "qos"), ("preempt/partition_prio", "partition_tier"), ("preempt/none", "off"), ("qos", "qos")]
        {
            assert_eq!(of(Of::Policy, &format!("PreemptType={written}")), json!({ "preempt_by": meant }));
        }
        for (written, meant) in [("SUSPEND,GANG", "suspend"), ("GANG,SUSPEND", "suspend"), ("suspend", "suspend"), ("GANG", "gang")] {
            assert_eq!(of(Of::Qos, &format!("PreemptMode={written}")), json!({ "preempt_mode": meant }));
        }
    }

    #[test]
    fn own_names_do_as_well_and_strange_ones_are_told() {
        assert_eq!(
            of(Of::Place, "grp_tres=cpu=1 max_submit_jobs=3"),
            json!({ "limits": { "grp_tres": { "cpu": 1 } }, "max_submit_jobs": 3 })
        );
        for (setting, part) in
            [("MaxJobz=1", "known are"), ("MaxJobs", "KEY=VALUE"), ("MaxJobs=x", "MaxJobs=x"), ("GrpTRES=8", "GrpTRES=8")]
        {
            let error = format!("{:#}", patch(Of::Place, &[setting.to_owned()]).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
