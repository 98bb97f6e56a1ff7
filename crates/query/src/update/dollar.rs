//! Top-level names that begin with `$`, which updates may not write to existing documents.
//!
//! Deeper names may begin with `$`, and so may all names in documents that are inserted. The fields
//! of a reference to a document of another collection (`$ref`, `$id`, `$db`, in this order) are
//! allowed.

use bson::{Bson, Document};

use crate::value::type_name;
use crate::{Code, Error, Result};

/// Checks the top-level fields of `document` for whose names `written` returns true.
///
/// # Errors
/// `DollarPrefixedFieldName`; `InvalidDBRef` for a part of a reference without its other parts.
pub(super) fn check(document: &Document, written: impl Fn(&str) -> bool) -> Result<()> {
    let fields: Vec<(&str, &Bson)> = document.iter().map(|(k, v)| (k.as_str(), v)).collect();
    for (at, (name, _)) in fields.iter().enumerate() {
        if name.starts_with('$') && written(name) {
            check_field(&fields, at)?;
        }
    }
    Ok(())
}

fn check_field(fields: &[(&str, &Bson)], at: usize) -> Result<()> {
    let field = |at: usize| fields.get(at).copied();
    let Some((name, _)) = field(at) else {
        return Ok(());
    };
    let mut place = Some(at);
    let mut part = field(at);
    if let Some(("$db", value)) = part {
        check_string("$db", value)?;
        (place, part) = before(fields, place);
        if part.is_none_or(|(name, _)| name != "$id") {
            let message = "Found $db field without a $id before it, which is invalid.";
            return Err(Error::new(Code::INVALID_DB_REF, message));
        }
    }
    if let Some(("$id", _)) = part {
        (place, part) = before(fields, place);
        if part.is_none_or(|(name, _)| name != "$ref") {
            let message = "Found $id field without a $ref before it, which is invalid.";
            return Err(Error::new(Code::INVALID_DB_REF, message));
        }
    }
    let Some(("$ref", value)) = part else {
        return Err(Error::new(
            Code::DOLLAR_PREFIXED_FIELD_NAME,
            format!(
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context \
                 of an update's replacement document. Consider using an aggregation pipeline with \
                 $replaceWith."
            ),
        ));
    };
    check_string("$ref", value)?;
    let next = place.and_then(|place| field(place.saturating_add(1)));
    if next.is_some_and(|(name, _)| name == "$id") {
        return Ok(());
    }
    let message = "The DBRef $ref field must be followed by a $id field";
    Err(Error::new(Code::INVALID_DB_REF, message))
}

/// The field before position `place`, with its own position.
fn before<'f>(
    fields: &[(&'f str, &'f Bson)],
    place: Option<usize>,
) -> (Option<usize>, Option<(&'f str, &'f Bson)>) {
    let place = place.and_then(|place| place.checked_sub(1));
    (place, place.and_then(|place| fields.get(place).copied()))
}

fn check_string(name: &str, value: &Bson) -> Result<()> {
    if matches!(value, Bson::String(_)) {
        return Ok(());
    }
    let found = type_name(value);
    let message = format!("The DBRef {name} field must be a String, not a {found}");
    Err(Error::new(Code::INVALID_DB_REF, message))
}
