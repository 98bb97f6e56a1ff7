//! Extracts the values by which a document is sorted: the keys that an index on the same fields
//! would have.
//!
//! A missing field is null; an empty array is undefined, which sorts below null. An array gives one
//! tuple per element; all fields below the same array take their values from the same element. Two
//! different arrays have no such tuples and are refused. A number in a path selects one element of
//! an array; if this element is an array and the path ends there, it is one value. Other arrays in
//! arrays are values as a whole, too.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::path::{Component, Path, find};
use crate::{Error, Result};

/// Calls `visit` with each tuple of `document`; there is at least one.
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

/// Where the walk along a path has stopped.
#[derive(Clone, Copy)]
enum Place<'a, 'p> {
    Value(RawBsonRef<'a>),
    /// An array, the rest of the path, and whether a number in the path selected this array as an
    /// element of another.
    Array(&'a RawArray, &'p [Component], bool),
}

/// Follows `path` to a value or to the first array. Bounded by the length of the path.
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

/// The element of `array` that the next name of `path` selects by its index, if it does.
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

/// Refuses a number that is the index of an element and also the name of a field of a document in
/// the array.
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

/// Recursion is bounded by the lengths of the paths: every level takes one array off each path that
/// has stopped at it.
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
        // If no path takes a value from each element, all elements give the same tuple.
        let same = places.iter().zip(&by_number).all(|(place, named)| {
            named.is_some() || matches!(place, Place::Value(_) | Place::Array(_, [], true))
        });
        if same {
            break;
        }
    }
    Ok(())
}

/// The array at which paths have stopped; an error if they have stopped at different arrays.
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

/// The places after every path has entered the array at `element`; `None` for an empty array.
/// `by_number` has the places of paths that select an element by its index.
fn step<'a, 'p>(
    places: &[Place<'a, 'p>],
    by_number: &[Option<Place<'a, 'p>>],
    element: Option<RawBsonRef<'a>>,
) -> Result<Vec<Place<'a, 'p>>> {
    // If a number in one path has selected this array as an element, it is one value for all paths.
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
