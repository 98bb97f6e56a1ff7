//! Creating and dropping trees: commits of their own, logged like others.
//!
//! Record of a creation: tree number (4 bytes, little-endian), flags (1 byte: bit 0 ascending, bit
//! 1 point lookups), name. Of a drop: tree number.

use std::sync::Arc;

use super::commit::{RECORD_CREATE, RECORD_DROP};
use super::core::{Committer, Core};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{NAME_MAX, TREES_MAX};
use crate::tree::Tree;
use crate::types::{Durability, Seq, TreeId, TreeOptions};
use crate::work::Ask;

const ASCENDING: u8 = 1;
const POINT_LOOKUPS: u8 = 2;

impl Core {
    /// Create a tree; durable when this returns (without a log: with the next checkpoint).
    pub(crate) fn create_tree(&self, name: &str, options: TreeOptions) -> Result<TreeId> {
        if name.is_empty() || NAME_MAX < name.len() {
            let message = format!("a tree name has 1 to {NAME_MAX} bytes, {name:?} has another");
            return Err(Error::invalid(message));
        }
        let made = self.with_room(&Ask::new(0, false), || {
            let mut committer = self.committer();
            self.health.check_writable()?;
            if self.catalog.has(name) {
                let message = format!("the tree {name:?} exists already; open it");
                return Err(Error::new(ErrorKind::Exists, message));
            }
            // No error here: freed space would not help.
            if TREES_MAX <= self.catalog.len() {
                return Ok(None);
            }
            let id = TreeId(self.catalog.next_id());
            let seq = Seq(committer.last.0 + 1);
            let flags = encode_flags(options);
            let parts: &[&[u8]] = &[
                &[RECORD_CREATE],
                &id.0.to_le_bytes(),
                &[flags],
                name.as_bytes(),
            ];
            let position = self.append(seq, parts)?;
            let tree = Tree::new(id, name.to_owned(), options, seq);
            self.catalog.insert(Arc::new(tree));
            debug_assert!(self.catalog.tree(id).is_ok(), "what is logged is there");
            committer.last = seq;
            self.snapshots.publish(seq);
            Ok(Some((id, position)))
        })?;
        let Some((id, position)) = made else {
            let message = format!("a store has at most {TREES_MAX} trees; drop some");
            return Err(Error::new(ErrorKind::Full, message));
        };
        self.make_durable(position, Durability::Sync)?;
        Ok(id)
    }

    /// Drop a tree; durable when this returns (without a log: with the next checkpoint).
    /// Snapshots that saw it can still read it.
    pub(crate) fn drop_tree(&self, name: &str) -> Result<()> {
        let position = self.with_room(&Ask::new(0, true), || {
            let mut committer = self.committer();
            self.health.check_writable()?;
            let tree = self.catalog.by_name(name)?;
            let seq = Seq(committer.last.0 + 1);
            let position = self.append(seq, &[&[RECORD_DROP], &tree.id.0.to_le_bytes()])?;
            self.catalog.drop_tree(tree.id, seq);
            debug_assert!(
                self.catalog.tree(tree.id).is_err(),
                "it takes no writes any more"
            );
            committer.last = seq;
            self.snapshots.publish(seq);
            Ok(position)
        })?;
        self.forget_dropped();
        self.make_durable(position, Durability::Sync)
    }

    /// Release the memory and runs of a dropped tree without readers, under the commit lock.
    pub(crate) fn forget_tree(&self, _: &Committer, tree: &Arc<Tree>) {
        let bytes = self.queue.forget(tree);
        self.memory.forget_frozen(bytes);
        for bucket in tree.routing().buckets() {
            let mut state = bucket.state();
            assert!(!state.dropped, "a tree is released once");
            assert!(!state.retired, "no bucket of a routing was replaced");
            self.memory.forget_active(state.active.bytes());
            self.let_go(&state.deltas, &state.base);
            // Flushes and merges in progress check this and release their results.
            state.dropped = true;
            state.deltas.clear();
            state.base = Arc::from([]);
        }
        self.wake.room();
    }
}

fn encode_flags(options: TreeOptions) -> u8 {
    let ascending = if options.ascending { ASCENDING } else { 0 };
    let point_lookups = if options.point_lookups {
        POINT_LOOKUPS
    } else {
        0
    };
    ascending | point_lookups
}

/// Replay the creation of a tree, unless the image contains the tree, or the log drops it before
/// the image was made.
pub(super) fn replay_create(core: &Core, seq: Seq, record: &[u8]) -> Result<()> {
    let wrong = |what: &str| {
        let message = format!("commit {seq} in the log creates a tree, but {what}");
        Error::corrupt(message)
    };
    let (id, rest) = split_id(record).ok_or_else(|| wrong("is cut short"))?;
    let (flags, name) = rest.split_first().ok_or_else(|| wrong("is cut short"))?;
    let name = std::str::from_utf8(name).map_err(|_| wrong("its name is not UTF-8"))?;
    if name.is_empty() || NAME_MAX < name.len() || ASCENDING | POINT_LOOKUPS < *flags {
        return Err(wrong("its name or flags are impossible"));
    }
    if id.0 < core.catalog.next_id() {
        return Ok(());
    }
    if core.catalog.has(name) {
        return Err(wrong("there is one of that name"));
    }
    let options = TreeOptions {
        ascending: flags & ASCENDING != 0,
        point_lookups: flags & POINT_LOOKUPS != 0,
    };
    core.catalog
        .insert(Arc::new(Tree::new(id, name.to_owned(), options, seq)));
    Ok(())
}

/// Replay the drop of a tree, unless the image lacks the tree.
pub(super) fn replay_drop(core: &Core, seq: Seq, record: &[u8]) -> Result<()> {
    let Some((id, [])) = split_id(record) else {
        let message = format!("commit {seq} in the log drops a tree, but has a wrong length");
        return Err(Error::corrupt(message));
    };
    core.catalog.drop_tree(id, seq);
    core.forget_dropped();
    Ok(())
}

fn split_id(record: &[u8]) -> Option<(TreeId, &[u8])> {
    let (id, rest) = record.split_first_chunk::<4>()?;
    Some((TreeId(u32::from_le_bytes(*id)), rest))
}
