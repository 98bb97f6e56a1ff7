//! Runs that several buckets name, since a bucket was split while they were in it.
//!
//! - I1. A run that is not in the table is named by at most one bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;

use crate::run::Run;
use crate::types::RunId;

/// How many buckets name a run, beyond the first.
#[derive(Default)]
pub(crate) struct Sharing {
    more: Mutex<BTreeMap<RunId, usize>>,
}

impl Sharing {
    /// `run` is named by `more` further buckets.
    pub(crate) fn add(&self, run: RunId, more: usize) {
        if 0 < more {
            *self.more.lock().entry(run).or_insert(0) += more;
        }
    }

    /// A bucket names `run` no longer; with the last one the run is retired, and this is true.
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

    /// How many buckets name `run`, if it is named at all.
    pub(crate) fn names(&self, run: RunId) -> usize {
        1 + self.more.lock().get(&run).copied().unwrap_or(0)
    }
}
