//! Trackable resources (TRES): what shares, limits, billing and priority count, under Slurm's names.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::policy::Billing;
use crate::{Fault, Name};

/// One countable resource. Memory counts in MiB.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tres {
    Cpu,
    Mem,
    Node,
    /// GPUs of any type.
    Gpu,
    GpuType(String),
    /// Shards of GPUs.
    Shard,
    /// Parts of GPUs by MPS.
    Mps,
    License(String),
    /// What the partition's billing weights make of the others.
    Billing,
}

const TRES_HELP: &str = "use cpu, mem (MiB), node, gres/gpu, gres/gpu:TYPE, gres/shard, gres/mps, license/NAME or billing";

impl Tres {
    /// Bound to nodes, as opposed to the cluster's own (licences).
    pub fn is_of_node(&self) -> bool {
        !matches!(self, Tres::License(_) | Tres::Billing)
    }

    pub fn is_gres(&self) -> bool {
        matches!(self, Tres::Gpu | Tres::GpuType(_) | Tres::Shard | Tres::Mps)
    }
}

impl fmt::Display for Tres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tres::Cpu => f.write_str("cpu"),
            Tres::Mem => f.write_str("mem"),
            Tres::Node => f.write_str("node"),
            Tres::Gpu => f.write_str("gres/gpu"),
            Tres::GpuType(kind) => write!(f, "gres/gpu:{kind}"),
            Tres::Shard => f.write_str("gres/shard"),
            Tres::Mps => f.write_str("gres/mps"),
            Tres::License(name) => write!(f, "license/{name}"),
            Tres::Billing => f.write_str("billing"),
        }
    }
}

impl FromStr for Tres {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let lower = text.trim().to_ascii_lowercase();
        let is_word =
            |word: &str| !word.is_empty() && word.len() <= 63 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        Ok(match lower.as_str() {
            "cpu" => Tres::Cpu,
            "mem" => Tres::Mem,
            "node" => Tres::Node,
            "gres/gpu" | "gpu" => Tres::Gpu,
            "gres/shard" | "shard" => Tres::Shard,
            "gres/mps" | "mps" => Tres::Mps,
            "billing" => Tres::Billing,
            _ => match (lower.strip_prefix("gres/gpu:"), lower.strip_prefix("license/")) {
                (Some(kind), _) if is_word(kind) => Tres::GpuType(kind.to_owned()),
                (_, Some(name)) if is_word(name) => Tres::License(name.to_owned()),
                _ => return Err(Fault::new("unknown_tres", "tres", format!("\"{text}\" is no trackable resource"), TRES_HELP)),
            },
        })
    }
}

impl Serialize for Tres {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tres {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(|fault: Fault| de::Error::custom(format!("{}; {}", fault.detail, fault.help)))
    }
}

/// Whole amounts by resource; `{"cpu": 64, "gres/gpu": 8}`.
pub type TresCounts = BTreeMap<Tres, u64>;

/// A weight for each unit of a resource. Text may carry a suffix: `"0.25G"` is 0.25 for each GiB of memory, or for each 2³⁰ of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    value: f64,
    suffix: Option<char>,
}

impl Weight {
    pub fn new(value: f64) -> Self {
        Weight { value, suffix: None }
    }

    /// For each unit as it is counted: a MiB of memory, one of all else.
    pub fn per_unit(self, tres: &Tres) -> f64 {
        let power = match self.suffix {
            None => return self.value,
            Some('K') => 1,
            Some('M') => 2,
            Some('G') => 3,
            Some('T') => 4,
            Some(_) => 5,
        };
        // Memory counts in MiB already.
        let power = if *tres == Tres::Mem { power - 2 } else { power };
        self.value / 1024f64.powi(power)
    }
}

impl FromStr for Weight {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        let suffix = text.chars().last().map(|c| c.to_ascii_uppercase()).filter(|c| "KMGTP".contains(*c));
        let number = &text[..text.len() - suffix.map_or(0, char::len_utf8)];
        match number.parse::<f64>() {
            Ok(value) if value.is_finite() && (0.0..=1e12).contains(&value) => Ok(Weight { value, suffix }),
            _ => Err(Fault::new(
                "invalid_weight",
                "weight",
                format!("\"{text}\" is no weight"),
                "write a number from 0 on, with K, M, G, T or P if it is for so many; for example 0.25G",
            )),
        }
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.suffix {
            Some(suffix) => s.collect_str(&format_args!("{}{suffix}", self.value)),
            None => s.serialize_f64(self.value),
        }
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        let text = match Written::deserialize(d)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(|fault: Fault| de::Error::custom(format!("{}; {}", fault.detail, fault.help)))
    }
}

/// What an attempt is charged for: what it holds, and at what rate. Fixed when it gets its nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// All that it holds; `billing` is the billing units, truncated.
    pub tres: TresCounts,
    /// Billing units a second; see [`bill`].
    pub billing: f64,
    /// The QOS's usage factor.
    pub usage_factor: f64,
    /// The partition's own QOS, if it differs from the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_qos: Option<Name>,
}

/// Billing units of `counts`: Σ weight × count, or the greatest of some, as `rule` says. Without weights, the CPUs.
///
/// 32 CPUs, 256 GiB and 4 GPUs at CPU=1, Mem=0.25G, gres/gpu=16 are 160 by the sum, 64 by `max_tres`, 128 by `max_tres_gres`.
pub fn bill(weights: &BTreeMap<Tres, Weight>, rule: Billing, counts: &TresCounts) -> f64 {
    if weights.is_empty() {
        return counts.get(&Tres::Cpu).copied().unwrap_or(0) as f64;
    }
    let parts = || {
        let billed = weights.iter().filter(|(tres, _)| **tres != Tres::Billing);
        billed.map(|(tres, weight)| (tres, weight.per_unit(tres) * counts.get(tres).copied().unwrap_or(0) as f64))
    };
    let sum = |of: &dyn Fn(&Tres) -> bool| parts().filter(|(tres, _)| of(tres)).map(|(_, part)| part).sum::<f64>();
    let most = |of: &dyn Fn(&Tres) -> bool| parts().filter(|(tres, _)| of(tres)).map(|(_, part)| part).fold(0.0, f64::max);
    match rule {
        Billing::Sum => sum(&|_| true),
        Billing::MaxTres => most(&Tres::is_of_node) + sum(&|tres| !tres.is_of_node()),
        Billing::MaxTresGres => sum(&Tres::is_gres) + most(&|tres| tres.is_of_node() && !tres.is_gres()) + sum(&|tres| !tres.is_of_node()),
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

    impl utoipa::PartialSchema for super::Weight {
        fn schema() -> RefOr<Schema> {
            let number = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
            let text = ObjectBuilder::new().schema_type(Type::String);
            Schema::OneOf(
                OneOfBuilder::new()
                    .item(number)
                    .item(text)
                    .description(Some("A weight for each unit; text may carry a suffix: \"0.25G\" is 0.25 for each GiB of memory."))
                    .build(),
            )
            .into()
        }
    }
    impl utoipa::ToSchema for super::Weight {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_way_through_text() {
        for text in ["cpu", "mem", "node", "gres/gpu", "gres/gpu:h100", "gres/shard", "gres/mps", "license/matlab", "billing"] {
            assert_eq!(text.parse::<Tres>().unwrap().to_string(), text);
        }
        for wrong in ["", "gres/", "gres/gpu:", "license/", "energy"] {
            assert_eq!(wrong.parse::<Tres>().unwrap_err().code, "unknown_tres");
        }
    }

    fn weights(pairs: &[(&str, &str)]) -> BTreeMap<Tres, Weight> {
        pairs.iter().map(|(tres, weight)| (tres.parse().unwrap(), weight.parse().unwrap())).collect()
    }

    #[test]
    fn billing_is_a_sum_or_a_maximum() {
        let three = weights(&[("cpu", "1"), ("mem", "0.25G"), ("gres/gpu", "16")]);
        let job = TresCounts::from([(Tres::Cpu, 32), (Tres::Mem, 256 * 1024), (Tres::Gpu, 4), (Tres::Node, 1)]);
        assert_eq!(bill(&three, Billing::Sum, &job), 160.0);
        assert_eq!(bill(&three, Billing::MaxTres, &job), 64.0);
        assert_eq!(bill(&three, Billing::MaxTresGres, &job), 128.0);
        assert_eq!(bill(&BTreeMap::new(), Billing::Sum, &job), 32.0, "without weights, the CPUs");
        let licensed = weights(&[("cpu", "1"), ("mem", "0.25G"), ("license/matlab", "1.5")]);
        let small = TresCounts::from([(Tres::Cpu, 1), (Tres::Mem, 8 * 1024), (Tres::License("matlab".to_owned()), 1)]);
        assert_eq!(bill(&licensed, Billing::Sum, &small), 4.5);
        assert_eq!(bill(&licensed, Billing::MaxTres, &small), 3.5, "licences come on top of the greatest");
    }

    #[test]
    fn a_weight_with_a_suffix_is_for_so_much_memory() {
        let weight: Weight = "0.25G".parse().unwrap();
        assert_eq!(weight.per_unit(&Tres::Mem) * 256.0 * 1024.0, 64.0);
        assert_eq!(serde_json::to_string(&weight).unwrap(), "\"0.25G\"");
        assert_eq!(serde_json::from_str::<Weight>("16").unwrap(), Weight::new(16.0));
        assert!("-1".parse::<Weight>().is_err() && "G".parse::<Weight>().is_err());
    }
}
