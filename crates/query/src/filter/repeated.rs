//! Names that a document has twice.
//!
//! A filter may have several conditions on one field, and is parsed from bytes, which keep all of
//! them. What is kept as a tree cannot: a stored definition with such a filter is refused.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::{Error, Result};

/// The first name that a document, or one in it at any depth, has twice. Recursion is bounded by
/// the depth of documents on the wire.
///
/// # Errors
/// `InvalidBSON` for bytes that are none.
pub fn repeated(document: &RawDocument) -> Result<Option<&str>> {
    let mut seen = std::collections::HashSet::new();
    for element in document {
        let (name, value) = element?;
        if !seen.insert(name.as_str()) {
            return Ok(Some(name.as_str()));
        }
        if let Some(found) = repeated_in(value)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn repeated_in(value: RawBsonRef<'_>) -> Result<Option<&str>> {
    match value {
        RawBsonRef::Document(inner) => repeated(inner),
        RawBsonRef::Array(items) => repeated_in_items(items),
        _ => Ok(None),
    }
}

fn repeated_in_items(items: &RawArray) -> Result<Option<&str>> {
    for item in items {
        if let Some(found) = repeated_in(item?)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Checks a definition that is stored as a tree: a filter, or the pipeline of a view.
///
/// # Errors
/// `BadValue` when a document in it has a name twice, of which a tree would keep the last.
pub fn check_distinct(what: &str, definition: RawBsonRef<'_>) -> Result<()> {
    match repeated_in(definition)? {
        None => Ok(()),
        Some(name) => Err(Error::bad_value(format!(
            "'{what}' has the field '{name}' twice in one document; combine the conditions with \
             $and"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

    use super::repeated;

    #[test]
    fn a_name_that_is_repeated_is_found_at_any_depth() {
        let mut twice = rawdoc! { "x": 1, "y": { "x": 2 } };
        assert_eq!(repeated(&twice), Ok(None));
        twice.append(bson::raw::cstr!("x"), 3);
        assert_eq!(repeated(&twice), Ok(Some("x")));
        let within: RawDocumentBuf = rawdoc! { "a": { "b": twice.clone() } };
        assert_eq!(repeated(&within), Ok(Some("x")));
        let mut listed = RawArrayBuf::new();
        listed.push(rawdoc! { "x": 1 });
        listed.push(rawdoc! { "x": 1 });
        assert_eq!(repeated(&rawdoc! { "a": listed.clone() }), Ok(None));
        listed.push(twice);
        assert_eq!(repeated(&rawdoc! { "a": listed }), Ok(Some("x")));
    }
}
