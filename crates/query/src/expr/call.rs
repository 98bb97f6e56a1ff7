//! A call: a function with its arguments and what parsing prepared for it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::args::Args;
use super::env::{Env, Value};
use super::function::Function;
use super::{Expr, sort_array};
use crate::Result;
use crate::collation::Collator;
use crate::meter;
use crate::regex::Regex;

/// Bytes that a call may leave charged without measuring its value: smaller than what measuring
/// every call would cost, and bounded by the number of calls around it.
const UNSETTLED: usize = 256;

/// A function with its arguments.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) function: &'static Function,
    /// By position, or in the order of the signature; `None` when not given.
    pub(super) arguments: Vec<Option<Expr>>,
    /// The level of the first variable that the call binds.
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
}

impl Call {
    /// The value. What was charged for the arguments is released; what was computed stays charged
    /// to the scope of the caller.
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

    /// Name and arguments, when all of them are given by position.
    pub(super) fn positional(&self) -> Option<(&'static str, Vec<&Expr>)> {
        if !matches!(self.function.shape, super::function::Shape::Positional(..)) {
            return None;
        }
        let arguments: Option<Vec<&Expr>> = self.arguments.iter().map(Option::as_ref).collect();
        Some((self.function.name, arguments?))
    }

    /// Whether equal arguments give equal values, so that a call of constants is one.
    pub(super) fn is_pure(&self) -> bool {
        self.function.name != "$rand"
    }

    /// Whether a call of constants is computed when it is parsed. One match of a regular expression
    /// may take long and cannot be ended, so it is left to the execution.
    pub(super) fn is_foldable(&self) -> bool {
        self.is_pure() && !self.function.name.starts_with("$regex")
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.function.name, self.arguments)
    }
}
