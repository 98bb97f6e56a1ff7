//! One file: its durable content, its visible content, and the pending ops between them.
//!
//! - I1: `visible` is `durable` with all of `pending` applied, in order, unless a sync failed.

use std::sync::Arc;

use stdx::Rng;

use crate::content::Content;
use crate::fault::Pages;
use crate::owned::Owned;

/// A change of a file that is not durable yet.
#[derive(Clone)]
pub(crate) enum FileOp {
    /// Write bytes at an offset. `extends`: the write makes the file longer.
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
        extends: bool,
    },
    /// Set the length.
    SetLen(u64),
    /// Extend the file to at least this length.
    Grow(u64),
}

/// A [`FileOp`] and its number in the order of all ops of the disk.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) seq: u64,
    pub(crate) op: FileOp,
}

/// A file, with or without a name.
#[derive(Clone, Default)]
pub(crate) struct Inode {
    pub(crate) durable: Content,
    pub(crate) visible: Content,
    pub(crate) pending: Vec<Pending>,
    pub(crate) owned: Owned,
    /// Number of open handles.
    pub(crate) opens: usize,
    /// Number of failed writebacks; each handle reports each failure once.
    pub(crate) failures: u64,
}

impl FileOp {
    pub(crate) fn apply(&self, content: &mut Content) {
        match self {
            FileOp::Write { offset, bytes, .. } => content.write(*offset, bytes),
            FileOp::SetLen(len) => content.set_len(*len),
            FileOp::Grow(len) => content.set_len(content.len().max(*len)),
        }
    }

    /// Whether the op makes the file longer.
    pub(crate) fn extends(&self) -> bool {
        match self {
            FileOp::Write { extends, .. } => *extends,
            FileOp::SetLen(_) | FileOp::Grow(_) => true,
        }
    }
}

impl Inode {
    /// A file with durable content only.
    pub(crate) fn at_rest(content: Content, mut owned: Owned) -> Inode {
        owned.cut(content.len());
        Inode {
            visible: content.clone(),
            durable: content,
            owned,
            ..Inode::default()
        }
    }

    /// Make `op` visible and pending.
    pub(crate) fn push(&mut self, seq: u64, op: FileOp) {
        let last = self.pending.last().map_or(0, |last| last.seq);
        assert!(last < seq, "pending ops are in order");
        op.apply(&mut self.visible);
        match &op {
            FileOp::Write { offset, bytes, .. } => self.owned.add(*offset, bytes.len() as u64),
            FileOp::SetLen(len) => self.owned.cut(*len),
            FileOp::Grow(_) => {}
        }
        self.pending.push(Pending { seq, op });
    }

    /// Make all pending ops durable.
    pub(crate) fn sync(&mut self) {
        for pending in self.pending.drain(..) {
            pending.op.apply(&mut self.durable);
        }
    }

    /// Writeback fails: half of the ops, at random, reach the disk, the others never will. The next
    /// sync has nothing to write, so it succeeds.
    pub(crate) fn fail_sync(&mut self, pages: Pages, rng: &mut Rng) {
        for pending in self.pending.drain(..) {
            if rng.chance(0.5) {
                pending.op.apply(&mut self.durable);
            }
        }
        self.failures += 1;
        if pages == Pages::Revert {
            self.visible = self.durable.clone();
        }
    }

    /// What the device returns: pending ops are written before it is read, those of a failed sync
    /// are not.
    pub(crate) fn on_device(&self) -> Content {
        let mut content = self.durable.clone();
        for pending in &self.pending {
            pending.op.apply(&mut content);
        }
        content
    }

    /// Drop the page cache: reads return the content on disk.
    pub(crate) fn evict(&mut self) {
        self.visible = self.on_device();
    }
}
