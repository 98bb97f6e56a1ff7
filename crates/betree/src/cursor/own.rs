//! A transaction's own writes as its readers see them: on top of everything committed.

use std::sync::Arc;

use crate::buffer::WriteSet;
use crate::run::Run;

/// The writes of a transaction to one tree.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Those in memory, newer than those in runs.
    pub(crate) writes: &'a WriteSet,
    /// Those that were spilled, newest first. Every entry counts, whatever its seq.
    pub(crate) runs: &'a [Arc<Run>],
}

impl<'a> From<&'a WriteSet> for Own<'a> {
    fn from(writes: &'a WriteSet) -> Own<'a> {
        Own { writes, runs: &[] }
    }
}
