//! The ways to read documents that the planner chooses among.

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
    /// From the end.
    pub(crate) backward: bool,
}

/// Where documents come from.
#[derive(Clone)]
pub(crate) enum Access {
    /// Nowhere: the filter matches nothing.
    Nothing,
    /// All records, or those of a clustered collection in ranges of `_id`.
    Collection {
        /// From the end.
        backward: bool,
        /// The keys to read.
        ranges: Option<Arc<KeyRanges>>,
    },
    /// The document with this `_id`.
    Id(Bson),
    /// An index.
    Index(IndexScan),
    /// One after the other, each document once.
    Or(Vec<Access>),
    /// Merged by the order asked for, each document once.
    Merge(Vec<Access>),
}

/// A plan, but for what follows reading: skip, limit, projection.
#[derive(Clone)]
pub(crate) struct Candidate {
    /// Where documents come from.
    pub(crate) access: Access,
    /// Whether what comes matches, so that the filter need not be asked.
    pub(crate) exact: bool,
    /// Whether it comes in the order asked for.
    pub(crate) sorted: bool,
    /// Whether keys hold all that is needed.
    pub(crate) covered: bool,
}

impl Candidate {
    /// The plan for what matches nothing.
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
