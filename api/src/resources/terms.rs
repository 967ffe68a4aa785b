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

/// Limits must be countable. Priorities compare all tenants, so the platform's admins alone set them.
pub fn check(caller: &Caller, known: &Terms, asked: &Terms) -> Answer<()> {
    asked.limits.check().map_err(|fault| Fault { field: format!("terms.{}", fault.field), ..fault })?;
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
