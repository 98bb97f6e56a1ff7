//! Which commands are brief: their cost is known before they run. They run on the thread of their
//! connection (`dispatch::inline`), where nothing may take long.
//!
//! - V1. A brief command reads or writes documents by their `_id`, or inserts a few. It evaluates
//!   no expression, pipeline, regular expression or validator, so that its work is bounded by the
//!   size of its message and of the documents that it names.
//! - V2. It is no part of a transaction and reads the present.
//! - V3. A brief write waits only where the engine and the store announce it.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};
use docdb::Collection;

use super::write::statements;
use crate::arguments::integer;
use crate::limits::{BRIEF_AVERAGE, BRIEF_DOCUMENTS, BRIEF_MESSAGE};
use crate::request::Request;

/// Arguments of a `find` that do not change how long it takes.
const PLAIN_FIND: &[&str] = &["limit", "batchSize", "singleBatch", "ntoreturn"];

/// Operators of an update whose work is bounded by the sizes of the operand and the document.
const PLAIN_UPDATE: &[&str] = &[
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// Whether it is a `find` of one `_id`.
pub(super) fn find(request: &Request) -> bool {
    let arguments = request.arguments();
    let fields = request.command.fields;
    let plain = |(name, value): (&str, RawBsonRef<'_>)| match name {
        "filter" => value.as_document().is_some_and(names_one),
        "projection" => value.as_document().is_some_and(selects),
        _ => PLAIN_FIND.contains(&name) || !fields.contains(&name),
    };
    arguments.has("filter") && arguments.iter().skip(1).all(plain) && collection(request).is_some()
}

/// Whether it is an `insert` of few documents.
pub(super) fn insert(request: &Request) -> bool {
    let name = "documents";
    let count = match request.message().sequence_len(name) {
        Some(count) => count,
        None => match request.arguments().array(name) {
            Ok(Some(array)) => array.into_iter().take(BRIEF_DOCUMENTS + 1).count(),
            _ => return false,
        },
    };
    count <= BRIEF_DOCUMENTS && writes(request)
}

/// Whether it is an `update` of one `_id`.
pub(super) fn update(request: &Request) -> bool {
    one(request, "updates", &|name, value| match name {
        "q" => value.as_document().is_some_and(names_one),
        "u" => value.as_document().is_some_and(changes),
        "multi" => value.as_bool() == Some(false),
        "upsert" => true,
        _ => false,
    })
}

/// Whether it is a `delete` of one `_id`.
pub(super) fn delete(request: &Request) -> bool {
    one(request, "deletes", &|name, value| match name {
        "q" => value.as_document().is_some_and(names_one),
        "limit" => integer(value) == Some(1),
        _ => false,
    })
}

/// Whether a write has one statement, and all fields of it are plain.
fn one(request: &Request, name: &str, plain: &dyn Fn(&str, RawBsonRef<'_>) -> bool) -> bool {
    let arguments = request.arguments();
    let Ok(statements) = statements(request, arguments, name) else {
        return false;
    };
    let [statement] = statements.as_slice() else {
        return false;
    };
    let plain = |field: bson::error::Result<(&bson::raw::CStr, RawBsonRef<'_>)>| {
        field.is_ok_and(|(name, value)| plain(name.as_str(), value))
    };
    !arguments.has("let") && statement.iter().all(plain) && writes(request)
}

/// Whether a filter names one document by its `_id`.
fn names_one(filter: &RawDocument) -> bool {
    let mut fields = filter.iter();
    let Some(Ok((name, value))) = fields.next() else {
        return false;
    };
    let whole = matches!(
        value,
        RawBsonRef::ObjectId(_)
            | RawBsonRef::Int32(_)
            | RawBsonRef::Int64(_)
            | RawBsonRef::String(_)
            | RawBsonRef::Binary(_)
            | RawBsonRef::Double(_)
            | RawBsonRef::Decimal128(_)
            | RawBsonRef::DateTime(_)
            | RawBsonRef::Timestamp(_)
            | RawBsonRef::Boolean(_)
    );
    name.as_str() == "_id" && whole && fields.next().is_none()
}

/// Whether a projection does nothing but select fields.
fn selects(projection: &RawDocument) -> bool {
    projection.iter().all(|field| {
        field.is_ok_and(|(_, value)| {
            matches!(
                value,
                RawBsonRef::Int32(_)
                    | RawBsonRef::Int64(_)
                    | RawBsonRef::Double(_)
                    | RawBsonRef::Boolean(_)
            )
        })
    })
}

/// Whether an update is a replacement, or has plain operators only.
fn changes(update: &RawDocument) -> bool {
    update.iter().all(|field| {
        field.is_ok_and(|(name, _)| {
            let name = name.as_str();
            !name.starts_with('$') || PLAIN_UPDATE.contains(&name)
        })
    })
}

/// The collection of a command that may be brief; `None` for a view, for large documents, and for
/// what is not brief whatever its arguments (V2).
fn collection(request: &Request) -> Option<Arc<Collection>> {
    let generic = &request.generic;
    let past = generic
        .read_concern
        .as_ref()
        .is_some_and(|concern| concern.level == "snapshot");
    if generic.in_transaction || past || BRIEF_MESSAGE < request.message().size() {
        return None;
    }
    let found = request
        .server
        .store
        .collection(&request.namespace().ok()?)?;
    let small = found.data_size() <= found.count().saturating_mul(BRIEF_AVERAGE);
    small.then_some(found)
}

/// Whether a write to its collection may be brief (V1, V3). What is written to `admin` may change
/// users, which are then read again.
fn writes(request: &Request) -> bool {
    let plain = |collection: &Collection| {
        collection.options().validator.is_none() && !collection.is_capped()
    };
    request.server.store.engine().announces_waits()
        && request.database() != "admin"
        && collection(request).is_some_and(|collection| plain(&collection))
}
