//! What associations are given, as bodies carry it: checks that all who have terms share.

use berth_model::Fault;
use berth_model::association::Terms;
use berth_model::policy::Qos;

use crate::auth::Caller;
use crate::problem::{Answer, Problem};

/// Terms as stored. What cannot be read was written by a newer version: it counts as nothing here.
pub fn read(stored: serde_json::Value) -> Terms {
    serde_json::from_value(stored).unwrap_or_default()
}

/// Limits must be countable, and quotas are tenants'. Priorities compare all tenants, so the platform's admins alone set them.
pub fn check(caller: &Caller, known: &Terms, asked: &Terms) -> Answer<()> {
    asked.limits.check().map_err(|fault| Fault { field: format!("terms.{}", fault.field), ..fault })?;
    if !asked.quota.is_empty() {
        let help = "give the tenant a quota, and accounts and users limits (grp_tres)";
        return Err(Fault::new("not_a_tenant", "terms.quota", "only tenants have quotas", help).into());
    }
    check_priority(caller, known, asked)
}

/// A tenant's terms.
pub fn check_tenant(caller: &Caller, known: &Terms, asked: &Terms) -> Answer<()> {
    let within = |fault: Fault| Fault { field: format!("terms.{}", fault.field), ..fault };
    asked.limits.check().map_err(within)?;
    asked.quota.check().map_err(within)?;
    if known.quota != asked.quota && !caller.is_platform_admin() {
        return Err(Problem::forbidden("a quota is what the platform promises a tenant")
            .field("terms.quota")
            .help("ask an administrator of the platform"));
    }
    check_priority(caller, known, asked)
}

fn check_priority(caller: &Caller, known: &Terms, asked: &Terms) -> Answer<()> {
    if known.priority != asked.priority && !caller.is_platform_admin() {
        return Err(Problem::forbidden("an association's priority counts against all tenants")
            .field("terms.priority")
            .help("leave it as it is, or ask an administrator of the platform"));
    }
    Ok(())
}

/// A QOS's limits and factors.
pub fn check_qos(spec: &Qos) -> Result<(), Fault> {
    spec.limits.check()?;
    for (field, factor) in [("usage_factor", spec.usage_factor), ("limit_factor", spec.limit_factor)] {
        if !(0.0..=1e6).contains(&factor) {
            return Err(Fault::new("invalid_factor", field, format!("{factor}"), "use a number from 0 to 1000000; 1 is the default"));
        }
    }
    Ok(())
}
