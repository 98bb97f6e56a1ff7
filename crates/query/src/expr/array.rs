//! Array operators: elements, slices, searches, ranges, and conversion to objects and from objects.

use std::borrow::Cow;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::arithmetic::number;
use super::env::Value;
use super::function::Function;
use super::string::count_bson;
use super::string_find::bounds;
use crate::number::Number;
use crate::value::compare_with;
use crate::{Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::exactly("$arrayElemAt", 2, element_at),
    Function::between("$concatArrays", 0, usize::MAX, concat),
    Function::exactly("$in", 2, contains),
    Function::between("$indexOfArray", 2, 4, index_of),
    Function::exactly("$isArray", 1, is_array),
    Function::between("$range", 2, 3, range),
    Function::exactly("$reverseArray", 1, reverse),
    Function::exactly("$size", 1, size),
    Function::between("$slice", 2, 3, slice),
    Function::exactly("$first", 1, |args| edge(args, 0)),
    Function::exactly("$last", 1, |args| edge(args, -1)),
];

/// The element at an index that counts from the end when negative, without a copy where possible.
fn element<'e>(array: Cow<'e, Bson>, index: i32) -> Value<'e> {
    let length = array.as_array()?.len();
    let index = usize::try_from(index)
        .ok()
        .or_else(|| length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?))?;
    match array {
        Cow::Borrowed(Bson::Array(items)) => items.get(index).map(Cow::Borrowed),
        Cow::Owned(Bson::Array(mut items)) if index < items.len() => {
            Some(Cow::Owned(items.swap_remove(index)))
        }
        _ => None,
    }
}

fn element_at<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (array, index) = (args.value(0)?, args.value(1)?);
    if is_nullish(&array) || is_nullish(&index) {
        return null();
    }
    let Some(found) = array.filter(|value| value.as_array().is_some()) else {
        return not_array(args, "first argument", &args.value(0)?);
    };
    let Some(position) = number(&index) else {
        return fail(
            28_690,
            format!(
                "$arrayElemAt's second argument must be a numeric value, but is {}",
                type_of(&index)
            ),
        );
    };
    match position.to_i32_exact() {
        Some(index) => Ok(element(found, index)),
        None => fail(
            28_691,
            format!(
                "$arrayElemAt's second argument must be representable as a 32-bit integer: \
                 {position}"
            ),
        ),
    }
}

fn not_array<'e>(args: &Args<'e>, what: &str, found: &Value<'_>) -> Result<Value<'e>> {
    fail(
        28_689,
        format!(
            "{}'s {what} must be an array, but is {}",
            args.name(),
            type_of(found)
        ),
    )
}

fn edge<'e>(args: &Args<'e>, index: i32) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    match value {
        Some(array) if array.as_array().is_some() => Ok(element(array, index)),
        other => not_array(args, "argument", &other),
    }
}

fn concat<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut joined: Vec<Bson> = Vec::new();
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        let Some(Bson::Array(items)) = value.as_deref() else {
            return fail(
                28_664,
                format!(
                    "$concatArrays only supports arrays, not {}",
                    type_of(&value)
                ),
            );
        };
        joined.extend(meter::copies("$concatArrays", items.iter())?);
    }
    computed(joined)
}

fn contains<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (needle, array) = (args.value(0)?, args.value(1)?);
    let Some(Bson::Array(items)) = array.as_deref() else {
        return fail(
            40_081,
            format!(
                "$in requires an array as a second argument, found: {}",
                type_of(&array)
            ),
        );
    };
    let Some(needle) = needle.as_deref() else {
        return computed(false);
    };
    for item in items {
        meter::step()?;
        if compare_with(item, needle, args.collator()).is_eq() {
            return computed(true);
        }
    }
    computed(false)
}

fn index_of<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let array = args.value(0)?;
    if is_nullish(&array) {
        return null();
    }
    let Some(Bson::Array(items)) = array.as_deref() else {
        return fail(
            40_090,
            format!(
                "$indexOfArray requires an array as a first argument, found: {}",
                type_of(&array)
            ),
        );
    };
    let needle = args.value(1)?;
    let (start, end) = bounds(args, items.len())?;
    if let Some(needle) = needle.as_deref() {
        for (at, item) in items.iter().enumerate().take(end).skip(start) {
            meter::step()?;
            if compare_with(item, needle, args.collator()).is_eq() {
                return computed(count_bson(at));
            }
        }
    }
    computed(-1_i32)
}

fn is_array<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(matches!(args.value(0)?.as_deref(), Some(Bson::Array(_))))
}

fn range_bound(args: &Args<'_>, at: usize, codes: (i32, i32), what: &str) -> Result<i64> {
    let value = args.value(at)?;
    let Some(found) = number(&value) else {
        return fail(
            codes.0,
            format!(
                "$range requires a numeric {what} value, found value of type: {}",
                type_of(&value)
            ),
        );
    };
    match found.to_i32_exact() {
        Some(whole) => Ok(i64::from(whole)),
        None => fail(
            codes.1,
            format!(
                "$range requires a {what} value that can be represented as a 32-bit integer, \
                 found value: {found}"
            ),
        ),
    }
}

fn range<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let start = range_bound(args, 0, (34_443, 34_444), "starting")?;
    let end = range_bound(args, 1, (34_445, 34_446), "ending")?;
    let step = if args.given(2) {
        range_bound(args, 2, (34_447, 34_448), "step")?
    } else {
        1
    };
    if step == 0 {
        return fail(34_449, "$range requires a non-zero step value");
    }
    let span = (end - start) * step.signum();
    let count = if span <= 0 {
        0
    } else {
        usize::try_from((span - 1) / step.abs() + 1).expect("positive, below 2^33")
    };
    meter::charge("$range", count.saturating_mul(size_of::<Bson>()))?;
    let mut items: Vec<Bson> = Vec::with_capacity(count);
    for at in (0_i64..).take(count) {
        meter::step()?;
        items.push(Number::narrow(start + at * step).to_bson());
    }
    computed(items)
}

fn reverse<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let array = args.value(0)?;
    if is_nullish(&array) {
        return null();
    }
    match array.as_deref() {
        Some(Bson::Array(items)) => computed(meter::copies("$reverseArray", items.iter().rev())?),
        _ => fail(
            34_435,
            format!(
                "The argument to $reverseArray must be an array, but was of type: {}",
                type_of(&array)
            ),
        ),
    }
}

fn size<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let array = args.value(0)?;
    match array.as_deref() {
        Some(Bson::Array(items)) => computed(count_bson(items.len())),
        _ => fail(
            17_124,
            format!(
                "The argument to $size must be an array, but was of type: {}",
                type_of(&array)
            ),
        ),
    }
}

fn slice_number(value: &Value<'_>, codes: (i32, i32), what: &str) -> Result<i32> {
    let Some(found) = number(value) else {
        return fail(
            codes.0,
            format!(
                "{what} argument to $slice must be a numeric value, but is of type: {}",
                type_of(value)
            ),
        );
    };
    match found.to_i32_exact() {
        Some(whole) => Ok(whole),
        None => fail(
            codes.1,
            format!("{what} argument to $slice can't be represented as a 32-bit integer: {found}"),
        ),
    }
}

fn slice<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (array, second) = (args.value(0)?, args.value(1)?);
    let third = args.value(2)?;
    if is_nullish(&array) || is_nullish(&second) || (args.given(2) && is_nullish(&third)) {
        return null();
    }
    let Some(Bson::Array(items)) = array.as_deref() else {
        return fail(
            28_724,
            format!(
                "First argument to $slice must be an array, but is of type: {}",
                type_of(&array)
            ),
        );
    };
    let second = slice_number(&second, (28_725, 28_726), "Second")?;
    let magnitude = usize::try_from(second.unsigned_abs()).unwrap_or(usize::MAX);
    let from_end = items.len().saturating_sub(magnitude);
    let (start, count) = if args.given(2) {
        let count = slice_number(&third, (28_727, 28_728), "Third")?;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
            return fail(
                28_729,
                format!("Third argument to $slice must be positive: {count}"),
            );
        };
        let start = if second < 0 { from_end } else { magnitude };
        (start, count)
    } else if second < 0 {
        (from_end, magnitude)
    } else {
        (0, magnitude)
    };
    let part = items.iter().skip(start).take(count);
    computed(meter::copies("$slice", part)?)
}
