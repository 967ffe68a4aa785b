//! Run ids: 64 bits that sort by time, written as `s` and 13 characters of Crockford base 32 (Slurm's SLUID form).
//!
//! cluster 12 bits | Unix milliseconds 42 bits | sequence 10 bits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Fault;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A unique, sortable id of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("s")?;
        for place in (0..13).rev() {
            let digit = (self.0 >> (5 * place)) & 31;
            write!(f, "{}", ALPHABET[digit as usize] as char)?;
        }
        Ok(())
    }
}

impl FromStr for RunId {
    type Err = Fault;
    /// Case-blind; O reads as 0, I and L as 1.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || {
            Fault::new(
                "invalid_run_id",
                "run_id",
                format!("\"{text}\" is not a run id"),
                "a run id is s and 13 characters, for example s00NKDVDNA0003",
            )
        };
        let digits = text.strip_prefix(['s', 'S']).filter(|d| d.len() == 13).ok_or_else(fault)?;
        let mut value: u64 = 0;
        for (place, c) in digits.bytes().enumerate() {
            let c = match c.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                c => c,
            };
            let digit = ALPHABET.iter().position(|a| *a == c).ok_or_else(fault)? as u64;
            if place == 0 && digit > 15 {
                return Err(fault());
            }
            value = value << 5 | digit;
        }
        Ok(RunId(value))
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for RunId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::String).into()
    }
}
#[cfg(feature = "openapi")]
impl utoipa::ToSchema for RunId {}

/// Issues run ids: within a millisecond the sequence counts, past 1023 the millisecond is advanced, and a clock that goes back
/// keeps the last millisecond, so ids only grow.
#[derive(Debug)]
pub struct RunIds {
    cluster: u64,
    last_ms: u64,
    sequence: u64,
}

impl RunIds {
    /// `cluster` is 0 to 4095; `floor` is the highest id issued before, if known.
    pub fn new(cluster: u16, floor: Option<RunId>) -> Self {
        let (last_ms, sequence) = floor.map_or((0, 0), |RunId(id)| ((id >> 10) & ((1 << 42) - 1), id & 1023));
        RunIds { cluster: u64::from(cluster) & 4095, last_ms, sequence }
    }

    pub fn issue(&mut self, unix_ms: u64) -> RunId {
        if unix_ms > self.last_ms {
            self.last_ms = unix_ms;
            self.sequence = 0;
        } else {
            self.sequence += 1;
            if self.sequence > 1023 {
                self.last_ms += 1;
                self.sequence = 0;
            }
        }
        RunId(self.cluster << 52 | self.last_ms << 10 | self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_documented_text() {
        let mut ids = RunIds::new(5, Some(RunId(5 << 52 | 1_767_225_600_000 << 10 | 2)));
        assert_eq!(ids.issue(1_767_225_600_000), RunId(24_327_637_151_252_483));
        assert_eq!(RunId(24_327_637_151_252_483).to_string(), "s00NKDVDNA0003");
        assert_eq!(ids.issue(1_767_225_600_000).to_string(), "s00NKDVDNA0004");
        assert_eq!(ids.issue(1_767_225_600_001).to_string(), "s00NKDVDNA0100");
        assert_eq!(RunId(2 << 52).to_string(), "s0080000000000");
        assert_eq!(RunId(u64::MAX).to_string(), "sFZZZZZZZZZZZZ");
        assert_eq!("s0oNKDVDNA0003".parse::<RunId>().unwrap(), RunId(24_327_637_151_252_483));
        assert!("sZZZZZZZZZZZZZ".parse::<RunId>().is_err());
    }

    #[test]
    fn ids_only_grow_even_when_the_clock_goes_back() {
        let mut ids = RunIds::new(1, None);
        let mut last = ids.issue(1000);
        for ms in [1000, 999, 5, 1000, 1001, 1001] {
            let next = ids.issue(ms);
            assert!(next > last);
            last = next;
        }
        for _ in 0..3000 {
            let next = ids.issue(1001);
            assert!(next > last);
            last = next;
        }
    }
}
