//! Keeps the oplog of a source for the members that copy it: each request of a member renews its
//! lease, so a member that is gone keeps nothing for long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::Timestamp;
use docdb::{OplogPin, Store};
use query::Result;
use stdx::sync::Mutex;

/// How long a lease lasts: longer than a restart of a member takes.
const LEASE: Duration = Duration::from_secs(5 * 60);

/// The leases, by member.
#[derive(Default)]
pub(crate) struct Leases(Mutex<BTreeMap<u32, (OplogPin, Instant)>>);

impl Leases {
    /// Keep the entries of later times than `after` for a member.
    ///
    /// # Errors
    /// `CappedPositionLost` if some of them were removed.
    pub(crate) fn renew(&self, store: &Arc<Store>, member: u32, after: Timestamp) -> Result<()> {
        let pin = store.pin_oplog(after)?;
        let until = stdx::time::now() + LEASE;
        self.0.lock().insert(member, (pin, until));
        Ok(())
    }

    /// End the leases that were not renewed by `now`.
    pub(crate) fn expire(&self, now: Instant) {
        self.0.lock().retain(|_, (_, until)| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<Store> {
        let folder = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(folder.path(), &kv::EngineOptions::default());
        let options = docdb::Options {
            oplog: true,
            oplog_period: None,
            ttl_period: None,
            oplog_limits: docdb::oplog::Limits {
                segment_bytes: 1,
                bytes: 1,
                ..docdb::oplog::Limits::default()
            },
            ..docdb::Options::default()
        };
        Store::open(Arc::from(engine.unwrap()), options).unwrap()
    }

    #[test]
    fn a_lease_keeps_the_oplog_until_it_expires() {
        let store = store();
        let note = || {
            let op = docdb::Op::new(kv::Durability::Group);
            let note = bson::rawdoc! { "msg": "a note" };
            store.append_oplog_note(&op, &note).unwrap();
            store.tend_oplog().unwrap();
            store.oplog_visible().unwrap()
        };
        let first = note();
        let leases = Leases::default();
        leases.renew(&store, 1, first).unwrap();
        for _ in 0..5 {
            note();
        }
        leases.expire(stdx::time::now());
        assert!(store.oplog_after(first, 9).is_ok(), "it is kept");
        // Another member has none, and this one's is renewed.
        let later = note();
        leases.renew(&store, 1, later).unwrap();
        note();
        note();
        assert!(store.oplog_after(first, 9).is_err());
        assert!(leases.renew(&store, 2, first).is_err());
        leases.expire(stdx::time::now() + 2 * LEASE);
        for _ in 0..5 {
            note();
        }
        assert!(store.oplog_after(later, 9).is_err(), "a lease ends");
    }
}
