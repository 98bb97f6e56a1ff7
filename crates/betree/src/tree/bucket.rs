//! A bucket: the unit of flushing, merging and splitting. It holds the keys from `lo` up to `hi`.
//!
//! ```text
//!  writers -> active buffer --freeze--> frozen buffers --flush--> deltas --merge--> base
//!             (memory)                  (memory)                 (runs)            (runs)
//! ```
//!
//! - I1. Sources are ordered by age: whatever a newer source says of a key was committed after
//!   whatever an older one says of it (active, frozen newest first, deltas newest first, base).
//! - I2. The runs of the base are in key order and do not overlap within the bucket.
//! - I3. `flushed` is a commit up to which everything of this bucket is in runs.
//! - I4. A retired bucket holds nothing and never changes again; its content lives on in the
//!   buckets that replaced it, and a holder of the old bucket keeps none of it. Buffers and
//!   runs may be shared between buckets after a split: keys outside of the bucket's own range do
//!   not count.
//! - I5. The active buffer is replaced, and the bucket retired, under the commit lock only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stdx::sync::{Mutex, MutexGuard};

use crate::buffer::Buffer;
use crate::cursor::View;
use crate::run::Run;
use crate::types::{RunId, Seq};

/// A full buffer on its way to the disk.
#[derive(Clone)]
pub(crate) struct Frozen {
    pub(crate) buffer: Arc<Buffer>,
    /// The newest commit when the buffer was frozen: flushing it makes this the bucket's `flushed`.
    pub(crate) through: Seq,
}

/// A merge that gave up because there was less room than it had asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    /// The room that it had.
    pub(crate) room: u64,
    /// The newest of the runs that it read.
    pub(crate) newest: Option<RunId>,
    /// The horizon, if a snapshot kept versions.
    pub(crate) held: Option<Seq>,
}

impl Short {
    /// Whether another attempt would write about as much.
    pub(crate) fn is_like(&self, other: &Short) -> bool {
        self.newest == other.newest && (self.held.is_none() || self.held == other.held)
    }
}

/// The content of a bucket at one moment.
pub(crate) struct State {
    /// Whether other buckets have replaced it (I4).
    pub(crate) retired: bool,
    pub(crate) active: Arc<Buffer>,
    /// Newest first.
    pub(crate) frozen: Vec<Frozen>,
    /// Newest first.
    pub(crate) deltas: Vec<Arc<Run>>,
    /// In key order.
    pub(crate) base: Arc<[Arc<Run>]>,
    pub(crate) flushed: Seq,
    /// Whether a flush is in progress: the bucket must then not be retired.
    pub(crate) flushing: bool,
    /// Whether a merge is in progress: then no other may begin, and only it may retire the bucket.
    pub(crate) merging: bool,
    /// Whether a merge failed because of damaged bytes: merges are then not retried until the store
    /// is opened again.
    pub(crate) broken: bool,
    /// A number that grows with each merge that lacked room, if the last one of this bucket did;
    /// else 0.
    pub(crate) lacked: u64,
    /// What that merge found, if it was tried with less room than it had asked for.
    pub(crate) short: Option<Short>,
    /// Whether the tree was dropped and has no readers: results of work in progress are then
    /// discarded.
    pub(crate) dropped: bool,
}

impl State {
    /// Bytes of all deltas.
    pub(crate) fn delta_bytes(&self) -> u64 {
        self.deltas.iter().map(|r| r.meta().bytes).sum()
    }

    /// Bytes of the base.
    pub(crate) fn base_bytes(&self) -> u64 {
        self.base.iter().map(|r| r.meta().bytes).sum()
    }

    /// Retire it: other buckets have replaced it and hold its content (I4).
    pub(crate) fn retire(&mut self) {
        assert!(!self.retired, "a bucket is replaced once");
        debug_assert_eq!(self.active.entries(), 0, "writes would be lost");
        self.retired = true;
        self.frozen = Vec::new();
        self.deltas = Vec::new();
        self.base = Arc::from([]);
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        let buffered = !self.frozen.is_empty() || 0 < self.active.entries();
        !buffered && self.deltas.is_empty() && self.base.is_empty()
    }

    /// Whether no work is in progress that would miss a replacement of the bucket.
    pub(crate) fn is_free(&self) -> bool {
        !self.retired && !self.flushing && !self.merging && !self.dropped
    }

    /// Whether `buffer` is among the frozen ones.
    pub(crate) fn has_frozen(&self, buffer: &Arc<Buffer>) -> bool {
        self.frozen.iter().any(|f| Arc::ptr_eq(&f.buffer, buffer))
    }

    /// The oldest commit that is only in memory, if there is one.
    pub(crate) fn oldest_unflushed(&self) -> Option<Seq> {
        let buffers = self.frozen.iter().map(|f| &f.buffer).chain([&self.active]);
        buffers.filter_map(|b| b.first_seq()).min()
    }

    /// Whether every key of the bucket in its runs is below `key`.
    pub(crate) fn runs_end_before(&self, key: &[u8]) -> bool {
        let runs = self.deltas.iter().chain(self.base.iter());
        runs.map(|r| &*r.meta().max_key).all(|max| max < key)
    }
}

/// A bucket.
pub(crate) struct Bucket {
    /// The lower bound of its keys, inclusive.
    pub(crate) lo: Arc<[u8]>,
    /// The upper bound of its keys, exclusive; `None` for the last bucket of a tree.
    pub(crate) hi: Option<Arc<[u8]>>,
    state: Mutex<State>,
    /// Number of reads since the last merge that searched deltas.
    heat: AtomicU32,
}

impl Bucket {
    /// An empty bucket, flushed up to `flushed`.
    pub(crate) fn new(lo: Arc<[u8]>, hi: Option<Arc<[u8]>>, flushed: Seq) -> Bucket {
        Bucket::with_runs(lo, hi, flushed, Vec::new(), Arc::from([]))
    }

    /// A bucket with these runs.
    pub(crate) fn with_runs(
        lo: Arc<[u8]>,
        hi: Option<Arc<[u8]>>,
        flushed: Seq,
        deltas: Vec<Arc<Run>>,
        base: Arc<[Arc<Run>]>,
    ) -> Bucket {
        debug_assert!(in_order(&base), "I2: runs of a base are in key order");
        let skip = hi.as_deref().map_or(0, |hi| shared_prefix(&lo, hi));
        let state = State {
            retired: false,
            active: Arc::new(Buffer::new(skip)),
            frozen: Vec::new(),
            deltas,
            base,
            flushed,
            flushing: false,
            merging: false,
            broken: false,
            lacked: 0,
            short: None,
            dropped: false,
        };
        Bucket {
            lo,
            hi,
            state: Mutex::new(state),
            heat: AtomicU32::new(0),
        }
    }

    /// The locked state. Hold it only to copy or exchange pointers.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether `key` is in the range of the bucket.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_deref().is_none_or(|hi| key < hi)
    }

    /// The buffer that writes go to. It does not change while the commit lock is held.
    pub(crate) fn active(&self) -> Arc<Buffer> {
        Arc::clone(&self.state.lock().active)
    }

    /// Freeze the active buffer and start another, under the commit lock. `through` is the newest
    /// commit. `None` if the buffer is empty.
    pub(crate) fn freeze(&self, state: &mut State, through: Seq) -> Option<Arc<Buffer>> {
        assert!(!state.retired, "I4: a retired bucket is not frozen");
        if state.active.entries() == 0 {
            return None;
        }
        let skip = self
            .hi
            .as_deref()
            .map_or(0, |hi| shared_prefix(&self.lo, hi));
        let full = std::mem::replace(&mut state.active, Arc::new(Buffer::new(skip)));
        full.freeze();
        assert!(
            full.last_seq() <= Some(through),
            "I3: nothing newer is in the buffer"
        );
        let buffer = Arc::clone(&full);
        state.frozen.insert(0, Frozen { buffer, through });
        Some(full)
    }

    /// The bucket as readers see it; `None` if it was replaced.
    pub(crate) fn view(&self) -> Option<View> {
        let state = self.state.lock();
        if state.retired {
            return None;
        }
        debug_assert!(in_order(&state.base), "I2: runs of a base are in key order");
        let mut buffers = Vec::new();
        if 0 < state.active.entries() {
            buffers.push(Arc::clone(&state.active));
        }
        buffers.extend(state.frozen.iter().map(|f| Arc::clone(&f.buffer)));
        if !state.deltas.is_empty() {
            // Used to choose merges; lost counts are harmless.
            self.heat.fetch_add(1, Ordering::Relaxed);
        }
        Some(View {
            buffers,
            deltas: state.deltas.clone(),
            base: Arc::clone(&state.base),
            lo: Arc::clone(&self.lo),
            hi: self.hi.clone(),
        })
    }

    /// Number of reads since the last merge that searched deltas.
    pub(crate) fn heat(&self) -> u32 {
        self.heat.load(Ordering::Relaxed)
    }

    /// Reset the number of reads that searched deltas.
    pub(crate) fn cool(&self) {
        self.heat.store(0, Ordering::Relaxed);
    }
}

/// Whether runs are in key order and do not overlap (I2).
fn in_order(runs: &[Arc<Run>]) -> bool {
    runs.is_sorted_by(|a, b| a.meta().max_key < b.meta().min_key)
}

/// Length of the prefix that all keys of `[lo, hi)` share.
fn shared_prefix(lo: &[u8], hi: &[u8]) -> usize {
    let same = lo.iter().zip(hi).take_while(|(a, b)| a == b).count();
    debug_assert!(same < hi.len() || lo == hi, "hi is above lo");
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_prefix_is_shared_by_all_keys_between() {
        assert_eq!(shared_prefix(b"abc1", b"abc9"), 3);
        assert_eq!(shared_prefix(b"ab", b"b"), 0);
        assert_eq!(shared_prefix(b"ab", b"abc"), 2);
        assert_eq!(shared_prefix(b"", b"abc"), 0);
    }
}
