//! `$literal` and `$const`: the operand is a constant and is not parsed.

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

/// Never called: the parser makes a constant instead of a call.
fn never<'e>(_args: &Args<'e>) -> Result<Value<'e>> {
    Ok(None)
}
