//! The newest writes of one bucket, in memory: appended, and sorted only when read or flushed.
//!
//! A write appends its bytes to a chunk and 12 bytes to the slots; nothing is ordered, no memory is
//! walked. Reads sort what they need (`index`); a flush freezes the buffer and sorts it once.
//!
//! Invariants:
//! - I1: seqs never fall from one push to the next, so later slots are newer.
//! - I2: of the versions of one key with one seq, the last pushed counts, for every reader.
//! - I3: once frozen, a buffer never changes; it is read without its lock.
//! - I4: `bytes`, `entries`, `first_seq` and `last_seq` are exact whenever no guard is held.
//! - I5: `bytes` counts the entries, not their order, which takes 16 bytes for each entry that a
//!   read or a flush sorted, and twice that for a moment while runs are merged. A freeze frees what
//!   reads took.
//!
//! Lock: `core`, held for a batch of pushes or one read, never across input or output. It is a
//! leaf: no other lock is taken under it. Sorting a frozen buffer happens outside of it.

mod frozen;
mod index;
mod order;
mod scan;
mod store;
#[cfg(test)]
mod tests;
mod window;
mod writes;

use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use stdx::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) use frozen::SortedBuffer;
pub(crate) use window::Window;
pub(crate) use writes::{SortedWrites, WriteSet};

use crate::types::{Direction, Entry, Op, Seq};
use frozen::Frozen;
use index::Index;
use scan::{Range, version};
use store::Store;

/// One bucket's writes since its last flush. See the module documentation.
#[derive(Debug)]
pub(crate) struct Buffer {
    core: Mutex<Core>,
    /// Set once, under the lock.
    frozen: OnceLock<Arc<Frozen>>,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    first: AtomicU64,
    last: AtomicU64,
}

#[derive(Debug, Default)]
struct Core {
    store: Store,
    index: Index,
    /// Sequence number of the last push.
    last: Seq,
    frozen: bool,
}

impl Buffer {
    /// An empty buffer without memory, for keys that all start with the same `skip` bytes.
    pub(crate) fn new(skip: usize) -> Buffer {
        let core = Core {
            store: Store::new(skip),
            ..Core::default()
        };
        Buffer {
            core: Mutex::new(core),
            frozen: OnceLock::new(),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            first: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// Append one version. Sequence numbers never decrease (I1). Panics if frozen.
    #[inline]
    pub(crate) fn push(&self, seq: Seq, op: Op, key: &[u8], value: &[u8]) {
        self.lock().push(seq, op, key, value);
    }

    /// Lock it for a batch of pushes. Panics if frozen.
    #[inline]
    pub(crate) fn lock(&self) -> BufferGuard<'_> {
        let core = self.core.lock();
        assert!(!core.frozen, "I3: a frozen buffer takes no writes");
        BufferGuard { buffer: self, core }
    }

    /// Memory held for the entries, in bytes. Only pushes change it and it never decreases, so that
    /// a governor can sum up what pushes took and subtract the same at the end (I5).
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of versions pushed.
    pub(crate) fn entries(&self) -> usize {
        self.entries.load(Ordering::Acquire)
    }

    /// Sequence number of the first push.
    pub(crate) fn first_seq(&self) -> Option<Seq> {
        (0 < self.entries()).then(|| Seq(self.first.load(Ordering::Relaxed)))
    }

    /// Sequence number of the last push.
    pub(crate) fn last_seq(&self) -> Option<Seq> {
        (0 < self.entries()).then(|| Seq(self.last.load(Ordering::Relaxed)))
    }

    /// Freeze the buffer: no more pushes (I3). A second call does nothing.
    pub(crate) fn freeze(&self) {
        let mut core = self.core.lock();
        if core.frozen {
            return;
        }
        core.frozen = true;
        core.index = Index::default();
        let frozen = Arc::new(Frozen::new(mem::take(&mut core.store)));
        assert_eq!(
            frozen.store.held(),
            self.bytes(),
            "I5: a freeze changes no bytes"
        );
        assert_eq!(frozen.store.len(), self.entries(), "I4: entries");
        let first = self.frozen.set(frozen).is_ok();
        assert!(first, "I3: frozen once");
    }

    /// True once frozen.
    #[cfg(test)]
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.get().is_some()
    }

    /// Get the newest version of `key` that `snapshot` sees; its value overwrites `value`.
    pub(crate) fn get(&self, key: &[u8], snapshot: Seq, value: &mut Vec<u8>) -> Option<(Seq, Op)> {
        if self.entries() == 0 {
            return None;
        }
        if let Some(frozen) = self.frozen.get() {
            let probe = frozen.store.probe(key);
            let found = version(&frozen.store, frozen.refs(), &probe, snapshot);
            return found.map(|entry| copy(entry, value));
        }
        let mut core = self.core.lock();
        if core.frozen {
            drop(core);
            return self.get(key, snapshot, value);
        }
        let Core { store, index, .. } = &mut *core;
        let found = index.get(store, key, snapshot);
        found.map(|entry| copy(entry, value))
    }

    /// Copy the next `limit` keys from `from` on, in the direction, up to `to`: of each the newest
    /// version that `snapshot` sees, tombstones too. Fewer if they are large.
    pub(crate) fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        snapshot: Seq,
        limit: usize,
        out: &mut Window,
    ) {
        let range = Range {
            direction,
            from,
            to,
            snapshot,
            limit,
        };
        if let Some(frozen) = self.frozen.get() {
            return scan::window(&frozen.store, frozen.lanes(), range, out);
        }
        let mut core = self.core.lock();
        if core.frozen {
            drop(core);
            return self.window(direction, from, to, snapshot, limit, out);
        }
        let Core { store, index, .. } = &mut *core;
        scan::window(store, index.lanes(store), range, out);
    }

    /// All versions in order. Sorts at the first call, outside of the lock. Panics if not frozen.
    pub(crate) fn sorted(&self) -> SortedBuffer {
        let frozen = self.frozen.get();
        let frozen = frozen.expect("I3: only a frozen buffer is sorted");
        SortedBuffer::new(Arc::clone(frozen))
    }
}

fn copy(entry: Entry<'_>, value: &mut Vec<u8>) -> (Seq, Op) {
    value.clear();
    value.extend_from_slice(entry.value);
    (entry.seq, entry.op)
}

/// A locked buffer, for pushes.
#[must_use]
#[derive(Debug)]
pub(crate) struct BufferGuard<'a> {
    buffer: &'a Buffer,
    core: MutexGuard<'a, Core>,
}

impl BufferGuard<'_> {
    /// Append one version. Sequence numbers never decrease (I1).
    #[inline]
    pub(crate) fn push(&mut self, seq: Seq, op: Op, key: &[u8], value: &[u8]) {
        let core = &mut *self.core;
        assert!(core.last <= seq, "I1: seq {seq} after {}", core.last);
        if core.store.len() == 0 {
            self.buffer.first.store(seq.0, Ordering::Relaxed);
        }
        core.last = seq;
        core.store.push(seq.0, seq.0, op, key, value);
    }
}

impl Drop for BufferGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let (buffer, core) = (self.buffer, &*self.core);
        buffer.bytes.store(core.store.held(), Ordering::Relaxed);
        buffer.last.store(core.last.0, Ordering::Relaxed);
        // Last, so that who sees entries sees their seqs (I4).
        buffer.entries.store(core.store.len(), Ordering::Release);
    }
}
