//! Units of time, and adding units to dates.
//!
//! Months, quarters and years are added in the calendar, weeks and days as local days: both keep
//! the local time of day when clocks change. Smaller units have a fixed length.

use bson::Bson;

use super::args::{Args, fail, is_nullish, type_of};
use super::civil::{Civil, DAY, days_in_month, days_of_date};
use super::zone::Zone;
use crate::{Code, Error, Result};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    /// The unit with this name.
    pub(crate) fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    /// Length of the unit in months; `None` for units that are not multiples of a month.
    pub(crate) fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Length of the unit in milliseconds; `None` for months, quarters and years, whose length
    /// varies.
    pub(crate) fn millis(self) -> Option<i64> {
        match self {
            Unit::Week => Some(7 * DAY),
            Unit::Day => Some(DAY),
            Unit::Hour => Some(3_600_000),
            Unit::Minute => Some(60_000),
            Unit::Second => Some(1000),
            Unit::Millisecond => Some(1),
            _ => None,
        }
    }
}

/// The unit that an argument names; `None` when it is null. `codes` are the error codes for a value
/// that is not a string, and for a string that is not a unit.
pub(super) fn argument(args: &Args<'_>, at: usize, codes: (i32, Code)) -> Result<Option<Unit>> {
    let value = args.value(at)?;
    if is_nullish(&value) {
        return Ok(None);
    }
    let Some(Bson::String(name)) = value.as_deref() else {
        return fail(
            codes.0,
            format!(
                "{} requires 'unit' to be a string, but got {}",
                args.name(),
                type_of(&value)
            ),
        );
    };
    match Unit::parse(name) {
        Some(unit) => Ok(Some(unit)),
        None => Err(Error::new(
            codes.1,
            format!(
                "{} parameter 'unit' value cannot be recognized as a time unit: {name}",
                args.name()
            ),
        )),
    }
}

/// The instant `amount` units after `instant`.
pub(crate) fn add(instant: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    // Out of the range of dates for every unit; also keeps the arithmetic below from overflowing.
    if amount.unsigned_abs() >= 1 << 62 {
        return None;
    }
    if let Some(months) = unit.months() {
        let amount = amount.checked_mul(months)?;
        if amount.abs() > 12 * 600_000_000 {
            return None;
        }
        let civil = zone.civil(instant);
        return Some(zone.instant(plus_months(&civil, amount)?));
    }
    let length = amount.checked_mul(unit.millis()?)?;
    if matches!(unit, Unit::Week | Unit::Day) && !zone.is_utc() {
        return Some(zone.instant(zone.local(instant).checked_add(length)?));
    }
    instant.checked_add(length)
}

/// Local milliseconds of the date `amount` months later, on the same day of the month or its last
/// day.
fn plus_months(civil: &Civil, amount: i64) -> Option<i64> {
    let months = civil.year * 12 + civil.month - 1 + amount;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let day = civil.day.min(days_in_month(year, month));
    days_of_date(year, month, day)
        .checked_mul(DAY)?
        .checked_add(civil.time())
}

/// The day of the week `name`; 1 is Monday, 7 is Sunday.
pub(super) fn parse_weekday(name: &str) -> Option<i64> {
    const DAYS: [(&str, &str); 7] = [
        ("monday", "mon"),
        ("tuesday", "tue"),
        ("wednesday", "wed"),
        ("thursday", "thu"),
        ("friday", "fri"),
        ("saturday", "sat"),
        ("sunday", "sun"),
    ];
    let name = name.to_ascii_lowercase();
    let at = DAYS
        .iter()
        .position(|(long, short)| name == *long || name == *short)?;
    i64::try_from(at + 1).ok()
}

/// The value of the argument `startOfWeek`: Sunday when it is not given, `None` when it is null.
pub(super) fn week_start(args: &Args<'_>, at: usize, code: i32) -> Result<Option<i64>> {
    if !args.given(at) {
        return Ok(Some(7));
    }
    let value = args.value(at)?;
    if is_nullish(&value) {
        return Ok(None);
    }
    let Some(Bson::String(name)) = value.as_deref() else {
        return fail(
            code,
            format!(
                "{} requires 'startOfWeek' to be a string, but got {}",
                args.name(),
                type_of(&value)
            ),
        );
    };
    match parse_weekday(name) {
        Some(day) => Ok(Some(day)),
        None => Err(Error::new(
            Code::FAILED_TO_PARSE,
            format!(
                "{} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}",
                args.name()
            ),
        )),
    }
}
