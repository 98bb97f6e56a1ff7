//! Walking a raw document along a path, as filters see it.
//!
//! An array on the way is entered: every document in it is walked with the rest of the path, and
//! when the next component is an index, the element there too. An array at the end gives its
//! elements and then itself. A path that leads nowhere gives one leaf without a value, unless the
//! way was lost inside an array: then it gives none.
//!
//! A leaf remembers the outermost array that was entered implicitly: what the positional operator
//! of updates stands for.

use std::ops::ControlFlow;

use bson::{RawArray, RawBsonRef, RawDocument};

use super::{Component, Path};
use crate::Result;

/// A value at the end of a path.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// The value; none for a missing field.
    pub value: Option<RawBsonRef<'a>>,
    /// The position in the outermost array that was entered, if one was.
    pub index: Option<usize>,
}

/// Treatment of an array at the end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Its elements, then itself.
    Expanded,
    /// Itself alone.
    Whole,
}

/// Callback for each leaf; it may stop the walk.
type Visit<'v, 'a> = &'v mut dyn FnMut(Leaf<'a>) -> ControlFlow<()>;

/// Visits what `path` leads to in `document`; an array at the end gives its elements, then itself.
///
/// # Errors
/// `InvalidBSON` for invalid bytes.
pub fn walk<'a>(
    document: &'a RawDocument,
    path: &Path,
    visit: &mut dyn FnMut(Leaf<'a>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    walk_leaves(document, path, Leaves::Expanded, visit)
}

/// As [`walk`]; `leaves` determines the treatment of an array at the end.
///
/// # Errors
/// `InvalidBSON` for invalid bytes.
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

    /// An array on the way; `path` is what is left of it and not empty.
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
            let element = element?;
            if let RawBsonRef::Document(inner) = element
                && self
                    .entered(position)
                    .document(inner, path, visit)?
                    .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            // Named by its index: that is no implicit entering of the array.
            if component.index() == Some(position) && self.indexed(element, rest, visit)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// An element that the path names by its index.
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
