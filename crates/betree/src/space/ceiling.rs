//! The ceiling: up to how many buffered bytes what is kept for flushes suffices.
//!
//! It belongs to what is kept: both are raised in one step ([`super::Space::keep`]), and what takes
//! of the kept room for anything else takes the ceiling away. Commits look at it without a lock.

use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Up to how many buffered bytes room for a flush is kept.
#[derive(Debug, Default)]
pub(crate) struct Ceiling {
    bytes: AtomicUsize,
    /// Whether the last commit that asked for a step found no room for it.
    low: AtomicBool,
}

impl Ceiling {
    /// Record that room for a flush of `bytes` was used, or is needed for something else.
    pub(crate) fn lower(&self, bytes: usize) {
        let less = |ceiling: usize| Some(ceiling.saturating_sub(bytes));
        let done = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        debug_assert!(done.is_ok(), "it is always changed");
    }

    /// Record that what is kept is not known to suffice any more: the next commit counts.
    pub(crate) fn forget(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    pub(super) fn raise(&self, to: usize) {
        self.bytes.store(to, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    pub(crate) fn set_low(&self, low: bool) {
        self.low.store(low, Ordering::Relaxed);
    }
}
