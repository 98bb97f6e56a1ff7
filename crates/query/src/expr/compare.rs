//! `$eq`, `$cmp` and similar operators: the order of BSON values of all types, with missing below
//! all others.

use std::cmp::Ordering;

use super::args::{Args, computed};
use super::env::Value;
use super::function::Function;
use crate::Result;
use crate::collation::Collator;
use crate::value::compare_with;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::exactly("$cmp", 2, cmp),
    Function::exactly("$eq", 2, |args| computed(order(args)?.is_eq())),
    Function::exactly("$ne", 2, |args| computed(order(args)?.is_ne())),
    Function::exactly("$gt", 2, |args| computed(order(args)?.is_gt())),
    Function::exactly("$gte", 2, |args| computed(order(args)?.is_ge())),
    Function::exactly("$lt", 2, |args| computed(order(args)?.is_lt())),
    Function::exactly("$lte", 2, |args| computed(order(args)?.is_le())),
];

/// The order of two values; a missing one is below null and above `MinKey`.
pub(crate) fn compare_values(
    left: &Value<'_>,
    right: &Value<'_>,
    collator: Option<&Collator>,
) -> Ordering {
    match (left.as_deref(), right.as_deref()) {
        (Some(left), Some(right)) => compare_with(left, right, collator),
        (None, None) => Ordering::Equal,
        (None, Some(bson::Bson::MinKey)) => Ordering::Greater,
        (Some(bson::Bson::MinKey), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    }
}

fn order(args: &Args<'_>) -> Result<Ordering> {
    Ok(compare_values(
        &args.value(0)?,
        &args.value(1)?,
        args.collator(),
    ))
}

fn cmp<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(match order(args)? {
        Ordering::Less => -1_i32,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
