//! Multi-document writes in portions: each portion is found and changed in its own engine
//! transaction, so that other writers can run in between.
//!
//! - P1. All portions write to one collection, identified by its UUID. If by the next portion its
//!   name belongs to another collection, it was dropped or renamed, or an index that the plan reads
//!   was dropped, the write ends with `QueryPlanKilled`, as in MongoDB; the earlier portions stay
//!   committed.
//! - P2. A portion repeated after a conflict has the same records, because the plan has already
//!   advanced past them. P1 is checked again, because no latch was held in between.
//! - P3. A collection dropped before the first portion has no matching documents.

use std::sync::Arc;

use kv::Snapshot;
use query::{Namespace, Result};

use super::seek::Seek;
use crate::collection::Collection;
use crate::cursor::{check_indexes, collection_gone};
use crate::entries::Writer;
use crate::find::Matched;
use crate::pause::between_portions;
use crate::record::RecordId;
use crate::store::Store;
use crate::txn::{Op, Work};

/// Maximum number of documents per portion.
const PORTION: usize = 500;

pub(super) struct Target<'t> {
    ns: &'t Namespace,
    /// `None` until the first portion if the statement was parsed without a collection.
    uuid: Option<[u8; 16]>,
}

impl<'t> Target<'t> {
    /// The target of a statement that was parsed for the collection `was`.
    pub(super) fn new(ns: &'t Namespace, was: Option<&Collection>) -> Target<'t> {
        Target {
            ns,
            uuid: was.map(|was| was.core().uuid),
        }
    }
}

/// Processes the documents of a portion; returns the numbers matched and changed.
pub(super) type OnPortion<'b> =
    dyn FnMut(&mut Work<'_>, &Arc<Collection>, &[RecordId]) -> Result<(i64, i64)> + 'b;

/// A write in progress.
pub(super) struct Portions<'p> {
    store: &'p Store,
    op: &'p Op<'p>,
    target: Target<'p>,
    seek: &'p Seek,
    /// Set from the first portion on.
    stream: Option<Matched>,
}

impl<'p> Portions<'p> {
    pub(super) fn new(
        store: &'p Store,
        op: &'p Op<'p>,
        target: Target<'p>,
        seek: &'p Seek,
    ) -> Portions<'p> {
        Portions {
            store,
            op,
            target,
            seek,
            stream: None,
        }
    }

    /// Call `body` with each portion, and sum its results.
    pub(super) fn each(mut self, body: &mut OnPortion<'_>) -> Result<(i64, i64)> {
        let mut total = (0, 0);
        loop {
            let (sum, is_last) = self.next(body)?;
            total = (total.0 + sum.0, total.1 + sum.1);
            if is_last {
                return Ok(total);
            }
            between_portions();
        }
    }

    /// Call `body` with the next portion; returns whether it was the last.
    fn next(&mut self, body: &mut OnPortion<'_>) -> Result<((i64, i64), bool)> {
        let (store, op) = (self.store, self.op);
        let mut records: Option<Vec<RecordId>> = None;
        store.write(op, &mut |work| {
            let Some(collection) = self.collection(work)? else {
                return Ok(((0, 0), true));
            };
            work.hold_capped(&collection)?;
            if records.is_none() {
                let mut stream = match self.stream.take() {
                    Some(stream) => stream,
                    None => self.seek.all(op, work, &collection)?,
                };
                let found = portion(&mut stream, op, work.snapshot()?);
                stream.report(op);
                self.stream = Some(stream);
                records = Some(found?);
            }
            let records = records.as_deref().unwrap_or_default();
            let sum = body(work, &collection, records)?;
            Writer::new(work).evict(&collection)?;
            Ok((sum, records.len() < PORTION))
        })
    }

    /// The collection, under its latch, with the indexes that the plan reads (P1).
    fn collection(&mut self, work: &mut Work<'_>) -> Result<Option<Arc<Collection>>> {
        let ns = self.target.ns;
        let found = work.collection(ns)?;
        if found.is_none() && self.stream.is_none() {
            return Ok(None);
        }
        let uuid = found.as_ref().map(|found| found.core().uuid);
        let wanted = self.target.uuid.or(uuid);
        match (found, wanted) {
            (Some(found), _) if uuid == wanted => {
                self.target.uuid = uuid;
                if let Some(stream) = &self.stream {
                    check_indexes(&found, stream.executor())?;
                }
                Ok(Some(found))
            }
            (_, Some(wanted)) => Err(collection_gone(self.store, ns, wanted)),
            (_, None) => Ok(None),
        }
    }
}

/// The records of the next portion.
fn portion(stream: &mut Matched, op: &Op<'_>, snapshot: &dyn Snapshot) -> Result<Vec<RecordId>> {
    let mut found = Vec::new();
    while found.len() < PORTION {
        let rows = PORTION - found.len();
        match stream.next_of(op, snapshot, rows)? {
            None => break,
            Some((record, _)) => found.push(record),
        }
    }
    stream.leave();
    Ok(found)
}

#[cfg(test)]
mod tests;
