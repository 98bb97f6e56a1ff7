//! `$rand`: a random double, at least 0 and less than 1, at every evaluation.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use bson::Bson;
use stdx::rng::Rng;

use super::args::{Args, computed, fail};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::parse::call;
use super::{Expr, Scope};
use crate::Result;

pub(super) const FUNCTIONS: &[Function] = &[Function::own("$rand", parse, rand)];

thread_local! {
    /// Seeded from the random keys that the standard library makes for its hash maps.
    static RNG: RefCell<Rng> = RefCell::new(Rng::new(RandomState::new().hash_one(0_u8)));
}

fn parse(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let empty = match operand {
        Bson::Document(document) => document.is_empty(),
        Bson::Array(items) => items.is_empty(),
        _ => {
            let message = "invalid parameter: expected an object ($rand)";
            return fail(10_065, message);
        }
    };
    if !empty {
        return fail(3_040_501, "$rand does not currently accept arguments");
    }
    Ok(call(function, Vec::new(), Prepared::None, scope))
}

fn rand<'e>(_args: &Args<'e>) -> Result<Value<'e>> {
    computed(RNG.with_borrow_mut(Rng::unit))
}
