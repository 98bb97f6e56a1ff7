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

    /// Entries after this time were removed: later ones with the same times are not synced.
    pub(crate) fn end_at(&self, last: Timestamp) {
        self.until
            .fetch_min(segment::number(last), Ordering::AcqRel);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use query::{Code, Error};

    use super::*;

    fn at(increment: u32) -> Timestamp {
        Timestamp { time: 1, increment }
    }

    /// D1.
    #[test]
    fn a_sync_counts_for_what_was_visible_when_it_began() {
        let synced = Synced::default();
        let never = || -> Result<Timestamp> { panic!("nothing is to be synced") };
        let failing = || Err(Error::new(Code::INTERNAL_ERROR, "no disk"));
        synced.reach(at(5), failing).unwrap_err();
        synced.reach(at(5), || Ok(at(6))).unwrap();
        synced.reach(at(6), never).unwrap();
        synced.reach(at(7), failing).unwrap_err();
        // One that began before does not take it back.
        synced.note(at(2));
        synced.reach(at(6), never).unwrap();
    }

    /// D2: callers that wait for a sync are answered by the next one together.
    #[test]
    fn those_who_wait_share_a_sync() {
        let synced = Arc::new(Synced::default());
        let count = Arc::new(AtomicU64::new(0));
        let leads = synced.leads.lock();
        let caller = |_| {
            let (synced, count) = (Arc::clone(&synced), Arc::clone(&count));
            let body = move || {
                let sync = || {
                    count.fetch_add(1, Ordering::Relaxed);
                    Ok(at(9))
                };
                synced.reach(at(9), sync).unwrap();
            };
            stdx::sync::spawn("caller", body).unwrap()
        };
        let threads: Vec<_> = (0..8).map(caller).collect();
        drop(leads);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
