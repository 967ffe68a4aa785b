//! Amounts with units: bytes of memory and seconds of time, with the notations people write.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::Fault;

/// Bytes. Written as an integer; read from an integer or text such as `80GiB`, `64GB`, `512M` (Slurm's `M` is MiB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

impl Bytes {
    /// Reads `80GiB`, `80G` (both 80·2³⁰), `80GB` (80·10⁹) or a plain number of `default_unit` bytes.
    pub fn parse(text: &str, default_unit: u64) -> Option<Bytes> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" => default_unit,
            "b" => 1,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return None,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).filter(|n| *n <= i64::MAX as u64).map(Bytes);
        }
        let value = number.parse::<f64>().ok()? * factor as f64;
        (value.is_finite() && value >= 0.0 && value <= i64::MAX as f64).then_some(Bytes(value.round() as u64))
    }
}

impl std::str::FromStr for Bytes {
    type Err = Fault;
    /// A number without a unit is bytes.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || {
            Fault::new(
                "invalid_bytes",
                "bytes",
                format!("{text:?} is not an amount of memory"),
                "write a number and a unit; for example 64GiB",
            )
        };
        Bytes::parse(text, 1).ok_or_else(fault)
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that keeps the number whole, else one decimal: `80GiB`, `1.5TiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1u64 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
            if self.0 >= unit {
                return if self.0.is_multiple_of(unit) {
                    write!(f, "{}{name}", self.0 / unit)
                } else {
                    write!(f, "{:.1}{name}", self.0 as f64 / unit as f64)
                };
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or text such as \"80GiB\"")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Bytes, E> {
                if n <= i64::MAX as u64 { Ok(Bytes(n)) } else { Err(E::custom("more bytes than can be counted (at most 2^63 - 1)")) }
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Bytes, E> {
                u64::try_from(n).map(Bytes).map_err(|_| E::custom("bytes cannot be negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                Bytes::parse(text, 1)
                    .ok_or_else(|| E::custom(format!("{text:?} is not an amount of memory; for example \"80GiB\" or 85899345920")))
            }
        }
        d.deserialize_any(Visitor)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Bytes {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .description(Some("Bytes. Text such as \"80GiB\" is accepted on input too."))
            .into()
    }
}
#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Bytes {}

/// Whole seconds.
pub type Seconds = u64;

/// The longest time limit accepted: ten years. Longer ones are typing errors and would overflow calendars.
pub const MAX_SECONDS: Seconds = 10 * 366 * 86_400;

/// Reads Slurm's time notations: `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes`,
/// `days-hours:minutes:seconds`; also `90s`, `15m`, `2h`, `1d`. `UNLIMITED` and `INFINITE` give `None` inside `Ok`.
///
/// Seconds are kept as they are; Slurm rounds up to minutes. Source: sbatch manual, `--time`.
pub fn parse_time_limit(text: &str) -> Result<Option<Seconds>, Fault> {
    let fault = || {
        Fault::new(
            "invalid_time",
            "time",
            format!("\"{text}\" is not a time"),
            "write minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds; for example 90 or 1:30:00 or 2-12",
        )
    };
    let trimmed = text.trim();
    if matches!(trimmed.to_ascii_lowercase().as_str(), "unlimited" | "infinite" | "-1") {
        return Ok(None);
    }
    let number = |s: &str| -> Result<u64, Fault> {
        if s.is_empty() || s.len() > 10 || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fault());
        }
        s.parse().map_err(|_| fault())
    };
    if let Some((digits, unit)) = trimmed.len().checked_sub(1).filter(|_| trimmed.is_ascii()).map(|n| trimmed.split_at(n)) {
        let factor = match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3600),
            "d" => Some(86_400),
            _ => None,
        };
        if let Some(factor) = factor {
            return bounded(number(digits)? * factor).map(Some).ok_or_else(fault);
        }
    }
    let (days, rest) = match trimmed.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, trimmed),
    };
    let parts = rest.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
    let seconds = match (days, parts.as_slice()) {
        (Some(d), [h]) => d * 86_400 + h * 3600,
        (Some(d), [h, m]) => d * 86_400 + h * 3600 + m * 60,
        (Some(d), [h, m, s]) => d * 86_400 + h * 3600 + m * 60 + s,
        (None, [m]) => m * 60,
        (None, [m, s]) => m * 60 + s,
        (None, [h, m, s]) => h * 3600 + m * 60 + s,
        _ => return Err(fault()),
    };
    bounded(seconds).map(Some).ok_or_else(fault)
}

fn bounded(seconds: Seconds) -> Option<Seconds> {
    (seconds <= MAX_SECONDS).then_some(seconds)
}

/// Writes seconds as Slurm does: `[days-]hours:minutes:seconds`.
pub fn format_time_limit(seconds: Seconds) -> String {
    let (d, h, m, s) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    if d > 0 { format!("{d}-{h:02}:{m:02}:{s:02}") } else { format!("{h:02}:{m:02}:{s:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_times_have_their_documented_values() {
        for (text, seconds) in [
            ("90", 5400),
            ("1:30", 90),
            ("1:30:00", 5400),
            ("2-12", 216_000),
            ("1-0:30", 88_200),
            ("1-0:30:05", 88_205),
            ("15m", 900),
            ("0", 0),
        ] {
            assert_eq!(parse_time_limit(text).unwrap(), Some(seconds), "{text}");
        }
        assert_eq!(parse_time_limit("UNLIMITED").unwrap(), None);
        for bad in ["", "x", "1:2:3:4", "-", "1-", "1:", "99999999999", "9999999-0"] {
            assert!(parse_time_limit(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn memory_reads_slurms_and_the_clouds_units() {
        assert_eq!(Bytes::parse("4G", MIB), Some(Bytes(4 * GIB)));
        assert_eq!(Bytes::parse("80GiB", 1), Some(Bytes(80 * GIB)));
        assert_eq!(Bytes::parse("1GB", 1), Some(Bytes(1_000_000_000)));
        assert_eq!(Bytes::parse("512", MIB), Some(Bytes(512 * MIB)));
        assert_eq!(Bytes::parse("1.5T", 1), Some(Bytes(3 << 39)));
        for bad in ["", "G", "4X", "-1", "99999999999T", "4 G B"] {
            assert_eq!(Bytes::parse(bad, 1), None, "{bad:?}");
        }
        assert_eq!(Bytes(3 << 39).to_string(), "1.5TiB");
        assert_eq!(serde_json::from_str::<Bytes>("\"2KiB\"").unwrap(), Bytes(2048));
        assert!(serde_json::from_str::<Bytes>("-5").is_err());
    }
}
