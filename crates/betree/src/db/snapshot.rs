//! Read views.

use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::iter::{Iter, Span};
use super::key_range::AsKeyRange;
use super::reader::{Cursor, Reader};
use crate::error::Result;
use crate::types::{Direction, Seq, TreeId};

/// A read view of all trees at one moment. It blocks nothing; while it lives, what it sees is kept.
/// Made by [`crate::Db::begin_read`].
#[doc(alias = "read view")]
pub struct Snapshot {
    reader: Arc<Reader>,
}

impl Snapshot {
    pub(crate) fn new(core: &Arc<Core>) -> Result<Snapshot> {
        let reader = Reader::new(core)?;
        Ok(Snapshot { reader })
    }

    /// The newest commit it sees.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.reader.seq()
    }

    /// Read `key`.
    ///
    /// # Errors
    /// As [`Snapshot::get_into`].
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// Read `key` into `value` (cleared first). False when it is absent.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; `Conflict` when the snapshot was given up
    /// ([`crate::Options::with_snapshot_max_age`]); `Corrupt`, `Io`, `Closed`.
    pub fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.reader.get_into(tree, key, value)
    }

    /// Read several keys: a value, or none, for each key in the order given. Keys may repeat. They
    /// are looked up in key order, so that those close to one another share the search for their
    /// bucket and the pages read.
    ///
    /// # Errors
    /// As [`Snapshot::get_into`].
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        tree: TreeId,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.reader.get_many(tree, keys)
    }

    /// The entries of `tree` within `range`, in the order of their keys. The iterator keeps the
    /// snapshot alive by itself.
    ///
    /// # Errors
    /// As [`Snapshot::cursor`].
    pub fn range(&self, tree: TreeId, range: impl AsKeyRange) -> Result<Iter<'static>> {
        Iter::new(&self.reader, None, Span::of(tree, &range))
    }

    /// The entries of `tree` whose keys begin with `prefix`, in the order of their keys.
    ///
    /// # Errors
    /// As [`Snapshot::cursor`].
    pub fn prefix(&self, tree: TreeId, prefix: impl AsRef<[u8]>) -> Result<Iter<'static>> {
        Iter::new(&self.reader, None, Span::with_prefix(tree, prefix.as_ref()))
    }

    /// A cursor before the first entry between `start` and `end` in `direction`. It keeps the
    /// snapshot alive by itself.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; `Conflict`, `Closed`.
    pub fn cursor(
        &self,
        tree: TreeId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Cursor<'static>> {
        self.reader.cursor(tree, None, start, end, direction)
    }
}
