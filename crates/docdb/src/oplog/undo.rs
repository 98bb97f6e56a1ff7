//! Undo records: what takes back the changes of an entry, written by a primary beside it while the
//! store keeps them.
//!
//! Tree `_undo`. A key is `c` for the catalog or `d` for documents and sessions, the time of the
//! entry (of a chain, of its last one) and the number of the part, 4 bytes, big-endian. The
//! value is a document:
//!
//! ```text
//! {o: [{i, r, b} | {i, d}, ..], s: [{k, v}, ..], c: [{ns, v}, ..]}
//! ```
//!
//! - `o`: of operation `i` of the entry, which is an update or a delete, the diff `d` that leads
//!   back, or the document before, `b`; of a delete also the number `r` of its record.
//! - `s`: the records of the session before, each by its key; without `v` if it was missing.
//! - `c`: the catalog's documents before, by the names; without `v` if there was none.
//!
//! An insert needs none: it is taken back by the `_id` in its entry.
//!
//! - Z1. The record is put in the engine transaction of its entry: a store has both or neither.
//! - Z2. What the record of a change of the catalog refers to, the trees of collections and indexes
//!   that are dropped, exists until the record is removed.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};
use kv::{Direction, Engine, ErrorKind, KeyRange, Snapshot, Transaction, TreeId};
use query::Result;
use std::sync::OnceLock;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::segment;
use super::slots::next;
use crate::error;

/// Name of the tree.
pub(crate) const TREE: &str = "_undo";

/// The kinds of keys.
const CATALOG: u8 = b'c';
const DOCUMENTS: u8 = b'd';

/// Bytes of a part, after which another one begins.
const PART: usize = 1 << 20;

/// Whether a store keeps undo records, and where.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    on: AtomicBool,
    /// Present once records were kept.
    tree: OnceLock<TreeId>,
    /// The number of the last committed time: earlier records are removed.
    committed: AtomicU64,
}

impl Keeping {
    /// That of a store, which may have records.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(super) fn open(engine: &dyn Engine) -> Result<Keeping> {
        let keeping = Keeping::default();
        match engine.open_tree(TREE) {
            Ok(tree) => keeping.set_tree(tree),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(error::engine(e)),
        }
        Ok(keeping)
    }

    /// The tree into which records are put, while they are kept.
    pub(crate) fn kept(&self) -> Option<TreeId> {
        match self.on.load(Ordering::Relaxed) {
            true => self.tree(),
            false => None,
        }
    }

    /// The tree of the records, if it exists.
    pub(crate) fn tree(&self) -> Option<TreeId> {
        self.tree.get().copied()
    }

    /// Set the tree.
    pub(crate) fn set_tree(&self, tree: TreeId) {
        let set = self.tree.get_or_init(|| tree);
        debug_assert_eq!(*set, tree, "a store has one such tree");
    }

    /// Begin or end to keep records; the tree exists.
    pub(crate) fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// All entries up to this time are committed.
    pub(crate) fn commit(&self, time: Timestamp) {
        self.committed
            .fetch_max(segment::number(time), Ordering::Relaxed);
    }

    /// The time up to which all entries are committed.
    pub(crate) fn committed(&self) -> Timestamp {
        segment::from_number(self.committed.load(Ordering::Relaxed))
    }
}

/// What takes back the changes of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Undo {
    pub(crate) operations: Vec<Former>,
    /// Keys and former values in the tree of sessions.
    pub(crate) sessions: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Names and former documents of the catalog.
    pub(crate) catalog: Vec<(String, Option<Vec<u8>>)>,
}

/// What takes back an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Former {
    /// The index of the operation in its entry, or in all entries of its chain.
    pub(crate) index: usize,
    /// The number of the record of a deleted document.
    pub(crate) record: Option<i64>,
    pub(crate) what: What,
}

/// The document before an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Document(RawDocumentBuf),
    /// The diff from the document after it.
    Diff(RawDocumentBuf),
}

impl Undo {
    /// Whether there is nothing to put.
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.sessions.is_empty() && self.catalog.is_empty()
    }

    /// Put the record of the entry at a time (Z1).
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn put(
        &self,
        txn: &mut (dyn Transaction + '_),
        (tree, time): (TreeId, Timestamp),
    ) -> Result<()> {
        let mut parts = Parts {
            txn,
            tree,
            place: (DOCUMENTS, time),
            number: 0,
            lists: Default::default(),
            bytes: 0,
        };
        for former in &self.operations {
            parts.add(0, &former.to_raw())?;
        }
        for (key, value) in &self.sessions {
            let mut one = RawDocumentBuf::new();
            one.append(cstr!("k"), binary(key));
            if let Some(value) = value {
                one.append(cstr!("v"), binary(value));
            }
            parts.add(1, &one)?;
        }
        parts.end()?;
        parts.place = (CATALOG, time);
        for (ns, value) in &self.catalog {
            let mut one = RawDocumentBuf::new();
            one.append(cstr!("ns"), ns.as_str());
            if let Some(value) = value {
                one.append(cstr!("v"), binary(value));
            }
            parts.add(2, &one)?;
        }
        parts.end()
    }

    /// The record of the entry at a time; empty if it has none.
    ///
    /// # Errors
    /// Errors of the engine; a record that cannot be decoded.
    pub(crate) fn load(snapshot: &dyn Snapshot, tree: TreeId, time: Timestamp) -> Result<Undo> {
        let mut undo = Undo::default();
        for kind in [CATALOG, DOCUMENTS] {
            let (start, end) = range(kind, (time, time));
            let range = KeyRange::half_open(&start, &end);
            let cursor = snapshot.cursor(tree, range, Direction::Forward);
            let mut cursor = cursor.map_err(error::engine)?;
            while cursor.advance().map_err(error::engine)? {
                undo.read(RawDocument::from_bytes(cursor.value())?)?;
            }
        }
        Ok(undo)
    }

    /// The former documents of the catalog in the records of entries with times after `after` and
    /// up to `until`, without the names.
    ///
    /// # Errors
    /// Errors of the engine; a record that cannot be decoded.
    pub(crate) fn formers(
        snapshot: &dyn Snapshot,
        tree: TreeId,
        (after, until): (Timestamp, Timestamp),
    ) -> Result<Vec<Vec<u8>>> {
        let mut undo = Undo::default();
        if after < until {
            let (start, end) = range(CATALOG, (next(after), until));
            let range = KeyRange::half_open(&start, &end);
            let cursor = snapshot.cursor(tree, range, Direction::Forward);
            let mut cursor = cursor.map_err(error::engine)?;
            while cursor.advance().map_err(error::engine)? {
                undo.read(RawDocument::from_bytes(cursor.value())?)?;
            }
        }
        Ok(undo
            .catalog
            .into_iter()
            .filter_map(|(_, former)| former)
            .collect())
    }

    /// Whether there are records of entries with times up to `until`.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn has(snapshot: &dyn Snapshot, tree: TreeId, until: Timestamp) -> Result<bool> {
        let first = Timestamp {
            time: 0,
            increment: 0,
        };
        for kind in [CATALOG, DOCUMENTS] {
            let (start, end) = range(kind, (first, until));
            let range = KeyRange::half_open(&start, &end);
            let cursor = snapshot.cursor(tree, range, Direction::Forward);
            if cursor
                .map_err(error::engine)?
                .advance()
                .map_err(error::engine)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Remove the records of entries with times from `from` up to `until`.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn remove(
        txn: &mut (dyn Transaction + '_),
        tree: TreeId,
        times: (Timestamp, Timestamp),
    ) -> Result<()> {
        for kind in [CATALOG, DOCUMENTS] {
            let (start, end) = range(kind, times);
            let range = KeyRange::half_open(&start, &end);
            txn.delete_range(tree, range).map_err(error::engine)?;
        }
        Ok(())
    }

    /// Add what a part has.
    pub(crate) fn read(&mut self, part: &RawDocument) -> Result<()> {
        for former in documents(part, "o")? {
            self.operations.push(Former::parse(former)?);
        }
        for one in documents(part, "s")? {
            let Some(RawBsonRef::Binary(key)) = one.get("k")? else {
                return Err(damaged());
            };
            self.sessions.push((key.bytes.to_vec(), value(one)?));
        }
        for one in documents(part, "c")? {
            let Some(RawBsonRef::String(ns)) = one.get("ns")? else {
                return Err(damaged());
            };
            self.catalog.push((ns.to_owned(), value(one)?));
        }
        Ok(())
    }
}

impl Former {
    fn to_raw(&self) -> RawDocumentBuf {
        let mut out = RawDocumentBuf::new();
        out.append(cstr!("i"), i64::try_from(self.index).unwrap_or(i64::MAX));
        if let Some(record) = self.record {
            out.append(cstr!("r"), record);
        }
        match &self.what {
            What::Document(document) => out.append(cstr!("b"), &**document),
            What::Diff(diff) => out.append(cstr!("d"), &**diff),
        }
        out
    }

    fn parse(former: &RawDocument) -> Result<Former> {
        let index = former.get("i")?.and_then(RawBsonRef::as_i64);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let what = match (former.get("b")?, former.get("d")?) {
            (Some(RawBsonRef::Document(document)), None) => What::Document(document.to_owned()),
            (None, Some(RawBsonRef::Document(diff))) => What::Diff(diff.to_owned()),
            _ => return Err(damaged()),
        };
        Ok(Former {
            index: index.ok_or_else(damaged)?,
            record: former.get("r")?.and_then(RawBsonRef::as_i64),
            what,
        })
    }
}

/// The parts of a record, being put.
struct Parts<'t, 'e> {
    txn: &'t mut (dyn Transaction + 'e),
    tree: TreeId,
    place: (u8, Timestamp),
    number: u32,
    lists: [RawArrayBuf; 3],
    bytes: usize,
}

impl Parts<'_, '_> {
    fn add(&mut self, list: usize, one: &RawDocument) -> Result<()> {
        if let Some(list) = self.lists.get_mut(list) {
            list.push(one.to_owned());
        }
        self.bytes += one.as_bytes().len();
        if PART < self.bytes {
            self.end()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let mut part = RawDocumentBuf::new();
        let [operations, sessions, catalog] = std::mem::take(&mut self.lists);
        part.append(cstr!("o"), operations);
        part.append(cstr!("s"), sessions);
        part.append(cstr!("c"), catalog);
        let key = key(self.place, self.number);
        let put = self.txn.put_blind(self.tree, &key, part.as_bytes());
        put.map_err(error::engine)?;
        self.number += 1;
        self.bytes = 0;
        Ok(())
    }
}

/// The key of a part.
fn key((kind, time): (u8, Timestamp), part: u32) -> Vec<u8> {
    [&[kind][..], &segment::key(time), &part.to_be_bytes()].concat()
}

/// The bounds of the keys of a kind and of a range of times, both included.
fn range(kind: u8, (from, until): (Timestamp, Timestamp)) -> (Vec<u8>, Vec<u8>) {
    (key((kind, from), 0), key((kind, until), u32::MAX))
}

fn documents<'p>(part: &'p RawDocument, name: &str) -> Result<Vec<&'p RawDocument>> {
    let list: &RawArray = match part.get(name)? {
        Some(RawBsonRef::Array(list)) => list,
        _ => return Err(damaged()),
    };
    let one = |value| match value {
        Ok(RawBsonRef::Document(one)) => Ok(one),
        _ => Err(damaged()),
    };
    list.into_iter().map(one).collect()
}

fn value(one: &RawDocument) -> Result<Option<Vec<u8>>> {
    match one.get("v")? {
        None => Ok(None),
        Some(RawBsonRef::Binary(value)) => Ok(Some(value.bytes.to_vec())),
        Some(_) => Err(damaged()),
    }
}

fn binary(bytes: &[u8]) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    }
}

fn damaged() -> query::Error {
    error::corrupt("an undo record of the oplog cannot be decoded")
}
