//! Windows: the range of documents that a function reads for each document.

use std::cmp::Ordering;
use std::ops::Range;

use bson::{Bson, DateTime, Document};

use super::partition::Partitioning;
use crate::expr::{FieldPath, Unit, Zone, add_units};
use crate::number::Number;
use crate::value::{compare, type_name};
use crate::{Error, Result, meter};

/// A window, relative to a document.
#[derive(Debug, Clone)]
pub(super) enum Window {
    /// From and to these positions relative to the document (0 is the document itself); `None` is
    /// unbounded.
    Documents(Option<i64>, Option<i64>),
    /// By distance from the document's value of the sort field.
    Range(RangeWindow),
}

#[derive(Debug, Clone)]
pub(super) struct RangeWindow {
    lower: RangeBound,
    upper: RangeBound,
    unit: Option<Unit>,
    field: FieldPath,
}

#[derive(Debug, Clone)]
enum RangeBound {
    Unbounded,
    Distance(Number),
}

impl Window {
    /// The whole partition.
    pub(super) const ALL: Window = Window::Documents(None, None);

    /// Parses `window` of an output.
    pub(super) fn parse(spec: &Bson, partitioning: &Partitioning) -> Result<Window> {
        let Bson::Document(spec) = spec else {
            return Err(Error::parse("'window' field must be an object"));
        };
        let known = ["documents", "range", "unit"];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::parse(format!(
                "'window' field that is neither 'documents', 'range' nor 'unit': {name}"
            )));
        }
        match (spec.get("documents"), spec.get("range"), spec.get("unit")) {
            (Some(_), Some(_), _) => Err(Error::parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (Some(_), None, Some(_)) => Err(Error::parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (Some(bounds), None, None) => Window::parse_documents(bounds, partitioning),
            (None, Some(bounds), unit) => {
                RangeWindow::parse(bounds, unit, partitioning).map(Window::Range)
            }
            (None, None, None) => Ok(Window::ALL),
            (None, None, Some(_)) => {
                Err(Error::parse("'unit' of a window needs a 'range' beside it"))
            }
        }
    }

    fn parse_documents(bounds: &Bson, partitioning: &Partitioning) -> Result<Window> {
        let [lower, upper] = pair(bounds, "documents")?;
        let bound = |bound: &Bson| match named(bound)? {
            Some(Named::Unbounded) => Ok(None),
            Some(Named::Current) => Ok(Some(0)),
            None => match Number::from_bson(bound).and_then(Number::to_i64_exact) {
                Some(place) => Ok(Some(place)),
                None => Err(Error::parse(
                    "Numeric document-based bounds must be an integer",
                )),
            },
        };
        let (lower, upper) = (bound(lower)?, bound(upper)?);
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower > upper
        {
            return Err(reversed());
        }
        if (lower.is_some() || upper.is_some()) && partitioning.sort.is_none() {
            return Err(Error::location(
                5_339_901,
                "Document-based bounds require a sortBy",
            ));
        }
        Ok(Window::Documents(lower, upper))
    }

    /// The positions in the partition of the documents in the window of the document at `at`.
    pub(super) fn places(&self, documents: &[Document], at: usize) -> Result<Range<usize>> {
        match self {
            Window::Documents(lower, upper) => {
                let end = documents.len();
                let start = lower.map_or(0, |by| shifted(at, by).min(end));
                let stop = upper.map_or(end, |by| match by.checked_add(1) {
                    Some(by) => shifted(at, by).min(end),
                    None => end,
                });
                Ok(start..stop.max(start))
            }
            Window::Range(range) => range.places(documents, at),
        }
    }
}

/// The position `by` documents after `at`, but not before the first document.
fn shifted(at: usize, by: i64) -> usize {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if by < 0 {
        at.saturating_sub(distance)
    } else {
        at.saturating_add(distance)
    }
}

enum Named {
    Unbounded,
    Current,
}

fn named(bound: &Bson) -> Result<Option<Named>> {
    match bound {
        Bson::String(name) => match name.as_str() {
            "unbounded" => Ok(Some(Named::Unbounded)),
            "current" => Ok(Some(Named::Current)),
            _ => Err(Error::parse(
                "Window bounds must be 'unbounded', 'current', or a number.",
            )),
        },
        _ if Number::from_bson(bound).is_some() => Ok(None),
        _ => Err(Error::parse(
            "Window bounds must be 'unbounded', 'current', or a number.",
        )),
    }
}

fn pair<'b>(bounds: &'b Bson, name: &str) -> Result<[&'b Bson; 2]> {
    match bounds {
        Bson::Array(items) => match items.as_slice() {
            [lower, upper] => Ok([lower, upper]),
            _ => Err(Error::parse("Window bounds must be a 2-element array")),
        },
        _ => Err(Error::parse(format!(
            "Window bounds must be a 2-element array: '{name}'"
        ))),
    }
}

fn reversed() -> Error {
    Error::location(5_339_900, "Lower bound must not exceed upper bound")
}

impl RangeWindow {
    fn parse(bounds: &Bson, unit: Option<&Bson>, by: &Partitioning) -> Result<RangeWindow> {
        let [lower, upper] = pair(bounds, "range")?;
        let bound = |bound: &Bson| -> Result<RangeBound> {
            Ok(match named(bound)? {
                Some(Named::Unbounded) => RangeBound::Unbounded,
                Some(Named::Current) => RangeBound::Distance(Number::Int32(0)),
                None => match Number::from_bson(bound) {
                    Some(distance) => RangeBound::Distance(distance),
                    None => RangeBound::Unbounded,
                },
            })
        };
        let Some((field, false)) = by.single()? else {
            return Err(Error::location(
                5_339_902,
                "Range-based bounds require sortBy a single, ascending field",
            ));
        };
        let range = RangeWindow {
            lower: bound(lower)?,
            upper: bound(upper)?,
            unit: unit.map(parse_unit).transpose()?,
            field,
        };
        if let (RangeBound::Distance(lower), RangeBound::Distance(upper)) =
            (&range.lower, &range.upper)
        {
            if compare(&lower.to_bson(), &upper.to_bson()) == Ordering::Greater {
                return Err(reversed());
            }
            let whole = [lower, upper]
                .iter()
                .all(|bound| bound.to_i64_exact().is_some());
            if range.unit.is_some() && !whole {
                return Err(Error::parse(
                    "With 'unit', range-based bounds must be an integer",
                ));
            }
        }
        Ok(range)
    }

    fn places(&self, documents: &[Document], at: usize) -> Result<Range<usize>> {
        meter::step()?;
        let value = |document: &Document| {
            meter::count(1);
            let value = self.field.in_document(document);
            value.map_or(Bson::Null, std::borrow::Cow::into_owned)
        };
        let current = documents.get(at).map_or(Bson::Null, value);
        let start = match &self.lower {
            RangeBound::Unbounded => 0,
            RangeBound::Distance(by) => {
                let limit = self.moved(&current, *by)?;
                documents.partition_point(|document| compare(&value(document), &limit).is_lt())
            }
        };
        let stop = match &self.upper {
            RangeBound::Unbounded => documents.len(),
            RangeBound::Distance(by) => {
                let limit = self.moved(&current, *by)?;
                documents.partition_point(|document| compare(&value(document), &limit).is_le())
            }
        };
        Ok(start..stop.max(start))
    }

    /// A value of the sort field moved by a distance.
    fn moved(&self, value: &Bson, by: Number) -> Result<Bson> {
        match (value, self.unit) {
            (Bson::DateTime(date), Some(unit)) => {
                let amount = by.to_i64_clamped();
                match add_units(date.timestamp_millis(), unit, amount, &Zone::Utc) {
                    Some(moved) => Ok(Bson::DateTime(DateTime::from_millis(moved))),
                    None if amount < 0 => Ok(Bson::DateTime(DateTime::MIN)),
                    None => Ok(Bson::DateTime(DateTime::MAX)),
                }
            }
            (other, None) if Number::from_bson(other).is_some() => {
                let number = Number::from_bson(other).unwrap_or(by);
                Ok(number.add(by).to_bson())
            }
            (other, Some(_)) => Err(Error::location(
                5_429_513,
                format!(
                    "Invalid range: Expected the sortBy field to be a Date, but it was {}",
                    type_name(other)
                ),
            )),
            (other, None) => Err(Error::location(
                5_429_414,
                format!(
                    "Invalid range: Expected the sortBy field to be a number, but it was {}",
                    type_name(other)
                ),
            )),
        }
    }
}

/// Parses `unit`.
pub(super) fn parse_unit(spec: &Bson) -> Result<Unit> {
    let Bson::String(name) = spec else {
        return Err(Error::parse("'unit' must be a string"));
    };
    Unit::parse(name).ok_or_else(|| Error::parse(format!("unknown time unit value: {name}")))
}
