//! The input of a merge: one version of each key, in the direction of the cursor.

use std::ops::Bound;

use super::stop::Step;
use crate::types::Entry;

/// A sorted sequence with at most one entry for each key: the newest version the snapshot sees,
/// which may be a tombstone. Ascending or descending, as it was made.
///
/// A source may continue beyond the limit of its bucket; the merge stops there.
pub(super) trait Source {
    /// Move to the first entry within `from`: a lower bound forward, an upper bound backward.
    fn seek(&mut self, from: Bound<&[u8]>) -> Step;

    /// The current entry; `None` at the end and before the first seek.
    fn entry(&self) -> Option<Entry<'_>>;

    /// Move to the next entry. There is a current entry, whose key is returned with
    /// [`super::stop::Stop::Gone`].
    fn advance(&mut self) -> Step;
}
