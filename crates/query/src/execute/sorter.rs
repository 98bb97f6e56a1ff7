//! External merge sort: items stay in memory while they fit, and are otherwise written to disk in
//! sorted runs, which are merged.
//!
//! - O1. With a limit of N, at most N items are held in memory: the first N in sort order.
//! - O2. Items with equal keys keep their input order. Runs are written in input order, and the
//!   merge prefers the earlier run.

use std::collections::BinaryHeap;

use super::memory::{Excess, excess};
use super::ranked::Ranked;
use super::{Runs, Spill};
use crate::{Result, meter};

/// Writes items to runs and reads them back.
pub trait Codec<K, T> {
    /// Append the record of an item to a run.
    ///
    /// # Errors
    /// I/O errors.
    fn write(&mut self, item: &T, run: &mut dyn Spill) -> Result<()>;

    /// Decode an item and its key from a record; it may take the bytes of the record.
    ///
    /// # Errors
    /// An invalid record; errors in computing the key.
    fn read(&mut self, record: &mut Vec<u8>) -> Result<(K, T)>;
}

/// Accepts items in any order.
pub struct Sorter<K, T> {
    kept: Kept<K, T>,
    /// Estimated bytes held in memory.
    bytes: usize,
    total: u64,
    usage: SortUsage,
    /// Memory reserved in the budget of all operations.
    reserved: meter::Held,
    runs: Vec<Box<dyn Spill>>,
}

/// What a sort needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortUsage {
    /// Peak of the bytes held in memory.
    pub peak: usize,
    /// Number of runs written.
    pub runs: u64,
}

/// Returns the items of a [`Sorter`] in order.
pub struct Sorted<K, T> {
    output: Output<K, T>,
    usage: SortUsage,
    _reserved: meter::Held,
}

enum Output<K, T> {
    Memory(std::vec::IntoIter<Entry<K, T>>),
    Runs(Runs<K, T>),
}

/// The items in memory.
enum Kept<K, T> {
    All(Vec<Entry<K, T>>),
    /// The least items, at most a limit: a max-heap, so that the greatest one is dropped first.
    Least(BinaryHeap<Entry<K, T>>, usize),
}

/// An item with its sort key and its position in the input.
type Entry<K, T> = Ranked<K, u64, Measured<T>>;

/// An item with its estimated bytes.
struct Measured<T> {
    item: T,
    bytes: usize,
}

impl<K: Ord, T> Kept<K, T> {
    fn is_empty(&self) -> bool {
        match self {
            Kept::All(entries) => entries.is_empty(),
            Kept::Least(entries, _) => entries.is_empty(),
        }
    }
}

impl<K: Ord, T> Sorter<K, T> {
    /// A sorter that returns all items, or the first `limit`.
    #[must_use]
    pub fn new(limit: Option<usize>) -> Sorter<K, T> {
        Sorter {
            kept: match limit {
                None => Kept::All(Vec::new()),
                Some(limit) => Kept::Least(BinaryHeap::new(), limit),
            },
            bytes: 0,
            total: 0,
            usage: SortUsage::default(),
            reserved: meter::Held::new(),
            runs: Vec::new(),
        }
    }

    /// Add an item that takes an estimated number of bytes.
    pub fn push(&mut self, key: K, item: T, bytes: usize) {
        let entry = Entry {
            key,
            place: self.total,
            item: Measured { item, bytes },
        };
        self.total += 1;
        match &mut self.kept {
            Kept::All(entries) => entries.push(entry),
            Kept::Least(entries, limit) if entries.len() < *limit => entries.push(entry),
            Kept::Least(entries, limit) => {
                assert!(entries.len() <= *limit, "O1: few items are kept");
                match entries.peek_mut() {
                    Some(mut greatest) if entry < *greatest => {
                        self.bytes -= greatest.item.bytes;
                        *greatest = entry;
                    }
                    _ => return,
                }
            }
        }
        self.bytes += bytes;
        self.usage.peak = self.usage.peak.max(self.bytes);
    }

    /// Number of items added.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What the sort has needed so far.
    #[must_use]
    pub fn usage(&self) -> SortUsage {
        self.usage
    }

    /// Whether more is held in memory than `limit` bytes, or than the budget of all operations has
    /// left. `disk`: whether runs may be written.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` when the budget is exhausted and no run may be written, or only one
    /// that is too small.
    pub fn excess(&mut self, limit: usize, disk: bool) -> Result<Excess> {
        excess("$sort", &mut self.reserved, self.bytes, (limit, disk))
    }

    /// Write the items in memory to an empty run.
    ///
    /// # Errors
    /// I/O errors; the operation must end.
    pub fn spill(&mut self, mut run: Box<dyn Spill>, codec: &mut dyn Codec<K, T>) -> Result<()> {
        for entry in self.take_sorted()? {
            codec.write(&entry.item.item, run.as_mut())?;
        }
        self.bytes = 0;
        self.reserved.clear();
        self.usage.runs += 1;
        self.runs.push(run);
        Ok(())
    }

    /// Finish sorting. `create` makes the last run, if others were written.
    ///
    /// # Errors
    /// I/O errors; the operation must end.
    pub fn finish(
        mut self,
        codec: &mut dyn Codec<K, T>,
        create: &mut dyn FnMut() -> Result<Box<dyn Spill>>,
    ) -> Result<Sorted<K, T>> {
        if !self.runs.is_empty() && !self.kept.is_empty() {
            self.spill(create()?, codec)?;
        }
        let output = if self.runs.is_empty() {
            Output::Memory(self.take_sorted()?.into_iter())
        } else {
            Output::Runs(Runs::new(self.runs, &mut |record| codec.read(record))?)
        };
        Ok(Sorted {
            output,
            usage: self.usage,
            _reserved: self.reserved,
        })
    }

    /// Take the items in memory, sorted.
    fn take_sorted(&mut self) -> Result<Vec<Entry<K, T>>> {
        let entries = match &mut self.kept {
            Kept::All(entries) => std::mem::take(entries),
            Kept::Least(entries, _) => std::mem::take(entries).into_vec(),
        };
        meter::sort_by(entries, Entry::cmp)
    }
}

impl<K: Ord, T> Sorted<K, T> {
    /// The next item with its key; `None` at the end.
    ///
    /// # Errors
    /// I/O errors; errors of the codec.
    pub fn next(&mut self, codec: &mut dyn Codec<K, T>) -> Result<Option<(K, T)>> {
        match &mut self.output {
            Output::Memory(entries) => Ok(entries.next().map(|entry| (entry.key, entry.item.item))),
            Output::Runs(runs) => runs.next(&mut |record| codec.read(record)),
        }
    }

    /// Whether it holds no further items in memory and has no runs.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(&self.output, Output::Memory(entries) if entries.as_slice().is_empty())
    }

    /// What the sort needed.
    #[must_use]
    pub fn usage(&self) -> SortUsage {
        self.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Host;
    use crate::execute::harness::Memory;

    struct Bytes;

    impl Codec<u8, u8> for Bytes {
        fn write(&mut self, item: &u8, run: &mut dyn Spill) -> Result<()> {
            run.append(&[*item])
        }

        fn read(&mut self, record: &mut Vec<u8>) -> Result<(u8, u8)> {
            let byte = record.first().copied().unwrap();
            Ok((byte, byte))
        }
    }

    /// Items that take no memory of their own are held as well.
    #[test]
    fn items_of_no_size_follow_a_run() {
        for limit in [None, Some(10)] {
            let mut host = Memory::default();
            let mut sorter = Sorter::new(limit);
            sorter.push(3, 3, 1);
            sorter.spill(host.spill().unwrap(), &mut Bytes).unwrap();
            sorter.push(2, 2, 0);
            sorter.push(4, 4, 0);
            let mut sorted = sorter.finish(&mut Bytes, &mut || host.spill()).unwrap();
            let next = || sorted.next(&mut Bytes).unwrap();
            let found: Vec<(u8, u8)> = std::iter::from_fn(next).collect();
            assert_eq!(found, [(2, 2), (3, 3), (4, 4)]);
            assert_eq!(sorted.usage().runs, 2);
        }
    }
}
