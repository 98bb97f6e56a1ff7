//! The documents of a batch, folded in memory (J2).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bson::{Bson, DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use query::update::{Difference, Form, delta, diff, identical_values};
use query::{Code, Error, Namespace, Result};

use crate::collection::Collection;
use crate::document;
use crate::entries::{self, Settle};
use crate::error;
use crate::key::Encoder;
use crate::oplog::entry::{Operation, Place};
use crate::oplog::{Former, Undo, What, image, is_replicated};
use crate::record::RecordId;
use crate::replica::removed::Removed;
use crate::replica::take_back::no_record;
use crate::store::Store;
use crate::txn::{Work, delta_of};

/// Bytes of documents that are held before they are written, in the same transaction: updates of
/// large documents have small entries.
const HELD_MAX: usize = 32 << 20;

/// The time, the wall clock and the index in its entry of an operation.
type At = (Timestamp, DateTime, usize);

/// The documents that the operations of a batch change.
pub(in crate::replica) struct Documents<'s> {
    store: &'s Store,
    collections: HashMap<Uuid, Arc<Collection>>,
    /// By collection and key of the `_id`, so that they are written in the order of the trees.
    folded: BTreeMap<(Uuid, Vec<u8>), Folded>,
    held: usize,
    /// What takes back the operations of the entry, if that is kept.
    undo: Option<Undo>,
    /// The number of the operation in its entry, or in all entries of its chain.
    index: usize,
}

/// A document that exists.
type There = (RecordId, RawDocumentBuf);

/// A document before the batch, and now.
struct Folded {
    collection: Arc<Collection>,
    before: Option<There>,
    now: Option<There>,
}

impl<'s> Documents<'s> {
    pub(in crate::replica) fn new(store: &'s Store) -> Documents<'s> {
        Documents {
            store,
            collections: HashMap::new(),
            folded: BTreeMap::new(),
            held: 0,
            undo: None,
            index: 0,
        }
    }

    /// Keep what takes back the operations.
    pub(super) fn keep_undo(&mut self, keep: bool) {
        self.undo = keep.then(Undo::default);
    }

    /// What takes back the operations of the entry that ends here.
    pub(super) fn take_undo(&mut self) -> Undo {
        self.index = 0;
        self.undo.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn former(&mut self, record: Option<i64>, what: impl FnOnce() -> Result<What>) -> Result<()> {
        if let Some(undo) = &mut self.undo {
            undo.operations.push(Former {
                index: self.index,
                record,
                what: what()?,
            });
        }
        Ok(())
    }

    /// Apply an operation in memory.
    pub(super) fn apply(
        &mut self,
        work: &mut Work<'_>,
        at: At,
        operation: &Operation<'_>,
    ) -> Result<()> {
        match operation {
            Operation::Insert {
                place, document, ..
            } => self.insert(work, place, document)?,
            Operation::Update { place, update, key } => {
                self.update(work, (place, at), update, key)?;
            }
            Operation::Delete { place, key } => self.delete(work, (place, at), key)?,
            Operation::Command { .. } => {
                let message = "a command inside of applyOps is not supported";
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
            }
            Operation::Nothing { .. } => {}
        }
        self.index += 1;
        if HELD_MAX < self.held {
            self.write(work)?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        work: &mut Work<'_>,
        place: &Place<'_>,
        document: &RawDocument,
    ) -> Result<()> {
        document::check(document)?;
        let (folded, key) = self.find(work, place, document)?;
        if folded.now.is_some() {
            return Err(differs(place, "the inserted document exists", document));
        }
        let record = match folded.collection.is_clustered() {
            true => RecordId::clustered(&key),
            false => RecordId::number(folded.collection.core().counts.take_records(1)),
        };
        folded.now = Some((record, document.to_owned()));
        self.held += document.as_bytes().len();
        Ok(())
    }

    fn update(
        &mut self,
        work: &mut Work<'_>,
        (place, at): (&Place<'_>, At),
        update: &RawDocument,
        key: &RawDocument,
    ) -> Result<()> {
        let (folded, _) = self.find(work, place, key)?;
        let Some((_, old)) = &folded.now else {
            return self.missing(place, "the updated document is missing", key);
        };
        // A document begins with its `_id`.
        let first = update.iter().next().transpose()?;
        let version = first.filter(|(name, _)| name.as_str() == "$v");
        let next = match version.map(|(_, version)| version) {
            None => update.to_owned(),
            Some(RawBsonRef::Int32(2) | RawBsonRef::Int64(2)) => match update.get("diff")? {
                Some(RawBsonRef::Document(diff)) => delta(old, diff)?,
                _ => return Err(Error::parse("an update of version 2 has no diff")),
            },
            Some(_) => return Err(Error::parse("an update has an unknown version")),
        };
        document::check(&next)?;
        let id = |document: &RawDocument| document.get("_id")?.map(Bson::try_from).transpose();
        match (id(old)?, id(&next)?) {
            (Some(old), Some(new)) if identical_values(&old, &new) => {}
            _ => return Err(differs(place, "the update changes the _id", key)),
        }
        let old = folded.change(next.clone());
        self.held += old.as_bytes().len();
        self.former(None, || {
            Ok(match diff(&next, &old, Form::Operators)? {
                Difference::Delta(delta) => What::Diff(delta_of(&delta)?),
                _ => What::Document(old.clone()),
            })
        })?;
        self.image(work, (place, at), &old)
    }

    fn delete(
        &mut self,
        work: &mut Work<'_>,
        (place, at): (&Place<'_>, At),
        key: &RawDocument,
    ) -> Result<()> {
        let (folded, _) = self.find(work, place, key)?;
        let Some((record, old)) = folded.now.take() else {
            return self.missing(place, "the deleted document is missing", key);
        };
        self.former(record.as_number(), || Ok(What::Document(old.clone())))?;
        self.image(work, (place, at), &old)
    }

    /// A changed document is missing: nothing is to be done if an initial sync has not come to it
    /// yet (`replica::copy`: Y2).
    fn missing(&self, place: &Place<'_>, what: &str, key: &RawDocument) -> Result<()> {
        match self.store.lacks_documents(place.uuid) {
            true => Ok(()),
            false => Err(differs(place, what, key)),
        }
    }

    /// Take back an operation of an applied entry in memory; `index` is its number in the undo
    /// record.
    pub(in crate::replica) fn take_back(
        &mut self,
        work: &mut Work<'_>,
        (at, index): (At, usize),
        (operation, undo): (&Operation<'_>, &Undo),
        removed: &mut Removed,
    ) -> Result<()> {
        let former = || {
            let found = undo.operations.binary_search_by_key(&index, |f| f.index);
            let found = found.ok().and_then(|place| undo.operations.get(place));
            found.ok_or_else(|| no_record(at.0))
        };
        let place = match operation {
            Operation::Insert {
                place, document, ..
            } => {
                let (folded, _) = self.find(work, place, document)?;
                if folded.now.take().is_none() {
                    return Err(differs(place, "the inserted document is missing", document));
                }
                place
            }
            Operation::Update { place, key, .. } => {
                let former = former()?;
                let (folded, _) = self.find(work, place, key)?;
                let Some((_, now)) = &folded.now else {
                    return Err(differs(place, "the updated document is missing", key));
                };
                let old = match &former.what {
                    What::Document(document) => document.clone(),
                    What::Diff(diff) => delta(now, diff)?,
                };
                let size = folded.change(old).as_bytes().len();
                self.held += size;
                place
            }
            Operation::Delete { place, key } => {
                let former = former()?;
                let (folded, id) = self.find(work, place, key)?;
                let record = match (folded.collection.is_clustered(), former.record) {
                    (true, _) => RecordId::clustered(&id),
                    (false, Some(number)) if 0 <= number => RecordId::number(number),
                    _ => return Err(no_record(at.0)),
                };
                let (What::Document(document), None) = (&former.what, &folded.now) else {
                    return Err(differs(place, "the deleted document exists", key));
                };
                folded.now = Some((record, document.clone()));
                self.held += document.as_bytes().len();
                place
            }
            Operation::Command { .. } | Operation::Nothing { .. } => return Ok(()),
        };
        self.remove_image(work, (place.uuid, at))?;
        match HELD_MAX < self.held {
            true => self.write_back(work, removed),
            false => Ok(()),
        }
    }

    /// Remove the pre-image of an operation, if it has one.
    fn remove_image(&mut self, work: &mut Work<'_>, (uuid, at): (Uuid, At)) -> Result<()> {
        let Some(images) = work.images()? else {
            return Ok(());
        };
        let key = image::key(uuid, at.0, i64::try_from(at.2).unwrap_or(i64::MAX))?;
        let tree = images.records();
        if let Some(stored) = work.snapshot()?.get(tree, &key).map_err(error::engine)? {
            let size = image::size(&image::document(&stored)?);
            work.count(&images, -1, -size, 0);
            work.txn()?
                .delete_blind(tree, &key)
                .map_err(error::engine)?;
        }
        Ok(())
    }

    /// Put the document before a change, if its collection keeps pre-images.
    fn image(
        &mut self,
        work: &mut Work<'_>,
        (place, at): (&Place<'_>, At),
        old: &RawDocument,
    ) -> Result<()> {
        let collection = self.collection(work, place)?;
        if !collection.options().pre_images {
            return Ok(());
        }
        if let Some(images) = work.images()? {
            work.count(&images, 1, image::size(old), 0);
            image::put(work.txn()?, images.records(), at, (place.uuid, old))?;
        }
        Ok(())
    }

    /// The collection of an operation, by its UUID.
    fn collection(&mut self, work: &mut Work<'_>, place: &Place<'_>) -> Result<Arc<Collection>> {
        if let Some(collection) = self.collections.get(&place.uuid) {
            return Ok(Arc::clone(collection));
        }
        let catalog = self.store.catalog();
        let found = catalog.of_uuid(place.uuid).map(|found| found.ns().clone());
        let named = Namespace::parse(place.ns)?;
        let collection = match found {
            Some(ns) if ns == named && is_replicated(&ns) => work.collection(&ns)?,
            _ => None,
        };
        let Some(collection) = collection else {
            let message = format!("no collection {} has the UUID {}", place.ns, place.uuid);
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
        };
        if collection.id_index().is_none() && !collection.is_clustered() {
            let message = format!("the collection {} has no index on _id", place.ns);
            return Err(Error::new(Code::INDEX_NOT_FOUND, message));
        }
        self.collections.insert(place.uuid, Arc::clone(&collection));
        Ok(collection)
    }

    /// The document whose `_id` is that of another one, as it is now, and the key of the `_id`.
    fn find(
        &mut self,
        work: &mut Work<'_>,
        place: &Place<'_>,
        with_id: &RawDocument,
    ) -> Result<(&mut Folded, Vec<u8>)> {
        let collection = self.collection(work, place)?;
        let Some(id) = with_id.get("_id")? else {
            return Err(Error::new(Code::NO_SUCH_KEY, "an operation names no _id"));
        };
        let mut encoder = Encoder::new();
        encoder.append(id, false, collection.collation().map(AsRef::as_ref))?;
        encoder.end();
        let key = encoder.bytes().to_vec();
        let of = (place.uuid, key.clone());
        if !self.folded.contains_key(&of) {
            let snapshot = work.snapshot()?;
            let mut before = None;
            if let Some(record) = collection.find_id(snapshot, id)? {
                let mut bytes = Vec::new();
                if collection.fetch(snapshot, &record, &mut bytes)? {
                    self.held += bytes.len();
                    before = Some((record, RawDocumentBuf::from_bytes(bytes)?));
                }
            }
            let now = before.clone();
            let folded = Folded {
                collection,
                before,
                now,
            };
            self.folded.insert(of.clone(), folded);
        }
        let folded = self.folded.get_mut(&of);
        Ok((folded.expect("it was inserted above"), key))
    }

    /// [`Documents::write`] for a rollback: documents that are removed or changed are saved as they
    /// were before it.
    pub(in crate::replica) fn write_back(
        &mut self,
        work: &mut Work<'_>,
        removed: &mut Removed,
    ) -> Result<()> {
        for folded in self.folded.values() {
            if let Some((_, document)) = &folded.before
                && folded.before != folded.now
            {
                let collection = &folded.collection;
                removed.add((collection.ns(), collection.uuid()), document)?;
            }
        }
        self.write(work)
    }

    /// Write what has changed, and hold nothing any more.
    pub(in crate::replica) fn write(&mut self, work: &mut Work<'_>) -> Result<()> {
        let mut settle = Settle::new(work);
        for folded in std::mem::take(&mut self.folded).into_values() {
            let (before, now) = (state(&folded.before), state(&folded.now));
            if folded.before != folded.now {
                settle.document(&folded.collection, before, now)?;
            }
        }
        self.held = 0;
        settle.finish()
    }
}

impl Folded {
    /// Replace the document, which exists; returns the one before.
    fn change(&mut self, next: RawDocumentBuf) -> RawDocumentBuf {
        let (_, now) = self.now.as_mut().expect("the caller has found it");
        std::mem::replace(now, next)
    }
}

fn state(there: &Option<There>) -> Option<entries::State<'_>> {
    let (record, document) = there.as_ref()?;
    Some(entries::State { record, document })
}

/// The error of members that differ (J3).
fn differs(place: &Place<'_>, what: &str, document: &RawDocument) -> Error {
    let id = document.get("_id").ok().flatten();
    let ns = place.ns;
    let message = format!(
        "the members differ: {what} in {ns}, with the _id {id:?}; copy this member again from \
         another"
    );
    Error::new(Code::UPDATE_OPERATION_FAILED, message)
}
