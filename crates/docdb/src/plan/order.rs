//! Whether an index provides the sort order of a query.
//!
//! O1: an index that may hold truncated keys does not: after the truncation its entries are in the
//!     order of hashes.

use query::sort::{Direction, Sort};
use query::{Result, meter};

use super::effort::Effort;
use super::index::{IndexField, IndexView};
use super::interval::Intervals;

/// Maximum number of scans merged to provide a sort order.
const MERGE_MAX: usize = 200;

/// How scans provide a sort order.
#[derive(Debug, PartialEq)]
pub(crate) enum Order {
    /// One scan, in index order.
    Scan {
        /// Whether to read it from its end.
        backward: bool,
    },
    /// Scans of single values of the leading fields, merged.
    Merge {
        /// Whether to read them from their ends.
        backward: bool,
        /// The sets of each scan.
        parts: Vec<Vec<Intervals>>,
    },
}

/// How the keys of `index` in `sets` provide the order of `sort`; `None` if they cannot.
///
/// # Errors
/// The operation must end.
pub(crate) fn order(
    index: &IndexView,
    sets: &[Intervals],
    (sort, same_collation): (&Sort, bool),
    effort: &mut Effort,
) -> Result<Option<Order>> {
    if !same_collation || index.cut {
        return Ok(None);
    }
    meter::steps(sets.iter().map(|set| set.list().len()).sum())?;
    if let Some(backward) = direct(index, sets, sort, &|set| set.only_point().is_some()) {
        return Ok(Some(Order::Scan { backward }));
    }
    let Some(backward) = direct(index, sets, sort, &Intervals::is_points) else {
        return Ok(None);
    };
    let parts = parts(sets, effort)?;
    Ok(parts.map(|parts| Order::Merge { backward, parts }))
}

/// The direction in which to scan so that the fields follow `sort`; fields that `constant` accepts
/// are skipped.
fn direct(
    index: &IndexView,
    sets: &[Intervals],
    sort: &Sort,
    constant: &dyn Fn(&Intervals) -> bool,
) -> Option<bool> {
    let mut fields = index.fields.iter().zip(sets).peekable();
    let mut backward = None;
    for (path, direction) in sort.fields() {
        let wanted = path.as_str();
        loop {
            let (field, set) = fields.next()?;
            if field.path.as_str() == wanted {
                if !sortable(field, set, sort) {
                    return None;
                }
                let reversed = field.descending != (*direction == Direction::Descending);
                if *backward.get_or_insert(reversed) != reversed {
                    return None;
                }
                break;
            }
            if backward.is_some() || !constant(set) {
                // A field between sorted fields can be skipped only if it has a single value.
                set.only_point()?;
            }
        }
    }
    Some(backward.unwrap_or(false))
}

/// Whether a field can provide the order of `sort`. A document with an array sorts by one of its
/// elements, which a scan reads first only if it reads all of them.
fn sortable(field: &IndexField, set: &Intervals, sort: &Sort) -> bool {
    !field.hashed && (field.arrays == 0 || (set.is_all() && sort.fields().len() == 1))
}

/// All combinations of the points of the leading sets; `None` if there are too many, or if they
/// would take too much memory.
fn parts(sets: &[Intervals], effort: &mut Effort) -> Result<Option<Vec<Vec<Intervals>>>> {
    let mut parts: Vec<Vec<Intervals>> = vec![Vec::new()];
    let mut leading = true;
    let mut bytes = 0;
    for set in sets {
        leading &= set.is_points();
        let count = if leading { set.list().len() } else { 1 };
        if MERGE_MAX < parts.len().saturating_mul(count) {
            return Ok(None);
        }
        let choices: Vec<Intervals> = if leading {
            set.list()
                .iter()
                .map(|interval| Intervals::point(interval.low.clone()))
                .collect()
        } else {
            vec![set.clone()]
        };
        let before = effort.bytes();
        let mut longer = Vec::with_capacity(parts.len() * choices.len());
        for part in &parts {
            for choice in &choices {
                effort.hold(part.iter().chain([choice]).map(Intervals::bytes).sum())?;
                if effort.is_full() {
                    return Ok(None);
                }
                longer.push(part.iter().chain([choice]).cloned().collect());
            }
        }
        let held = effort.bytes() - before;
        effort.release(bytes)?;
        (parts, bytes) = (longer, held);
    }
    Ok(Some(parts))
}
