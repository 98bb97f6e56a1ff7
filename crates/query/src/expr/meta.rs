//! `$meta`: metadata of a document. Only the sort key is supported, in projections and in stages
//! that map documents: they bind it to a variable with a name that users cannot write. Other stages
//! refuse it.

use bson::Bson;

use super::args::Args;
use super::env::Value;
use super::field_path::FieldPath;
use super::function::Function;
use super::node::Base;
use super::parse::{path, unknown};
use super::{Dependencies, Expr, Scope};
use crate::{Error, Result, show};

pub(super) const FUNCTIONS: &[Function] = &[Function::own("$meta", parse, never)];

/// The variable with the values by which a document was sorted, as an array; missing without a
/// sort.
pub const SORT_KEY: &str = "$sortKey";

impl Dependencies {
    /// Whether the expression reads the key by which documents were sorted.
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        self.variables.contains(SORT_KEY)
    }
}

fn parse(_function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    match operand.as_str() {
        Some("sortKey") if !scope.has_sort_key() => Err(unknown("$meta")),
        Some("sortKey") => Ok(path(Base::Outer(SORT_KEY.into()), FieldPath::empty())),
        // Only a text search has a score.
        Some("textScore") => Err(Error::location(
            40_218,
            "query requires text score metadata, but it is not available",
        )),
        _ => Err(unsupported(operand)),
    }
}

fn unsupported(operand: &Bson) -> Error {
    Error::location(
        17_308,
        format!("Unsupported argument to $meta: {}", show::value(operand)),
    )
}

/// The error for reading the sort key of documents that no sort has ordered.
pub(crate) fn no_sort_key() -> Error {
    unsupported(&Bson::from("sortKey"))
}

/// Never called: the parser makes a variable instead of a call.
fn never<'e>(_args: &Args<'e>) -> Result<Value<'e>> {
    Ok(None)
}
