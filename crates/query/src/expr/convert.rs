//! `$convert`, `$toInt` and the other conversions by name, `$type`.
//!
//! The table in the manual of `$convert` lists the supported conversions; [`convert`] implements
//! it.

use std::borrow::Cow;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime};

use super::args::{Args, computed, is_nullish, null, type_of};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::call;
use super::target::{ByteFormat, Target, Type};
use super::{Expr, Scope, bytes, date_format, date_text};
use crate::number::{DecimalError, Number, parse_decimal, parse_double};
use crate::value::{truthy, type_name};
use crate::{Code, Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::named(&CONVERT, convert_by_name),
    Function::exactly("$toBool", 1, |args| plain(args, Type::Bool)),
    Function::exactly("$toDate", 1, |args| plain(args, Type::Date)),
    Function::exactly("$toDecimal", 1, |args| plain(args, Type::Decimal)),
    Function::exactly("$toDouble", 1, |args| plain(args, Type::Double)),
    Function::exactly("$toInt", 1, |args| plain(args, Type::Int)),
    Function::exactly("$toLong", 1, |args| plain(args, Type::Long)),
    Function::exactly("$toObjectId", 1, |args| plain(args, Type::ObjectId)),
    Function::exactly("$toString", 1, |args| plain(args, Type::String)),
    Function::exactly("$toUUID", 1, to_uuid),
    Function::own("$type", parse_type, type_of_value),
];

const CONVERT: Signature = Signature {
    name: "$convert",
    not_object: (
        9,
        "{op} expects an object of named arguments but found: {type}",
    ),
    unknown: (9, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("input", 9, "Missing 'input' parameter to {op}"),
        Field::required("to", 9, "Missing 'to' parameter to {op}"),
        Field::optional("onError"),
        Field::optional("onNull"),
        Field::optional("format"),
        Field::optional("byteOrder"),
    ],
};

fn parse_type(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let arguments = super::parse::positional(function, (1, 1), operand, scope)?;
    Ok(call(function, arguments, Prepared::None, scope))
}

fn type_of_value<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(type_of(&args.value(0)?))
}

fn convert_by_name<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (input, to) = (args.value(0)?, args.value(1)?);
    let target = Target::read(&to)?;
    let format = ByteFormat::read(&args.value(4)?)?;
    if is_nullish(&input) {
        return if args.given(3) { args.value(3) } else { null() };
    }
    let (Some(target), Some(input)) = (target, input) else {
        return null();
    };
    match convert(input, target, format) {
        Ok(value) => Ok(Some(value)),
        Err(error) if args.given(2) && error.code == Code::CONVERSION_FAILURE => args.value(2),
        Err(error) => Err(error),
    }
}

fn plain<'e>(args: &Args<'e>, kind: Type) -> Result<Value<'e>> {
    let Some(input) = args.present(0)? else {
        return null();
    };
    convert(input, Target::plain(kind), None).map(Some)
}

fn to_uuid<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let Some(input) = args.present(0)? else {
        return null();
    };
    let target = Target {
        kind: Type::BinData,
        subtype: BinarySubtype::Uuid,
    };
    convert(input, target, Some(ByteFormat::Uuid)).map(Some)
}

/// A failed conversion, worded as MongoDB's `$convert`.
pub(super) fn failure(what: impl std::fmt::Display, detail: &str) -> Error {
    Error::new(
        Code::CONVERSION_FAILURE,
        format!("{what} in $convert with no onError value{detail}"),
    )
}

fn convert<'e>(
    input: Cow<'e, Bson>,
    target: Target,
    format: Option<ByteFormat>,
) -> Result<Cow<'e, Bson>> {
    let kind = target.kind;
    let same = matches!(
        (&*input, kind),
        (Bson::Double(_), Type::Double)
            | (Bson::String(_), Type::String)
            | (Bson::ObjectId(_), Type::ObjectId)
            | (Bson::Boolean(_), Type::Bool)
            | (Bson::DateTime(_), Type::Date)
            | (Bson::Int32(_), Type::Int)
            | (Bson::Int64(_), Type::Long)
            | (Bson::Decimal128(_), Type::Decimal)
    );
    if same {
        return Ok(input);
    }
    // The longest result is hexadecimal text, two bytes per byte; an error message quotes the
    // input.
    let length = match &*input {
        Bson::String(text) => text.len(),
        Bson::Binary(binary) => binary.bytes.len(),
        _ => 0,
    };
    meter::read(length)?;
    meter::charge("$convert", length.saturating_mul(2))?;
    let converted = match kind {
        Type::Bool => Some(Bson::Boolean(is_true(&input))),
        Type::Double | Type::Int | Type::Long | Type::Decimal => to_number(&input, kind)?,
        Type::String => to_string(&input, format)?,
        Type::Date => to_date(&input)?,
        Type::ObjectId => to_object_id(&input)?,
        Type::BinData => to_binary(&input, target.subtype, format)?,
        Type::Other(_) => None,
    };
    converted.map(Cow::Owned).ok_or_else(|| {
        let from = type_name(&input);
        failure(
            format_args!("Unsupported conversion from {from} to {}", kind.name()),
            "",
        )
    })
}

/// Whether `input` converts to true: all values but false and zeros.
fn is_true(input: &Bson) -> bool {
    match input {
        Bson::Boolean(truth) => *truth,
        other => Number::from_bson(other).is_none() || truthy(other),
    }
}

fn to_number(input: &Bson, kind: Type) -> Result<Option<Bson>> {
    let number = match input {
        Bson::Boolean(truth) => Number::Int32(i32::from(*truth)),
        Bson::DateTime(date) if kind != Type::Int => Number::Int64(date.timestamp_millis()),
        Bson::String(text) => return parse_number(text, kind).map(Some),
        other => match Number::from_bson(other) {
            Some(number) => number,
            None => return Ok(None),
        },
    };
    let overflow = || {
        failure(
            "Conversion would overflow target type",
            &format!(": {number}"),
        )
    };
    let whole = || {
        if number.is_nan() {
            Err(failure("Attempt to convert NaN value to integer type", ""))
        } else if number.is_infinite() {
            Err(failure(
                "Attempt to convert infinity value to integer type",
                "",
            ))
        } else {
            number.to_i64_truncated().ok_or_else(overflow)
        }
    };
    Ok(Some(match kind {
        Type::Int => Bson::Int32(i32::try_from(whole()?).map_err(|_| overflow())?),
        Type::Long => Bson::Int64(whole()?),
        Type::Decimal => Bson::Decimal128(number.to_decimal()),
        _ => {
            let double = number.to_f64();
            if double.is_infinite() && !number.is_infinite() {
                return Err(overflow());
            }
            Bson::Double(double)
        }
    }))
}

fn parse_number(text: &str, kind: Type) -> Result<Bson> {
    let fail = |why: &str| {
        failure(
            format_args!("Failed to parse number '{text}'"),
            &format!(": {why}"),
        )
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return Err(failure("Illegal hexadecimal input", &format!(": {text}")));
    }
    if text.starts_with(char::is_whitespace) {
        return Err(fail("Leading whitespace"));
    }
    if digits.is_empty() {
        return Err(fail("No digits"));
    }
    let integer = || {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fail("Did not consume whole string."));
        }
        text.parse::<i64>().map_err(|_| fail("Overflow"))
    };
    match kind {
        Type::Int => {
            let number = i32::try_from(integer()?);
            Ok(Bson::Int32(number.map_err(|_| fail("Overflow"))?))
        }
        Type::Long => Ok(Bson::Int64(integer()?)),
        Type::Decimal => match parse_decimal(text) {
            Ok(number) => Ok(Bson::Decimal128(number)),
            Err(error) => Err(fail(match error {
                DecimalError::Syntax => "Failed to parse string to decimal",
                DecimalError::Overflow => "Conversion from string to decimal would overflow",
                DecimalError::Underflow => "Conversion from string to decimal would underflow",
            })),
        },
        _ => match parse_double(text) {
            Some(number)
                if number.is_infinite() && digits.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Err(fail("Out of range"))
            }
            Some(number) => Ok(Bson::Double(number)),
            None => Err(fail("Did not consume whole string.")),
        },
    }
}

fn to_string(input: &Bson, format: Option<ByteFormat>) -> Result<Option<Bson>> {
    Ok(Some(Bson::String(match input {
        Bson::Boolean(truth) => truth.to_string(),
        Bson::ObjectId(id) => id.to_hex(),
        Bson::DateTime(date) => date_format::iso(date.timestamp_millis()),
        Bson::Binary(binary) => match format {
            Some(format) => bytes::encode(binary, format)?,
            None => return Ok(None),
        },
        other => match Number::from_bson(other) {
            Some(number) => number.to_string(),
            None => return Ok(None),
        },
    })))
}

fn to_date(input: &Bson) -> Result<Option<Bson>> {
    let millis = match input {
        Bson::String(text) => date_text::parse(text, None, None)?,
        Bson::ObjectId(id) => id.timestamp().timestamp_millis(),
        Bson::Timestamp(time) => i64::from(time.time) * 1000,
        Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_) => {
            match to_number(input, Type::Long)? {
                Some(Bson::Int64(millis)) => millis,
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(Bson::DateTime(DateTime::from_millis(millis))))
}

fn to_object_id(input: &Bson) -> Result<Option<Bson>> {
    let Bson::String(text) = input else {
        return Ok(None);
    };
    let fail = |why: String| {
        failure(
            format_args!("Failed to parse objectId '{text}'"),
            &format!(": {why}"),
        )
    };
    if text.len() != 24 {
        return Err(fail(format!(
            "Invalid string length for parsing to OID, expected 24 but found {}",
            text.len()
        )));
    }
    match ObjectId::parse_str(text) {
        Ok(id) => Ok(Some(Bson::ObjectId(id))),
        Err(_) => Err(fail("Invalid character found in hex string".to_owned())),
    }
}

fn to_binary(
    input: &Bson,
    subtype: BinarySubtype,
    format: Option<ByteFormat>,
) -> Result<Option<Bson>> {
    match (input, format) {
        (Bson::Binary(binary), _) if binary.subtype == subtype => Ok(Some(input.clone())),
        (Bson::Binary(_), _) => Err(failure(
            "Conversions between different binData subtypes are not supported",
            "",
        )),
        (Bson::String(text), Some(format)) => {
            let bytes = bytes::decode(text, format)?;
            let is_uuid = subtype == BinarySubtype::Uuid;
            if is_uuid != (format == ByteFormat::Uuid) && format != ByteFormat::Auto {
                return Err(failure(
                    "Only the UUID subtype is allowed with the UUID string format",
                    "",
                ));
            }
            Ok(Some(Bson::Binary(Binary { subtype, bytes })))
        }
        _ => Ok(None),
    }
}
