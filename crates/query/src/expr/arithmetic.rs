//! Arithmetic over numbers, and over dates where MongoDB supports it.
//!
//! Null and missing arguments give null. Types are promoted by the rules of [`Number`].

use bson::{Bson, DateTime};

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use crate::number::Number;
use crate::{Error, Result};

/// The code for an operand that is not a number, except of `$mod` and of functions of one number.
const TYPE_MISMATCH: i32 = crate::Code::TYPE_MISMATCH.0;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$add", add),
    Function::exactly("$subtract", 2, subtract),
    Function::any("$multiply", multiply),
    Function::exactly("$divide", 2, |args| {
        two(args, TYPE_MISMATCH, Number::divide)
    }),
    Function::exactly("$mod", 2, |args| two(args, 16_611, Number::modulo)),
    Function::exactly("$abs", 1, |args| one(args, Number::abs)),
    Function::exactly("$ceil", 1, |args| one(args, |number| Ok(number.ceil()))),
    Function::exactly("$floor", 1, |args| one(args, |number| Ok(number.floor()))),
    Function::exactly("$sqrt", 1, |args| one(args, Number::sqrt)),
    Function::exactly("$exp", 1, |args| one(args, |number| Ok(number.exp()))),
    Function::exactly("$ln", 1, |args| one(args, Number::ln)),
    Function::exactly("$log10", 1, |args| one(args, Number::log10)),
    Function::exactly("$log", 2, log),
    Function::exactly("$pow", 2, pow),
    Function::between("$round", 1, 2, |args| to_place(args, Number::round)),
    Function::between("$trunc", 1, 2, |args| to_place(args, Number::trunc)),
    Function::exactly("$isNumber", 1, is_number),
];

/// Adds from left to right. A sum of `int`s only is an `int` if it fits.
fn add<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut sum = Number::Int32(0);
    let mut ints = true;
    let mut date = None;
    for value in args.values() {
        let value = value?;
        match value.as_deref() {
            None | Some(Bson::Null | Bson::Undefined) => return null(),
            Some(Bson::DateTime(_)) if date.is_some() => {
                return fail(16_612, "only one date allowed in an $add expression");
            }
            Some(Bson::DateTime(found)) => date = Some(*found),
            Some(other) => match Number::from_bson(other) {
                Some(number) => {
                    ints &= matches!(number, Number::Int32(_));
                    sum = sum.add(number);
                }
                None => {
                    return fail(
                        TYPE_MISMATCH,
                        format!(
                            "$add only supports numeric or date types, not {}",
                            type_of(&value)
                        ),
                    );
                }
            },
        }
    }
    if let (true, Number::Int64(long)) = (ints, sum) {
        sum = Number::narrow(long);
    }
    match date {
        Some(date) => computed(shifted(date, sum, false)?),
        None => computed(sum.to_bson()),
    }
}

/// A date plus a number of milliseconds, or minus it if `back`; rounded to the nearest millisecond.
fn shifted(date: DateTime, by: Number, back: bool) -> Result<Bson> {
    let start = date.timestamp_millis();
    let moved = by.round(0)?.to_i64_truncated().and_then(|by| {
        if back {
            start.checked_sub(by)
        } else {
            start.checked_add(by)
        }
    });
    match moved {
        Some(moved) => Ok(Bson::DateTime(DateTime::from_millis(moved))),
        None => Err(Error::new(crate::Code::OVERFLOW, "date overflow")),
    }
}

fn subtract<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (left, right) = (args.value(0)?, args.value(1)?);
    if is_nullish(&left) || is_nullish(&right) {
        return null();
    }
    let numbers = (number(&left), number(&right));
    match (left.as_deref(), right.as_deref(), numbers) {
        (_, _, (Some(left), Some(right))) => computed(left.subtract(right).to_bson()),
        (Some(Bson::DateTime(left)), Some(Bson::DateTime(right)), _) => {
            let apart = left
                .timestamp_millis()
                .checked_sub(right.timestamp_millis());
            match apart {
                Some(apart) => computed(apart),
                None => Err(Error::new(
                    crate::Code::OVERFLOW,
                    "date subtraction overflow",
                )),
            }
        }
        (Some(Bson::DateTime(left)), _, (_, Some(right))) => computed(shifted(*left, right, true)?),
        _ => {
            // MongoDB's message names the type of a date on the left with a capital letter.
            let from = match left.as_deref() {
                Some(Bson::DateTime(_)) => "Date",
                _ => type_of(&left),
            };
            let text = format!("can't $subtract {} from {from}", type_of(&right));
            fail(TYPE_MISMATCH, text)
        }
    }
}

fn multiply<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut product = Number::Int32(1);
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        match number(&value) {
            Some(number) => product = product.multiply(number),
            None => {
                return fail(
                    TYPE_MISMATCH,
                    format!(
                        "$multiply only supports numeric types, not {}",
                        type_of(&value)
                    ),
                );
            }
        }
    }
    computed(product.to_bson())
}

/// The number in a value, if it is one.
pub(super) fn number(value: &Value<'_>) -> Option<Number> {
    Number::from_bson(value.as_deref()?)
}

/// Evaluates a function of one number.
pub(super) fn one<'e>(
    args: &Args<'e>,
    compute: impl Fn(Number) -> Result<Number>,
) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    match number(&value) {
        Some(number) => computed(compute(number)?.to_bson()),
        None => fail(
            28_765,
            format!(
                "{} only supports numeric types, not {}",
                args.name(),
                type_of(&value)
            ),
        ),
    }
}

/// Evaluates a function of two numbers.
pub(super) fn two<'e>(
    args: &Args<'e>,
    code: i32,
    compute: impl Fn(Number, Number) -> Result<Number>,
) -> Result<Value<'e>> {
    let (left, right) = (args.value(0)?, args.value(1)?);
    if is_nullish(&left) || is_nullish(&right) {
        return null();
    }
    match (number(&left), number(&right)) {
        (Some(left), Some(right)) => computed(compute(left, right)?.to_bson()),
        _ => fail(
            code,
            format!(
                "{} only supports numeric types, not {} and {}",
                args.name(),
                type_of(&left),
                type_of(&right)
            ),
        ),
    }
}

/// Evaluates a function of two numbers. Its error names the role of the argument that is not a
/// number.
fn two_roles<'e>(
    args: &Args<'e>,
    roles: [(i32, &str); 2],
    compute: impl Fn(Number, Number) -> Result<Number>,
) -> Result<Value<'e>> {
    let values = [args.value(0)?, args.value(1)?];
    if values.iter().any(is_nullish) {
        return null();
    }
    for (value, (code, role)) in values.iter().zip(roles) {
        if number(value).is_none() {
            return fail(
                code,
                format!(
                    "{}'s {role} must be numeric, not {}",
                    args.name(),
                    type_of(value)
                ),
            );
        }
    }
    match values.each_ref().map(number) {
        [Some(left), Some(right)] => computed(compute(left, right)?.to_bson()),
        _ => null(),
    }
}

fn log<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    two_roles(args, [(28_756, "argument"), (28_757, "base")], Number::log)
}

fn pow<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    two_roles(args, [(28_762, "base"), (28_763, "exponent")], Number::pow)
}

fn to_place<'e>(
    args: &Args<'e>,
    compute: impl Fn(Number, i32) -> Result<Number>,
) -> Result<Value<'e>> {
    let (value, place) = (args.value(0)?, args.value(1)?);
    if is_nullish(&value) || (args.given(1) && is_nullish(&place)) {
        return null();
    }
    let Some(found) = number(&value) else {
        return fail(
            51_081,
            format!(
                "{} only supports numeric types, not {}",
                args.name(),
                type_of(&value)
            ),
        );
    };
    if !args.given(1) {
        return computed(compute(found, 0)?.to_bson());
    }
    let Some(digits) = number(&place).and_then(Number::to_i32_exact) else {
        return fail(
            51_082,
            format!(
                "precision argument to  {} must be a integral value",
                args.name()
            ),
        );
    };
    if !(-20..=100).contains(&digits) {
        return fail(
            51_083,
            format!(
                "cannot apply {} with precision value {digits} value must be in [-20, 100]",
                args.name()
            ),
        );
    }
    computed(compute(found, digits)?.to_bson())
}

fn is_number<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(number(&args.value(0)?).is_some())
}
