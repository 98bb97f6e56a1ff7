//! Replaces a whole document: `_id` is kept, and becomes the first field.

use std::cmp::Ordering;

use bson::{Bson, Document, Timestamp};

use super::{Position, dollar, identical};
use crate::value::compare;
use crate::{Code, Error, Result, show};

/// The document after `next` replaces `current`; `None` when `next` is identical to `current`,
/// including `_id`: a replacement without an `_id` counts as a change, as in MongoDB. With
/// `literal`, `next` is the client's document and not the result of a pipeline: zero timestamps in
/// it are filled in, and unless it is being inserted, its top-level names must not begin with `$`.
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

/// The error for an update that changes `_id`.
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

/// Replaces `Timestamp(0, 0)` in top-level fields by the time of the operation.
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
