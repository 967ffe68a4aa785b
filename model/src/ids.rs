//! Typed identifiers. A job is a number as Slurm's users know it; an array task is `1234_7`; a step is `1234.0`.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Fault, Indices};

/// A job's number. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.parse::<u64>() {
            Ok(n) if n > 0 && n <= i64::MAX as u64 => Ok(JobId(n)),
            _ => Err(Fault::new(
                "invalid_job_id",
                "job_id",
                format!("\"{text}\" is not a job id"),
                "a job id is a positive number, for example 1234, 1234_7 for an array task, or 1234+1 for a component",
            )),
        }
    }
}

/// How users name a job: `1234`, `1234_7` for task 7 of array 1234, or `1234+1` for component 1 of heterogeneous job 1234.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobRef {
    Job(JobId),
    Task { array: JobId, index: u32 },
    Component { leader: JobId, offset: u32 },
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobRef::Job(id) => id.fmt(f),
            JobRef::Task { array, index } => write!(f, "{array}_{index}"),
            JobRef::Component { leader, offset } => write!(f, "{leader}+{offset}"),
        }
    }
}

impl FromStr for JobRef {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        if let Some((leader, offset)) = text.split_once('+') {
            let offset = offset.parse().map_err(|_| {
                let detail = format!("\"{offset}\" is not a component's number");
                Fault::new("invalid_job_id", "job_id", detail, "a component of a heterogeneous job is named like 1234+1")
            })?;
            return Ok(JobRef::Component { leader: leader.parse()?, offset });
        }
        match text.split_once('_') {
            None => text.parse().map(JobRef::Job),
            Some((array, index)) => {
                let index = index.parse().map_err(|_| {
                    Fault::new(
                        "invalid_job_id",
                        "job_id",
                        format!("\"{index}\" is not an array index"),
                        "an array task is named like 1234_7",
                    )
                })?;
                Ok(JobRef::Task { array: array.parse()?, index })
            }
        }
    }
}

/// Jobs that one order is about: a job, or several tasks of an array, `1234_[5-6,9]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSet {
    One(JobRef),
    Tasks { array: JobId, indices: Indices },
}

impl FromStr for JobSet {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let Some((array, list)) = text.split_once("_[") else { return text.parse().map(JobSet::One) };
        let fault = |detail: String| Fault::new("invalid_job_id", "job_id", detail, "tasks of an array are named like 1234_[5-6,9]");
        let list = list.strip_suffix(']').ok_or_else(|| fault(format!("\"{text}\" lacks its closing bracket")))?;
        let indices: Indices = list.parse().map_err(|found: Fault| fault(format!("\"{text}\": {}", found.detail)))?;
        if indices.is_empty() {
            return Err(fault(format!("\"{text}\" names no task")));
        }
        Ok(JobSet::Tasks { array: array.parse()?, indices })
    }
}

/// A step of a job: the batch script itself, or a numbered parallel step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepId {
    Batch,
    Number(u32),
}

impl StepId {
    /// The database's and the log store's form: -1 for batch.
    pub fn as_i32(self) -> i32 {
        match self {
            StepId::Batch => -1,
            StepId::Number(n) => n as i32,
        }
    }

    pub fn from_i32(n: i32) -> Self {
        if n < 0 { StepId::Batch } else { StepId::Number(n as u32) }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepId::Batch => f.write_str("batch"),
            StepId::Number(n) => n.fmt(f),
        }
    }
}

impl FromStr for StepId {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        if text == "batch" {
            return Ok(StepId::Batch);
        }
        match text.parse::<u32>() {
            Ok(n) if n <= i32::MAX as u32 => Ok(StepId::Number(n)),
            _ => Err(Fault::new(
                "invalid_step_id",
                "step",
                format!("\"{text}\" is not a step"),
                "a step is \"batch\" or a number, for example 0",
            )),
        }
    }
}

impl Serialize for StepId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for StepId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("`batch`, or the step's number as text"))
            .into()
    }
}
#[cfg(feature = "openapi")]
impl utoipa::ToSchema for StepId {}

/// The rule of names: `[a-z0-9][a-z0-9._-]{0,62}`.
pub const NAME_HELP: &str = "a name has 1 to 63 characters: lower-case letters, digits, dot, underscore and hyphen, beginning with a letter or digit; for example nlp-team";

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
        && bytes[0].is_ascii_alphanumeric()
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Result<Self, Fault> {
                let text = text.into();
                if is_name(&text) {
                    Ok($name(text))
                } else {
                    Err(Fault::new("invalid_name", $field, format!("{text:?} is not a valid name"), NAME_HELP))
                }
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            pub fn into_string(self) -> String {
                self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl FromStr for $name {
            type Err = Fault;
            fn from_str(text: &str) -> Result<Self, Fault> {
                $name::new(text)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $name::new(String::deserialize(d)?).map_err(|fault| serde::de::Error::custom(format!("{}: {}", fault.detail, fault.help)))
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$"))
                    .into()
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

name_type!(
    /// The name of a tenant, account, user, partition or QOS.
    Name, "name"
);
name_type!(
    /// The name of a node.
    NodeName, "node"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_references_read_and_write_alike() {
        for text in ["1234", "1234_7", "1234+1"] {
            assert_eq!(text.parse::<JobRef>().unwrap().to_string(), text);
        }
        for bad in ["", "0", "-1", "12x", "12_", "_3", "12+", "+1", "12+-1", "12_1+1", "99999999999999999999"] {
            assert!(bad.parse::<JobRef>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn tasks_are_named_together() {
        assert_eq!("12_3".parse(), Ok(JobSet::One(JobRef::Task { array: JobId(12), index: 3 })));
        assert_eq!("12_[5-6,9]".parse(), Ok(JobSet::Tasks { array: JobId(12), indices: [5, 6, 9].into_iter().collect() }));
        for (bad, part) in [("12_[5-", "closing bracket"), ("12_[x]", "\"x\""), ("12_[]", "no task"), ("x_[1]", "not a job id")] {
            assert!(bad.parse::<JobSet>().unwrap_err().detail.contains(part), "{bad}");
        }
    }

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "nlp-team", "0x", "a.b_c-d"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "A", "a b", "a/b", &"x".repeat(64), "é"] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
    }
}
