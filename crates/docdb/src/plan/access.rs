//! Access paths that the planner chooses among.

use std::sync::Arc;

use bson::Bson;

use super::index::IndexView;
use super::interval::Intervals;
use super::scan::KeyRanges;

/// A scan of an index.
#[derive(Clone)]
pub(crate) struct IndexScan {
    /// The index.
    pub(crate) index: Arc<IndexView>,
    /// The sets of its fields; several when branches of a disjunction became one scan.
    pub(crate) sets: Vec<Vec<Intervals>>,
    /// The keys to read.
    pub(crate) ranges: Arc<KeyRanges>,
    /// Whether to scan from the end.
    pub(crate) backward: bool,
}

/// The access path.
#[derive(Clone)]
pub(crate) enum Access {
    /// No access: the filter matches nothing.
    Nothing,
    /// All records, or those of a clustered collection in ranges of `_id`.
    Collection {
        /// Whether to scan from the end.
        backward: bool,
        /// The keys to read.
        ranges: Option<Arc<KeyRanges>>,
    },
    /// The document with this `_id`.
    Id(Bson),
    /// An index.
    Index(IndexScan),
    /// Access paths read one after another, each document once.
    Or(Vec<Access>),
    /// Access paths merged in the requested sort order, each document once.
    Merge(Vec<Access>),
}

/// A plan, without the steps after reading: skip, limit, projection.
#[derive(Clone)]
pub(crate) struct Candidate {
    /// The access path.
    pub(crate) access: Access,
    /// Whether all documents read match, so that the filter need not be evaluated.
    pub(crate) exact: bool,
    /// Whether documents are read in the requested sort order.
    pub(crate) sorted: bool,
    /// Whether the index keys hold all fields needed.
    pub(crate) covered: bool,
}

impl Candidate {
    /// The plan for a filter that matches nothing.
    pub(crate) fn nothing() -> Candidate {
        Candidate {
            access: Access::Nothing,
            exact: true,
            sorted: true,
            covered: false,
        }
    }
}

impl Access {
    /// The scans of indexes in it.
    pub(crate) fn scans(&self) -> Box<dyn Iterator<Item = &IndexScan> + '_> {
        match self {
            Access::Index(scan) => Box::new(std::iter::once(scan)),
            Access::Or(inputs) | Access::Merge(inputs) => {
                Box::new(inputs.iter().flat_map(|input| input.scans()))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}
