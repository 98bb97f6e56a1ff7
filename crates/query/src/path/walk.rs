//! Visits the values that a path leads to in a raw document, by the rules of filters.
//!
//! An array on the path is entered: the rest of the path is followed in every document of the array
//! and, if the next component is an index, from the element at that index. An array at the end of
//! the path gives its elements as leaves, and then itself. A path that leads to no value gives one
//! leaf without a value, except inside an array, where it gives no leaf.
//!
//! A leaf has the index in the outermost array that was entered without an index in the path; the
//! positional operator `$` of updates stands for it.

use std::ops::ControlFlow;

use bson::{RawArray, RawBsonRef, RawDocument};

use super::{Component, Path};
use crate::{Result, meter};

/// A value at the end of a path.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// The value; `None` for a missing field.
    pub value: Option<RawBsonRef<'a>>,
    /// The index in the outermost array that was entered; `None` if none was.
    pub index: Option<usize>,
}

/// How an array at the end of the path is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// First its elements, then the array itself.
    Expanded,
    /// Only the array itself.
    Whole,
}

/// Called for each leaf; it may end the walk.
type Visit<'v, 'a> = &'v mut dyn FnMut(Leaf<'a>) -> ControlFlow<()>;

/// Visits the values that `path` leads to in `document`; for an array at the end, its elements and
/// then the array.
///
/// # Errors
/// `InvalidBSON` for invalid bytes; errors of [`meter::step`], which counts each element.
pub fn walk<'a>(
    document: &'a RawDocument,
    path: &Path,
    visit: &mut dyn FnMut(Leaf<'a>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    walk_leaves(document, path, Leaves::Expanded, visit)
}

/// As [`walk`]; `leaves` determines how an array at the end is visited.
///
/// # Errors
/// As [`walk`].
pub fn walk_leaves<'a>(
    document: &'a RawDocument,
    path: &Path,
    leaves: Leaves,
    visit: &mut dyn FnMut(Leaf<'a>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    Walk {
        leaves,
        index: None,
    }
    .document(document, path.components(), visit)
}

#[derive(Clone, Copy)]
struct Walk {
    leaves: Leaves,
    index: Option<usize>,
}

impl Walk {
    /// Recursion is bounded by the length of the path.
    fn document<'a>(
        self,
        document: &'a RawDocument,
        path: &[Component],
        visit: Visit<'_, 'a>,
    ) -> Result<ControlFlow<()>> {
        let mut document = document;
        let mut path = path;
        loop {
            let Some((component, rest)) = path.split_first() else {
                return Ok(self.leaf(Some(RawBsonRef::Document(document)), visit));
            };
            let value = super::find(document, component.name())?;
            match value {
                Some(RawBsonRef::Array(array)) if rest.is_empty() => {
                    return self.last_array(array, visit);
                }
                value if rest.is_empty() => return Ok(self.leaf(value, visit)),
                Some(RawBsonRef::Document(inner)) => {
                    document = inner;
                    path = rest;
                }
                Some(RawBsonRef::Array(array)) => return self.array(array, rest, visit),
                _ => return Ok(self.leaf(None, visit)),
            }
        }
    }

    fn leaf<'a>(self, value: Option<RawBsonRef<'a>>, visit: Visit<'_, 'a>) -> ControlFlow<()> {
        visit(Leaf {
            value,
            index: self.index,
        })
    }

    /// An array at the end of the path.
    fn last_array<'a>(self, array: &'a RawArray, visit: Visit<'_, 'a>) -> Result<ControlFlow<()>> {
        if self.leaves == Leaves::Expanded {
            for (position, element) in array.into_iter().enumerate() {
                meter::step()?;
                if self
                    .entered(position)
                    .leaf(Some(element?), visit)
                    .is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(self.leaf(Some(RawBsonRef::Array(array)), visit))
    }

    /// Visits an array on the path; `path` is the rest of the path, which is not empty.
    fn array<'a>(
        self,
        array: &'a RawArray,
        path: &[Component],
        visit: Visit<'_, 'a>,
    ) -> Result<ControlFlow<()>> {
        let Some((component, rest)) = path.split_first() else {
            return Ok(ControlFlow::Continue(()));
        };
        for (position, element) in array.into_iter().enumerate() {
            meter::step()?;
            let element = element?;
            if let RawBsonRef::Document(inner) = element
                && self
                    .entered(position)
                    .document(inner, path, visit)?
                    .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            // The path selects this element by its index, so the array is not entered implicitly.
            if component.index() == Some(position) && self.indexed(element, rest, visit)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits an element that the path selects by its index.
    fn indexed<'a>(
        self,
        element: RawBsonRef<'a>,
        rest: &[Component],
        visit: Visit<'_, 'a>,
    ) -> Result<ControlFlow<()>> {
        if rest.is_empty() {
            return Ok(self.leaf(Some(element), visit));
        }
        match element {
            RawBsonRef::Document(inner) => self.document(inner, rest, visit),
            RawBsonRef::Array(inner) => self.array(inner, rest, visit),
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn entered(self, position: usize) -> Walk {
        Walk {
            index: self.index.or(Some(position)),
            ..self
        }
    }
}
