//! The cluster's policy: weights of the priority's factors, and times of the failure handling.

use std::collections::BTreeMap;

use axum::extract::State;
use berth_model::Fault;
use berth_model::array::MAX_ARRAY_TASKS;
use berth_model::policy::{Policy, QueueOrder, UsageReset};
use berth_model::tres::{Tres, Weight};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::Caller;
use crate::extract::{Body, IfMatch, Tagged};
use crate::patch::merge;
use crate::problem::{Answer, Problem};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, put, update))
}

/// Get the cluster's policy.
#[utoipa::path(get, path = "/v1/policy", operation_id = "policy_get", tag = "policy",
    responses((status = 200, body = Policy), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn get(State(app): State<App>, _caller: Caller) -> Answer<Tagged<Policy>> {
    let found = app.db.policy().await?;
    Ok(Tagged(found.value, found.version))
}

/// Replace the cluster's policy. It is in force with the next plan.
#[utoipa::path(put, path = "/v1/policy", operation_id = "policy_put", tag = "policy", request_body = Policy,
    responses((status = 200, body = Policy), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn put(State(app): State<App>, caller: Caller, IfMatch(version): IfMatch, Body(body): Body<Policy>) -> Answer<Tagged<Policy>> {
    caller.require_platform_admin("policy:write")?;
    store(&app, version, body).await
}

/// Change the cluster's policy (a merge patch: `null` takes a field back to its default). It is in force with the next plan.
#[utoipa::path(patch, path = "/v1/policy", operation_id = "policy_update", tag = "policy", request_body = Object,
    responses((status = 200, body = Policy), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    IfMatch(version): IfMatch,
    Body(patch): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Tagged<Policy>> {
    caller.require_platform_admin("policy:write")?;
    let found = app.db.policy().await?;
    let version = version.or(Some(found.version));
    store(&app, version, merge(&found.value, patch)?).await
}

async fn store(app: &App, version: Option<i64>, body: Policy) -> Answer<Tagged<Policy>> {
    check(&body)?;
    let stored = app.db.put_policy(&body, version).await?;
    app.catalog.forget_rules();
    Ok(Tagged(stored.value, stored.version))
}

/// What a policy must not say.
pub(super) fn check(policy: &Policy) -> Result<(), Fault> {
    check_power(policy)?;
    if !(1..=86_400).contains(&policy.node_timeout_seconds) {
        return Err(Fault::new(
            "invalid_limit",
            "node_timeout_seconds",
            format!("{} s", policy.node_timeout_seconds),
            "use 1 to 86400 seconds; 60 is the default",
        ));
    }
    if policy.kill_wait_seconds > 3600 {
        return Err(Fault::new(
            "invalid_limit",
            "kill_wait_seconds",
            format!("{} s", policy.kill_wait_seconds),
            "use at most 3600 seconds; 30 is the default",
        ));
    }
    if !(1..=MAX_ARRAY_TASKS).contains(&policy.max_array_size) {
        let help = format!("use 1 to {MAX_ARRAY_TASKS}, which is the default");
        return Err(Fault::new("invalid_limit", "max_array_size", policy.max_array_size.to_string(), help));
    }
    if policy.queue.is_some_and(|queue| queue.depth == Some(0)) {
        return Err(Fault::new(
            "invalid_limit",
            "queue.depth",
            "0 jobs",
            "use 1 or more, or leave it out: then every job holds a planned start",
        ));
    }
    if policy.weight_age > 0 && policy.queue.is_some_and(|queue| queue.order == QueueOrder::Urgency) {
        return Err(Fault::new(
            "contradiction",
            "queue.order",
            format!("urgency orders jobs of equal priority, but with a weight_age of {} ages make priorities differ", policy.weight_age),
            "set weight_age to 0, or the order to submission",
        ));
    }
    check_weights("weight_tres", &policy.weight_tres, false)?;
    if policy.half_life_seconds == 0 && policy.usage_reset == UsageReset::None {
        return Err(Fault::new(
            "usage_never_fades",
            "half_life_seconds",
            "with neither a half-life nor a reset all use counts for ever",
            "set half_life_seconds (604800 is the default), or usage_reset",
        ));
    }
    check_times(&[
        ("queue.patience_seconds", policy.queue.map(|queue| queue.patience_seconds)),
        ("half_life_seconds", Some(policy.half_life_seconds).filter(|s| *s > 0)),
        ("max_age_seconds", Some(policy.max_age_seconds)),
        ("requeue_delay_seconds", Some(policy.requeue_delay_seconds).filter(|s| *s > 0)),
        ("decision_keep_seconds", Some(policy.decision_keep_seconds).filter(|s| *s > 0)),
        ("preempt_exempt_seconds", Some(policy.preempt_exempt_seconds).filter(|s| *s > 0)),
    ])
}

fn check_power(policy: &Policy) -> Result<(), Fault> {
    for (field, seconds) in [
        ("resume_timeout_seconds", policy.resume_timeout_seconds),
        ("suspend_timeout_seconds", policy.suspend_timeout_seconds),
        ("reboot_timeout_seconds", policy.reboot_timeout_seconds),
    ] {
        if !(1..=86_400).contains(&seconds) {
            return Err(Fault::new("invalid_limit", field, format!("{seconds} s"), "use 1 to 86400 seconds"));
        }
    }
    let Some(power) = &policy.power else { return Ok(()) };
    if power.idle_seconds == 0 || power.idle_seconds > berth_model::amount::MAX_SECONDS {
        return Err(Fault::new("invalid_limit", "power.idle_seconds", format!("{} s", power.idle_seconds), "use 1 second to ten years"));
    }
    for (field, rate) in [("power.suspend_per_minute", power.suspend_per_minute), ("power.resume_per_minute", power.resume_per_minute)] {
        if rate == 0 {
            return Err(Fault::new("invalid_limit", field, "0 nodes a minute", "use at least 1; leave power out to power nothing down"));
        }
    }
    if let Some(list) = &power.exclude_nodes {
        berth_model::hostlist::expand(list).map_err(|fault| Fault { field: "power.exclude_nodes".to_owned(), ..fault })?;
    }
    Ok(())
}

/// Billing is made of weights and has none. Licences are billed, but make no job larger.
pub(crate) fn check_weights(field: &str, weights: &BTreeMap<Tres, Weight>, takes_licenses: bool) -> Result<(), Fault> {
    match weights.keys().find(|tres| matches!(tres, Tres::Billing) || matches!(tres, Tres::License(_)) && !takes_licenses) {
        Some(tres) => Err(Fault::new(
            "unsupported_tres",
            format!("{field}.{tres}"),
            format!("{tres} takes no weight"),
            "weigh cpu, mem, node, gres/gpu or gres/gpu:TYPE",
        )),
        None => Ok(()),
    }
}

/// Grace of preempted jobs.
pub(crate) fn check_grace(grace: Option<u64>) -> Result<(), Fault> {
    match grace.filter(|seconds| *seconds > 86_400) {
        Some(seconds) => {
            Err(Fault::new("invalid_limit", "grace_seconds", format!("{seconds} s"), "use at most 86400 seconds, or leave it out"))
        }
        None => Ok(()),
    }
}

/// Time limits in policy objects: at least a second, at most what the vocabulary allows.
pub(crate) fn check_times(times: &[(&str, Option<u64>)]) -> Result<(), Fault> {
    for (field, value) in times {
        if value.is_some_and(|v| v == 0 || v > berth_model::amount::MAX_SECONDS) {
            return Err(Fault::new(
                "invalid_time",
                *field,
                format!("{} s", value.unwrap_or(0)),
                "use 1 second to ten years, or leave it out",
            ));
        }
    }
    Ok(())
}
