//! Runs that several buckets share, because a bucket with the run was split.
//!
//! - I1. A run that is not in the table is named by at most one bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;

use crate::run::Run;
use crate::types::RunId;

/// Number of buckets that refer to each shared run, beyond the first.
#[derive(Default)]
pub(crate) struct Sharing {
    more: Mutex<BTreeMap<RunId, usize>>,
}

impl Sharing {
    /// Record that `more` further buckets refer to `run`.
    pub(crate) fn add(&self, run: RunId, more: usize) {
        if 0 < more {
            *self.more.lock().entry(run).or_insert(0) += more;
        }
    }

    /// Record that a bucket no longer refers to `run`. If it was the last one, the run is retired
    /// and true returned.
    pub(crate) fn remove(&self, run: &Arc<Run>) -> bool {
        let id = run.meta().id;
        let mut more = self.more.lock();
        match more.get_mut(&id) {
            None => {
                run.retire();
                return true;
            }
            Some(1) => {
                more.remove(&id);
            }
            Some(count) => {
                assert!(1 < *count, "I1: it stays in the table");
                *count -= 1;
            }
        }
        false
    }

    /// Number of buckets that refer to `run`, if any does.
    pub(crate) fn names(&self, run: RunId) -> usize {
        1 + self.more.lock().get(&run).copied().unwrap_or(0)
    }
}
