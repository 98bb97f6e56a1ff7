//! Processing of the entries that a scan reads: filtering them and building the items.

use std::sync::Arc;

use bson::raw::{CStr, cstr};
use bson::{RawBson, RawDocument, RawDocumentBuf};
use kv::TreeId;
use query::Result;
use query::filter::Filter;

use super::cx::Cx;
use super::item::{Counts, Item};
use crate::error::engine;
use crate::index::{Entry, Index, KeySet};
use crate::plan::{ByteRange, Cover, Keys};
use crate::record::RecordId;

/// The part of each document that a scan returns.
#[derive(Clone)]
pub(crate) enum Shape {
    /// The whole document.
    Document,
    /// The fields in the index key; the document is not read.
    Covered {
        /// Builds documents from keys.
        cover: Arc<Cover>,
        /// Whether these documents are the client's result, so that no projection follows.
        projected: bool,
    },
    /// The whole document with the key it was found by appended as the field [`KEY`], which stays
    /// there until the end for sorts and filters.
    Keyed(Keyed),
    /// Only the record id.
    Record,
}

/// The key that documents are found by.
#[derive(Clone)]
pub(crate) enum Keyed {
    /// No key: a scan of the records.
    Nothing,
    /// The `_id`.
    Id,
    /// The key of an index.
    Entry(Arc<Keys>),
}

/// Name of the field that carries the key; it is the last field.
const KEY: &CStr = cstr!("$returnKey");

/// The records tree of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Records {
    /// The tree.
    pub(crate) tree: TreeId,
    /// Whether their keys are key strings of `_id`.
    pub(crate) clustered: bool,
}

/// Last step of every scan: filters entries and builds items.
#[derive(Clone)]
pub(crate) struct Output {
    /// The collection's records.
    pub(crate) records: Records,
    /// The filter left to evaluate; `None` when the scan's bounds prove it.
    pub(crate) filter: Option<Arc<Filter>>,
    /// The whole filter, for keys that do not prove the bounds.
    pub(crate) full: Option<Arc<Filter>>,
    /// The part of each document that is returned.
    pub(crate) shape: Shape,
}

impl Output {
    /// The item of a record read from the records tree; `None` if it does not match.
    pub(crate) fn of_document(&self, record: RecordId, bytes: &[u8]) -> Result<Option<Item>> {
        self.judge(record, bytes, self.filter.as_deref(), None)
    }

    fn judge(
        &self,
        record: RecordId,
        bytes: &[u8],
        filter: Option<&Filter>,
        entry: Option<&Entry<'_>>,
    ) -> Result<Option<Item>> {
        let document = RawDocument::from_bytes(bytes)?;
        if !passes(filter, document)? {
            return Ok(None);
        }
        let document = match &self.shape {
            Shape::Record => RawDocumentBuf::new(),
            Shape::Keyed(keyed) => keyed.with_key(document, entry)?,
            _ => document.to_owned(),
        };
        Ok(Some(Item {
            record,
            document,
            projected: false,
        }))
    }

    /// As `judge`, for a document that was read into `scratch`. An item that is the whole document
    /// takes the memory over, unless it is for a longer document: items may be kept for long.
    fn judge_read(
        &self,
        record: RecordId,
        scratch: &mut Vec<u8>,
        filter: Option<&Filter>,
        entry: Option<&Entry<'_>>,
    ) -> Result<Option<Item>> {
        if matches!(self.shape, Shape::Record | Shape::Keyed(_)) {
            return self.judge(record, scratch, filter, entry);
        }
        if !passes(filter, RawDocument::from_bytes(&scratch)?)? {
            return Ok(None);
        }
        let fits = scratch.capacity() - scratch.len() <= scratch.len() / 8;
        let bytes = match fits {
            true => std::mem::take(scratch),
            false => scratch.clone(),
        };
        Ok(Some(Item {
            record,
            document: RawDocumentBuf::from_bytes(bytes)?,
            projected: false,
        }))
    }

    /// The item of an index entry. `doubtful` says that the key does not prove the plan's bounds:
    /// then the whole filter is evaluated on the document.
    pub(crate) fn of_entry(
        &self,
        entry: &Entry<'_>,
        doubtful: bool,
        cx: &Cx<'_>,
        scratch: &mut Vec<u8>,
        counts: &mut Counts,
    ) -> Result<Option<Item>> {
        if !doubtful {
            if let Shape::Covered { cover, projected } = &self.shape
                && let Some(document) = cover.document(entry.key, entry.type_bits)
            {
                if let Some(filter) = &self.filter
                    && !filter.matches(&document)?
                {
                    return Ok(None);
                }
                return Ok(Some(Item {
                    record: entry.record.clone(),
                    document,
                    projected: *projected,
                }));
            }
            if matches!(self.shape, Shape::Record) && self.filter.is_none() {
                return Ok(Some(Item {
                    record: entry.record.clone(),
                    document: RawDocumentBuf::new(),
                    projected: false,
                }));
            }
        }
        let filter = if doubtful { &self.full } else { &self.filter };
        if !self.read(&entry.record, cx, scratch, counts)? {
            return Ok(None);
        }
        let record = entry.record.clone();
        self.judge_read(record, scratch, filter.as_deref(), Some(entry))
    }

    /// Whether the full key of an entry with a truncated key lies between `edges`. The full key is
    /// derived from the document.
    pub(crate) fn is_within(
        &self,
        edges: &ByteRange,
        entry: &Entry<'_>,
        index: &Index,
        cx: &Cx<'_>,
        counts: &mut Counts,
    ) -> Result<bool> {
        let mut document = Vec::new();
        if !self.read(&entry.record, cx, &mut document, counts)? {
            return Ok(false);
        }
        let mut keys = KeySet::uncut();
        let document = RawDocument::from_bytes(&document)?;
        let key = index.whole_key(document, entry.key, &mut keys)?;
        Ok(key.is_some_and(|key| edges.holds(key.bytes)))
    }

    /// Read the document of `record` again and apply the whole filter: for items held since an
    /// earlier view of the store.
    pub(crate) fn again(
        &self,
        record: &RecordId,
        cx: &Cx<'_>,
        scratch: &mut Vec<u8>,
        counts: &mut Counts,
    ) -> Result<Option<Item>> {
        if !self.read(record, cx, scratch, counts)? {
            return Ok(None);
        }
        self.judge_read(record.clone(), scratch, self.full.as_deref(), None)
    }

    /// Whether items carry the key they were found by, which a second read does not provide.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self.shape, Shape::Keyed(_))
    }

    /// Read a document; false when it no longer exists.
    fn read(
        &self,
        record: &RecordId,
        cx: &Cx<'_>,
        scratch: &mut Vec<u8>,
        counts: &mut Counts,
    ) -> Result<bool> {
        let tree = self.records.tree;
        let found = match record.as_number() {
            Some(number) => cx.snapshot.get_into(tree, &number.to_be_bytes(), scratch),
            None => cx.snapshot.get_into(tree, &record.key(), scratch),
        };
        counts.documents += 1;
        found.map_err(engine)
    }
}

impl Keyed {
    fn with_key(
        &self,
        document: &RawDocument,
        entry: Option<&Entry<'_>>,
    ) -> Result<RawDocumentBuf> {
        let key = match (self, entry) {
            (Keyed::Entry(keys), Some(entry)) => {
                keys.document(entry.key, entry.type_bits, document)?
            }
            (Keyed::Id, _) => match document.get("_id")? {
                Some(id) => {
                    let mut key = RawDocumentBuf::new();
                    key.append(cstr!("_id"), RawBson::from(id));
                    key
                }
                None => RawDocumentBuf::new(),
            },
            _ => RawDocumentBuf::new(),
        };
        let mut document = document.to_owned();
        document.append(KEY, key);
        Ok(document)
    }
}

/// The key that a document carries in its last field.
///
/// # Errors
/// The bytes are not a valid document.
pub(crate) fn carried_key(document: &RawDocument) -> Result<RawDocumentBuf> {
    let last = document.iter_elements().last().transpose()?;
    let key = match last {
        Some(last) if last.key() == KEY.as_str() => last.value()?.as_document(),
        _ => None,
    };
    Ok(key.map_or_else(RawDocumentBuf::new, RawDocument::to_owned))
}

fn passes(filter: Option<&Filter>, document: &RawDocument) -> Result<bool> {
    filter.map_or(Ok(true), |filter| filter.matches(document))
}
