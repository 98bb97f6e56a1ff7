//! What a change stream reads from the store: the oplog, current documents and pre-images.

use std::collections::VecDeque;

use bson::raw::cstr;
use bson::{RawBson, RawDocument, RawDocumentBuf, Timestamp, Uuid, rawdoc};
use query::{Code, Error, Namespace, Result};

use crate::change::event::Documents;
use crate::change::stream::{Entries, lost};
use crate::find::FindRequest;
use crate::oplog::slots::before;
use crate::store::Store;
use crate::txn::Op;

/// Entries and bytes that are read from the engine at once, and one entry more: enough to spread
/// the cost of a snapshot and a seek over small ones.
const CHUNK: (usize, usize) = (64, 1 << 20);

/// The visible entries of the oplog, read in chunks.
pub(super) struct Tail<'s> {
    store: &'s Store,
    op: &'s Op<'s>,
    /// The time up to which entries are returned, set by a seek.
    visible: Timestamp,
    chunk: VecDeque<(Timestamp, RawDocumentBuf)>,
    /// The entry that was returned last.
    current: Option<(Timestamp, RawDocumentBuf)>,
    /// The time of the last entry that was read.
    last: Timestamp,
    /// Whether all visible entries were read.
    ended: bool,
}

impl<'s> Tail<'s> {
    pub(super) fn new(store: &'s Store, op: &'s Op<'s>) -> Tail<'s> {
        Tail {
            store,
            op,
            visible: BEGIN,
            chunk: VecDeque::new(),
            current: None,
            last: BEGIN,
            ended: false,
        }
    }

    /// Read the next chunk.
    fn read(&mut self) -> Result<()> {
        let (mut entries, mut left) = (Vec::new(), CHUNK.1);
        let mut after = self.last;
        self.store.visit_oplog(&mut after, self.visible, |entry| {
            left = left.saturating_sub(entry.as_bytes().len());
            entries.push(entry.to_owned());
            Ok(entries.len() < CHUNK.0 && 0 < left)
        })?;
        self.ended = entries.is_empty();
        for entry in entries {
            self.last = time_of(&entry)?;
            self.chunk.push_back((self.last, entry));
        }
        Ok(())
    }
}

const BEGIN: Timestamp = Timestamp {
    time: 0,
    increment: 0,
};

impl Entries for Tail<'_> {
    fn seek(&mut self, time: Timestamp) -> Result<bool> {
        self.visible = self.store.oplog().map_or(BEGIN, |oplog| oplog.followed());
        self.chunk.clear();
        self.last = before(time);
        // The first read finds out whether entries were removed.
        match self.read() {
            Err(error) if is_lost(&error) => Ok(false),
            read => read.map(|()| true),
        }
    }

    fn advance(&mut self) -> Result<Option<(Timestamp, &RawDocument)>> {
        self.op.check()?;
        if self.chunk.is_empty() && !self.ended {
            self.read().map_err(|error| match is_lost(&error) {
                true => lost(),
                false => error,
            })?;
        }
        self.current = self.chunk.pop_front();
        let current = self.current.as_ref();
        Ok(current.map(|(time, entry)| (*time, &**entry)))
    }

    fn entry(&mut self, time: Timestamp) -> Result<Option<RawDocumentBuf>> {
        let mut found = match self.store.oplog_after(before(time), 1) {
            Err(error) if is_lost(&error) => return Ok(None),
            found => found?,
        };
        match found.pop() {
            Some(entry) if time_of(&entry)? == time => Ok(Some(entry)),
            _ => Ok(None),
        }
    }

    fn visible(&self) -> Timestamp {
        self.visible
    }
}

/// The documents of the store.
pub(super) struct Current<'s> {
    pub(super) store: &'s Store,
    pub(super) op: &'s Op<'s>,
}

impl Documents for Current<'_> {
    fn current(&self, ns: &str, uuid: Uuid, key: &RawDocument) -> Result<Option<RawDocumentBuf>> {
        let ns = Namespace::parse(ns)?;
        let collection = self.store.collection(&ns);
        if collection.is_none_or(|collection| collection.uuid() != uuid) {
            return Ok(None);
        }
        let Some(id) = key.get("_id")? else {
            return Ok(None);
        };
        let mut equal = RawDocumentBuf::new();
        equal.append(cstr!("$eq"), RawBson::from(id));
        let request = FindRequest {
            filter: rawdoc! { "_id": equal },
            collation: Some(rawdoc! { "locale": "simple" }),
            limit: Some(1),
            single_batch: true,
            ..FindRequest::default()
        };
        Ok(self.store.find(self.op, &ns, &request)?.documents.pop())
    }

    fn before(&self, uuid: Uuid, time: Timestamp, index: i64) -> Result<Option<RawDocumentBuf>> {
        self.store.image_before(uuid, time, index)
    }
}

fn time_of(entry: &RawDocument) -> Result<Timestamp> {
    Ok(entry.get_timestamp("ts")?)
}

/// Whether the entries that were asked for were removed.
fn is_lost(error: &Error) -> bool {
    error.code == Code::CAPPED_POSITION_LOST
}
