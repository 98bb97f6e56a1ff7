//! The expression of `$bucket`: the greatest boundary that is not above a value.
//!
//! It gives what a `$switch` with a case for each pair of boundaries would, without copies of the
//! value's expression, and by a binary search.

use std::borrow::Cow;
use std::cmp::Ordering;

use bson::Bson;

use super::args::{Args, fail};
use super::call::Prepared;
use super::compare::compare_values;
use super::env::Value;
use super::function::{Function, Shape};
use super::parse::call;
use super::{Expr, Scope};
use crate::Result;

/// Errors and memory are those of `$switch`, as in MongoDB.
static FUNCTION: Function = Function {
    name: "$switch",
    shape: Shape::Positional(1, 2),
    evaluate: boundary,
};

impl Expr {
    /// The boundary below the value of `group_by`, or `default` for a value outside of the
    /// boundaries, which ascend.
    pub(crate) fn boundary(
        group_by: Expr,
        boundaries: Vec<Bson>,
        default: Option<Bson>,
        scope: &Scope,
    ) -> Expr {
        let arguments = vec![Some(group_by), default.map(Expr::constant)];
        let prepared = Prepared::Boundaries(boundaries.into());
        call(&FUNCTION, arguments, prepared, scope)
    }
}

fn boundary<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let Prepared::Boundaries(boundaries) = args.prepared() else {
        return args.value(1);
    };
    let value = args.value(0)?;
    let is_above = |boundary: &Bson| {
        let boundary = Some(Cow::Borrowed(boundary));
        compare_values(&value, &boundary, args.collator()) != Ordering::Less
    };
    let below = boundaries.partition_point(is_above);
    // The last boundary is the end of the last bucket.
    let found = below.checked_sub(1).filter(|_| below < boundaries.len());
    if let Some(boundary) = found.and_then(|at| boundaries.get(at)) {
        return Ok(Some(Cow::Borrowed(boundary)));
    }
    if args.given(1) {
        return args.value(1);
    }
    fail(
        40_066,
        "$switch could not find a matching branch for an input, and no default was specified.",
    )
}
