//! The store and a registered snapshot, which snapshots, transactions and their cursors read
//! through.

use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::snapshots::Ticket;
use crate::cursor::{self, At, Buckets, MergeCursor, Own, View};
use crate::error::Result;
use crate::types::{Direction, Seq, TreeId};

/// A registered snapshot; dropping it releases the versions that only it sees.
pub(crate) struct Reader {
    pub(crate) core: Arc<Core>,
    ticket: Ticket,
}

impl Reader {
    /// A snapshot of the current state.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Arc<Reader>> {
        core.health.check_open()?;
        let ticket = core.snapshots.enter(core.vfs.now());
        debug_assert!(
            ticket.seq <= core.snapshots.visible(),
            "what is seen stays visible"
        );
        Ok(Arc::new(Reader {
            core: Arc::clone(core),
            ticket,
        }))
    }

    /// The newest commit it sees.
    pub(crate) fn seq(&self) -> Seq {
        self.ticket.seq
    }

    /// Check that what was just read was complete.
    pub(crate) fn check(&self) -> Result<()> {
        self.core.health.check_open()?;
        self.ticket.check()
    }

    /// Read `key` into `value`. False when it is absent.
    pub(crate) fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.core.counters.gets.add(1);
        let tree = self.core.catalog.tree_at(tree, self.seq())?;
        let view = tree.view(At::Key(key))?.expect("every key has a bucket");
        let found = cursor::get(&view, key, self.seq(), value);
        let found = found.map_err(|e| e.with_tree(&tree.name))?;
        self.check()?;
        Ok(found)
    }

    /// Read `keys`, as of one snapshot: a value, or none, for each in the order given.
    pub(crate) fn get_many<K: AsRef<[u8]>>(
        &self,
        tree: TreeId,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = vec![None; keys.len()];
        let asked = keys.iter().map(AsRef::as_ref).zip(&mut values);
        self.fill(tree, asked.collect())?;
        Ok(values)
    }

    /// Read the value of each key that is asked for into its place. In key order, so that keys of
    /// one bucket are looked up in one view of it.
    pub(crate) fn fill(
        &self,
        tree: TreeId,
        mut asked: Vec<(&[u8], &mut Option<Vec<u8>>)>,
    ) -> Result<()> {
        self.core.counters.gets.add(asked.len() as u64);
        let tree = self.core.catalog.tree_at(tree, self.seq())?;
        asked.sort_unstable_by_key(|(key, _)| *key);
        let mut held: Option<View> = None;
        let mut value = Vec::new();
        for (key, place) in asked {
            let view = match held.take() {
                Some(view) if view.holds(key) => view,
                _ => tree.view(At::Key(key))?.expect("every key has a bucket"),
            };
            let found = cursor::get(&view, key, self.seq(), &mut value);
            let found = found.map_err(|e| e.with_tree(&tree.name))?;
            *place = found.then(|| std::mem::take(&mut value));
            held = Some(view);
        }
        self.check()
    }

    /// A cursor through a tree with `own` writes on top.
    pub(crate) fn cursor<'a>(
        self: &Arc<Self>,
        tree: TreeId,
        own: Option<Own<'a>>,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Cursor<'a>> {
        self.check()?;
        self.core.counters.cursors.add(1);
        let tree = self.core.catalog.tree_at(tree, self.seq())?;
        let walk = MergeCursor::new(tree, own, self.seq(), start, end, direction);
        Ok(Cursor {
            walk,
            reader: Arc::clone(self),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.core.snapshots.leave(&self.ticket);
    }
}

/// A walk through the keys of a tree between two bounds, in one direction. It stands before the
/// first entry until [`Cursor::advance`] is called, and sees what its snapshot sees, whatever is
/// written, flushed, merged or split meanwhile.
///
/// ```
/// use std::ops::Bound;
/// use betree::{Batch, Db, Direction, Durability, Options, TreeOptions};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path(), Options::default())?;
/// let tree = db.create_tree("fruit", TreeOptions::default())?;
/// let mut batch = Batch::new();
/// batch.put(tree, b"apple", b"red");
/// batch.put(tree, b"plum", b"blue");
/// db.write(&batch, Durability::Sync)?;
/// let snapshot = db.begin_read()?;
/// let mut cursor =
///     snapshot.cursor(tree, Bound::Included(b"b"), Bound::Unbounded, Direction::Forward)?;
/// assert!(cursor.advance()?);
/// assert_eq!((cursor.key(), cursor.value()), (&b"plum"[..], &b"blue"[..]));
/// assert!(!cursor.advance()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "iterator")]
pub struct Cursor<'a> {
    walk: MergeCursor<'a>,
    reader: Arc<Reader>,
}

impl Cursor<'_> {
    /// Go to the next entry. False at the end; after that it stays false.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Conflict` when the snapshot was given up; `Closed`.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let found = self.walk.advance()?;
        self.reader.check()?;
        Ok(found)
    }

    /// Go to the first entry at or beyond `key` in the cursor's direction, within its bounds; it
    /// may also go back. False when there is none: the cursor is then at its end.
    ///
    /// # Errors
    /// As [`Cursor::advance`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.walk.seek(key)?;
        self.reader.check()?;
        Ok(found)
    }

    /// The key of the current entry. Empty when there is none.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.walk.key()
    }

    /// The value of the current entry. Empty when there is none.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.walk.value()
    }
}
