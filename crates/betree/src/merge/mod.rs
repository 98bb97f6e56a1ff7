//! Merging sorted sequences of entries, and dropping versions that no reader needs.

mod merger;
mod retention;
#[cfg(test)]
mod tests;

pub(crate) use merger::Merger;
pub(crate) use retention::Retention;

use crate::error::Result;
use crate::types::Entry;

/// A sorted sequence of all versions: ascending keys, of each key the newest version first.
pub(crate) trait Source {
    /// The current entry; `None` at the end.
    fn current(&self) -> Option<Entry<'_>>;
    /// Move to the next entry. At the end it stays there.
    fn advance(&mut self) -> Result<()>;
}
