//! Instants as `--begin` and `--deadline` write them, in the submitter's time zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::amount::MAX_SECONDS;

/// Reads `now+1hour`, `16:00`, `noon`, `tomorrow`, `013127`, `2026-01-31T08:00` and the like. A time of day that is past means
/// tomorrow's. Source: sbatch manual, `--begin`.
pub fn instant(text: &str, now: &Zoned) -> Option<Timestamp> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(offset) = lower.strip_prefix("now") {
        return after(offset.trim(), now.timestamp());
    }
    if let Ok(exact) = text.trim().parse::<Timestamp>() {
        return Some(exact);
    }
    let here = now.datetime();
    let zoned = |at: DateTime| Some(now.time_zone().to_zoned(at).ok()?.timestamp());
    if let Some(time) = time_of_day(&lower) {
        let today = here.date().to_datetime(time);
        let at = if today < here { today.checked_add(1.day()).ok()? } else { today };
        return zoned(at);
    }
    let dated = |day: &&str| date(day, here).is_some();
    let apart = [' ', 't'].into_iter().find_map(|separator| lower.split_once(separator).filter(|(day, _)| dated(day)));
    let (day, time) = apart.unwrap_or((&lower, ""));
    let time = if time.is_empty() { Time::midnight() } else { time_of_day(time.trim())? };
    zoned(date(day, here)?.to_datetime(time))
}

/// `+count[unit]`, seconds without a unit.
fn after(offset: &str, now: Timestamp) -> Option<Timestamp> {
    if offset.is_empty() {
        return Some(now);
    }
    let offset = offset.strip_prefix('+')?.trim();
    let digits = offset.len() - offset.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let count: u64 = offset[..digits].parse().ok()?;
    let unit = match offset[digits..].trim() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    let seconds = count.checked_mul(unit).filter(|n| *n <= MAX_SECONDS)?;
    now.checked_add(SignedDuration::from_secs(seconds as i64)).ok()
}

/// `HH:MM[:SS]` with or without AM or PM, or a name.
fn time_of_day(text: &str) -> Option<Time> {
    match text {
        "midnight" => return Some(Time::midnight()),
        "elevenses" => return Time::new(11, 0, 0, 0).ok(),
        "noon" => return Time::new(12, 0, 0, 0).ok(),
        "fika" => return Time::new(15, 0, 0, 0).ok(),
        "teatime" => return Time::new(16, 0, 0, 0).ok(),
        _ => {}
    }
    let (clock, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(clock), _) => (clock.trim_end(), Some(0)),
        (_, Some(clock)) => (clock.trim_end(), Some(12)),
        _ => (text, None),
    };
    let parts = clock.split(':').map(two_digits).collect::<Option<Vec<i8>>>()?;
    let (hour, minute, second) = match parts.as_slice() {
        [hour] if half.is_some() => (*hour, 0, 0),
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
    };
    Time::new(hour, minute, second, 0).ok()
}

fn two_digits(text: &str) -> Option<i8> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// `YYYY-MM-DD`, `MM/DD[/YY]`, `MMDDYY`, `today`, `tomorrow`.
fn date(text: &str, here: DateTime) -> Option<Date> {
    match text {
        "today" => return Some(here.date()),
        "tomorrow" => return here.date().tomorrow().ok(),
        _ => {}
    }
    if text.len() == 6 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Date::new(2000 + i16::from(two_digits(&text[4..])?), two_digits(&text[..2])?, two_digits(&text[2..4])?).ok();
    }
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    match parts.as_slice() {
        [year, month, day] if text.contains('-') && year.len() == 4 => {
            Date::new(year.parse().ok()?, two_digits(month)?, two_digits(day)?).ok()
        }
        [month, day] if text.contains('/') => Date::new(here.year(), two_digits(month)?, two_digits(day)?).ok(),
        [month, day, year] if text.contains('/') => {
            Date::new(2000 + i16::from(two_digits(year)?), two_digits(month)?, two_digits(day)?).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_sbatch_reads_them() {
        let now = "2026-01-31T12:30:00Z".parse::<Timestamp>().unwrap().to_zoned(jiff::tz::TimeZone::UTC);
        for (text, expected) in [
            ("now", "2026-01-31T12:30:00Z"),
            ("now+1hour", "2026-01-31T13:30:00Z"),
            ("now+90", "2026-01-31T12:31:30Z"),
            ("now+2days", "2026-02-02T12:30:00Z"),
            ("16:00", "2026-01-31T16:00:00Z"),
            ("08:00", "2026-02-01T08:00:00Z"),
            ("4pm", "2026-01-31T16:00:00Z"),
            ("12:15am", "2026-02-01T00:15:00Z"),
            ("noon", "2026-02-01T12:00:00Z"),
            ("midnight", "2026-02-01T00:00:00Z"),
            ("teatime", "2026-01-31T16:00:00Z"),
            ("today", "2026-01-31T00:00:00Z"),
            ("tomorrow", "2026-02-01T00:00:00Z"),
            ("2026-03-01", "2026-03-01T00:00:00Z"),
            ("2026-03-01T08:05", "2026-03-01T08:05:00Z"),
            ("2026-03-01T08:05:09", "2026-03-01T08:05:09Z"),
            ("2026-03-01T08:05:00+02:00", "2026-03-01T06:05:00Z"),
            ("03/01/27", "2027-03-01T00:00:00Z"),
            ("03/01 10:00", "2026-03-01T10:00:00Z"),
            ("now + 1 hour", "2026-01-31T13:30:00Z"),
            ("now +2 days", "2026-02-02T12:30:00Z"),
            ("030127", "2027-03-01T00:00:00Z"),
            ("030127 16:30", "2027-03-01T16:30:00Z"),
            ("elevenses", "2026-02-01T11:00:00Z"),
            ("tomorrow 10:00", "2026-02-01T10:00:00Z"),
            ("today noon", "2026-01-31T12:00:00Z"),
        ] {
            assert_eq!(instant(text, &now).map(|t| t.to_string()).as_deref(), Some(expected), "{text}");
        }
        for bad in [
            "",
            "soon",
            "now-1hour",
            "now+x",
            "now+1fortnight",
            "25:00",
            "13pm",
            "2026-02-30",
            "2026-1",
            "now+99999999999999999999",
            "t",
            "é",
        ] {
            assert_eq!(instant(bad, &now), None, "{bad:?}");
        }
    }

    #[test]
    fn times_of_day_are_the_submitters() {
        let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = "2026-03-28T22:30:00Z".parse::<Timestamp>().unwrap().to_zoned(zone);
        for (text, expected) in [
            ("23:45", "2026-03-28T22:45:00Z"),
            ("08:00", "2026-03-29T06:00:00Z"),
            ("tomorrow", "2026-03-28T23:00:00Z"),
            ("2026-07-01T12:00", "2026-07-01T10:00:00Z"),
            ("2026-07-01T12:00:00Z", "2026-07-01T12:00:00Z"),
            ("now+1day", "2026-03-29T22:30:00Z"),
        ] {
            assert_eq!(instant(text, &now).map(|t| t.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(now\\+)?[0-9a-zA-Z:/T +é-]{0,24}", seconds in -9_999_999_999i64..99_999_999_999) {
            instant(&text, &Timestamp::from_second(seconds).unwrap().to_zoned(jiff::tz::TimeZone::UTC));
        }
    }
}
