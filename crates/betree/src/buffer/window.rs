//! A copy of some adjacent entries of a buffer, so that a cursor reads them without the buffer's
//! lock.

use crate::types::{Entry, Op, Seq};

/// Bytes of keys and values after which a window takes no further entry: values are up to 64 MiB.
const FULL: usize = 256 << 10;

/// Entries in the order of the scan, one version per key.
#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    items: Vec<Item>,
    exhausted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    start: usize,
    key: usize,
    value: usize,
    seq: Seq,
    op: Op,
}

impl Window {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no entries.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Entry number `index`, below [`Window::len`].
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        let item = self.items.get(index).expect("an index below the length");
        let bytes = self.bytes.get(item.start..).unwrap_or_default();
        let (key, rest) = bytes.split_at(item.key);
        let (value, _) = rest.split_at(item.value);
        Entry {
            key,
            seq: item.seq,
            op: item.op,
            value,
        }
    }

    /// Whether the requested range has no further entries behind these.
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// Remove all entries, reset `exhausted`, and keep the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.exhausted = false;
    }

    pub(super) fn is_full(&self) -> bool {
        FULL <= self.bytes.len()
    }

    pub(super) fn set_exhausted(&mut self) {
        self.exhausted = true;
    }

    pub(super) fn push(&mut self, entry: Entry<'_>) {
        assert!(!self.exhausted, "an exhausted window is complete");
        self.items.push(Item {
            start: self.bytes.len(),
            key: entry.key.len(),
            value: entry.value.len(),
            seq: entry.seq,
            op: entry.op,
        });
        self.bytes.extend_from_slice(entry.key);
        self.bytes.extend_from_slice(entry.value);
    }
}
