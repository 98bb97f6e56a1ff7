//! The register of live snapshots: what flushes and merges must keep.
//!
//! - I1. A snapshot is in the register before anything it sees may be dropped: its number is taken
//!   and entered under one lock, and work that drops versions reads the register under that lock.
//! - I2. A snapshot that has grown too old is out of the register and knows it: its reads fail.
//! - I3. Tickets are numbered in the order of the commits they see: both are taken under the lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::types::Seq;

/// The registration of a snapshot.
pub(crate) struct Ticket {
    pub(crate) seq: Seq,
    number: u64,
    expired: Arc<AtomicBool>,
}

impl Ticket {
    /// Refuse once the snapshot was given up. To be asked *after* a read: what was read is then
    /// known to have been complete.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.expired.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the snapshot is older than snapshot_max_age and was given up so that space \
                       could be reused; take a new one";
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

struct Live {
    seq: Seq,
    since: Duration,
    expired: Arc<AtomicBool>,
}

/// All live snapshots.
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<u64, Live>>,
    /// The newest commit that readers see.
    visible: AtomicU64,
    next: AtomicU64,
    max_age: Option<Duration>,
}

/// The versions that flushes and merges must keep.
#[derive(Clone, Debug)]
pub(crate) struct Horizon {
    /// The open snapshots, ascending, each once.
    pub(crate) snapshots: Vec<Seq>,
    /// The newest commit that is visible.
    pub(crate) now: Seq,
}

impl Horizon {
    /// The oldest commit that a reader sees, now or ever: no reader sees what a newer version at
    /// or below it replaces. It never decreases.
    pub(crate) fn oldest(&self) -> Seq {
        let oldest = self.snapshots.first().copied();
        oldest.map_or(self.now, |oldest| oldest.min(self.now))
    }
}

impl Snapshots {
    pub(crate) fn new(visible: Seq, max_age: Option<Duration>) -> Snapshots {
        Snapshots {
            live: Mutex::new(BTreeMap::new()),
            visible: AtomicU64::new(visible.0),
            next: AtomicU64::new(0),
            max_age,
        }
    }

    /// The newest commit that readers see.
    pub(crate) fn visible(&self) -> Seq {
        Seq(self.visible.load(Ordering::Acquire))
    }

    /// Let readers see `seq`. Under the commit lock, after the commit is in the buffers.
    pub(crate) fn publish(&self, seq: Seq) {
        let before = self.visible.swap(seq.0, Ordering::Release);
        assert!(before < seq.0, "commits become visible in order");
    }

    /// Register a snapshot of the current state (I1).
    pub(crate) fn enter(&self, now: Duration) -> Ticket {
        self.enter_since(now)
    }

    /// Register a snapshot of the current state without a maximum age, for a commit, which ends by
    /// itself.
    pub(crate) fn enter_for_good(&self) -> Ticket {
        self.enter_since(Duration::MAX)
    }

    fn enter_since(&self, since: Duration) -> Ticket {
        let mut live = self.live.lock();
        let seq = self.visible();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let expired = Arc::new(AtomicBool::new(false));
        let newest = live.values().next_back();
        debug_assert!(
            newest.is_none_or(|newest| newest.seq <= seq),
            "I3: later tickets see later commits"
        );
        let off = u64::from(planted(Plant::SnapshotOffByOne));
        let before = live.insert(
            number,
            Live {
                seq: Seq(seq.0 + off),
                since,
                expired: Arc::clone(&expired),
            },
        );
        assert!(before.is_none(), "a number is given once");
        Ticket {
            seq,
            number,
            expired,
        }
    }

    /// Take a snapshot out of the register.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        let was = self.live.lock().remove(&ticket.number);
        let given_up = || ticket.expired.load(Ordering::Acquire);
        assert!(
            was.is_some() || given_up(),
            "I2: it was here, or knows why not"
        );
    }

    /// Expire snapshots that are too old (I2); returns what must be kept for the others.
    pub(crate) fn horizon(&self, now: Duration) -> Horizon {
        let mut live = self.live.lock();
        self.expire(&mut live, now);
        let mut snapshots: Vec<Seq> = live.values().map(|s| s.seq).collect();
        snapshots.sort_unstable();
        snapshots.dedup();
        Horizon {
            snapshots,
            now: self.visible(),
        }
    }

    /// [`Horizon::oldest`] alone, without a list of all snapshots. Expires those that are too old.
    pub(crate) fn horizon_only(&self, now: Duration) -> Seq {
        let mut live = self.live.lock();
        self.expire(&mut live, now);
        let visible = self.visible();
        // Numbers are given in the order of commits, so the first one is the oldest (I3).
        let oldest = live.first_key_value();
        oldest.map_or(visible, |(_, snapshot)| snapshot.seq.min(visible))
    }

    /// Expire the snapshots that are too old (I2).
    fn expire(&self, live: &mut BTreeMap<u64, Live>, now: Duration) {
        let Some(max_age) = self.max_age else {
            return;
        };
        live.retain(|_, snapshot| {
            let keep = now.saturating_sub(snapshot.since) <= max_age;
            if !keep {
                snapshot.expired.store(true, Ordering::Release);
            }
            keep
        });
    }

    /// The number of live snapshots and the age of the oldest.
    pub(crate) fn count(&self, now: Duration) -> (usize, Duration) {
        let live = self.live.lock();
        let oldest = live.values().map(|s| now.saturating_sub(s.since)).max();
        (live.len(), oldest.unwrap_or_default())
    }

    /// The oldest open snapshot. Expires those that are too old.
    pub(crate) fn oldest(&self, now: Duration) -> Option<Seq> {
        let mut live = self.live.lock();
        self.expire(&mut live, now);
        live.first_key_value().map(|(_, snapshot)| snapshot.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_names_each_live_snapshot_once() {
        let snapshots = Snapshots::new(Seq(4), None);
        let a = snapshots.enter(Duration::ZERO);
        let b = snapshots.enter(Duration::ZERO);
        snapshots.publish(Seq(7));
        let c = snapshots.enter(Duration::ZERO);
        let horizon = snapshots.horizon(Duration::ZERO);
        assert_eq!(horizon.snapshots, [Seq(4), Seq(7)]);
        assert_eq!(horizon.now, Seq(7));
        assert_eq!(horizon.oldest(), Seq(4));
        assert_eq!(snapshots.horizon_only(Duration::ZERO), Seq(4));
        for ticket in [a, b, c] {
            snapshots.leave(&ticket);
        }
        assert_eq!(snapshots.oldest(Duration::ZERO), None);
        assert_eq!(snapshots.horizon_only(Duration::ZERO), Seq(7));
    }

    #[test]
    fn a_snapshot_beyond_the_age_limit_is_given_up_and_says_so() {
        let snapshots = Snapshots::new(Seq(1), Some(Duration::from_secs(10)));
        let old = snapshots.enter(Duration::from_secs(0));
        let young = snapshots.enter(Duration::from_secs(8));
        let horizon = snapshots.horizon(Duration::from_secs(11));
        assert_eq!(horizon.snapshots, [Seq(1)]);
        assert_eq!(old.check().unwrap_err().kind(), ErrorKind::Conflict);
        young.check().unwrap();
    }
}
