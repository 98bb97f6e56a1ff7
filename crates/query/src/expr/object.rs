//! Object operators: merging, single fields by any name, and conversion to arrays and from arrays.

use std::borrow::Cow;

use bson::{Bson, Document, doc};

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::{call, named};
use super::string::count_bson;
use super::{Expr, Scope};
use crate::accumulator::merge_object;
use crate::value::type_name;
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::any("$mergeObjects", merge),
    Function::exactly("$objectToArray", 1, to_array),
    Function::exactly("$arrayToObject", 1, from_array),
    Function::own("$getField", parse_get, get),
    Function::own("$setField", parse_set, set),
    Function::own("$unsetField", parse_unset, set),
    Function::exactly("$bsonSize", 1, bson_size),
    Function::exactly("$binarySize", 1, binary_size),
];

/// Bytes of a pair of `$objectToArray` without its name and its value: three values and two
/// entries.
const PAIR: usize = 3 * size_of::<Bson>() + 192;

fn merge<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let mut merged = Document::new();
    for at in 0..args.len() {
        if let Some(value) = args.kept(at)? {
            merge_object(&mut merged, value)?;
        }
    }
    computed(merged)
}

fn to_array<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    match value.as_deref() {
        Some(Bson::Document(document)) => {
            let mut pairs: Vec<Bson> = Vec::new();
            for (name, value) in document {
                meter::charge("$objectToArray", PAIR + name.len())?;
                let value = meter::copy("$objectToArray", value)?;
                pairs.push(Bson::Document(doc! { "k": name, "v": value }));
            }
            computed(pairs)
        }
        _ => fail(
            40_390,
            format!(
                "$objectToArray requires a document input, found: {}",
                type_of(&value)
            ),
        ),
    }
}

fn from_array<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    let Some(Bson::Array(items)) = value.as_deref() else {
        return fail(
            40_386,
            format!(
                "$arrayToObject requires an array input, found: {}",
                type_of(&value)
            ),
        );
    };
    let mut object = Document::new();
    let arrays = matches!(items.first(), Some(Bson::Array(_)));
    for item in items {
        let (name, value) = match item {
            Bson::Array(pair) if arrays => pair_of_array(pair)?,
            Bson::Document(pair) if !arrays => pair_of_object(pair)?,
            Bson::Array(_) | Bson::Document(_) => return Err(inconsistent(arrays, item)),
            _ if object.is_empty() && !arrays => {
                return fail(
                    40_398,
                    format!(
                        "Unrecognised input type format for $arrayToObject: {}",
                        type_name(item)
                    ),
                );
            }
            _ => return Err(inconsistent(arrays, item)),
        };
        if name.contains('\0') {
            return fail(4_940_400, "Key field cannot contain an embedded null byte");
        }
        meter::charge("$arrayToObject", meter::entry(name))?;
        object.insert(name, meter::copy("$arrayToObject", value)?);
    }
    computed(object)
}

fn inconsistent(arrays: bool, found: &Bson) -> Error {
    let (code, kind) = if arrays {
        (40_396, "Array")
    } else {
        (40_391, "Object")
    };
    Error::location(
        code,
        format!(
            "$arrayToObject requires a consistent input format. Elements must all be arrays or \
             all be objects. {kind} was detected, now found: {}",
            type_name(found)
        ),
    )
}

fn pair_of_array(pair: &[Bson]) -> Result<(&str, &Bson)> {
    match pair {
        [Bson::String(name), value] => Ok((name, value)),
        [other, _] => fail(
            40_395,
            format!(
                "$arrayToObject requires an array of key-value pairs, where the key must be of \
                 type string. Found key type: {}",
                type_name(other)
            ),
        ),
        _ => fail(
            40_397,
            format!(
                "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
                pair.len()
            ),
        ),
    }
}

fn pair_of_object(pair: &Document) -> Result<(&str, &Bson)> {
    if pair.len() != 2 {
        return fail(
            40_392,
            format!(
                "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of \
                 keys:{}",
                pair.len()
            ),
        );
    }
    match (pair.get("k"), pair.get("v")) {
        (Some(Bson::String(name)), Some(value)) => Ok((name, value)),
        (Some(other), Some(_)) => fail(
            40_394,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' \
                 must be of type string. Found type: {}",
                type_name(other)
            ),
        ),
        _ => fail(
            40_393,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both \
                 keys from: {pair}"
            ),
        ),
    }
}

const GET: Signature = Signature {
    name: "$getField",
    not_object: (3_041_700, "{op} only supports an object as its argument"),
    unknown: (3_041_701, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("field", 3_041_702, "{op} requires 'field' to be specified"),
        Field::required("input", 3_041_703, "{op} requires 'input' to be specified"),
    ],
};

const SET: Signature = Signature {
    name: "$setField",
    not_object: (4_161_100, "{op} only supports an object as its argument"),
    unknown: (4_161_101, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("field", 4_161_102, "{op} requires 'field' to be specified"),
        Field::required("input", 4_161_109, "{op} requires 'input' to be specified"),
        Field::required("value", 4_161_103, "{op} requires 'value' to be specified"),
    ],
};

const UNSET: Signature = Signature {
    name: "$unsetField",
    not_object: SET.not_object,
    unknown: SET.unknown,
    fields: &[
        Field::required("field", 4_161_102, "{op} requires 'field' to be specified"),
        Field::required("input", 4_161_109, "{op} requires 'input' to be specified"),
    ],
};

/// Parses the operand; a name without `input` reads a field of the document.
fn parse_get(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let is_spec = |document: &Document| {
        let first = document.keys().next();
        first.is_some_and(|name| !name.starts_with('$'))
    };
    let arguments = match operand {
        Bson::Document(document) if is_spec(document) => named(&GET, operand, scope)?,
        name => {
            let current = super::variable::parse("$$CURRENT", scope)?;
            vec![Some(Expr::parse(name, scope)?), Some(current)]
        }
    };
    check_constant_name(function, &arguments, 5_654_602)?;
    Ok(call(function, arguments, Prepared::None, scope))
}

/// Refuses a constant name that is not a string.
fn check_constant_name(function: &Function, arguments: &[Option<Expr>], code: i32) -> Result<()> {
    let name = arguments.first().and_then(Option::as_ref);
    match name.and_then(Expr::as_constant) {
        None | Some(Bson::String(_)) => Ok(()),
        Some(other) => Err(not_a_name(function.name, code, type_name(other))),
    }
}

fn not_a_name(operator: &str, code: i32, found: &str) -> Error {
    Error::location(
        code,
        format!("{operator} requires 'field' to evaluate to type String, but got {found}"),
    )
}

fn get<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let name = args.value(0)?;
    let Some(Bson::String(name)) = name.as_deref() else {
        return Err(not_a_name(args.name(), 3_041_704, type_of(&name)));
    };
    // Avoids copying the whole document to read one field.
    if args.expr(1).is_some_and(Expr::is_root) {
        return Ok(args.env().root.get(name).map(Cow::Borrowed));
    }
    match args.value(1)? {
        None => Ok(None),
        Some(Cow::Borrowed(Bson::Document(document))) => Ok(document.get(name).map(Cow::Borrowed)),
        Some(Cow::Owned(Bson::Document(mut document))) => Ok(document.remove(name).map(Cow::Owned)),
        Some(value) if matches!(*value, Bson::Null | Bson::Undefined) => null(),
        Some(_) => Ok(None),
    }
}

fn parse_set(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish_set(function, named(&SET, operand, scope)?, scope)
}

fn parse_unset(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish_set(function, named(&UNSET, operand, scope)?, scope)
}

fn finish_set(
    function: &'static Function,
    arguments: Vec<Option<Expr>>,
    scope: &Scope,
) -> Result<Expr> {
    check_constant_name(function, &arguments, 4_161_107)?;
    let name = arguments.first().and_then(Option::as_ref);
    if name.is_some_and(|name| name.as_constant().is_none()) {
        return fail(
            4_161_108,
            format!(
                "{} requires 'field' to evaluate to a constant, but got a non-constant argument",
                function.name
            ),
        );
    }
    Ok(call(function, arguments, Prepared::None, scope))
}

fn set<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let (name, input) = (args.value(0)?, args.value(1)?);
    if is_nullish(&input) {
        return null();
    }
    let Some(Bson::String(name)) = name.as_deref() else {
        return Err(not_a_name(args.name(), 4_161_107, type_of(&name)));
    };
    let Some(Bson::Document(document)) = input.as_deref() else {
        return fail(
            4_161_105,
            format!(
                "{} requires 'input' to evaluate to type Object",
                args.name()
            ),
        );
    };
    let bytes = meter::document_size(document);
    meter::read(bytes)?;
    meter::charge(args.name(), bytes)?;
    let mut document = document.clone();
    match args.kept(2)? {
        Some(value) => {
            document.insert(name.as_str(), value);
        }
        None => {
            document.remove(name);
        }
    }
    computed(document)
}

fn bson_size<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    match value.as_deref() {
        Some(Bson::Document(document)) => {
            let bytes = meter::document_size(document);
            meter::read(bytes)?;
            meter::charge("$bsonSize", bytes)?;
            computed(count_bson(document.to_vec()?.len()))
        }
        _ => fail(
            31_393,
            format!(
                "$bsonSize requires a document input, found: {}",
                type_of(&value)
            ),
        ),
    }
}

fn binary_size<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    match value.as_deref() {
        Some(Bson::String(text)) => computed(count_bson(text.len())),
        Some(Bson::Binary(binary)) => computed(count_bson(binary.bytes.len())),
        _ if is_nullish(&value) => null(),
        _ => fail(
            51_276,
            format!(
                "$binarySize requires a string or BinData argument, found: {}",
                type_of(&value)
            ),
        ),
    }
}
