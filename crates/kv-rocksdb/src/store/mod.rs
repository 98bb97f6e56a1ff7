//! The engine: RocksDB behind the persistence API.
//!
//! - `raw`: RocksDB's C interface and our shim, made safe.
//! - `settings`, `tuning`: options in, RocksDB's options out.
//! - `engine`: the open store; `catalog`: its trees.
//! - `snapshot`, `transaction`, `cursor`, `write`: reading and writing; `gate` and `range_deletes`
//!   let batches and transactions detect each other.
//! - `pressure` bounds the memtables.
//! - `syncer`, `compact`, `backup`, `stats`, `map`, `info_log`: maintenance and statistics.
//!
//! Durability: `sync` and `group` are synced writes (RocksDB itself shares the syncs of concurrent
//! writes); `interval` is an unsynced write, which `syncer` syncs later; `none` is an unsynced
//! write to the log. Without a log (`log=false`) only `none` is supported; memtables are then
//! flushed atomically across trees, so that a crash loses only whole commits, the newest ones.

mod backup;
mod bounds;
mod catalog;
mod compact;
mod cursor;
mod engine;
mod error;
mod gate;
mod info_log;
mod map;
mod pressure;
mod range_deletes;
mod raw;
mod settings;
mod snapshot;
mod stats;
mod syncer;
mod transaction;
mod tuning;
mod write;

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kv::{Engine, EngineOptions, Error, ErrorKind, Factory, Result, TreeOptions, identity};
use rocksdb::Options;
use stdx::sync::{Mutex, RwLock};
use vfs::DirLock;

use crate::support::{NAME, capabilities};
use catalog::{Catalog, DEFAULT, parse_family_name};
use engine::Store;
use error::error;
use gate::Gate;
use pressure::Pressure;
use range_deletes::RangeDeletes;
use raw::{Db, WriteOptions};
use settings::Settings;
use syncer::Syncer;
use tuning::Tuning;

/// Whether the engine is compiled in.
pub(crate) const AVAILABLE: bool = true;

/// The version of our layout in the directory.
const FORMAT: u32 = 1;

/// The subdirectory with RocksDB's own files.
const SUBDIRECTORY: &str = "db";

/// The option that is fixed when the store is created.
const FIXED: &str = "compaction";

/// The version of RocksDB.
pub(crate) fn version() -> Option<String> {
    Some(raw::version())
}

/// Refuse invalid values of the engine-specific options.
pub(crate) fn check(options: &EngineOptions) -> Result<()> {
    Settings::parse(options).map(|_| ())
}

/// Open the store in `directory`.
pub(crate) fn open(
    factory: &dyn Factory,
    directory: &Path,
    options: &EngineOptions,
) -> Result<Box<dyn Engine>> {
    factory.check_own(options)?;
    let mut settings = Settings::parse(options)?;
    let identity = identity::claim(directory, NAME, FORMAT, &settings.fixed())?;
    settings.fix(&identity.options, options.own.contains_key(FIXED))?;
    let lock = lock(directory)?;
    let path = directory.join(SUBDIRECTORY);
    vfs::ensure_private_dir(&path).map_err(|e| Error::io("open", &path, e).with_engine(NAME))?;
    let tuning = Tuning::new(settings, options, info_log::logger(&path));
    let (db, catalog) = open_trees(&path, &tuning)?;
    let syncer = if options.log {
        let db = Arc::clone(&db);
        let started = Syncer::start(options.interval, move || db.sync_log());
        Some(started.map_err(|e| Error::io("open", directory, e).with_engine(NAME))?)
    } else {
        None
    };
    let pressure = Pressure::new(tuning.settings.cache);
    Ok(Box::new(Store {
        syncer,
        catalog: RwLock::new(Arc::new(catalog)),
        creation: Mutex::new(()),
        db,
        tuning,
        capabilities: capabilities(options.log),
        directory: directory.to_owned(),
        log: options.log,
        gate: Gate::new(),
        pressure,
        range_deletes: RangeDeletes::default(),
        synced: WriteOptions::new(options.log, true),
        unsynced: WriteOptions::new(options.log, false),
        is_closed: AtomicBool::new(false),
        _lock: lock,
    }))
}

fn lock(directory: &Path) -> Result<DirLock> {
    DirLock::acquire(directory).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => {
            let message = "the store is open already, here or in another process; close it first";
            Error::new(ErrorKind::Io, message)
                .with_engine(NAME)
                .with_operation("open")
                .with_path(directory)
                .with_source(e)
        }
        _ => Error::io("open", directory, e).with_engine(NAME),
    })
}

fn open_trees(path: &Path, tuning: &Tuning) -> Result<(Arc<Db>, Catalog)> {
    let fail = |status| error(status, "open").with_path(path);
    let mut names = vec![DEFAULT.to_owned()];
    if is_created(path)? {
        names.clear();
        for name in Db::list(path, &tuning.db).map_err(fail)? {
            let name = String::from_utf8(name).map_err(|e| {
                Error::new(ErrorKind::Corrupt, "a tree's name is not text")
                    .with_engine(NAME)
                    .with_path(path)
                    .with_source(e)
            })?;
            names.push(name);
        }
    }
    let mut families: Vec<(CString, Options)> = Vec::with_capacity(names.len());
    for name in &names {
        let options = match name.as_str() {
            DEFAULT => TreeOptions::default(),
            name => parse_family_name(name)?.1,
        };
        let name = CString::new(name.as_str()).map_err(|e| Error::invalid(e.to_string()))?;
        families.push((name, tuning.tree(&options)));
    }
    let borrowed: Vec<(CString, &Options)> = families
        .iter()
        .map(|(name, options)| (name.clone(), options))
        .collect();
    let (db, handles) = Db::open(path, &tuning.db, &borrowed).map_err(fail)?;
    let mut catalog = Catalog::default();
    for (name, family) in names.iter().zip(handles) {
        if name != DEFAULT {
            catalog.add(parse_family_name(name)?.0, family)?;
        }
    }
    Ok((db, catalog))
}

/// Whether RocksDB has created its files in `path`: it writes the file `CURRENT` last.
fn is_created(path: &Path) -> Result<bool> {
    let current = path.join("CURRENT");
    match fs::metadata(&current) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("open", &current, e).with_engine(NAME)),
    }
}
