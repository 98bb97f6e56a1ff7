//! How a wildcard index, whose keys are a path and a value, serves a test: as if it were an index
//! on the test's path.

use std::sync::Arc;

use bson::Bson;
use query::filter::Test;

use super::assign::Assigned;
use super::bounds::{Place, accepts_missing, bounds};
use super::index::IndexView;
use super::interval::Intervals;
use super::predicate::Conjunction;

/// One assignment for each test that the index can serve.
pub(crate) fn assignments(
    index: &Arc<IndexView>,
    all: &Conjunction<'_>,
    same_collation: bool,
) -> Vec<Assigned> {
    if !index.includes(all, same_collation) {
        return Vec::new();
    }
    let place = Place {
        collator: index.collator.as_deref(),
        same_collation,
        multikey: true,
    };
    let mut found = Vec::new();
    for predicate in &all.predicates {
        let path = predicate.path.dotted();
        if !index.holds(&path) || accepts_missing(predicate.test) || !serves(predicate.test) {
            continue;
        }
        let Some(bounded) = bounds(predicate.test, place) else {
            continue;
        };
        if bounded.set.is_all() {
            continue;
        }
        let only = all.predicates.len() == 1 && all.ors.is_empty() && !all.others;
        found.push(Assigned {
            index: Arc::clone(index),
            sets: vec![Intervals::point(Bson::String(path)), bounded.set],
            exact: bounded.exact && only && predicate.scope.is_none(),
            useful: true,
        });
    }
    found
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
