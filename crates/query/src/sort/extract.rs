//! The values a document is sorted by, as the keys of an index over the same fields would be.
//!
//! A missing field is null, an empty array undefined (below null). An array gives one tuple per
//! element; fields below one array take their values from the same element. Two arrays side by side
//! have no such tuples and are refused. Arrays in arrays are values and are not entered, unless the
//! path names them by index.

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

/// Where a path has come to.
#[derive(Clone, Copy)]
enum Place<'a, 'p> {
    Value(RawBsonRef<'a>),
    Array(&'a RawArray, &'p [Component]),
}

/// Follows `path` until a value or an array. Bounded by the length of the path.
fn descend<'a, 'p>(document: &'a RawDocument, path: &'p [Component]) -> Result<Place<'a, 'p>> {
    let mut document = document;
    let mut path = path;
    while let Some((component, rest)) = path.split_first() {
        match find(document, component.name())? {
            None => break,
            Some(RawBsonRef::Array(array)) => return enter(array, rest),
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

/// At an array: on to the element that the path names by index, if there is one.
fn enter<'a, 'p>(array: &'a RawArray, path: &'p [Component]) -> Result<Place<'a, 'p>> {
    let Some((component, rest)) = path.split_first() else {
        return Ok(Place::Array(array, path));
    };
    let named = match component.index() {
        None => None,
        Some(index) => array.get(index)?,
    };
    match named {
        None => Ok(Place::Array(array, path)),
        Some(RawBsonRef::Array(inner)) => enter(inner, rest),
        Some(value) if rest.is_empty() => Ok(Place::Value(value)),
        Some(RawBsonRef::Document(inner)) => descend(inner, rest),
        Some(_) => Ok(Place::Value(RawBsonRef::Null)),
    }
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
    let mut elements = array.into_iter().peekable();
    if elements.peek().is_none() {
        return expand(&step(places, None)?, visit);
    }
    for element in elements {
        expand(&step(places, Some(element?))?, visit)?;
    }
    Ok(())
}

/// The array that places are at: all at the same one.
fn common_array<'a>(places: &[Place<'a, '_>]) -> Result<Option<&'a RawArray>> {
    let mut common: Option<&RawArray> = None;
    for place in places {
        let Place::Array(array, _) = place else {
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

/// The places after entering the array at `element`; none when it is empty.
fn step<'a, 'p>(
    places: &[Place<'a, 'p>],
    element: Option<RawBsonRef<'a>>,
) -> Result<Vec<Place<'a, 'p>>> {
    let one = |place: &Place<'a, 'p>| {
        let Place::Array(_, rest) = place else {
            return Ok(*place);
        };
        Ok(match element {
            None if rest.is_empty() => Place::Value(RawBsonRef::Undefined),
            Some(value) if rest.is_empty() => Place::Value(value),
            Some(RawBsonRef::Document(inner)) => descend(inner, rest)?,
            _ => Place::Value(RawBsonRef::Null),
        })
    };
    places.iter().map(one).collect()
}
