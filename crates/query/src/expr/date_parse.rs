//! `$dateFromString`.

use bson::Bson;

use super::args::{Args, fail, is_nullish, null, type_of};
use super::date::date;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::{date_text, zone};
use crate::{Code, Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[Function::named(&FROM_STRING, from_string)];

const FROM_STRING: Signature = Signature {
    name: "$dateFromString",
    not_object: (
        40_540,
        "{op} only supports an object as an argument, found: {type}",
    ),
    unknown: (40_541, "Unrecognized argument to {op}: {field}"),
    fields: &[
        Field::required(
            "dateString",
            40_542,
            "Missing 'dateString' parameter to {op}",
        ),
        Field::optional("timezone"),
        Field::optional("format"),
        Field::optional("onError"),
        Field::optional("onNull"),
    ],
};

fn from_string<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let text = args.value(0)?;
    let format = args.value(2)?;
    if args.given(2) && !is_nullish(&format) && !matches!(format.as_deref(), Some(Bson::String(_)))
    {
        return fail(
            40_684,
            format!(
                "$dateFromString requires that 'format' be a string, found: {} with value {}",
                type_of(&format),
                format.as_deref().unwrap_or(&Bson::Null)
            ),
        );
    }
    if let Some(Bson::String(format)) = format.as_deref() {
        date_text::check_format(format)?;
    }
    let zone = zone::argument(args, 1)?;
    if is_nullish(&text) {
        return if args.given(4) { args.value(4) } else { null() };
    }
    let Some(Bson::String(text)) = text.as_deref() else {
        let error = Error::new(
            Code::CONVERSION_FAILURE,
            format!(
                "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
                type_of(&text),
                text.as_deref().unwrap_or(&Bson::Null)
            ),
        );
        return on_error(args, error);
    };
    let Some(zone) = zone else {
        return null();
    };
    if args.given(2) && is_nullish(&format) {
        return null();
    }
    // An error message quotes the text.
    meter::read(text.len())?;
    meter::charge("$dateFromString", text.len())?;
    let format = format.as_deref().and_then(Bson::as_str);
    let given = args.given(1).then_some(&zone);
    match date_text::parse(text, format, given) {
        Ok(instant) => date(instant),
        Err(error) if error.code == Code::CONVERSION_FAILURE => on_error(args, error),
        Err(error) => Err(error),
    }
}

fn on_error<'e>(args: &Args<'e>, error: Error) -> Result<Value<'e>> {
    if args.given(3) {
        args.value(3)
    } else {
        Err(error)
    }
}
