//! `$dateFromParts` and `$dateToParts`.

use bson::{Bson, doc};

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::arithmetic::number;
use super::call::Prepared;
use super::civil::{DAY, days_of_date, first_iso_monday};
use super::date::{self, date};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::{call, named};
use super::{Expr, Scope, zone};
use crate::number::Number;
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::own("$dateFromParts", parse_from, from_parts),
    Function::named(&TO_PARTS, to_parts),
];

const FROM_PARTS: Signature = Signature {
    name: "$dateFromParts",
    not_object: (40_519, "{op} only supports an object as its argument"),
    unknown: (40_518, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::optional("year"),
        Field::optional("month"),
        Field::optional("day"),
        Field::optional("isoWeekYear"),
        Field::optional("isoWeek"),
        Field::optional("isoDayOfWeek"),
        Field::optional("hour"),
        Field::optional("minute"),
        Field::optional("second"),
        Field::optional("millisecond"),
        Field::optional("timezone"),
    ],
};

const TO_PARTS: Signature = Signature {
    name: "$dateToParts",
    not_object: (40_524, "{op} only supports an object as its argument"),
    unknown: (40_520, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::required("date", 40_522, "Missing 'date' parameter to {op}"),
        Field::optional("timezone"),
        Field::optional("iso8601"),
    ],
};

const ISO_YEAR: usize = 3;
const HOUR: usize = 6;
const ZONE: usize = 10;

fn parse_from(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let arguments = named(&FROM_PARTS, operand, scope)?;
    let given = |at: usize| matches!(arguments.get(at), Some(Some(_)));
    let (calendar, iso) = ((0..ISO_YEAR).any(given), (ISO_YEAR..HOUR).any(given));
    if calendar && iso {
        return fail(
            40_489,
            "$dateFromParts does not allow mixing natural dates with ISO dates",
        );
    }
    if !given(0) && !given(ISO_YEAR) {
        return fail(
            40_516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        );
    }
    Ok(call(function, arguments, Prepared::None, scope))
}

/// The value of one part, or `default` when it is not given; `None` when it is null.
fn read_part(args: &Args<'_>, at: usize, default: i64) -> Result<Option<i64>> {
    if !args.given(at) {
        return Ok(Some(default));
    }
    let value = args.value(at)?;
    if is_nullish(&value) {
        return Ok(None);
    }
    let name = FROM_PARTS.fields.get(at).map_or("", |field| field.name);
    let Some(whole) = number(&value).and_then(Number::to_i64_exact) else {
        return fail(
            40_515,
            format!(
                "'{name}' must evaluate to an integer, found {} with value {}",
                type_of(&value),
                value.as_deref().unwrap_or(&Bson::Null)
            ),
        );
    };
    let is_year = at == 0 || at == ISO_YEAR;
    if is_year && !(1..=9999).contains(&whole) {
        return fail(
            40_523,
            format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {whole}"),
        );
    }
    let wide = matches!(name, "second" | "millisecond");
    if !is_year && !wide && i16::try_from(whole).is_err() {
        return fail(
            31_034,
            format!(
                "'{name}' must evaluate to a value in the range [-32768, 32767]; value {whole} \
                     is not in range"
            ),
        );
    }
    Ok(Some(whole))
}

fn from_parts<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let iso = args.given(ISO_YEAR);
    let (first, defaults) = if iso {
        (ISO_YEAR, [0, 1, 1])
    } else {
        (0, [0, 1, 1])
    };
    let mut parts = [0; 7];
    let places = (first..first + 3).chain(HOUR..ZONE);
    let defaults = defaults.into_iter().chain([0; 4]);
    for ((part, at), default) in parts.iter_mut().zip(places).zip(defaults) {
        match read_part(args, at, default)? {
            Some(value) => *part = value,
            None => return null(),
        }
    }
    let Some(zone) = zone::argument(args, ZONE)? else {
        return null();
    };
    let [year, second, third, hour, minute, seconds, millis] = parts;
    let days = if iso {
        first_iso_monday(year) + (second - 1) * 7 + third - 1
    } else {
        let months = year * 12 + second - 1;
        days_of_date(months.div_euclid(12), months.rem_euclid(12) + 1, 1) + third - 1
    };
    let local = seconds
        .checked_mul(1000)
        .and_then(|sum| sum.checked_add(millis))
        .and_then(|sum| sum.checked_add(days * DAY + (hour * 60 + minute) * 60_000));
    match local {
        Some(local) => date(zone.instant(local)),
        None => Err(Error::new(
            crate::Code::OVERFLOW,
            "$dateFromParts: the date is out of range",
        )),
    }
}

fn to_parts<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let Some(instant) = date::argument(args, 0)? else {
        return null();
    };
    let Some(zone) = zone::argument(args, 1)? else {
        return null();
    };
    let iso = args.value(2)?;
    let iso = match iso.as_deref() {
        None if !args.given(2) => false,
        Some(Bson::Boolean(iso)) => *iso,
        _ if is_nullish(&iso) => return null(),
        _ => {
            return fail(
                40_521,
                format!("iso8601 must evaluate to a bool, found {}", type_of(&iso)),
            );
        }
    };
    let civil = zone.civil(instant);
    let int = |part: i64| Number::narrow(part).to_bson();
    let mut parts = if iso {
        let (year, week) = civil.iso_week();
        doc! {
            "isoWeekYear": int(year),
            "isoWeek": int(week),
            "isoDayOfWeek": int(civil.iso_day_of_week()),
        }
    } else {
        doc! { "year": int(civil.year), "month": int(civil.month), "day": int(civil.day) }
    };
    parts.extend(doc! {
        "hour": int(civil.hour),
        "minute": int(civil.minute),
        "second": int(civil.second),
        "millisecond": int(civil.millisecond),
    });
    computed(parts)
}
