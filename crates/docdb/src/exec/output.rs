//! What becomes of an entry that a scan meets: the filter's word, and what is handed on.

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

/// How much of each document is wanted.
#[derive(Clone)]
pub(crate) enum Shape {
    /// All of it.
    Document,
    /// What the key of the index holds.
    Covered {
        /// Makes documents of keys.
        cover: Arc<Cover>,
        /// Whether they are what the client gets.
        projected: bool,
    },
    /// All of it, and behind it, as the field [`KEY`], the key it was found by: what sorts and
    /// filters read stays there until the end.
    Keyed(Keyed),
    /// Only which one it is.
    Record,
}

/// By which key documents are found.
#[derive(Clone)]
pub(crate) enum Keyed {
    /// By none: they are read as records.
    Nothing,
    /// By their `_id`.
    Id,
    /// By that of an index.
    Entry(Arc<Keys>),
}

/// The name of the field with the key; it is the last one.
const KEY: &CStr = cstr!("$returnKey");

/// The records of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Records {
    /// Their tree.
    pub(crate) tree: TreeId,
    /// Whether their keys are key strings of `_id`.
    pub(crate) clustered: bool,
}

/// The end of every scan.
#[derive(Clone)]
pub(crate) struct Output {
    /// Where documents are.
    pub(crate) records: Records,
    /// What they must match; nothing when the scan proves it.
    pub(crate) filter: Option<Arc<Filter>>,
    /// The whole filter, for keys that prove nothing.
    pub(crate) full: Option<Arc<Filter>>,
    /// What is handed on.
    pub(crate) shape: Shape,
}

impl Output {
    /// A record that was read as such.
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
        if let Some(filter) = filter
            && !filter.matches(document)?
        {
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

    /// An entry of an index. `doubtful` says that the key does not prove what the plan thinks:
    /// then the document decides.
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
        self.judge(record, scratch, filter.as_deref(), Some(entry))
    }

    /// Whether the key of an entry, which was cut, lies between `edges`: its document says what the
    /// whole key is.
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

    /// Read the document of `record` and judge it by the whole filter: for items held since an
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
        self.judge(record.clone(), scratch, self.full.as_deref(), None)
    }

    /// Whether items carry the key they were found by, which reading again does not give.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self.shape, Shape::Keyed(_))
    }

    /// Read a document; false when it is gone.
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

/// The key that a document carries behind itself.
///
/// # Errors
/// Bytes that are no document.
pub(crate) fn carried_key(document: &RawDocument) -> Result<RawDocumentBuf> {
    let last = document.iter_elements().last().transpose()?;
    let key = match last {
        Some(last) if last.key() == KEY.as_str() => last.value()?.as_document(),
        _ => None,
    };
    Ok(key.map_or_else(RawDocumentBuf::new, RawDocument::to_owned))
}
