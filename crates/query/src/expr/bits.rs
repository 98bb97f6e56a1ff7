//! Bitwise operators over ints and longs; the result is a long if an argument is.

use bson::Bson;

use super::args::{Args, computed, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$bitAnd", |args| combine(args, -1, |a, b| a & b)),
    Function::any("$bitOr", |args| combine(args, 0, |a, b| a | b)),
    Function::any("$bitXor", |args| combine(args, 0, |a, b| a ^ b)),
    Function::exactly("$bitNot", 1, not),
];

fn combine<'e>(args: &Args<'e>, start: i32, with: fn(i64, i64) -> i64) -> Result<Value<'e>> {
    let (mut bits, mut long, mut nullish) = (i64::from(start), false, false);
    for value in args.values() {
        let value = value?;
        match value.as_deref() {
            Some(Bson::Int32(number)) => bits = with(bits, i64::from(*number)),
            Some(Bson::Int64(number)) => {
                bits = with(bits, *number);
                long = true;
            }
            _ if is_nullish(&value) => nullish = true,
            _ => {
                return Err(Error::type_mismatch(format!(
                    "{} only supports int and long operands.",
                    args.name()
                )));
            }
        }
    }
    if nullish {
        return null();
    }
    match i32::try_from(bits) {
        Ok(bits) if !long => computed(bits),
        _ => computed(bits),
    }
}

fn not<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    match value.as_deref() {
        Some(Bson::Int32(number)) => computed(!number),
        Some(Bson::Int64(number)) => computed(!number),
        _ if is_nullish(&value) => null(),
        _ => Err(Error::type_mismatch(format!(
            "$bitNot only supports int and long, not: {}.",
            type_of(&value)
        ))),
    }
}
