//! `$dateAdd` and `$dateSubtract`.

use super::args::{Args, fail, is_nullish, null, type_of};
use super::arithmetic::number;
use super::date::{self, date};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::{unit, zone};
use crate::number::Number;
use crate::{Code, Result};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::named(&ADD, |args| shift(args, false)),
    Function::named(&SUBTRACT, |args| shift(args, true)),
];

const MISSING: &str = "{op} requires startDate, unit, and amount to be present";

const FIELDS: &[Field] = &[
    Field::required("startDate", 5_166_402, MISSING),
    Field::required("unit", 5_166_402, MISSING),
    Field::required("amount", 5_166_402, MISSING),
    Field::optional("timezone"),
];

const fn signature(name: &'static str) -> Signature {
    Signature {
        name,
        not_object: (
            5_166_400,
            "{op} expects an object as its argument.found input type:{type}",
        ),
        unknown: (
            5_166_401,
            "Unrecognized argument to {op}: {field}. Expected arguments are startDate, unit, \
             amount, and optionally timezone.",
        ),
        fields: FIELDS,
    }
}

const ADD: Signature = signature("$dateAdd");
const SUBTRACT: Signature = signature("$dateSubtract");

fn shift<'e>(args: &Args<'e>, back: bool) -> Result<Value<'e>> {
    let (start, amount) = (args.value(0)?, args.value(2)?);
    let codes = (5_166_404, Code::FAILED_TO_PARSE);
    let unit = unit::argument(args, 1, codes)?;
    let zone = zone::argument(args, 3)?;
    let (Some(unit), Some(zone), false, false) =
        (unit, zone, is_nullish(&start), is_nullish(&amount))
    else {
        return null();
    };
    let Ok(Some(instant)) = date::argument(args, 0) else {
        return fail(
            5_166_403,
            format!(
                "{} requires startDate to be convertible to a date",
                args.name()
            ),
        );
    };
    let Some(count) = number(&amount).and_then(Number::to_i64_exact) else {
        return fail(
            5_166_405,
            format!(
                "{} expects integer amount of time units, but got {}",
                args.name(),
                type_of(&amount)
            ),
        );
    };
    let count = if back {
        count.checked_neg()
    } else {
        Some(count)
    };
    match count.and_then(|count| unit::add(instant, unit, count, &zone)) {
        Some(moved) => date(moved),
        None => fail(
            5_976_500,
            format!("{}: the resulting date is out of range", args.name()),
        ),
    }
}
