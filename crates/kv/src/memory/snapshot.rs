//! Snapshots: each is a registered sequence number.

use kv_types::{Direction, KeyRange, Result, TreeId};

use super::NAME;
use super::cursor::MergeCursor;
use super::store::Store;
use crate::engine::{Cursor, Snapshot};

/// Maximum number of keys that `get_many` reads under one lock.
const KEYS_PER_LOCK: usize = 64;

/// A read view. Registered from its creation until it is dropped.
#[derive(Debug)]
pub(super) struct MemorySnapshot<'e> {
    pub(super) store: &'e Store,
    pub(super) seq: u64,
    /// False once the commit of its transaction has removed it from the register.
    pub(super) registered: bool,
}

impl<'e> MemorySnapshot<'e> {
    /// A snapshot of now.
    pub(super) fn begin(store: &'e Store) -> MemorySnapshot<'e> {
        let seq = store.begin();
        MemorySnapshot {
            store,
            seq,
            registered: true,
        }
    }
}

impl Drop for MemorySnapshot<'_> {
    fn drop(&mut self) {
        if self.registered {
            self.store.end(self.seq);
        }
    }
}

impl Snapshot for MemorySnapshot<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let state = self.store.state.read();
        let tree = state.tree_at(tree, self.seq);
        let tree = tree.map_err(|e| e.with_engine(NAME).with_operation("get"))?;
        let Some(found) = tree.get(key, self.seq) else {
            return Ok(false);
        };
        value.extend_from_slice(found);
        Ok(true)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut bytes = Vec::new();
        let mut lengths = Vec::with_capacity(keys.len().min(KEYS_PER_LOCK));
        let mut index = 0;
        for some in keys.chunks(KEYS_PER_LOCK) {
            bytes.clear();
            lengths.clear();
            let state = self.store.state.read();
            let tree = state.tree_at(tree, self.seq);
            let tree = tree.map_err(|e| e.with_engine(NAME).with_operation("get_many"))?;
            for key in some {
                let found = tree.get(key, self.seq);
                bytes.extend_from_slice(found.unwrap_or_default());
                lengths.push(found.map(<[u8]>::len));
            }
            // `visit` is the caller's code: never under the lock.
            drop(state);
            let mut rest = bytes.as_slice();
            for length in &lengths {
                let (value, after) = rest.split_at(length.unwrap_or(0));
                rest = after;
                visit(index, length.map(|_| value));
                index += 1;
            }
        }
        Ok(())
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let cursor = MergeCursor::new(self, tree, range, direction, None)?;
        Ok(Box::new(cursor))
    }
}
