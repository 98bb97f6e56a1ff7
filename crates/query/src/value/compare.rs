//! The total order of values.
//!
//! Values are ordered by type first (MongoDB's manual, "Comparison/Sort Order"); all numbers are
//! one type there, and so are all strings. Within a type: numbers exactly, strings by bytes or by
//! collation, documents field by field (type, then name, then value), arrays element by element,
//! binary data by length, subtype, bytes.

use std::cmp::Ordering;

use bson::{Bson, RawBsonRef, RawDocument};

use super::view::{Fields, Items, MAX_DEPTH, View};
use crate::collation::Collator;
use crate::{meter, number};

/// Bytes of strings that count as one step of the meter when a collation compares them.
const COLLATED: usize = 64;

/// The order of two values.
#[must_use]
pub fn compare(left: &Bson, right: &Bson) -> Ordering {
    compare_with(left, right, None)
}

/// The order of two values; strings are compared by `collator`.
#[must_use]
pub fn compare_with(left: &Bson, right: &Bson, collator: Option<&Collator>) -> Ordering {
    Order { collator }.views(View::owned(left), View::owned(right), 0)
}

/// As [`compare`], for raw values.
#[must_use]
pub fn compare_raw(left: RawBsonRef<'_>, right: RawBsonRef<'_>) -> Ordering {
    compare_raw_with(left, right, None)
}

/// As [`compare_with`], for raw values.
#[must_use]
pub fn compare_raw_with(
    left: RawBsonRef<'_>,
    right: RawBsonRef<'_>,
    collator: Option<&Collator>,
) -> Ordering {
    Order { collator }.views(View::raw(left), View::raw(right), 0)
}

/// The order of a raw value and an owned one; strings are compared by `collator`.
#[must_use]
pub fn compare_mixed(left: RawBsonRef<'_>, right: &Bson, collator: Option<&Collator>) -> Ordering {
    Order { collator }.views(View::raw(left), View::owned(right), 0)
}

/// As [`compare`], for two raw documents.
#[must_use]
pub fn compare_raw_documents(left: &RawDocument, right: &RawDocument) -> Ordering {
    Order { collator: None }.fields(Fields::raw(left), Fields::raw(right), 0)
}

#[derive(Clone, Copy)]
struct Order<'c> {
    collator: Option<&'c Collator>,
}

impl Order<'_> {
    fn views(self, left: View<'_>, right: View<'_>, depth: usize) -> Ordering {
        match (left, right) {
            (View::Number(a), View::Number(b)) => number::compare(a, b),
            (View::Text(a), View::Text(b)) => self.texts(a, b),
            (View::Object(a), View::Object(b)) => self.fields(a, b, depth + 1),
            (View::Array(a), View::Array(b)) => self.items(a, b, depth + 1),
            (View::Binary(i, a), View::Binary(j, b)) => (a.len(), i, a).cmp(&(b.len(), j, b)),
            (View::ObjectId(a), View::ObjectId(b)) => a.cmp(&b),
            (View::Boolean(a), View::Boolean(b)) => a.cmp(&b),
            (View::Date(a), View::Date(b)) => a.cmp(&b),
            (View::Timestamp(a, i), View::Timestamp(b, j)) => (a, i).cmp(&(b, j)),
            (View::Regex(a, i), View::Regex(b, j)) => (a, i).cmp(&(b, j)),
            (View::DbPointer(a), View::DbPointer(b)) => (a.len(), a).cmp(&(b.len(), b)),
            (View::Code(a), View::Code(b)) => a.cmp(b),
            (View::CodeWithScope(a, i), View::CodeWithScope(b, j)) => {
                a.cmp(b).then_with(|| self.fields(i, j, depth + 1))
            }
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn texts(self, left: &str, right: &str) -> Ordering {
        match self.collator {
            None => left.cmp(right),
            Some(collator) => {
                meter::count((left.len() + right.len()) / COLLATED);
                collator.compare(left, right)
            }
        }
    }

    fn fields(self, mut left: Fields<'_>, mut right: Fields<'_>, depth: usize) -> Ordering {
        if depth > MAX_DEPTH {
            return Ordering::Equal;
        }
        loop {
            meter::count(1);
            let ((name, value), (other_name, other)) = match (left.next(), right.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(a), Some(b)) => (a, b),
            };
            let order = value
                .rank()
                .cmp(&other.rank())
                .then_with(|| name.cmp(other_name))
                .then_with(|| self.views(value, other, depth));
            if order != Ordering::Equal {
                return order;
            }
        }
    }

    fn items(self, mut left: Items<'_>, mut right: Items<'_>, depth: usize) -> Ordering {
        if depth > MAX_DEPTH {
            return Ordering::Equal;
        }
        loop {
            meter::count(1);
            let order = match (left.next(), right.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(a), Some(b)) => self.views(a, b, depth),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
    }
}
