//! `$let`, `$map`, `$filter`, `$reduce`: expressions that define variables.
//!
//! The variables of a call get consecutive levels, in the order of their names; the first one gets
//! the level of the call.

use std::borrow::Cow;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::call::{Call, Prepared};
use super::env::{Frame, Value};
use super::function::Function;
use super::named::{Field, Signature};
use super::node::Node;
use super::variable::check_user_name;
use super::{Expr, Scope};
use crate::number::Number;
use crate::value;
use crate::{Code, Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::own("$let", parse_let, bind),
    Function::own("$map", parse_map, map),
    Function::own("$filter", parse_filter, filter),
    Function::own("$reduce", parse_reduce, reduce),
];

const LET: Signature = Signature {
    name: "$let",
    not_object: (16_874, "{op} only supports an object as its argument"),
    unknown: (16_875, "Unrecognized parameter to {op}: {field}"),
    fields: &[
        Field::required("vars", 16_876, "Missing 'vars' parameter to {op}"),
        Field::required("in", 16_877, "Missing 'in' parameter to {op}"),
    ],
};

const MAP: Signature = Signature {
    name: "$map",
    not_object: (16_878, "{op} only supports an object as its argument"),
    unknown: (16_879, "Unrecognized parameter to {op}: {field}"),
    fields: &[
        Field::required("input", 16_880, "Missing 'input' parameter to {op}"),
        Field::optional("as"),
        Field::required("in", 16_882, "Missing 'in' parameter to {op}"),
    ],
};

const FILTER: Signature = Signature {
    name: "$filter",
    not_object: (28_646, "{op} only supports an object as its argument"),
    unknown: (28_647, "Unrecognized parameter to {op}: {field}"),
    fields: &[
        Field::required("input", 28_648, "Missing 'input' parameter to {op}"),
        Field::optional("as"),
        Field::required("cond", 28_650, "Missing 'cond' parameter to {op}"),
        Field::optional("limit"),
    ],
};

const REDUCE: Signature = Signature {
    name: "$reduce",
    not_object: (
        40_075,
        "{op} requires an object as an argument, found: {type}",
    ),
    unknown: (40_076, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("input", 40_077, "{op} requires 'input' to be specified"),
        Field::required(
            "initialValue",
            40_078,
            "{op} requires 'initialValue' to be specified",
        ),
        Field::required("in", 40_079, "{op} requires 'in' to be specified"),
    ],
};

fn make(function: &'static Function, arguments: Vec<Option<Expr>>, scope: &Scope) -> Expr {
    let call = Call {
        function,
        arguments,
        level: scope.next_level(),
        collator: scope.collator().cloned(),
        prepared: Prepared::None,
    };
    Expr {
        node: Node::Call(Box::new(call)),
    }
}

/// Parses the operand; the arguments are the body, then the values of the variables.
fn parse_let(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = LET.read(operand)?;
    let (Some(vars), Some(body)) = (field(&fields, 0), field(&fields, 1)) else {
        return fail(16_876, "Missing 'vars' parameter to $let");
    };
    let Bson::Document(vars) = vars else {
        return Err(Error::location(
            10_065,
            format!(
                "invalid parameter: expected an object (vars), found: {}",
                value::type_name(vars)
            ),
        ));
    };
    let (mut inner, mut values) = (scope.clone(), vec![None]);
    for (name, spec) in vars {
        check_user_name(name)?;
        values.push(Some(Expr::parse(spec, scope)?));
        (inner, _) = inner.bind(name);
    }
    let body = Expr::parse(body, &inner)?;
    if let Some(first) = values.first_mut() {
        *first = Some(body);
    }
    Ok(make(function, values, scope))
}

fn field<'b>(fields: &[Option<&'b Bson>], at: usize) -> Option<&'b Bson> {
    fields.get(at).copied().flatten()
}

fn bind<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let values: Vec<Value<'e>> = args.values().skip(1).collect::<Result<_>>()?;
    let found = with_values(args, 0, &values)?;
    Ok(found.map(Cow::Owned))
}

/// Evaluates the argument at `body` with `values` for the variables of the call.
fn with_values(args: &Args<'_>, body: usize, values: &[Value<'_>]) -> Result<Option<Bson>> {
    let Some(body) = args.expr(body) else {
        return Ok(None);
    };
    let frame = Frame {
        level: args.level(),
        values,
        parent: args.env().frame(),
    };
    meter::step()?;
    body.kept(&args.env().with(&frame))
}

/// The name given by `as`; `this` by default.
fn variable_name(spec: Option<&Bson>, function: &Function) -> Result<Box<str>> {
    match spec {
        None => Ok("this".into()),
        Some(Bson::String(name)) => {
            check_user_name(name)?;
            Ok(name.as_str().into())
        }
        Some(other) => Err(Error::location(
            10_065,
            format!(
                "{}: 'as' must be a string, found: {}",
                function.name,
                value::type_name(other)
            ),
        )),
    }
}

fn parse_map(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = MAP.read(operand)?;
    let name = variable_name(field(&fields, 1), function)?;
    let (inner, _) = scope.bind(&name);
    let input = optional(field(&fields, 0), scope)?;
    let body = optional(field(&fields, 2), &inner)?;
    Ok(make(function, vec![input, body], scope))
}

fn optional(spec: Option<&Bson>, scope: &Scope) -> Result<Option<Expr>> {
    spec.map(|spec| Expr::parse(spec, scope)).transpose()
}

fn map<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let input = args.value(0)?;
    if is_nullish(&input) {
        return null();
    }
    let Some(Bson::Array(items)) = input.as_deref() else {
        return fail(
            16_883,
            format!("input to $map must be an array not {}", type_of(&input)),
        );
    };
    let mut mapped = Vec::new();
    for item in items {
        mapped.push(with_values(args, 1, &[Some(Cow::Borrowed(item))])?.unwrap_or(Bson::Null));
    }
    computed(mapped)
}

fn parse_filter(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = FILTER.read(operand)?;
    let name = variable_name(field(&fields, 1), function)?;
    let (inner, _) = scope.bind(&name);
    let arguments = vec![
        optional(field(&fields, 0), scope)?,
        optional(field(&fields, 2), &inner)?,
        optional(field(&fields, 3), scope)?,
    ];
    Ok(make(function, arguments, scope))
}

fn filter<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let input = args.value(0)?;
    if is_nullish(&input) {
        return null();
    }
    let Some(Bson::Array(items)) = input.as_deref() else {
        return fail(
            28_651,
            format!("input to $filter must be an array not {}", type_of(&input)),
        );
    };
    let limit = filter_limit(&args.value(2)?)?;
    let mut kept = Vec::new();
    for item in items {
        if kept.len() >= limit {
            break;
        }
        let scope = meter::scope();
        let chosen = with_values(args, 1, &[Some(Cow::Borrowed(item))])?;
        drop(scope);
        if chosen.is_some_and(|value| value::truthy(&value)) {
            kept.push(meter::copy("$filter", item)?);
        }
    }
    computed(kept)
}

fn filter_limit(limit: &Value<'_>) -> Result<usize> {
    if is_nullish(limit) {
        return Ok(usize::MAX);
    }
    let number = limit.as_deref().and_then(Number::from_bson);
    let Some(whole) = number.and_then(|number| number.to_i32_exact()) else {
        return fail(
            327_391,
            format!(
                "$filter: limit must be represented as a 32-bit integral value: {}",
                limit.as_deref().unwrap_or(&Bson::Null)
            ),
        );
    };
    match usize::try_from(whole) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => fail(
            327_392,
            format!("$filter: limit must be greater than 0: {whole}"),
        ),
    }
}

fn parse_reduce(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = REDUCE.read(operand)?;
    let (with_this, _) = scope.bind("this");
    let (inner, _) = with_this.bind("value");
    let arguments = vec![
        optional(field(&fields, 0), scope)?,
        optional(field(&fields, 1), scope)?,
        optional(field(&fields, 2), &inner)?,
    ];
    Ok(make(function, arguments, scope))
}

fn reduce<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let input = args.value(0)?;
    if is_nullish(&input) {
        return null();
    }
    let Some(Bson::Array(items)) = input.as_deref() else {
        return fail(
            40_080,
            format!(
                "$reduce requires that 'input' be an array, found: {}",
                input.as_deref().unwrap_or(&Bson::Null)
            ),
        );
    };
    let mut total = args.kept(1)?;
    for (at, item) in items.iter().enumerate() {
        let before = total.as_ref().map_or(0, meter::size);
        let bound = [Some(Cow::Borrowed(item)), total.map(Cow::Owned)];
        total = with_values(args, 2, &bound)?;
        meter::release(before);
        if (at + 1) % CHECKED_STEPS == 0 || at + 1 == items.len() {
            check_depth(total.as_ref(), MAX_VALUE_DEPTH)?;
        }
    }
    Ok(total.map(Cow::Owned))
}

/// Maximum nesting of values, the same as that of expressions.
const MAX_VALUE_DEPTH: u32 = 200;

/// Number of steps of `$reduce` between checks of the nesting of its value. One step adds at most
/// the depth of an expression; a check reads the whole value.
const CHECKED_STEPS: usize = 16;

/// Refuses values whose nesting is so deep that dropping or comparing them would exhaust the stack.
fn check_depth(value: Option<&Bson>, left: u32) -> Result<()> {
    let Some(below) = left.checked_sub(1) else {
        return Err(Error::new(
            Code::OVERFLOW,
            format!("$reduce: the value exceeds the maximum nesting depth of {MAX_VALUE_DEPTH}"),
        ));
    };
    match value {
        Some(Bson::Array(items)) => items
            .iter()
            .try_for_each(|item| check_depth(Some(item), below)),
        Some(Bson::Document(document)) => document
            .values()
            .try_for_each(|item| check_depth(Some(item), below)),
        _ => Ok(()),
    }
}
