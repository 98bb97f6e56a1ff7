//! Transactions: a snapshot and a private write set, which is applied to the trees at commit.
//!
//! A write checks the newest version of its key immediately, so that most conflicts are found
//! early; the decisive check (M4) is made at commit, under the lock that applies the writes. After
//! a conflict a transaction can still read, but its commit fails.

use std::collections::btree_map::{BTreeMap, Entry};
use std::mem;

use kv_types::{Direction, Durability, Error, ErrorKind, KeyRange, Result, TreeId};

use super::NAME;
use super::chain::{Value, put_cost};
use super::cursor::MergeCursor;
use super::live::Live;
use super::snapshot::MemorySnapshot;
use super::state::{State, check_key, check_value};
use super::store::{Commit, SWEEP_AT_COMMIT, Store};
use super::tree::Key;
use crate::engine::{Cursor, Snapshot, Transaction};

/// The writes of a transaction to one tree.
pub(super) type WriteSet = BTreeMap<Key, Write>;

/// A transaction's change of a key.
#[derive(Debug)]
pub(super) struct Write {
    /// The new value of the key.
    pub(super) value: Value,
    /// Whether the write takes part in conflict detection: at least one write of the key was not
    /// blind.
    checked: bool,
}

#[derive(Debug)]
pub(super) struct MemoryTransaction<'e> {
    snapshot: MemorySnapshot<'e>,
    writes: BTreeMap<TreeId, WriteSet>,
    /// Upper bound of the bytes that the write set adds to the bytes held.
    incoming: u64,
    /// The transaction conflicted with another one and cannot commit.
    lost: bool,
}

impl<'e> MemoryTransaction<'e> {
    /// A transaction on a snapshot of now.
    pub(super) fn begin(store: &'e Store) -> MemoryTransaction<'e> {
        MemoryTransaction {
            snapshot: MemorySnapshot::begin(store),
            writes: BTreeMap::new(),
            incoming: 0,
            lost: false,
        }
    }

    /// The transaction's own change of `key`.
    fn own(&self, tree: TreeId, key: &[u8]) -> Option<&Write> {
        self.writes.get(&tree)?.get(key)
    }

    /// Check that the transaction may write `key`, and return whether it sees the key. If `blind`,
    /// conflicts are not checked, and the result is false.
    fn check(&mut self, tree: TreeId, key: &[u8], blind: bool) -> Result<bool> {
        let result = self.look(tree, key, blind);
        if let Err(error) = &result
            && error.kind() == ErrorKind::Conflict
            && !mem::replace(&mut self.lost, true)
        {
            self.snapshot.store.count_conflict();
        }
        result
    }

    fn look(&self, tree: TreeId, key: &[u8], blind: bool) -> Result<bool> {
        let seq = self.snapshot.seq;
        let state = self.snapshot.store.state.read();
        let target = state.tree_for_write(tree, seq)?;
        check_key(key).map_err(|e| e.with_tree(&target.name))?;
        if blind {
            return Ok(false);
        }
        if target.is_newer(key, seq) {
            return Err(conflict(key).with_tree(&target.name));
        }
        Ok(match self.own(tree, key) {
            Some(write) => write.value.is_some(),
            None => target.get(key, seq).is_some(),
        })
    }

    /// The checks of a put in addition to those of [`MemoryTransaction::check`]; returns the bytes
    /// that the put adds.
    fn check_put(&self, key: &[u8], value: &[u8]) -> Result<u64> {
        check_value(key, value)?;
        let incoming = put_cost(key.len(), value.len());
        self.snapshot.store.check_room(self.incoming + incoming)?;
        Ok(incoming)
    }

    fn record(&mut self, tree: TreeId, key: &[u8], value: Value, checked: bool) {
        match self.writes.entry(tree).or_default().entry(key.into()) {
            Entry::Occupied(mut entry) => {
                let write = entry.get_mut();
                if let Some(old) = &write.value {
                    self.incoming -= put_cost(key.len(), old.len());
                }
                write.value = value;
                write.checked |= checked;
            }
            Entry::Vacant(entry) => {
                entry.insert(Write { value, checked });
            }
        }
    }

    fn record_put(&mut self, tree: TreeId, key: &[u8], value: &[u8], checked: bool) -> Result<()> {
        let incoming = self.check_put(key, value)?;
        self.record(tree, key, Some(value.into()), checked);
        self.incoming += incoming;
        Ok(())
    }
}

impl Snapshot for MemoryTransaction<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(write) = self.own(tree, key) else {
            return self.snapshot.get_into(tree, key, value);
        };
        value.clear();
        value.extend_from_slice(write.value.as_deref().unwrap_or_default());
        Ok(write.value.is_some())
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let set = self.writes.get(&tree);
        let cursor = MergeCursor::new(&self.snapshot, tree, range, direction, set)?;
        Ok(Box::new(cursor))
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("insert");
        if self.check(tree, key, false).map_err(named)? {
            let error = Error::new(ErrorKind::Exists, "the key exists").with_key(key);
            return Err(named(name_tree(error, self.snapshot.store, tree)));
        }
        self.record_put(tree, key, value, true).map_err(named)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("put");
        self.check(tree, key, false).map_err(named)?;
        self.record_put(tree, key, value, true).map_err(named)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let named = |e: Error| e.with_engine(NAME).with_operation("delete");
        let present = self.check(tree, key, false).map_err(named)?;
        self.record(tree, key, None, true);
        Ok(present)
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("put_blind");
        self.check(tree, key, true).map_err(named)?;
        self.record_put(tree, key, value, false).map_err(named)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("delete_blind");
        self.check(tree, key, true).map_err(named)?;
        self.record(tree, key, None, false);
        Ok(())
    }

    /// Deletes each key the transaction sees, as [`Transaction::delete`] does: if another
    /// transaction changed a key of the range meanwhile, it is a conflict (found at commit); a key
    /// inserted meanwhile stays.
    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("delete_range");
        // Checks only that the tree may be written; the key is a placeholder.
        self.check(tree, b"", true).map_err(named)?;
        let mut keys: Vec<Key> = Vec::new();
        let mut cursor = self.cursor(tree, range, Direction::Forward)?;
        while cursor.advance()? {
            keys.push(cursor.key().into());
        }
        drop(cursor);
        for key in keys {
            self.record(tree, &key, None, true);
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>, durability: Durability) -> Result<()> {
        let named = |e: Error| e.with_engine(NAME).with_operation("commit");
        let store = self.snapshot.store;
        store.check_durability(durability).map_err(named)?;
        if self.lost {
            let message = "a write of this transaction met a conflict; retry the transaction";
            return Err(named(Error::new(ErrorKind::Conflict, message)));
        }
        if self.writes.is_empty() {
            return Ok(());
        }
        let changes = Changes {
            writes: mem::take(&mut self.writes),
            seq: self.snapshot.seq,
            incoming: self.incoming,
        };
        let count: usize = changes.writes.values().map(BTreeMap::len).sum();
        let result = store.commit(SWEEP_AT_COMMIT + 2 * count, changes);
        match &result {
            Ok(()) => self.snapshot.registered = false,
            Err(error) if error.kind() == ErrorKind::Conflict => store.count_conflict(),
            Err(_) => {}
        }
        result.map_err(named)
    }

    fn rollback(self: Box<Self>) {}
}

fn conflict(key: &[u8]) -> Error {
    let message = "another transaction wrote the key and was first; retry the transaction";
    Error::new(ErrorKind::Conflict, message).with_key(key)
}

fn name_tree(error: Error, store: &Store, tree: TreeId) -> Error {
    match store.state.read().tree(tree) {
        Ok(tree) => error.with_tree(&tree.name),
        Err(_) => error,
    }
}

/// The writes of a transaction that is committing.
struct Changes {
    writes: BTreeMap<TreeId, WriteSet>,
    seq: u64,
    incoming: u64,
}

impl Commit for Changes {
    /// Checks M4 for all writes.
    fn check(&self, state: &State) -> Result<u64> {
        let seq = self.seq;
        // If the numbers are equal, no commit followed the snapshot (the drop of a tree counts as a
        // commit).
        if seq < state.last {
            for (&id, set) in &self.writes {
                let tree = state.tree_for_write(id, seq)?;
                let mut writes = set.iter();
                let lost = writes.find(|(key, w)| w.checked && tree.is_newer(key, seq));
                if let Some((key, _)) = lost {
                    return Err(conflict(key).with_tree(&tree.name));
                }
            }
        }
        Ok(self.incoming)
    }

    fn apply(self, state: &mut State, live: &mut Live) {
        // The transaction's own snapshot must not keep the versions that it replaces.
        live.remove(self.seq);
        for (id, set) in self.writes {
            for (key, write) in set {
                state.change(id, live, |tree, moment| tree.set(key, write.value, moment));
            }
        }
        state.last += 1;
    }
}
