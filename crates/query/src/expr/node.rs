//! The tree of an expression and its evaluation.
//!
//! Evaluation borrows values: a path gives a reference into the document, a constant gives a
//! reference into the tree; only computed values are owned. Recursion is bounded by the nesting
//! that parsing accepts.

use std::borrow::Cow;

use bson::{Bson, Document};

use super::call::Call;
use super::env::{Env, Value};
use super::field_path::FieldPath;
use crate::{Result, meter};

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expr {
    pub(super) node: Node,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    /// A constant value.
    Constant(Bson),
    /// `$$REMOVE`: no value.
    Missing,
    /// A variable, and a path into its value; the path may be empty.
    Path(Base, FieldPath),
    /// `{a: .., b: ..}`; fields without a value are left out.
    Object(Vec<(String, Expr)>),
    /// `[.., ..]`; elements without a value become null.
    Array(Vec<Expr>),
    /// An operator with its arguments.
    Call(Box<Call>),
}

/// The base of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Base {
    /// The document (`$$ROOT`).
    Root,
    /// A variable that an enclosing expression defines, by name and level.
    Local(Box<str>, u32),
    /// A variable of the operation, such as a variable of `let`.
    Outer(Box<str>),
}

impl Expr {
    /// The value of this expression; `None` when it is missing.
    pub fn evaluate(&self, env: &Env<'_>) -> Result<Option<Bson>> {
        let _scope = meter::scope();
        self.kept(env)
    }

    /// As [`Expr::evaluate`], but the value stays charged to the scope of the caller, which holds
    /// it while it computes other values.
    pub(crate) fn kept(&self, env: &Env<'_>) -> Result<Option<Bson>> {
        let scope = meter::scope();
        let Some(value) = self.value(env)? else {
            return Ok(None);
        };
        let bytes = meter::size(&value);
        if let Cow::Borrowed(_) = value {
            // The copy is charged before it is made.
            meter::read(bytes)?;
            meter::charge(self.name(), bytes)?;
        }
        let value = value.into_owned();
        scope.keep(self.name(), bytes)?;
        Ok(Some(value))
    }

    /// The expression's name in error messages about memory.
    fn name(&self) -> &'static str {
        match &self.node {
            Node::Call(call) => call.function.name,
            _ => "An expression",
        }
    }

    /// The value, with null for a missing value, as accumulators and group keys need it.
    pub fn evaluate_or_null(&self, env: &Env<'_>) -> Result<Bson> {
        Ok(self.evaluate(env)?.unwrap_or(Bson::Null))
    }

    /// A constant expression.
    #[must_use]
    pub fn constant(value: Bson) -> Expr {
        Expr {
            node: Node::Constant(value),
        }
    }

    /// The expression `"$path"`.
    #[must_use]
    pub fn field(path: FieldPath) -> Expr {
        Expr {
            node: Node::Path(Base::Root, path),
        }
    }

    /// The value of a constant expression; `None` for other expressions.
    #[must_use]
    pub fn as_constant(&self) -> Option<&Bson> {
        match &self.node {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The path, if the expression is only a path of the document.
    #[must_use]
    pub fn as_field(&self) -> Option<&FieldPath> {
        match &self.node {
            Node::Path(Base::Root, path) if !path.is_empty() => Some(path),
            _ => None,
        }
    }

    /// Whether the expression is the whole document, `$$ROOT`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        matches!(&self.node, Node::Path(Base::Root, path) if path.is_empty())
    }

    /// The name, with its dollar, and the arguments, if the expression is a call whose arguments
    /// are all given by position.
    #[must_use]
    pub fn as_call(&self) -> Option<(&'static str, Vec<&Expr>)> {
        match &self.node {
            Node::Call(call) => call.positional(),
            _ => None,
        }
    }

    /// The fields, if the expression is an object literal.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Expr)]> {
        match &self.node {
            Node::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The value, borrowed where possible; a computed value is charged to the scope of the caller.
    pub(crate) fn value<'e>(&'e self, env: &Env<'e>) -> Result<Value<'e>> {
        match &self.node {
            Node::Constant(value) => Ok(Some(Cow::Borrowed(value))),
            Node::Missing => Ok(None),
            Node::Path(base, path) => path_value(base, path, env),
            Node::Object(fields) => object_value(fields, env),
            Node::Array(items) => array_value(items, env),
            Node::Call(call) => call.evaluate(env),
        }
    }
}

fn path_value<'e>(base: &Base, path: &FieldPath, env: &Env<'e>) -> Result<Value<'e>> {
    let found = match base {
        Base::Root if path.is_empty() => {
            let bytes = meter::document_size(env.root);
            meter::read(bytes)?;
            meter::charge("$$ROOT", bytes)?;
            return Ok(Some(Cow::Owned(Bson::Document(env.root.clone()))));
        }
        Base::Root => return reached(path.in_document(env.root)),
        Base::Local(_, level) => env.local(*level),
        Base::Outer(name) => env.vars.read(name)?,
    };
    reached(found.and_then(|found| path.in_value(found)))
}

/// The value that a path leads to. An array that the path builds is charged to the meter; it is no
/// larger than the values in it.
fn reached(found: Value<'_>) -> Result<Value<'_>> {
    // The path has counted the elements of the arrays it went through.
    meter::step()?;
    if let Some(Cow::Owned(made)) = &found {
        let bytes = meter::size(made);
        meter::read(bytes)?;
        meter::charge("A path", bytes)?;
    }
    Ok(found)
}

fn object_value<'e>(fields: &'e [(String, Expr)], env: &Env<'e>) -> Result<Value<'e>> {
    let mut document = Document::new();
    for (name, expr) in fields {
        if let Some(value) = expr.kept(env)? {
            meter::charge("An object", meter::entry(name))?;
            document.insert(name.as_str(), value);
        }
    }
    Ok(Some(Cow::Owned(Bson::Document(document))))
}

fn array_value<'e>(items: &'e [Expr], env: &Env<'e>) -> Result<Value<'e>> {
    let mut array = Vec::with_capacity(items.len());
    for item in items {
        array.push(item.kept(env)?.unwrap_or(Bson::Null));
    }
    Ok(Some(Cow::Owned(Bson::Array(array))))
}
