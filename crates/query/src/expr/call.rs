//! A call: a function with its arguments, and data that the parser prepared for it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bson::Bson;

use super::args::Args;
use super::env::{Env, Value};
use super::function::Function;
use super::{Expr, sort_array};
use crate::Result;
use crate::collation::Collator;
use crate::meter;
use crate::regex::Regex;

/// Bytes that a call may leave charged to the meter without measuring its value. Measuring every
/// value would cost more, and the number of enclosing calls bounds the total.
const UNSETTLED: usize = 256;

/// A function with its arguments.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) function: &'static Function,
    /// The arguments in the order of the signature; `None` for an argument that is not given.
    pub(super) arguments: Vec<Option<Expr>>,
    /// The level of the first variable that the call defines.
    pub(super) level: u32,
    pub(super) collator: Option<Arc<Collator>>,
    pub(super) prepared: Prepared,
}

/// Data that the parser prepares once for all evaluations.
#[derive(Clone)]
pub(super) enum Prepared {
    /// Nothing.
    None,
    /// A constant regular expression.
    Regex(Arc<Regex>),
    /// The order of `$sortArray`.
    Order(Arc<sort_array::Order>),
    /// The boundaries of `$bucket`, ascending.
    Boundaries(Arc<[Bson]>),
}

impl Call {
    /// The value of the call. The charges for its arguments are released; the computed value stays
    /// charged to the scope of the caller.
    pub(super) fn evaluate<'e>(&'e self, env: &Env<'e>) -> Result<Value<'e>> {
        meter::step()?;
        let scope = meter::scope();
        let value = (self.function.evaluate)(&Args::new(self, *env))?;
        if scope.charged() <= UNSETTLED {
            scope.keep_all();
            return Ok(value);
        }
        let bytes = match &value {
            Some(Cow::Owned(value)) => meter::size(value),
            _ => 0,
        };
        scope.keep(self.function.name, bytes)?;
        Ok(value)
    }

    /// The name and the arguments, if all arguments are given by position.
    pub(super) fn positional(&self) -> Option<(&'static str, Vec<&Expr>)> {
        if !matches!(self.function.shape, super::function::Shape::Positional(..)) {
            return None;
        }
        let arguments: Option<Vec<&Expr>> = self.arguments.iter().map(Option::as_ref).collect();
        Some((self.function.name, arguments?))
    }

    /// Whether equal arguments give equal values, so that a call with constant arguments is
    /// constant.
    pub(super) fn is_pure(&self) -> bool {
        self.function.name != "$rand"
    }

    /// Whether a call with constant arguments is evaluated when it is parsed. A match of a regular
    /// expression may take long and cannot be interrupted there, so it is left to the execution.
    pub(super) fn is_foldable(&self) -> bool {
        self.is_pure() && !self.function.name.starts_with("$regex")
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.function.name, self.arguments)
    }
}
