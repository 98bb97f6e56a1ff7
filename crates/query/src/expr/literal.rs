//! `$literal` and `$const`: the operand as it stands.

use bson::Bson;

use super::args::Args;
use super::env::Value;
use super::function::Function;
use super::{Expr, Scope};
use crate::Result;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::own("$literal", parse, never),
    Function::own("$const", parse, never),
];

fn parse(_function: &'static Function, operand: &Bson, _scope: &Scope) -> Result<Expr> {
    Ok(Expr::constant(operand.clone()))
}

/// The parser makes a constant, so no call is ever evaluated; a missing value is harmless.
fn never<'e>(_args: &Args<'e>) -> Result<Value<'e>> {
    Ok(None)
}
