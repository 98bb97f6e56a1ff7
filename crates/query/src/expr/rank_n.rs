//! `$firstN`, `$lastN`, `$minN`, `$maxN` over an array.

use bson::Bson;

use super::args::{Args, computed, fail, type_of};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use crate::accumulator::check_n;
use crate::value::compare_with;
use crate::{Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::named(&FIRST, |args| edge(args, false)),
    Function::named(&LAST, |args| edge(args, true)),
    Function::named(&MIN, |args| extremes(args, false)),
    Function::named(&MAX, |args| extremes(args, true)),
];

const FIELDS: &[Field] = &[
    Field::required("n", 5_787_906, "Missing value for 'n'"),
    Field::required("input", 5_787_907, "Missing value for 'input'"),
];

const fn signature(name: &'static str) -> Signature {
    Signature {
        name,
        not_object: (
            5_787_900,
            "specification must be an object; found {op} :{type}",
        ),
        unknown: (5_787_901, "Unknown argument for 'n' operator: {field}"),
        fields: FIELDS,
    }
}

const FIRST: Signature = signature("$firstN");
const LAST: Signature = signature("$lastN");
const MIN: Signature = signature("$minN");
const MAX: Signature = signature("$maxN");

fn input<'v>(value: &'v Value<'_>) -> Result<&'v [Bson]> {
    match value.as_deref() {
        Some(Bson::Array(items)) => Ok(items),
        _ => fail(
            5_788_200,
            format!("Input must be an array, but is of type {}", type_of(value)),
        ),
    }
}

fn edge<'e>(args: &Args<'e>, last: bool) -> Result<Value<'e>> {
    let n = check_n(args.value(0)?.as_deref())?;
    let value = args.value(1)?;
    let items = input(&value)?;
    let skipped = if last {
        items.len().saturating_sub(n)
    } else {
        0
    };
    let part = items.iter().skip(skipped).take(n);
    computed(meter::copies(args.name(), part)?)
}

fn extremes<'e>(args: &Args<'e>, greatest: bool) -> Result<Value<'e>> {
    let n = check_n(args.value(0)?.as_deref())?;
    let value = args.value(1)?;
    let items = input(&value)?;
    meter::charge(args.name(), size_of_val(items) / 8)?;
    let items: Vec<&Bson> = items
        .iter()
        .filter(|item| !matches!(item, Bson::Null | Bson::Undefined))
        .collect();
    let items = meter::sort_by(items, |left, right| {
        let order = compare_with(left, right, args.collator());
        if greatest { order.reverse() } else { order }
    })?;
    computed(meter::copies(args.name(), items.into_iter().take(n))?)
}
