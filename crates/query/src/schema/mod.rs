//! `$jsonSchema`: the part of JSON Schema, draft 4, that MongoDB supports, with BSON types.
//!
//! A keyword for one type (`minimum`, `items`, `required`) accepts values of other types. `parse`
//! reads and checks a schema, `validate` checks values, `explain` describes why a value fails.

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
