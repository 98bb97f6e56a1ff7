//! How a wildcard index, whose keys are a path and a value, serves a test: as if it were an index
//! on the test's path.

use std::sync::Arc;

use bson::Bson;
use query::filter::Test;
use query::{Result, meter};

use super::assign::Assigned;
use super::bounds::{Place, accepts_missing, bounds};
use super::effort::Effort;
use super::index::IndexView;
use super::interval::Intervals;
use super::predicate::Conjunction;

/// The assignment of the index to the test at `at` in the conjunction; `None` if the index cannot
/// serve it. The index must include all documents that match.
///
/// # Errors
/// The operation must end.
pub(crate) fn assignment(
    index: &Arc<IndexView>,
    (all, at): (&Conjunction<'_>, usize),
    same_collation: bool,
    effort: &mut Effort,
) -> Result<Option<Assigned>> {
    let Some(predicate) = all.predicates.get(at) else {
        return Ok(None);
    };
    let place = Place {
        collator: index.collator.as_deref(),
        same_collation,
        multikey: true,
    };
    let path = predicate.path.dotted();
    meter::read(path.len())?;
    if !index.holds(&path) || accepts_missing(predicate.test) || !serves(predicate.test) {
        return Ok(None);
    }
    let Some(bounded) = bounds(predicate.test, place, effort)? else {
        return Ok(None);
    };
    if bounded.set.is_all() {
        return Ok(None);
    }
    let only = all.predicates.len() == 1 && all.ors.is_empty() && !all.others;
    Ok(Some(Assigned {
        index: Arc::clone(index),
        sets: vec![Intervals::point(Bson::String(path)), bounded.set],
        exact: bounded.exact && only && predicate.scope.is_none(),
        useful: true,
    }))
}

/// Whether the index can serve the test: only tests of single values, because a wildcard index does
/// not store whole documents and arrays.
fn serves(test: &Test) -> bool {
    let whole = |value: &Bson| matches!(value, Bson::Document(_) | Bson::Array(_));
    match test {
        Test::Eq(value)
        | Test::Gt(value)
        | Test::Gte(value)
        | Test::Lt(value)
        | Test::Lte(value) => !whole(value),
        Test::In(list) => !list.values.iter().any(whole),
        Test::Regex(_) | Test::Mod { .. } => true,
        Test::ElemMatchValue(tests) => tests.iter().any(serves),
        _ => false,
    }
}
