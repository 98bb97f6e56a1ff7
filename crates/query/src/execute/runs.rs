//! Sorted runs on disk, merged into one sequence.
//!
//! The smallest head comes next; among equal heads that of the oldest run, so that equal items keep
//! their input order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Spill;
use super::ranked::Ranked;
use crate::Result;

/// Merges runs, each sorted by key.
pub struct Runs<K, T> {
    runs: Vec<Box<dyn Spill>>,
    /// The next item of each run, with the position of the run.
    heads: BinaryHeap<Reverse<Ranked<K, usize, T>>>,
    buffer: Vec<u8>,
}

/// Decodes an item and its key from a record; it may take the bytes of the record.
pub type Decode<'a, K, T> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<(K, T)>;

impl<K: Ord, T> Runs<K, T> {
    /// Start reading runs that were written, in the order of their input.
    ///
    /// # Errors
    /// I/O errors; errors of `decode`.
    pub fn new(runs: Vec<Box<dyn Spill>>, decode: Decode<'_, K, T>) -> Result<Runs<K, T>> {
        let mut merged = Runs {
            heads: BinaryHeap::with_capacity(runs.len()),
            runs,
            buffer: Vec::new(),
        };
        for run in 0..merged.runs.len() {
            merged.advance(run, decode)?;
        }
        Ok(merged)
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// I/O errors; errors of `decode`.
    pub fn next(&mut self, decode: Decode<'_, K, T>) -> Result<Option<(K, T)>> {
        let Some(Reverse(head)) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(head.place, decode)?;
        Ok(Some((head.key, head.item)))
    }

    fn advance(&mut self, run: usize, decode: Decode<'_, K, T>) -> Result<()> {
        let Some(file) = self.runs.get_mut(run) else {
            return Ok(());
        };
        if file.read(&mut self.buffer)? {
            let (key, item) = decode(&mut self.buffer)?;
            let place = run;
            self.heads.push(Reverse(Ranked { key, place, item }));
        }
        Ok(())
    }
}
