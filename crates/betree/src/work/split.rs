//! Splitting buckets that stayed whole, because there was no room for the runs of their parts when
//! they became too large ([`super::restructure`]).
//!
//! Like joining, this is for settled buckets, by `settle` and by a store without other work. Then
//! nothing is buffered that would need room, and nothing is read: each part takes some of the runs
//! of the base.
//!
//! - I1. A part has more than one run only if they have at most 70 % of a bucket together, so it is
//!   not split again.

use std::sync::Arc;

use super::join::settled_bytes;
use super::restructure::Part;
use crate::db::Core;
use crate::run::Run;
use crate::tree::{Bucket, Tree};

impl Core {
    /// Split the settled buckets that are larger than a merge would leave them. Returns false if
    /// there are none.
    pub(super) fn split_large(&self) -> bool {
        let mut any = false;
        for tree in self.catalog.all() {
            for bucket in tree.routing().buckets() {
                any |= self.is_large(bucket) && self.split_at_runs(&tree, bucket);
            }
        }
        any
    }

    fn is_large(&self, bucket: &Bucket) -> bool {
        let state = bucket.state();
        let most = self.options.bucket() / 4 * 5;
        1 < state.base.len() && settled_bytes(bucket, &state).is_some_and(|bytes| most < bytes)
    }

    /// Replace `bucket` by one for each part of its base, if it is settled still.
    fn split_at_runs(&self, tree: &Arc<Tree>, bucket: &Arc<Bucket>) -> bool {
        // Routings are replaced, and buffers written, under this lock only.
        let committer = self.commit.lock();
        let mut state = bucket.state();
        if settled_bytes(bucket, &state).is_none() {
            return false;
        }
        let most = self.options.bucket() / 10 * 7;
        let parts = parts(bucket, &state.base, most);
        if parts.len() < 2 || self.room_to_split(&state, parts.len()).is_err() {
            return false;
        }
        let together = |part: &Part| part.base.iter().map(|run| run.meta().bytes).sum::<u64>();
        let small = |part: &Part| part.base.len() < 2 || together(part) <= most;
        assert!(parts.iter().all(small), "I1: no part is split again");
        let frozen = self.replace(&committer, tree, bucket, &mut state, parts);
        assert!(frozen.is_none(), "nothing of a settled bucket is in memory");
        drop(state);
        self.merges.look_again();
        true
    }
}

/// Adjacent runs, up to `most` bytes together, make a part (I1).
fn parts(bucket: &Bucket, base: &[Arc<Run>], most: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut bytes = 0;
    for run in base {
        bytes += run.meta().bytes;
        match parts.last_mut() {
            Some(part) if bytes <= most => part.base.push(Arc::clone(run)),
            last => {
                let lo = match last {
                    None => Arc::clone(&bucket.lo),
                    Some(_) => Arc::from(&*run.meta().min_key),
                };
                bytes = run.meta().bytes;
                parts.push(Part {
                    lo,
                    base: vec![Arc::clone(run)],
                });
            }
        }
    }
    parts
}
