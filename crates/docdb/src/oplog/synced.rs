//! The time up to which the oplog survives a power loss.
//!
//! A write with a weak durability is committed, and thus visible, before it is synced. Who follows
//! the oplog acts on what it reads, and resumes behind it: it must not read what can be gone after
//! a power loss. So it asks for the sync, and all who ask at one time share one.
//!
//! - D1. All entries up to the time were committed before a sync began that has succeeded.
//! - D2. A caller waits for at most the sync under way and one more.

use bson::Timestamp;
use query::Result;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use super::segment;

/// See the module documentation. What was read when the store was opened counts as not synced: a
/// process that was killed may have left it to the operating system.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    /// The number of the time (D1).
    until: AtomicU64,
    /// Held by the one that syncs.
    leads: Mutex<()>,
}

impl Synced {
    /// All entries that were visible up to this time have been synced since.
    pub(crate) fn note(&self, visible: Timestamp) {
        let number = segment::number(visible);
        self.until.fetch_max(number, Ordering::AcqRel);
    }

    /// Call `sync`, unless another caller has made all entries up to `until`, a visible time,
    /// durable. It returns the visible time of when it began.
    ///
    /// # Errors
    /// Those of `sync`.
    pub(crate) fn reach(
        &self,
        until: Timestamp,
        sync: impl FnOnce() -> Result<Timestamp>,
    ) -> Result<()> {
        if self.has(until) {
            return Ok(());
        }
        let _leads = stdx::sync::lock_announced(&self.leads);
        if self.has(until) {
            return Ok(());
        }
        self.note(sync()?);
        Ok(())
    }

    fn has(&self, until: Timestamp) -> bool {
        segment::number(until) <= self.until.load(Ordering::Acquire)
    }
}
