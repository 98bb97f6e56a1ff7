//! Assigns the tests of a conjunction to the fields of an index that they bound.
//!
//! A1: complete. A document that matches has an entry in the index whose components are all in the
//!     sets. On fields that come from one array only one test may count, because different elements
//!     may pass different tests, unless `$elemMatch` says it is one element.

use std::sync::Arc;

use bson::Bson;
use query::filter::Test;
use query::{Result, meter};

use super::bounds::{Bounded, Place, accepts_missing, bounds, is_collated, is_nullish};
use super::effort::Effort;
use super::index::{IndexField, IndexView};
use super::interval::{Interval, Intervals};
use super::predicate::{Conjunction, Scope};

/// An index with the sets of its fields.
#[derive(Clone)]
pub(crate) struct Assigned {
    /// The index.
    pub(crate) index: Arc<IndexView>,
    /// The set of values of each field.
    pub(crate) sets: Vec<Intervals>,
    /// Whether the sets express the whole conjunction, so that no filter is needed.
    pub(crate) exact: bool,
    /// Whether any test bounds the first field, or the index itself excludes documents that do not
    /// match.
    pub(crate) useful: bool,
}

/// The set of values to which one test limits a field.
struct Offer {
    predicate: usize,
    bounded: Bounded,
    breadth: usize,
    scope: Option<Scope>,
}

/// A field that already has bounds.
struct Taken {
    field: usize,
    scope: Option<Scope>,
}

/// The sets to which `all` limits the fields of `index`; `None` if the index may lack a matching
/// document. With `forced`, which a hint sets, a sparse index is used although it may lack some.
///
/// # Errors
/// The operation must end.
pub(crate) fn assign(
    index: &Arc<IndexView>,
    all: &Conjunction<'_>,
    (same_collation, forced): (bool, bool),
    effort: &mut Effort,
) -> Result<Option<Assigned>> {
    if !index.includes(all, same_collation, effort)? {
        return Ok(None);
    }
    // Each test is looked at for each field.
    meter::steps(all.predicates.len().saturating_mul(index.fields.len()))?;
    let present = all.predicates.iter().any(|predicate| {
        let indexed = index
            .fields
            .iter()
            .any(|field| predicate.path.is(field.path.as_str()));
        indexed && !accepts_missing(predicate.test)
    });
    if index.sparse && !present && !forced {
        return Ok(None);
    }
    let mut used = vec![false; all.predicates.len()];
    let mut taken: Vec<Taken> = Vec::new();
    let mut sets = Vec::with_capacity(index.fields.len());
    for (position, field) in index.fields.iter().enumerate() {
        let place = Place {
            collator: index.collator.as_deref(),
            same_collation,
            multikey: field.arrays != 0,
        };
        let offers = offers(field, all, place, effort)?;
        let offers = allowed(index, position, offers, &taken)?;
        let Some((set, scope)) = choose((field, place), offers, &mut used, effort)? else {
            sets.push(Intervals::all());
            continue;
        };
        if !set.is_all() {
            taken.push(Taken {
                field: position,
                scope,
            });
        }
        sets.push(set);
    }
    let everything = used.iter().all(|&used| used) && !all.others && all.ors.is_empty();
    let first = sets.first().is_some_and(|set| !set.is_all());
    Ok(Some(Assigned {
        index: Arc::clone(index),
        exact: everything,
        useful: first || (index.sparse && present) || index.partial.is_some(),
        sets,
    }))
}

/// The bounds from each test of the field's path.
fn offers(
    field: &IndexField,
    all: &Conjunction<'_>,
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<Vec<Offer>> {
    let mut offers = Vec::new();
    if has_position(field.path.as_str()) {
        return Ok(offers);
    }
    for (at, predicate) in all.predicates.iter().enumerate() {
        if !predicate.path.is(field.path.as_str()) {
            continue;
        }
        let bounded = if field.hashed {
            hashed(predicate.test, place, effort)?
        } else {
            bounds(predicate.test, place, effort)?
        };
        if let Some(bounded) = bounded {
            meter::steps(bounded.set.list().len())?;
            offers.push(Offer {
                predicate: at,
                breadth: breadth(&bounded.set),
                bounded,
                scope: predicate.scope,
            });
        }
    }
    Ok(offers)
}

/// Whether a component of the path is a number, which can be a field name or an array position.
fn has_position(path: &str) -> bool {
    path.split('.')
        .any(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Bounds on a hashed field. Equal hashes prove only that values are equal byte for byte, so
/// strings that a collation may treat as equal have no bounds. A missing field has the hash of
/// null.
fn hashed(test: &Test, place: Place<'_>, effort: &mut Effort) -> Result<Option<Bounded>> {
    let values = match test {
        Test::Eq(value) => std::slice::from_ref(value),
        Test::In(list) if list.regexes.is_empty() => list.values.as_slice(),
        _ => return Ok(None),
    };
    let mut points = Vec::with_capacity(values.len());
    for value in values {
        let collates = place.collator.is_some() || !place.same_collation;
        effort.hold(2 * meter::size(value))?;
        if matches!(value, Bson::Array(_)) || (collates && is_collated(value)) {
            return Ok(None);
        }
        points.push(Interval::point(value.clone()));
    }
    Ok(Some(Bounded {
        set: Intervals::from_list(points, place.collator, effort)?,
        exact: false,
    }))
}

/// The offers that can be combined with those already taken (A1).
fn allowed(
    index: &IndexView,
    position: usize,
    mut offers: Vec<Offer>,
    taken: &[Taken],
) -> Result<Vec<Offer>> {
    let Some(field) = index.fields.get(position) else {
        return Ok(Vec::new());
    };
    meter::steps(offers.len().saturating_mul(taken.len()))?;
    offers.retain(|offer| {
        taken.iter().all(|other| {
            let Some(before) = index.fields.get(other.field) else {
                return true;
            };
            let shared = shared_arrays(before, field);
            shared == 0 || within_scope(shared, offer.scope, other.scope)
        })
    });
    Ok(offers)
}

/// The arrays that the paths of both fields pass through, as bits of path components.
fn shared_arrays(a: &IndexField, b: &IndexField) -> u64 {
    let common = a
        .path
        .as_str()
        .split('.')
        .zip(b.path.as_str().split('.'))
        .take_while(|(a, b)| a == b)
        .count();
    (a.arrays | b.arrays) & below(common)
}

/// Whether both tests are in one `$elemMatch` that fixes an element of every array in `arrays`.
fn within_scope(arrays: u64, a: Option<Scope>, b: Option<Scope>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b && pins(arrays, a),
        _ => false,
    }
}

/// Whether the scope's `$elemMatch` fixes an element of every array in `arrays`.
fn pins(arrays: u64, scope: Scope) -> bool {
    arrays & !below(scope.depth) == 0
}

fn below(count: usize) -> u64 {
    match u32::try_from(count) {
        Ok(count) if count < 64 => (1u64 << count) - 1,
        _ => u64::MAX,
    }
}

/// The set for a field: the intersection of all offers, or, starting with the narrowest, of those
/// that must hold for the same element.
fn choose(
    (field, place): (&IndexField, Place<'_>),
    mut offers: Vec<Offer>,
    used: &mut [bool],
    effort: &mut Effort,
) -> Result<Option<(Intervals, Option<Scope>)>> {
    offers.sort_by_key(|offer| offer.breadth);
    let Some(scope) = offers.first().map(|first| first.scope) else {
        return Ok(None);
    };
    let mut sets = Vec::with_capacity(offers.len());
    for (at, offer) in offers.into_iter().enumerate() {
        if at == 0 || field.arrays == 0 || within_scope(field.arrays, offer.scope, scope) {
            mark(&offer, used);
            sets.push(offer.bounded.set);
        }
    }
    let set = Intervals::common(sets, place.collator, effort)?;
    Ok(Some((set, scope)))
}

fn mark(offer: &Offer, used: &mut [bool]) {
    if offer.bounded.exact
        && offer.scope.is_none()
        && let Some(used) = used.get_mut(offer.predicate)
    {
        *used = true;
    }
}

/// A rough measure of how many values a set contains.
pub(crate) fn breadth(set: &Intervals) -> usize {
    if set.is_none() {
        0
    } else if set.only_point().is_some_and(|value| !is_nullish(value)) {
        1
    } else if set.is_points() {
        1 + set.list().len().min(1000)
    } else if set.is_all() {
        usize::MAX
    } else {
        // The outer edges of a complement or a half range are the ends of all values.
        let open = set.list().iter().any(|interval| {
            matches!(interval.low, Bson::MinKey) || matches!(interval.high, Bson::MaxKey)
        });
        if open { 3000 } else { 2000 }
    }
}
