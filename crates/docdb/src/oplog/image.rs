//! Pre-images: documents from right before a change, for the change streams that show them.
//!
//! They are the documents of `config.system.preimages`, a clustered collection without indexes:
//!
//! ```text
//! {_id: {nsUUID: UUID, ts: Timestamp, applyOpsIndex: Long}, operationTime: Date, preImage: {..}}
//! ```
//!
//! `ts` is the time of the oplog entry, `applyOpsIndex` the index of the operation in it (0 for an
//! entry of one operation), and `operationTime` the wall clock of the entry.
//!
//! - P1. A pre-image is put in the engine transaction of its entry: a store has both or neither.
//! - P2. No operation of a client writes or changes the collection, and it has no entries of its
//!   own: each member makes it from what it applies.

use std::ops::Range;

use bson::raw::cstr;
use bson::{Binary, DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use kv::{Transaction, TreeId};
use query::{Namespace, Result};

use crate::collection::{Collection, CollectionOptions};
use crate::error;
use crate::key::Encoder;

/// Database and name.
const NAME: (&str, &str) = ("config", "system.preimages");

/// Bytes of a stored pre-image beside the document.
const AROUND: usize = 112;

/// Pre-images of an engine transaction, in the order of its operations.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// The tree of the collection; `None` without images.
    tree: Option<TreeId>,
    all: Vec<Image>,
}

#[derive(Debug)]
struct Image {
    /// The index of the operation that changed the document.
    operation: usize,
    /// The collection of the document.
    uuid: Uuid,
    document: RawDocumentBuf,
}

impl Images {
    /// Add the document before an operation to those of the collection with this tree.
    pub(super) fn push(&mut self, tree: TreeId, operation: usize, old: (Uuid, &RawDocument)) {
        self.tree = Some(tree);
        self.all.push(Image {
            operation,
            uuid: old.0,
            document: old.1.to_owned(),
        });
    }

    /// Put those of a range of operations, which are the operations of the entry with this time and
    /// wall clock (P1).
    ///
    /// # Errors
    /// Errors of the engine.
    pub(super) fn put(
        &self,
        txn: &mut (dyn Transaction + '_),
        (time, wall): (Timestamp, DateTime),
        operations: &Range<usize>,
    ) -> Result<()> {
        let Some(tree) = self.tree else {
            return Ok(());
        };
        let start = self
            .all
            .partition_point(|image| image.operation < operations.start);
        let images = self.all.iter().skip(start);
        for image in images.take_while(|image| image.operation < operations.end) {
            let index = image.operation - operations.start;
            put(
                txn,
                tree,
                (time, wall, index),
                (image.uuid, &image.document),
            )?;
        }
        Ok(())
    }
}

/// Put the document before the operation with an index in the entry with this time and wall clock
/// (P1); `old` has the UUID of its collection.
///
/// # Errors
/// Errors of the engine.
pub(crate) fn put(
    txn: &mut (dyn Transaction + '_),
    tree: TreeId,
    (time, wall, index): (Timestamp, DateTime, usize),
    (uuid, old): (Uuid, &RawDocument),
) -> Result<()> {
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    let id = id(uuid, time, index);
    let mut stored = RawDocumentBuf::new();
    stored.append(cstr!("_id"), &*id);
    stored.append(cstr!("operationTime"), wall);
    stored.append(cstr!("preImage"), old);
    let put = txn.put_blind(tree, &key_of(&id)?, stored.as_bytes());
    put.map_err(error::engine)
}

/// The bytes of the stored pre-image of a document.
pub(crate) fn size(document: &RawDocument) -> i64 {
    let bytes = AROUND.saturating_add(document.as_bytes().len());
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The namespace of the collection.
pub(crate) fn namespace() -> Namespace {
    Namespace {
        db: NAME.0.to_owned(),
        coll: NAME.1.to_owned(),
    }
}

/// Whether this is the namespace of the collection.
pub(crate) fn is_namespace(ns: &Namespace) -> bool {
    (ns.db.as_str(), ns.coll.as_str()) == NAME
}

/// The options of the collection.
pub(crate) fn options() -> CollectionOptions {
    CollectionOptions {
        clustered: Some("_id_".to_owned()),
        ..CollectionOptions::default()
    }
}

/// The key of the record of an image: that of the operation with an index in the entry of a time.
///
/// # Errors
/// None: the `_id` is valid.
pub(crate) fn key(uuid: Uuid, time: Timestamp, index: i64) -> Result<Vec<u8>> {
    key_of(&id(uuid, time, index))
}

/// The document in a stored pre-image.
///
/// # Errors
/// `InvalidBSON`; bytes that are no pre-image.
pub(crate) fn document(stored: &[u8]) -> Result<RawDocumentBuf> {
    match RawDocument::from_bytes(stored)?.get("preImage")? {
        Some(RawBsonRef::Document(document)) => Ok(document.to_owned()),
        _ => Err(damaged()),
    }
}

/// The collection of the document, the time of the entry and its wall clock, in a stored pre-image.
///
/// # Errors
/// `InvalidBSON`; bytes that are no pre-image.
pub(crate) fn origin(stored: &[u8]) -> Result<(Uuid, Timestamp, DateTime)> {
    let stored = RawDocument::from_bytes(stored)?;
    let (Some(RawBsonRef::Document(id)), Some(RawBsonRef::DateTime(wall))) =
        (stored.get("_id")?, stored.get("operationTime")?)
    else {
        return Err(damaged());
    };
    let (Some(RawBsonRef::Binary(uuid)), Some(RawBsonRef::Timestamp(time))) =
        (id.get("nsUUID")?, id.get("ts")?)
    else {
        return Err(damaged());
    };
    let bytes: [u8; 16] = uuid.bytes.try_into().map_err(|_| damaged())?;
    Ok((Uuid::from_bytes(bytes), time, wall))
}

impl Collection {
    /// Whether it is the collection of pre-images.
    pub(crate) fn is_images(&self) -> bool {
        is_namespace(self.ns())
    }
}

fn id(uuid: Uuid, time: Timestamp, index: i64) -> RawDocumentBuf {
    let mut id = RawDocumentBuf::new();
    id.append(cstr!("nsUUID"), Binary::from(uuid));
    id.append(cstr!("ts"), time);
    id.append(cstr!("applyOpsIndex"), index);
    id
}

fn key_of(id: &RawDocument) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new();
    encoder.append(RawBsonRef::Document(id), false, None)?;
    encoder.end();
    Ok(encoder.bytes().to_vec())
}

fn damaged() -> query::Error {
    error::corrupt(format_args!(
        "{}.{} has what is no pre-image",
        NAME.0, NAME.1
    ))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn keys_have_the_order_of_collections_and_times() {
        let at = |time, increment| Timestamp { time, increment };
        let uuid = |byte| Uuid::from_bytes([byte; 16]);
        let places = [
            (uuid(1), at(1, 2), 0),
            (uuid(1), at(1, 2), 1),
            (uuid(1), at(1, 2), 300),
            (uuid(1), at(1, 300), 0),
            (uuid(1), at(2, 1), 0),
            (uuid(2), at(1, 1), 0),
        ];
        let keys: Vec<Vec<u8>> = places
            .iter()
            .map(|(uuid, time, index)| key(*uuid, *time, *index).unwrap())
            .collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().all(|key| key.len() < 100));
    }

    #[test]
    fn what_is_no_pre_image_is_refused() {
        for stored in [
            rawdoc! {},
            rawdoc! { "_id": 1, "operationTime": DateTime::MIN, "preImage": 1 },
            rawdoc! { "_id": { "nsUUID": 1, "ts": 1 }, "operationTime": DateTime::MIN },
        ] {
            assert!(document(stored.as_bytes()).is_err());
            assert!(origin(stored.as_bytes()).is_err());
        }
        assert!(origin(b"short").is_err());
    }
}
