//! Admission: from a spec as written to a job that may be stored. Checks what the spec says by itself, then who may use what, then
//! what the partition and QOS allow; fills in defaults. Every refusal is a fault with the field and what would be right.

use std::collections::BTreeSet;

use berth_model::Fault;
use berth_model::array::ArraySpec;
use berth_model::association::{AssociationKey, Terms};
use berth_model::dependency::Condition;
use berth_model::job::{JobKind, JobSpec};
use berth_model::license::{License, LicenseCounts, parse_licenses};
use berth_model::policy::{Partition, Policy, Qos};
use berth_model::resources::{MemoryDemand, ResourceRequest, Shape};
use berth_model::state::{Hold, PartitionState};
use berth_model::validate::Choice;
use berth_model::{Bytes, Name, NodeName, hostlist, validate};
use berth_store::jobs::submit::{Component, NewJob, Planning};
use berth_store::reservations::ReservationRow;
use jiff::Timestamp;

use crate::App;
use crate::auth::Caller;
use crate::catalog::{Membership, Rules};
use crate::limits::Limits;
use crate::problem::{Answer, Problem};

/// Memory of a job that asks for none where the partition says nothing: for each CPU.
const DEFAULT_MEMORY_PER_CPU: Bytes = Bytes(256 << 20);

/// Whose job it is.
pub struct Owner<'a> {
    pub tenant: &'a str,
    pub user: &'a Name,
    /// May be charged to any account of the tenant.
    pub any_account: bool,
    /// Is told of reservations that are not his tenant's.
    pub sees_all: bool,
}

/// Checks `spec` for `caller` in `tenant` and makes the job to store; of a heterogeneous job its components, the leader first.
pub async fn admit(app: &App, caller: &Caller, tenant: &str, spec: JobSpec) -> Answer<Vec<NewJob>> {
    if spec.kind == JobKind::Component {
        let help = "leave kind out; the first component's job names the others in components";
        return Err(Fault::new("unsupported_kind", "kind", "a component is not submitted by itself", help).into());
    }
    let owner = Owner { tenant, user: &caller.subject, any_account: caller.is_tenant_admin(), sees_all: caller.is_platform_admin() };
    check_spec(&spec)?;
    let specs = spec.into_components();
    let size = specs.len() as u32;
    let mut jobs = Vec::with_capacity(specs.len());
    for (offset, spec) in (0..size).zip(specs) {
        let within = |problem: Problem| if offset == 0 { problem } else { problem.within(&format!("components[{}]", offset - 1)) };
        check_nice(caller, spec.nice).map_err(within)?;
        let job = admit_checked(app, &owner, spec).await.map_err(within)?;
        jobs.push(NewJob { component: (size > 1).then_some(Component { offset, size }), ..job });
    }
    Ok(jobs)
}

/// Only administrators raise a priority.
pub fn check_nice(caller: &Caller, nice: i32) -> Answer<()> {
    if nice < 0 && !caller.is_tenant_admin() {
        return Err(Problem::forbidden("a negative nice value raises the priority")
            .field("nice")
            .help("use 0 or more, or ask an administrator"));
    }
    Ok(())
}

/// All that is wrong with the spec by itself, its components included.
pub fn check_spec(spec: &JobSpec) -> Answer<()> {
    let faults = validate::validate(spec);
    if faults.is_empty() { Ok(()) } else { Err(Problem::faults(faults)) }
}

/// As [`admit`], for a job of `owner`.
pub async fn admit_for(app: &App, owner: &Owner<'_>, spec: JobSpec) -> Answer<NewJob> {
    check_spec(&spec)?;
    admit_checked(app, owner, spec).await
}

async fn admit_checked(app: &App, owner: &Owner<'_>, spec: JobSpec) -> Answer<NewJob> {
    let now = Timestamp::now();
    if let Some(deadline) = spec.deadline.filter(|at| *at <= now) {
        let detail = format!("the deadline {deadline} has passed; it is {now}");
        return Err(Fault::new("deadline_passed", "deadline", detail, "set a later deadline, or leave it out").into());
    }
    let rules = app.catalog.rules().await?;
    let Owner { tenant, user, .. } = *owner;
    let member = app.catalog.membership(tenant, user.as_str()).await?;
    if !member.is_tenant_known {
        return Err(Problem::not_found(format!("tenant {tenant}")).field("tenant"));
    }
    if member.is_tenant_suspended || member.is_user_suspended {
        let who = if member.is_tenant_suspended { format!("tenant {tenant}") } else { format!("user {user}") };
        return Err(Problem::new(http::StatusCode::FORBIDDEN, "suspended", format!("{who} is suspended")).help("ask your administrator"));
    }
    let account = choose_account(&member, owner, &spec)?;
    let key = AssociationKey::user(tenant.parse()?, account.parse()?, user.clone());
    let chain = app.catalog.chain(&key).await?;
    build(&rules, &chain, owner, account, spec).map_err(Problem::from)
}

fn build(rules: &Rules, chain: &[(AssociationKey, Terms)], owner: &Owner<'_>, account: String, mut spec: JobSpec) -> Result<NewJob, Fault> {
    let Owner { tenant, user, .. } = *owner;
    let partition = choose_partition(rules, tenant, &account, &spec)?;
    let qos = choose_qos(rules, tenant, partition, &spec)?;
    if spec.kind == JobKind::External {
        return Err(Fault::new(
            "unsupported_kind",
            "kind",
            "no node of this cluster takes external jobs",
            "leave kind out, or use \"batch\"",
        ));
    }
    let default_memory = MemoryDemand::PerCpu(partition.default_memory_per_cpu_bytes.unwrap_or(DEFAULT_MEMORY_PER_CPU));
    let choices = validate::preferred(spec.prefer.as_deref(), spec.constraint.as_deref())?;
    let shape = asked(&spec, &choices).shape(default_memory);
    check_nodes(partition, &shape)?;
    let partition_qos = partition.qos.as_ref().and_then(|name| rules.qos(name.as_str()));
    let limits = Limits::of(&rules.policy, partition_qos, qos, chain);
    let time_limit = choose_time_limit(partition, &limits, &shape, &spec)?;
    limits.check(&rules.policy, partition, &shape, time_limit)?;
    let reservations = choose_reservations(rules, owner, &account, time_limit, &spec)?;
    let licenses = spec.licenses.as_deref().map(|text| choose_licenses(&rules.licenses, text)).transpose()?.unwrap_or_default();
    let array = spec.array.as_deref().map(str::parse::<ArraySpec>).transpose()?;
    check_array(&rules.policy, array.as_ref())?;
    let mut is_singleton = false;
    let mut dependencies = Vec::new();
    for text in &spec.dependencies {
        match text.parse()? {
            Condition::Singleton => is_singleton = true,
            Condition::On(conditions) => dependencies.extend(conditions),
        }
    }
    let (constraint, choices) = match choices.as_slice() {
        [only] if only.counts.is_empty() => (Some(only.any_of.clone()), Vec::new()),
        _ => (None, choices),
    };
    let planning = Planning {
        shape,
        constraint,
        choices,
        required_nodes: nodes(spec.nodelist.as_deref())?,
        excluded_nodes: nodes(spec.exclude.as_deref())?,
        dependency_any: spec.dependency_any,
        is_singleton,
        throttle: array.as_ref().and_then(|a| a.throttle),
        reservations,
        licenses,
    };
    let name = spec.name.clone().unwrap_or_else(|| default_name(&spec));
    spec.name = Some(name.clone());
    spec.account = Some(account.parse()?);
    spec.partition = Some(partition.name.clone());
    spec.qos = Some(qos.name.clone());
    spec.time_limit_seconds = Some(time_limit);
    Ok(NewJob {
        tenant: tenant.to_owned(),
        account,
        user: user.to_string(),
        partition: partition.name.to_string(),
        qos: qos.name.to_string(),
        name,
        hold: spec.hold.then_some(Hold::User),
        not_before: spec.begin,
        deadline: spec.deadline,
        time_limit,
        planning,
        array,
        component: None,
        dependencies,
        submit_limits: limits.into_submit(),
        spec,
    })
}

/// What the job asks for; of nodes, if it says nothing of their number, as many as its constraint counts.
fn asked(spec: &JobSpec, choices: &[Choice]) -> ResourceRequest {
    let counted = choices.iter().map(Choice::counted).max().filter(|counted| *counted > 0);
    let nodes = spec.resources.nodes.or(counted.filter(|_| spec.resources.max_nodes.is_none()));
    ResourceRequest { nodes, ..spec.resources.clone() }
}

/// Slurm's default: `sbatch` for scripts read from standard input, the program's name for commands.
fn default_name(spec: &JobSpec) -> String {
    match spec.command.as_ref().and_then(|c| c.first()) {
        Some(program) => program.rsplit('/').next().unwrap_or(program).chars().take(200).collect(),
        None => "sbatch".to_owned(),
    }
}

fn nodes(list: Option<&str>) -> Result<BTreeSet<NodeName>, Fault> {
    Ok(list.map(hostlist::expand).transpose()?.unwrap_or_default().into_iter().collect())
}

/// The account asked for, the user's default one, its only one, or `default` for users that the tenant has not written down.
fn choose_account(member: &Membership, owner: &Owner<'_>, spec: &JobSpec) -> Result<String, Fault> {
    let own = || member.accounts.iter().map(|(a, _)| a.as_str());
    let chosen = match &spec.account {
        Some(account) => account.to_string(),
        None => member.default_account.clone().or_else(|| own().next().map(str::to_owned)).unwrap_or_else(|| "default".to_owned()),
    };
    let is_member = own().any(|a| a == chosen) || member.default_account.as_deref() == Some(&chosen);
    let is_open = chosen == "default" && member.accounts.is_empty();
    if is_member || is_open || owner.any_account {
        return Ok(chosen);
    }
    let mut known: Vec<&str> = own().collect();
    if known.is_empty() {
        known.push("default");
    }
    Err(Fault::new(
        "account_not_allowed",
        "account",
        format!("{} may not use the account {chosen}", owner.user),
        format!("use one of: {}", known.join(", ")),
    ))
}

fn choose_partition<'a>(rules: &'a Rules, tenant: &str, account: &str, spec: &JobSpec) -> Result<&'a Partition, Fault> {
    let usable = |p: &&Partition| {
        (p.allow_tenants.is_empty() || p.allow_tenants.contains(tenant))
            && (p.allow_accounts.is_empty() || p.allow_accounts.contains(account))
    };
    let names = || rules.partitions.iter().filter(usable).map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    let partition = match &spec.partition {
        Some(name) => rules.partition(name.as_str()).ok_or_else(|| {
            Fault::new("partition_not_found", "partition", format!("there is no partition {name}"), format!("use one of: {}", names()))
        })?,
        None => rules.default_partition().ok_or_else(|| {
            Fault::new("partition_required", "partition", "there is no default partition", format!("name one of: {}", names()))
        })?,
    };
    if !usable(&partition) {
        return Err(Fault::new(
            "partition_not_allowed",
            "partition",
            format!("the partition {} is not open to this account", partition.name),
            format!("use one of: {}", names()),
        ));
    }
    if matches!(partition.state, PartitionState::Drain | PartitionState::Inactive) {
        return Err(Fault::new(
            "partition_closed",
            "partition",
            format!("the partition {} takes no new jobs (it is {})", partition.name, partition.state),
            "use another partition, or submit later",
        ));
    }
    Ok(partition)
}

fn choose_qos<'a>(rules: &'a Rules, tenant: &str, partition: &Partition, spec: &JobSpec) -> Result<&'a Qos, Fault> {
    let usable = |q: &&Qos| {
        (q.allow_tenants.is_empty() || q.allow_tenants.contains(tenant))
            && (partition.allow_qos.is_empty() || partition.allow_qos.contains(q.name.as_str()))
    };
    let names = || rules.qos.iter().filter(usable).map(|q| q.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = match &spec.qos {
        Some(name) => rules
            .qos(name.as_str())
            .ok_or_else(|| Fault::new("qos_not_found", "qos", format!("there is no QOS {name}"), format!("use one of: {}", names())))?,
        None => rules
            .qos("normal")
            .filter(usable)
            .or_else(|| rules.qos.iter().find(usable))
            .ok_or_else(|| Fault::new("qos_required", "qos", "no QOS is open to this job", "ask your administrator"))?,
    };
    if !usable(&found) {
        return Err(Fault::new(
            "qos_not_allowed",
            "qos",
            format!("the QOS {} may not be used here", found.name),
            format!("use one of: {}", names()),
        ));
    }
    Ok(found)
}

/// The reservations that the job names: each is there, lets it in and lasts long enough at one of its times.
fn choose_reservations(rules: &Rules, owner: &Owner<'_>, account: &str, time_limit: u64, spec: &JobSpec) -> Result<Vec<Name>, Fault> {
    let Some(text) = &spec.reservation else { return Ok(Vec::new()) };
    let Owner { tenant, user, .. } = *owner;
    let fault = |code: &str, detail: String, help: &str| Fault::new(code, "reservation", detail, help);
    let (tenant, account) = (Name::new(tenant)?, Name::new(account)?);
    let mut names: Vec<Name> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let row = rules.reservation(name);
        let is_seen = |row: &&ReservationRow| owner.sees_all || row.spec.access().concerns(tenant.as_str());
        let Some(row) = row.filter(is_seen) else {
            return Err(fault(
                "reservation_not_found",
                format!("there is no reservation {name}"),
                "`berth reservations` lists those that you may use",
            ));
        };
        if !row.spec.access().admits(&tenant, &account, user) {
            let detail = format!("the reservation {name} does not take jobs of {} in the account {account}", user);
            return Err(fault("reservation_not_allowed", detail, "use another account, or ask an administrator to let you in"));
        }
        let reservation = row.reservation();
        let longest = reservation.windows.iter().map(|window| window.end.duration_since(window.start).as_secs()).max().unwrap_or(0);
        if !reservation.is_flex && time_limit > longest.unsigned_abs() {
            let most = berth_model::amount::format_time_limit(longest.unsigned_abs());
            let detail = format!(
                "a job of {} does not fit into the reservation {name}, which lasts {most}",
                berth_model::amount::format_time_limit(time_limit)
            );
            return Err(fault("reservation_too_short", detail, "ask for a shorter time limit"));
        }
        if !names.contains(&row.spec.name) {
            names.push(row.spec.name.clone());
        }
    }
    Ok(names)
}

/// The licences that the job may hold, any one of the sets: all are there, and of at least one set there are as many. Sets that could
/// never be had are left out.
fn choose_licenses(known: &[License], text: &str) -> Result<Vec<LicenseCounts>, Fault> {
    let sets = parse_licenses(text)?;
    let total = |name: &Name| known.iter().find(|license| license.name == *name).map(|license| license.total);
    if let Some(name) = sets.iter().flat_map(LicenseCounts::keys).find(|name| total(name).is_none()) {
        let names: Vec<&str> = known.iter().map(|license| license.name.as_str()).collect();
        let help = if names.is_empty() { "leave licenses out".to_owned() } else { format!("use some of: {}", names.join(", ")) };
        return Err(Fault::new("license_not_found", "licenses", format!("the cluster has no licence {name}"), help));
    }
    let excess =
        |set: &LicenseCounts| set.iter().find_map(|(name, count)| Some((name.clone(), *count, total(name).filter(|all| all < count)?)));
    if sets.iter().all(|set| excess(set).is_some())
        && let Some((name, count, all)) = sets.first().and_then(excess)
    {
        let detail = format!("{count} of {name} are more than the {all} that the cluster has");
        return Err(Fault::new("too_many_licenses", "licenses", detail, format!("ask for at most {name}:{all}")));
    }
    Ok(sets.into_iter().filter(|set| excess(set).is_none()).collect())
}

/// What the job asks for, up to the partition's longest; else the partition's default, or less where limits allow no more.
fn choose_time_limit(partition: &Partition, limits: &Limits, shape: &Shape, spec: &JobSpec) -> Result<u64, Fault> {
    let longest = partition.max_time_seconds;
    let Some(limit) = spec.time_limit_seconds else {
        let bounds = [longest, limits.most_time(shape).filter(|most| *most > 0)];
        return Ok(bounds.into_iter().flatten().fold(partition.default_time(), u64::min));
    };
    match longest {
        Some(most) if limit > most => Err(Fault::new(
            "time_limit_too_long",
            "time_limit_seconds",
            format!("{limit} s is longer than the {most} s that partition {} allows", partition.name),
            format!("ask for at most {most} s ({})", berth_model::amount::format_time_limit(most)),
        )),
        _ => Ok(limit),
    }
}

/// Source: MaxArraySize in the slurm.conf manual.
fn check_array(policy: &Policy, array: Option<&ArraySpec>) -> Result<(), Fault> {
    let size = policy.max_array_size;
    match array.and_then(|array| array.indices.last()).filter(|last| *last >= size) {
        Some(last) => {
            let help = format!("the highest index of this cluster's arrays is {0}; for example 0-{0}", size - 1);
            Err(Fault::new("array_too_large", "array", format!("the index {last} is too high"), help))
        }
        None => Ok(()),
    }
}

fn check_nodes(partition: &Partition, shape: &Shape) -> Result<(), Fault> {
    if let Some(most) = partition.max_nodes
        && shape.min_nodes > most
    {
        return Err(Fault::new(
            "too_many_nodes",
            "resources.nodes",
            format!("{} nodes are more than the {most} that partition {} allows", shape.min_nodes, partition.name),
            format!("ask for at most {most} nodes"),
        ));
    }
    if let Some(least) = partition.min_nodes
        && shape.max_nodes < least
    {
        return Err(Fault::new(
            "too_few_nodes",
            "resources.nodes",
            format!("{} nodes are fewer than the {least} that partition {} asks for", shape.max_nodes, partition.name),
            format!("ask for at least {least} nodes, or use another partition"),
        ));
    }
    Ok(())
}
