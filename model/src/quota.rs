//! Quotas of tenants: what each is guaranteed, and what tenants of a cohort lend each other while they do not need it.
//!
//! Words and rules are Kueue's (cluster queues in a cohort: nominal quota, borrowing limit, lending limit). A tenant that has no quota and
//! is in no cohort is bound by none of this.
//!
//! Example: acme is guaranteed 64 GPUs, beta 32, in one cohort, and acme lends at most 16. While acme uses 8, beta may use
//! 32 + min(16, 64 − 8) = 48. If acme then wants its 64, beta's jobs beyond 32 must give way.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::state::text_enum;
use crate::tres::{Tres, TresCounts};
use crate::{Fault, Name};

text_enum! {
    /// Whether jobs within their tenant's guarantee stop those of tenants of the cohort that have borrowed.
    Reclaim {
        /// They wait until what was lent comes back by itself.
        Off = "off",
        /// Any job of a borrowing tenant may be stopped, as far as its QOS and partition let it be preempted.
        Any = "any",
    }
}

/// What a tenant is guaranteed, and under which conditions it borrows and lends. Counts are held by running jobs at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// Up to here its jobs are never held by what others use. Of a resource that is not named nothing is guaranteed.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub guaranteed: TresCounts,
    /// Tenants of one cohort lend each other. Absent: `guaranteed` is also the most that it may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort: Option<Name>,
    /// At most so much beyond `guaranteed`; absent: as much as the others lend.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub borrowing_limit: TresCounts,
    /// At most so much of `guaranteed` is lent; absent: all of it.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub lending_limit: TresCounts,
}

impl Quota {
    pub fn is_empty(&self) -> bool {
        *self == Quota::default()
    }

    pub fn guaranteed(&self, tres: &Tres) -> u64 {
        self.guaranteed.get(tres).copied().unwrap_or(0)
    }

    /// The most of each resource that its jobs may hold, whatever the others lend; nothing of a resource without such a bound.
    pub fn most(&self) -> TresCounts {
        if self.cohort.is_none() {
            return self.guaranteed.clone();
        }
        self.borrowing_limit.iter().map(|(tres, limit)| (tres.clone(), self.guaranteed(tres).saturating_add(*limit))).collect()
    }

    /// What it holds beyond its guarantee.
    pub fn borrows(&self, tres: &Tres, held: u64) -> u64 {
        held.saturating_sub(self.guaranteed(tres))
    }

    /// What it lends while it holds so much.
    pub fn lends(&self, tres: &Tres, held: u64) -> u64 {
        let unused = self.guaranteed(tres).saturating_sub(held);
        self.lending_limit.get(tres).map_or(unused, |most| unused.min(*most))
    }

    /// `Err` if something is counted that cannot be lent, or a limit has no meaning.
    pub fn check(&self) -> Result<(), Fault> {
        let maps = [("guaranteed", &self.guaranteed), ("borrowing_limit", &self.borrowing_limit), ("lending_limit", &self.lending_limit)];
        for (field, counts) in maps {
            if let Some(tres) = counts.keys().find(|tres| matches!(tres, Tres::License(_) | Tres::Node)) {
                let help = "name cpu, mem, gres/gpu, gres/gpu:TYPE or billing";
                return Err(Fault::new("unsupported_tres", format!("quota.{field}"), format!("{tres} cannot be lent"), help));
            }
            if field != "guaranteed" && !counts.is_empty() && self.cohort.is_none() {
                let detail = "without a cohort nothing is lent or borrowed";
                return Err(Fault::new("cohort_required", format!("quota.{field}"), detail, "name a cohort, or leave the limit out"));
            }
        }
        let guaranteed: BTreeSet<&Tres> = self.guaranteed.keys().collect();
        match self.lending_limit.keys().find(|tres| !guaranteed.contains(tres)) {
            Some(tres) => Err(Fault::new(
                "nothing_to_lend",
                "quota.lending_limit",
                format!("nothing of {tres} is guaranteed"),
                "name it in guaranteed, or leave it out",
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u64) -> TresCounts {
        TresCounts::from([(Tres::Gpu, count)])
    }

    #[test]
    fn what_is_lent_borrowed_and_allowed() {
        let cohort = Name::new("research").ok();
        let acme = Quota { guaranteed: gpus(64), cohort: cohort.clone(), lending_limit: gpus(16), ..Quota::default() };
        // The example above.
        for (held, lent) in [(0, 16), (8, 16), (50, 14), (64, 0), (80, 0)] {
            assert_eq!(acme.lends(&Tres::Gpu, held), lent, "{held}");
        }
        assert_eq!((acme.borrows(&Tres::Gpu, 64), acme.borrows(&Tres::Gpu, 70), acme.borrows(&Tres::Cpu, 3)), (0, 6, 3));
        assert_eq!(acme.most(), TresCounts::new(), "as much as is lent");
        let bounded = Quota { borrowing_limit: TresCounts::from([(Tres::Gpu, 8), (Tres::Cpu, 4)]), ..acme.clone() };
        assert_eq!(bounded.most(), TresCounts::from([(Tres::Gpu, 72), (Tres::Cpu, 4)]));
        assert_eq!(Quota { guaranteed: gpus(64), ..Quota::default() }.most(), gpus(64));
    }

    #[test]
    fn each_fault_names_its_field() {
        let (cohort, node) = (Name::new("research").ok(), TresCounts::from([(Tres::Node, 1)]));
        for (quota, code, field) in [
            (Quota { guaranteed: node, ..Quota::default() }, "unsupported_tres", "quota.guaranteed"),
            (Quota { guaranteed: gpus(1), borrowing_limit: gpus(1), ..Quota::default() }, "cohort_required", "quota.borrowing_limit"),
            (Quota { cohort, lending_limit: gpus(1), ..Quota::default() }, "nothing_to_lend", "quota.lending_limit"),
        ] {
            let fault = quota.check().unwrap_err();
            assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, field));
        }
    }
}
