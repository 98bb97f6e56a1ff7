//! `$push`: inserts elements into an array at a position; optionally sorts and cuts the array.

use std::cmp::Ordering;

use bson::{Bson, Document, RawDocumentBuf};

use super::modifier::{Context, Outcome};
use crate::meter::Held;
use crate::number::Number;
use crate::path::array_index;
use crate::sort::Sort;
use crate::value::{compare_with, type_name};
use crate::{Error, Result, meter, show};

/// The operand of `$push`.
#[derive(Debug, Clone)]
pub(super) struct Push {
    values: Vec<Bson>,
    /// Where to insert; counted from the end when negative, the end itself when `None`.
    position: Option<i64>,
    /// Number of elements to keep: the first ones, or the last ones when negative.
    slice: Option<i64>,
    order: Option<Order>,
}

#[derive(Debug, Clone)]
enum Order {
    /// Elements are compared as a whole, in descending order if true.
    Whole(bool),
    /// Elements are compared by these fields, each in descending order if true.
    Fields(Vec<(String, bool)>),
}

impl Push {
    pub(super) fn parse(operand: &Bson) -> Result<Push> {
        let mut push = Push {
            values: Vec::new(),
            position: None,
            slice: None,
            order: None,
        };
        let clauses = operand.as_document().filter(|d| d.contains_key("$each"));
        let Some(clauses) = clauses else {
            push.values.push(operand.clone());
            return Ok(push);
        };
        for (name, value) in clauses {
            match name.as_str() {
                "$each" => push.values = each(value)?,
                "$position" => {
                    push.position = Some(integer(value).ok_or_else(|| {
                        Error::bad_value(format!(
                            "The value for $position must be an integer value, not of type: {}",
                            type_name(value)
                        ))
                    })?);
                }
                "$slice" => {
                    push.slice = Some(integer(value).ok_or_else(|| {
                        Error::bad_value(format!(
                            "The value for $slice must be an integer value but was given type: {}",
                            type_name(value)
                        ))
                    })?);
                }
                "$sort" => push.order = Some(Order::parse(value)?),
                unknown => {
                    return Err(Error::bad_value(format!(
                        "Unrecognized clause in $push: {unknown}"
                    )));
                }
            }
        }
        Ok(push)
    }

    pub(super) fn apply(
        &self,
        path: &str,
        current: Option<&mut Bson>,
        cx: &Context<'_>,
    ) -> Result<Outcome> {
        let array = match current {
            None => Vec::new(),
            Some(Bson::Array(_)) if self.does_nothing() => return Ok(Outcome::Keep),
            Some(Bson::Array(array)) => std::mem::take(array),
            Some(other) => {
                return Err(Error::bad_value(format!(
                    "The field '{path}' must be an array but is of type {} in document {}",
                    type_name(other),
                    cx.document()
                )));
            }
        };
        // An array that is the same afterwards is found with the whole document.
        self.pushed(array, cx).map(Outcome::Set)
    }

    fn does_nothing(&self) -> bool {
        self.values.is_empty() && self.order.is_none() && self.slice.is_none()
    }

    /// The array with the values, sorted and cut.
    fn pushed(&self, mut array: Vec<Bson>, cx: &Context<'_>) -> Result<Bson> {
        let at = insertion(self.position, array.len());
        let values = meter::copies("An update", self.values.iter())?;
        array.reserve_exact(values.len());
        array.splice(at..at, values);
        if let Some(order) = &self.order {
            // The sort moves the elements into runs. They are part of a stored document, so they
            // count in the common budget only.
            let mut held = Held::new();
            held.require("An update", array.len() * size_of::<Bson>())?;
            order.sort(&mut array, cx)?;
        }
        cut(&mut array, self.slice);
        Ok(Bson::Array(array))
    }
}

fn each(value: &Bson) -> Result<Vec<Bson>> {
    match value {
        Bson::Array(values) => Ok(values.clone()),
        other => Err(Error::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            type_name(other)
        ))),
    }
}

fn integer(value: &Bson) -> Option<i64> {
    Number::from_bson(value)?.to_i64_exact()
}

/// The index at which elements are inserted; positions beyond an end are clamped to it.
fn insertion(position: Option<i64>, len: usize) -> usize {
    match position {
        None => len,
        Some(at) if at < 0 => {
            len.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
        }
        Some(at) => usize::try_from(at).map_or(len, |at| at.min(len)),
    }
}

fn cut(array: &mut Vec<Bson>, slice: Option<i64>) {
    match slice {
        None => {}
        Some(last) if last < 0 => {
            let keep = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
            array.drain(..array.len().saturating_sub(keep));
        }
        Some(first) => array.truncate(usize::try_from(first).unwrap_or(usize::MAX)),
    }
}

impl Order {
    fn parse(value: &Bson) -> Result<Order> {
        match value {
            Bson::Document(pattern) => Order::fields(pattern),
            other => match Number::from_bson(other).and_then(Number::to_i64_exact) {
                Some(1) => Ok(Order::Whole(false)),
                Some(-1) => Ok(Order::Whole(true)),
                Some(_) => Err(Error::bad_value(
                    "The $sort element value must be either 1 or -1",
                )),
                None => Err(Error::bad_value(
                    "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to \
                     sort embedded fields",
                )),
            },
        }
    }

    fn fields(pattern: &Document) -> Result<Order> {
        if pattern.is_empty() {
            return Err(Error::bad_value(
                "The $sort pattern is empty when it should be a set of fields.",
            ));
        }
        let mut fields = Vec::with_capacity(pattern.len());
        for (name, direction) in pattern {
            if name.is_empty() || name.split('.').any(str::is_empty) {
                return Err(Error::bad_value(format!(
                    "The $sort field is a dotted field but has an empty part: {name}"
                )));
            }
            let direction = Number::from_bson(direction).and_then(Number::to_i64_exact);
            if !matches!(direction, Some(1 | -1)) {
                return Err(Error::bad_value(
                    "The $sort element value must be either 1 or -1",
                ));
            }
            fields.push((name.clone(), direction == Some(-1)));
        }
        let raw = RawDocumentBuf::try_from(pattern)?;
        Sort::parse(&raw).map_err(|error| {
            Error::new(
                error.code,
                format!("{} in {}", error.message, show::document(pattern)),
            )
        })?;
        Ok(Order::Fields(fields))
    }

    fn sort(&self, array: &mut Vec<Bson>, cx: &Context<'_>) -> Result<()> {
        match self {
            Order::Whole(descending) => {
                let elements = std::mem::take(array);
                *array = meter::sort_by(elements, |left, right| {
                    let order = compare_with(left, right, cx.collator);
                    if *descending { order.reverse() } else { order }
                })?;
            }
            Order::Fields(fields) => {
                let elements = std::mem::take(array);
                *array = meter::sort_by(elements, |left, right| {
                    let orders = fields.iter().map(|(path, descending)| {
                        let (left, right) = (value(left, path), value(right, path));
                        let order = compare_with(left, right, cx.collator);
                        if *descending { order.reverse() } else { order }
                    });
                    orders.fold(Ordering::Equal, Ordering::then)
                })?;
            }
        }
        Ok(())
    }
}

/// The value at a path of an element, null when it is missing. Arrays on the way are entered by
/// index only, and an array at the end is compared as a whole.
fn value<'e>(element: &'e Bson, path: &str) -> &'e Bson {
    let mut names = path.split('.');
    let mut at = match element {
        Bson::Document(document) => names.next().and_then(|name| document.get(name)),
        _ => None,
    };
    for name in names {
        at = match at {
            Some(Bson::Document(document)) => document.get(name),
            Some(Bson::Array(array)) => array_index(name).and_then(|index| array.get(index)),
            _ => None,
        };
    }
    at.unwrap_or(&Bson::Null)
}
