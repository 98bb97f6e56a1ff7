//! Range deletes of a batch, written out as deletes of the keys there are; the log holds the
//! deletes, so that replay does not depend on it.
//!
//! Which keys there are must not change between looking and committing, so the batch is a bulk
//! commit ([`super::bulk`]): other commits wait, and it goes in chunks, so that a range of any size
//! takes bounded memory. It costs a read of the range, twice, and a tombstone for each key, which
//! later merges drop; buckets of tombstones are merged first. Dropping the runs of buckets that lie
//! wholly inside of the range would cost nothing, but the drop would have to wait for every
//! snapshot, and to be known to the log, to flushes under way and to the image: not done.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::bulk::{Changes, Chunks};
use super::core::Core;
use super::snapshots::Ticket;
use crate::cursor::MergeCursor;
use crate::error::Result;
use crate::plant::{Plant, planted};
use crate::types::{Batch, Change, Direction, KeyRange, Seq, TreeId};

/// The changes of a batch in which range deletes are replaced by deletes of the existing keys, as
/// of the newest commit.
pub(crate) struct Expanded<'a> {
    core: &'a Core,
    batch: &'a Batch,
    /// The snapshot that range deletes read, registered during the turn.
    ticket: OnceCell<Ticket>,
}

impl<'a> Expanded<'a> {
    /// The changes of `batch`.
    pub(crate) fn new(core: &'a Core, batch: &'a Batch) -> Expanded<'a> {
        Expanded {
            core,
            batch,
            ticket: OnceCell::new(),
        }
    }

    /// Register the snapshot that range deletes read, at commit `last`. No other commit is made
    /// from now on.
    pub(crate) fn look(&self, last: Seq) {
        if 0 < self.batch.counts().range_deletes {
            let ticket = self
                .ticket
                .get_or_init(|| self.core.snapshots.enter_for_good());
            assert_eq!(ticket.seq, last, "what is committed is visible");
        }
    }

    fn delete_stored(&self, out: &mut Chunks<'_>, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let stored = self.core.catalog.tree(tree)?;
        let end = match range.end {
            Bound::Excluded(key) if planted(Plant::RangeDeleteTakesEnd) => Bound::Included(key),
            end => end,
        };
        let ticket = self
            .ticket
            .get()
            .expect("taken when there are range deletes");
        let mut cursor = MergeCursor::new(
            stored,
            None,
            ticket.seq,
            range.start,
            end,
            Direction::Forward,
        );
        while cursor.advance()? {
            out.delete(tree, cursor.key())?;
        }
        Ok(())
    }
}

impl Changes for Expanded<'_> {
    fn pass(&self, out: &mut Chunks<'_>) -> Result<()> {
        // The keys put so far, which a later range delete also removes.
        let ranges = 0 < self.batch.counts().range_deletes;
        let mut put: BTreeMap<TreeId, BTreeSet<&[u8]>> = BTreeMap::new();
        for change in self.batch.ops() {
            match change {
                Change::Put { tree, key, value } => {
                    out.put(tree, key, value)?;
                    if ranges {
                        put.entry(tree).or_default().insert(key);
                    }
                }
                Change::Delete { tree, key } => out.delete(tree, key)?,
                Change::DeleteRange { tree, range } => {
                    let own = put.entry(tree).or_default();
                    for key in own.iter().filter(|key| range.contains(key)) {
                        out.delete(tree, key)?;
                    }
                    own.retain(|key| !range.contains(key));
                    self.delete_stored(out, tree, range)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Expanded<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.get() {
            self.core.snapshots.leave(ticket);
        }
    }
}
