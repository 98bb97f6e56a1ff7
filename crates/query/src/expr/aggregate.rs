//! Accumulators as expressions: `$sum`, `$avg`, `$min`, `$max`, the deviations, `$median`,
//! `$percentile`. A single argument that is an array stands for its elements; several arguments are
//! used as they are.

use std::cmp::Ordering;

use bson::Bson;

use super::args::{Args, computed};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::{call, named};
use super::{Expr, Scope};
use crate::accumulator::{Extreme, Moments, NumberSum, parse_method, percentiles, quantile_of};
use crate::number::Number;
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$sum", sum),
    Function::any("$avg", average),
    Function::any("$min", |args| extreme(args, Ordering::Less)),
    Function::any("$max", |args| extreme(args, Ordering::Greater)),
    Function::any("$stdDevPop", |args| computed(moments(args)?.population())),
    Function::any("$stdDevSamp", |args| computed(moments(args)?.sample())),
    Function::own("$median", parse_median, quantile),
    Function::own("$percentile", parse_percentile, quantile),
];

/// Calls `take` with every value to aggregate.
fn each(args: &Args<'_>, mut take: impl FnMut(&Bson)) -> Result<()> {
    let alone = args.len() == 1;
    for value in args.values() {
        match value?.as_deref() {
            Some(Bson::Array(items)) if alone => {
                for item in items {
                    meter::step()?;
                    take(item);
                }
            }
            Some(value) => take(value),
            None => {}
        }
    }
    Ok(())
}

fn sum<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut sum = NumberSum::default();
    each(args, |value| {
        if let Some(number) = Number::from_bson(value) {
            sum.add(number);
        }
    })?;
    computed(sum.value())
}

fn average<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (mut sum, mut count) = (NumberSum::default(), 0_i64);
    each(args, |value| {
        if let Some(number) = Number::from_bson(value) {
            sum.add(number);
            count += 1;
        }
    })?;
    computed(if count == 0 {
        Bson::Null
    } else {
        sum.average(count)
    })
}

fn extreme<'e>(args: &Args<'e>, wanted: Ordering) -> Result<Value<'e>> {
    let mut found = Extreme::default();
    each(args, |value| found.add(value, wanted, args.collator()))?;
    computed(found.finish())
}

fn moments(args: &Args<'_>) -> Result<Moments> {
    let mut moments = Moments::default();
    each(args, |value| {
        if let Some(number) = Number::from_bson(value) {
            moments.add(number.to_f64());
        }
    })?;
    Ok(moments)
}

const MEDIAN: Signature = Signature {
    name: "$median",
    not_object: (
        7_436_100,
        "specification must be an object; found {op}: {type}",
    ),
    unknown: (40_415, "BSON field '{op}.{field}' is an unknown field."),
    fields: &[
        Field::required("input", 40_414, MISSING),
        Field::required("method", 40_414, MISSING),
    ],
};

const PERCENTILE: Signature = Signature {
    name: "$percentile",
    not_object: MEDIAN.not_object,
    unknown: MEDIAN.unknown,
    fields: &[
        Field::required("input", 40_414, MISSING),
        Field::required("method", 40_414, MISSING),
        Field::required("p", 40_414, MISSING),
    ],
};

const MISSING: &str = "BSON field '{op}.{field}' is missing but a required field";

fn parse_median(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish(function, &MEDIAN, operand, scope)
}

fn parse_percentile(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish(function, &PERCENTILE, operand, scope)
}

fn finish(
    function: &'static Function,
    signature: &Signature,
    operand: &Bson,
    scope: &Scope,
) -> Result<Expr> {
    let arguments = named(signature, operand, scope)?;
    let constant = |at: usize| arguments.get(at)?.as_ref()?.as_constant();
    match constant(1) {
        Some(method) => {
            parse_method(method)?;
        }
        None => return Err(Error::bad_value("'method' must be a constant string")),
    }
    if let Some(p) = constant(2) {
        percentiles(p)?;
    }
    Ok(call(function, arguments, Prepared::None, scope))
}

fn quantile<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut numbers = Vec::new();
    let mut take = |value: &Bson| {
        meter::step()?;
        meter::charge(args.name(), size_of::<f64>())?;
        let number = Number::from_bson(value).map(Number::to_f64);
        numbers.extend(number.filter(|number| !number.is_nan()));
        Ok::<(), Error>(())
    };
    match args.value(0)?.as_deref() {
        Some(Bson::Array(items)) => items.iter().try_for_each(&mut take)?,
        Some(value) => take(value)?,
        None => {}
    }
    let numbers = meter::sort_by(numbers, f64::total_cmp)?;
    let method = parse_method(args.value(1)?.as_deref().unwrap_or(&Bson::Null))?;
    if !args.given(2) {
        return computed(quantile_of(&numbers, 0.5, method));
    }
    let p = percentiles(args.value(2)?.as_deref().unwrap_or(&Bson::Null))?;
    let mut found: Vec<Bson> = Vec::new();
    for p in p {
        meter::step()?;
        meter::charge(args.name(), size_of::<Bson>())?;
        found.push(quantile_of(&numbers, p, method));
    }
    computed(found)
}
