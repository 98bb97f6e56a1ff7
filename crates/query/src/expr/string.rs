//! Strings: `$concat`, substrings, lengths, case and `$split`.
//!
//! Operators named `Bytes` count bytes of UTF-8, operators named `CP` count code points. Case
//! conversion is for ASCII only, as in MongoDB.

use std::cmp::Ordering;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::coerce::to_text;
use super::env::Value;
use super::function::Function;
use crate::number::Number;
use crate::{Result, meter};

/// The longest string that an expression makes, in bytes.
pub(super) const MAX_STRING: usize = 64 << 20;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$concat", concat),
    Function::exactly("$toLower", 1, |args| case(args, str::to_ascii_lowercase)),
    Function::exactly("$toUpper", 1, |args| case(args, str::to_ascii_uppercase)),
    Function::exactly("$strcasecmp", 2, strcasecmp),
    Function::exactly("$strLenBytes", 1, len_bytes),
    Function::exactly("$strLenCP", 1, len_cp),
    Function::exactly("$substr", 3, substr_bytes),
    Function::exactly("$substrBytes", 3, substr_bytes),
    Function::exactly("$substrCP", 3, substr_cp),
    Function::exactly("$split", 2, split),
];

fn concat<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut joined = String::new();
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        let Some(Bson::String(text)) = value.as_deref() else {
            return fail(
                16_702,
                format!("$concat only supports strings, not {}", type_of(&value)),
            );
        };
        check_length(joined.len() + text.len())?;
        meter::read(text.len())?;
        meter::charge("$concat", text.len())?;
        joined.push_str(text);
    }
    computed(joined)
}

/// Refuses a string that does not fit a document, before its memory is allocated.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes > MAX_STRING {
        return fail(
            13_548,
            format!("BufBuilder attempted to grow() to {bytes} bytes, past the 64MB limit."),
        );
    }
    Ok(())
}

fn case<'e>(args: &Args<'e>, change: fn(&str) -> String) -> Result<Value<'e>> {
    let text = to_text(&args.value(0)?)?;
    meter::charge(args.name(), text.len())?;
    computed(change(&text))
}

fn strcasecmp<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (left, right) = (to_text(&args.value(0)?)?, to_text(&args.value(1)?)?);
    let left = left.bytes().map(|byte| byte.to_ascii_uppercase());
    let right = right.bytes().map(|byte| byte.to_ascii_uppercase());
    computed(match left.cmp(right) {
        Ordering::Less => -1_i32,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn length(args: &Args<'_>, code: i32, count: fn(&str) -> usize) -> Result<Bson> {
    let value = args.value(0)?;
    match value.as_deref() {
        Some(Bson::String(text)) => {
            meter::read(text.len())?;
            Ok(count_bson(count(text)))
        }
        _ => fail(
            code,
            format!(
                "{} requires a string argument, found: {}",
                args.name(),
                type_of(&value)
            ),
        ),
    }
}

/// A count as an int, or as a long when it does not fit.
pub(super) fn count_bson(count: usize) -> Bson {
    match i32::try_from(count) {
        Ok(count) => Bson::Int32(count),
        Err(_) => Bson::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
    }
}

fn len_bytes<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(length(args, 34_473, str::len)?)
}

fn len_cp<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(length(args, 34_471, |text| text.chars().count())?)
}

fn substr_bytes<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let name = "$substrBytes";
    let text = to_text(&args.value(0)?)?;
    let start = bound(&args.value(1)?, 16_034, || {
        format!("{name}:  starting index")
    })?;
    let length = bound(&args.value(2)?, 16_035, || format!("{name}:  length"))?;
    let Ok(start) = usize::try_from(start) else {
        return fail(
            50_752,
            format!("{name}: starting index must be non-negative (got: {start})"),
        );
    };
    let end = match usize::try_from(length) {
        Ok(length) => start.saturating_add(length).min(text.len()),
        Err(_) => text.len(),
    };
    if start >= text.len() {
        return computed("");
    }
    if !text.is_char_boundary(start) {
        return fail(
            28_656,
            format!("{name}:  Invalid range, starting index is a UTF-8 continuation byte."),
        );
    }
    match text.get(start..end) {
        Some(part) => computed(part),
        None => fail(
            28_657,
            format!("{name}:  Invalid range, ending index is in the middle of a UTF-8 character."),
        ),
    }
}

fn bound(value: &Value<'_>, code: i32, what: impl Fn() -> String) -> Result<i64> {
    match value.as_deref().and_then(Number::from_bson) {
        Some(number) => Ok(number.to_i64_clamped()),
        None => fail(
            code,
            format!(
                "{} must be a numeric type (is BSON type {})",
                what(),
                type_of(value)
            ),
        ),
    }
}

fn substr_cp<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let text = to_text(&args.value(0)?)?;
    let start = index_cp(&args.value(1)?, (34_450, 34_451), "starting index")?;
    let length = index_cp(&args.value(2)?, (34_452, 34_453), "length")?;
    let Ok(length) = usize::try_from(length) else {
        return fail(34_454, "$substrCP: length must be a nonnegative integer.");
    };
    let Ok(start) = usize::try_from(start) else {
        return fail(
            34_455,
            "$substrCP: the starting index must be nonnegative integer.",
        );
    };
    let part: String = text.chars().skip(start).take(length).collect();
    computed(part)
}

fn index_cp(value: &Value<'_>, codes: (i32, i32), what: &str) -> Result<i32> {
    let Some(number) = value.as_deref().and_then(Number::from_bson) else {
        return fail(
            codes.0,
            format!(
                "$substrCP: {what} must be a numeric type (is BSON type {})",
                type_of(value)
            ),
        );
    };
    match number.to_i32_exact() {
        Some(whole) => Ok(whole),
        None => fail(
            codes.1,
            format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {number}"),
        ),
    }
}

fn split<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (input, separator) = (args.value(0)?, args.value(1)?);
    if is_nullish(&input) || is_nullish(&separator) {
        return null();
    }
    let refuse = |code: i32, position: &str, found: &Value<'_>| {
        fail(
            code,
            format!(
                "$split requires an expression that evaluates to a string as a {position} \
                 argument, found: {}",
                type_of(found)
            ),
        )
    };
    let Some(Bson::String(text)) = input.as_deref() else {
        return refuse(40_085, "first", &input);
    };
    let Some(Bson::String(separator)) = separator.as_deref() else {
        return refuse(40_086, "second", &separator);
    };
    if separator.is_empty() {
        return fail(40_087, "$split requires a non-empty separator");
    }
    meter::read(text.len())?;
    let mut parts: Vec<Bson> = Vec::new();
    for part in text.split(separator.as_str()) {
        meter::read(part.len())?;
        meter::charge("$split", size_of::<Bson>() + part.len())?;
        parts.push(Bson::from(part));
    }
    computed(parts)
}
