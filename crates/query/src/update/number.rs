//! Operators of arithmetic: `$inc`, `$mul`, `$bit`.

use std::cmp::Ordering;
use std::mem::discriminant;

use bson::{Bson, Document};

use super::modifier::{Context, Outcome};
use crate::number::{Number, compare};
use crate::value::type_name;
use crate::{Error, Result, show};

/// An operator that combines a number of a document with its operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arithmetic {
    /// `$inc`.
    Add(Number),
    /// `$mul`.
    Multiply(Number),
}

impl Arithmetic {
    /// Parses the operand of `$inc`.
    pub(super) fn add(path: &str, operand: &Bson) -> Result<Arithmetic> {
        Ok(Arithmetic::Add(number("increment", path, operand)?))
    }

    /// Parses the operand of `$mul`.
    pub(super) fn multiply(path: &str, operand: &Bson) -> Result<Arithmetic> {
        Ok(Arithmetic::Multiply(number("multiply", path, operand)?))
    }

    pub(super) fn apply(
        self,
        path: &str,
        current: Option<&Bson>,
        cx: &Context<'_>,
    ) -> Result<Outcome> {
        let Some(current) = current else {
            return Ok(Outcome::Set(self.of_missing().to_bson()));
        };
        let name = match self {
            Arithmetic::Add(_) => "$inc",
            Arithmetic::Multiply(_) => "$mul",
        };
        let number = numeric(name, path, current, cx)?;
        let next = match self {
            Arithmetic::Add(operand) => number.checked_add(operand),
            Arithmetic::Multiply(operand) => number.checked_multiply(operand),
        };
        let next = next.ok_or_else(|| overflow(name, current, cx))?;
        Ok(changed(current, next))
    }

    /// The result for a missing value. The product with it is zero, of the operand's type.
    fn of_missing(self) -> Number {
        match self {
            Arithmetic::Add(operand) => operand,
            Arithmetic::Multiply(operand) => Number::Int32(0).multiply(operand),
        }
    }
}

/// Keeps a number if the new number has the same type and value, so that a zero keeps its sign and
/// a decimal its trailing zeros.
fn changed(current: &Bson, next: Number) -> Outcome {
    let same = Number::from_bson(current).is_some_and(|current| {
        discriminant(&current) == discriminant(&next) && compare(current, next) == Ordering::Equal
    });
    if same {
        Outcome::Keep
    } else {
        Outcome::Set(next.to_bson())
    }
}

fn number(verb: &str, path: &str, operand: &Bson) -> Result<Number> {
    Number::from_bson(operand).ok_or_else(|| {
        Error::type_mismatch(format!(
            "Cannot {verb} with non-numeric argument: {{{}}}",
            show::field(path, operand)
        ))
    })
}

fn numeric(operator: &str, path: &str, current: &Bson, cx: &Context<'_>) -> Result<Number> {
    let name = path.rsplit('.').next().unwrap_or(path);
    Number::from_bson(current).ok_or_else(|| {
        Error::type_mismatch(format!(
            "Cannot apply {operator} to a value of non-numeric type. {} has the field '{name}' of \
             non-numeric type {}",
            cx.document(),
            type_name(current)
        ))
    })
}

fn overflow(operator: &str, current: &Bson, cx: &Context<'_>) -> Error {
    let kind = match current {
        Bson::Int32(_) => "NumberInt",
        _ => "NumberLong",
    };
    Error::bad_value(format!(
        "Failed to apply {operator} operations to current value (({kind}){}) for document {}",
        show::value(current),
        cx.document()
    ))
}

/// The operand of `$bit`: operations in the order of execution.
#[derive(Debug, Clone)]
pub(super) struct Bits(Vec<(Operation, Number)>);

#[derive(Debug, Clone, Copy)]
enum Operation {
    And,
    Or,
    Xor,
}

impl Bits {
    pub(super) fn parse(operand: &Bson) -> Result<Bits> {
        let Bson::Document(spec) = operand else {
            return Err(Error::bad_value(format!(
                "The $bit modifier is not compatible with a {}. You must pass in an embedded \
                 document: {{$bit: {{field: {{and/or/xor: #}}}}",
                type_name(operand)
            )));
        };
        if spec.is_empty() {
            return Err(Error::bad_value(
                "You must pass in at least one bitwise operation. The format is: {$bit: {field: \
                 {and/or/xor: #}}",
            ));
        }
        let parse = |(name, value): (&String, &Bson)| bit_operation(spec, name, value);
        Ok(Bits(spec.iter().map(parse).collect::<Result<_>>()?))
    }
}

fn bit_operation(spec: &Document, name: &str, value: &Bson) -> Result<(Operation, Number)> {
    let operation = match name {
        "and" => Operation::And,
        "or" => Operation::Or,
        "xor" => Operation::Xor,
        _ => {
            return Err(Error::bad_value(format!(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an \
                 unknown operator: {{{}}}",
                show::field(name, value)
            )));
        }
    };
    match Number::from_bson(value).filter(|number| integral(*number)) {
        Some(number) => Ok((operation, number)),
        None => Err(Error::bad_value(format!(
            "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: \
             {}",
            type_name(value),
            show::document(spec)
        ))),
    }
}

fn integral(number: Number) -> bool {
    matches!(number, Number::Int32(_) | Number::Int64(_))
}

/// Applies `$bit`; a missing value is zero.
pub(super) fn bits(
    bits: &Bits,
    path: &str,
    current: Option<&Bson>,
    cx: &Context<'_>,
) -> Result<Outcome> {
    let start = match current {
        None => Number::Int32(0),
        Some(value) => Number::from_bson(value)
            .filter(|number| integral(*number))
            .ok_or_else(|| {
                Error::bad_value(format!(
                    "Cannot apply $bit to a value of non-integral type.{} has the field {} of \
                     non-integer type {}",
                    cx.document(),
                    path.rsplit('.').next().unwrap_or(path),
                    type_name(value)
                ))
            })?,
    };
    let result = bits.0.iter().fold(start, |held, (operation, operand)| {
        combine(*operation, held, *operand)
    });
    Ok(match current {
        Some(current) => changed(current, result),
        None => Outcome::Set(result.to_bson()),
    })
}

fn combine(operation: Operation, left: Number, right: Number) -> Number {
    if let (Number::Int32(left), Number::Int32(right)) = (left, right) {
        return Number::Int32(match operation {
            Operation::And => left & right,
            Operation::Or => left | right,
            Operation::Xor => left ^ right,
        });
    }
    let (left, right) = (left.to_i64_clamped(), right.to_i64_clamped());
    Number::Int64(match operation {
        Operation::And => left & right,
        Operation::Or => left | right,
        Operation::Xor => left ^ right,
    })
}
