//! The handle of one tree.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::iter::{Iter, Span};
use super::key_range::AsKeyRange;
use super::reader::Reader;
use crate::error::Result;
use crate::types::TreeId;
use kv_types::{Batch, Durability};

/// A named tree of an open store: an ordered map from keys to values, both bytes. Made by
/// [`crate::Db::tree`]; cheap to clone, and shared by any number of threads.
///
/// Each call is a unit of its own: a read sees everything committed before it, a write is one
/// commit. What must be read or written together, in one tree or in several, is done in a
/// [`crate::Snapshot`], a [`crate::Transaction`] or a [`Batch`], which take [`Tree::id`].
///
/// A handle does not keep the store open: after [`crate::Db::close`] its calls return `Closed`.
///
/// ```
/// use betree::{Db, Durability, Options};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path(), Options::default())?;
/// let fruit = db.tree("fruit")?;
/// fruit.put("apple", "red", Durability::Sync)?;
/// fruit.put("apricot", "orange", Durability::Sync)?;
/// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
/// assert_eq!(fruit.prefix("ap")?.count(), 2);
/// for entry in fruit.range("apple".."b")?.rev() {
///     let (key, value) = entry?;
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "column family")]
#[doc(alias = "table")]
#[doc(alias = "keyspace")]
#[derive(Clone)]
pub struct Tree {
    core: Arc<Core>,
    id: TreeId,
    name: Arc<str>,
}

impl Tree {
    pub(super) fn new(core: &Arc<Core>, id: TreeId, name: &str) -> Tree {
        Tree {
            core: Arc::clone(core),
            id,
            name: Arc::from(name),
        }
    }

    /// The number by which snapshots, transactions and batches know the tree.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// The name it was opened by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Read `key`; none when it is absent.
    ///
    /// # Errors
    /// `Invalid` when the tree was dropped; `Corrupt`, `Io`, `Closed`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        let found = Reader::new(&self.core)?.get_into(self.id, key.as_ref(), &mut value)?;
        Ok(found.then_some(value))
    }

    /// Read several keys as of one moment: a value, or none, for each key in the order given. Keys
    /// may repeat. They are looked up in key order, so that those close to one another share the
    /// search for their bucket and the pages read.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        Reader::new(&self.core)?.get_many(self.id, keys)
    }

    /// The entries within `range`, as of now, in the order of their keys; read as the iterator is
    /// asked.
    ///
    /// # Errors
    /// `Invalid` when the tree was dropped; `Closed`.
    pub fn range(&self, range: impl AsKeyRange) -> Result<Iter<'static>> {
        Iter::new(&Reader::new(&self.core)?, None, Span::of(self.id, &range))
    }

    /// The entries whose keys begin with `prefix`, as of now, in the order of their keys.
    ///
    /// # Errors
    /// As [`Tree::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter<'static>> {
        let span = Span::with_prefix(self.id, prefix.as_ref());
        Iter::new(&Reader::new(&self.core)?, None, span)
    }

    /// All entries, as of now, in the order of their keys.
    ///
    /// # Errors
    /// As [`Tree::range`].
    pub fn iter(&self) -> Result<Iter<'static>> {
        self.range(..)
    }

    /// Set `key` to `value`: a commit of its own that reads nothing and does not conflict with
    /// transactions.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(self.id, key.as_ref(), value.as_ref());
        self.core.write(&batch, durability)
    }

    /// Remove `key`, if it exists: a commit of its own, as [`Tree::put`].
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(self.id, key.as_ref());
        self.core.write(&batch, durability)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
