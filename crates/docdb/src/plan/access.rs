//! Access paths that the planner chooses among.

use std::sync::Arc;

use bson::Bson;
use query::meter;

use super::index::IndexView;
use super::interval::Intervals;
use super::scan::KeyRanges;

/// Estimated bytes of a scan without its bounds and keys, and of what executes it.
pub(super) const SCAN: usize = 1024;

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

impl IndexScan {
    /// Estimated bytes that it takes.
    fn bytes(&self) -> usize {
        let sets = self.sets.iter().flatten();
        SCAN + sets.map(Intervals::bytes).sum::<usize>() + self.ranges.bytes()
    }
}

impl Access {
    /// Estimated bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Access::Nothing => 0,
            Access::Id(id) => meter::size(id),
            Access::Collection { ranges, .. } => {
                SCAN + ranges.as_ref().map_or(0, |ranges| ranges.bytes())
            }
            Access::Index(scan) => scan.bytes(),
            Access::Or(inputs) | Access::Merge(inputs) => inputs.iter().map(Access::bytes).sum(),
        }
    }

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
