//! Associations: the tree of who uses the cluster. One root; below it tenants, their accounts as a tree, users as leaves. Each has a
//! share of its parent and limits.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::quota::Quota;
use crate::tres::{Charge, Tres, TresCounts};
use crate::{Fault, JobId, Name};

/// A place in the tree: a tenant, one of its accounts, or a user of an account. Displayed as `association/acme/ml/ann`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AssociationKey {
    pub tenant: Name,
    /// Absent: the tenant itself.
    pub account: Option<Name>,
    /// Absent: the account itself.
    pub user: Option<Name>,
}

impl AssociationKey {
    pub fn tenant(tenant: Name) -> Self {
        AssociationKey { tenant, account: None, user: None }
    }

    pub fn account(tenant: Name, account: Name) -> Self {
        AssociationKey { tenant, account: Some(account), user: None }
    }

    pub fn user(tenant: Name, account: Name, user: Name) -> Self {
        AssociationKey { tenant, account: Some(account), user: Some(user) }
    }
}

impl fmt::Display for AssociationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.account, &self.user) {
            (Some(account), Some(user)) => write!(f, "association/{}/{account}/{user}", self.tenant),
            (Some(account), None) => write!(f, "account/{}/{account}", self.tenant),
            _ => write!(f, "tenant/{}", self.tenant),
        }
    }
}

/// A share of the parent's: an integer beside the siblings' (default 1), or the parent's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairshare {
    Shares(u32),
    /// A user competes with the account's own share; an account's children compete beside it.
    Parent,
}

impl Default for Fairshare {
    fn default() -> Self {
        Fairshare::Shares(1)
    }
}

impl Serialize for Fairshare {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Fairshare::Shares(shares) => s.serialize_u32(*shares),
            Fairshare::Parent => s.serialize_str("parent"),
        }
    }
}

impl<'de> Deserialize<'de> for Fairshare {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Shares(u32),
            Word(String),
        }
        match Written::deserialize(d) {
            Ok(Written::Shares(shares)) => Ok(Fairshare::Shares(shares)),
            Ok(Written::Word(word)) if word == "parent" => Ok(Fairshare::Parent),
            _ => Err(serde::de::Error::custom("fairshare is a whole number from 0 on, or \"parent\"")),
        }
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

    impl utoipa::PartialSchema for super::Fairshare {
        fn schema() -> RefOr<Schema> {
            let shares = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
            let word = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["parent"]));
            Schema::OneOf(
                OneOfBuilder::new()
                    .item(shares)
                    .item(word)
                    .description(Some("Shares beside the siblings' (default 1), or \"parent\"."))
                    .build(),
            )
            .into()
        }
    }
    impl utoipa::ToSchema for super::Fairshare {}
}

/// Limits that associations and QOS have in common. Absent: none. `grp_*` bind the sum over all below an association, or over all
/// jobs of a QOS; `max_*` bind one job, and of associations the nearest one that says something counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Held by running jobs at once. A node counts once, however many of the jobs are on it.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub grp_tres: TresCounts,
    /// Decayed use and what runs, in resource-minutes.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub grp_tres_minutes: TresCounts,
    /// What running jobs may still use until their time limits, in resource-minutes.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub grp_tres_run_minutes: TresCounts,
    /// Running at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grp_jobs: Option<u32>,
    /// Pending and running; beyond it submissions are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grp_submit_jobs: Option<u32>,
    /// Decayed run time of all jobs, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grp_wall_minutes: Option<u64>,
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub max_tres_per_job: TresCounts,
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub max_tres_per_node: TresCounts,
    /// A job's resources times its time limit, in resource-minutes.
    #[serde(skip_serializing_if = "TresCounts::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub max_tres_minutes_per_job: TresCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_seconds: Option<u64>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// `Err` if something counts that limits cannot count.
    pub fn check(&self) -> Result<(), Fault> {
        match self.max_tres_per_node.keys().find(|tres| matches!(tres, Tres::License(_))) {
            Some(tres) => Err(Fault::new(
                "unsupported_tres",
                "limits.max_tres_per_node",
                format!("{tres} is held by jobs, not on nodes"),
                "limit it by max_tres_per_job or grp_tres",
            )),
            None => Ok(()),
        }
    }
}

/// What an association is given: its share, its part in priorities, its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    pub fairshare: Fairshare,
    /// Relative priority; the highest of all associations counts as 1.0. Absent: the parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    #[serde(skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// A tenant's guarantee, and what it borrows and lends; of no meaning below tenants.
    #[serde(skip_serializing_if = "Quota::is_empty")]
    pub quota: Quota,
    /// Running jobs of each user below it; the nearest association that says something counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Pending and running jobs of each user below it; beyond it submissions are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_submit_jobs: Option<u32>,
}

/// One place of the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Association {
    pub key: AssociationKey,
    /// The account above an account, if any.
    pub parent: Option<Name>,
    pub terms: Terms,
}

/// Use that has come to an end, decayed to `as_of`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// Billing units × seconds × the QOS's usage factor.
    pub billing: f64,
    /// Seconds × usage factor.
    pub wall: f64,
    /// Resource × seconds × usage factor.
    #[serde(default)]
    pub tres: std::collections::BTreeMap<Tres, f64>,
}

/// Whose use it is: a user of an account, under a QOS, in partitions with or without one of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UsageKey {
    pub user: AssociationKey,
    pub qos: Name,
    /// The partition's own QOS, if it differs from the job's.
    pub partition_qos: Option<Name>,
}

/// Decayed use of one [`UsageKey`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageRow {
    pub key: UsageKey,
    pub as_of: Timestamp,
    pub used: Used,
}

/// An attempt that has ended, or the part of it with one charge, as its records say. Exactly once it goes into a [`UsageRow`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedRun {
    pub job: JobId,
    pub attempt: u32,
    pub key: UsageKey,
    pub began: Timestamp,
    pub ended: Timestamp,
    pub charge: Charge,
}

/// One line of the share tree, in the order of a walk from the root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Share {
    pub tenant: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Name>,
    /// Steps below the root: 1 for a tenant.
    pub depth: u32,
    pub fairshare: Fairshare,
    /// Shares ÷ the siblings' sum, itself included.
    pub norm_shares: f64,
    /// Decayed billing-seconds of all below it.
    pub raw_usage: f64,
    /// Part of the parent's usage.
    pub effective_usage: f64,
    /// norm_shares ÷ effective_usage; absent where nothing was used: no share is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_fs: Option<f64>,
    /// The factor in priorities, 0 to 1; users alone have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}
