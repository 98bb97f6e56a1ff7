//! The table of functions: each family has its own list, in which a function is found by name.

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

/// Computes the value of a call from its unevaluated arguments.
pub(super) type Evaluate = for<'e> fn(&Args<'e>) -> Result<Value<'e>>;

/// Parses the operand, for functions that define variables or have an operand of another form.
pub(super) type Parse = fn(&'static Function, &Bson, &Scope) -> Result<Expr>;

/// A row of the table.
pub(super) struct Function {
    /// The name, with its dollar.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) evaluate: Evaluate,
}

/// How the operand is read.
pub(super) enum Shape {
    /// An array of arguments, or a single argument without an array; the minimum and the maximum
    /// number.
    Positional(usize, usize),
    /// An object of named arguments.
    Named(&'static Signature),
    /// An operand that the function itself parses.
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

    /// Any number of arguments by position.
    pub(super) const fn any(name: &'static str, evaluate: Evaluate) -> Function {
        Function::between(name, 0, usize::MAX, evaluate)
    }

    /// Named arguments; the function gets them in the order of the signature.
    pub(super) const fn named(signature: &'static Signature, evaluate: Evaluate) -> Function {
        Function {
            name: signature.name,
            shape: Shape::Named(signature),
            evaluate,
        }
    }

    /// An operand that `parse` parses.
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

/// The lists of all families.
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

/// The names of all functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = FAMILIES.iter().flat_map(|family| family.iter());
    all.map(|function| function.name)
}

/// The function with this name, which includes the dollar.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    // An alias: errors and `explain` show the name of the operator it stands for.
    let name = match name {
        "$substr" => "$substrBytes",
        name => name,
    };
    BY_NAME.get(name).copied()
}
