//! The state of a copy, in the catalog's tree.
//!
//! The key `pcopy` has the document of the copy, and keys with a suffix the parts that are not
//! finished: `pcopy.` and the UUID of a collection in hexadecimal, `pcopy.~1` for sessions and
//! `pcopy.~2` for pre-images. They are copied in the order of the keys.

use std::collections::VecDeque;

use bson::spec::BinarySubtype;
use bson::{Binary, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid, rawdoc};
use kv::{Direction, Durability, KeyRange, Snapshot, Transaction, TreeId};
use query::{Code, Error, Result};
use stdx::sync::Mutex;

use super::Part;
use crate::error;
use crate::oplog::entry::OpTime;
use crate::replica::role::Replica;
use crate::store::Store;

/// The key of the copy.
const KEY: &[u8] = b"pcopy";

/// The first key of the parts, and the first one after them.
const PARTS: (&[u8], &[u8]) = (b"pcopy.", b"pcopy/");

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The former data are removed, and the catalog is made. After a crash it restarts.
    Begun,
    /// Records are copied, and entries applied.
    Copying,
    /// It is complete; its data must not be shown before the entry at its floor is committed.
    Complete,
    /// Its data are of no use; it restarts.
    Abandoned,
}

/// A copy that is not settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Copying {
    /// How far it is.
    pub phase: Phase,
    /// What the caller of [`Replica::begin_copy`] has given.
    pub label: RawDocumentBuf,
    /// The position of its beginning.
    pub since: OpTime,
    /// The position of its end, once it is complete.
    pub floor: OpTime,
    /// What is left to be copied, the next one first.
    pub left: VecDeque<Left>,
}

/// A part that is not finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// What it is.
    pub part: Part,
    /// The key of the last record that was copied; empty before the first.
    pub from: Vec<u8>,
    /// The key of the last record that is needed; empty if all are.
    pub until: Vec<u8>,
}

/// The copy of a store.
#[derive(Debug, Default)]
pub(crate) struct Copies(pub(super) Mutex<Option<Copying>>);

impl Phase {
    const ALL: [(Phase, &'static str); 4] = [
        (Phase::Begun, "begun"),
        (Phase::Copying, "copying"),
        (Phase::Complete, "complete"),
        (Phase::Abandoned, "abandoned"),
    ];

    fn name(self) -> &'static str {
        let found = Phase::ALL.iter().find(|(own, _)| *own == self);
        found.map_or("abandoned", |(_, name)| name)
    }

    fn of(name: &str) -> Option<Phase> {
        let found = Phase::ALL.iter().find(|(_, own)| *own == name);
        found.map(|(phase, _)| *phase)
    }
}

impl Copying {
    /// Whether documents of a collection can be missing (Y2).
    pub(super) fn lacks(&self, uuid: Uuid) -> bool {
        let part = Part::Collection(uuid);
        self.left.iter().any(|left| left.part == part)
    }

    fn to_raw(&self) -> RawDocumentBuf {
        rawdoc! {
            "phase": self.phase.name(),
            "label": self.label.clone(),
            "since": { "ts": self.since.ts, "t": self.since.term },
            "floor": { "ts": self.floor.ts, "t": self.floor.term },
        }
    }

    fn parse(stored: &RawDocument) -> Result<Option<Copying>> {
        let position = |name| -> Result<Option<OpTime>> {
            let Some(RawBsonRef::Document(at)) = stored.get(name)? else {
                return Ok(None);
            };
            let (ts, term) = (at.get("ts")?, at.get("t")?);
            let ts = ts.and_then(RawBsonRef::as_timestamp);
            let term = term.and_then(RawBsonRef::as_i64);
            Ok(ts.zip(term).map(|(ts, term)| OpTime { ts, term }))
        };
        let phase = stored.get_str("phase").ok().and_then(Phase::of);
        let (Some(phase), Some(RawBsonRef::Document(label))) = (phase, stored.get("label")?) else {
            return Ok(None);
        };
        let (Some(since), Some(floor)) = (position("since")?, position("floor")?) else {
            return Ok(None);
        };
        Ok(Some(Copying {
            phase,
            label: label.to_owned(),
            since,
            floor,
            left: VecDeque::new(),
        }))
    }
}

impl Left {
    pub(super) fn new(part: Part, until: Vec<u8>) -> Left {
        Left {
            part,
            from: Vec::new(),
            until,
        }
    }

    fn key(&self) -> Vec<u8> {
        let name = match self.part {
            // Hyphens would change nothing in the order.
            Part::Collection(uuid) => uuid.to_string(),
            Part::Sessions => "~1".to_owned(),
            Part::Images => "~2".to_owned(),
        };
        [PARTS.0, name.as_bytes()].concat()
    }

    /// Put it as it is now.
    pub(super) fn put(&self, txn: &mut (dyn Transaction + '_), catalog: TreeId) -> Result<()> {
        let value = rawdoc! { "from": binary(&self.from), "until": binary(&self.until) };
        let put = txn.put(catalog, &self.key(), value.as_bytes());
        put.map_err(error::engine)
    }

    /// Remove it: it is finished.
    pub(super) fn remove(&self, txn: &mut (dyn Transaction + '_), catalog: TreeId) -> Result<()> {
        let removed = txn.delete(catalog, &self.key());
        removed.map(|_| ()).map_err(error::engine)
    }

    fn parse(key: &[u8], value: &[u8]) -> Result<Option<Left>> {
        let part = match key.strip_prefix(PARTS.0) {
            Some(b"~1") => Part::Sessions,
            Some(b"~2") => Part::Images,
            Some(name) => {
                let uuid = std::str::from_utf8(name).ok();
                let uuid = uuid.and_then(|name| Uuid::parse_str(name).ok());
                match uuid {
                    Some(uuid) => Part::Collection(uuid),
                    None => return Ok(None),
                }
            }
            None => return Ok(None),
        };
        let value = RawDocument::from_bytes(value)?;
        let (Some(RawBsonRef::Binary(from)), Some(RawBsonRef::Binary(until))) =
            (value.get("from")?, value.get("until")?)
        else {
            return Ok(None);
        };
        Ok(Some(Left {
            part,
            from: from.bytes.to_vec(),
            until: until.bytes.to_vec(),
        }))
    }
}

fn binary(bytes: &[u8]) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    }
}

/// Put the copy, without its parts.
pub(super) fn put(txn: &mut (dyn Transaction + '_), catalog: TreeId, copy: &Copying) -> Result<()> {
    let put = txn.put(catalog, KEY, copy.to_raw().as_bytes());
    put.map_err(error::engine)
}

/// Remove the parts.
pub(super) fn remove_parts(txn: &mut (dyn Transaction + '_), catalog: TreeId) -> Result<()> {
    let range = KeyRange::half_open(PARTS.0, PARTS.1);
    txn.delete_range(catalog, range).map_err(error::engine)
}

fn read(snapshot: &dyn Snapshot, catalog: TreeId) -> Result<Option<Copying>> {
    let damaged = || error::corrupt("the state of an initial sync, in the catalog");
    let Some(bytes) = snapshot.get(catalog, KEY).map_err(error::engine)? else {
        return Ok(None);
    };
    let copy = Copying::parse(RawDocument::from_bytes(&bytes)?)?;
    let mut copy = copy.ok_or_else(damaged)?;
    let range = KeyRange::half_open(PARTS.0, PARTS.1);
    let cursor = snapshot.cursor(catalog, range, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    while cursor.advance().map_err(error::engine)? {
        let left = Left::parse(cursor.key(), cursor.value())?;
        copy.left.push_back(left.ok_or_else(damaged)?);
    }
    Ok(Some(copy))
}

impl Store {
    /// Read the state of its copy, when the store is opened.
    ///
    /// # Errors
    /// Errors of the engine; a state that cannot be read.
    pub(crate) fn load_copy(&self) -> Result<()> {
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let copy = read(snapshot.as_ref(), self.trees().catalog)?;
        *self.part::<Copies>().0.lock() = copy;
        self.prune_copy();
        Ok(())
    }

    /// Forget collections that do not exist any more.
    pub(super) fn prune_copy(&self) {
        let catalog = self.catalog();
        if let Some(copy) = self.part::<Copies>().0.lock().as_mut() {
            copy.left.retain(|left| match left.part {
                Part::Collection(uuid) => catalog.of_uuid(uuid).is_some(),
                Part::Sessions | Part::Images => true,
            });
        }
    }

    /// Whether documents of a collection can be missing, because it is being copied (Y2).
    pub(in crate::replica) fn lacks_documents(&self, uuid: Uuid) -> bool {
        let copy = self.part::<Copies>().0.lock();
        copy.as_ref().is_some_and(|copy| copy.lacks(uuid))
    }
}

impl Replica<'_> {
    /// The copy that the store is, unless it is settled (Y4).
    #[must_use]
    pub fn copying(&self) -> Option<Copying> {
        self.store.part::<Copies>().0.lock().clone()
    }

    /// The position of the beginning of a copy under way, and what is left next; `None` unless one
    /// is under way.
    #[must_use]
    pub fn copy_next(&self) -> Option<(OpTime, Option<Left>)> {
        let copy = self.store.part::<Copies>().0.lock();
        let copy = copy.as_ref().filter(|copy| copy.phase == Phase::Copying)?;
        Some((copy.since, copy.left.front().cloned()))
    }

    /// Store a copy and replace its parts, durably.
    pub(super) fn put_copy(&self, op: &crate::txn::Op<'_>, copy: Copying) -> Result<()> {
        let catalog = self.store.trees().catalog;
        let _turn = self.store.turn(op)?;
        let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
        put(txn.as_mut(), catalog, &copy)?;
        remove_parts(txn.as_mut(), catalog)?;
        for left in &copy.left {
            left.put(txn.as_mut(), catalog)?;
        }
        txn.commit(Durability::Group).map_err(error::engine)?;
        *self.store.part::<Copies>().0.lock() = Some(copy);
        Ok(())
    }

    /// The copy is complete: it has all that its source had at the applied position, its floor.
    ///
    /// # Errors
    /// `IllegalOperation` while something is left; the operation must end; errors of the engine.
    pub fn complete_copy(&self, op: &crate::txn::Op<'_>) -> Result<OpTime> {
        let _applies = self.locks().applies.lock();
        let copy = self.copying();
        let copy = copy.filter(|copy| copy.phase == Phase::Copying && copy.left.is_empty());
        let Some(mut copy) = copy else {
            let message = "no initial sync is under way that has copied everything";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        };
        copy.phase = Phase::Complete;
        copy.floor = self.applied();
        let floor = copy.floor;
        self.put_copy(op, copy)?;
        Ok(floor)
    }

    /// The entry at the floor of a complete copy is committed: it is a member as any other.
    ///
    /// # Errors
    /// The operation must end; errors of the engine.
    pub fn settle_copy(&self, op: &crate::txn::Op<'_>) -> Result<()> {
        let complete = |copy: Copying| copy.phase == Phase::Complete;
        if !self.copying().is_some_and(complete) {
            return Ok(());
        }
        let _turn = self.store.turn(op)?;
        let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
        let removed = txn.delete(self.store.trees().catalog, KEY);
        removed.map_err(error::engine)?;
        txn.commit(Durability::Group).map_err(error::engine)?;
        *self.store.part::<Copies>().0.lock() = None;
        Ok(())
    }

    /// The data of a copy are of no use any more: it must restart.
    ///
    /// # Errors
    /// The operation must end; errors of the engine.
    pub fn abandon_copy(&self, op: &crate::txn::Op<'_>) -> Result<()> {
        let Some(mut copy) = self.copying() else {
            return Ok(());
        };
        copy.phase = Phase::Abandoned;
        copy.left.clear();
        self.put_copy(op, copy)
    }

    /// Check that no copy forbids that entries after `position` are taken back (Y4).
    pub(in crate::replica) fn check_floor(&self, position: Timestamp) -> Result<()> {
        match self.copying() {
            Some(copy) if copy.phase != Phase::Complete || position < copy.floor.ts => {
                let message = "this member cannot take back entries: it has copied its data from \
                    another member with an initial sync that these entries are part of";
                Err(Error::new(Code::ILLEGAL_OPERATION, message))
            }
            _ => Ok(()),
        }
    }
}
