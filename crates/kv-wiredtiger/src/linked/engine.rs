//! The engine: opening, closing and batches. Other modules implement the other operations.
//!
//! Directory: the identity file, `LOCK`, and WiredTiger's home in `db`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kv::{
    Batch, Capabilities, Change, Compaction, Durability, Engine, EngineOptions, EngineStats, Error,
    ErrorKind, Flow, KeyRange, Progress, Result, Snapshot, StatScope, StorageMap, Transaction,
    TreeId, TreeOptions, TreeStats, identity,
};
use vfs::DirLock;

use super::backup;
use super::catalog::Catalog;
use super::config::Config;
use super::connection::Connection;
use super::error::Fault;
use super::flusher::Flusher;
use super::maintain;
use super::map;
use super::pool::{Pool, Purpose};
use super::shared::{HOME, Shared};
use super::stats;
use super::transaction::WtTransaction;
use super::view::View;
use crate::support::{self, NAME};

/// The version of the directory layout described above.
const FORMAT: u32 = 1;

/// Maximum time for retrying a batch; then it is refused as too large for the cache.
const PATIENCE: Duration = Duration::from_secs(60);

struct Wiredtiger {
    capabilities: Capabilities,
    directory: PathBuf,
    /// Stopped and dropped before `shared`.
    flusher: Option<Flusher>,
    shared: Option<Arc<Shared>>,
    _lock: DirLock,
}

/// Refuse invalid values of the engine-specific options.
pub(crate) fn check(options: &EngineOptions) -> Result<()> {
    Config::new(options).map(|_| ())
}

/// Open the store in `directory`.
pub(crate) fn open(directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    open_with(directory, options, Config::new(options)?)
}

/// Open the store in `directory` with the configuration of `options`.
fn open_with(directory: &Path, options: &EngineOptions, config: Config) -> Result<Box<dyn Engine>> {
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
    vfs::ensure_private_dir(&home).map_err(|e| Error::io("open", &home, e).with_engine(NAME))?;

    let connection = Connection::open(&home, &config.connection());
    let connection = connection.map_err(|fault| opening(fault).with_path(&home))?;
    let pool = Pool::new(connection, config.sessions);
    let catalog = {
        let lease = pool.take(Purpose::Own)?;
        Catalog::load(lease.session()).map_err(opening)?
    };
    let shared = Arc::new(Shared::new(pool, catalog, config, home));
    let flusher = if shared.config.log {
        Some(Flusher::start(&shared)?)
    } else {
        None
    };
    Ok(Box::new(Wiredtiger {
        capabilities: support::capabilities(options),
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
    Error::io("open", directory, source).with_engine(NAME)
}

impl Wiredtiger {
    fn shared(&self) -> &Shared {
        self.shared
            .as_ref()
            .expect("there until the engine is closed")
    }

    /// Refuse an invalid batch before any of its changes is applied.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        let catalog = self.shared().catalog.read();
        let mut known = None;
        for change in batch.ops() {
            let (tree, entry) = match change {
                Change::Put { tree, key, value } => (tree, Some((key, value))),
                Change::Delete { tree, key } => (tree, Some((key, &b""[..]))),
                Change::DeleteRange { tree, .. } => (tree, None),
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

    /// Try once to apply a batch.
    fn try_write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let shared = self.shared();
        let view = View::begin(shared, Purpose::Own)?;
        for change in batch.ops() {
            match change {
                Change::Put { tree, key, value } => view.put(tree, key, value)?,
                Change::Delete { tree, key } => view.remove_blind(tree, key)?,
                Change::DeleteRange { tree, range } => view.remove_range(tree, range)?,
            }
        }
        view.commit(durability)
    }

    /// Retry a batch that conflicted. One batch retries at a time, with growing pauses in which
    /// transactions can end.
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
        // A caller that needs the error calls `close`.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn codec(name: &str) -> EngineOptions {
        EngineOptions {
            own: [("codec".to_owned(), name.to_owned())].into(),
            ..EngineOptions::default()
        }
    }

    /// The number of rows of the tree in a copy of the files of `from`, which is still open: the
    /// state after a crash.
    fn rows_after_crash(from: &Path, options: &EngineOptions, config: Config) -> Result<usize> {
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join(HOME)).unwrap();
        for directory in [from.to_owned(), from.join(HOME)] {
            for entry in fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().path())
            {
                let name = entry.strip_prefix(from).unwrap();
                // The library creates and renames its spare log files at any time.
                let spare = ["WiredTigerTmplog", "WiredTigerPreplog"];
                let spare = spare.iter().any(|s| name.to_string_lossy().contains(s));
                if entry.is_file() && !spare {
                    fs::copy(&entry, copy.path().join(name)).unwrap();
                }
            }
        }
        let db = open_with(copy.path(), options, config)?;
        let tree = db.open_tree("t")?;
        let now = db.begin_read()?;
        let rows = (0..50_u8).filter(|n| now.get(tree, &[*n]).unwrap().is_some());
        Ok(rows.count())
    }

    /// The library's Snappy and our log compressor write the same log format, which is readable
    /// with any codec.
    #[test]
    fn a_log_is_read_by_either_compressor_of_the_log() {
        let without = |options: &EngineOptions| {
            let mut config = Config::new(options).unwrap();
            config.own_compressors = None;
            config
        };
        let (snappy, none) = (codec("snappy"), codec("none"));
        let dir = tempfile::tempdir().unwrap();
        let db = open_with(dir.path(), &snappy, without(&snappy)).unwrap();
        let tree = db.create_tree("t", &TreeOptions::default()).unwrap();
        let fill = |db: &dyn Engine, tree, from: u8| {
            for n in from..from + 25 {
                let mut batch = Batch::new();
                batch.put(tree, &[n], &[7; 2000]);
                db.write(&batch, Durability::Sync).unwrap();
            }
        };
        fill(&*db, tree, 0);
        let ours = Config::new(&none).unwrap();
        assert_eq!(rows_after_crash(dir.path(), &none, ours).unwrap(), 25);
        db.close().unwrap();

        let db = open(dir.path(), &snappy).unwrap();
        let tree = db.open_tree("t").unwrap();
        fill(&*db, tree, 25);
        let theirs = without(&snappy);
        assert_eq!(rows_after_crash(dir.path(), &snappy, theirs).unwrap(), 50);
        let ours = Config::new(&none).unwrap();
        assert_eq!(rows_after_crash(dir.path(), &none, ours).unwrap(), 50);
        // The log is compressed: without a compressor it cannot be read.
        let nothing = without(&none);
        assert!(rows_after_crash(dir.path(), &none, nothing).is_err());
    }
}
