//! Parses a specification into an expression.

use bson::{Bson, Document};

use super::call::{Call, Prepared};
use super::env::{Env, Variables};
use super::field_path::{self, FieldPath};
use super::folding;
use super::function::{self, Function, Shape};
use super::named::Signature;
use super::node::{Base, Node};
use super::{Expr, Scope, variable};
use crate::{Code, Error, Result, meter};

/// Estimated bytes that are charged for each part of an expression: the node, the box of a call and
/// its list of arguments.
const PARSED: usize = 256;
/// Bytes that the value of a folded call may have in addition to twice the size of its arguments,
/// so that the memory for an expression stays proportional to the request.
const FOLDED: usize = 256;

impl Expr {
    /// Parses an operand: strings with a dollar are paths or variables; objects whose first name
    /// has a dollar are calls; other objects and arrays are literals of expressions; other values
    /// are constants.
    pub fn parse(spec: &Bson, scope: &Scope) -> Result<Expr> {
        // The memory for one expression is charged while it is parsed, and released afterwards.
        let _whole = scope.is_outermost().then(meter::scope);
        let scope = scope.deeper()?;
        meter::step()?;
        meter::charge("An expression", PARSED)?;
        match spec {
            Bson::String(text) if text.starts_with('$') => variable::parse(text, &scope),
            Bson::Document(document) => Expr::parse_object(document, &scope),
            Bson::Array(items) => {
                let items = items.iter().map(|item| Expr::parse(item, &scope));
                Ok(array(items.collect::<Result<_>>()?))
            }
            other => Ok(Expr::constant(meter::copy("A constant", other)?)),
        }
    }

    /// Parses an object: a call if its first name begins with a dollar, otherwise a literal.
    pub fn parse_object(spec: &Document, scope: &Scope) -> Result<Expr> {
        match spec.keys().next() {
            Some(first) if first.starts_with('$') => parse_call(spec, scope),
            _ => parse_literal(spec, scope),
        }
    }

    /// Whether `name`, with its dollar, is an operator of expressions.
    #[must_use]
    pub fn is_operator(name: &str) -> bool {
        function::find(name).is_some()
    }
}

fn parse_literal(spec: &Document, scope: &Scope) -> Result<Expr> {
    let mut fields = Vec::with_capacity(spec.len());
    for (name, value) in spec {
        field_path::check_name(name)?;
        if name.contains('.') {
            return Err(Error::location(
                16_412,
                "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
            ));
        }
        fields.push((name.clone(), Expr::parse(value, scope)?));
    }
    Ok(object(fields))
}

fn parse_call(spec: &Document, scope: &Scope) -> Result<Expr> {
    let mut entries = spec.iter();
    let (Some((name, operand)), None) = (entries.next(), entries.next()) else {
        return Err(not_alone(&Bson::Document(spec.clone())));
    };
    let Some(function) = function::find(name) else {
        return Err(unknown(name));
    };
    // MongoDB's optimizer may skip the arguments of these calls; it never evaluates `$getField`,
    // which needs a document.
    if matches!(function.name, "$ifNull" | "$switch" | "$getField") {
        return folding::lazily(|| parse_operand(function, operand, scope));
    }
    parse_operand(function, operand, scope)
}

pub(super) fn not_alone(spec: &Bson) -> Error {
    let message =
        format!("An object representing an expression must have exactly one field: {spec}");
    Error::location(15_983, message)
}

fn parse_operand(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    match &function.shape {
        Shape::Positional(least, most) => {
            let arguments = positional(function, (*least, *most), operand, scope)?;
            Ok(call(function, arguments, Prepared::None, scope))
        }
        Shape::Named(signature) => {
            let arguments = named(signature, operand, scope)?;
            Ok(call(function, arguments, Prepared::None, scope))
        }
        Shape::Own(parse) => parse(function, operand, scope),
    }
}

pub(super) fn unknown(name: &str) -> Error {
    match name {
        "$function" | "$accumulator" | "$where" => Error::new(
            Code::BAD_VALUE,
            format!("{name} not allowed: there is no engine for JavaScript in this server"),
        ),
        _ => Error::new(
            Code::INVALID_PIPELINE_OPERATOR,
            format!("Unrecognized expression '{name}'"),
        ),
    }
}

/// Parses arguments by position: an array, or a single argument.
pub(super) fn positional(
    function: &'static Function,
    (least, most): (usize, usize),
    operand: &Bson,
    scope: &Scope,
) -> Result<Vec<Option<Expr>>> {
    let given = match operand {
        Bson::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let count = given.len();
    if count < least || count > most {
        return Err(arity(function.name, least, most, count));
    }
    given
        .iter()
        .map(|item| Expr::parse(item, scope).map(Some))
        .collect()
}

fn arity(name: &str, least: usize, most: usize, count: usize) -> Error {
    if least == most {
        return Error::location(
            16_020,
            format!("Expression {name} takes exactly {least} arguments. {count} were passed in."),
        );
    }
    if most == usize::MAX {
        return Error::location(
            1_257_300,
            format!(
                "{name} needs at least {} arguments, had: {count}",
                in_words(least)
            ),
        );
    }
    Error::location(
        28_667,
        format!(
            "Expression {name} takes at least {least} arguments, and at most {most}, but {count} \
             were passed in."
        ),
    )
}

fn in_words(count: usize) -> String {
    match count {
        1 => "one".to_owned(),
        2 => "two".to_owned(),
        _ => count.to_string(),
    }
}

/// Parses named arguments, in the order of the signature.
pub(super) fn named(
    signature: &Signature,
    operand: &Bson,
    scope: &Scope,
) -> Result<Vec<Option<Expr>>> {
    signature
        .read(operand)?
        .into_iter()
        .map(|value| value.map(|value| Expr::parse(value, scope)).transpose())
        .collect()
}

/// A call, which is folded if all its arguments are constant. If the evaluation fails, the call
/// stays, and fails only if it is evaluated later.
pub(super) fn call(
    function: &'static Function,
    arguments: Vec<Option<Expr>>,
    prepared: Prepared,
    scope: &Scope,
) -> Expr {
    let constant = arguments
        .iter()
        .flatten()
        .all(|argument| matches!(argument.node, Node::Constant(_) | Node::Missing));
    let call = Call {
        function,
        arguments,
        level: scope.next_level(),
        collator: scope.collator().cloned(),
        prepared,
    };
    if constant
        && call.is_foldable()
        && let Some(node) = folded(&call)
    {
        return Expr { node };
    }
    Expr {
        node: Node::Call(Box::new(call)),
    }
}

/// The value of a call with constant arguments, if it has one and the value is small. A large value
/// is computed at each evaluation, where its memory is charged and released.
fn folded(call: &Call) -> Option<Node> {
    let _scope = meter::scope();
    let (root, vars) = (Document::new(), Variables::default());
    let value = match call.evaluate(&Env::new(&root, &vars)) {
        Ok(value) => value,
        Err(error) => {
            folding::failed(error);
            return None;
        }
    };
    let bytes = value.as_deref().map_or(0, meter::size);
    let given = call.arguments.iter().flatten();
    let given: usize = given.filter_map(Expr::as_constant).map(meter::size).sum();
    if FOLDED + 2 * given < bytes {
        return None;
    }
    let value = value.map(std::borrow::Cow::into_owned);
    Some(value.map_or(Node::Missing, Node::Constant))
}

/// An array literal, folded if every element is constant.
pub(super) fn array(items: Vec<Expr>) -> Expr {
    let constants: Option<Vec<Bson>> = items
        .iter()
        .map(|item| item.as_constant().cloned())
        .collect();
    let node = constants.map_or_else(
        || Node::Array(items),
        |values| Node::Constant(Bson::Array(values)),
    );
    Expr { node }
}

/// An object literal, folded if every value is constant.
pub(super) fn object(fields: Vec<(String, Expr)>) -> Expr {
    let constants: Option<Document> = fields
        .iter()
        .map(|(name, value)| Some((name.clone(), value.as_constant()?.clone())))
        .collect();
    let node = constants.map_or_else(
        || Node::Object(fields),
        |document| Node::Constant(Bson::Document(document)),
    );
    Expr { node }
}

/// A path from `base`, for the parser of variables.
pub(super) fn path(base: Base, path: FieldPath) -> Expr {
    Expr {
        node: Node::Path(base, path),
    }
}
