//! The values a document is sorted by, as the keys of an index over the same fields would be.
//!
//! A missing field is null, an empty array undefined (below null). An array gives one tuple per
//! element; fields below one array take their values from the same element. Two arrays side by side
//! have no such tuples and are refused. A number in a path names an element of an array, which is
//! taken whole where it is an array and the path ends. Other arrays in arrays are values and are
//! not entered.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::path::{Component, Path, find};
use crate::{Error, Result};

/// The tuples of `document`, at least one; `visit` gets each.
pub(super) fn tuples<'a>(
    document: &'a RawDocument,
    paths: &mut dyn Iterator<Item = &Path>,
    visit: &mut dyn FnMut(&[RawBsonRef<'a>]),
) -> Result<()> {
    let mut places = Vec::new();
    for path in paths {
        places.push(descend(document, path.components())?);
    }
    expand(&places, visit)
}

/// The position of a path during the walk.
#[derive(Clone, Copy)]
enum Place<'a, 'p> {
    Value(RawBsonRef<'a>),
    /// With the path behind it, and whether a number has named it as an element of an array.
    Array(&'a RawArray, &'p [Component], bool),
}

/// Follows `path` until a value or an array. Bounded by the length of the path.
fn descend<'a, 'p>(document: &'a RawDocument, path: &'p [Component]) -> Result<Place<'a, 'p>> {
    let mut document = document;
    let mut path = path;
    while let Some((component, rest)) = path.split_first() {
        match find(document, component.name())? {
            None => break,
            Some(RawBsonRef::Array(array)) => return Ok(Place::Array(array, rest, false)),
            Some(value) if rest.is_empty() => return Ok(Place::Value(value)),
            Some(RawBsonRef::Document(inner)) => {
                document = inner;
                path = rest;
            }
            Some(_) => break,
        }
    }
    Ok(Place::Value(RawBsonRef::Null))
}

/// The element of an array that the path names by number, if there is one.
fn named<'a, 'p>(array: &'a RawArray, path: &'p [Component]) -> Result<Option<Place<'a, 'p>>> {
    let Some((component, rest)) = path.split_first() else {
        return Ok(None);
    };
    let Some(index) = component.index() else {
        return Ok(None);
    };
    let Some(value) = array.get(index)? else {
        return Ok(None);
    };
    unambiguous(array, component.name())?;
    Ok(Some(match value {
        RawBsonRef::Array(inner) => Place::Array(inner, rest, true),
        value if rest.is_empty() => Place::Value(value),
        RawBsonRef::Document(inner) => descend(inner, rest)?,
        _ => Place::Value(RawBsonRef::Null),
    }))
}

/// Refuses a number that names an element of an array and a field of a document in it.
fn unambiguous(array: &RawArray, name: &str) -> Result<()> {
    for element in array {
        if let RawBsonRef::Document(document) = element?
            && find(document, name)?.is_some()
        {
            let message = format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded \
                 elements in an array), field: '{name}'"
            );
            return Err(Error::location(16746, message));
        }
    }
    Ok(())
}

/// Bounded by the lengths of the paths: every level uses up an array of each path that is at it.
fn expand<'a>(places: &[Place<'a, '_>], visit: &mut dyn FnMut(&[RawBsonRef<'a>])) -> Result<()> {
    let Some(array) = common_array(places)? else {
        let values: Vec<RawBsonRef<'a>> = places
            .iter()
            .map(|place| match place {
                Place::Value(value) => *value,
                Place::Array(..) => RawBsonRef::Null,
            })
            .collect();
        visit(&values);
        return Ok(());
    };
    if array.is_empty() {
        return expand(&step(places, &[], None)?, visit);
    }
    let mut by_number = Vec::with_capacity(places.len());
    for place in places {
        by_number.push(match place {
            Place::Array(array, path, _) => named(array, path)?,
            Place::Value(_) => None,
        });
    }
    for element in array {
        expand(&step(places, &by_number, Some(element?))?, visit)?;
        // All elements give the same where no path takes a value from each.
        let same = places.iter().zip(&by_number).all(|(place, named)| {
            named.is_some() || matches!(place, Place::Value(_) | Place::Array(_, [], true))
        });
        if same {
            break;
        }
    }
    Ok(())
}

/// The array that places are at: all at the same one.
fn common_array<'a>(places: &[Place<'a, '_>]) -> Result<Option<&'a RawArray>> {
    let mut common: Option<&RawArray> = None;
    for place in places {
        let Place::Array(array, ..) = place else {
            continue;
        };
        if common.is_some_and(|common| !std::ptr::eq(common, *array)) {
            return Err(Error::bad_value(
                "cannot sort with keys that are parallel arrays",
            ));
        }
        common = Some(array);
    }
    Ok(common)
}

/// The places after entering the array at `element`; none when it is empty. `by_number` has the
/// places of elements that paths name.
fn step<'a, 'p>(
    places: &[Place<'a, 'p>],
    by_number: &[Option<Place<'a, 'p>>],
    element: Option<RawBsonRef<'a>>,
) -> Result<Vec<Place<'a, 'p>>> {
    // One path that names the array by number is enough for it to be taken whole by all.
    let whole = places
        .iter()
        .any(|place| matches!(place, Place::Array(.., true)));
    let one = |(at, place): (usize, &Place<'a, 'p>)| {
        let Place::Array(array, rest, _) = place else {
            return Ok(*place);
        };
        Ok(match (element, by_number.get(at).copied().flatten()) {
            (None, _) if rest.is_empty() => Place::Value(RawBsonRef::Undefined),
            (Some(_), _) if rest.is_empty() && whole => Place::Value(RawBsonRef::Array(array)),
            (Some(value), _) if rest.is_empty() => Place::Value(value),
            (_, Some(named)) => named,
            (Some(RawBsonRef::Document(inner)), None) => descend(inner, rest)?,
            _ => Place::Value(RawBsonRef::Null),
        })
    };
    places.iter().enumerate().map(one).collect()
}
