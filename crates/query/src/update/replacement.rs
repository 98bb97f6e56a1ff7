//! Whole documents in place of others: `_id` stays, and stands first.

use std::cmp::Ordering;

use bson::{Bson, Document, Timestamp};

use super::Position;
use crate::value::compare;
use crate::{Code, Error, Result, show};

/// Checks a replacement.
pub(super) fn parse(document: Document) -> Result<Document> {
    match document.keys().find(|name| name.starts_with('$')) {
        None => Ok(document),
        Some(name) => Err(Error::new(
            Code::DOLLAR_PREFIXED_FIELD_NAME,
            format!(
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context \
                 of an update's replacement document. Consider using an aggregation pipeline with \
                 $replaceWith."
            ),
        )),
    }
}

/// What `current` becomes when `next` replaces it. `stamps`: whether empty timestamps are filled.
pub(super) fn apply(
    mut next: Document,
    current: &Document,
    at: &Position,
    stamps: bool,
) -> Result<Document> {
    if stamps {
        fill_timestamps(&mut next, at);
    }
    if let (Some(before), Some(after)) = (current.get("_id"), next.get("_id"))
        && compare(before, after) != Ordering::Equal
    {
        return Err(altered(after));
    }
    let id = match current.get("_id") {
        Some(before) => {
            next.remove("_id");
            Some(before.clone())
        }
        None => next.remove("_id"),
    };
    let Some(id) = id else {
        return Ok(next);
    };
    let mut whole = Document::new();
    whole.insert("_id", id);
    whole.extend(next);
    Ok(whole)
}

/// The error for an `_id` that became another.
pub(super) fn altered(after: &Bson) -> Error {
    Error::new(
        Code::IMMUTABLE_FIELD,
        format!(
            "After applying the update, the (immutable) field '_id' was found to have been altered \
             to {}",
            show::field("_id", after)
        ),
    )
}

/// `Timestamp(0, 0)` at the top level stands for the time of the operation.
fn fill_timestamps(document: &mut Document, at: &Position) {
    let empty = Timestamp {
        time: 0,
        increment: 0,
    };
    for (name, value) in document.iter_mut() {
        if name != "_id" && *value == Bson::Timestamp(empty) {
            *value = Bson::Timestamp(at.timestamp);
        }
    }
}
