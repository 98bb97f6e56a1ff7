//! The table of functions: each family lists its own, and a name finds its row.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use bson::Bson;

use super::args::Args;
use super::env::Value;
use super::named::Signature;
use super::{
    Expr, Scope, aggregate, arithmetic, array, bits, compare, conditional, convert, date, date_add,
    date_diff, date_parse, date_parts, date_trunc, hashed, lambda, literal, meta, object, random,
    rank_n, regex, set, sort_array, string, string_find, trig, trim, zip,
};
use crate::Result;

/// Computes a call's value from its unevaluated arguments.
pub(super) type Evaluate = for<'e> fn(&Args<'e>) -> Result<Value<'e>>;

/// Makes an expression of the operand, for functions that bind variables or have a form of their
/// own.
pub(super) type Parse = fn(&'static Function, &Bson, &Scope) -> Result<Expr>;

/// A row of the table.
pub(super) struct Function {
    /// With its dollar.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) evaluate: Evaluate,
}

/// How the operand is read.
pub(super) enum Shape {
    /// An array of arguments, or one argument alone, this many at least and at most.
    Positional(usize, usize),
    /// An object of named arguments.
    Named(&'static Signature),
    /// By itself.
    Own(Parse),
}

impl Function {
    /// Exactly `count` arguments.
    pub(super) const fn exactly(name: &'static str, count: usize, evaluate: Evaluate) -> Function {
        Function::between(name, count, count, evaluate)
    }

    /// From `least` to `most` arguments.
    pub(super) const fn between(
        name: &'static str,
        least: usize,
        most: usize,
        evaluate: Evaluate,
    ) -> Function {
        Function {
            name,
            shape: Shape::Positional(least, most),
            evaluate,
        }
    }

    /// Any number of arguments.
    pub(super) const fn any(name: &'static str, evaluate: Evaluate) -> Function {
        Function::between(name, 0, usize::MAX, evaluate)
    }

    /// Named arguments, in the order of the signature.
    pub(super) const fn named(signature: &'static Signature, evaluate: Evaluate) -> Function {
        Function {
            name: signature.name,
            shape: Shape::Named(signature),
            evaluate,
        }
    }

    /// An operand with a form of its own.
    pub(super) const fn own(name: &'static str, parse: Parse, evaluate: Evaluate) -> Function {
        Function {
            name,
            shape: Shape::Own(parse),
            evaluate,
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The families, each with its rows.
const FAMILIES: &[&[Function]] = &[
    aggregate::FUNCTIONS,
    arithmetic::FUNCTIONS,
    array::FUNCTIONS,
    bits::FUNCTIONS,
    compare::FUNCTIONS,
    conditional::FUNCTIONS,
    convert::FUNCTIONS,
    date::FUNCTIONS,
    date_add::FUNCTIONS,
    date_diff::FUNCTIONS,
    date_parse::FUNCTIONS,
    date_parts::FUNCTIONS,
    date_trunc::FUNCTIONS,
    hashed::FUNCTIONS,
    lambda::FUNCTIONS,
    literal::FUNCTIONS,
    meta::FUNCTIONS,
    object::FUNCTIONS,
    random::FUNCTIONS,
    rank_n::FUNCTIONS,
    regex::FUNCTIONS,
    set::FUNCTIONS,
    sort_array::FUNCTIONS,
    string::FUNCTIONS,
    string_find::FUNCTIONS,
    trig::FUNCTIONS,
    trim::FUNCTIONS,
    zip::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|function| (function.name, function))
        .collect()
});

/// The names of all.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = FAMILIES.iter().flat_map(|family| family.iter());
    all.map(|function| function.name)
}

/// The function of a name with its dollar.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    // An old name: errors and explain name the operator it stands for.
    let name = match name {
        "$substr" => "$substrBytes",
        name => name,
    };
    BY_NAME.get(name).copied()
}
