//! The order of a store that is still written to, made as far as readers need it.
//!
//! The slots are covered from the oldest on by at most [`RUNS`] sorted runs of references, each of
//! them more than twice as long as the next; the last slots, at most [`TAIL`] after a read, are the
//! tail, which point reads scan and windows sort. A store without readers is never sorted; one that
//! is read all the time costs about `log2(slots / TAIL)` merges of a reference per write.
//!
//! Invariants:
//! - I1: the runs hold exactly the slots `0..covered`, each run those of one interval, in order:
//!   what is in a later run is newer.
//! - I2: `tail` is empty or the sorted references of the first `tail.len()` slots after `covered`.
//!
//! No lock: the owner of the index guards it.

use std::cmp::Ordering;

use super::order::{self, Ref};
use super::scan::{Lanes, version};
use super::store::Store;
use crate::types::{Entry, Seq};

/// Maximum number of runs.
pub(super) const RUNS: usize = 8;
/// Maximum number of unsorted slots that a point read scans one by one.
const TAIL: usize = 64;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Index {
    runs: Vec<Vec<Ref>>,
    covered: usize,
    tail: Vec<Ref>,
}

impl Index {
    /// The newest version of `key` that `snapshot` sees.
    pub(super) fn get<'s>(
        &mut self,
        store: &'s Store,
        key: &[u8],
        snapshot: Seq,
    ) -> Option<Entry<'s>> {
        let probe = store.probe(key);
        if probe.beside != Ordering::Equal {
            return None;
        }
        if TAIL < store.len() - self.covered {
            self.seal(store);
        }
        let unsorted = store.refs(self.covered).rev();
        for r in unsorted.filter(|r| r.head() == probe.head) {
            let entry = store.entry(r.address());
            if entry.key == key && entry.seq <= snapshot {
                return Some(entry);
            }
        }
        let runs = self.runs.iter().rev();
        runs.filter_map(|run| version(store, run, &probe, snapshot))
            .next()
    }

    /// The sorted parts of the store, newest first.
    pub(super) fn lanes(&mut self, store: &Store) -> Lanes<'_> {
        assert!(self.covered <= store.len(), "I1: runs are of this store");
        let uncovered = store.len() - self.covered;
        if TAIL < uncovered {
            self.seal(store);
        } else if self.tail.len() != uncovered {
            self.tail = order::sorted(store, self.covered);
        }
        let ordered = self.covered + self.tail.len();
        assert_eq!(ordered, store.len(), "I2: every slot is in one lane");
        let mut lanes = Lanes::default();
        if !self.tail.is_empty() {
            lanes.push(&self.tail);
        }
        for run in self.runs.iter().rev() {
            lanes.push(run);
        }
        lanes
    }

    /// Sort the slots that are in no run into a new run, and merge runs to keep their sizes
    /// geometric.
    fn seal(&mut self, store: &Store) {
        self.tail = Vec::new();
        self.runs.push(order::sorted(store, self.covered));
        self.covered = store.len();
        while let [.., older, newer] = self.runs.as_slice() {
            if 2 * newer.len() < older.len() && self.runs.len() <= RUNS {
                break;
            }
            let merged = order::merged(store, newer, older);
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(merged);
        }
        assert!(self.runs.len() <= RUNS, "{} runs", self.runs.len());
        let held: usize = self.runs.iter().map(Vec::len).sum();
        assert_eq!(held, self.covered, "I1: every slot is in one run");
    }
}
