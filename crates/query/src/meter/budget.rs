//! A memory budget that all operations of a server share.
//!
//! B1: the sum of all reservations never exceeds the limit.
//! B2: a reservation ends when its guard is dropped, on any thread.

use std::sync::Arc;

use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{CHUNK, FREE};
use crate::Result;

/// A memory budget that all operations of a server share.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    refused: AtomicU64,
}

/// Usage of a [`Budget`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Maximum number of bytes that may be reserved at the same time.
    pub limit: usize,
    /// Bytes reserved now.
    pub used: usize,
    /// The largest number of bytes that were reserved at the same time.
    pub peak: usize,
    /// Number of reservations that were refused.
    pub refused: u64,
}

impl Budget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Sets the limit in bytes; existing reservations above it stay until they are released.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The usage now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            limit: self.limit.load(Ordering::Relaxed),
            used: self.used.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Reserves bytes; returns false when fewer are left (B1).
    fn take(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |used: usize| {
            let total = used.checked_add(bytes)?;
            (total <= limit).then_some(total)
        };
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match taken {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                true
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A reservation in a budget, released when it is dropped. Without a budget it only counts bytes.
#[derive(Debug, Default)]
pub struct Held {
    budget: Option<Arc<Budget>>,
    bytes: usize,
    reserved: usize,
}

impl Held {
    /// An empty reservation without a budget.
    pub(super) const fn none() -> Held {
        Held {
            budget: None,
            bytes: 0,
            reserved: 0,
        }
    }

    /// An empty reservation in `budget`.
    pub(super) fn of(budget: Option<Arc<Budget>>) -> Held {
        Held {
            budget,
            ..Held::none()
        }
    }

    /// An empty reservation in the budget of the operation that this thread executes.
    #[must_use]
    pub fn new() -> Held {
        Held::of(super::budget())
    }

    pub(super) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    /// Bytes that the owner holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the number of bytes that the owner holds; returns false when the budget refuses them.
    /// They are counted even then: the owner must spill or drop them.
    #[must_use = "the budget may refuse"]
    pub fn set(&mut self, bytes: usize) -> bool {
        self.bytes = bytes;
        if bytes + CHUNK <= self.reserved {
            self.shrink(bytes, 0);
        }
        self.cover(bytes)
    }

    /// Adds to the number of bytes that the owner holds; returns false as [`Held::set`].
    #[must_use = "the budget may refuse"]
    pub fn add(&mut self, bytes: usize) -> bool {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Sets the number of bytes that the operator or stage `name` holds.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` when the budget refuses them.
    pub fn require(&mut self, name: &str, bytes: usize) -> Result<()> {
        if self.set(bytes) {
            return Ok(());
        }
        let usage = self.budget.as_ref().map(|budget| budget.usage());
        Err(super::spent(name, usage.unwrap_or_default()))
    }

    /// As [`Held::require`], for what is kept after its operation: every byte is reserved, also
    /// those that operations may use without a reservation.
    ///
    /// # Errors
    /// As [`Held::require`].
    pub fn retain(&mut self, name: &str, bytes: usize) -> Result<()> {
        let Some(budget) = &self.budget else {
            self.bytes = bytes;
            return Ok(());
        };
        if bytes <= self.reserved {
            budget.give(self.reserved - bytes);
        } else if !budget.take(bytes - self.reserved) {
            return Err(super::spent(name, budget.usage()));
        }
        (self.bytes, self.reserved) = (bytes, bytes);
        Ok(())
    }

    /// Releases the whole reservation.
    pub fn clear(&mut self) {
        self.bytes = 0;
        self.shrink(0, 0);
    }

    /// Extends the reservation to at least `bytes`; false when the budget refuses.
    pub(super) fn cover(&mut self, bytes: usize) -> bool {
        if bytes <= self.reserved || bytes <= FREE {
            return true;
        }
        let wanted = bytes.div_ceil(CHUNK).saturating_mul(CHUNK);
        let Some(budget) = &self.budget else {
            return true;
        };
        let taken = budget.take(wanted - self.reserved);
        if taken {
            self.reserved = wanted;
        }
        taken
    }

    /// Releases reserved bytes beyond `bytes + slack`, in whole chunks.
    pub(super) fn shrink(&mut self, bytes: usize, slack: usize) {
        let wanted = bytes.saturating_add(slack).div_ceil(CHUNK) * CHUNK;
        let wanted = if bytes <= FREE && slack == 0 {
            0
        } else {
            wanted
        };
        if wanted < self.reserved {
            if let Some(budget) = &self.budget {
                budget.give(self.reserved - wanted);
            }
            self.reserved = wanted;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give(self.reserved);
        }
    }
}
