//! Operators supported only in the projections of `find`: `$slice`, `$elemMatch` and the positional
//! `$`.

use std::sync::Arc;

use bson::raw::{CStr, cstr};
use bson::{Bson, Document, RawArrayBuf, RawBsonRef, RawDocumentBuf};

use crate::filter::{Details, Filter};
use crate::number::Number;
use crate::settings::Settings;
use crate::value::type_name;
use crate::{Error, Result};

/// The operand of `$slice`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    /// Number of elements to skip; counted from the end when negative.
    skip: Option<i64>,
    /// Number of elements to keep. When negative and `skip` is `None`, the last `-limit` elements
    /// are kept.
    limit: i64,
}

impl Slice {
    /// Whether the operand has the form of `find`'s `$slice`, not that of the expression `$slice`.
    pub(super) fn is_operand(operand: &Bson) -> bool {
        let numeric = |value: &Bson| Number::from_bson(value).is_some();
        match operand {
            Bson::Array(both) => both.len() == 2 && both.iter().all(numeric),
            other => numeric(other),
        }
    }

    pub(super) fn parse(operand: &Bson) -> Result<Slice> {
        let integer = |value: &Bson| Number::from_bson(value).map(Number::to_i64_clamped);
        match operand {
            Bson::Array(both) => match both.as_slice() {
                [skip, limit] => {
                    let limit = integer(limit).unwrap_or(0);
                    if limit <= 0 {
                        return Err(Error::location(
                            28_724,
                            format!("$slice limit must be positive, got {limit}"),
                        ));
                    }
                    Ok(Slice {
                        skip: integer(skip),
                        limit,
                    })
                }
                _ => Err(Error::location(31_272, "$slice takes exactly 2 arguments")),
            },
            other => Ok(Slice {
                skip: None,
                limit: integer(other).ok_or_else(|| {
                    Error::location(
                        31_273,
                        format!(
                            "$slice only supports numbers and [skip, limit] arrays, got {}",
                            type_name(other)
                        ),
                    )
                })?,
            }),
        }
    }

    /// Cuts the array `value`, but not the arrays in it; returns any other value as it is.
    pub(super) fn apply(self, value: Bson) -> Bson {
        match value {
            Bson::Array(mut array) => {
                let range = self.range(array.len());
                array.truncate(range.end);
                array.drain(..range.start);
                Bson::Array(array)
            }
            other => other,
        }
    }

    fn range(self, len: usize) -> std::ops::Range<usize> {
        let size = |number: i64| usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
        match self.skip {
            None if self.limit < 0 => len.saturating_sub(size(self.limit))..len,
            None => 0..size(self.limit).min(len),
            Some(skip) => {
                let start = if skip < 0 {
                    len.saturating_sub(size(skip))
                } else {
                    size(skip).min(len)
                };
                start..start.saturating_add(size(self.limit)).min(len)
            }
        }
    }
}

/// Selects the first element of an array that a filter with `$elemMatch` matches.
#[derive(Debug, Clone)]
pub(super) struct ElemMatch {
    /// `{HOLDER: {$elemMatch: ..}}`.
    filter: Arc<Filter>,
}

/// The field that holds the array while it is tested.
const HOLDER: &CStr = cstr!("e");

impl ElemMatch {
    pub(super) fn parse(operand: RawBsonRef<'_>, settings: &Settings) -> Result<ElemMatch> {
        let RawBsonRef::Document(condition) = operand else {
            return Err(Error::location(
                31_274,
                format!(
                    "elemMatch: Invalid argument, object required, but got {}",
                    type_name(&Bson::try_from(operand)?)
                ),
            ));
        };
        let mut operator = RawDocumentBuf::new();
        operator.append(cstr!("$elemMatch"), condition);
        let mut spec = RawDocumentBuf::new();
        spec.append(HOLDER, operator);
        Ok(ElemMatch {
            filter: Arc::new(Filter::parse(&spec, settings)?),
        })
    }

    /// An array of the first element that matches; `None` when no element matches.
    pub(super) fn apply(&self, value: Option<&Bson>) -> Result<Option<Bson>> {
        let Some(Bson::Array(array)) = value else {
            return Ok(None);
        };
        let mut holder = RawDocumentBuf::new();
        holder.append(HOLDER, RawArrayBuf::try_from(array)?);
        let mut details = Details::default();
        if !self.filter.matches_at(&holder, &mut details)? {
            return Ok(None);
        }
        let found = details.array_index.and_then(|index| array.get(index));
        Ok(found.map(|element| Bson::Array(vec![element.clone()])))
    }
}

/// Replaces the first array on `path` by the element that the query matched.
///
/// # Errors
/// 51246 when the query matched no element, 51247 when the array has no such element.
pub(super) fn positional(
    document: &mut Document,
    before: &Document,
    path: &str,
    index: Option<usize>,
) -> Result<()> {
    let mut names = path.split('.');
    let Some(mut original) = names.next().and_then(|name| before.get(name)) else {
        return Ok(());
    };
    let mut depth = 1;
    loop {
        match original {
            Bson::Document(inner) => match names.next().and_then(|name| inner.get(name)) {
                Some(value) => {
                    original = value;
                    depth += 1;
                }
                None => return Ok(()),
            },
            Bson::Array(array) => {
                let index = index.ok_or_else(no_match)?;
                let whole = array.get(index).ok_or_else(mismatch)?;
                return cut(document, path, depth, index, whole);
            }
            _ => return Ok(()),
        }
    }
}

/// Replaces the array `depth` names down by its element at `index`. If the projection has dropped
/// scalars from the array, the element is taken from `whole`, the array of the input document.
fn cut(
    document: &mut Document,
    path: &str,
    depth: usize,
    index: usize,
    whole: &Bson,
) -> Result<()> {
    let mut names = path.split('.').take(depth);
    let Some(mut value) = names.next().and_then(|name| document.get_mut(name)) else {
        return Ok(());
    };
    for name in names {
        match value {
            Bson::Document(inner) => match inner.get_mut(name) {
                Some(inner) => value = inner,
                None => return Ok(()),
            },
            _ => return Ok(()),
        }
    }
    if let Bson::Array(array) = value {
        let element = array.get(index).unwrap_or(whole).clone();
        *array = vec![element];
    }
    Ok(())
}

fn no_match() -> Error {
    Error::location(
        51_246,
        "positional operator '.$' couldn't find a matching element in the array",
    )
}

fn mismatch() -> Error {
    Error::location(51_247, "positional operator '.$' element mismatch")
}
