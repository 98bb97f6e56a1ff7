//! The plan of `min` and `max`, which are keys of one index.

use std::sync::Arc;

use bson::Document;
use query::sort::Sort;
use query::{Error, Result};

use super::access::{Access, Candidate, IndexScan};
use super::candidates::{Planning, find};
use super::index::IndexView;
use super::interval::Intervals;
use super::order::Order;
use super::predicate::Conjunction;
use super::scan::{ByteRange, KeyRanges, cut_end, cut_start, encode};
use crate::key::BEFORE;

/// The plan of `min` and `max`: a range of one index's keys, or of the records of a clustered
/// collection.
///
/// # Errors
/// Edges that are not keys of the index of the hint.
pub(super) fn min_max(planning: &mut Planning<'_>) -> Result<Candidate> {
    let request = planning.request;
    let Some(hint) = request.hint else {
        return Err(Error::location(
            51173,
            "When using min()/max() a hint of which index to use must be provided",
        ));
    };
    let index = find(planning.space, hint)?;
    let start = edge(request.min, index)?;
    let end = edge(request.max, index)?;
    let edges = ByteRange {
        start: start.unwrap_or_default(),
        end: end.unwrap_or_else(|| vec![0xFF]),
    };
    if edges.end <= edges.start {
        return Err(Error::location(51175, "max must be greater than min"));
    }
    let ranges = Arc::new(within(edges, index.true_bytes));
    let sets = vec![Intervals::all(); index.fields.len()];
    let backward = match request.sort {
        None => Some(false),
        // An array sorts by one of its elements, whose key may lie outside of the edges.
        Some(sort) if has_arrays(index, sort) => None,
        Some(sort) => match planning.order(index, &sets, sort)? {
            Some(Order::Scan { backward }) => Some(backward),
            _ => None,
        },
    };
    let access = match index.source() {
        Some(_) => Access::Index(IndexScan {
            index: Arc::clone(index),
            sets: vec![sets],
            ranges,
            backward: backward.unwrap_or(false),
        }),
        None => Access::Collection {
            backward: backward.unwrap_or(false),
            ranges: Some(ranges),
        },
    };
    Ok(Candidate {
        access,
        exact: Conjunction::of(request.filter.root()).is_empty(),
        sorted: backward.is_some(),
        covered: index.source().is_some() && planning.covers(index),
    })
}

/// Whether a field of the sort has arrays.
fn has_arrays(index: &IndexView, sort: &Sort) -> bool {
    let mut fields = index.fields.iter().filter(|field| field.arrays != 0);
    fields.any(|field| {
        let mut sorted = sort.fields().iter();
        sorted.any(|(path, _)| path.as_str() == field.path.as_str())
    })
}

/// The keys between two edges, which may be longer than `true_bytes`.
fn within(edges: ByteRange, true_bytes: usize) -> KeyRanges {
    let mut range = edges.clone();
    let start = cut_start(&mut range.start, true_bytes);
    let end = cut_end(&mut range.end, true_bytes);
    KeyRanges {
        ranges: vec![range],
        check: None,
        cut: start || end,
        edges: Some(edges).filter(|_| start || end),
    }
}

/// An edge as a full key, not truncated. All keys with its values sort after it.
fn edge(of: Option<&Document>, index: &IndexView) -> Result<Option<Vec<u8>>> {
    let Some(edge) = of else {
        return Ok(None);
    };
    let names_agree = edge.len() == index.fields.len()
        && edge
            .keys()
            .zip(&index.fields)
            .all(|(name, field)| name == field.path.as_str());
    if !names_agree {
        return Err(Error::location(
            51174,
            "The index chosen is not compatible with min/max",
        ));
    }
    let mut key = Vec::new();
    for (value, coding) in edge.values().zip(index.coding()) {
        key.extend(encode(value, coding)?);
    }
    key.push(BEFORE);
    Ok(Some(key))
}
