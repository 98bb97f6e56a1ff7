//! Whether what an operation reads still exists, for operations that work in portions.
//!
//! Between two portions an operation holds neither a latch nor a view of the store: its collection
//! may be dropped, renamed or replaced meanwhile, and its indexes dropped. As in MongoDB it ends
//! with `QueryPlanKilled` then.
//!
//! - A1. A portion that reads opens its view of the store first and asks here second: what the
//!   catalog lists after the view was opened exists in the view. A portion that writes asks under
//!   the latch of the collection, so that nothing is dropped before it ends.
//! - A2. An engine reports a tree that it does not have as an error of its own, which is an
//!   `InternalError` to the client. Where the collection or an index is gone, that is the cause,
//!   and the client gets `QueryPlanKilled`.

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};

use crate::collection::Collection;
use crate::exec::Executor;
use crate::index::Index;
use crate::store::Store;
use crate::txn::Op;

/// Whether `collection`, and the indexes of a plan on it, are still what they were.
///
/// # Errors
/// `QueryPlanKilled`.
pub(crate) fn check_alive(
    store: &Store,
    op: &Op<'_>,
    collection: &Collection,
    executor: &Executor,
) -> Result<()> {
    let now = same(store, op, collection)?;
    check_indexes(&now, executor)
}

/// Whether the indexes of a plan are still those of its collection, as of `now`.
///
/// # Errors
/// `QueryPlanKilled`.
pub(crate) fn check_indexes(now: &Collection, executor: &Executor) -> Result<()> {
    let indexes = executor.input().indexes();
    match indexes.iter().find(|index| !has(now, index)) {
        None => Ok(()),
        Some(index) => Err(index_dropped(index)),
    }
}

/// What `error`, met while `collection` was read, is to the client (A2).
pub(crate) fn or_killed(store: &Store, op: &Op<'_>, was: &Collection, error: Error) -> Error {
    if error.code != Code::INTERNAL_ERROR {
        return error;
    }
    match same(store, op, was) {
        Err(gone) => gone,
        Ok(now) => match was.indexes().iter().find(|index| !has(&now, index)) {
            Some(index) => index_dropped(index),
            None => error,
        },
    }
}

/// As [`or_killed`], for an operation that may not have found its collection.
pub(crate) fn or_killed_if(
    store: &Store,
    op: &Op<'_>,
    was: Option<&Arc<Collection>>,
    error: Error,
) -> Error {
    match was {
        Some(was) => or_killed(store, op, was, error),
        None => error,
    }
}

/// The error of an operation on `ns` whose collection has no longer that name.
pub(crate) fn collection_gone(store: &Store, ns: &Namespace, uuid: [u8; 16]) -> Error {
    let catalog = store.catalog();
    let is_it = |c: &Arc<Collection>| c.core().uuid == uuid;
    let mut all = catalog.iter();
    let found = all.find(|(name, named)| *name != ns && named.collection().is_some_and(is_it));
    let uuid = bson::Uuid::from_bytes(uuid);
    killed(match found {
        None => format!("collection dropped. UUID {uuid}"),
        Some((to, _)) => format!("collection renamed from '{ns}' to '{to}'. UUID {uuid}"),
    })
}

/// The collection as of now.
fn same(store: &Store, op: &Op<'_>, was: &Collection) -> Result<Arc<Collection>> {
    let uuid = was.core().uuid;
    let now = match was.is_dropped() {
        true => None,
        false => store.collection_for(op, was.ns())?,
    };
    let now = now.filter(|now| now.core().uuid == uuid);
    now.ok_or_else(|| collection_gone(store, was.ns(), uuid))
}

/// A change of an index's options makes a new [`Index`] of the same number.
fn has(now: &Collection, index: &Arc<Index>) -> bool {
    let mut all = now.indexes().iter();
    all.any(|other| other.number() == index.number())
}

fn index_dropped(index: &Index) -> Error {
    killed(format!(
        "query plan killed :: index '{}' dropped",
        index.name()
    ))
}

fn killed(message: String) -> Error {
    Error::new(Code::QUERY_PLAN_KILLED, message)
}
