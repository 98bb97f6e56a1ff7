//! Aggregation expressions: parsed once, then evaluated over documents.
//!
//! An expression is a tree of constants, paths, literals of objects and arrays, and calls of
//! functions. Every function is listed in the table of its family (`function`). It gets its
//! arguments unevaluated, so that `$cond` and `$map` are functions as `$add` is. A missing value is
//! always `None`, distinct from null. Calls with constant arguments are evaluated when parsed
//! (constant folding).

mod aggregate;
mod args;
mod arithmetic;
mod array;
mod bits;
mod boundaries;
mod bytes;
mod call;
mod civil;
mod coerce;
mod compare;
mod conditional;
mod convert;
mod date;
mod date_add;
mod date_diff;
mod date_format;
mod date_free;
mod date_parse;
mod date_parts;
mod date_text;
mod date_trunc;
mod dependencies;
mod env;
mod field_path;
mod folding;
mod function;
mod hashed;
mod lambda;
mod literal;
mod meta;
mod named;
mod node;
mod object;
mod parse;
mod random;
mod rank_n;
mod regex;
mod repeated;
mod scope;
mod set;
mod sort_array;
mod string;
mod string_find;
mod target;
mod trig;
mod trim;
mod unit;
mod variable;
mod zip;
mod zone;

#[cfg(test)]
mod tests;

pub use dependencies::Dependencies;
pub use env::{Env, System, Variables};
pub use field_path::FieldPath;
pub use folding::refuse_failing;
pub(crate) use function::names;
pub use meta::SORT_KEY;
pub(crate) use meta::no_sort_key;
pub use node::Expr;
pub use repeated::check_each;
pub(crate) use repeated::{check as check_repeated, check_in_pipeline, check_stage};
pub use scope::Scope;
pub(crate) use unit::{Unit, add as add_units};
pub(crate) use variable::check_user_name as check_variable;
pub(crate) use zone::Zone;
