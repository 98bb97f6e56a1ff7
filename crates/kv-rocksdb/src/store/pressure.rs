//! The upper limit of the memtables.
//!
//! The write buffer manager starts flushes when memtables exceed their share, but does not make
//! writers wait. With many trees written at the same time, writers are faster than the flushes,
//! because each flush is small and ends with a sync. The manager's option to stall writers would
//! stop them forever, because it also counts flushed memtables, which are kept for conflict
//! detection until the tree is written again.
//!
//! So a writer that finds the memtables larger than the whole cache flushes the largest of them
//! before it writes, until the memtables are back within their share. One writer flushes at a time,
//! and the others wait for it. With few trees this never happens, because their write buffers fill
//! up, and are flushed, before that.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kv::{ErrorKind, Result, StallCount};
use stdx::sync::Mutex;

use super::engine::Store;
use super::raw::Family;

/// The lock of the flushing writer, and statistics of the waits.
pub(super) struct Pressure {
    /// A writer checks the memtables when they use more bytes than this.
    ceiling: AtomicUsize,
    relief: Mutex<()>,
    waits: AtomicU64,
    micros: AtomicU64,
}

impl Pressure {
    /// No waits so far; writers check the memtables when they use more than `ceiling` bytes.
    pub(super) fn new(ceiling: usize) -> Pressure {
        Pressure {
            ceiling: AtomicUsize::new(ceiling),
            relief: Mutex::new(()),
            waits: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        }
    }

    /// Statistics of the waits.
    pub(super) fn stall(&self) -> StallCount {
        StallCount {
            reason: "memtable_ceiling".to_owned(),
            count: self.waits.load(Ordering::Relaxed),
            micros: Some(self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// Must be called before a write: flushes until the memtables are below the ceiling.
///
/// # Errors
/// The errors of a flush.
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
        // The remaining bytes are history for conflict detection. Check again when there are more.
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
