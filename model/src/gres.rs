//! Generic resources (GRES) of a node beyond whole GPUs: shares of one, as shards or by NVIDIA's Multi-Process Service (MPS).
//!
//! A GPU is at any moment whole or shared in one way. A job's share on a node is of one GPU. Nothing keeps sharers from each other's memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Fault;
use crate::resources::{Gpu, Gpus};
use crate::state::text_enum;
use crate::tres::Tres;

/// Types of GPU that a plan tells apart on one node.
pub const MAX_GPU_KINDS: usize = 4;

/// Marks as out of use what a plan cannot take into account: GPUs of more types than [`MAX_GPU_KINDS`], those that come last by name.
pub fn mark_surplus_kinds(gpus: &mut [Gpu]) {
    let kinds: BTreeSet<String> = gpus.iter().map(|gpu| gpu.kind.clone()).collect();
    let surplus: BTreeSet<String> = kinds.into_iter().skip(MAX_GPU_KINDS).collect();
    for gpu in gpus.iter_mut().filter(|gpu| surplus.contains(&gpu.kind)) {
        let reason = || format!("not used: a node has at most {MAX_GPU_KINDS} types of GPU, and {} is one more", gpu.kind);
        gpu.fault = Some(gpu.fault.clone().unwrap_or_else(reason));
    }
}

text_enum! {
    /// How a GPU is shared.
    ShareKind {
        /// So many shares, which are only counted.
        Shard = "shard",
        /// Parts of its threads, by NVIDIA's MPS; usually a hundred, for per cent.
        Mps = "mps",
    }
}

impl ShareKind {
    pub fn tres(self) -> Tres {
        match self {
            ShareKind::Shard => Tres::Shard,
            ShareKind::Mps => Tres::Mps,
        }
    }
}

/// A share of one GPU, of a type or of any: `shard:2`, `mps:50`, `shard:h100:2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedGpu {
    pub of: ShareKind,
    /// The GPU's type; absent means any.
    pub kind: Option<String>,
    pub count: u32,
}

/// The most that a GPU is shared into.
pub const MAX_SHARES: u32 = 60_000;

pub const SHARED_GPU_HELP: &str =
    "write shard:count or mps:count, with the GPU's type between if it matters; for example shard:2 or mps:h100:50";

impl FromStr for SharedGpu {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || Fault::new("invalid_gpu_share", "gpu_share", format!("\"{text:.80}\" is no share of a GPU"), SHARED_GPU_HELP);
        let (of, rest) = text.split_once([':', '=']).map_or((text, None), |(of, rest)| (of, Some(rest)));
        let of = of.parse().map_err(|_| fault())?;
        // As with GPUs: a type alone means one of it.
        let is_type = |text: &str| !text.contains(':') && text.starts_with(|c: char| c.is_ascii_alphabetic());
        let Gpus { kind, count } = match rest {
            None => Gpus { kind: None, count: 1 },
            Some(kind) if is_type(kind) => format!("{kind}:1").parse().map_err(|_| fault())?,
            Some(rest) => rest.parse().map_err(|_| fault())?,
        };
        if (1..=MAX_SHARES).contains(&count) { Ok(SharedGpu { of, kind, count }) } else { Err(fault()) }
    }
}

impl fmt::Display for SharedGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{}:{kind}:{}", self.of, self.count),
            None => write!(f, "{}:{}", self.of, self.count),
        }
    }
}

impl Serialize for SharedGpu {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedGpu {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(|fault: Fault| de::Error::custom(format!("{}: {}", fault.detail, fault.help)))
    }
}

/// Into how many shares each GPU may be divided, by its index; those that are not named are not shared.
pub type SharesOfGpus = BTreeMap<u32, u32>;

/// An operator's declaration of how the GPUs of a node may be shared: `shard:64` over all of them evenly, `mps:1300+1200` each by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredShares {
    pub of: ShareKind,
    counts: Vec<u32>,
}

const DECLARED_HELP: &str =
    "write shard:count or mps:count for all GPUs together, or a count for each with + between; for example shard:64 or mps:100+100";

impl FromStr for DeclaredShares {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (name, counts) = text.split_once(':')?;
            let counts: Option<Vec<u32>> = counts.split('+').map(|count| count.parse().ok().filter(|count| *count > 0)).collect();
            Some(DeclaredShares { of: name.parse().ok()?, counts: counts? })
        };
        parse().ok_or_else(|| format!("\"{text}\" does not say how GPUs are shared: {DECLARED_HELP}"))
    }
}

impl fmt::Display for DeclaredShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.counts.iter().map(u32::to_string).collect();
        write!(f, "{}:{}", self.of, counts.join("+"))
    }
}

impl DeclaredShares {
    /// The same for each of the node's GPUs. One count is spread evenly, the first GPUs having one more if it leaves a rest.
    ///
    /// 64 shards on eight GPUs are eight on each.
    pub fn over(&self, gpus: &[Gpu]) -> Result<SharesOfGpus, String> {
        let number = gpus.len() as u32;
        let counts: Vec<u32> = match self.counts.as_slice() {
            [all] if number > 0 => (0..number).map(|i| all / number + u32::from(i < all % number)).collect(),
            each => each.to_vec(),
        };
        if counts.len() != gpus.len() || counts.iter().any(|count| !(1..=MAX_SHARES).contains(count)) {
            return Err(format!("{self} does not give each of {number} GPUs 1 to {MAX_SHARES} shares: {DECLARED_HELP}"));
        }
        Ok(gpus.iter().map(|gpu| gpu.index).zip(counts).collect())
    }
}

/// Per cent of a GPU's threads for a share of so many out of all that it is divided into: asked · 100 ÷ all, truncated.
pub fn thread_percentage(asked: u32, all: u32) -> u32 {
    (u64::from(asked) * 100 / u64::from(all.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn types_beyond_the_fourth_are_out_of_use_and_say_so() {
        let gpu = |(index, kind): (u32, &str)| Gpu {
            index,
            uuid: format!("GPU-{index}"),
            kind: kind.to_owned(),
            memory_bytes: Bytes(0),
            numa: None,
            fault: None,
        };
        let mut gpus: Vec<Gpu> = (0..).zip(["4g.40gb", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "1g.10gb"]).map(gpu).collect();
        mark_surplus_kinds(&mut gpus);
        assert_eq!(gpus[0].fault.as_deref(), Some("not used: a node has at most 4 types of GPU, and 4g.40gb is one more"));
        assert!(gpus[1..].iter().all(|gpu| gpu.fault.is_none()), "{gpus:?}");
    }

    fn gpus(count: u32) -> Vec<Gpu> {
        let gpu = |index| Gpu { index, uuid: String::new(), kind: "h100".to_owned(), memory_bytes: Bytes(0), numa: None, fault: None };
        (0..count).map(gpu).collect()
    }

    #[test]
    fn shares_are_read_and_written() {
        for (text, written) in [
            ("shard", "shard:1"),
            ("shard:2", "shard:2"),
            ("mps:50", "mps:50"),
            ("mps:h100:50", "mps:h100:50"),
            ("shard:h100", "shard:h100:1"),
        ] {
            assert_eq!(text.parse::<SharedGpu>().unwrap().to_string(), written);
        }
        for wrong in ["", "gpu:2", "shard:0", "shard:x:y", "mps:-1", "mps:1000000"] {
            assert_eq!(wrong.parse::<SharedGpu>().unwrap_err().code, "invalid_gpu_share", "{wrong}");
        }
    }

    #[test]
    fn sixty_four_shards_on_eight_gpus_are_eight_on_each() {
        let over = |text: &str, count| text.parse::<DeclaredShares>().unwrap().over(&gpus(count));
        assert_eq!(over("shard:64", 8).unwrap().into_values().collect::<Vec<_>>(), [8; 8]);
        assert_eq!(over("shard:7", 3).unwrap().into_values().collect::<Vec<_>>(), [3, 2, 2]);
        assert_eq!(over("mps:1300+1200", 2).unwrap(), SharesOfGpus::from([(0, 1300), (1, 1200)]));
        for (text, count) in [("shard:7", 8), ("mps:100+100", 3), ("shard:8", 0)] {
            assert!(over(text, count).is_err(), "{text} on {count}");
        }
        for wrong in ["gpu:8", "shard", "shard:0", "mps:100+", "shard:-1"] {
            assert!(wrong.parse::<DeclaredShares>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_of_threads_is_what_was_asked_of_the_devices_count() {
        assert_eq!([1300, 1200, 1100, 1000].map(|all| thread_percentage(200, all)), [15, 16, 18, 20]);
        assert_eq!(thread_percentage(50, 100), 50);
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

    impl utoipa::PartialSchema for super::SharedGpu {
        fn schema() -> RefOr<Schema> {
            let text = ObjectBuilder::new().schema_type(Type::String);
            Schema::Object(text.description(Some("A share of one GPU: shard:2, mps:50, or of a type, shard:h100:2.")).build()).into()
        }
    }
    impl utoipa::ToSchema for super::SharedGpu {}
}
