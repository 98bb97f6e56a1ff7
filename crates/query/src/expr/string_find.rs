//! Searches in strings: `$indexOfBytes`, `$indexOfCP`, `$replaceOne`, `$replaceAll`.

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::string::{check_length, count_bson};
use crate::number::Number;
use crate::{Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::between("$indexOfBytes", 2, 4, index_of_bytes),
    Function::between("$indexOfCP", 2, 4, index_of_cp),
    Function::named(&REPLACE_ONE, |args| replace(args, 1)),
    Function::named(&REPLACE_ALL, |args| replace(args, usize::MAX)),
];

/// The optional bounds of an `$indexOf` call, its arguments 2 and 3.
pub(super) fn bounds(args: &Args<'_>, length: usize) -> Result<(usize, usize)> {
    let mut bounds = [0, length];
    let names = ["starting", "ending"];
    for (at, (bound, name)) in bounds.iter_mut().zip(names).enumerate() {
        if args.given(at + 2) {
            *bound = index(args, &args.value(at + 2)?, name)?;
        }
    }
    let [start, end] = bounds;
    Ok((start, end.min(length)))
}

fn index(args: &Args<'_>, value: &Value<'_>, what: &str) -> Result<usize> {
    let number = value.as_deref().and_then(Number::from_bson);
    let Some(whole) = number.and_then(|number| number.to_i32_exact()) else {
        return fail(
            40_096,
            format!(
                "{} requires an integral {what} index, found a value of type: {}, with value: {}",
                args.name(),
                type_of(value),
                value.as_deref().unwrap_or(&Bson::Null)
            ),
        );
    };
    match usize::try_from(whole) {
        Ok(index) => Ok(index),
        Err(_) => fail(
            40_097,
            format!(
                "{} requires a nonnegative {what} index, found: {whole}",
                args.name()
            ),
        ),
    }
}

fn index_of_bytes<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (input, token) = (args.value(0)?, args.value(1)?);
    if is_nullish(&input) {
        return null();
    }
    let (text, token) = two_strings(args, (&input, 40_091), (&token, 40_092))?;
    let (start, end) = bounds(args, text.len())?;
    meter::read(text.len())?;
    computed(found(text.as_bytes(), token.as_bytes(), start, end))
}

fn two_strings<'v>(
    args: &Args<'_>,
    (input, first): (&'v Value<'_>, i32),
    (token, second): (&'v Value<'_>, i32),
) -> Result<(&'v str, &'v str)> {
    let refuse = |code: i32, position: &str, found: &Value<'_>| {
        fail(
            code,
            format!(
                "{} requires a string as the {position} argument, found: {}",
                args.name(),
                type_of(found)
            ),
        )
    };
    match (input.as_deref(), token.as_deref()) {
        (Some(Bson::String(text)), Some(Bson::String(token))) => Ok((text, token)),
        (Some(Bson::String(_)), _) => refuse(second, "second", token),
        _ => refuse(first, "first", input),
    }
}

/// The index of `token` between `start` and `end`; -1 if it is not entirely within them.
fn found(text: &[u8], token: &[u8], start: usize, end: usize) -> Bson {
    let Some(within) = text.get(start..end) else {
        return Bson::Int32(-1);
    };
    let at = if token.is_empty() {
        Some(0)
    } else {
        memchr::memmem::find(within, token)
    };
    at.map_or(Bson::Int32(-1), |at| count_bson(start + at))
}

fn index_of_cp<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (input, token) = (args.value(0)?, args.value(1)?);
    if is_nullish(&input) {
        return null();
    }
    let (text, token) = two_strings(args, (&input, 40_093), (&token, 40_094))?;
    meter::read(text.len())?;
    let (start, end) = bounds(args, text.chars().count())?;
    let (Some(from), Some(to)) = (byte_of(text, start), byte_of(text, end)) else {
        return computed(-1_i32);
    };
    let within = text.get(from..to);
    let found = within.and_then(|within| within.get(..within.find(token)?));
    computed(found.map_or(Bson::Int32(-1), |before| {
        count_bson(start + before.chars().count())
    }))
}

/// The byte position of a code point; the length of the text for the position after the last one.
fn byte_of(text: &str, point: usize) -> Option<usize> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.chain([text.len()]).nth(point)
}

const FIELDS: &[Field] = &[
    Field::required("input", 51_749, "{op} requires 'input' to be specified"),
    Field::required("find", 51_748, "{op} requires 'find' to be specified"),
    Field::required(
        "replacement",
        51_747,
        "{op} requires 'replacement' to be specified",
    ),
];

const fn signature(name: &'static str) -> Signature {
    Signature {
        name,
        not_object: (
            51_751,
            "{op} requires an object as an argument, found: {type}",
        ),
        unknown: (51_750, "{op} found an unknown argument: {field}"),
        fields: FIELDS,
    }
}

const REPLACE_ONE: Signature = signature("$replaceOne");
const REPLACE_ALL: Signature = signature("$replaceAll");

fn replace<'e>(args: &Args<'e>, most: usize) -> Result<Value<'e>> {
    let values = [args.value(0)?, args.value(1)?, args.value(2)?];
    let rules = [(51_746, "input"), (51_745, "find"), (51_744, "replacement")];
    for (value, (code, name)) in values.iter().zip(rules) {
        if !is_nullish(value) && !matches!(value.as_deref(), Some(Bson::String(_))) {
            return fail(
                code,
                format!(
                    "{} requires that '{name}' be a string, found: {}",
                    args.name(),
                    value.as_deref().unwrap_or(&Bson::Null)
                ),
            );
        }
    }
    let [input, find, replacement] = &values;
    match (input.as_deref(), find.as_deref(), replacement.as_deref()) {
        (Some(Bson::String(text)), Some(Bson::String(find)), Some(Bson::String(with))) => {
            meter::read(text.len())?;
            let count = text.matches(find.as_str()).take(most).count();
            let length = text.len().saturating_add(count.saturating_mul(with.len()));
            check_length(length)?;
            meter::read(length)?;
            meter::charge(args.name(), length)?;
            computed(text.replacen(find.as_str(), with, most))
        }
        _ => null(),
    }
}
