//! When a reservation that repeats comes again: at the same time of day in its zone, also where clocks are changed between.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::ReservationFlag;

/// Times told in advance, at the most, and how far ahead: jobs that run longer than that may run into one.
pub const MOST_WINDOWS: usize = 24;
const HORIZON_SECONDS: i64 = 14 * 86_400;

/// A time, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Window {
    /// The two have an instant in common.
    pub fn overlaps(&self, other: &Window) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The time after `window`, of the same length; nothing if it does not repeat.
///
/// Weekdays are those of the zone: of `weekday`, a Friday is followed by a Monday; of `weekend`, a Sunday by a Saturday.
pub fn next_window(window: Window, repeat: Option<ReservationFlag>, zone: Option<&str>) -> Option<Window> {
    let zone = zone.and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
    let start = window.start.to_zoned(zone);
    let days = match repeat? {
        ReservationFlag::Hourly => {
            let step = Span::new().hours(1);
            return Some(Window { start: window.start.checked_add(step).ok()?, end: window.end.checked_add(step).ok()? });
        }
        ReservationFlag::Daily => 1,
        ReservationFlag::Weekday => match start.weekday() {
            Weekday::Friday => 3,
            Weekday::Saturday => 2,
            _ => 1,
        },
        // Monday is 1.
        ReservationFlag::Weekend => match start.weekday() {
            Weekday::Saturday => 1,
            Weekday::Sunday => 6,
            day => i64::from(6 - day.to_monday_one_offset()),
        },
        ReservationFlag::Weekly => 7,
        _ => return None,
    };
    let length = window.end.duration_since(window.start);
    let start = start.checked_add(Span::new().days(days)).ok()?.timestamp();
    Some(Window { start, end: start.checked_add(length).ok()? })
}

/// `first` and what follows within two weeks, at least one more; [`MOST_WINDOWS`] at the most.
pub fn windows(first: Window, repeat: Option<ReservationFlag>, zone: Option<&str>) -> Vec<Window> {
    let mut all = vec![first];
    let mut last = first;
    while all.len() < MOST_WINDOWS
        && let Some(next) = next_window(last, repeat, zone)
        && (all.len() < 2 || next.start.duration_since(first.start).as_secs() <= HORIZON_SECONDS)
    {
        all.push(next);
        last = next;
    }
    all
}
