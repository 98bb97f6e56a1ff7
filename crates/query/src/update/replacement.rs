//! Whole documents in place of others: `_id` stays, and stands first.

use std::cmp::Ordering;

use bson::{Bson, Document, Timestamp};

use super::{Position, dollar, identical};
use crate::value::compare;
use crate::{Code, Error, Result, show};

/// The document after `next` replaces `current`; `None` when `next` is identical to `current`,
/// including `_id`: a replacement without an `_id` counts as a change, as in MongoDB. `literal`:
/// `next` is the client's document, not the result of a pipeline, so that its zero timestamps are
/// filled in, and its top-level names must not begin with `$` unless the document is being
/// inserted.
pub(super) fn apply(
    mut next: Document,
    current: &Document,
    at: &Position,
    literal: bool,
) -> Result<Option<Document>> {
    if literal {
        fill_timestamps(&mut next, at);
    }
    if identical(&next, current) {
        return Ok(None);
    }
    if literal && !at.inserting {
        dollar::check(&next, |_| true)?;
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
        return Ok(Some(next));
    };
    let mut whole = Document::new();
    whole.insert("_id", id);
    whole.extend(next);
    Ok(Some(whole))
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
