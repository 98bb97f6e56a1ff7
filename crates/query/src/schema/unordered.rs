//! Values without the order of their fields, for `enum` and `uniqueItems`, to which `{a: 1, b: 2}`
//! and `{b: 2, a: 1}` are equal.

use bson::{Bson, Document};

/// The value with the fields of documents in the order of their names, at any depth. Recursion is
/// bounded by the depth of documents.
pub(super) fn unordered(value: Bson) -> Bson {
    match value {
        Bson::Document(document) => {
            let mut fields: Vec<(String, Bson)> = document.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, unordered(value)));
            Bson::Document(fields.collect::<Document>())
        }
        Bson::Array(items) => Bson::Array(items.into_iter().map(unordered).collect()),
        other => other,
    }
}
