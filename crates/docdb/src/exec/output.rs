//! What becomes of an entry that a scan meets: the filter's word, and what is handed on.

use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};
use kv::TreeId;
use query::Result;
use query::filter::Filter;

use super::cx::Cx;
use super::item::{Counts, Item};
use crate::error::engine;
use crate::plan::Cover;
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
    /// Only which one it is.
    Record,
}

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
        self.judge(record, bytes, self.filter.as_deref())
    }

    fn judge(
        &self,
        record: RecordId,
        bytes: &[u8],
        filter: Option<&Filter>,
    ) -> Result<Option<Item>> {
        let document = RawDocument::from_bytes(bytes)?;
        if let Some(filter) = filter
            && !filter.matches(document)?
        {
            return Ok(None);
        }
        let document = match self.shape {
            Shape::Record => RawDocumentBuf::new(),
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
        entry: &crate::index::Entry<'_>,
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
        self.fetch(entry.record.clone(), filter.as_deref(), cx, scratch, counts)
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
        self.fetch(record.clone(), self.full.as_deref(), cx, scratch, counts)
    }

    fn fetch(
        &self,
        record: RecordId,
        filter: Option<&Filter>,
        cx: &Cx<'_>,
        scratch: &mut Vec<u8>,
        counts: &mut Counts,
    ) -> Result<Option<Item>> {
        let tree = self.records.tree;
        let found = match record.as_number() {
            Some(number) => cx.snapshot.get_into(tree, &number.to_be_bytes(), scratch),
            None => cx.snapshot.get_into(tree, &record.key(), scratch),
        };
        counts.documents += 1;
        if !found.map_err(engine)? {
            return Ok(None);
        }
        self.judge(record, scratch, filter)
    }
}
