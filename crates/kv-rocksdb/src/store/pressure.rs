//! The ceiling over the memtables.
//!
//! The write buffer manager begins flushes when memtables outgrow their share, but does not make
//! writers wait, and with many trees written at once they outrun the flushes: each flush is small
//! and ends with a sync. Its option to stall writers would stop them for good, because it counts
//! flushed memtables too, which are kept for conflict detection until the tree is written again.
//!
//! So a writer that finds the memtables larger than the whole cache flushes the largest of them
//! before it writes, until they are back within their share. It is one writer at a time; the others
//! wait for it. With few trees this never happens: their write buffers fill and are flushed first.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kv::{ErrorKind, Result, StallCount};
use stdx::sync::Mutex;

use super::engine::Store;
use super::raw::Family;

/// Who flushes, and an account of the waits.
pub(super) struct Pressure {
    /// Memtables beyond this many bytes are looked into.
    ceiling: AtomicUsize,
    relief: Mutex<()>,
    waits: AtomicU64,
    micros: AtomicU64,
}

impl Pressure {
    /// With nothing waited for; look into memtables beyond `ceiling` bytes.
    pub(super) fn new(ceiling: usize) -> Pressure {
        Pressure {
            ceiling: AtomicUsize::new(ceiling),
            relief: Mutex::new(()),
            waits: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        }
    }

    /// The account.
    pub(super) fn stall(&self) -> StallCount {
        StallCount {
            reason: "memtable_ceiling".to_owned(),
            count: self.waits.load(Ordering::Relaxed),
            micros: Some(self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// Before a write: see to it that the memtables are below the ceiling.
///
/// # Errors
/// As a flush.
#[inline]
pub(super) fn relieve(store: &Store) -> Result<()> {
    let is_below = || {
        let ceiling = store.pressure.ceiling.load(Ordering::Relaxed);
        store.tuning.memtables.get_usage() <= ceiling
    };
    if is_below() {
        return Ok(());
    }
    let began = stdx::time::now();
    let held = store.pressure.relief.lock();
    let result = if is_below() {
        Ok(())
    } else {
        flush_largest(store)
    };
    drop(held);
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    store.pressure.waits.fetch_add(1, Ordering::Relaxed);
    store.pressure.micros.fetch_add(micros, Ordering::Relaxed);
    result
}

fn flush_largest(store: &Store) -> Result<()> {
    let settings = &store.tuning.settings;
    let share = settings.memtables as u64;
    let catalog = store.catalog();
    let mut sizes: Vec<(u64, &Family)> = catalog
        .trees()
        .map(|tree| {
            let size = tree.family.number(c"rocksdb.cur-size-all-mem-tables");
            (size.unwrap_or(0), &tree.family)
        })
        .collect();
    let mut unflushed: u64 = sizes.iter().map(|(size, _)| size).sum();
    if unflushed <= share {
        // What is left is history. Look again when there is more.
        let usage = store.tuning.memtables.get_usage();
        let next = usage.saturating_add(settings.memtables / 4);
        store.pressure.ceiling.store(next, Ordering::Relaxed);
        return Ok(());
    }
    store
        .pressure
        .ceiling
        .store(settings.cache, Ordering::Relaxed);
    if !store.log {
        return store.flush("write");
    }
    sizes.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
    let mut families = Vec::new();
    for (size, family) in sizes {
        if unflushed <= share {
            break;
        }
        unflushed = unflushed.saturating_sub(size);
        families.push(family);
    }
    match store.db.flush(&families) {
        Ok(()) => Ok(()),
        Err(status) => {
            let error = store.write_error(status, "write");
            // A tree that was dropped meanwhile needs no flush.
            if error.kind() == ErrorKind::Invalid {
                return Ok(());
            }
            Err(error)
        }
    }
}
