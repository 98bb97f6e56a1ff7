//! The engine: opening, trees, batches and durability.
//!
//! Directory: the identity file, `LOCK`, and WiredTiger's home in `db`.
//!
//! Lock order: `schema`, `backing` or `turn` (no thread takes two of them), then the catalog, then
//! the group's and the pool's; the last three are held for a few instructions only.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineOptions, EngineStats, Error,
    ErrorKind, Flow, KeyRange, Op, Progress, Result, Snapshot, StatScope, StorageMap, Transaction,
    TreeId, TreeOptions, TreeStats, identity,
};
use stdx::sync::{Mutex, RwLock};
use vfs::DirLock;

use super::backup;
use super::catalog::{Catalog, Tree};
use super::config::Config;
use super::connection::Connection;
use super::error::Fault;
use super::flusher::Flusher;
use super::group::Group;
use super::maintain;
use super::map;
use super::pool::{Lease, Pool, Purpose};
use super::session::{LogSync, Session};
use super::stats;
use super::transaction::WtTransaction;
use super::view::View;
use crate::factory::{self, NAME};

/// The version of the layout described above.
const FORMAT: u32 = 1;

/// WiredTiger's home below the store's directory.
pub(super) const HOME: &str = "db";

/// How long a batch is repeated before it is given up as too large for the cache.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the engine and its background thread share.
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) catalog: RwLock<Catalog>,
    pub(super) config: Config,
    pub(super) home: PathBuf,
    /// Held while tables are created, dropped or checked.
    pub(super) schema: Mutex<()>,
    /// Held while the store is copied.
    pub(super) backing: Mutex<()>,
    /// Commits at `Durability::Interval` wait for a sync.
    pub(super) unsynced: AtomicBool,
    /// A sync failed: writes are refused until the store is opened again.
    poisoned: AtomicBool,
    /// Held by the batch that is being repeated, so that batches do not chase each other.
    turn: Mutex<()>,
    /// Where commits at `Durability::Group` meet.
    group: Group,
}

impl Shared {
    /// A session for the engine's own work.
    pub(super) fn own(&self) -> Result<Lease<'_>> {
        self.pool.take(Purpose::Own)
    }

    /// `Closed` when the library has panicked or a sync has failed.
    pub(super) fn check_writable(&self) -> Result<()> {
        if !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let why = self.pool.connection().panic();
        let why = why.unwrap_or_else(|| "a sync failed".to_owned());
        let message = format!("the store is closed for writes ({why}); open it again");
        Err(Error::new(ErrorKind::Closed, message).with_engine(NAME))
    }

    /// The error of a call that writes to files. A failure of the operating system or of the
    /// library closes the store for writes: what reached the disk is unknown.
    pub(super) fn failed_write(&self, fault: Fault, operation: &'static str) -> Error {
        let error = fault.into_error(operation);
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed) {
            self.poisoned.store(true, Ordering::Release);
        }
        error
    }

    /// The error of a failed flush of the log. It closes the store for writes whatever the reason:
    /// commits have been seen that may never become durable.
    fn failed_flush(&self, fault: Fault) -> Error {
        self.poisoned.store(true, Ordering::Release);
        fault.into_error("log flush")
    }

    /// Refuse a durability that needs the log when there is none.
    pub(super) fn check_durability(&self, durability: Durability) -> Result<()> {
        if self.config.log || durability == Durability::None {
            return Ok(());
        }
        let message = format!(
            "durability {durability} needs the log; open the store with log=true or commit at none"
        );
        Err(Error::new(ErrorKind::Unsupported, message).with_engine(NAME))
    }

    /// Commit the session's transaction. An error of the commit itself leaves nothing of it; after
    /// that, a flush that fails closes the store for writes.
    pub(super) fn commit(&self, session: &Session, durability: Durability) -> Result<()> {
        let commit = |sync| {
            let result = session.commit(sync);
            result.map_err(|fault| self.failed_write(fault, "commit"))
        };
        let flush = |sync| {
            let result = session.log_flush(sync);
            result.map_err(|fault| self.failed_flush(fault))
        };
        if !self.config.log {
            return commit(None);
        }
        match durability {
            Durability::Sync => commit(Some(LogSync::Synced)),
            Durability::None => commit(Some(LogSync::Buffered)),
            Durability::Group => {
                commit(Some(LogSync::Buffered))?;
                self.group.wait(|| flush(true), || self.check_writable())
            }
            Durability::Interval => {
                commit(Some(LogSync::Buffered))?;
                // Out of this process's memory, so that its end loses nothing.
                flush(false)?;
                self.unsynced.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Make all commits so far durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.check_writable()?;
        let lease = self.own()?;
        if self.config.log {
            self.unsynced.store(false, Ordering::Release);
            let flushed = lease.session().log_flush(true);
            return flushed.map_err(|fault| self.failed_flush(fault));
        }
        let result = lease.session().checkpoint();
        result.map_err(|fault| self.failed_write(fault, "checkpoint"))
    }

    /// Make all commits so far durable in the tables.
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.check_writable()?;
        let lease = self.own()?;
        let result = lease.session().checkpoint();
        result.map_err(|fault| self.failed_write(fault, "checkpoint"))
    }

    pub(super) fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        self.catalog.read().by_id(id)
    }
}

struct Wiredtiger {
    capabilities: Capabilities,
    directory: PathBuf,
    /// Stopped and dropped before `shared`.
    flusher: Option<Flusher>,
    shared: Option<Arc<Shared>>,
    _lock: DirLock,
}

/// Open the store in `directory`.
pub(crate) fn open(directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let config = Config::new(options)?;
    let fixed = if options.log { "log=true" } else { "log=false" };
    let found = identity::claim(directory, NAME, FORMAT, fixed)?;
    if found.options != fixed {
        let message = format!(
            "the store was created with {}, which cannot change; open it so",
            found.options
        );
        return Err(Error::invalid(message)
            .with_engine(NAME)
            .with_path(directory));
    }
    let lock = DirLock::acquire(directory).map_err(|source| locked(directory, source))?;
    let home = directory.join(HOME);
    vfs::ensure_dir(&home).map_err(|e| Error::io(&home, e).with_engine(NAME))?;

    let connection = Connection::open(&home, &config.connection());
    let connection = connection.map_err(|fault| opening(fault).with_path(&home))?;
    let pool = Pool::new(connection, config.sessions);
    let catalog = {
        let lease = pool.take(Purpose::Own)?;
        Catalog::load(lease.session()).map_err(opening)?
    };
    let shared = Arc::new(Shared {
        pool,
        catalog: RwLock::new(catalog),
        config,
        home,
        schema: Mutex::new(()),
        backing: Mutex::new(()),
        unsynced: AtomicBool::new(false),
        poisoned: AtomicBool::new(false),
        turn: Mutex::new(()),
        group: Group::default(),
    });
    let flusher = if shared.config.log {
        Some(Flusher::start(&shared)?)
    } else {
        None
    };
    Ok(Box::new(Wiredtiger {
        capabilities: factory::capabilities(options),
        directory: directory.to_owned(),
        flusher,
        shared: Some(shared),
        _lock: lock,
    }))
}

fn opening(fault: Fault) -> Error {
    fault.into_error("open")
}

fn locked(directory: &Path, source: std::io::Error) -> Error {
    if source.kind() == std::io::ErrorKind::WouldBlock {
        let message = "the store is open already, here or in another process; close it there";
        return Error::new(ErrorKind::Io, message)
            .with_engine(NAME)
            .with_path(directory)
            .with_source(source);
    }
    Error::io(directory, source).with_engine(NAME)
}

impl Wiredtiger {
    fn shared(&self) -> &Shared {
        self.shared
            .as_ref()
            .expect("there until the engine is closed")
    }

    /// Refuse a batch that cannot be applied, before anything is.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        let catalog = self.shared().catalog.read();
        let mut known = None;
        for op in batch.ops() {
            let (tree, entry) = match op {
                Op::Put { tree, key, value } => (tree, Some((key, value))),
                Op::Delete { tree, key } => (tree, Some((key, &b""[..]))),
                Op::DeleteRange { tree, .. } => (tree, None),
            };
            if known != Some(tree) {
                catalog.by_id(tree)?;
                known = Some(tree);
            }
            if let Some((key, value)) = entry {
                check_lengths(&self.capabilities, key, value)?;
            }
        }
        Ok(())
    }

    /// One attempt at a batch.
    fn try_write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let shared = self.shared();
        let view = View::begin(shared, Purpose::Own)?;
        for op in batch.ops() {
            match op {
                Op::Put { tree, key, value } => view.put(tree, key, value)?,
                Op::Delete { tree, key } => view.remove_blind(tree, key)?,
                Op::DeleteRange { tree, range } => view.remove_range(tree, range)?,
            }
        }
        view.commit(durability)
    }

    /// Repeat a batch that conflicted. One batch at a time, with a growing pause for transactions
    /// to end in.
    fn write_again(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let _turn = self.shared().turn.lock();
        let until = stdx::time::now() + PATIENCE;
        let mut pause = Duration::from_micros(20);
        loop {
            match self.try_write(batch, durability) {
                Err(e) if e.kind() == ErrorKind::Conflict && stdx::time::now() < until => {}
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    let message = format!(
                        "the batch was rolled back for {} s; end the transactions that hold its \
                         keys, make it smaller, or give the store more cache",
                        PATIENCE.as_secs()
                    );
                    return Err(Error::new(ErrorKind::Full, message)
                        .with_engine(NAME)
                        .with_operation("write")
                        .with_source(e));
                }
                other => return other,
            }
            stdx::time::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    fn shut(&mut self) -> Result<()> {
        if let Some(flusher) = self.flusher.take() {
            flusher.stop();
        }
        let Some(shared) = self.shared.take() else {
            return Ok(());
        };
        let synced = shared.sync();
        let shared = Arc::into_inner(shared).expect("the background thread has ended");
        let connection = shared.pool.into_connection();
        let connection = Arc::into_inner(connection).expect("all sessions are closed");
        let closed = connection
            .close()
            .map_err(|fault| fault.into_error("close"));
        synced.and(closed)
    }
}

/// Refuse keys and values beyond the limits, and the empty key, which WiredTiger does not allow.
pub(super) fn check_lengths(capabilities: &Capabilities, key: &[u8], value: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid("a key has at least 1 byte").with_engine(NAME));
    }
    let limits = capabilities.limits;
    for (what, bytes, max) in [
        ("key", key, limits.key_max),
        ("value", value, limits.value_max),
    ] {
        if max < bytes.len() {
            let message = format!("the {what} has {} bytes, the limit is {max}", bytes.len());
            return Err(Error::invalid(message).with_engine(NAME).with_key(key));
        }
    }
    Ok(())
}

impl Drop for Wiredtiger {
    fn drop(&mut self) {
        // Whoever wants the error calls `close`.
        let _ = self.shut();
    }
}

impl Engine for Wiredtiger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        maintain::create_tree(self.shared(), name, options)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        let found = self.shared().catalog.read().by_name(name);
        found
            .map(|tree| tree.id)
            .ok_or_else(|| maintain::no_tree(name))
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        maintain::drop_tree(self.shared(), name)
    }

    fn trees(&self) -> Result<Vec<String>> {
        Ok(self.shared().catalog.read().names())
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        let view = View::begin(self.shared(), Purpose::Caller)?;
        Ok(Box::new(view))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        self.shared().check_writable()?;
        let view = View::begin(self.shared(), Purpose::Caller)?;
        Ok(Box::new(WtTransaction::new(view, &self.capabilities)))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let shared = self.shared();
        shared.check_durability(durability)?;
        shared.check_writable()?;
        self.check_batch(batch)?;
        match self.try_write(batch, durability) {
            Err(e) if e.kind() == ErrorKind::Conflict => self.write_again(batch, durability),
            other => other,
        }
    }

    fn checkpoint(&self) -> Result<()> {
        self.shared().checkpoint()
    }

    fn sync_log(&self) -> Result<()> {
        self.shared().sync()
    }

    fn compact(
        &self,
        tree: TreeId,
        _range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        maintain::compact(self.shared(), tree, watch)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        maintain::settle(self.shared(), limit)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        backup::run(self.shared(), &self.directory, directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        stats::engine(self.shared())
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        stats::tree(self.shared(), tree, scope)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        map::draw(self.shared())
    }

    fn verify(&self) -> Result<()> {
        maintain::verify(self.shared())
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.shut()
    }
}
