//! `$dateDiff`: the number of boundaries of a unit between two dates.

use super::args::{Args, computed, fail, null};
use super::civil::{Civil, DAY, iso_weekday};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::unit::{self, Unit};
use super::zone::Zone;
use super::{date, zone};
use crate::{Code, Result};

pub(super) const FUNCTIONS: &[Function] = &[Function::named(&DIFF, diff)];

const DIFF: Signature = Signature {
    name: "$dateDiff",
    not_object: (5_166_301, "{op} only supports an object as its argument"),
    unknown: (5_166_302, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::required(
            "startDate",
            5_166_303,
            "Missing 'startDate' parameter to {op}",
        ),
        Field::required("endDate", 5_166_304, "Missing 'endDate' parameter to {op}"),
        Field::required("unit", 5_166_305, "Missing 'unit' parameter to {op}"),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
};

fn diff<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut dates = [None, None];
    for (at, (date, name)) in dates.iter_mut().zip(["startDate", "endDate"]).enumerate() {
        let Ok(found) = date::argument(args, at) else {
            return fail(
                5_166_307,
                format!("$dateDiff requires '{name}' to be a date"),
            );
        };
        *date = found;
    }
    let unit = unit::argument(args, 2, (5_439_013, Code::FAILED_TO_PARSE))?;
    let zone = zone::argument(args, 3)?;
    let week = match unit {
        Some(Unit::Week) => unit::week_start(args, 4, 5_439_015)?,
        _ => Some(7),
    };
    match (dates, unit, zone, week) {
        ([Some(start), Some(end)], Some(unit), Some(zone), Some(week)) => {
            computed(between(start, end, unit, &zone, week))
        }
        _ => null(),
    }
}

/// Number of boundaries between two instants; negative if `end` is before `start`.
fn between(start: i64, end: i64, unit: Unit, zone: &Zone, week: i64) -> i64 {
    let (from, to) = (zone.civil(start), zone.civil(end));
    let months = |date: &Civil| date.year * 12 + date.month - 1;
    match unit {
        Unit::Year => to.year - from.year,
        Unit::Quarter => months(&to).div_euclid(3) - months(&from).div_euclid(3),
        Unit::Month => months(&to) - months(&from),
        Unit::Week => week_number(&to, week) - week_number(&from, week),
        Unit::Day => to.days() - from.days(),
        Unit::Millisecond => end.saturating_sub(start),
        _ => {
            let length = unit.millis().unwrap_or(DAY);
            // The boundaries are those of local hours, so each end is converted with its own
            // offset.
            zone.local(end).div_euclid(length) - zone.local(start).div_euclid(length)
        }
    }
}

/// The number of the week since a fixed week in the past; weeks begin on the day `start`.
fn week_number(date: &Civil, start: i64) -> i64 {
    let days = date.days();
    let into = (iso_weekday(days) - start).rem_euclid(7);
    (days - into).div_euclid(7)
}
