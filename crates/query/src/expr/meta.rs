//! `$meta`: metadata of a document. Supported is its sort key, which projections and the stages
//! that map documents bind as a variable that no user can name. Elsewhere it is refused.

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

/// The variable with the values a document was sorted by, in an array; missing without a sort.
pub const SORT_KEY: &str = "$sortKey";

impl Dependencies {
    /// Whether the key is read that a document was sorted by.
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        self.variables.contains(SORT_KEY)
    }
}

fn parse(_function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    match operand.as_str() {
        Some("sortKey") if !scope.has_sort_key() => Err(unknown("$meta")),
        Some("sortKey") => Ok(path(Base::Outer(SORT_KEY.into()), FieldPath::empty())),
        // Only a text search would have something to say.
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

/// The error for the key of a sort where documents come from none.
pub(crate) fn no_sort_key() -> Error {
    unsupported(&Bson::from("sortKey"))
}

/// The parser makes a variable, so no call is ever evaluated; a missing value is harmless.
fn never<'e>(_args: &Args<'e>) -> Result<Value<'e>> {
    Ok(None)
}
