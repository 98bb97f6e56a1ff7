//! Checks that the collection and indexes an operation reads still exist, for operations that work
//! in portions.
//!
//! Between two portions an operation holds neither a latch nor a view of the store: meanwhile its
//! collection may be dropped, renamed or replaced, and its indexes dropped. The operation then ends
//! with `QueryPlanKilled`, as in MongoDB.
//!
//! - A1. A portion that reads first opens its view of the store, then checks: what the catalog
//!   lists after the view was opened exists in the view. A portion that writes checks under the
//!   latch of the collection, so that nothing is dropped before the portion ends.
//! - A2. For a missing tree the engine returns an error that clients would see as `InternalError`.
//!   If the collection or an index no longer exists, that is the cause, and the client gets
//!   `QueryPlanKilled` instead.

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};

use crate::collection::Collection;
use crate::exec::Executor;
use crate::index::Index;
use crate::store::Store;
use crate::txn::Op;

/// Check that `collection` and the indexes of a plan on it still exist unchanged.
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

/// Check that the indexes of a plan still belong to its collection, whose current state is `now`.
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

/// The error to return to the client for `error`, which occurred while reading `collection` (A2).
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

/// As [`or_killed`], for an operation that may have found no collection.
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

/// The error of an operation on `ns` whose collection no longer has that name.
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

/// The current state of the collection.
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
