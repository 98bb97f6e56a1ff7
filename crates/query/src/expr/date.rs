//! Dates: `$year` and the other parts, `$dateToString`, and the two parts of timestamps.

use bson::{Bson, DateTime};

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::call::Prepared;
use super::civil::Civil;
use super::date_format::{ISO_LOCAL, ISO_UTC, format};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::call;
use super::{Expr, Scope, zone};
use crate::number::Number;
use crate::value::type_name;
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::own("$year", parse_part, |args| part(args, |date| date.year)),
    Function::own("$month", parse_part, |args| part(args, |date| date.month)),
    Function::own("$dayOfMonth", parse_part, |args| {
        part(args, |date| date.day)
    }),
    Function::own("$dayOfYear", parse_part, |args| {
        part(args, Civil::day_of_year)
    }),
    Function::own("$dayOfWeek", parse_part, |args| {
        part(args, Civil::day_of_week)
    }),
    Function::own("$week", parse_part, |args| part(args, Civil::week)),
    Function::own("$hour", parse_part, |args| part(args, |date| date.hour)),
    Function::own("$minute", parse_part, |args| part(args, |date| date.minute)),
    Function::own("$second", parse_part, |args| part(args, |date| date.second)),
    Function::own("$millisecond", parse_part, |args| {
        part(args, |date| date.millisecond)
    }),
    Function::own("$isoWeek", parse_part, |args| {
        part(args, |date| date.iso_week().1)
    }),
    Function::own("$isoWeekYear", parse_part, iso_week_year),
    Function::own("$isoDayOfWeek", parse_part, |args| {
        part(args, Civil::iso_day_of_week)
    }),
    Function::named(&TO_STRING, to_string),
    Function::exactly("$tsSecond", 1, |args| timestamp(args, |time| time.time)),
    Function::exactly("$tsIncrement", 1, |args| {
        timestamp(args, |time| time.increment)
    }),
];

/// The instant of a date, timestamp or object id, in milliseconds since 1970 UTC.
pub(super) fn instant(value: &Bson) -> Result<i64> {
    match value {
        Bson::DateTime(date) => Ok(date.timestamp_millis()),
        Bson::Timestamp(time) => Ok(i64::from(time.time) * 1000),
        Bson::ObjectId(id) => Ok(id.timestamp().timestamp_millis()),
        other => fail(
            16_006,
            format!("can't convert from BSON type {} to Date", type_name(other)),
        ),
    }
}

/// The instant of an argument; `None` when it is null.
pub(super) fn argument(args: &Args<'_>, at: usize) -> Result<Option<i64>> {
    args.present(at)?.map(|value| instant(&value)).transpose()
}

/// A date as a value.
pub(super) fn date<'e>(millis: i64) -> Result<Value<'e>> {
    computed(DateTime::from_millis(millis))
}

/// Parses the operand: a date, or an object with a date and a time zone.
fn parse_part(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let name = function.name;
    let arguments = match operand {
        Bson::Document(spec) if spec.keys().next().is_some_and(|key| !key.starts_with('$')) => {
            if let Some(key) = spec
                .keys()
                .find(|key| !matches!(key.as_str(), "date" | "timezone"))
            {
                return fail(40_535, format!("unrecognized option to {name}: \"{key}\""));
            }
            let Some(date) = spec.get("date") else {
                return fail(
                    40_539,
                    format!("missing 'date' argument to {name}, provided: {name}: {spec}"),
                );
            };
            let zone = spec.get("timezone");
            vec![
                Some(Expr::parse(date, scope)?),
                zone.map(|zone| Expr::parse(zone, scope)).transpose()?,
            ]
        }
        Bson::Array(items) => match items.as_slice() {
            [date] => vec![Some(Expr::parse(date, scope)?), None],
            _ => {
                return fail(
                    40_536,
                    format!(
                        "{name} accepts exactly one argument if given an array, but was given {}",
                        items.len()
                    ),
                );
            }
        },
        date => vec![Some(Expr::parse(date, scope)?), None],
    };
    Ok(call(function, arguments, Prepared::None, scope))
}

fn local(args: &Args<'_>) -> Result<Option<Civil>> {
    let Some(instant) = argument(args, 0)? else {
        return Ok(None);
    };
    Ok(zone::argument(args, 1)?.map(|zone| zone.civil(instant)))
}

fn part<'e>(args: &Args<'e>, part: fn(&Civil) -> i64) -> Result<Value<'e>> {
    match local(args)? {
        Some(date) => computed(Number::narrow(part(&date)).to_bson()),
        None => null(),
    }
}

fn iso_week_year<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    match local(args)? {
        Some(date) => computed(date.iso_week().0),
        None => null(),
    }
}

/// Maximum number of text bytes per byte of a format: `%B` gives up to `September`.
const SPECIFIER: usize = 5;

const TO_STRING: Signature = Signature {
    name: "$dateToString",
    not_object: (18_629, "{op} only supports an object as its argument"),
    unknown: (18_534, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::required("date", 18_628, "Missing 'date' parameter to {op}"),
        Field::optional("timezone"),
        Field::optional("format"),
        Field::optional("onNull"),
    ],
};

fn to_string<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let pattern = args.value(2)?;
    if args.given(2)
        && !is_nullish(&pattern)
        && !matches!(pattern.as_deref(), Some(Bson::String(_)))
    {
        return Err(Error::location(
            18_533,
            format!(
                "$dateToString requires that 'format' be a string, found: {} with value {}",
                type_of(&pattern),
                pattern.as_deref().unwrap_or(&Bson::Null)
            ),
        ));
    }
    let zone = zone::argument(args, 1)?;
    let Some(instant) = argument(args, 0)? else {
        return if args.given(3) { args.value(3) } else { null() };
    };
    let Some(zone) = zone else {
        return null();
    };
    match pattern.as_deref() {
        Some(Bson::String(pattern)) => {
            let length = pattern.len().saturating_mul(SPECIFIER);
            meter::read(length)?;
            meter::charge("$dateToString", length)?;
            computed(format(pattern, instant, &zone)?)
        }
        None if !args.given(2) && zone.is_utc() => computed(format(ISO_UTC, instant, &zone)?),
        None if !args.given(2) => computed(format(ISO_LOCAL, instant, &zone)?),
        _ => null(),
    }
}

fn timestamp<'e>(args: &Args<'e>, half: fn(&bson::Timestamp) -> u32) -> Result<Value<'e>> {
    let value = args.value(0)?;
    match value.as_deref() {
        Some(Bson::Timestamp(time)) => computed(i64::from(half(time))),
        _ if is_nullish(&value) => null(),
        _ => fail(
            5_687_301,
            format!(
                " Argument to {} must be a timestamp, but is {}",
                args.name(),
                type_of(&value)
            ),
        ),
    }
}
