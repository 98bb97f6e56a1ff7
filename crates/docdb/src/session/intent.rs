//! What open multi-document transactions have changed: who comes second is told at once, and not
//! when it commits.
//!
//! It helps clients and keeps nothing correct: that is the engine's task, which compares at the
//! commit. So keys are told apart by 64 bits of a hash, and writes outside of transactions, which
//! are done again until they are through, are not looked at.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kv::TreeId;
use query::Result;
use stdx::sync::Mutex;

use crate::error;

/// A key that a transaction has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Intent(u64);

impl Intent {
    /// Of a key of a tree.
    pub(crate) fn of(tree: TreeId, key: &[u8]) -> Intent {
        Intent(stdx::hash::hash64_seeded(key, u64::from(tree.0)))
    }
}

/// All of them, with the numbers of their transactions.
#[derive(Default)]
pub(crate) struct Intents(Mutex<HashMap<Intent, u64>>);

impl Intents {
    /// A transaction changes a key. True when it had not done so before.
    ///
    /// # Errors
    /// `WriteConflict` when another one has.
    pub(crate) fn take(&self, intent: Intent, transaction: u64) -> Result<bool> {
        match self.0.lock().entry(intent) {
            Entry::Occupied(held) if *held.get() == transaction => Ok(false),
            Entry::Occupied(_) => Err(error::conflict()),
            Entry::Vacant(free) => {
                free.insert(transaction);
                Ok(true)
            }
        }
    }

    /// A transaction has ended.
    pub(crate) fn give_back(&self, intents: &[Intent]) {
        if intents.is_empty() {
            return;
        }
        let mut all = self.0.lock();
        for intent in intents {
            all.remove(intent);
        }
    }
}
