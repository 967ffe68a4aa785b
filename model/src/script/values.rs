//! The values of options: counts, node ranges, memory, GPUs, dependencies, signals, exports.

use crate::amount::{MAX_SECONDS, MIB, parse_time_limit};
use crate::dependency::Condition;
use crate::gres::SharedGpu;
use crate::job::SignalSpec;
use crate::resources::Gpus;
use crate::{Bytes, Seconds};

use super::ExportMode;

/// Why a value is wrong, in the words that follow it: `is not a count`.
pub(super) type Flaw = String;

pub(super) fn count(text: &str) -> Result<u32, Flaw> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| is_number && *n > 0).ok_or_else(|| "is not a count of 1 or more".to_owned())
}

/// `4`, `2-8`, `1k`: least and most.
pub(super) fn nodes(text: &str) -> Result<(u32, Option<u32>), Flaw> {
    let number = |text: &str| {
        let (digits, factor) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1024),
            None => (text, 1),
        };
        count(digits).ok()?.checked_mul(factor)
    };
    let flaw = || "is not a count or least-most".to_owned();
    if text.contains([',', ':']) {
        return Err("is a list of node counts, which is not supported".to_owned());
    }
    match text.split_once('-') {
        None => Ok((number(text).ok_or_else(flaw)?, None)),
        Some((least, most)) => {
            let (least, most) = (number(least).ok_or_else(flaw)?, number(most).ok_or_else(flaw)?);
            if least > most {
                return Err("goes backwards".to_owned());
            }
            Ok((least, Some(most).filter(|most| *most > least)))
        }
    }
}

/// Memory, in MiB without a unit.
pub(super) fn memory(text: &str) -> Result<Bytes, Flaw> {
    Bytes::parse(text, MIB).ok_or_else(|| "is not an amount of memory".to_owned())
}

pub(super) fn gpus(text: &str) -> Result<Gpus, Flaw> {
    if text.contains(',') {
        return Err("names several types; a job has GPUs of one type".to_owned());
    }
    text.parse().map_err(|_| "is not a count or type:count".to_owned())
}

/// What a `--gres` list asks for on each node.
#[derive(Default)]
pub(super) struct Gres {
    pub gpus: Option<Gpus>,
    pub share: Option<SharedGpu>,
    /// Entries that are neither.
    pub others: Vec<String>,
}

pub(super) fn gres(text: &str) -> Result<Gres, Flaw> {
    let Gres { mut gpus, mut share, mut others } = Gres::default();
    for entry in text.split(',') {
        let entry = entry.strip_prefix("gres/").or_else(|| entry.strip_prefix("gres:")).unwrap_or(entry);
        // `gpu:2(S:0-1)`: sockets are chosen by the scheduler.
        let entry = entry.split('(').next().unwrap_or(entry);
        let (name, rest) = entry.split_once([':', '=']).map_or((entry, None), |(name, rest)| (name, Some(rest)));
        match (name, rest) {
            ("gpu", rest) => {
                let more = gres_gpus(rest)?;
                gpus = Some(match gpus {
                    None => more,
                    Some(held) if held.kind == more.kind => Gpus { count: held.count.saturating_add(more.count), ..held },
                    Some(_) => return Err("names several types; a job has GPUs of one type".to_owned()),
                });
            }
            ("shard" | "mps", _) if share.is_some() => {
                return Err("names several shares: a job has one share of one GPU on each node".to_owned());
            }
            ("shard" | "mps", _) => share = Some(entry.parse().map_err(|_| "is not shard:count or mps:count".to_owned())?),
            ("none", None) => {}
            ("", _) => return Err("is not a list of resources".to_owned()),
            _ => others.push(entry.to_owned()),
        }
    }
    Ok(Gres { gpus, share, others })
}

/// What follows `gpu:`: nothing (one), a count, a type (one of it), or type:count.
fn gres_gpus(text: Option<&str>) -> Result<Gpus, Flaw> {
    let Some(text) = text else { return Ok(Gpus { kind: None, count: 1 }) };
    let is_type = !text.contains(':') && text.starts_with(|c: char| c.is_ascii_alphabetic());
    let long = if is_type { format!("{text}:1") } else { text.to_owned() };
    long.parse().map_err(|_| "is not gpu, gpu:count or gpu:type:count".to_owned())
}

/// A time limit; `UNLIMITED` and 0 are the longest there is.
pub(super) fn time_limit(text: &str) -> Result<Seconds, Flaw> {
    match parse_time_limit(text) {
        Ok(Some(0) | None) => Ok(MAX_SECONDS),
        Ok(Some(seconds)) => Ok(seconds),
        Err(_) => Err("is not a time: minutes, hours:minutes:seconds or days-hours".to_owned()),
    }
}

/// `afterok:20:21,afterany:23` (all) or with `?` (any): the conditions, and whether one suffices.
pub(super) fn dependencies(text: &str) -> Result<(Vec<String>, bool), Flaw> {
    // Nothing to wait for, as scripts write it that have no predecessor: -d "$AFTER".
    if text.trim().is_empty() {
        return Ok((Vec::new(), false));
    }
    let is_any = text.contains('?');
    if is_any && text.contains(',') {
        return Err("mixes , (all) and ? (any)".to_owned());
    }
    let conditions: Vec<String> = text.split([',', '?']).map(str::to_owned).collect();
    for condition in &conditions {
        condition.parse::<Condition>().map_err(|fault| format!("is not a list of dependencies: {}", fault.detail))?;
    }
    Ok((conditions, is_any))
}

/// `[B:]signal[@seconds]`.
pub(super) fn signal(text: &str) -> Result<SignalSpec, Flaw> {
    let (flags, rest) = text.split_once(':').unwrap_or(("", text));
    if !flags.chars().all(|c| c == 'B' || c == 'R') {
        return Err("is not [B:]signal[@seconds]".to_owned());
    }
    let (signal, lead) = rest.split_once('@').unwrap_or((rest, "60"));
    let is_number = !lead.is_empty() && lead.bytes().all(|b| b.is_ascii_digit());
    let seconds_before = lead.parse().ok().filter(|_| is_number).ok_or_else(|| "is not [B:]signal[@seconds]".to_owned())?;
    if crate::job::signal_number(signal).is_none() {
        return Err("names no signal".to_owned());
    }
    Ok(SignalSpec { signal: signal.to_owned(), seconds_before, batch_only: flags.contains('B') })
}

/// `ALL`, `NONE`, or names and `NAME=value`, separated by commas; a value with commas is quoted.
pub(super) fn export(text: &str) -> Result<(ExportMode, Vec<(String, String)>), Flaw> {
    match text.to_ascii_uppercase().as_str() {
        "ALL" => return Ok((ExportMode::All, Vec::new())),
        "NONE" | "NIL" => return Ok((ExportMode::None, Vec::new())),
        _ => {}
    }
    let (mut names, mut values, mut is_all) = (Vec::new(), Vec::new(), false);
    for item in split_outside_quotes(text) {
        match item.split_once('=') {
            Some(("", _)) => return Err("has a value without a name".to_owned()),
            Some((name, value)) => values.push((name.to_owned(), value.to_owned())),
            None if item == "ALL" => is_all = true,
            None if item == "NONE" || item == "NIL" => return Err("joins NONE with names".to_owned()),
            None if item.is_empty() => return Err("has an empty name".to_owned()),
            None => names.push(item),
        }
    }
    Ok((if is_all { ExportMode::All } else { ExportMode::Names(names) }, values))
}

fn split_outside_quotes(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (',', None) => items.push(String::new()),
            (c, _) => items.last_mut().expect("begins with one item").push(c),
        }
    }
    items
}

/// Sockets of a node, cores of each, threads of each core.
type Built = (Option<u32>, Option<u32>, Option<u32>);

/// `--extra-node-info=2:32:1`; `*` where one is all the same.
pub(super) fn sockets(text: &str) -> Result<Built, Flaw> {
    let part = |text: &str| if text == "*" { Ok(None) } else { count(text).map(Some) };
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [sockets] => Ok((part(sockets)?, None, None)),
        [sockets, cores] => Ok((part(sockets)?, part(cores)?, None)),
        [sockets, cores, threads] => Ok((part(sockets)?, part(cores)?, part(threads)?)),
        _ => Err("is not sockets:cores:threads".to_owned()),
    }
}

/// `--hint`: threads of each core that are used at most. All of them is what is done anyway.
pub(super) fn hint(text: &str) -> Result<Option<u32>, Flaw> {
    match text {
        "multithread" => Ok(None),
        "nomultithread" | "compute_bound" => Ok(Some(1)),
        "memory_bound" => Err("is not supported, as it means one core of each socket: say --hint=nomultithread".to_owned()),
        _ => Err("is no hint".to_owned()),
    }
}
