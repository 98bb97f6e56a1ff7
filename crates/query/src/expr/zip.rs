//! `$zip`: combines arrays element by element.

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::call;
use super::{Expr, Scope};
use crate::value::type_name;
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[Function::own("$zip", parse, zip)];

const ZIP: Signature = Signature {
    name: "$zip",
    not_object: (
        34_460,
        "{op} only supports an object as an argument, found {type}",
    ),
    unknown: (34_464, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("inputs", 34_465, "{op} requires at least one input array"),
        Field::optional("defaults"),
        Field::optional("useLongestLength"),
    ],
};

/// Parses the operand; the arguments are `useLongestLength`, the inputs, then one default for each
/// input.
fn parse(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = ZIP.read(operand)?;
    let field = |at: usize| fields.get(at).copied().flatten();
    let list = |spec: Option<&Bson>, code: i32, name: &str| match spec {
        None => Ok(Vec::new()),
        Some(Bson::Array(items)) => items
            .iter()
            .map(|item| Expr::parse(item, scope).map(Some))
            .collect::<Result<Vec<_>>>(),
        Some(other) => Err(Error::location(
            code,
            format!(
                "{name} must be an array of expressions, found {}",
                type_name(other)
            ),
        )),
    };
    let inputs = list(field(0), 34_461, "inputs")?;
    let mut defaults = list(field(1), 34_462, "defaults")?;
    let longest = match field(2) {
        None => false,
        Some(Bson::Boolean(longest)) => *longest,
        Some(other) => {
            return fail(
                34_463,
                format!(
                    "useLongestLength must be a bool, found {}",
                    type_name(other)
                ),
            );
        }
    };
    if inputs.is_empty() {
        return fail(34_465, "$zip requires at least one input array");
    }
    if !longest && !defaults.is_empty() {
        return fail(
            34_466,
            "cannot specify defaults unless useLongestLength is true",
        );
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return fail(34_467, "defaults and inputs must have the same length");
    }
    defaults.resize(inputs.len(), None);
    let mut arguments = vec![Some(Expr::constant(Bson::Boolean(longest)))];
    arguments.extend(inputs);
    arguments.extend(defaults);
    Ok(call(function, arguments, Prepared::None, scope))
}

fn zip<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let longest = matches!(args.value(0)?.as_deref(), Some(Bson::Boolean(true)));
    let count = (args.len() - 1) / 2;
    let mut inputs = Vec::with_capacity(count);
    for at in 1..=count {
        let value = args.value(at)?;
        if is_nullish(&value) {
            return null();
        }
        match value.as_deref() {
            Some(Bson::Array(_)) => inputs.push(value),
            _ => {
                return fail(
                    34_468,
                    format!(
                        "$zip found a non-array expression in input: {}",
                        type_of(&value)
                    ),
                );
            }
        }
    }
    let mut defaults = Vec::with_capacity(count);
    for at in 0..count {
        let default = args.kept(1 + count + at)?;
        defaults.push(default.unwrap_or(Bson::Null));
    }
    let arrays: Vec<&Vec<Bson>> = inputs
        .iter()
        .filter_map(|value| value.as_deref()?.as_array())
        .collect();
    let lengths = arrays.iter().map(|items| items.len());
    let rows = if longest {
        lengths.max()
    } else {
        lengths.min()
    }
    .unwrap_or(0);
    let mut zipped: Vec<Bson> = Vec::new();
    for at in 0..rows {
        meter::charge("$zip", size_of::<Bson>())?;
        let items = arrays.iter().zip(&defaults);
        let row = items.map(|(items, default)| items.get(at).unwrap_or(default));
        zipped.push(Bson::Array(meter::copies("$zip", row)?));
    }
    computed(zipped)
}
