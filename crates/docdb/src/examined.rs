//! Statistics of what an operation reads, and by which plans: for the log of slow operations and
//! the profiler.
//!
//! Counts cover executed plans, but not trials of plans that were not chosen. They include reads of
//! earlier attempts that ended in a conflict.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::index::Index;
use crate::progress::{Progress, Stage};

/// Maximum number of plan leaves that are named.
const NAMED: usize = 100;

/// The read statistics of an operation.
#[derive(Default)]
pub struct Examined {
    keys: AtomicU64,
    documents: AtomicU64,
    sorted: AtomicBool,
    used_disk: AtomicBool,
    waited_micros: AtomicU64,
    plans: Mutex<Vec<Leaf>>,
    progress: Progress,
}

/// A leaf of a plan, by MongoDB's stage name.
#[derive(Clone)]
pub(crate) struct Leaf {
    /// `COLLSCAN`, `IXSCAN` and so on.
    pub(crate) name: &'static str,
    /// The index that is read.
    pub(crate) index: Option<Arc<Index>>,
    /// The write stage, if MongoDB shows it as part of the name.
    pub(crate) write: Option<&'static str>,
}

impl Leaf {
    /// A leaf that reads no index.
    pub(crate) fn plain(name: &'static str) -> Leaf {
        Leaf {
            name,
            index: None,
            write: None,
        }
    }

    /// A leaf that reads an index.
    pub(crate) fn of_index(name: &'static str, index: &Arc<Index>) -> Leaf {
        Leaf {
            index: Some(Arc::clone(index)),
            ..Leaf::plain(name)
        }
    }

    fn is(&self, other: &Leaf) -> bool {
        let index = |leaf: &Leaf| leaf.index.as_ref().map(|index| index.tree());
        (self.name, self.write) == (other.name, other.write) && index(self) == index(other)
    }
}

impl Examined {
    /// The plans, as MongoDB's `planSummary` has them: `COLLSCAN`, `IXSCAN { a: 1 }`, several with
    /// commas between them. `None` when no plan was executed.
    #[must_use]
    pub fn plans(&self) -> Option<String> {
        let mut text = String::new();
        for leaf in &*self.plans.lock() {
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(leaf.name);
            if let Some(index) = &leaf.index {
                // Writing to a string cannot fail.
                let _ = write!(text, " {}", query::show::document(&index.spec().key));
            }
            if let Some(write) = leaf.write {
                text.push(',');
                text.push_str(write);
            }
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// Keys of indexes that were read.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Documents that were read.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Whether documents were sorted because no plan gave them in order.
    #[must_use]
    pub fn sorted(&self) -> bool {
        self.sorted.load(Ordering::Relaxed)
    }

    /// Whether temporary files were written.
    #[must_use]
    pub fn used_disk(&self) -> bool {
        self.used_disk.load(Ordering::Relaxed)
    }

    /// How long it waited for documents that other clients insert.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.waited_micros.load(Ordering::Relaxed))
    }

    /// Progress of the current stage, if its length is known.
    #[must_use]
    pub fn stage(&self) -> Option<Stage> {
        self.progress.stage()
    }

    /// Set the current stage, for an operation that counts its own progress.
    pub fn set_stage(&self, what: &'static str, done: u64, total: u64) {
        self.progress.set(Stage { what, done, total });
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Add to the counts of keys and documents read.
    pub(crate) fn add(&self, keys: u64, documents: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.documents.fetch_add(documents, Ordering::Relaxed);
    }

    /// Record that the operation sorts.
    pub(crate) fn sorts(&self) {
        self.sorted.store(true, Ordering::Relaxed);
    }

    /// Record that temporary files were written.
    pub(crate) fn spills(&self) {
        self.used_disk.store(true, Ordering::Relaxed);
    }

    /// Record a wait for documents that other clients insert.
    pub fn waits(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Record an executed plan with these leaves. Statements of one command often read by the same
    /// leaves: each leaf is listed as often as in the plan that has it most often.
    pub(crate) fn plan(&self, leaves: &[Leaf]) {
        let mut plans = self.plans.lock();
        for (at, leaf) in leaves.iter().enumerate() {
            if NAMED <= plans.len() {
                return;
            }
            let count = |of: &[Leaf]| of.iter().filter(|other| other.is(leaf)).count();
            let before = leaves.get(..at).map_or(0, count);
            if count(plans.as_slice()) <= before {
                plans.push(leaf.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_plans_are_named_once() {
        let examined = Examined::default();
        assert_eq!(examined.plans(), None);
        for name in ["IDHACK", "COLLSCAN", "IDHACK"] {
            examined.plan(&[Leaf::plain(name)]);
        }
        assert_eq!(examined.plans().as_deref(), Some("IDHACK, COLLSCAN"));
        for _ in 0..2 {
            examined.plan(&[Leaf::plain("EOF"), Leaf::plain("EOF")]);
        }
        assert_eq!(
            examined.plans().as_deref(),
            Some("IDHACK, COLLSCAN, EOF, EOF")
        );
    }

    #[test]
    fn of_a_plan_is_named_what_is_new() {
        let examined = Examined::default();
        let plan = |names: &[&'static str]| {
            let leaves: Vec<Leaf> = names.iter().copied().map(Leaf::plain).collect();
            examined.plan(&leaves);
            examined.plans().unwrap()
        };
        assert_eq!(plan(&["EOF"]), "EOF");
        assert_eq!(plan(&["EOF", "COLLSCAN"]), "EOF, COLLSCAN");
        assert_eq!(plan(&["EOF", "EOF"]), "EOF, COLLSCAN, EOF");
        assert_eq!(plan(&["COLLSCAN", "EOF", "EOF"]), "EOF, COLLSCAN, EOF");
        assert_eq!(plan(&vec!["IDHACK"; NAMED]).matches(',').count(), NAMED - 1);
    }
}
