//! Set operators: arrays without regard to order and repetition.
//!
//! Unions and intersections are sorted; differences have the order of the first array.

use std::collections::HashSet;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use crate::collation::Collator;
use crate::value::{compare_with, equivalence_key, truthy};
use crate::{Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$setUnion", union),
    Function::any("$setIntersection", intersection),
    Function::exactly("$setDifference", 2, difference),
    Function::own("$setEquals", parse_equals, equals),
    Function::exactly("$setIsSubset", 2, is_subset),
    Function::exactly("$anyElementTrue", 1, |args| {
        elements(args, 17_041, |items| items.iter().any(truthy))
    }),
    Function::exactly("$allElementsTrue", 1, |args| {
        elements(args, 17_040, |items| items.iter().all(truthy))
    }),
];

fn parse_equals(
    function: &'static Function,
    operand: &Bson,
    scope: &super::Scope,
) -> Result<super::Expr> {
    let count = operand.as_array().map_or(1, Vec::len);
    if count < 2 {
        return fail(
            17_045,
            format!("$setEquals needs at least two arguments had: {count}"),
        );
    }
    let arguments = super::parse::positional(function, (2, usize::MAX), operand, scope)?;
    Ok(super::parse::call(
        function,
        arguments,
        super::call::Prepared::None,
        scope,
    ))
}

type Keys = HashSet<Vec<u8>>;

/// Bytes of a set entry in addition to its key.
const KEY: usize = 64;

fn key(item: &Bson, collator: Option<&Collator>) -> Result<Vec<u8>> {
    meter::step()?;
    let key = equivalence_key(item, collator);
    meter::read(key.len())?;
    meter::charge("A set", KEY + key.len())?;
    Ok(key)
}

fn keys(items: &[Bson], collator: Option<&Collator>) -> Result<Keys> {
    items.iter().map(|item| key(item, collator)).collect()
}

fn items<'v>(args: &Args<'_>, value: &'v Value<'_>, code: i32) -> Result<&'v [Bson]> {
    match value.as_deref() {
        Some(Bson::Array(items)) => Ok(items),
        _ => fail(
            code,
            format!(
                "All operands of {} must be arrays. One argument is of type: {}",
                args.name(),
                type_of(value)
            ),
        ),
    }
}

fn sorted(items: Vec<Bson>, collator: Option<&Collator>) -> Result<Vec<Bson>> {
    meter::sort_by(items, |left, right| compare_with(left, right, collator))
}

fn union<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (mut seen, mut united) = (Keys::new(), Vec::new());
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        for item in items(args, &value, 17_043)? {
            if seen.insert(key(item, args.collator())?) {
                united.push(meter::copy("$setUnion", item)?);
            }
        }
    }
    computed(sorted(united, args.collator())?)
}

fn intersection<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut common: Option<Vec<Bson>> = None;
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        let found = items(args, &value, 17_047)?;
        common = Some(match common {
            None => distinct(args, found, Keys::new())?,
            Some(common) => {
                let keys = keys(found, args.collator())?;
                let mut left = Vec::new();
                for item in common {
                    if keys.contains(&key(&item, args.collator())?) {
                        left.push(item);
                    }
                }
                left
            }
        });
    }
    computed(sorted(common.unwrap_or_default(), args.collator())?)
}

/// The items that are not in `seen`; repeated items once.
fn distinct(args: &Args<'_>, items: &[Bson], mut seen: Keys) -> Result<Vec<Bson>> {
    let mut found = Vec::new();
    for item in items {
        if seen.insert(key(item, args.collator())?) {
            found.push(meter::copy(args.name(), item)?);
        }
    }
    Ok(found)
}

/// Both arguments as arrays; `codes` are the error codes for arguments that are not arrays.
fn both<'v>(
    args: &Args<'_>,
    left: &'v Value<'_>,
    right: &'v Value<'_>,
    codes: (i32, i32),
) -> Result<(&'v [Bson], &'v [Bson])> {
    let refuse = |code: i32, position: &str, found: &Value<'_>| {
        fail(
            code,
            format!(
                "both operands of {} must be arrays. {position} argument is of type: {}",
                args.name(),
                type_of(found)
            ),
        )
    };
    match (left.as_deref(), right.as_deref()) {
        (Some(Bson::Array(left)), Some(Bson::Array(right))) => Ok((left, right)),
        (Some(Bson::Array(_)), _) => refuse(codes.1, "Second", right),
        _ => refuse(codes.0, "First", left),
    }
}

fn difference<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (left, right) = (args.value(0)?, args.value(1)?);
    if is_nullish(&left) || is_nullish(&right) {
        return null();
    }
    let (left, right) = both(args, &left, &right, (17_048, 17_049))?;
    computed(distinct(args, left, keys(right, args.collator())?)?)
}

fn is_subset<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (left, right) = (args.value(0)?, args.value(1)?);
    let (left, right) = both(args, &left, &right, (17_046, 17_042))?;
    let all = keys(right, args.collator())?;
    computed(keys(left, args.collator())?.is_subset(&all))
}

fn equals<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut first: Option<Keys> = None;
    for value in args.values() {
        let value = value?;
        let found = keys(items(args, &value, 17_044)?, args.collator())?;
        match &first {
            Some(first) if *first != found => return computed(false),
            Some(_) => {}
            None => first = Some(found),
        }
    }
    computed(true)
}

fn elements<'e>(args: &Args<'e>, code: i32, test: fn(&[Bson]) -> bool) -> Result<Value<'e>> {
    let value = args.value(0)?;
    match value.as_deref() {
        Some(Bson::Array(items)) => {
            meter::steps(items.len())?;
            computed(test(items))
        }
        _ => fail(
            code,
            format!(
                "{}'s argument must be an array, but is {}",
                args.name(),
                type_of(&value)
            ),
        ),
    }
}
