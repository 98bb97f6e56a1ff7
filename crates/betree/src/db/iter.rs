//! Iterators over the entries of a range, from both ends.
//!
//! - I1. Of the entries of its range an iterator gives each once, from whichever end it is asked:
//!   the cursor at each end stands on the entry that was given last there, and the two never meet.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;

use super::key_range::{AsKeyRange, beyond};
use super::reader::{Cursor, Reader};
use crate::cursor::Own;
use crate::error::Result;
use crate::types::TreeId;
use kv_types::Direction;

/// Which entries of which tree are walked through.
pub(super) struct Span {
    tree: TreeId,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl Span {
    /// The entries of `tree` within `range`.
    pub(super) fn of(tree: TreeId, range: &impl AsKeyRange) -> Span {
        let (start, end) = range.bounds();
        Span {
            tree,
            start: start.map(<[u8]>::to_vec),
            end: end.map(<[u8]>::to_vec),
        }
    }

    /// The entries of `tree` whose keys begin with `prefix`.
    pub(super) fn with_prefix(tree: TreeId, prefix: &[u8]) -> Span {
        Span {
            tree,
            start: Bound::Included(prefix.to_vec()),
            end: beyond(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        }
    }
}

/// The entries of a range in the order of their keys, as of one snapshot; reversed by
/// [`Iterator::rev`], and from both ends in turn by [`DoubleEndedIterator::next_back`].
///
/// Each entry is `Ok((key, value))`, both copied: a [`Cursor`] lends them instead. After an error
/// there are no further entries. Made by [`crate::Tree::range`], [`crate::Snapshot::range`],
/// [`crate::Transaction::range`] and the methods beside them. It keeps its snapshot by itself.
///
/// ```
/// use betree::{Db, Durability, Options};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path(), Options::default())?;
/// let fruit = db.tree("fruit")?;
/// for name in ["apple", "cherry", "plum"] {
///     fruit.put(name, "", Durability::Interval)?;
/// }
/// let mut entries = fruit.iter()?;
/// let (first, last) = (entries.next(), entries.next_back());
/// assert_eq!(first.transpose()?, Some((b"apple".to_vec(), vec![])));
/// assert_eq!(last.transpose()?, Some((b"plum".to_vec(), vec![])));
/// assert_eq!(entries.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an iterator reads nothing before it is asked"]
pub struct Iter<'a> {
    reader: Arc<Reader>,
    own: Option<Own<'a>>,
    span: Span,
    front: Option<Cursor<'a>>,
    back: Option<Cursor<'a>>,
    over: bool,
}

impl<'a> Iter<'a> {
    /// What `reader` sees of `span`, with `own` writes on top. Reads nothing yet.
    pub(super) fn new(reader: &Arc<Reader>, own: Option<Own<'a>>, span: Span) -> Result<Iter<'a>> {
        reader.check()?;
        reader.core.catalog.tree_at(span.tree, reader.seq())?;
        Ok(Iter {
            reader: Arc::clone(reader),
            own,
            span,
            front: None,
            back: None,
            over: false,
        })
    }

    fn step(&mut self, direction: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (this, other) = match direction {
            Direction::Forward => (&mut self.front, &self.back),
            Direction::Backward => (&mut self.back, &self.front),
        };
        let cursor = match this {
            Some(cursor) => cursor,
            None => {
                let Span { tree, start, end } = &self.span;
                let (start, end) = (start.as_ref(), end.as_ref());
                let (start, end) = (start.map(Vec::as_slice), end.map(Vec::as_slice));
                let cursor = self.reader.cursor(*tree, self.own, start, end, direction)?;
                this.insert(cursor)
            }
        };
        if !cursor.advance()? {
            return Ok(None);
        }
        let met = other.as_ref().is_some_and(|other| match direction {
            Direction::Forward => other.key() <= cursor.key(),
            Direction::Backward => cursor.key() <= other.key(),
        });
        Ok((!met).then(|| (cursor.key().to_vec(), cursor.value().to_vec())))
    }

    fn give(&mut self, direction: Direction) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        if self.over {
            return None;
        }
        let given = self.step(direction).transpose();
        if !matches!(given, Some(Ok(_))) {
            self.over = true;
            self.front = None;
            self.back = None;
        }
        given
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.give(Direction::Forward)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.give(Direction::Backward)
    }
}

impl FusedIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("tree", &self.span.tree)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
