//! The duplicate-key error in MongoDB's words.

use bson::{Bson, Document, doc};
use query::{Code, Error};

use super::Collection;
use crate::document::shell;
use crate::index::{Index, IndexSpec, Key};
use crate::key::decode;

/// The error of a duplicate key.
pub(crate) fn duplicate(collection: &Collection, index: &Index, key: Key<'_>) -> Error {
    let mut values = Document::new();
    let decoded = match index.maker().collation() {
        None => decode(key.bytes, key.type_bits, index.directions()).ok(),
        Some(_) => None,
    };
    let names = index.spec().key.keys();
    match decoded {
        Some((decoded, _)) => {
            for (name, value) in names.zip(decoded) {
                values.insert(name, Bson::try_from(value).unwrap_or(Bson::Null));
            }
        }
        // Truncated keys, and strings stored as sort keys, cannot be shown.
        None => values.extend(names.map(|name| (name.clone(), Bson::Null))),
    }
    duplicate_values(collection, index.spec(), values)
}

/// The error of a key that another document has, with its values.
pub(crate) fn duplicate_values(
    collection: &Collection,
    index: &IndexSpec,
    values: Document,
) -> Error {
    let collation = match &index.collation {
        Some(collation) => format!(" collation: {}", shell(collation)),
        None => String::new(),
    };
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{collation} dup key: {}",
        collection.ns(),
        index.name,
        shell(&values)
    );
    Error::new(Code::DUPLICATE_KEY, message).with_details(doc! {
        "keyPattern": index.key.clone(),
        "keyValue": values,
    })
}
