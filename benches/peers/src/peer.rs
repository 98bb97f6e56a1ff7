//! What a step needs of an engine: one ordered map, three calls.

use std::path::Path;

use crate::Outcome;

/// How much data and memory a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Rows that are loaded.
    pub(crate) rows: u64,
    /// Memory that the engine may use for cache and buffers, in bytes.
    pub(crate) cache: usize,
    /// Memory of the process with its page cache, in bytes.
    pub(crate) limit: u64,
}

/// A change of one key.
pub(crate) enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// How durable a commit is when it returns.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Synced {
    /// The operating system has it: the end of the process takes nothing.
    No,
    /// The device has it.
    Yes,
}

/// An open store with one ordered map.
pub(crate) trait Peer {
    /// Apply the changes as one commit.
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()>;

    /// Read keys as of one moment; the number of those that exist. Every value is looked at.
    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize>;

    /// Read entries from a key on, at most `most`; their number. Every value is looked at.
    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize>;

    /// Close the store.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// Makes a store.
pub(crate) type Open = fn(&Path, Setup) -> Outcome<Box<dyn Peer>>;

/// Look at a value, so that it must be in memory: its last byte.
pub(crate) fn look(value: &[u8]) -> usize {
    std::hint::black_box(value.last());
    1
}
