//! Opening a store: identity, lock, map.
//!
//! The directory holds `romanesco-engine.json` (the engine's name), `LOCK` (ours, exclusive to this
//! handle), LMDB's `data.mdb` and `lock.mdb`, and while it is open in the mode `background`
//! `SYNCED`. The lock is taken before LMDB opens the
//! directory, because opening an environment twice in one process breaks LMDB's own locks.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};
use kv::{Engine, EngineOptions, Error, Result};
use stdx::ByteSize;
use vfs::PageCacheId;

use super::Lmdb;
use super::catalog::Catalog;
use super::durability::Store;
use super::errors::Place;
use super::rounds::Rounds;
use super::synced::{self, Synced};
use super::turn::Turn;
use crate::settings::{IntervalMode, Settings};
use crate::support::{KEY_MAX, NAME, capabilities};

/// The version of the adapter's data in the directory: the catalog of `super::catalog`.
const FORMAT: u32 = 1;

/// The minimum size of the map, in bytes: in a smaller one only the empty store fits.
const MAP_MIN: u64 = 1 << 20;

/// The maximum size of the map, in bytes: more than the address space of any system.
const MAP_MAX: u64 = 1 << 62;

/// Map sizes are multiples of this, in bytes: the largest page of any system LMDB runs on.
const MAP_STEP: u64 = 1 << 16;

/// Number of reader slots in addition to those of snapshots: two pins of `super::synced`, and a
/// backup.
const OWN_READERS: u32 = 3;

/// Number of databases in addition to the slots of trees: the catalog.
const OWN_DATABASES: u32 = 1;

pub(crate) fn open(
    directory: &Path,
    options: &EngineOptions,
    settings: Settings,
) -> Result<Box<dyn Engine>> {
    let interval = match settings.interval {
        IntervalMode::MetaSync => "metasync",
        IntervalMode::NoSync => "nosync",
        IntervalMode::Background => "background",
    };
    let recorded = format!("layout=slots key_max={KEY_MAX} created-with:interval={interval}");
    kv::identity::claim(directory, NAME, FORMAT, &recorded)?;
    let lock = lock(directory)?;
    synced::recover(directory, PageCacheId::of(directory).ok())?;
    let env = map(directory, options.size_max, settings)?;
    let rounds = rounds(&env, directory, settings)?;
    let store = Store::new(env, directory.to_owned(), settings, options.log, rounds);
    let key_max = store.env.max_key_size();
    if key_max < KEY_MAX {
        let message = format!(
            "the store takes keys of {key_max} bytes, fewer than the {KEY_MAX} promised: it was \
             made with a page size below 4096 or LMDB was built with short keys"
        );
        let error = Error::invalid(message).with_engine(NAME);
        return Err(error.with_path(directory));
    }
    let catalog = Catalog::load(&store.env, settings.trees, &store.place())?;
    // LMDB syncs its file but not the directory: a new file could disappear with all its commits.
    vfs::sync_dir(directory).map_err(|e| Error::io("open", directory, e).with_engine(NAME))?;
    let store = Arc::new(store);
    let syncer = {
        let (store, interval) = (Arc::clone(&store), options.interval);
        stdx::sync::spawn("lmdb-sync", move || store.run(interval))
    };
    let syncer = syncer.map_err(|e| Error::io("open", directory, e).with_engine(NAME))?;
    Ok(Box::new(Lmdb {
        store,
        catalog,
        turn: Turn::default(),
        capabilities: capabilities(),
        snapshots: AtomicU64::new(0),
        commits: AtomicU64::new(0),
        syncer: Some(syncer),
        _lock: lock,
    }))
}

/// Prepare for the mode `background`, or end it.
fn rounds(env: &Env<WithoutTls>, directory: &Path, settings: Settings) -> Result<Option<Rounds>> {
    if settings.interval == IntervalMode::Background {
        return Ok(Some(Rounds::new(Synced::begin(env, directory)?)));
    }
    if synced::exists(directory) {
        let synced = env.force_sync();
        let place = Place {
            directory,
            map_bytes: env.info().map_size as u64,
            readers: settings.readers,
            trees: settings.trees,
        };
        synced.map_err(|e| place.error(e, "open"))?;
        synced::remove(directory)?;
    }
    Ok(None)
}

fn lock(directory: &Path) -> Result<vfs::DirLock> {
    vfs::DirLock::acquire(directory).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => Error::invalid(
            "the store is open already, in this process or another; close it there first",
        )
        .with_engine(NAME)
        .with_path(directory),
        _ => Error::io("open", directory, e).with_engine(NAME),
    })
}

/// Open the environment with a map of `size_max`; if the system refuses a map of that size (address
/// space may be limited), of half of it, a quarter, and so on.
pub(super) fn map(
    directory: &Path,
    size_max: ByteSize,
    settings: Settings,
) -> Result<Env<WithoutTls>> {
    let size = size_max.bytes().clamp(MAP_MIN, MAP_MAX);
    let mut size = size.next_multiple_of(MAP_STEP);
    loop {
        match open_env(directory, size, settings) {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(e)) if no_room(&e) && MAP_MIN * 2 <= size => {
                size = (size / 2).next_multiple_of(MAP_STEP);
            }
            Err(heed::Error::Io(e)) if no_room(&e) => {
                let message = format!(
                    "cannot map the store: no address space for {size_max} (option size_max) nor \
                     for less; raise the limit of the process (ulimit -v)"
                );
                let error = Error::new(kv::ErrorKind::Full, message).with_source(e);
                return Err(error.with_engine(NAME).with_path(directory));
            }
            Err(e) => {
                let place = Place {
                    directory,
                    map_bytes: size,
                    readers: settings.readers,
                    trees: settings.trees,
                };
                return Err(place.error(e, "open"));
            }
        }
    }
}

/// Whether `error` means that the system refuses a map of that size.
fn no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// The reader slots that the mode takes.
pub(super) fn own_readers(settings: Settings) -> u32 {
    match settings.interval {
        IntervalMode::Background => OWN_READERS,
        IntervalMode::MetaSync | IntervalMode::NoSync => 0,
    }
}

fn open_env(directory: &Path, size: u64, settings: Settings) -> heed::Result<Env<WithoutTls>> {
    let Ok(size) = usize::try_from(size) else {
        return Err(io::Error::from(io::ErrorKind::OutOfMemory).into());
    };
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options
        .map_size(size)
        .max_readers(settings.readers + own_readers(settings))
        .max_dbs(settings.trees + OWN_DATABASES);
    if settings.interval == IntervalMode::Background {
        // SAFETY: unsynced commits are undone after a power loss (see `super::synced`).
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    if !settings.readahead {
        // SAFETY: this flag only changes how the kernel reads ahead.
        unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
    }
    // SAFETY: no other code may change the mapped files. The directory is locked for this handle,
    // and its identity file says that it holds only this store.
    unsafe { options.open(directory) }
}
