//! `$dateTrunc`: the start of the time interval (bin) that contains a date.
//!
//! Bins are counted from the start of the year 2000 in the time zone, bins of weeks from the first
//! start of a week in 2000.

use super::args::{Args, fail, is_nullish, null, type_of};
use super::arithmetic::number;
use super::civil::{DAY, days_of_date, iso_weekday};
use super::date::{self, date};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::unit::{self, Unit};
use super::zone::{self, Zone};
use crate::number::Number;
use crate::{Code, Result};

pub(super) const FUNCTIONS: &[Function] = &[Function::named(&TRUNC, trunc)];

const TRUNC: Signature = Signature {
    name: "$dateTrunc",
    not_object: (5_439_007, "{op} only supports an object as its argument"),
    unknown: (5_439_008, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::required("date", 5_439_009, "Missing 'date' parameter to {op}"),
        Field::required("unit", 5_439_010, "Missing 'unit' parameter to {op}"),
        Field::optional("binSize"),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
};

fn trunc<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    let Ok(instant) = date::argument(args, 0) else {
        return fail(
            5_439_012,
            format!(
                "$dateTrunc requires 'date' to be a date, but got {}",
                type_of(&value)
            ),
        );
    };
    let unit = unit::argument(args, 1, (5_439_013, Code::FAILED_TO_PARSE))?;
    let bins = bin_size(args)?;
    let zone = zone::argument(args, 3)?;
    let week = match unit {
        Some(Unit::Week) => unit::week_start(args, 4, 5_439_015)?,
        _ => Some(7),
    };
    let (Some(instant), Some(unit), Some(bins), Some(zone), Some(week)) =
        (instant, unit, bins, zone, week)
    else {
        return null();
    };
    match truncated(instant, unit, bins, &zone, week) {
        Some(start) => date(start),
        None => fail(
            5_439_018,
            "$dateTrunc: the bin is out of the range of dates",
        ),
    }
}

/// The size of a bin in units; `None` when it is null.
fn bin_size(args: &Args<'_>) -> Result<Option<i64>> {
    if !args.given(2) {
        return Ok(Some(1));
    }
    let value = args.value(2)?;
    if is_nullish(&value) {
        return Ok(None);
    }
    match number(&value).and_then(Number::to_i64_exact) {
        Some(size) if size > 0 => Ok(Some(size)),
        Some(size) => fail(
            5_439_018,
            format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}"),
        ),
        None => fail(
            5_439_017,
            format!(
                "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value of type {}",
                type_of(&value)
            ),
        ),
    }
}

fn truncated(instant: i64, unit: Unit, bins: i64, zone: &Zone, week: i64) -> Option<i64> {
    if let Some(months) = unit.months() {
        let bin = bins.checked_mul(months)?;
        let civil = zone.civil(instant);
        let since = (civil.year - 2000) * 12 + civil.month - 1;
        let start = since.div_euclid(bin).checked_mul(bin)?;
        let (year, month) = (2000 + start.div_euclid(12), start.rem_euclid(12) + 1);
        // No BSON date is in these years, and the number of days may overflow.
        if !(-300_000_000..=300_000_000).contains(&year) {
            return None;
        }
        return Some(zone.instant(days_of_date(year, month, 1).checked_mul(DAY)?));
    }
    let bin = bins.checked_mul(unit.millis()?)?;
    let mut origin = days_of_date(2000, 1, 1);
    if unit == Unit::Week {
        // The first day of 2000 on which a week begins.
        origin += (week - iso_weekday(origin)).rem_euclid(7);
    }
    let origin = origin * DAY;
    if matches!(unit, Unit::Week | Unit::Day) {
        let since = zone.local(instant).checked_sub(origin)?;
        let start = since
            .div_euclid(bin)
            .checked_mul(bin)?
            .checked_add(origin)?;
        return Some(zone.instant(start));
    }
    // Bins of fixed length are counted in elapsed time from the start of 2000 in local time.
    let origin = zone.instant(origin);
    let since = instant.checked_sub(origin)?;
    since.div_euclid(bin).checked_mul(bin)?.checked_add(origin)
}
