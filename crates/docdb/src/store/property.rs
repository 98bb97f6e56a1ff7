//! Small values that a server keeps in its store, and an inexpensive check whether a collection was
//! written to.

use kv::Durability;
use query::{Namespace, Result};

use super::Store;
use crate::catalog::property_key;
use crate::error;

/// Identifies the content of a collection while a store is open. Equal versions mean equal
/// documents. The version changes with every commit that may have written to the collection, and
/// when the collection is dropped, created or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentVersion {
    uuid: [u8; 16],
    written: u64,
}

impl Store {
    /// The content version of a collection; `None` if the collection does not exist. A read that
    /// begins after the call sees this version or a later one. Takes no lock of writers.
    #[must_use]
    pub fn content_version(&self, ns: &Namespace) -> Option<ContentVersion> {
        let collection = self.collection(ns)?;
        let core = collection.core();
        Some(ContentVersion {
            uuid: core.uuid,
            written: core.writes.last(),
        })
    }

    /// The value stored by [`Store::set_property`] under a name. No command reads it.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn property(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let value = snapshot.get(self.trees().catalog, &property_key(name));
        value.map_err(error::engine)
    }

    /// Store a value under a name, durably. It must not exceed one kilobyte, which every engine
    /// supports.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn set_property(&self, name: &str, value: &[u8]) -> Result<()> {
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        let put = txn.put(self.trees().catalog, &property_key(name), value);
        put.map_err(error::engine)?;
        txn.commit(Durability::Group).map_err(error::engine)
    }
}
