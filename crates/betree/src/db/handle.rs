//! The handle of an open store.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crypt::MasterKey;
use stdx::sync::Mutex;
use vfs::{Held, RealVfs, Vfs};

use super::core::Core;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::tree_handle::Tree;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Encryption;
use crate::map::StorageMap;
use crate::options::Options;
use crate::stats::{Report, Stats, TreeStats};
use crate::types::{BackupNext, BackupPart, Batch, Durability, TreeId, TreeOptions};
use crate::work::Threads;

/// An open store: named trees of keys and values in byte order, written atomically across trees,
/// read at snapshots. Shared by any number of threads.
///
/// ```
/// use betree::{Db, Durability, Options};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path(), Options::balanced().with_memory(64 << 20))?;
/// let fruit = db.tree("fruit")?;
/// fruit.put("apple", "red", Durability::Sync)?;
/// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Db {
    core: Arc<Core>,
    threads: Mutex<Option<Threads>>,
    /// Last, so that the directory is released when nothing writes to it any more.
    _held: Box<dyn Held>,
}

impl Db {
    /// Open the store in `directory`, making both when missing. One handle of one process has a
    /// store open at a time.
    ///
    /// # Errors
    /// `Invalid` for options out of range (named), a directory that is open elsewhere, or a store
    /// of another format; `Corrupt` when what must be there is not; `Io`, `Full`.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(Arc::new(RealVfs::new()), directory.as_ref(), options)
    }

    /// Open a store on a file system and clock of the caller's: for simulations.
    ///
    /// # Errors
    /// As [`Db::open`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an owner of both, as Db::open"
    )]
    pub fn open_with(vfs: Arc<dyn Vfs>, directory: &Path, options: Options) -> Result<Db> {
        let (core, held) = super::open::open(&vfs, directory, &options)?;
        let core = Arc::new(core);
        let threads = Threads::start(&core)
            .map_err(|e| Error::io("start background threads", directory, e))?;
        Ok(Db {
            core,
            threads: Mutex::new(Some(threads)),
            _held: held,
        })
    }

    /// The tree of that name; if it is missing, it is created with the default options and is
    /// durable when this returns.
    ///
    /// # Errors
    /// As [`Db::create_tree`], but not `Exists`.
    pub fn tree(&self, name: &str) -> Result<Tree> {
        self.tree_with(name, TreeOptions::default())
    }

    /// As [`Db::tree`], but a tree that is created gets `options`. One that exists keeps its own.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn tree_with(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        // Other threads may create or drop the tree between the two calls.
        loop {
            let found = match self.open_tree(name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.create_tree(name, options)
                }
                found => found,
            };
            match found {
                Err(error) if error.kind() == ErrorKind::Exists => {}
                found => return found.map(|id| Tree::new(&self.core, id, name)),
            }
        }
    }

    /// Create a tree; durable when this returns (without a log: with the next checkpoint).
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a name that is empty or too long ([`crate::NAME_MAX`]); `Full`,
    /// `Closed`, `Io`.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<TreeId> {
        self.core.create_tree(name, options)
    }

    /// The tree of that name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.core.health.check_open()?;
        self.core.catalog.by_name(name).map(|tree| tree.id)
    }

    /// Drop a tree; durable when this returns (without a log: with the next checkpoint).
    /// Snapshots that see it can still read it; its space is freed when the last of them is closed.
    ///
    /// # Errors
    /// `NotFound`; `Full`, `Closed`, `Io`.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.core.drop_tree(name)
    }

    /// The names of all trees, in byte order.
    ///
    /// # Errors
    /// `Closed`.
    pub fn trees(&self) -> Result<Vec<String>> {
        self.core.health.check_open()?;
        Ok(self.core.catalog.names())
    }

    /// A snapshot of all trees as of now.
    ///
    /// # Errors
    /// `Closed`.
    pub fn begin_read(&self) -> Result<Snapshot> {
        Snapshot::new(&self.core)
    }

    /// A transaction on a snapshot of now.
    ///
    /// # Errors
    /// `Closed`.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::new(&self.core)
    }

    /// Apply a batch atomically, without reading (but for range deletes, which are written out as
    /// deletes of the keys there are). It does not conflict with transactions.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree, or a key, value or batch beyond the limits; `Unsupported` for
    /// a durability above none without a log; `Full`, `Closed`, `Io`. Nothing is applied then, but
    /// after a failed sync the batch may be visible though not durable, and the store is closed for
    /// writes.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.core.write(batch, durability)
    }

    /// Flush every buffer, as of a commit not older than the call.
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; `Corrupt`.
    pub fn flush(&self) -> Result<()> {
        self.core.flush()
    }

    /// Make a checkpoint now: opening the store reads the log of what is not flushed, which after
    /// [`Db::flush`] is next to nothing.
    ///
    /// # Errors
    /// `Full`, `Closed`; `Io`: after a failed sync the store is closed for writes.
    pub fn checkpoint(&self) -> Result<()> {
        self.core.checkpoint()
    }

    /// Make everything committed so far durable, whatever level it was committed at.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn sync_log(&self) -> Result<()> {
        self.core.sync_log()
    }

    /// Do all work that is owed: flush, merge every bucket to one run a key, make a checkpoint, cut
    /// the data file. What was kept for snapshots that are gone is dropped; with no snapshot open
    /// there is one version of each key afterwards. False when `limit` passed before all was done.
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; `Corrupt`.
    pub fn settle(&self, limit: Duration) -> Result<bool> {
        self.core.settle(limit)
    }

    /// Merge the buckets of a range of keys. `watch` gets the bytes done and to do and returns
    /// whether to continue. False when it did not.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; as [`Db::settle`].
    pub fn compact(
        &self,
        tree: TreeId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        self.core.compact(tree, start, end, watch)
    }

    /// Statistics of the store. Cheap enough to call once a second.
    ///
    /// # Errors
    /// `Closed`, `Io`.
    pub fn stats(&self) -> Result<Stats> {
        self.core.stats()
    }

    /// Statistics of a tree: estimated, or, if `exact`, counted by reading the whole tree.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; `Closed`; if `exact`, `Corrupt`, `Io`, `Conflict`.
    pub fn tree_stats(&self, tree: TreeId, exact: bool) -> Result<TreeStats> {
        self.core.tree_stats(tree, exact)
    }

    /// The keys of the store by name, if it is encrypted.
    #[must_use]
    pub fn encryption(&self) -> Option<Encryption> {
        self.core.keys.as_ref().map(|keys| keys.encryption())
    }

    /// Wrap the data keys of an encrypted store with another master key, if one is given, and with
    /// `data` use a new data key for everything written from now on; old data keep theirs until
    /// merges rewrite them. The time does not depend on the size of the store.
    ///
    /// # Errors
    /// `Invalid`: the store is not encrypted. `Full`. After `Io` the master key may be either: open
    /// the store with the new one, and if that is refused, with the old one.
    pub fn rotate_keys(&self, master: Option<&MasterKey>, data: bool) -> Result<()> {
        self.core.health.check_writable()?;
        let Some(keys) = &self.core.keys else {
            let message = "the store is not encrypted, so it has no keys to rotate";
            return Err(Error::invalid(message).with_path(&self.core.directory));
        };
        keys.rotate(&*self.core.vfs, &self.core.directory, master, data)
    }

    /// Check the whole store while it works: every structural law at one moment, then every byte
    /// of every run. Commits wait for the first part, about 200 ns a bucket.
    ///
    /// # Errors
    /// `Corrupt`: the first thing found wrong, and where; `Io`, `Closed`.
    pub fn verify(&self) -> Result<Report> {
        self.core.verify()
    }

    /// The location of the store's bytes. Waits for a checkpoint in progress.
    ///
    /// # Errors
    /// `Closed`.
    pub fn storage_map(&self) -> Result<StorageMap> {
        self.core.storage_map()
    }

    /// Copy the store, as of one commit not older than the call, to `directory`, while it is
    /// written to. The directory must be empty or missing; what is in it afterwards opens as a
    /// store of its own, with all the trees and no log. `watch` gets the bytes done and to do and
    /// returns whether to continue; if not, what was copied is removed and false returned.
    ///
    /// # Errors
    /// `Exists`: the directory is not empty; `Full`, `Io`, `Closed`.
    pub fn backup(
        &self,
        directory: impl AsRef<Path>,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        self.core.backup(directory.as_ref(), watch)
    }

    /// Copy the store as [`Db::backup`] does, and pass the copy to `receive` instead: first what
    /// follows, then the bytes of the data file (`data.betree`) in order, in pieces of at most
    /// 1 MiB except the last. Each run is announced before its bytes, and left out if the receiver
    /// has it. Returns false if `receive` stopped the copy. The receiver must make sure that an
    /// incomplete copy is not used.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn stream_backup(
        &self,
        receive: &mut dyn FnMut(BackupPart<'_>) -> BackupNext,
    ) -> Result<bool> {
        self.core.stream_backup(receive)
    }

    /// Identifies the store: runs of copies can be compared within one store only. A copy is
    /// another store.
    #[must_use]
    pub fn store_id(&self) -> u128 {
        self.core.checkpoints.superblock().store
    }

    /// One unit of background work, for a store opened with no threads: false when there is none
    /// now. With threads it helps them.
    ///
    /// # Errors
    /// What the work failed on; it will be tried again, except after a failed sync.
    pub fn step(&self) -> Result<bool> {
        self.core.step()
    }

    /// Close: stop the threads, make what is committed durable, release the directory. Dropping
    /// does the same, but hides the error. Snapshots and transactions that are still open return
    /// `Closed`.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn close(self) -> Result<()> {
        self.shut()
    }

    /// The store behind the handle.
    #[cfg(test)]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    fn shut(&self) -> Result<()> {
        let Some(mut threads) = self.threads.lock().take() else {
            return Ok(());
        };
        threads.stop();
        self.core.shut_down()
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // A caller that wants the error calls close.
        let _ = self.shut();
    }
}
