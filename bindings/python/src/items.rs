//! Iterators, from both ends.
//!
//! Entries are read in pages, so that the interpreter's lock is released once for many entries, and
//! so that an iterator over a transaction does not borrow it.
//!
//! - I1. `front` ascends, `back` descends, and what is left to read lies between them.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use engine::TreeId;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stdx::sync::Mutex;

use crate::error::{closed, raise};
use crate::transaction::Open;
use crate::tree::Tree;

/// Entries of the first page; each is twice the one before.
const FIRST: usize = 8;
/// Entries of a page at most.
const MOST: usize = 256;
/// Bytes after which a page ends, whatever it has.
const BYTES: usize = 1 << 20;

type Pair = (Vec<u8>, Vec<u8>);
type PyPair<'py> = (pyo3::Bound<'py, PyBytes>, pyo3::Bound<'py, PyBytes>);

/// What is read from.
pub(crate) enum Source {
    Snapshot(Arc<engine::Snapshot>),
    Transaction(Open),
}

impl Source {
    /// The next entries within `range` from one of its ends, and whether there are more.
    fn page(
        &self,
        tree: TreeId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        reverse: bool,
        most: usize,
    ) -> engine::Result<(VecDeque<Pair>, bool)> {
        match self {
            Source::Snapshot(snapshot) => take(snapshot.range(tree, range)?, reverse, most),
            Source::Transaction(open) => match &*open.lock() {
                Some(transaction) => take(transaction.range(tree, range)?, reverse, most),
                None => Err(closed("transaction")),
            },
        }
    }
}

fn take(
    mut entries: engine::Iter<'_>,
    reverse: bool,
    most: usize,
) -> engine::Result<(VecDeque<Pair>, bool)> {
    let (mut page, mut bytes) = (VecDeque::new(), 0);
    while page.len() < most && bytes < BYTES {
        let next = if reverse {
            entries.next_back()
        } else {
            entries.next()
        };
        let Some((key, value)) = next.transpose()? else {
            return Ok((page, false));
        };
        bytes += key.len() + value.len();
        page.push_back((key, value));
    }
    Ok((page, true))
}

/// Where an iterator stands.
struct Walk {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    front: VecDeque<Pair>,
    back: VecDeque<Pair>,
    most: usize,
    more: bool,
}

impl Walk {
    fn buffered(&mut self, reverse: bool) -> Option<Pair> {
        if reverse {
            self.back.pop_front()
        } else {
            self.front.pop_front()
        }
    }

    fn next(
        &mut self,
        source: &Source,
        tree: TreeId,
        reverse: bool,
    ) -> engine::Result<Option<Pair>> {
        if let Some(pair) = self.buffered(reverse) {
            return Ok(Some(pair));
        }
        if self.more {
            let range = (self.start.clone(), self.end.clone());
            let (page, more) = source.page(tree, range, reverse, self.most)?;
            self.more = more;
            self.most = (self.most * 2).min(MOST);
            let last = page.back().map(|(key, _)| Bound::Excluded(key.clone()));
            match (last, reverse) {
                (Some(last), true) => self.end = last,
                (Some(last), false) => self.start = last,
                (None, _) => {}
            }
            if reverse {
                self.back = page;
            } else {
                self.front = page;
            }
        }
        // I1: with nothing between them, the next entry from here is the last one from there.
        Ok(self.buffered(reverse).or_else(|| {
            let other = if reverse {
                &mut self.front
            } else {
                &mut self.back
            };
            other.pop_back()
        }))
    }
}

/// An iterator of keys and values.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Items {
    source: Source,
    tree: TreeId,
    reverse: bool,
    walk: Mutex<Walk>,
}

impl Items {
    /// The entries of `tree` within `range`.
    pub(crate) fn range(
        py: Python<'_>,
        source: Source,
        tree: &Tree,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        reverse: bool,
    ) -> PyResult<Items> {
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let walk = Walk {
            start: own(range.0),
            end: own(range.1),
            front: VecDeque::new(),
            back: VecDeque::new(),
            most: FIRST,
            more: true,
        };
        let items = Items {
            source,
            tree: tree.handle.id(),
            reverse,
            walk: Mutex::new(walk),
        };
        // What cannot be read is an error now, not at the first entry.
        let range = (Bound::Excluded(vec![]), Bound::Excluded(vec![]));
        py.detach(|| items.source.page(items.tree, range, false, 1))
            .map_err(raise)?;
        Ok(items)
    }

    /// The entries of `tree` whose keys begin with `prefix`.
    pub(crate) fn prefix(
        py: Python<'_>,
        source: Source,
        tree: &Tree,
        prefix: &[u8],
        reverse: bool,
    ) -> PyResult<Items> {
        let kept = prefix.iter().rposition(|&byte| byte != u8::MAX);
        let mut end: Vec<u8> = prefix
            .iter()
            .copied()
            .take(kept.map_or(0, |at| at + 1))
            .collect();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let end = match kept {
            Some(_) => Bound::Excluded(end.as_slice()),
            None => Bound::Unbounded,
        };
        Items::range(py, source, tree, (Bound::Included(prefix), end), reverse)
    }

    fn give<'py>(&self, py: Python<'py>, reverse: bool) -> PyResult<Option<PyPair<'py>>> {
        // The lock is never held while the interpreter's is waited for, so this cannot block long.
        let buffered = self.walk.lock().buffered(reverse);
        let next = match buffered {
            Some(pair) => Some(pair),
            None => py
                .detach(|| self.walk.lock().next(&self.source, self.tree, reverse))
                .map_err(raise)?,
        };
        Ok(next.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}

#[pymethods]
impl Items {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<PyPair<'py>>> {
        self.give(py, self.reverse)
    }

    fn next_back<'py>(&self, py: Python<'py>) -> PyResult<Option<PyPair<'py>>> {
        self.give(py, !self.reverse)
    }
}
