//! The traits an engine implements.

use std::path::Path;
use std::time::Duration;

use kv_types::{
    Batch, Direction, Durability, Error, ErrorKind, KeyRange, Result, TreeId, TreeOptions,
};

use crate::backup::{self, BackupSink};
use crate::capabilities::Capabilities;
use crate::compact::{Compaction, Flow, Progress};
use crate::encryption::Encryption;
use crate::map::StorageMap;
use crate::stats::{EngineStats, StatScope, TreeStats};

/// An open store. Shared by any number of threads.
///
/// Object-safe: a virtual call costs about a nanosecond, far less than any operation.
pub trait Engine: Send + Sync {
    /// The engine's name, as in its factory.
    fn name(&self) -> &'static str;

    /// The capabilities of the engine with the options it was opened with.
    fn capabilities(&self) -> &Capabilities;

    /// Whether its calls announce (see [`stdx::blocking`]) every wait that may be long: for other
    /// calls, for room in memory, for the log, for a page from the device. A thread that serves
    /// many clients can then make them itself. An engine in another language, which waits where
    /// this program does not see it, does not.
    fn announces_waits(&self) -> bool {
        false
    }

    /// How the engine encrypts its files, if it does.
    fn encryption(&self) -> Option<Encryption> {
        None
    }

    /// Wrap the data keys of an encrypted store with the master key in the file `key_file`, if one
    /// is given, and with `data` encrypt what is written from now on with a new data key. The time
    /// does not depend on the size of the store.
    ///
    /// # Errors
    /// `Unsupported` by engines that do not encrypt; `Invalid` if the store is not encrypted or the
    /// file holds no key; `Io`, after which either master key may be in force.
    fn rotate_keys(&self, _key_file: Option<&Path>, _data: bool) -> Result<Encryption> {
        let message = "this engine does not encrypt its files, so it has no keys to rotate";
        Err(Error::new(ErrorKind::Unsupported, message).with_engine(self.name()))
    }

    /// Create a tree.
    ///
    /// # Errors
    /// `Exists` if a tree of that name exists; `Invalid` for a bad name ([`crate::check_name`]).
    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId>;

    /// Open an existing tree. Opening it again gives the same handle.
    ///
    /// # Errors
    /// `NotFound`.
    fn open_tree(&self, name: &str) -> Result<TreeId>;

    /// Drop a tree and its data. Its handle becomes `Invalid` for new snapshots and transactions.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` when open transactions or snapshots forbid it (where the capability
    /// `drop_with_readers` is false).
    fn drop_tree(&self, name: &str) -> Result<()>;

    /// The names of all trees, in byte order.
    ///
    /// # Errors
    /// Any error that the engine reports.
    fn trees(&self) -> Result<Vec<String>>;

    /// A snapshot of all trees as of now.
    ///
    /// # Errors
    /// `Closed`; `Full` when the engine has no more reader slots.
    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>>;

    /// A transaction that reads a snapshot of now and writes on top of it. It belongs to the thread
    /// that began it.
    ///
    /// # Errors
    /// `Closed`. Without the capability `concurrent_writers` the call waits for the transaction
    /// that is open on another thread, and returns `Invalid` when the open transaction belongs to
    /// the calling thread.
    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>>;

    /// Apply a batch atomically and without reading. With the capability `blind_writes` a batch
    /// never conflicts; without it the engine retries the batch until it succeeds. The engine
    /// decides whether a batch counts as a first committer, that is, whether an open transaction
    /// that writes a key of the batch gets `Conflict`.
    ///
    /// # Errors
    /// `Invalid` for a key or value beyond the limits or a dropped tree (then no change is
    /// applied); `Full`, `Closed`, `Io`.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()>;

    /// Make everything committed so far durable in the tree files, so that opening needs (next to)
    /// no log.
    ///
    /// # Errors
    /// `Full`, `Io`; after a failed sync the engine is `Closed` for writes.
    fn checkpoint(&self) -> Result<()>;

    /// Make everything committed so far survive a power loss, at whatever level it was committed
    /// (engines without a log checkpoint instead).
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    fn sync_log(&self) -> Result<()>;

    /// Rewrite the keys of `range` in `tree` into their best form. Calls `watch` repeatedly, at
    /// least at the beginning and the end; `Flow::Cancel` ends it early with
    /// `Compaction::Cancelled`.
    ///
    /// # Errors
    /// `Unsupported` without the capability `compaction`; `Invalid` for a dropped tree.
    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction>;

    /// Do the pending background work (flushes, merges, checkpoint) and wait until it is done, but
    /// no longer than about `limit`. Does only what the engine would eventually do by itself.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    fn settle(&self, limit: Duration) -> Result<Compaction>;

    /// Copy the store as of now into `directory`, which must be empty or not exist, while the store
    /// is read and written. The copy opens with the same factory.
    ///
    /// # Errors
    /// `Unsupported` without the capability `backup`; `Exists` when `directory` is not empty.
    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction>;

    /// Copy the store as of now into `sink`, file by file, while the store is read and written. The
    /// files, put into a directory, open with the same factory. `staging` is a directory that is
    /// missing or empty, for an engine that must copy itself there first; afterwards it does not
    /// exist.
    ///
    /// # Errors
    /// `Unsupported` without the capability `backup`; `Exists` when `staging` is not empty.
    fn backup_to(&self, staging: &Path, sink: &mut dyn BackupSink) -> Result<Compaction> {
        backup::staged(&mut |watch| self.backup(staging, watch), staging, sink)
    }

    /// Identifies the store whose backups may have pieces in common; `None` without the capability
    /// `increments`. A copy of the store has another one once it is opened.
    fn lineage(&self) -> Option<[u8; 16]> {
        None
    }

    /// Statistics since the engine was opened. Cheap enough to call once a second.
    ///
    /// # Errors
    /// Any error that the engine reports.
    fn stats(&self) -> Result<EngineStats>;

    /// What is stored in one tree.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree.
    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats>;

    /// The storage map: where the bytes of the store are in its files.
    ///
    /// # Errors
    /// `Unsupported` without the capability `storage_map`.
    fn storage_map(&self) -> Result<StorageMap>;

    /// Check the stored structures as far as the engine can.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong; `Unsupported` when the engine has no such check; `Conflict`
    /// if a snapshot is open and the engine needs exclusive access to the trees: end the snapshot
    /// and retry.
    fn verify(&self) -> Result<()> {
        Err(Error::unsupported(
            self.name(),
            "check of its own structures",
        ))
    }

    /// Close the store: wait for background work to stop, make all commits durable as by
    /// [`Engine::sync_log`], release the directory. Dropping does the same but hides the error.
    ///
    /// # Errors
    /// As [`Engine::sync_log`].
    fn close(self: Box<Self>) -> Result<()>;
}

/// A read view of all trees at one moment.
pub trait Snapshot {
    /// Read `key` into `value`, which is cleared first. Returns false when the key is absent.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; `Corrupt`, `Io`. A key beyond the limits counts as absent.
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Read `key`.
    ///
    /// # Errors
    /// As [`Snapshot::get_into`].
    fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// Read many keys; `visit` gets the index and the value of each key, in any order.
    ///
    /// # Errors
    /// As [`Snapshot::get_into`].
    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut value = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let found = self.get_into(tree, key, &mut value)?;
            visit(index, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    /// A cursor before the first entry of `range` in `direction`.
    ///
    /// # Errors
    /// As [`Snapshot::get_into`].
    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>>;
}

/// An iterator over a range. It is before the first entry until [`Cursor::advance`] is called. It
/// reads its snapshot, so later writes do not affect it.
pub trait Cursor {
    /// Move to the next entry in the cursor's direction. Returns false at the end, and on every
    /// later call until [`Cursor::seek`] finds an entry.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn advance(&mut self) -> Result<bool>;

    /// Move to the first entry at or beyond `key` in the cursor's direction, within the cursor's
    /// range. The move may be against that direction. Returns false when the range has no such
    /// entry: the cursor is then at its end, where [`Cursor::advance`] returns false until another
    /// seek finds an entry.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;

    /// The key of the current entry; empty when the cursor is not at an entry.
    fn key(&self) -> &[u8];

    /// The value of the current entry; empty when the cursor is not at an entry.
    fn value(&self) -> &[u8];
}

/// A unit of atomicity: it reads its snapshot with its own writes on top. Dropping it rolls back.
pub trait Transaction: Snapshot {
    /// Insert `key`; it must be absent.
    ///
    /// # Errors
    /// `Exists` if the key exists (the transaction may continue); `Conflict`; `Invalid` for a key
    /// or value beyond the limits.
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Set `key` to `value`. Takes part in conflict detection.
    ///
    /// # Errors
    /// `Conflict` (here or at commit); `Invalid` for a key or value beyond the limits (the
    /// transaction may continue).
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Remove `key`; returns whether it existed. Takes part in conflict detection; the engine
    /// decides whether deleting an absent key counts as a write of the key.
    ///
    /// # Errors
    /// `Conflict`. For a key beyond the limits the engine returns either false or `Invalid`, and
    /// the transaction may continue.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool>;

    /// Set `key` to `value` without reading and, where the capability `blind_writes` is true,
    /// without conflict detection. Meant for keys derived from other keys that do take part in
    /// conflict detection, such as index entries. Inside the transaction it is a write like any
    /// other: the transaction sees it, and of several writes of one key, blind or not, the last
    /// wins.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Remove `key` without reading; see [`Transaction::put_blind`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()>;

    /// Remove the keys of `range` that this transaction sees. If another transaction has changed
    /// such a key since this transaction's snapshot, the engine either removes the key anyway or
    /// reports a conflict. The engine also decides whether keys that others insert into the range
    /// meanwhile stay, are removed or conflict.
    ///
    /// # Errors
    /// `Conflict`.
    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()>;

    /// Commit. On an error nothing of the transaction is visible, with one exception: an engine
    /// whose commits share a sync may make them visible before the sync. If the log then cannot be
    /// written or synced (`Io`), the transaction may be visible until the store is opened again.
    /// All later writes return `Closed`, and recovery at the next open determines whether the
    /// transaction is committed.
    ///
    /// # Errors
    /// `Conflict`: retry the transaction. `Full`, `Closed`, `Io`.
    fn commit(self: Box<Self>, durability: Durability) -> Result<()>;

    /// Discard all changes.
    fn rollback(self: Box<Self>);
}
