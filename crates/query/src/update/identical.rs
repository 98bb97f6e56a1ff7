//! Compares owned values as their encoded bytes would compare: same types, same order of fields,
//! same bits of numbers.

use bson::{Bson, Document};

/// Whether two documents would encode to the same bytes.
#[must_use]
pub fn identical(left: &Document, right: &Document) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|((a, x), (b, y))| a == b && identical_values(x, y))
}

/// Whether two values would encode to the same bytes.
#[must_use]
pub fn identical_values(left: &Bson, right: &Bson) -> bool {
    match (left, right) {
        (Bson::Document(left), Bson::Document(right)) => identical(left, right),
        (Bson::Array(left), Bson::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(x, y)| identical_values(x, y))
        }
        (Bson::Double(left), Bson::Double(right)) => left.to_bits() == right.to_bits(),
        (Bson::JavaScriptCodeWithScope(left), Bson::JavaScriptCodeWithScope(right)) => {
            left.code == right.code && identical(&left.scope, &right.scope)
        }
        _ => left == right,
    }
}
