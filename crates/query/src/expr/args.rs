//! The arguments of a call, evaluated on demand.

use std::borrow::Cow;

use bson::Bson;

use super::Expr;
use super::call::{Call, Prepared};
use super::env::{Env, Value};
use crate::collation::Collator;
use crate::value;
use crate::{Error, Result};

/// The arguments of a call and its environment.
pub(super) struct Args<'e> {
    call: &'e Call,
    env: Env<'e>,
}

impl<'e> Args<'e> {
    pub(super) fn new(call: &'e Call, env: Env<'e>) -> Args<'e> {
        Args { call, env }
    }

    /// The operator's name with its dollar.
    pub(super) fn name(&self) -> &'static str {
        self.call.function.name
    }

    /// Number of arguments of the signature, including those that are not given.
    pub(super) fn len(&self) -> usize {
        self.call.arguments.len()
    }

    /// The unevaluated argument; `None` when it is not given.
    pub(super) fn expr(&self, at: usize) -> Option<&'e Expr> {
        self.call.arguments.get(at)?.as_ref()
    }

    /// Whether the argument is given at all.
    pub(super) fn given(&self, at: usize) -> bool {
        self.expr(at).is_some()
    }

    /// The argument's value; `None` when it is missing or not given.
    pub(super) fn value(&self, at: usize) -> Result<Value<'e>> {
        match self.expr(at) {
            Some(expr) => expr.value(&self.env),
            None => Ok(None),
        }
    }

    /// The argument's value; `None` when it is null or missing.
    pub(super) fn present(&self, at: usize) -> Result<Value<'e>> {
        Ok(self.value(at)?.filter(|value| !is_null(value)))
    }

    /// The argument's value as an owned value, which stays charged to the meter.
    pub(super) fn kept(&self, at: usize) -> Result<Option<Bson>> {
        match self.expr(at) {
            Some(expr) => expr.kept(&self.env),
            None => Ok(None),
        }
    }

    /// The values of the arguments, in order.
    pub(super) fn values(&self) -> impl Iterator<Item = Result<Value<'e>>> + '_ {
        (0..self.len()).map(|at| self.value(at))
    }

    pub(super) fn env(&self) -> &Env<'e> {
        &self.env
    }

    pub(super) fn level(&self) -> u32 {
        self.call.level
    }

    pub(super) fn collator(&self) -> Option<&'e Collator> {
        self.call.collator.as_deref()
    }

    pub(super) fn prepared(&self) -> &'e Prepared {
        &self.call.prepared
    }
}

/// Whether a value counts as null.
pub(super) fn is_null(value: &Bson) -> bool {
    matches!(value, Bson::Null | Bson::Undefined)
}

/// Whether a value counts as null or is missing.
pub(super) fn is_nullish(value: &Value<'_>) -> bool {
    value.as_deref().is_none_or(is_null)
}

/// The name of the value's type; `missing` for a missing value.
pub(super) fn type_of(value: &Value<'_>) -> &'static str {
    value.as_deref().map_or("missing", value::type_name)
}

/// A computed value.
#[expect(
    clippy::unnecessary_wraps,
    reason = "functions end with it, and they return results"
)]
pub(super) fn computed<'e>(value: impl Into<Bson>) -> Result<Value<'e>> {
    Ok(Some(Cow::Owned(value.into())))
}

/// The result null, as functions return it for null arguments.
#[expect(
    clippy::unnecessary_wraps,
    reason = "functions end with it, and they return results"
)]
pub(super) fn null<'e>() -> Result<Value<'e>> {
    Ok(Some(Cow::Owned(Bson::Null)))
}

/// An error with a MongoDB code that has no name.
pub(super) fn fail<T>(number: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::location(number, message))
}
