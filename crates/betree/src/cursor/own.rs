//! The writes of a transaction as its readers see them: on top of all committed data.

use std::sync::Arc;

use crate::buffer::WriteSet;
use crate::run::Run;

/// The writes of a transaction to one tree.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    /// The writes in memory, which are newer than those in runs.
    pub(crate) writes: &'a WriteSet,
    /// The spilled writes, newest first. Every entry is visible, whatever its sequence number.
    pub(crate) runs: &'a [Arc<Run>],
}

impl<'a> From<&'a WriteSet> for Own<'a> {
    fn from(writes: &'a WriteSet) -> Own<'a> {
        Own { writes, runs: &[] }
    }
}
