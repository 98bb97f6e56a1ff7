//! Rounds of the mode `interval=background`: one sync makes all commits before it durable.
//!
//! Committers that must be synced call [`Rounds::run`] after they released the writer's turn. One
//! runs a round; the others wait for it and usually find their commit in it, or in the next.
//!
//! Locks: `synced` is held during a round, with its syncs. `commits` is taken in a round to pin the
//! newest state, and by each commit while LMDB writes it, without a sync. A holder of `commits`
//! never takes `synced`.
//!
//! - R1. While a state is pinned and its meta page is copied, no commit runs, so both are of one
//!   state.

use stdx::sync::{Mutex, MutexGuard};

use kv::Result;

use super::durability::Store;
use super::synced::Synced;
use crate::support::NAME;

pub(super) struct Rounds {
    synced: Mutex<Synced>,
    commits: Mutex<()>,
}

impl Rounds {
    pub(super) fn new(synced: Synced) -> Rounds {
        Rounds {
            synced: Mutex::new(synced),
            commits: Mutex::new(()),
        }
    }

    /// Let no round take a state while a commit runs (R1).
    pub(super) fn keep_out(&self) -> MutexGuard<'_, ()> {
        self.commits.lock()
    }

    /// Make the state of transaction `through`, or of the newest, durable with `sync`, and record
    /// it.
    pub(super) fn run(
        &self,
        store: &Store,
        through: Option<usize>,
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut synced = self.synced.lock();
        if through.is_some_and(|id| id <= synced.transaction()) {
            return Ok(());
        }
        let newer = {
            let _commits = self.commits.lock();
            store.begin_round();
            synced.capture(&store.env, &store.directory)?
        };
        let recorded = sync().and_then(|()| {
            let recorded = synced.record(newer);
            recorded.map_err(|e| kv::Error::io("sync", &store.directory, e).with_engine(NAME))
        });
        recorded.inspect_err(|error| store.poison(error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use heed::types::Bytes;
    use kv::{Durability, EngineOptions, Error, ErrorKind};

    use super::super::open::map;
    use super::super::turn::Turn;
    use super::*;
    use crate::settings::Settings;

    fn store(directory: &Path) -> Store {
        let mut options = EngineOptions {
            size_max: stdx::ByteSize::mib(16),
            ..EngineOptions::default()
        };
        let mode = ("interval".to_owned(), "background".to_owned());
        options.own.extend([mode]);
        let settings = Settings::read(&options).unwrap();
        let env = map(directory, options.size_max, settings).unwrap();
        let rounds = Rounds::new(Synced::begin(&env, directory).unwrap());
        Store::new(env, directory.to_owned(), settings, true, Some(rounds))
    }

    fn commit(store: &Store, turn: &Turn, key: &[u8]) -> super::super::durability::Then {
        let guard = turn.take().unwrap();
        let mut txn = store.env.write_txn().unwrap();
        let db = store.env.create_database::<Bytes, Bytes>(&mut txn, None);
        db.unwrap().put(&mut txn, key, b"v").unwrap();
        store.commit(txn, Durability::Group, &guard).unwrap()
    }

    #[test]
    fn a_round_serves_every_commit_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let record = || fs::read(directory.path().join("SYNCED")).unwrap();
        let turn = Turn::default();
        let (first, second) = (commit(&store, &turn, b"1"), commit(&store, &turn, b"2"));
        let before = record();
        assert!(store.owes());
        store.finish(&first).unwrap();
        let after = record();
        assert_ne!(before, after);
        assert!(!store.owes());
        store.finish(&second).unwrap();
        assert_eq!(
            record(),
            after,
            "the second commit was in the round of the first"
        );
        store.finish(&commit(&store, &turn, b"3")).unwrap();
        assert_ne!(record(), after);
    }

    #[test]
    fn a_state_is_recorded_after_its_sync_and_never_when_that_failed() {
        // I2 of `synced`.
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let record = || fs::read(directory.path().join("SYNCED")).unwrap();
        let rounds = Rounds::new(Synced::begin(&store.env, directory.path()).unwrap());
        let turn = Turn::default();
        let _unsynced = commit(&store, &turn, b"1");
        let first = record();
        let mut synced = false;
        let sync = || {
            synced = true;
            assert_eq!(record(), first, "I2: not yet recorded");
            Ok(())
        };
        rounds.run(&store, None, sync).unwrap();
        assert!(synced);
        let before = record();
        assert_ne!(before, first);
        let _unsynced = commit(&store, &turn, b"2");
        let failed = rounds.run(&store, None, || {
            Err(Error::new(ErrorKind::Io, "the device is gone"))
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(record(), before, "I2");
        assert_eq!(
            store.check_writable().unwrap_err().kind(),
            ErrorKind::Closed
        );
    }

    #[test]
    fn a_round_without_a_reader_slot_is_tried_again_and_closes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let turn = Turn::default();
        let then = commit(&store, &turn, b"1");
        let mut held = Vec::new();
        while let Ok(reader) = store.env.read_txn() {
            held.push(reader);
        }
        store.finish(&then).unwrap_err();
        assert!(store.owes());
        drop(held);
        store.finish(&then).unwrap();
        assert!(!store.owes());
    }
}
