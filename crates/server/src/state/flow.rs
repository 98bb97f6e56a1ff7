//! Counts of flow control. Plain statistics: nothing is decided by them.

use crate::counter::Counter;

/// Delays of writes while a majority lacks much.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Writes that were delayed or waited.
    pub(crate) delayed: Counter,
    /// How long, in microseconds.
    pub(crate) micros: Counter,
    /// Writes that were refused.
    pub(crate) refused: Counter,
}
