//! Writes of many documents, a portion at a time: each portion is found and changed in an engine
//! transaction of its own, so that other writers come in between.
//!
//! - P1. All portions are of one collection, known by its UUID. If its name is another collection's
//!   by the next portion, or it is dropped or renamed, or an index that the plan reads is dropped,
//!   the write ends with `QueryPlanKilled` as in MongoDB; the portions before stay done.
//! - P2. A portion that is repeated after a conflict is the same portion: the plan has gone on. P1
//!   is checked again, because no latch was held in between.
//! - P3. A collection that is dropped before the first portion has no documents that match.

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

/// Documents of one portion.
const PORTION: usize = 500;

/// The collection that is written to.
pub(super) struct Target<'t> {
    ns: &'t Namespace,
    /// Unknown until the first portion if the statement was parsed without a collection.
    uuid: Option<[u8; 16]>,
}

impl<'t> Target<'t> {
    /// The collection of a name for which the statement was parsed.
    pub(super) fn new(ns: &'t Namespace, was: Option<&Collection>) -> Target<'t> {
        Target {
            ns,
            uuid: was.map(|was| was.core().uuid),
        }
    }
}

/// Does something with the documents of a portion; gives how many matched and how many changed.
pub(super) type OnPortion<'b> =
    dyn FnMut(&mut Work<'_>, &Arc<Collection>, &[RecordId]) -> Result<(i64, i64)> + 'b;

/// A write under way.
pub(super) struct Portions<'p> {
    store: &'p Store,
    op: &'p Op<'p>,
    target: Target<'p>,
    seek: &'p Seek,
    /// From the first portion on.
    stream: Option<Matched>,
}

impl<'p> Portions<'p> {
    /// Before the first portion.
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

    /// Do something with each portion, and sum what `body` gives.
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

    /// Do something with the next portion; says whether it was the last.
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
