//! A primary and a follower, each a store of its own.

use std::sync::Arc;

use docdb::oplog::Limits;
use docdb::replica::{Replica, StoredEntry};
use docdb::{Options, Store};
use kv::{EngineOptions, Factory};
use query::Result;
use tempfile::TempDir;

use crate::lab::op;

/// A store in its own directory.
pub(crate) struct Member {
    pub(crate) factory: &'static dyn Factory,
    pub(crate) directory: TempDir,
    pub(crate) store: Arc<Store>,
    engine: Arc<dyn kv::Engine>,
}

/// Options of a member: small segments, and no work of its own.
pub(crate) fn options(directory: &TempDir) -> Options {
    Options {
        oplog: true,
        oplog_period: None,
        ttl_period: None,
        rollback_dir: Some(directory.path().join("rollback")),
        temp_dir: directory.path().join("temporary"),
        oplog_limits: Limits {
            segment_bytes: 2_048,
            ..Limits::default()
        },
        ..Options::default()
    }
}

impl Member {
    pub(crate) fn new(factory: &'static dyn Factory) -> Member {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let engine = factory.open(&path, &EngineOptions::default()).unwrap();
        let engine: Arc<dyn kv::Engine> = Arc::from(engine);
        let store = Store::open(Arc::clone(&engine), options(&directory)).unwrap();
        Member {
            factory,
            directory,
            store,
            engine,
        }
    }

    pub(crate) fn follower(factory: &'static dyn Factory) -> Member {
        let member = Member::new(factory);
        member.replica().follow(&op()).unwrap();
        member
    }

    pub(crate) fn replica(&self) -> Replica<'_> {
        self.store.replica().unwrap()
    }

    /// Close it and open it again. False for engines that keep nothing.
    pub(crate) fn reopen(&mut self) -> bool {
        if !self.factory.capabilities().persistent {
            return false;
        }
        self.store.close().unwrap();
        let other = Member::new(kv::memory::factory());
        self.store = Arc::clone(&other.store);
        self.engine = Arc::clone(&other.engine);
        let path = self.directory.path().join("store");
        let engine = self.factory.open(&path, &EngineOptions::default()).unwrap();
        self.engine = Arc::from(engine);
        self.store = Store::open(Arc::clone(&self.engine), options(&self.directory)).unwrap();
        true
    }

    /// A second store in the same engine, as after a kill.
    pub(crate) fn again(&self) -> Arc<Store> {
        Store::open(Arc::clone(&self.engine), options(&self.directory)).unwrap()
    }

    /// Append what another member has and this one lacks.
    pub(crate) fn fetch(&self, from: &Member, most: usize) -> Result<()> {
        let after = self.replica().written();
        let entries = from.replica().stored_after(after.ts, most, usize::MAX)?;
        self.append(&entries)?;
        self.store.tend_oplog()
    }

    pub(crate) fn append(&self, entries: &[StoredEntry]) -> Result<()> {
        let after = self.replica().written();
        let values: Vec<&[u8]> = entries.iter().map(|entry| &*entry.value).collect();
        self.replica().append(&op(), after, &values).map(|_| ())
    }
}
