//! `$jsonSchema`: JSON Schema, draft 4, as far as MongoDB takes it, with its types of BSON.
//!
//! A keyword that speaks of one type (`minimum`, `items`, `required`) lets values of other types
//! pass. `parse` reads and checks a schema, `validate` judges values, `explain` says what is wrong
//! with one.

mod argument;
mod explain;
mod object;
mod parse;
mod rule;
mod unordered;
mod validate;

pub use rule::Schema;

#[cfg(test)]
mod tests;
