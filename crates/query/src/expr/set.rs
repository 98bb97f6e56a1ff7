//! Sets: arrays without regard to order and repetition.
//!
//! Unions and intersections come sorted, differences in the order of the first array.

use std::collections::HashSet;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use crate::Result;
use crate::collation::Collator;
use crate::value::{compare_with, equivalence_key, truthy};

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

fn keys(items: &[Bson], collator: Option<&Collator>) -> Keys {
    let keys = items.iter().map(|item| equivalence_key(item, collator));
    keys.collect()
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

fn sorted(mut items: Vec<Bson>, collator: Option<&Collator>) -> Vec<Bson> {
    items.sort_by(|left, right| compare_with(left, right, collator));
    items
}

fn union<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (mut seen, mut united) = (Keys::new(), Vec::new());
    for value in args.values() {
        let value = value?;
        if is_nullish(&value) {
            return null();
        }
        for item in items(args, &value, 17_043)? {
            if seen.insert(equivalence_key(item, args.collator())) {
                united.push(item.clone());
            }
        }
    }
    computed(sorted(united, args.collator()))
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
            None => distinct(found, &Keys::new(), args.collator()),
            Some(mut common) => {
                let keys = keys(found, args.collator());
                common.retain(|item| keys.contains(&equivalence_key(item, args.collator())));
                common
            }
        });
    }
    computed(sorted(common.unwrap_or_default(), args.collator()))
}

/// The items that are not in `without`, each once.
fn distinct(items: &[Bson], without: &Keys, collator: Option<&Collator>) -> Vec<Bson> {
    let mut seen = without.clone();
    items
        .iter()
        .filter(|item| seen.insert(equivalence_key(item, collator)))
        .cloned()
        .collect()
}

/// Two arrays, with the codes of their refusals.
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
    computed(distinct(
        left,
        &keys(right, args.collator()),
        args.collator(),
    ))
}

fn is_subset<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (left, right) = (args.value(0)?, args.value(1)?);
    let (left, right) = both(args, &left, &right, (17_046, 17_042))?;
    let all = keys(right, args.collator());
    computed(keys(left, args.collator()).is_subset(&all))
}

fn equals<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut first: Option<Keys> = None;
    for value in args.values() {
        let value = value?;
        let found = keys(items(args, &value, 17_044)?, args.collator());
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
        Some(Bson::Array(items)) => computed(test(items)),
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
