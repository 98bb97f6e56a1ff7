//! The state of all buckets at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::db::{Committer, Core};
use crate::run::Run;
use crate::tree::{Bucket, Tree};
use crate::types::{RunId, Seq};

/// The captured state of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferLook {
    /// Identifies the buffer, which several buckets may share.
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) entries: usize,
    pub(super) first: Option<Seq>,
    pub(super) last: Option<Seq>,
}

/// The captured state of a bucket.
#[derive(Clone)]
pub(super) struct BucketLook {
    pub(super) lo: Arc<[u8]>,
    pub(super) hi: Option<Arc<[u8]>>,
    pub(super) retired: bool,
    pub(super) dropped: bool,
    pub(super) flushed: Seq,
    pub(super) active: BufferLook,
    /// Newest first, each with the newest commit when it was frozen.
    pub(super) frozen: Vec<(BufferLook, Seq)>,
    /// Newest first.
    pub(super) deltas: Vec<Arc<Run>>,
    /// In key order.
    pub(super) base: Arc<[Arc<Run>]>,
}

impl BucketLook {
    /// Its runs, deltas first.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.deltas.iter().chain(self.base.iter())
    }

    /// Memory of its buffers.
    pub(super) fn buffered(&self) -> usize {
        let frozen = self.frozen.iter().map(|(buffer, _)| buffer.bytes);
        self.active.bytes + frozen.sum::<usize>()
    }
}

/// The captured state of a tree.
#[derive(Clone)]
pub(super) struct TreeLook {
    pub(super) tree: Arc<Tree>,
    /// The commit that dropped it.
    pub(super) dropped: Option<Seq>,
    /// In key order.
    pub(super) buckets: Vec<BucketLook>,
}

/// The captured state of all trees. The extents of its runs are not reused while it lives.
#[derive(Clone)]
pub(super) struct Look {
    /// The newest commit.
    pub(super) newest: Seq,
    /// In ascending order of numbers; dropped trees that are still read come last.
    pub(super) trees: Vec<TreeLook>,
}

impl Look {
    /// Capture all trees, including dropped ones that are still read.
    pub(super) fn at(core: &Core, committer: &Committer) -> Look {
        let all = core.catalog.all().into_iter().map(|tree| (tree, None));
        let lingering = core.catalog.lingering().into_iter();
        let trees = all.chain(lingering.map(|(tree, dropped)| (tree, Some(dropped))));
        let look = |(tree, dropped): (Arc<Tree>, Option<Seq>)| TreeLook {
            buckets: tree.routing().buckets().iter().map(|b| bucket(b)).collect(),
            tree,
            dropped,
        };
        Look {
            newest: committer.last,
            trees: trees.map(look).collect(),
        }
    }

    /// All buckets.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &BucketLook> {
        self.trees.iter().flat_map(|tree| &tree.buckets)
    }

    /// Every run once, with the number of buckets that refer to it.
    pub(super) fn runs(&self) -> BTreeMap<RunId, (Arc<Run>, usize)> {
        let mut runs = BTreeMap::new();
        for run in self.buckets().flat_map(BucketLook::runs) {
            let named = runs.entry(run.meta().id);
            named.or_insert_with(|| (Arc::clone(run), 0)).1 += 1;
        }
        runs
    }
}

fn bucket(bucket: &Bucket) -> BucketLook {
    let state = bucket.state();
    let frozen = state.frozen.iter().map(|f| (buffer(&f.buffer), f.through));
    BucketLook {
        lo: Arc::clone(&bucket.lo),
        hi: bucket.hi.clone(),
        retired: state.retired,
        dropped: state.dropped,
        flushed: state.flushed,
        active: buffer(&state.active),
        frozen: frozen.collect(),
        deltas: state.deltas.clone(),
        base: Arc::clone(&state.base),
    }
}

fn buffer(buffer: &Arc<Buffer>) -> BufferLook {
    BufferLook {
        address: Arc::as_ptr(buffer) as usize,
        bytes: buffer.bytes(),
        entries: buffer.entries(),
        first: buffer.first_seq(),
        last: buffer.last_seq(),
    }
}
