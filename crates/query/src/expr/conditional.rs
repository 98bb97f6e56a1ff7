//! `$and`, `$or`, `$not`, `$cond`, `$ifNull`, `$switch`: arguments are evaluated only when needed.

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::{call, named, positional};
use super::{Expr, Scope, call::Prepared};
use crate::value;
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$and", and),
    Function::any("$or", or),
    Function::exactly("$not", 1, not),
    Function::own("$cond", parse_cond, cond),
    Function::between("$ifNull", 2, usize::MAX, if_null),
    Function::own("$switch", parse_switch, switch),
];

/// Whether a value is true: all but false, null, missing and zeros.
pub(super) fn truthy(value: &Value<'_>) -> bool {
    value.as_deref().is_some_and(value::truthy)
}

fn and<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    for value in args.values() {
        if !truthy(&value?) {
            return computed(false);
        }
    }
    computed(true)
}

fn or<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    for value in args.values() {
        if truthy(&value?) {
            return computed(true);
        }
    }
    computed(false)
}

fn not<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    computed(!truthy(&args.value(0)?))
}

const COND: Signature = Signature {
    name: "$cond",
    not_object: (
        16_020,
        "Expression $cond takes exactly 3 arguments. 1 were passed in.",
    ),
    unknown: (17_083, "Unrecognized parameter to $cond: {field}"),
    fields: &[
        Field::required("if", 17_080, "Missing 'if' parameter to $cond"),
        Field::required("then", 17_080, "Missing 'then' parameter to $cond"),
        Field::required("else", 17_080, "Missing 'else' parameter to $cond"),
    ],
};

fn parse_cond(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let arguments = match operand {
        Bson::Document(_) => named(&COND, operand, scope)?,
        _ => positional(function, (3, 3), operand, scope)?,
    };
    Ok(call(function, arguments, Prepared::None, scope))
}

fn cond<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let chosen = if truthy(&args.value(0)?) { 1 } else { 2 };
    args.value(chosen)
}

fn if_null<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let last = args.len().saturating_sub(1);
    for at in 0..last {
        let value = args.value(at)?;
        if !is_nullish(&value) {
            return Ok(value);
        }
    }
    args.value(last)
}

const SWITCH: Signature = Signature {
    name: "$switch",
    not_object: (
        40_060,
        "{op} requires an object as an argument, found: {type}",
    ),
    unknown: (40_067, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("branches", 40_068, "{op} requires at least one branch."),
        Field::optional("default"),
    ],
};

const BRANCH: Signature = Signature {
    name: "$switch",
    not_object: (
        40_062,
        "{op} expected each branch to be an object, found: {type}",
    ),
    unknown: (
        40_063,
        "{op} found an unknown argument to a branch: {field}",
    ),
    fields: &[
        Field::required(
            "case",
            40_064,
            "{op} requires each branch have a 'case' expression",
        ),
        Field::required(
            "then",
            40_065,
            "{op} requires each branch have a 'then' expression.",
        ),
    ],
};

/// Parses the operand; the arguments are the default, then the case and the value of each branch.
fn parse_switch(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = SWITCH.read(operand)?;
    let branches = match fields.first().copied().flatten() {
        Some(Bson::Array(branches)) => branches,
        other => {
            let found = other.map_or("missing", value::type_name);
            return Err(Error::location(
                40_061,
                format!("$switch expected an array for 'branches', found: {found}"),
            ));
        }
    };
    if branches.is_empty() {
        return fail(40_068, "$switch requires at least one branch.");
    }
    let otherwise = fields.get(1).copied().flatten();
    let mut arguments = vec![otherwise.map(|spec| Expr::parse(spec, scope)).transpose()?];
    for branch in branches {
        arguments.extend(named(&BRANCH, branch, scope)?);
    }
    Ok(call(function, arguments, Prepared::None, scope))
}

fn switch<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    for case in (1..args.len()).step_by(2) {
        if truthy(&args.value(case)?) {
            return args.value(case + 1);
        }
    }
    if args.given(0) {
        return args.value(0);
    }
    fail(
        40_066,
        "$switch could not find a matching branch for an input, and no default was specified.",
    )
}
