//! State shared by the engine, its snapshots and its background thread, and the durability of
//! commits.
//!
//! Lock order: `schema`, `backing` or `turn` (no thread takes two of them), then the locks of the
//! catalog, the group and the pool, which are held for a few instructions only.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kv::{Durability, Error, ErrorKind, Result, TreeId};
use stdx::sync::{Mutex, RwLock};

use super::catalog::{Catalog, Tree};
use super::config::Config;
use super::error::Fault;
use super::group::Group;
use super::pool::{Lease, Pool, Purpose};
use super::session::{LogSync, Session};
use crate::support::NAME;

/// WiredTiger's home below the store's directory.
pub(super) const HOME: &str = "db";

/// State shared by the engine and its background thread.
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) catalog: RwLock<Catalog>,
    pub(super) config: Config,
    pub(super) home: PathBuf,
    /// Held while tables are created, dropped or checked.
    pub(super) schema: Mutex<()>,
    /// Held while the store is copied.
    pub(super) backing: Mutex<()>,
    /// Whether commits at `Durability::Interval` wait for a sync.
    pub(super) unsynced: AtomicBool,
    /// Whether a sync has failed: then writes are refused until the store is opened again.
    poisoned: AtomicBool,
    /// Held by the batch that is being retried, so that batches do not conflict with each other
    /// endlessly.
    pub(super) turn: Mutex<()>,
    /// Shares the syncs of commits at `Durability::Group`.
    group: Group,
}

impl Shared {
    /// The state of a newly opened store.
    pub(super) fn new(pool: Pool, catalog: Catalog, config: Config, home: PathBuf) -> Shared {
        Shared {
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
        }
    }

    /// A session for the engine's own work.
    pub(super) fn own(&self) -> Result<Lease<'_>> {
        self.pool.take(Purpose::Own)
    }

    /// `Closed` when the library has panicked or a sync has failed.
    pub(super) fn check_writable(&self) -> Result<()> {
        let connection = self.pool.connection();
        if !connection.panicked() && !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let why = connection.panic();
        let why = why.unwrap_or_else(|| "a sync failed".to_owned());
        let message = format!("the store is closed for writes ({why}); open it again");
        Err(Error::new(ErrorKind::Closed, message).with_engine(NAME))
    }

    /// Convert the error of a call that writes to files. A failure of the operating system or of
    /// the library closes the store for writes, because it is unknown what was written to the disk.
    pub(super) fn failed_write(&self, fault: Fault, operation: &'static str) -> Error {
        let panic = fault.is_panic();
        let error = fault.into_error(operation);
        if panic || matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed) {
            self.poisoned.store(true, Ordering::Release);
        }
        error
    }

    /// Convert the error of a failed flush of the log. It always closes the store for writes:
    /// readers have seen commits that may never become durable.
    fn failed_flush(&self, fault: Fault) -> Error {
        self.poisoned.store(true, Ordering::Release);
        fault.into_error("log flush")
    }

    /// Refuse a durability that needs the log when the store has none.
    pub(super) fn check_durability(&self, durability: Durability) -> Result<()> {
        if self.config.log || durability == Durability::None {
            return Ok(());
        }
        let message = format!(
            "durability {durability} needs the log; open the store with log=true or commit at none"
        );
        Err(Error::new(ErrorKind::Unsupported, message).with_engine(NAME))
    }

    /// Commit the session's transaction. If the commit itself fails, nothing of the transaction is
    /// visible; if the flush after it fails, the store is closed for writes.
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
                // Write the log to the operating system, so that the commit survives the end of the
                // process.
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

    /// Make all commits so far durable in the tables' files.
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
