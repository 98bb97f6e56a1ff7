//! Sorted runs on disk, merged into one sequence.
//!
//! The smallest head comes next; among equal heads that of the oldest run, so that equal items keep
//! their input order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use query::Result;

use super::spill::SpillFile;

/// Merges runs, each sorted by key.
pub(crate) struct Runs<K, T> {
    files: Vec<SpillFile>,
    heads: BinaryHeap<Reverse<Head<K, T>>>,
    buffer: Vec<u8>,
}

/// Decodes an item and its key from a record.
pub(crate) type Read<'a, K, T> = &'a dyn Fn(&[u8]) -> Result<(K, T)>;

impl<K: Ord, T> Runs<K, T> {
    /// Start reading runs that were written.
    ///
    /// # Errors
    /// I/O errors; errors of `read`.
    pub(crate) fn new(files: Vec<SpillFile>, read: Read<'_, K, T>) -> Result<Runs<K, T>> {
        let mut runs = Runs {
            heads: BinaryHeap::with_capacity(files.len()),
            files,
            buffer: Vec::new(),
        };
        for run in 0..runs.files.len() {
            runs.advance(run, read)?;
        }
        Ok(runs)
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// I/O errors; errors of `read`.
    pub(crate) fn next(&mut self, read: Read<'_, K, T>) -> Result<Option<(K, T)>> {
        let Some(Reverse(head)) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(head.run, read)?;
        Ok(Some((head.key, head.item)))
    }

    fn advance(&mut self, run: usize, read: Read<'_, K, T>) -> Result<()> {
        let Some(file) = self.files.get_mut(run) else {
            return Ok(());
        };
        if file.read(&mut self.buffer)? {
            let (key, item) = read(&self.buffer)?;
            self.heads.push(Reverse(Head { key, run, item }));
        }
        Ok(())
    }
}

/// The next item of a run.
struct Head<K, T> {
    key: K,
    run: usize,
    item: T,
}

impl<K: Ord, T> Ord for Head<K, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.key, self.run).cmp(&(&other.key, other.run))
    }
}

impl<K: Ord, T> PartialOrd for Head<K, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, T> PartialEq for Head<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord, T> Eq for Head<K, T> {}
