//! Taking portions into a copy: the entries are appended and applied, and then the records put.

use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};
use query::{Code, Error, Namespace, Result};

use super::state::{Copies, Left, Phase};
use super::{Part, Portion, Records};
use crate::collection::Collection;
use crate::document;
use crate::entries::{Settle, State};
use crate::error;
use crate::record::RecordId;
use crate::replica::role::{Replica, shown};
use crate::session::put_session_record;
use crate::txn::{Op, SessionId, Work};

impl Replica<'_> {
    /// Take a portion that the source has sent for the last entry. Records of a part that is
    /// not the next one are left out.
    ///
    /// # Errors
    /// `IllegalOperation` unless a copy is under way; `BadValue` for records that are malformed, or
    /// of another time than the applied entry; `UpdateOperationFailed` if a document differs from
    /// what the entries have made (Y3); as [`Replica::append`] and [`Replica::apply_to`]. Nothing
    /// of the records is put then.
    pub fn take_portion(&self, op: &Op<'_>, portion: &Portion) -> Result<()> {
        let copying = |copy: super::Copying| copy.phase == Phase::Copying;
        if !self.copying().is_some_and(copying) {
            let message = "no initial sync is under way";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if !portion.entries.is_empty() {
            let values: Vec<&[u8]> = portion.entries.iter().map(Vec::as_slice).collect();
            let written = self.append(op, self.written(), &values)?;
            self.apply_to(op, written)?;
            self.store.prune_copy();
        }
        // Entries of a former call that was interrupted.
        let applied = self.apply_to(op, self.written())?;
        if applied != portion.at {
            let message = format!(
                "the source sends records at {}, but this member is at {}",
                shown(portion.at),
                shown(applied)
            );
            return Err(Error::bad_value(message));
        }
        match &portion.records {
            Some(records) => self.take_records(op, records),
            None => Ok(()),
        }
    }

    /// Put records that are as the source had them at the applied position (Y1).
    fn take_records(&self, op: &Op<'_>, records: &Records) -> Result<()> {
        let _applies = self.locks().applies.lock();
        let copy = self.copying();
        let next = copy.and_then(|copy| copy.left.front().cloned());
        let Some(left) = next.filter(|left| left.part == records.part) else {
            return Ok(());
        };
        check_order(&left, records)?;
        let after = Left {
            from: records.next.clone(),
            ..left
        };
        let sessions = self.store.write(op, &mut |work| {
            work.apply_to(self.applied());
            let sessions = match records.part {
                Part::Collection(uuid) => {
                    let found = self.store.catalog().of_uuid(uuid).cloned();
                    if let Some(found) = found {
                        put_documents(work, found.ns(), &records.pairs)?;
                    }
                    Vec::new()
                }
                Part::Images => {
                    put_images(work, &records.pairs)?;
                    Vec::new()
                }
                Part::Sessions => put_sessions(work, &records.pairs)?,
            };
            let catalog = self.store.trees().catalog;
            match records.end {
                true => after.remove(work.txn()?, catalog)?,
                false => after.put(work.txn()?, catalog)?,
            }
            Ok::<Vec<SessionId>, Error>(sessions)
        })?;
        self.store.forget_sessions(&sessions);
        if let Some(copy) = self.store.part::<Copies>().0.lock().as_mut()
            && let Some(front) = copy.left.front_mut()
        {
            match records.end {
                true => drop(copy.left.pop_front()),
                false => *front = after,
            }
        }
        Ok(())
    }
}

/// Check that keys increase, behind the position and up to the end of the part.
fn check_order(left: &Left, records: &Records) -> Result<()> {
    let mut last = &left.from;
    let keys = records.pairs.iter().map(|(key, _)| key);
    for key in keys {
        if key <= last {
            return Err(Error::bad_value(
                "the records of a portion are not in order",
            ));
        }
        last = key;
    }
    let ended = !left.until.is_empty() && left.until < *last;
    if records.next < *last || ended {
        let message = "the records of a portion are behind its end";
        return Err(Error::bad_value(message));
    }
    Ok(())
}

/// Put the documents that the copy does not have yet.
fn put_documents(work: &mut Work<'_>, ns: &Namespace, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    let Some(collection) = work.collection(ns)? else {
        return Ok(());
    };
    let mut missing = Vec::new();
    for (key, value) in pairs {
        let read = RawDocumentBuf::from_bytes(value.clone())?;
        document::check(&read)?;
        if let Some(record) = to_put(work, &collection, (key, &read))? {
            missing.push((record, read));
        }
    }
    put_all(work, &collection, &missing)
}

/// The record of a document, if the copy lacks it (Y3).
fn to_put(
    work: &mut Work<'_>,
    collection: &Arc<Collection>,
    (key, read): (&[u8], &RawDocument),
) -> Result<Option<RecordId>> {
    let Some(id) = read.get("_id")? else {
        return Err(Error::new(Code::NO_SUCH_KEY, "a document without an _id"));
    };
    let record = RecordId::from_key(key, collection.is_clustered());
    let record = record.ok_or_else(|| Error::bad_value("a record with an invalid key"))?;
    if collection.is_clustered() && collection.clustered_record(id)? != record {
        return Err(Error::bad_value(
            "a record whose key is not that of its _id",
        ));
    }
    let snapshot = work.snapshot()?;
    let Some(known) = collection.find_id(snapshot, id)? else {
        return Ok(Some(record));
    };
    let mut bytes = Vec::new();
    let found = collection.fetch(snapshot, &known, &mut bytes)?;
    if found && bytes == read.as_bytes() {
        return Ok(None);
    }
    let message = format!(
        "the members differ: a document that was copied from {} is not what the entries of the \
         oplog have made, with the _id {id:?}",
        collection.ns()
    );
    Err(Error::new(Code::UPDATE_OPERATION_FAILED, message))
}

fn put_all(
    work: &mut Work<'_>,
    collection: &Collection,
    missing: &[(RecordId, RawDocumentBuf)],
) -> Result<()> {
    let mut settle = Settle::new(work);
    for (record, document) in missing {
        settle.document(collection, None, Some(State { record, document }))?;
    }
    settle.finish()
}

/// Put the pre-images that the copy does not have.
fn put_images(work: &mut Work<'_>, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    let Some(images) = work.images()? else {
        return Ok(());
    };
    let mut missing = Vec::new();
    for (key, value) in pairs {
        let found = work.snapshot()?.get(images.records(), key);
        if found.map_err(error::engine)?.is_none() {
            let document = RawDocumentBuf::from_bytes(value.clone())?;
            document::check(&document)?;
            missing.push((RecordId::clustered(key), document));
        }
    }
    put_all(work, &images, &missing)
}

/// Put the records of sessions: those of the source are at least as new as those of the entries,
/// because some have no entry.
fn put_sessions(work: &mut Work<'_>, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<SessionId>> {
    let mut sessions = Vec::new();
    for (key, value) in pairs {
        sessions.push(put_session_record(work, key, value)?);
    }
    Ok(sessions)
}
