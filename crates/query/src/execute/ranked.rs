//! An item in sort order: by its key, and among equal keys by its place.

use std::cmp::Ordering;

/// An item, compared by its key and its place alone.
pub(super) struct Ranked<K, P, T> {
    pub(super) key: K,
    /// Where the item comes from: its position in the input, or its run.
    pub(super) place: P,
    pub(super) item: T,
}

impl<K: Ord, P: Ord, T> Ord for Ranked<K, P, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.key, &self.place).cmp(&(&other.key, &other.place))
    }
}

impl<K: Ord, P: Ord, T> PartialOrd for Ranked<K, P, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, P: Ord, T> PartialEq for Ranked<K, P, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord, P: Ord, T> Eq for Ranked<K, P, T> {}
