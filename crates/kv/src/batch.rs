//! Write batches: changes collected without an engine and applied together.

use std::ops::Bound;

use crate::range::KeyRange;
use crate::tree::TreeId;

/// One change of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Set `key` to `value` in `tree`, whether or not `key` exists.
    Put {
        /// The tree.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Remove `key` from `tree`; has no effect if it does not exist.
    Delete {
        /// The tree.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
    },
    /// Remove every key of `range` from `tree`.
    DeleteRange {
        /// The tree.
        tree: TreeId,
        /// The keys to remove.
        range: KeyRange<'a>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Put,
    Delete,
    DeleteRange { start: BoundKind, end: BoundKind },
}

#[derive(Clone, Copy, Debug)]
enum BoundKind {
    Unbounded,
    Included,
    Excluded,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: Kind,
    tree: TreeId,
    /// Lengths of the two byte strings, which follow each other in `bytes`.
    first: usize,
    second: usize,
}

/// Changes to any number of trees, applied in order and atomically by [`crate::Engine::write`],
/// without reading. A batch can be cleared and reused; it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Set `key` to `value`.
    #[inline]
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        self.push(Kind::Put, tree, key, value);
    }

    /// Remove `key`.
    #[inline]
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) {
        self.push(Kind::Delete, tree, key, b"");
    }

    /// Remove every key of `range`.
    pub fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) {
        let (start, first) = split(range.start);
        let (end, second) = split(range.end);
        self.push(Kind::DeleteRange { start, end }, tree, first, second);
    }

    #[inline]
    fn push(&mut self, kind: Kind, tree: TreeId, first: &[u8], second: &[u8]) {
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(second);
        self.entries.push(Entry {
            kind,
            tree,
            first: first.len(),
            second: second.len(),
        });
    }

    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The sum of the lengths of all keys and values, in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Remove all changes; keep the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// The changes in the order they were made.
    pub fn ops(&self) -> impl Iterator<Item = Op<'_>> {
        let mut rest = self.bytes.as_slice();
        self.entries.iter().map(move |entry| {
            let (first, after) = rest.split_at(entry.first);
            let (second, after) = after.split_at(entry.second);
            rest = after;
            let tree = entry.tree;
            match entry.kind {
                Kind::Put => Op::Put {
                    tree,
                    key: first,
                    value: second,
                },
                Kind::Delete => Op::Delete { tree, key: first },
                Kind::DeleteRange { start, end } => Op::DeleteRange {
                    tree,
                    range: KeyRange {
                        start: join(start, first),
                        end: join(end, second),
                    },
                },
            }
        })
    }
}

fn split(bound: Bound<&[u8]>) -> (BoundKind, &[u8]) {
    match bound {
        Bound::Unbounded => (BoundKind::Unbounded, b""),
        Bound::Included(key) => (BoundKind::Included, key),
        Bound::Excluded(key) => (BoundKind::Excluded, key),
    }
}

fn join(kind: BoundKind, key: &[u8]) -> Bound<&[u8]> {
    match kind {
        BoundKind::Unbounded => Bound::Unbounded,
        BoundKind::Included => Bound::Included(key),
        BoundKind::Excluded => Bound::Excluded(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_what_it_was_given_in_order() {
        let tree = TreeId(3);
        let mut batch = Batch::new();
        batch.put(tree, b"k", b"value");
        batch.delete(TreeId(4), b"");
        let range = KeyRange {
            start: Bound::Excluded(b"a"),
            end: Bound::Unbounded,
        };
        batch.delete_range(tree, range);
        let ops: Vec<Op<'_>> = batch.ops().collect();
        assert_eq!(
            ops,
            [
                Op::Put {
                    tree,
                    key: b"k",
                    value: b"value"
                },
                Op::Delete {
                    tree: TreeId(4),
                    key: b""
                },
                Op::DeleteRange { tree, range },
            ]
        );
        assert_eq!((batch.len(), batch.byte_len()), (3, 7));
        batch.clear();
        assert!(batch.is_empty() && batch.ops().next().is_none());
    }
}
