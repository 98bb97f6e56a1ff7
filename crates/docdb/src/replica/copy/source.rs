//! The source of a copy: what it is sent, each time from a new snapshot.

use std::ops::Bound;
use std::time::Duration;

use bson::Timestamp;
use kv::{Direction, KeyRange, Snapshot, TreeId};
use query::{Code, Error, Result};

use super::{Listed, Origin, Part, Portion, Records};
use crate::catalog::Stored as StoredCollection;
use crate::error;
use crate::oplog::entry::{Command, Entry, OpTime, Operation};
use crate::oplog::{Stored, image, is_replicated, segment};
use crate::replica::before;
use crate::replica::role::{Replica, shown};
use crate::txn::Op;

/// Records of a portion.
const RECORDS_MAX: usize = 10_000;

/// How often the source looks for a moment at which a copy can begin.
const LOOKS: usize = 100;

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// What a copy asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The last entry that it has written.
    pub after: OpTime,
    /// The position of its beginning.
    pub since: OpTime,
    /// What it lacks next; `None` for entries alone.
    pub left: Option<super::Left>,
    /// Bytes of entries after which the portion ends.
    pub entries: usize,
    /// Bytes of records after which the portion ends.
    pub records: usize,
}

impl Replica<'_> {
    /// What a copy of this store begins with; the catalog may have this number of bytes.
    ///
    /// # Errors
    /// `TemporarilyUnavailable` if the moment never is the end of a transaction; a catalog that is
    /// larger; the operation must end; errors of the engine.
    pub fn origin(&self, op: &Op<'_>, most: usize) -> Result<Origin> {
        for look in 0..LOOKS {
            op.check()?;
            if 0 < look {
                stdx::time::sleep(LOOK);
            }
            let (snapshot, until) = self.moment(op)?;
            let Some((at, entry)) = self.last_stored(snapshot.as_ref(), until)? else {
                let message = "the oplog has no entry yet";
                return Err(Error::new(Code::TEMPORARILY_UNAVAILABLE, message));
            };
            // The next entries of a transaction refer to those before them.
            if is_part(&entry)? {
                continue;
            }
            if let Some(catalog) = self.listed(snapshot.as_ref(), most)? {
                debug_assert!(at.ts <= until, "the moment has its last entry");
                return Ok(Origin { entry, catalog });
            }
        }
        let message = "the catalog changes all the time; try again later";
        Err(Error::new(Code::TEMPORARILY_UNAVAILABLE, message))
    }

    /// What a copy lacks.
    ///
    /// # Errors
    /// `CappedPositionLost` if the oplog does not have the position of the copy, or no entries
    /// after it any more: the copy must restart. The operation must end; errors of the engine.
    pub fn portion(&self, op: &Op<'_>, wanted: &Wanted) -> Result<Portion> {
        let (snapshot, until) = self.moment(op)?;
        self.check_has(snapshot.as_ref(), wanted.after)?;
        let mut portion = Portion {
            entries: Vec::new(),
            at: wanted.after,
            whole: true,
            records: None,
        };
        let mut left = wanted.entries;
        let mut after = wanted.after.ts;
        if after < until {
            self.log
                .read(snapshot.as_ref(), (&mut after, until), |value| {
                    if left == 0 {
                        portion.whole = false;
                        return Ok(false);
                    }
                    left = left.saturating_sub(value.len());
                    portion.at = Entry::parse(Stored::split(value)?.entry)?.at;
                    portion.entries.push(value.to_vec());
                    Ok(true)
                })?;
        }
        if let (Some(left), true) = (&wanted.left, portion.whole) {
            portion.records = self.records(snapshot.as_ref(), wanted, left)?;
        }
        Ok(portion)
    }

    /// A snapshot that has exactly the changes of the entries up to a time.
    fn moment(&self, op: &Op<'_>) -> Result<(Box<dyn Snapshot + '_>, Timestamp)> {
        let check = || self.store.check_open(op);
        let (snapshot, until) = self.store.see_exactly(OpTime::NONE.ts, &check)?;
        Ok((snapshot, until.unwrap_or(OpTime::NONE.ts)))
    }

    /// The last entry up to a time.
    fn last_stored(
        &self,
        snapshot: &dyn Snapshot,
        until: Timestamp,
    ) -> Result<Option<(OpTime, Vec<u8>)>> {
        let placed = self.log.segments().between(OpTime::NONE.ts, until);
        let end = segment::key(until);
        for placed in placed.iter().rev() {
            let range = KeyRange {
                start: Bound::Unbounded,
                end: Bound::Included(end.as_slice()),
            };
            let mut cursor = placed
                .segment
                .cursor(snapshot, range, Direction::Backward)?;
            if cursor.advance().map_err(error::engine)? {
                let value = cursor.value().to_vec();
                let at = Entry::parse(Stored::split(&value)?.entry)?.at;
                return Ok(Some((at, value)));
            }
        }
        Ok(None)
    }

    /// Check that the oplog has the entry at a position.
    fn check_has(&self, snapshot: &dyn Snapshot, at: OpTime) -> Result<()> {
        let mut found = false;
        let mut after = before(at.ts);
        self.log.read(snapshot, (&mut after, at.ts), |value| {
            found = Entry::parse(Stored::split(value)?.entry)?.at == at;
            Ok(true)
        })?;
        if found {
            return Ok(());
        }
        let message = format!(
            "the oplog of the source has no entry {}: the initial sync must restart",
            shown(at)
        );
        Err(Error::new(Code::CAPPED_POSITION_LOST, message))
    }

    /// The catalog of a snapshot; `None` if it has a collection that was just made or dropped.
    fn listed(&self, snapshot: &dyn Snapshot, most: usize) -> Result<Option<Vec<Listed>>> {
        let now = self.store.catalog();
        let (tree, range) = (self.store.trees().catalog, KeyRange::half_open(b"c", b"d"));
        let cursor = snapshot.cursor(tree, range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        let mut all = Vec::new();
        let mut bytes = 0;
        while cursor.advance().map_err(error::engine)? {
            let stored = StoredCollection::from_bytes(cursor.value())?;
            if !is_replicated(&stored.ns) {
                continue;
            }
            let mut listed = Listed {
                stored: cursor.value().to_vec(),
                last: 0,
                documents: 0,
                bytes: 0,
            };
            if let Some(uuid) = stored.uuid {
                let Some(found) = now.of_uuid(bson::Uuid::from_bytes(uuid)) else {
                    return Ok(None);
                };
                listed.documents = found.count();
                listed.bytes = found.data_size();
                if !found.is_clustered() {
                    listed.last = last_number(snapshot, found.records())?;
                }
            }
            bytes += listed.stored.len();
            if most < bytes {
                let message = format!("the catalog has more than {most} bytes");
                return Err(Error::new(Code::ILLEGAL_OPERATION, message));
            }
            all.push(listed);
        }
        Ok(Some(all))
    }

    /// The next records; `None` if what they belong to does not exist any more, as the copy learns
    /// from an entry.
    fn records(
        &self,
        snapshot: &dyn Snapshot,
        wanted: &Wanted,
        left: &super::Left,
    ) -> Result<Option<Records>> {
        let catalog = self.store.catalog();
        let mut records = Records {
            part: left.part,
            pairs: Vec::new(),
            next: left.from.clone(),
            end: true,
        };
        let tree = match left.part {
            Part::Sessions => self.store.trees().sessions,
            Part::Collection(uuid) => match catalog.of_uuid(uuid) {
                Some(found) if is_replicated(found.ns()) => found.records(),
                _ => return Ok(None),
            },
            Part::Images => match self.store.collection(&image::namespace()) {
                Some(found) => found.records(),
                None => return Ok(Some(records)),
            },
        };
        let range = KeyRange {
            start: match left.from.is_empty() {
                true => Bound::Unbounded,
                false => Bound::Excluded(left.from.as_slice()),
            },
            end: match left.until.is_empty() {
                true => Bound::Unbounded,
                false => Bound::Included(left.until.as_slice()),
            },
        };
        if !left.until.is_empty() && left.until <= left.from {
            return Ok(Some(records));
        }
        let cursor = snapshot.cursor(tree, range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        let (mut bytes, mut seen) = (0, 0);
        while cursor.advance().map_err(error::engine)? {
            if wanted.records <= bytes || RECORDS_MAX <= seen {
                records.end = false;
                break;
            }
            let (key, value) = (cursor.key().to_vec(), cursor.value());
            (bytes, seen) = (bytes + key.len() + value.len(), seen + 1);
            let older = left.part == Part::Images && image::origin(value)?.1 <= wanted.since.ts;
            if !older {
                records.pairs.push((key.clone(), value.to_vec()));
            }
            records.next = key;
        }
        Ok(Some(records))
    }
}

/// Whether a stored entry belongs to a transaction and is not its last one.
fn is_part(value: &[u8]) -> Result<bool> {
    let entry = Entry::parse(Stored::split(value)?.entry)?;
    let Operation::Command { command, .. } = &entry.operation else {
        return Ok(false);
    };
    Ok(matches!(Command::parse(command)?, Command::ApplyOps(group) if group.partial))
}

/// The last record number of a tree; 0 without any.
fn last_number(snapshot: &dyn Snapshot, tree: TreeId) -> Result<i64> {
    let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Backward);
    let mut cursor = cursor.map_err(error::engine)?;
    if !cursor.advance().map_err(error::engine)? {
        return Ok(0);
    }
    let record = crate::record::RecordId::from_key(cursor.key(), false);
    Ok(record.and_then(|record| record.as_number()).unwrap_or(0))
}
